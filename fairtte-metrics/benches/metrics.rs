//! Time of C^td, AUC^td and IBS, and of a whole evaluation with bootstrap replicates, at n = 2,000 and n = 20,000;
//! all metrics of a binary class with two attributes at n = 400,000; disc and cup of a mask of 400 x 400 pixels.
//!
//! `cargo bench -p fairtte-metrics`

use divan::Bencher;
use fairtte_metrics::classification::ClassPredictions;
use fairtte_metrics::evaluation::{ClassSettings, evaluate_classes};
use fairtte_metrics::masks::{LabelPair, Labels, MaskClass, MaskGrid, MaskSettings, score_pair};
use fairtte_metrics::rank::{AucTd, ConcordanceTd, PreparedAucTd, PreparedConcordanceTd, TiedPredictions};
use fairtte_metrics::scores::PreparedBrier;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, Outcomes, Reading, SubjectId, SurvivalCurves,
    evaluate, seeds,
};
use ndarray::Array2;
use rand::RngExt as _;

const N_COLUMNS: usize = 64;
const HORIZON: f64 = 10.0;

struct Cohort {
    outcomes: Outcomes,
    curves: SurvivalCurves,
    censoring: CensoringCurve,
    times: Vec<f64>,
    subjects: Vec<SubjectId>,
    sex: Groups,
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
    let membership = (0..n).map(|row| Some(GroupId(u32::from(row % 3 == 0)))).collect();
    Cohort {
        censoring: CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).expect("there are samples"),
        outcomes,
        curves: SurvivalCurves::new(grid, survival).expect("curves fall"),
        times: (0..100).map(|k| 0.5 + 7.0 * f64::from(k) / 99.0).collect(),
        subjects,
        sex: Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership).expect("two levels"),
    }
}

const SIZES: [usize; 2] = [2_000, 20_000];
const READING: Reading = Reading::Refined { factor: 10 };

fn main() {
    divan::main();
}

impl Cohort {
    fn concordance(&self) -> PreparedConcordanceTd {
        ConcordanceTd::prepare(&self.outcomes, &self.curves, READING).expect("valid")
    }

    fn auc(&self) -> PreparedAucTd {
        AucTd::prepare(&self.outcomes, &self.curves, &self.censoring, READING, &self.times).expect("valid")
    }

    fn brier(&self) -> PreparedBrier {
        PreparedBrier::new(&self.outcomes, &self.curves, &self.censoring, READING, &self.times).expect("valid")
    }
}

#[divan::bench(args = SIZES)]
fn c_td_once(bencher: Bencher<'_, '_>, n: usize) {
    let (cohort, ones) = (cohort(n), vec![1; n]);
    bencher.bench(|| cohort.concordance().weighted(&ones, TiedPredictions::Strict));
}

#[divan::bench(args = SIZES)]
fn auc_td_once(bencher: Bencher<'_, '_>, n: usize) {
    let (cohort, ones) = (cohort(n), vec![1; n]);
    bencher.bench(|| cohort.auc().weighted(&ones));
}

#[divan::bench(args = SIZES)]
fn ibs_once(bencher: Bencher<'_, '_>, n: usize) {
    let (cohort, ones) = (cohort(n), vec![1; n]);
    bencher.bench(|| cohort.brier().weighted(&ones));
}

#[divan::bench(args = SIZES, sample_count = 10)]
fn everything_with_100_replicates(bencher: Bencher<'_, '_>, n: usize) {
    let Cohort { outcomes, curves, censoring, times, subjects, sex } = cohort(n);
    let settings = EvaluationSettings { replicates: 100, times: Some(times), ..EvaluationSettings::default() };
    bencher.bench(|| evaluate(&subjects, &outcomes, &curves, &censoring, std::slice::from_ref(&sex), &settings));
}

/// Every metric of a class in the whole sample and in five groups of two attributes, with 1,000 replicates and the default 199
/// exchanges of labels.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn classes_400_000_with_1_000_replicates(bencher: Bencher<'_, '_>) {
    const N: usize = 400_000;
    let mut rng = seeds::stream(2, "benchmark", &[N as u64]);
    let probability: Vec<f64> = (0..N).map(|_| 0.001 + 0.6 * rng.random::<f64>().powi(2)).collect();
    let positive = probability.iter().map(|p| rng.random::<f64>() < *p).collect();
    let predictions = ClassPredictions::new(probability, positive).expect("probabilities");
    let subjects: Vec<SubjectId> = (0..N).map(|row| SubjectId::new(format!("{row:06}"))).collect();
    let groups = [2_u32, 3].map(|levels| {
        let names = (0..levels).map(|level| level.to_string()).collect();
        let membership = (0..N).map(|_| Some(GroupId(rng.random_range(0..levels)))).collect();
        Groups::new(format!("of {levels}"), names, membership).expect("levels")
    });
    let settings = EvaluationSettings::default();
    bencher.bench_local(|| evaluate_classes(&predictions, &subjects, &groups, &ClassSettings::default(), &settings));
}

/// Overlap and distances of disc and cup of one pair of masks, on one thread.
#[divan::bench]
fn masks_of_400_by_400(bencher: Bencher) {
    let eye = |shift: i32, cup: i32| -> Vec<i32> {
        let label = |k: i32| {
            let (x, y) = (k % 400 - 200 - shift, k / 400 - 190);
            i32::from(x * x + y * y <= 6400) + i32::from(x * x + y * y <= cup)
        };
        (0..400 * 400).map(label).collect()
    };
    let (truth, predicted) = (eye(0, 1600), eye(5, 1500));
    let grid = MaskGrid::new(&[400, 400], &[1.0; 2]).expect("a grid of pixels");
    let pair = LabelPair::new(grid, Labels { truth: &truth, predicted: &predicted }).expect("two masks of one size");
    let classes =
        [("disc", vec![1, 2]), ("cup", vec![2])].map(|(name, values)| MaskClass { name: name.to_owned(), values });
    let settings = MaskSettings::default();
    bencher.bench(|| classes.iter().map(|class| score_pair(&pair, class, &settings).dice()).sum::<f64>());
}
