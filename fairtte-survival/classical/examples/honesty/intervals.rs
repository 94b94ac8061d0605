//! How often 95 % intervals contain the truth: of what compares groups, and under censoring that is not random.

use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::evaluation::{AttributeReport, Estimate, MetricReport};
use fairtte_metrics::resampling::IntervalMethod;
use rayon::prelude::*;

use crate::design::{Design, Mechanism};
use crate::table::{Number, Part, covered, shares};

const METRICS: [&str; 3] = ["c-td", "auc-td", "ibs"];
/// Metrics that a user may ask for; those of decisions are at `THRESHOLD`.
const MORE: [&str; 8] =
    ["c-td-ipcw", "uno-c", "harrell-c", "auc", "brier", "calibration-slope", "sensitivity", "net-benefit"];
/// Observed over expected, and distances between predicted and observed.
const DISTANCES: [&str; 4] = ["observed-expected", "ici", "d-calibration", "integrated-calibration"];
const THRESHOLD: f64 = 0.4;
/// What [`numbers`] takes from the report of a metric.
pub const KIND_NAMES: &str =
    "overall | difference | gap | worst | gap to overall | ratio | ratio to overall | ES | ES FairSeg | ES deviation";
pub const KINDS: usize = 10;

/// Groups: shares, errors of the model, and what they are called.
const GROUPS: [(&[f64], &[f64], &str); 4] = [
    (&[0.5, 0.5], &[0.6, 1.0], "50/50"),
    (&[0.5, 0.5], &[0.8, 0.8], "50/50, equal"),
    (&[0.1, 0.9], &[1.0, 0.6], "10/90"),
    (&[0.25, 0.25, 0.25, 0.25], &[0.8, 0.8, 0.8, 0.8], "4 x 25, equal"),
];

/// What is drawn and which intervals are made.
#[derive(Clone, Copy)]
struct Setting {
    mechanism: Mechanism,
    censored: f64,
    /// Place among `GROUPS`.
    groups: usize,
    interval: (IntervalMethod, &'static str),
    metrics: &'static [&'static str],
}

impl Setting {
    fn part(self, beginning: &str) -> Part {
        let what = self.what();
        let file = format!("{beginning}-{}-{what}-{}", self.interval.1, GROUPS[self.groups].2);
        let columns = format!("n | censored | groups | metric | interval | {KIND_NAMES}");
        Part::new(file.replace([' ', ',', '/', '%'], ""), columns, 200, move |n| self.rows(500, n))
    }

    fn what(&self) -> String {
        format!("{:.0} % {}", 100.0 * self.censored, self.mechanism.name())
    }
}

pub fn parts() -> Vec<Part> {
    let (percentile, bca) = ((IntervalMethod::Percentile, "percentile"), (IntervalMethod::Bca, "BCa"));
    let studentised = (IntervalMethod::Studentised, "studentised");
    let designs = [
        (percentile, Mechanism::Random, 0.3),
        (percentile, Mechanism::Random, 0.7),
        (bca, Mechanism::Random, 0.3),
        (bca, Mechanism::Random, 0.7),
        (percentile, Mechanism::EventTime, 0.5),
        (studentised, Mechanism::Random, 0.3),
        (studentised, Mechanism::Random, 0.7),
    ];
    let setting =
        |(interval, mechanism, censored), groups, metrics| Setting { mechanism, censored, groups, interval, metrics };
    let usual = designs
        .into_iter()
        .flat_map(|design| (0..GROUPS.len()).map(move |groups| setting(design, groups, &METRICS).part("intervals")));
    let more = [0.3, 0.7].into_iter().flat_map(|censored| {
        [0, 2].map(|groups| setting((percentile, Mechanism::Random, censored), groups, &MORE).part("more-intervals"))
    });
    let distances = [0.3, 0.7].into_iter().flat_map(|censored| {
        (0..3).map(move |groups| {
            setting((percentile, Mechanism::Random, censored), groups, &DISTANCES).part("distance-intervals")
        })
    });
    usual.chain(more).chain(distances).collect()
}

/// Everybody, and what compares the groups of the first attribute.
pub fn numbers(metric: &MetricReport) -> [Number; KINDS] {
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

/// Whether the metric that is called so in settings has this name in reports.
fn is_named(reported: &str, name: &str) -> bool {
    let reported = reported.split([':', '@']).next();
    reported
        == Some(match name {
            "c-td" => "c_td_antolini_strict",
            "auc-td" => "auc_td",
            other => other,
        })
}

impl Setting {
    fn rows(self, n: usize, n_cohorts: u64) -> Vec<String> {
        let Self { mechanism, censored, interval: (interval, name), metrics, .. } = self;
        let (shares_of_groups, noise, groups) = GROUPS[self.groups];
        let design = Design::new(shares_of_groups, noise, mechanism, censored);
        let curve = design.training();
        let thresholds = if metrics.contains(&"net-benefit") { vec![THRESHOLD] } else { Vec::new() };
        let values = EvaluationSettings { thresholds, ..design.evaluation(metrics) };
        // What the metric is in a very large sample under the same censoring; equal groups differ by nothing.
        let large = design.draw(60_000, 7).report(&curve, &values).unwrap();
        let chosen: Vec<usize> =
            metrics.iter().map(|name| large.metrics.iter().position(|of| is_named(&of.name, name)).unwrap()).collect();
        let mut truth: Vec<[Option<f64>; KINDS]> =
            chosen.iter().map(|place| numbers(&large.metrics[*place]).map(|number| number.0)).collect();
        if noise.windows(2).all(|two| two[0].to_bits() == two[1].to_bits()) {
            for (of_metric, place) in truth.iter_mut().zip(&chosen) {
                let overall = of_metric[0];
                // Without differences, equity scaling is what it scales: 1 - value where lower is better, in the first form.
                let is_utility = large.metrics[*place].higher_is_better;
                let utility = if is_utility { overall } else { overall.map(|value| 1.0 - value) };
                let [zero, one] = [Some(0.0), Some(1.0)];
                *of_metric = [overall, zero, zero, overall, zero, one, one, utility, overall, overall];
            }
        }
        let settings = EvaluationSettings { replicates: 300, interval, ..values };
        let one = |seed: u64| -> Option<Vec<[Option<bool>; KINDS]>> {
            let report = design.draw(n, 1_000 + seed).report(&curve, &settings)?;
            let found = chosen.iter().map(|place| numbers(&report.metrics[*place]));
            Some(found.zip(&truth).map(|(found, truth)| covered(&found, truth)).collect())
        };
        let found: Vec<_> = (0..n_cohorts).into_par_iter().filter_map(one).collect();
        let row = |place: usize| {
            let shares = shares(found.iter().map(|cohort| cohort[place]));
            let metric = metrics[place];
            format!("| {n} | {} | {groups} | {metric} | {name} | {shares} |", self.what())
        };
        (0..chosen.len()).map(row).collect()
    }
}
