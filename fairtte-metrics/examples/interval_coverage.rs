//! How often 95 % intervals contain the true value: of a metric, of the signed difference of two groups and of their
//! gap, for percentile and `BCa` intervals; and how often the test of the gap rejects groups that are equal. Prints
//! Markdown tables.
//!
//! Subjects have a risk x from a normal distribution, event times with hazard exp(x) and exponential censoring. A model
//! predicts exp(-t exp(x + noise)); the noise is larger in the second group, so that the true values of the groups
//! differ. True values: one sample of 400,000 subjects. Evaluation times and horizon are fixed, and the censoring curve
//! comes from another sample of 20,000 subjects, as that of a training part does.
//!
//! `cargo run --release -p fairtte-metrics --example interval_coverage [COHORTS [REPLICATES [N [INTERVAL [FILE]]]]]`
//!
//! `N` is the number of subjects (0: 500 and 5,000, and the test of the gap), `INTERVAL` one of `percentile`, `basic`, `BCa`,
//! `studentised` (or `all`). Every cohort that is done is a line of `FILE`; a call that was ended computes the others alone.
//! `interval_coverage COHORTS gap [GROUPS]` runs the test of the gap alone, with the groups `250/250`, `50/450` or `4 x 125`.

#![expect(clippy::print_stdout, reason = "the tables are the result")]
#![expect(clippy::unwrap_used, reason = "simulated input is valid")]

use fairtte_metrics::evaluation::{AttributeReport, Estimate, MetricReport};
use fairtte_metrics::resampling::IntervalMethod;
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, GroupId, Groups, Outcomes, Reading, SubjectId,
    SurvivalCurves, evaluate,
};
use ndarray::Array2;
use rand::RngExt as _;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::Mutex;

const METRICS: [&str; 6] = ["c-td", "auc-td", "ibs", "d-calibration", "ici", "observed-expected"];
const GRID: usize = 20;
const LAST: f64 = 1.5;
const HORIZON: f64 = 0.5;

#[derive(Clone, Copy)]
struct Design {
    n: usize,
    /// Rate of the exponential censoring times.
    censoring: f64,
    /// Share of the first group.
    share: f64,
    /// Standard deviation of the noise, by group.
    noise: &'static [f64],
}

struct Cohort {
    outcomes: Outcomes,
    curves: SurvivalCurves,
    groups: Groups,
}

