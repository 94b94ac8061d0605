//! Every table as a file: Markdown and LaTeX with rounded numbers, CSV with all digits.

use fairtte_metrics::statistics::SignedRankNull;

use super::super::format::short;
use super::super::sheet::{Cell, Sheet};
use super::{ids, left_out, trials};
use crate::method_tests::{MethodTests, MetricTests, PairTest};

pub(super) fn sheets(tests: &MethodTests) -> Vec<Sheet> {
    let mut sheets = vec![of_all(tests)];
    for (metric, id) in tests.metrics.iter().zip(ids(tests)) {
        if !metric.settings.is_empty() {
            sheets.push(ranks(metric, &id));
        }
        sheets.extend(nemenyi(metric, &id));
        sheets.push(signed_rank(metric, &id));
        if !metric.settings.is_empty() {
            sheets.push(values(metric, &id));
        }
    }
    sheets
}

/// One row per metric with Friedman's test.
fn of_all(tests: &MethodTests) -> Sheet {
    let columns = [
        ("metric", "metric"),
        ("settings", "settings"),
        ("left-out", "left out"),
        ("methods", "methods"),
        ("chi-square", "chi-square"),
        ("degrees", "degrees"),
        ("p", "p"),
        ("p-holm", "p (Holm)"),
        ("f", "F"),
        ("f-degrees-1", "degrees 1"),
        ("f-degrees-2", "degrees 2"),
        ("f-p", "p of F"),
        ("critical-difference", "critical difference"),
    ];
    let rows = tests.metrics.iter().map(|metric| {
        let tested = metric.ranks.tested.as_ref();
        let of_f = tested.and_then(|tested| tested.iman_davenport.as_ref());
        let degrees =
            |of: fn((usize, usize)) -> usize| of_f.map_or(Cell::Missing, |test| Cell::Count(of(test.degrees)));
        let friedman = tested.map(|tested| tested.friedman);
        vec![
            Cell::Text(metric.metric.clone()),
            Cell::Count(metric.ranks.n_settings),
            Cell::Count(metric.left_out.len()),
            Cell::Count(metric.methods.len()),
            Cell::or_missing(friedman.map(|test| test.chi_square), Cell::Statistic),
            friedman.map_or(Cell::Missing, |test| Cell::Count(test.degrees)),
            Cell::or_missing(friedman.map(|test| test.p_value), Cell::P),
            Cell::or_missing(tested.and_then(|tested| tested.friedman_p_holm), Cell::P),
            Cell::or_missing(of_f.map(|test| test.f), Cell::Statistic),
            degrees(|degrees| degrees.0),
            degrees(|degrees| degrees.1),
            Cell::or_missing(of_f.map(|test| test.p_value), Cell::P),
            Cell::or_missing(tested.map(|tested| tested.critical_difference), Cell::Statistic),
        ]
    });
    let caption = format!("Tests of equal ranks; critical difference at {}.", short(tests.level));
    Sheet::new("friedman".to_owned(), caption, &columns, rows.collect())
}

fn ranks(metric: &MetricTests, id: &str) -> Sheet {
    let columns = [("method", "method"), ("average-rank", "average rank"), ("mean", "mean"), ("settings", "settings")];
    let n = metric.ranks.n_settings;
    let rows = by_rank(metric).into_iter().map(|method| {
        let (rank, mean) = (metric.ranks.average_ranks[method], metric.ranks.means[method]);
        vec![Cell::Text(metric.methods[method].clone()), Cell::Statistic(rank), Cell::Value(mean), Cell::Count(n)]
    });
    let caption = format!("Average ranks in {} ({}).", metric.metric, metric.goal.words());
    let mut sheet = Sheet::new(format!("ranks-{id}"), caption, &columns, rows.collect());
    sheet.notes = said_of_ranks(metric);
    sheet.notes.extend(left_out(metric).iter().map(|out| format!("Not ranked: {out}.")));
    sheet
}

/// The text before the pairs: all sentences but the last.
fn said_of_ranks(metric: &MetricTests) -> Vec<String> {
    metric.verdict[..metric.verdict.len().saturating_sub(1)].to_vec()
}

