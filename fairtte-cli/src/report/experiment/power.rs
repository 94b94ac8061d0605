//! Power curves: how often a gap is found, by the share of degraded predictions.

use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::evaluation::{MetricPower, PowerAt, PowerSettings, Rate};

use super::super::format::{list, percent, short};
use super::super::plots::{Chart, Panels, PlanePanel};
use super::super::sheet::{Cell, Sheet};
use super::{ExperimentPage, ExperimentSection};

/// The page; `group` names the degraded group.
pub(crate) fn page(
    metrics: &[MetricPower],
    group: &str,
    settings: &PowerSettings,
    evaluation: &EvaluationSettings,
    facts: Vec<(String, String)>,
) -> ExperimentPage {
    let verdict = metrics.iter().map(|metric| sentence(metric, settings, evaluation)).collect();
    let section = ExperimentSection {
        id: "power".to_owned(),
        title: "Power".to_owned(),
        question: format!("How many predictions of {group} must be wrong before the evaluation finds a gap?"),
        verdict,
        drawn: Vec::new(),
        charts: vec![curves(metrics)],
        sheets: vec![smallest(metrics), rates(metrics)],
    };
    let term = |name, text: String| (name, text);
    ExperimentPage {
        title: "Would this evaluation have noticed?".to_owned(),
        subtitle: format!("Predictions of {group} exchanged among its samples"),
        sections: vec![section],
        reading: vec![
            term(
                "σ",
                "The probability with which the curve of a sample of the group is exchanged with those of others of the group: a \
                 prediction that does not belong to the person."
                    .to_owned(),
            ),
            term(
                "Repeat",
                "The labels of the groups are exchanged between people at random, so that there is no gap but by chance; then the group \
                 is degraded and evaluated. Group sizes, outcomes and censoring are those of the cohort."
                    .to_owned(),
            ),
            term(
                "Found",
                format!(
                    "By the interval: the {} interval of the gap excludes 0. By permutation: the test of the gap has p at most {}.",
                    percent(evaluation.level),
                    short(1.0 - evaluation.level)
                ),
            ),
            term(
                "σ = 0",
                format!(
                    "No gap but by chance: what is found is false. An honest test finds at most {} there.",
                    percent(1.0 - evaluation.level)
                ),
            ),
        ],
        sources: vec![
            "Sonabend et al. (2022). Flexible group fairness metrics for survival analysis. arXiv:2206.03256: permutation as a bias of known size.",
            "Wilson (1927). Probable inference, the law of succession, and statistical inference. Journal of the American Statistical Association 22: intervals of rates.",
        ],
        facts,
    }
}

fn sentence(metric: &MetricPower, settings: &PowerSettings, evaluation: &EvaluationSettings) -> String {
    let smallest = |share: Option<f64>| match share {
        Some(share) => format!("from σ = {} on", short(share)),
        None => "at no share".to_owned(),
    };
    let mut ways = Vec::new();
    if evaluation.replicates > 0 {
        ways.push(format!("by its interval {}", smallest(metric.smallest_by_interval)));
    }
    if evaluation.permutations > 0 {
        ways.push(format!("by permutation {}", smallest(metric.smallest_by_permutation)));
    }
    let at_zero = metric.shares.first().filter(|at| at.share <= 0.0);
    let rate = |name: &str, rate: Option<Rate>| {
        rate.map(|rate| format!("{} {name} ({} to {})", tenths(rate.rate), tenths(rate.lower), tenths(rate.upper)))
    };
    let level = at_zero.map(|at| {
        let rates = [rate("by interval", at.by_interval), rate("by permutation", at.by_permutation)];
        rates.into_iter().flatten().collect::<Vec<_>>().join(", ")
    });
    let level = level.map(|level| format!("; without degradation {level}")).unwrap_or_default();
    let (label, target, ways) = (&metric.label, percent(settings.target), ways.join(", "));
    format!("{label}: a gap is found in {target} of repeats {ways}{level}.{}", undefined(metric))
}