fn normal(rng: &mut impl rand::Rng) -> f64 {
    let (radius, angle) = ((-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt(), rng.random::<f64>());
    radius * (std::f64::consts::TAU * angle).cos()
}

fn draw(design: &Design, n: usize, seed: u64, name: &str) -> Cohort {
    let mut rng = stream(seed, name, &[n as u64]);
    let (mut time, mut event, mut membership, mut risks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for row in 0..n {
        let first = (row as f64 + 0.5) / (n as f64) < design.share;
        let group = match design.noise.len() {
            2 => usize::from(!first),
            levels => row % levels,
        };
        let x = normal(&mut rng);
        let mut exponential = |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate + 1e-9;
        let (event_time, censored_at) = (exponential(x.exp()), exponential(design.censoring));
        time.push(event_time.min(censored_at));
        event.push(event_time <= censored_at);
        membership.push(Some(GroupId(u32::try_from(group).unwrap())));
        risks.push((x + design.noise[group] * normal(&mut rng)).exp());
    }
    let grid: Vec<f64> = (1..=GRID).map(|k| LAST * k as f64 / GRID as f64).collect();
    let survival = Array2::from_shape_fn((n, GRID), |(row, k)| (-grid[k] * risks[row]).exp());
    let levels = (0..design.noise.len()).map(|level| level.to_string()).collect();
    Cohort {
        outcomes: Outcomes::new(time, event).unwrap(),
        curves: SurvivalCurves::new(grid, survival).unwrap(),
        groups: Groups::new("group", levels, membership).unwrap(),
    }
}

fn report(cohort: &Cohort, censoring: &CensoringCurve, settings: &EvaluationSettings) -> EvaluationReport {
    let subjects: Vec<SubjectId> = (0..cohort.outcomes.n()).map(|row| SubjectId::new(format!("{row:06}"))).collect();
    let groups = std::slice::from_ref(&cohort.groups);
    evaluate(&subjects, &cohort.outcomes, &cohort.curves, censoring, groups, settings).unwrap()
}

fn settings(metrics: &[&str]) -> EvaluationSettings {
    EvaluationSettings {
        metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
        times: Some((2..=GRID).step_by(2).map(|k| LAST * k as f64 / GRID as f64 * 0.9).collect()),
        horizon: Some(HORIZON),
        reading: Reading::Linear,
        min_events: 0,
        permutations: 0,
        over_time: 0,
        ..EvaluationSettings::default()
    }
}

fn training(design: &Design) -> CensoringCurve {
    CensoringCurve::fit(&draw(design, 20_000, 1, "training").outcomes, CensoringTies::EventsFirst).unwrap()
}

/// What is counted: a number and its interval, by kind.
const KINDS: [&str; 4] = ["overall", "small group", "difference", "gap"];

const METHODS: [(IntervalMethod, &str); 4] = [
    (IntervalMethod::Percentile, "percentile"),
    (IntervalMethod::Basic, "basic"),
    (IntervalMethod::Bca, "BCa"),
    (IntervalMethod::Studentised, "studentised"),
];

/// Whether the intervals of one cohort contain the true value: by metric and kind.
type Covered = Vec<[Option<bool>; 4]>;

/// A line of the file: what one cohort gave.
#[derive(Serialize, Deserialize)]
struct Line {
    design: String,
    interval: String,
    replicates: usize,
    seed: u64,
    covered: Covered,
}

/// How much is computed, and where it is kept.
struct Plan {
    n_cohorts: u64,
    replicates: usize,
    methods: Vec<(IntervalMethod, &'static str)>,
    done: HashMap<(String, String, usize, u64), Covered>,
    file: Option<Mutex<File>>,
}

impl Plan {
    fn new(n_cohorts: u64, replicates: usize, interval: &str, path: Option<String>) -> Self {
        let methods = METHODS.into_iter().filter(|(_, name)| interval == "all" || interval == *name).collect();
        let mut done = HashMap::new();
        // The last line may have been cut by the end of the call.
        let lines = path.iter().filter_map(|path| File::open(path).ok()).flat_map(|file| BufReader::new(file).lines());
        for line in lines.filter_map(|line| serde_json::from_str::<Line>(&line.unwrap()).ok()) {
            done.insert((line.design, line.interval, line.replicates, line.seed), line.covered);
        }
        let append = |path: String| Mutex::new(OpenOptions::new().create(true).append(true).open(path).unwrap());
        Self { n_cohorts, replicates, methods, done, file: path.map(append) }
    }

    /// What a cohort gave, from the file or computed.
    fn cohort(&self, what: &str, interval: &str, seed: u64, compute: impl FnOnce() -> Covered) -> Covered {
        let key = (what.to_owned(), interval.to_owned(), self.replicates, seed);
        if let Some(covered) = self.done.get(&key) {
            return covered.clone();
        }
        let (design, interval, replicates, seed) = key;
        let line = Line { design, interval, replicates, seed, covered: compute() };
        if let Some(file) = &self.file {
            let text = format!("{}\n", serde_json::to_string(&line).unwrap());
            file.lock().unwrap().write_all(text.as_bytes()).unwrap();
        }
        line.covered
    }
}

/// A value and its interval.
type Number = (Option<f64>, Option<(f64, f64)>);

fn numbers(metric: &MetricReport) -> [Number; 4] {
    let AttributeReport { groups, gap, differences, .. } = &metric.attributes[0];
    let of = |estimate: &Estimate| (estimate.value, estimate.lower.zip(estimate.upper));
    let difference = differences.first().map(|pair| &pair.difference);
    [
        of(&metric.overall),
        of(&groups[0].estimate),
        (difference.and_then(|found| found.value), difference.and_then(|found| found.lower.zip(found.upper))),
        of(gap),
    ]
}

fn coverage(sizes: &[usize], plan: &Plan) {
    println!("| n | censored | groups | metric | interval | {} |", KINDS.join(" | "));
    println!("|---|---|---|---|---|{}", "---|".repeat(KINDS.len()));
    for &n in sizes {
        for (censoring, censored) in [(0.35, "30 %"), (3.0, "70 %")] {
            for (share, shares) in [(0.5, "50/50"), (0.1, "10/90")] {
                for noise in [&[0.4, 1.2], &[0.8, 0.8]] {
                    let equal = noise[0] >= noise[1];
                    // Equal groups matter for the gap, and most in small samples.
                    if equal && n > 500 {
                        continue;
                    }
                    let design = Design { n, censoring, share, noise };
                    let what = format!("{n} | {censored} | {shares}{}", if equal { ", equal" } else { "" });
                    let curve = training(&design);
                    covered(&design, &what, &curve, &truth(&design, &curve, equal), plan);
                }
            }
        }
    }
}

/// The true values of the metrics; equal groups differ by nothing.
fn truth(design: &Design, censoring: &CensoringCurve, equal: bool) -> Vec<[Option<f64>; 4]> {
    let none = EvaluationSettings { replicates: 0, ..settings(&METRICS) };
    let found = report(&draw(design, 400_000, 1, "truth"), censoring, &none);
    let mut truth: Vec<[Option<f64>; 4]> =
        found.metrics.iter().map(|metric| numbers(metric).map(|number| number.0)).collect();
    for of_metric in truth.iter_mut().filter(|_| equal) {
        of_metric[2..].fill(Some(0.0));
    }
    truth
}

fn covered(design: &Design, what: &str, censoring: &CensoringCurve, truth: &[[Option<f64>; 4]], plan: &Plan) {
    for &(interval, name) in &plan.methods {
        let settings = EvaluationSettings { interval, replicates: plan.replicates, ..settings(&METRICS) };
        let one = |seed: u64| -> Covered {
            let found = report(&draw(design, design.n, seed, "cohort"), censoring, &settings);
            let of_metric = |(metric, truth): (&MetricReport, &[Option<f64>; 4])| {
                let found = numbers(metric);
                std::array::from_fn(|kind| {
                    let ((lower, upper), truth) = (found[kind].1?, truth[kind]?);
                    Some(lower <= truth && truth <= upper)
                })
            };
            found.metrics.iter().zip(truth).map(of_metric).collect()
        };
        let cohorts = (0..plan.n_cohorts).into_par_iter();
        let found: Vec<_> = cohorts.map(|seed| plan.cohort(what, name, seed, || one(seed))).collect();
        for (place, metric) in METRICS.iter().enumerate() {
            let share = |kind: usize| {
                let defined: Vec<bool> = found.iter().filter_map(|cohort| cohort[place][kind]).collect();
                let share = 100.0 * defined.iter().filter(|covered| **covered).count() as f64 / defined.len() as f64;
                let lost = found.len() - defined.len();
                format!("{share:.1}{}", if lost > 0 { format!(" ({lost} without)") } else { String::new() })
            };
            let shares: Vec<String> = (0..KINDS.len()).map(share).collect();
            println!("| {what} | {metric} | {name} | {} |", shares.join(" | "));
        }
    }
}

/// Equal groups: how often the permutation test of the gap rejects; mean gap, what chance gives, and the corrected gap.
fn size(n_cohorts: u64, groups: Option<&str>) {
    println!("\n| groups | metric | p <= 0.05 | mean gap | by chance | corrected gap |\n|---|---|---|---|---|---|");
    let (two, four): (&[f64], &[f64]) = (&[0.8; 2], &[0.8; 4]);
    let designs = [(two, 0.5, "250/250"), (two, 0.1, "50/450"), (four, 0.5, "4 x 125")];
    for (noise, share, what) in designs.into_iter().filter(|(.., what)| groups.is_none_or(|wanted| wanted == *what)) {
        let design = Design { n: 500, censoring: 0.35, share, noise };
        let curve = training(&design);
        let settings = EvaluationSettings { replicates: 100, permutations: 199, ..settings(&METRICS) };
        let one = |seed: u64| -> Vec<Option<[f64; 4]>> {
            let found = report(&draw(&design, design.n, seed, "equal"), &curve, &settings);
            let of_metric = |metric: &MetricReport| {
                let AttributeReport { gap, gap_by_chance, gap_corrected, .. } = &metric.attributes[0];
                let by_chance = gap_by_chance.as_ref()?;
                Some([by_chance.p_value, gap.value?, by_chance.mean, (*gap_corrected)?])
            };
            found.metrics.iter().map(of_metric).collect()
        };
        let found: Vec<_> = (0..n_cohorts).into_par_iter().map(one).collect();
        for (place, metric) in METRICS.iter().enumerate() {
            let defined: Vec<[f64; 4]> = found.iter().filter_map(|cohort| cohort[place]).collect();
            let mean = |of: fn(&[f64; 4]) -> f64| defined.iter().map(of).sum::<f64>() / defined.len() as f64;
            let rejected = 100.0 * mean(|found| f64::from(u8::from(found[0] <= 0.05 + 1e-12)));
            println!(
                "| {what} | {metric} | {rejected:.1} % of {} | {:.4} | {:.4} | {:.4} |",
                defined.len(),
                mean(|found| found[1]),
                mean(|found| found[2]),
                mean(|found| found[3])
            );
        }
    }
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.get(1).is_some_and(|argument| argument == "gap") {
        return size(arguments[0].parse().unwrap(), arguments.get(2).map(String::as_str));
    }
    let path = (arguments.len() > 4).then(|| arguments.remove(4));
    let number = |place: usize, default: u64| arguments.get(place).map_or(default, |n| n.parse().unwrap());
    let (n_cohorts, replicates, n) = (number(0, 500), usize::try_from(number(1, 1_000)).unwrap(), number(2, 0));
    let plan = Plan::new(n_cohorts, replicates, arguments.get(3).map_or("all", String::as_str), path);
    match n {
        0 => {
            coverage(&[500, 5_000], &plan);
            size(4 * n_cohorts, None);
        }
        n => coverage(&[usize::try_from(n).unwrap()], &plan),
    }
}
