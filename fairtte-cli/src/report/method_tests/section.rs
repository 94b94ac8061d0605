//! One metric as a section of a page: figure, ranks, Nemenyi's p values, signed-rank tests and values.

use std::cmp::Ordering;

use serde::Serialize;

use super::super::ReportError;
use super::super::format::{column, column_of, count, list, number, p_relation, p_value, short};
use super::super::p_matrix::{MatrixCell, MatrixRow, shade};
use super::super::plots::critical_difference;
use super::sheets::{by_rank, null_name};
use super::{ids, left_out, trials};
use crate::method_tests::{MethodTests, MetricTests, PairTest, SettingValues, Tested};

/// What a section shows, every number as text; filled in by the filter `method_tests`.
#[derive(Debug, Serialize)]
pub(crate) struct MetricSection {
    /// Name on the page.
    pub(super) id: String,
    pub(super) metric: String,
    pub(super) question: String,
    pub(super) verdict: Vec<String>,
    goal: &'static str,
    base: String,
    figure: Option<String>,
    caption: String,
    ranks: Vec<RankRow>,
    counts: String,
    left_out: Vec<String>,
    methods: Vec<String>,
    matrix: Vec<MatrixRow>,
    /// The sentence beside the matrix.
    friedman: String,
    rejects: bool,
    pairs: Vec<PairRow>,
    pairs_caption: String,
    unpaired: String,
    values: Vec<ValuesRow>,
    values_caption: String,
}

#[derive(Debug, Serialize)]
struct RankRow {
    method: String,
    rank: String,
    mean: String,
}

#[derive(Debug, Serialize)]
struct PairRow {
    name: String,
    counts: [usize; 4],
    median: String,
    w: String,
    p: String,
    p_holm: String,
    shade: &'static str,
}

#[derive(Debug, Serialize)]
struct ValuesRow {
    setting: String,
    /// Mean and rank.
    cells: Vec<(String, String)>,
}

impl MetricSection {
    /// The sections of all metrics.
    ///
    /// # Errors
    /// [`ReportError`] if a figure cannot be drawn.
    pub(crate) fn all(tests: &MethodTests) -> Result<Vec<Self>, ReportError> {
        let figures = figures(tests)?.into_iter().zip(ids(tests));
        let of = |(metric, (figure, id))| Self::new(metric, tests, figure, id);
        Ok(tests.metrics.iter().zip(figures).map(of).collect())
    }

    fn new(metric: &MetricTests, tests: &MethodTests, figure: Option<String>, id: String) -> Self {
        let tested = metric.ranks.tested.as_ref();
        let means = column(&metric.ranks.means);
        let rank = |method: usize| RankRow {
            method: metric.methods[method].clone(),
            rank: number(metric.ranks.average_ranks[method]),
            mean: means[method].clone(),
        };
        let ranked = count(metric.ranks.n_settings, "setting");
        let of_trials = trials(metric);
        let per_trial = if of_trials.is_empty() { String::new() } else { format!(", {of_trials} each") };
        let pair_of = if metric.trials.is_some() { "setting and trial" } else { "setting" };
        let n_unpaired: usize = metric.pairs.iter().map(|pair| pair.n_unpaired).sum();
        Self {
            figure,
            caption: caption(metric, tests.level),
            ranks: by_rank(metric).into_iter().map(rank).collect(),
            counts: format!("{ranked} ranked{per_trial}"),
            left_out: left_out(metric),
            matrix: tested.map(|tested| matrix(metric, tested)).unwrap_or_default(),
            friedman: tested.map(friedman).unwrap_or_default(),
            rejects: tested.is_some_and(|tested| tested.rejects),
            pairs: PairRow::all(&metric.pairs),
            pairs_caption: format!("Signed-rank tests in {}, one pair per {pair_of}", metric.metric),
            unpaired: if n_unpaired == 0 { String::new() } else { count(n_unpaired, "value") },
            values: ValuesRow::all(&metric.settings),
            values_caption: format!("{} of every setting, with the rank in it", metric.metric),
            goal: metric.goal.words(),
            base: metric.base.clone(),
            question: metric.question.clone(),
            verdict: metric.verdict.clone(),
            methods: metric.methods.clone(),
            metric: metric.metric.clone(),
            id,
        }
    }
}

/// The figure of every metric, `None` where nothing is ranked.
pub(super) fn figures(tests: &MethodTests) -> Result<Vec<Option<String>>, ReportError> {
    let draw = |(metric, id): (&MetricTests, String)| critical_difference(metric, tests.level, &format!("cd-{id}"));
    tests.metrics.iter().zip(ids(tests)).map(draw).collect()
}