fn nemenyi(metric: &MetricTests, id: &str) -> Option<Sheet> {
    let tested = metric.ranks.tested.as_ref()?;
    let names = metric.methods.iter().map(|method| (method.as_str(), method.as_str()));
    let columns: Vec<(&str, &str)> = std::iter::once(("method", "method")).chain(names).collect();
    let row = |(method, p_values): (&String, &Vec<f64>)| {
        std::iter::once(Cell::Text(method.clone())).chain(p_values.iter().map(|p| Cell::P(*p))).collect()
    };
    let rows = metric.methods.iter().zip(&tested.nemenyi_p).map(row).collect();
    let caption = format!("p values of all pairs in {} (Nemenyi).", metric.metric);
    let mut sheet = Sheet::new(format!("nemenyi-{id}"), caption, &columns, rows);
    sheet.notes = said_of_ranks(metric);
    Some(sheet)
}

fn signed_rank(metric: &MetricTests, id: &str) -> Sheet {
    let columns = [
        ("first", "first"),
        ("second", "minus"),
        ("pairs", "pairs"),
        ("unpaired", "unpaired"),
        ("better", "better"),
        ("worse", "worse"),
        ("zero", "zero"),
        ("median-difference", "median"),
        ("w-plus", "W+"),
        ("w-minus", "W-"),
        ("p", "p"),
        ("p-holm", "p (Holm)"),
        ("null", "null"),
    ];
    let row = |pair: &PairTest| {
        let of_test = |of: fn(&fairtte_metrics::statistics::SignedRankTest) -> f64| pair.test.as_ref().map(of);
        vec![
            Cell::Text(pair.first.clone()),
            Cell::Text(pair.second.clone()),
            Cell::Count(pair.n_pairs),
            Cell::Count(pair.n_unpaired),
            Cell::Count(pair.n_better),
            Cell::Count(pair.n_worse),
            Cell::Count(pair.n_zero),
            Cell::or_missing(pair.median_difference, Cell::Value),
            Cell::or_missing(of_test(|test| test.positive_rank_sum), Cell::Value),
            Cell::or_missing(of_test(|test| test.negative_rank_sum), Cell::Value),
            Cell::or_missing(of_test(|test| test.p_value), Cell::P),
            Cell::or_missing(pair.p_holm, Cell::P),
            pair.test.map_or(Cell::Missing, |test| Cell::Text(null_name(test.null).to_owned())),
        ]
    };
    let trials = if metric.trials.is_some() { "setting and trial" } else { "setting" };
    let caption = format!("Signed-rank tests in {}, one pair per {trials}.", metric.metric);
    let mut sheet = Sheet::new(format!("signed-rank-{id}"), caption, &columns, metric.pairs.iter().map(row).collect());
    sheet.notes = metric.verdict.last().into_iter().cloned().collect();
    sheet
}

pub(super) fn null_name(null: SignedRankNull) -> &'static str {
    match null {
        SignedRankNull::Exact | SignedRankNull::UntiedTable => "exact",
        SignedRankNull::Normal | SignedRankNull::NormalCorrected => "normal",
    }
}

fn values(metric: &MetricTests, id: &str) -> Sheet {
    let names = metric.methods.iter().map(|method| (method.as_str(), method.as_str()));
    let columns: Vec<(&str, &str)> = std::iter::once(("setting", "setting")).chain(names).collect();
    let rows = metric.settings.iter().map(|setting| {
        let means = setting.means.iter().map(|mean| Cell::Value(*mean));
        std::iter::once(Cell::Text(setting.setting.clone())).chain(means).collect()
    });
    let of = match trials(metric) {
        none if none.is_empty() => String::new(),
        trials => format!(", means of {trials}"),
    };
    let caption = format!("{} of every method and setting{of}.", metric.metric);
    Sheet::new(format!("values-{id}"), caption, &columns, rows.collect())
}

/// Methods from the best average rank to the worst.
pub(super) fn by_rank(metric: &MetricTests) -> Vec<usize> {
    let ranks = &metric.ranks.average_ranks;
    let mut methods: Vec<usize> = (0..ranks.len()).collect();
    methods.sort_by(|a, b| ranks[*a].total_cmp(&ranks[*b]));
    methods
}