/// How many repeats at all shares could not find a gap because they have no interval or no p value, as with a group of too few events;
/// empty where all have one.
fn undefined(metric: &MetricPower) -> String {
    let counts = |what: &str, of: fn(&PowerAt) -> Option<Rate>| {
        let rates = || metric.shares.iter().filter_map(of);
        let (n, all) = (rates().map(|rate| rate.n_undefined).sum::<usize>(), rates().map(|rate| rate.n).sum::<usize>());
        (n > 0).then(|| format!("{n} of {all} have no {what}"))
    };
    let found = [counts("interval of the gap", |at| at.by_interval), counts("test of the gap", |at| at.by_permutation)];
    let found: Vec<String> = found.into_iter().flatten().collect();
    if found.is_empty() {
        return String::new();
    }
    format!(" Of the repeats at all shares {}: they find nothing.", list(&found))
}

/// A share in per cent with at most one decimal.
fn tenths(share: f64) -> String {
    percent((share * 1000.0).round() / 1000.0)
}

fn curves(metrics: &[MetricPower]) -> Chart {
    let points = |series: usize, metric: &MetricPower, of: fn(&PowerAt) -> Option<Rate>| -> Vec<(usize, (f64, f64))> {
        metric.shares.iter().filter_map(|at| Some((series, (at.share, of(at)?.rate)))).collect()
    };
    let panel = |metric: &MetricPower| PlanePanel {
        title: metric.label.clone(),
        x: "σ".to_owned(),
        y: "power".to_owned(),
        points: [points(0, metric, |at| at.by_interval), points(1, metric, |at| at.by_permutation)].concat(),
    };
    Chart {
        name: "power".to_owned(),
        title: "Power by share".to_owned(),
        caption: "Share of repeats in which the gap is found, by the share σ of exchanged predictions.".to_owned(),
        series: vec!["interval excludes 0".to_owned(), "permutation test".to_owned()],
        panels: Panels::Plane { diagonal: false, lines: true, panels: metrics.iter().map(panel).collect() },
    }
}

fn smallest(metrics: &[MetricPower]) -> Sheet {
    let columns = [
        ("metric", "metric"),
        ("by_interval", "smallest σ, interval"),
        ("by_permutation", "smallest σ, permutation"),
        ("false_interval", "found at σ = 0, interval"),
        ("false_permutation", "found at σ = 0, permutation"),
    ];
    let row = |metric: &MetricPower| {
        let zero = metric.shares.first().filter(|at| at.share <= 0.0);
        let rate = |of: fn(&PowerAt) -> Option<Rate>| zero.and_then(of).map(|rate| rate.rate);
        vec![
            Cell::Text(metric.label.clone()),
            Cell::or_missing(metric.smallest_by_interval, Cell::Value),
            Cell::or_missing(metric.smallest_by_permutation, Cell::Value),
            Cell::or_missing(rate(|at| at.by_interval), Cell::Statistic),
            Cell::or_missing(rate(|at| at.by_permutation), Cell::Statistic),
        ]
    };
    let caption = "The smallest share at and above which the requested power is reached".to_owned();
    Sheet::new("smallest".to_owned(), caption, &columns, metrics.iter().map(row).collect())
}

fn rates(metrics: &[MetricPower]) -> Sheet {
    let columns = [
        ("metric", "metric"),
        ("share", "σ"),
        ("mean_gap", "mean gap"),
        ("interval", "interval"),
        ("interval_lower", "from"),
        ("interval_upper", "to"),
        ("permutation", "permutation"),
        ("permutation_lower", "from"),
        ("permutation_upper", "to"),
        ("repeats", "repeats"),
        ("undefined", "undefined"),
    ];
    let row = |metric: &MetricPower, at: &PowerAt| {
        let ends = |rate: Option<Rate>| {
            let of = |of: fn(&Rate) -> f64| Cell::or_missing(rate.as_ref().map(of), Cell::Statistic);
            [of(|rate| rate.rate), of(|rate| rate.lower), of(|rate| rate.upper)]
        };
        let either = at.by_interval.or(at.by_permutation);
        let n = |of: fn(&Rate) -> usize| either.as_ref().map_or(Cell::Missing, |rate| Cell::Count(of(rate)));
        let mut cells = vec![Cell::Text(metric.label.clone()), Cell::Value(at.share)];
        cells.push(Cell::or_missing(at.mean_gap, Cell::Statistic));
        cells.extend(ends(at.by_interval));
        cells.extend(ends(at.by_permutation));
        cells.extend([n(|rate| rate.n), n(|rate| rate.n_undefined)]);
        cells
    };
    let rows = metrics.iter().flat_map(|metric| metric.shares.iter().map(move |at| row(metric, at)));
    Sheet::new("power".to_owned(), "Power by share, with intervals of 95 %".to_owned(), &columns, rows.collect())
}
