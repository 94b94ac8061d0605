//! Time of C^td, AUC^td and IBS, once and with bootstrap replicates, at n = 2,000 and n = 20,000.
//!
//! `cargo bench -p fairtte-metrics`

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fairtte_metrics::{
    AucTd, Bootstrap, CensoringCurve, CensoringTies, ConcordanceTd, Outcomes, PreparedBrier, Reading, Resample,
    SubjectId, SurvivalCurves, TiedPredictions, seeds,
};
use ndarray::Array2;
use rand::RngExt as _;

const N_COLUMNS: usize = 64;
const N_REPLICATES: usize = 100;
const HORIZON: f64 = 10.0;

struct Cohort {
    outcomes: Outcomes,
    curves: SurvivalCurves,
    censoring: CensoringCurve,
    times: Vec<f64>,
    bootstrap: Bootstrap,
}

/// Exponential times with a rate per sample, 40 to 50 % censored, true curves as predictions.
fn cohort(n: usize) -> Cohort {
    let mut rng = seeds::stream(1, "benchmark", &[n as u64]);
    let rates: Vec<f64> = (0..n).map(|_| 0.05 + 0.4 * rng.random::<f64>()).collect();
    let mut exponential = |rate: f64| (-(1.0 - rng.random::<f64>()).ln() / rate).max(1e-6);
    let (event_time, censored_at): (Vec<f64>, Vec<f64>) =
        rates.iter().map(|&rate| (exponential(rate), exponential(0.15).min(HORIZON))).unzip();
    let time = event_time.iter().zip(&censored_at).map(|(a, b)| a.min(*b)).collect();
    let event = event_time.iter().zip(&censored_at).map(|(a, b)| a <= b).collect();
    let outcomes = Outcomes::new(time, event).expect("times are positive");
    let grid: Vec<f64> = (0..N_COLUMNS).map(|k| HORIZON * k as f64 / (N_COLUMNS - 1) as f64).collect();
    let survival = Array2::from_shape_fn((n, N_COLUMNS), |(row, k)| (-rates[row] * grid[k]).exp());
    let subjects: Vec<SubjectId> = (0..n).map(|row| SubjectId::new(format!("{row:06}"))).collect();
    Cohort {
        censoring: CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).expect("there are samples"),
        outcomes,
        curves: SurvivalCurves::new(grid, survival).expect("curves fall"),
        times: (0..100).map(|k| 0.5 + 7.0 * f64::from(k) / 99.0).collect(),
        bootstrap: Bootstrap::new(&subjects, Resample::Subject, N_REPLICATES, 1),
    }
}

fn metrics(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("metrics");
    group.sample_size(10);
    for n in [2_000, 20_000] {
        let Cohort { outcomes, curves, censoring, times, bootstrap } = cohort(n);
        let (reading, ones) = (Reading::default(), vec![1; n]);
        let concordance = || ConcordanceTd::prepare(&outcomes, &curves, reading).expect("valid");
        let auc = || AucTd::prepare(&outcomes, &curves, &censoring, reading, &times).expect("valid");
        let brier = || PreparedBrier::new(&outcomes, &curves, &censoring, reading, &times).expect("valid");

        group.bench_function(BenchmarkId::new("c_td once", n), |b| {
            b.iter(|| black_box(concordance().weighted(&ones, TiedPredictions::Strict)));
        });
        group.bench_function(BenchmarkId::new("auc_td once", n), |b| b.iter(|| black_box(auc().weighted(&ones))));
        group.bench_function(BenchmarkId::new("ibs once", n), |b| b.iter(|| black_box(brier().weighted(&ones))));

        let (concordance, auc, brier) = (concordance(), auc(), brier());
        group.bench_function(BenchmarkId::new("c_td 100 replicates", n), |b| {
            b.iter(|| black_box(bootstrap.map(|weights| concordance.weighted(weights, TiedPredictions::Strict))));
        });
        group.bench_function(BenchmarkId::new("auc_td 100 replicates", n), |b| {
            b.iter(|| black_box(bootstrap.map(|weights| auc.weighted(weights))));
        });
        group.bench_function(BenchmarkId::new("ibs 100 replicates", n), |b| {
            b.iter(|| black_box(bootstrap.map(|weights| brier.weighted(weights))));
        });
    }
    group.finish();
}

criterion_group!(benches, metrics);
criterion_main!(benches);
