//! A whole evaluation against its metrics called one by one: on the rows of a group alone, and on rows that were
//! actually repeated as drawn.

#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]

use fairtte_metrics::evaluation::Estimate;
use fairtte_metrics::rank::{TiedPredictions, auc_td, concordance_td};
use fairtte_metrics::resampling::{Bootstrap, Resample};
use fairtte_metrics::scores::integrated_brier_score;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, GroupId, Groups, MetricError, Outcomes,
    Reading, SubjectId, SurvivalCurves, evaluate, seeds,
};
use ndarray::Array2;
use rand::RngExt as _;

const N_REPLICATES: usize = 50;
const N_LEVELS: u32 = 3;

/// 40 subjects with 1 to 4 samples each, times on a lattice, so that events and censorings tie.
struct Cohort {
    subjects: Vec<SubjectId>,
    outcomes: Outcomes,
    curves: SurvivalCurves,
    censoring: CensoringCurve,
    groups: Groups,
}

impl Cohort {
    fn new() -> Self {
        let mut rng = seeds::stream(11, "evaluation by hand", &[]);
        let (mut subjects, mut time, mut event, mut survival, mut level) = (vec![], vec![], vec![], vec![], vec![]);
        for subject in 0..40_u32 {
            let (samples, frailty) = (1 + subject % 4, rng.random::<f64>());
            for _ in 0..samples {
                subjects.push(SubjectId::new(format!("p{subject:02}")));
                time.push(f64::from(1 + rng.random_range(0..24_u32)) / 4.0);
                event.push(rng.random::<f64>() < 0.6);
                let rate = 0.1 + (4.0 * (frailty + rng.random::<f64>())).round() / 10.0;
                survival.extend([0.0, 1.0, 2.5, 4.0, 6.0].map(|t: f64| (-rate * t).exp()));
                // One level of all, and some samples without one.
                level.push((subject % 7 > 0).then_some(GroupId(subject % N_LEVELS)));
            }
        }
        let train = Outcomes::new((1..=30).map(|k| f64::from(k) / 4.0).collect(), (0..30).map(|k| k % 3 > 0).collect());
        let levels = (0..N_LEVELS).map(|level| level.to_string()).collect();
        Self {
            outcomes: Outcomes::new(time, event).unwrap(),
            curves: SurvivalCurves::new(
                vec![0.0, 1.0, 2.5, 4.0, 6.0],
                Array2::from_shape_vec((subjects.len(), 5), survival).unwrap(),
            )
            .unwrap(),
            censoring: CensoringCurve::fit(&train.unwrap(), CensoringTies::EventsFirst).unwrap(),
            groups: Groups::new("site", levels, level).unwrap(),
            subjects,
        }
    }

    fn evaluate(&self, settings: &EvaluationSettings) -> EvaluationReport {
        let groups = std::slice::from_ref(&self.groups);
        evaluate(&self.subjects, &self.outcomes, &self.curves, &self.censoring, groups, settings).unwrap()
    }

    /// The four metrics of some rows, in the order of the report; a row may occur several times.
    fn metrics(&self, rows: &[usize], reading: Reading, times: &[f64]) -> [Result<f64, MetricError>; 4] {
        let (outcomes, curves, censoring) = (self.outcomes.select(rows), self.curves.select(rows), &self.censoring);
        let concordance = |ties| concordance_td(&outcomes, &curves, reading, ties).map(|found| found.value);
        [
            concordance(TiedPredictions::Strict),
            concordance(TiedPredictions::Half),
            auc_td(&outcomes, &curves, censoring, reading, times).and_then(|auc| auc.time_average),
            integrated_brier_score(&outcomes, &curves, censoring, reading, times),
        ]
    }

    /// All rows, and those of every group.
    fn slices(&self) -> Vec<Vec<usize>> {
        let all = (0..self.outcomes.n()).collect();
        std::iter::once(all).chain(self.groups.ids().map(|id| self.groups.rows(id))).collect()
    }
}