fn caption(metric: &MetricTests, level: f64) -> String {
    let Some(tested) = &metric.ranks.tested else {
        return "Average ranks; there is no test, hence no critical difference.".to_owned();
    };
    let difference = number(tested.critical_difference);
    let bars = format!("CD: critical difference of two average ranks at {}, {difference}.", short(level));
    let bars = format!("{bars} Blue bars join methods that lie within it.");
    if tested.rejects {
        bars
    } else {
        format!(
            "{bars} Friedman does not reject equal ranks, so methods that no bar joins are not shown to differ either."
        )
    }
}

fn friedman(tested: &Tested) -> String {
    let test = &tested.friedman;
    let chi_square =
        format!("Friedman: chi-square({}) = {}, p {}", test.degrees, number(test.chi_square), p_relation(test.p_value));
    let holm = tested.friedman_p_holm.map(|p| format!(" (after Holm over the metrics p {})", p_relation(p)));
    let f = tested.iman_davenport.as_ref().map(|test| {
        let (one, other) = test.degrees;
        format!("; Iman and Davenport: F({one}, {other}) = {}, p {}", number(test.f), p_relation(test.p_value))
    });
    format!("{chi_square}{}{}.", holm.unwrap_or_default(), f.unwrap_or_default())
}

/// The p value of every pair, with + where the method of the row ranks better and − where it ranks worse.
fn matrix(metric: &MetricTests, tested: &Tested) -> Vec<MatrixRow> {
    let ranks = &metric.ranks.average_ranks;
    let cell = |row: usize, (column, p): (usize, &f64)| {
        if row == column {
            return MatrixCell { text: "–".to_owned(), shade: "self" };
        }
        let sign = match ranks[row].total_cmp(&ranks[column]) {
            Ordering::Less => "+ ",
            Ordering::Greater => "− ",
            Ordering::Equal => "= ",
        };
        // Colour would show a finding where there is none.
        let shade = if tested.rejects { shade(*p) } else { "" };
        MatrixCell { text: format!("{sign}{}", p_value(*p)), shade }
    };
    let row = |(row, p_values): (usize, &Vec<f64>)| MatrixRow {
        name: metric.methods[row].clone(),
        cells: p_values.iter().enumerate().map(|at| cell(row, at)).collect(),
    };
    tested.nemenyi_p.iter().enumerate().map(row).collect()
}

impl PairRow {
    fn all(pairs: &[PairTest]) -> Vec<Self> {
        let medians = column_of(pairs.iter().map(|pair| pair.median_difference));
        let sums = column_of(pairs.iter().map(|pair| Some(pair.test?.positive_rank_sum)));
        pairs.iter().zip(medians.into_iter().zip(sums)).map(|(pair, of)| Self::new(pair, of)).collect()
    }

    fn new(pair: &PairTest, (median, w): (Option<String>, Option<String>)) -> Self {
        let none = || "–".to_owned();
        let approximate = pair.test.is_some_and(|test| null_name(test.null) == "normal");
        let mark = if approximate { " (normal)" } else { "" };
        Self {
            name: list_of_two(&pair.first, &pair.second),
            counts: [pair.n_pairs, pair.n_better, pair.n_worse, pair.n_zero],
            median: median.unwrap_or_else(none),
            w: w.unwrap_or_else(none),
            p: pair.test.map_or_else(none, |test| format!("{}{mark}", p_value(test.p_value))),
            p_holm: pair.p_holm.map_or_else(none, p_value),
            shade: pair.p_holm.map_or("", shade),
        }
    }
}

fn list_of_two(first: &str, second: &str) -> String {
    [first, second].join(" minus ")
}

impl ValuesRow {
    fn all(settings: &[SettingValues]) -> Vec<Self> {
        let n_methods = settings.first().map_or(0, |setting| setting.means.len());
        let column_of_means =
            |method: usize| column(&settings.iter().map(|setting| setting.means[method]).collect::<Vec<_>>());
        let means: Vec<Vec<String>> = (0..n_methods).map(column_of_means).collect();
        let row = |(place, setting): (usize, &SettingValues)| {
            let cells = means.iter().zip(&setting.ranks).map(|(of, rank)| (of[place].clone(), short(*rank)));
            Self { setting: setting.setting.clone(), cells: cells.collect() }
        };
        settings.iter().enumerate().map(row).collect()
    }
}

/// What the page says first: the metric with its question and verdict.
pub(super) fn left_out_sentence(tests: &MethodTests) -> Option<String> {
    let with = tests.metrics.iter().filter(|metric| !metric.left_out.is_empty());
    let said: Vec<String> =
        with.map(|metric| format!("{} of {}", count(metric.left_out.len(), "setting"), metric.metric)).collect();
    (!said.is_empty()).then(|| format!("Not ranked, because a method has no value there: {}.", list(&said)))
}
