//! How often 95 % intervals contain the truth: of what compares groups, and under censoring that is not random.

use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::evaluation::{AttributeReport, Estimate, MetricReport};
use fairtte_metrics::resampling::IntervalMethod;
use rayon::prelude::*;

use crate::design::{Design, Mechanism};
use crate::table::{Part, percent};

const METRICS: [&str; 3] = ["c-td", "auc-td", "ibs"];
const COLUMNS: &str = "n | censored | groups | metric | interval | overall | difference | gap | worst | gap to overall | ratio | \
                       ratio to overall | ES | ES FairSeg | ES deviation";
const KINDS: usize = 10;

/// Groups: shares, errors of the model, and what they are called.
const GROUPS: [(&[f64], &[f64], &str); 4] = [
    (&[0.5, 0.5], &[0.6, 1.0], "50/50"),
    (&[0.5, 0.5], &[0.8, 0.8], "50/50, equal"),
    (&[0.1, 0.9], &[1.0, 0.6], "10/90"),
    (&[0.25, 0.25, 0.25, 0.25], &[0.8, 0.8, 0.8, 0.8], "4 x 25, equal"),
];

pub fn parts() -> Vec<Part> {
    let (percentile, bca) = ((IntervalMethod::Percentile, "percentile"), (IntervalMethod::Bca, "BCa"));
    let studentised = (IntervalMethod::Studentised, "studentised");
    let designs = [
        (percentile, Mechanism::Random, 0.3),
        (percentile, Mechanism::Random, 0.7),
        (bca, Mechanism::Random, 0.3),
        (percentile, Mechanism::EventTime, 0.5),
        (studentised, Mechanism::Random, 0.3),
        (studentised, Mechanism::Random, 0.7),
    ];
    let part = |(interval, mechanism, censored): ((IntervalMethod, &'static str), Mechanism, f64), place: usize| {
        let what = format!("{:.0} % {}", 100.0 * censored, mechanism.name());
        let file = format!("intervals-{}-{what}-{}", interval.1, GROUPS[place].2).replace([' ', ',', '/', '%'], "");
        Part::new(file, COLUMNS, 200, move |n| rows(500, mechanism, censored, place, interval, &what, n))
    };
    designs.into_iter().flat_map(|design| (0..GROUPS.len()).map(move |place| part(design, place))).collect()
}

type Number = (Option<f64>, Option<(f64, f64)>);

fn numbers(metric: &MetricReport) -> [Number; KINDS] {
    let of = |estimate: &Estimate| (estimate.value, estimate.lower.zip(estimate.upper));
    let AttributeReport { gap, worst, gap_to_overall, ratio, ratio_to_overall, equity_scaling, .. } =
        &metric.attributes[0];
    let pair = metric.attributes[0].differences.first().map(|pair| &pair.difference);
    let deviation = metric.attributes[0].equity_scaling_deviation.as_ref();
    [
        of(&metric.overall),
        (pair.and_then(|found| found.value), pair.and_then(|found| found.lower.zip(found.upper))),
        of(gap),
        of(worst),
        of(gap_to_overall),
        of(ratio),
        of(ratio_to_overall),
        of(equity_scaling),
        of(&metric.attributes[0].equity_scaling_fair_seg),
        deviation.map_or((None, None), of),
    ]
}

fn rows(
    n: usize,
    mechanism: Mechanism,
    censored: f64,
    groups: usize,
    (interval, name): (IntervalMethod, &str),
    what: &str,
    n_cohorts: u64,
) -> Vec<String> {
    let (shares, noise, groups) = GROUPS[groups];
    let design = Design::new(shares, noise, mechanism, censored);
    let curve = design.training();
    let values = design.evaluation(&METRICS);
    // What the metric is in a very large sample under the same censoring; equal groups differ by nothing.
    let large = design.draw(60_000, 7).report(&curve, &values).unwrap();
    let mut truth: Vec<[Option<f64>; KINDS]> =
        large.metrics.iter().map(|metric| numbers(metric).map(|number| number.0)).collect();
    if noise.windows(2).all(|two| two[0].to_bits() == two[1].to_bits()) {
        for (of_metric, place) in truth.iter_mut().zip(0..) {
            let overall = of_metric[0];
            // Without differences, equity scaling is what it scales: 1 - value where lower is better, in the first form.
            let utility = if METRICS[place] == "ibs" { overall.map(|value| 1.0 - value) } else { overall };
            let [zero, one] = [Some(0.0), Some(1.0)];
            *of_metric = [overall, zero, zero, overall, zero, one, one, utility, overall, overall];
        }
    }
    let settings = EvaluationSettings { replicates: 300, interval, ..values };
    let one = |seed: u64| -> Option<Vec<[Option<bool>; KINDS]>> {
        let report = design.draw(n, 1_000 + seed).report(&curve, &settings)?;
        let of_metric = |(metric, truth): (&MetricReport, &[Option<f64>; KINDS])| {
            let found = numbers(metric);
            std::array::from_fn(|kind| {
                let ((lower, upper), truth) = (found[kind].1?, truth[kind]?);
                Some(lower <= truth && truth <= upper)
            })
        };
        Some(report.metrics.iter().zip(&truth).map(of_metric).collect())
    };
    let found: Vec<_> = (0..n_cohorts).into_par_iter().filter_map(one).collect();
    let row = |place: usize| {
        let share = |kind: usize| {
            let defined: Vec<bool> = found.iter().filter_map(|cohort| cohort[place][kind]).collect();
            percent(defined.iter().filter(|covered| **covered).count(), defined.len())
        };
        let shares: Vec<String> = (0..KINDS).map(share).collect();
        format!("| {n} | {what} | {groups} | {} | {name} | {} |", METRICS[place], shares.join(" | "))
    };
    (0..METRICS.len()).map(row).collect()
}
