//! How far the difference of two groups is off that are censored differently, and how often the log-rank test finds it.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::CensoringByGroup;
use rayon::prelude::*;

use crate::design::{Design, Mechanism};
use crate::table::{Part, mean, percent};

const METRICS: [&str; 3] = ["c-td-ipcw", "auc-td", "ibs"];
const COLUMNS: &str =
    "censored | times as fast | people | metric | bias of the difference | log-rank test below 1 % | warned of";
const TIMES: [f64; 5] = [1.0, 1.5, 2.0, 4.0, 8.0];

pub fn parts() -> Vec<Part> {
    let part = |censored: f64| {
        let name = format!("unequal-{:.0}", 100.0 * censored);
        let rows = move |n| TIMES.iter().flat_map(|times| rows(*times, censored, 1_000, n)).collect();
        Part::new(name, COLUMNS, 200, rows)
    };
    [0.3, 0.7].map(part).into()
}

/// The differences by metric, whether equal censoring is rejected, and whether `fairtte evaluate` warns.
fn found(report: &EvaluationReport) -> (Vec<Option<f64>>, bool, bool) {
    let difference = |metric: &fairtte_metrics::evaluation::MetricReport| {
        metric.attributes[0].differences.first().and_then(|pair| pair.difference.value)
    };
    let censoring = &report.censoring_by_group[0];
    let rejected = censoring.p_value.unwrap() < CensoringByGroup::UNEQUAL_P;
    (report.metrics.iter().map(difference).collect(), rejected, censoring.is_unequal())
}

/// The model has the same error in both groups, so that the true difference is 0.
fn rows(times: f64, censored: f64, n: usize, n_cohorts: u64) -> Vec<String> {
    let design = Design::new(&[0.5, 0.5], &[0.8, 0.8], Mechanism::Group(times), censored);
    let (settings, curve) = (design.evaluation(&METRICS), design.training());
    let one = |seed: u64| design.draw(n, 1_000 + seed).report(&curve, &settings).map(|report| found(&report));
    let cohorts: Vec<_> = (0..n_cohorts).into_par_iter().filter_map(one).collect();
    let rejected = percent(cohorts.iter().filter(|cohort| cohort.1).count(), cohorts.len());
    let warned = percent(cohorts.iter().filter(|cohort| cohort.2).count(), cohorts.len());
    let row = |place: usize| {
        let differences: Vec<f64> = cohorts.iter().filter_map(|cohort| cohort.0[place]).collect();
        let (bias, error) = mean(&differences);
        let share = 100.0 * censored;
        format!(
            "| {share:.0} % | {times} | {n} | {} | {bias:+.4} ({error:.4}) | {rejected} | {warned} |",
            METRICS[place]
        )
    };
    (0..METRICS.len()).map(row).collect()
}
