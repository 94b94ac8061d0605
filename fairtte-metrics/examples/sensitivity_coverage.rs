//! How often 95 % intervals of the sensitivity analysis contain the true value, at the true hazard ratio of the censored and at
//! 1. Prints a Markdown table.
//!
//! Subjects have a risk x from a normal distribution, event hazard exp(x) and drop-out hazard 0.9; after the drop-out the
//! hazard is multiplied by exp(delta), and all follow-up ends at 1.2. The model predicts exp(-t exp(x + noise)), with noise of
//! standard deviation 0.4 in the first group and 0.9 in the second. True values: complete outcomes of 200,000 subjects.
//!
//! `cargo run --release -p fairtte-metrics --example sensitivity_coverage [COHORTS [REPLICATES]]`

#![expect(clippy::print_stdout, reason = "the table is the result")]
#![expect(clippy::unwrap_used, reason = "simulated input is valid")]

use fairtte_metrics::seeds::stream;
use fairtte_metrics::sensitivity::{ImputationModel, SensitivityPoint, SensitivitySettings, sensitivity};
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, Outcomes, Reading, SubjectId, SurvivalCurves,
};
use ndarray::Array2;
use rand::RngExt as _;
use rayon::prelude::*;

const END: f64 = 1.2;
const DROPOUT: f64 = 0.9;
const NOISE: [f64; 2] = [0.4, 0.9];
const METRICS: [&str; 3] = ["auc-td", "ibs", "observed-expected"];
const TRUTH_BLOCKS: u64 = 200;

struct Cohort {
    observed: Outcomes,
    complete: Outcomes,
    curves: SurvivalCurves,
    groups: Groups,
    subjects: Vec<SubjectId>,
}

fn draw(n: usize, delta: f64, seed: u64) -> Cohort {
    let mut rng = stream(seed, "sensitivity-coverage", &[n as u64]);
    let (mut observed, mut complete, mut risks) = (vec![], vec![], vec![]);
    let until = |time: f64, event: bool| (time.min(END), event && time <= END);
    for row in 0..n {
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let (x, noise) = (normal(), normal());
        risks.push((x + NOISE[row % 2] * noise).exp());
        let mut exponential = |rate: f64| (1e-9 - (1.0 - rng.random::<f64>()).ln()) / rate;
        let (event, dropout, after) = (exponential(x.exp()), exponential(DROPOUT), exponential((x + delta).exp()));
        complete.push(until(if event <= dropout { event } else { dropout + after }, true));
        observed.push(if dropout < event { until(dropout, false) } else { until(event, true) });
    }
    let outcomes = |rows: Vec<(f64, bool)>| {
        let (time, event) = rows.into_iter().unzip();
        Outcomes::new(time, event).unwrap()
    };
    let grid: Vec<f64> = (0..=24).map(|k| END * f64::from(k) / 24.0).collect();
    let survival = Array2::from_shape_fn((n, grid.len()), |(row, k)| (-grid[k] * risks[row]).exp());
    let membership = (0..n).map(|row| Some(GroupId(u32::try_from(row % 2).unwrap()))).collect();
    Cohort {
        observed: outcomes(observed),
        complete: outcomes(complete),
        curves: SurvivalCurves::new(grid, survival).unwrap(),
        groups: Groups::new("group", vec!["a".to_owned(), "b".to_owned()], membership).unwrap(),
        subjects: (0..n).map(|row| SubjectId::new(format!("{row:06}"))).collect(),
    }
}

fn settings() -> EvaluationSettings {
    EvaluationSettings {
        metrics: METRICS.map(str::to_owned).to_vec(),
        times: Some((1..=10).map(|k| 0.1 * f64::from(k)).collect()),
        horizon: Some(0.6),
        reading: Reading::ConstantHazard,
        ..EvaluationSettings::default()
    }
}