/// The estimates of a metric in the order of [`Cohort::slices`].
fn estimates(report: &EvaluationReport, metric: usize) -> Vec<&Estimate> {
    let metric = &report.metrics[metric];
    std::iter::once(&metric.overall).chain(metric.attributes[0].groups.iter().map(|group| &group.estimate)).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12
}

const READINGS: [Reading; 4] =
    [Reading::Step, Reading::Refined { factor: 10 }, Reading::Linear, Reading::ConstantHazard];

#[test]
fn the_values_of_a_group_are_those_of_its_rows_alone() {
    let cohort = Cohort::new();
    for reading in READINGS {
        let settings = EvaluationSettings { replicates: 0, n_times: 20, reading, ..EvaluationSettings::default() };
        let report = cohort.evaluate(&settings);
        let times = &report.times.as_ref().unwrap().times;
        for (slice, rows) in cohort.slices().iter().enumerate() {
            for (metric, expected) in cohort.metrics(rows, reading, times).into_iter().enumerate() {
                let found = estimates(&report, metric)[slice];
                assert!(close(found.value.unwrap(), expected.unwrap()), "metric {metric} of slice {slice}");
                assert_eq!(found.n, rows.len());
            }
        }
    }
}

#[test]
fn every_replicate_is_the_value_of_the_rows_literally_drawn() {
    let cohort = Cohort::new();
    for (resample, reading) in [(Resample::Subject, Reading::default()), (Resample::Sample, Reading::Linear)] {
        let settings = EvaluationSettings {
            replicates: N_REPLICATES,
            seed: 3,
            resample,
            reading,
            n_times: 20,
            ..EvaluationSettings::default()
        };
        let times = cohort.evaluate(&settings).times.unwrap().times;
        let bootstrap = Bootstrap::new(&cohort.subjects, resample, N_REPLICATES, 3);
        let drawn: Vec<Vec<u32>> = (0..N_REPLICATES).map(|replicate| bootstrap.weights(replicate)).collect();
        // Sorted values by slice and metric.
        let literal: Vec<[Vec<f64>; 4]> = cohort
            .slices()
            .iter()
            .map(|rows| {
                let mut values: [Vec<f64>; 4] = Default::default();
                for weights in &drawn {
                    let copies = |&row: &usize| std::iter::repeat_n(row, weights[row] as usize);
                    let rows: Vec<usize> = rows.iter().flat_map(copies).collect();
                    for (values, value) in values.iter_mut().zip(cohort.metrics(&rows, reading, &times)) {
                        values.extend(value);
                    }
                }
                for values in &mut values {
                    values.sort_by(f64::total_cmp);
                }
                values
            })
            .collect();
        assert!(literal.iter().flatten().all(|values| values.len() == N_REPLICATES));
        // At these levels the two ends are the k-th lowest and the k-th highest replicate.
        for k in 0..N_REPLICATES / 2 {
            let level = 1.0 - 2.0 * k as f64 / (N_REPLICATES - 1) as f64;
            // A level of 1 is refused; so close to it the ends are the outermost replicates.
            let level = level.min(1.0 - 1e-15);
            let report = cohort.evaluate(&EvaluationSettings { level, ..settings.clone() });
            for (slice, by_metric) in literal.iter().enumerate() {
                for (metric, values) in by_metric.iter().enumerate() {
                    let found = estimates(&report, metric)[slice];
                    let ends = (found.lower.unwrap(), found.upper.unwrap());
                    let expected = (values[k], values[N_REPLICATES - 1 - k]);
                    let same = close(ends.0, expected.0) && close(ends.1, expected.1);
                    assert!(same, "metric {metric} of slice {slice}: {ends:?}, expected {expected:?}");
                    assert_eq!(found.undefined_replicates, 0);
                }
            }
        }
    }
}
