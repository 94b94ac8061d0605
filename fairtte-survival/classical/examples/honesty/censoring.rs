//! Bias of metrics and of the difference of two groups when 10 to 90 % are censored.

use rayon::prelude::*;

use crate::design::{Design, Mechanism};
use crate::table::{Part, mean};

const METRICS: [&str; 4] = ["c-td", "c-td-ipcw", "auc-td", "ibs"];
const COLUMNS: &str = "censoring | censored | metric | truth | bias | truth of the difference | bias of the difference | \
                       without a value";
const N: usize = 1_000;

pub fn parts() -> Vec<Part> {
    let shares = [0.1, 0.3, 0.5, 0.7, 0.9];
    let part = |mechanism: Mechanism| {
        let name = format!("censoring-{}", mechanism.name().replace([' ', ','], ""));
        Part::new(name, COLUMNS, 400, move |n| shares.iter().flat_map(|share| rows(mechanism, *share, n)).collect())
    };
    Mechanism::ALL.into_iter().map(part).collect()
}

/// Values of everybody, and differences of the groups, by metric.
fn values(report: &fairtte_metrics::EvaluationReport) -> Vec<[Option<f64>; 2]> {
    let of = |metric: &fairtte_metrics::evaluation::MetricReport| {
        let difference = metric.attributes[0].differences.first().and_then(|pair| pair.difference.value);
        [metric.overall.value, difference]
    };
    report.metrics.iter().map(of).collect()
}

fn rows(mechanism: Mechanism, censored: f64, n_cohorts: u64) -> Vec<String> {
    let design = Design::new(&[0.5, 0.5], &[0.4, 1.2], mechanism, censored);
    let settings = design.evaluation(&METRICS);
    let truth = {
        let uncensored = design.uncensored();
        values(&uncensored.draw(60_000, 7).report(&uncensored.training(), &settings).unwrap())
    };
    let curve = design.training();
    let one = |seed: u64| design.draw(N, 1_000 + seed).report(&curve, &settings).map(|report| values(&report));
    let found: Vec<_> = (0..n_cohorts).into_par_iter().map(one).collect();
    let row = |place: usize| {
        let of = |kind: usize| {
            let truth = truth[place][kind].unwrap();
            let values: Vec<f64> = found.iter().flatten().filter_map(|of| of[place][kind]).collect();
            let (bias, error) = mean(&values.iter().map(|value| value - truth).collect::<Vec<_>>());
            (format!("{truth:.4} | {bias:+.4} ({error:.4})"), found.len() - values.len())
        };
        let ((overall, lost), (difference, _)) = (of(0), of(1));
        let (share, name) = (100.0 * censored, mechanism.name());
        format!("| {name} | {share:.0} % | {} | {overall} | {difference} | {lost} of {n_cohorts} |", METRICS[place])
    };
    (0..METRICS.len()).map(row).collect()
}