/// Values of all, of both groups and of their difference, by metric; the mean over blocks of 1,000 complete subjects.
fn truth(delta: f64) -> Vec<[f64; 4]> {
    let none = EvaluationSettings { replicates: 0, ..settings().metrics_only() };
    let of_block = |block: u64| -> Vec<[f64; 4]> {
        let Cohort { complete, curves, groups, subjects, .. } = draw(1_000, delta, 1_000_000 + block);
        let censoring = CensoringCurve::fit(&complete, CensoringTies::EventsFirst).unwrap();
        let found = fairtte_metrics::evaluate(&subjects, &complete, &curves, &censoring, &[groups], &none).unwrap();
        let of_metric = |metric: &fairtte_metrics::evaluation::MetricReport| {
            let group = |k: usize| metric.attributes[0].groups[k].estimate.value.unwrap();
            [metric.overall.value.unwrap(), group(0), group(1), group(0) - group(1)]
        };
        found.metrics.iter().map(of_metric).collect()
    };
    let blocks: Vec<Vec<[f64; 4]>> = (0..TRUTH_BLOCKS).into_par_iter().map(of_block).collect();
    let mean = |metric: usize, k: usize| blocks.iter().map(|block| block[metric][k]).sum::<f64>() / TRUTH_BLOCKS as f64;
    (0..METRICS.len()).map(|metric| std::array::from_fn(|k| mean(metric, k))).collect()
}

/// Whether the intervals of all, of both groups, of their difference and of the gap contain the truth.
fn covered(point: &SensitivityPoint, truth: &[f64; 4]) -> [bool; 5] {
    let holds = |lower: Option<f64>, upper: Option<f64>, truth: f64| lower.unwrap() <= truth && truth <= upper.unwrap();
    let group = |k: usize| &point.groups[k].estimate;
    let (difference, gap) = (&point.differences[0].difference, point.gap.as_ref().unwrap());
    [
        holds(point.overall.lower, point.overall.upper, truth[0]),
        holds(group(0).lower, group(0).upper, truth[1]),
        holds(group(1).lower, group(1).upper, truth[2]),
        holds(difference.lower, difference.upper, truth[3]),
        holds(gap.lower, gap.upper, truth[3].abs()),
    ]
}

fn main() {
    let argument = |place: usize, default: usize| std::env::args().nth(place).map_or(default, |n| n.parse().unwrap());
    let (n_cohorts, replicates) = (argument(1, 400), argument(2, 200));
    println!("| n | true hazard ratio | model | metric | at | all | group a | group b | difference | gap |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (n, delta, model) in [
        (300, 0.0, ImputationModel::Cox),
        (300, 1.0, ImputationModel::Cox),
        (300, 1.0, ImputationModel::RiskStrata { n: 4 }),
        (1_000, 1.0, ImputationModel::Cox),
    ] {
        let truth = truth(delta);
        let tilt = SensitivitySettings {
            deltas: vec![0.0, 1.0],
            model,
            replicates,
            administrative: Some(END),
            ..SensitivitySettings::default()
        };
        let one = |seed: usize| -> Vec<[[bool; 5]; 2]> {
            let Cohort { observed, curves, groups, subjects, .. } = draw(n, delta, seed as u64);
            let censoring = CensoringCurve::fit(&observed, CensoringTies::EventsFirst).unwrap();
            let found = sensitivity(&subjects, &observed, &curves, &censoring, &[groups], &settings(), &tilt).unwrap();
            let metrics = found.attributes[0].metrics.iter().zip(&truth);
            metrics.map(|(metric, truth)| std::array::from_fn(|k| covered(&metric.points[k], truth))).collect()
        };
        let found: Vec<_> = (0..n_cohorts).into_par_iter().map(one).collect();
        for (place, metric) in METRICS.iter().enumerate() {
            for (k, at) in ["1", "2.72"].into_iter().enumerate() {
                let share = |of: usize| {
                    let count = found.iter().filter(|cohort| cohort[place][k][of]).count();
                    format!("{:.1}", 100.0 * count as f64 / n_cohorts as f64)
                };
                let shares: Vec<String> = (0..5).map(share).collect();
                let model = format!("{model:?}");
                println!("| {n} | {:.2} | {model} | {metric} | {at} | {} |", delta.exp(), shares.join(" | "));
            }
        }
    }
}
