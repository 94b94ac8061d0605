//! How often intervals contain the truth; `examples/sensitivity_coverage.rs` prints more of them.

use super::cohort::{Cohort, Design, END, values};
use crate::sensitivity::{ImputationModel, SensitivitySettings};

/// IBS over the ten evaluation times and observed divided by expected at 0.6 of complete outcomes, of the rows that `is_in`.
fn truth(cohort: &Cohort, is_in: impl Fn(usize) -> bool) -> [f64; 2] {
    let rows: Vec<usize> = (0..cohort.complete.n()).filter(|row| is_in(*row)).collect();
    // The model predicts a constant hazard.
    let hazard = |row: usize| -cohort.curves.survival()[[row, 24]].max(1e-300).ln() / END;
    let mean = |of: &dyn Fn(usize) -> f64| rows.iter().map(|row| of(*row)).sum::<f64>() / rows.len() as f64;
    let time = cohort.complete.time();
    let brier = |t: f64| mean(&|row| (f64::from(u8::from(time[row] > t)) - (-t * hazard(row)).exp()).powi(2));
    let briers: Vec<f64> = (1..=10).map(|k| brier(0.1 * f64::from(k))).collect();
    let ibs = (briers.iter().sum::<f64>() - f64::midpoint(briers[0], briers[9])) / 9.0;
    let observed = mean(&|row| f64::from(u8::from(time[row] <= 0.6)));
    [ibs, observed / mean(&|row| 1.0 - (-0.6 * hazard(row)).exp())]
}

#[test]
fn intervals_at_the_true_delta_contain_the_truth_and_at_another_they_do_not() {
    const METRICS: [&str; 2] = ["ibs", "observed-expected"];
    let design = |n| Design { n, dropout: 0.9, delta: [1.0; 2], noise: [0.4, 0.9] };
    let population = design(300_000).draw(1);
    let of_slices =
        [truth(&population, |_| true), truth(&population, |row| row % 2 == 0), truth(&population, |row| row % 2 == 1)];
    let truth: [[f64; 3]; 2] = std::array::from_fn(|metric| of_slices.map(|slice| slice[metric]));
    let tilt = SensitivitySettings {
        deltas: vec![-1.0, 0.0, 1.0],
        model: ImputationModel::Cox,
        imputations: 8,
        replicates: 50,
        ..SensitivitySettings::default()
    };
    let n_cohorts: u32 = 120;
    // By delta: overall, group a, group b, difference.
    let mut covered = [[[0_u32; 4]; 3]; 2];
    for seed in 0..n_cohorts {
        let found = design(300).draw(1_000 + u64::from(seed)).analyse(&METRICS, &tilt);
        for (metric, (truth, covered)) in found.attributes[0].metrics.iter().zip(truth.iter().zip(&mut covered)) {
            for (point, covered) in metric.points.iter().zip(covered) {
                let difference = &point.differences[0].difference;
                let intervals = [
                    (point.overall.lower, point.overall.upper),
                    (point.groups[0].estimate.lower, point.groups[0].estimate.upper),
                    (point.groups[1].estimate.lower, point.groups[1].estimate.upper),
                    (difference.lower, difference.upper),
                ];
                let truths = [truth[0], truth[1], truth[2], truth[1] - truth[2]];
                for (count, ((lower, upper), truth)) in covered.iter_mut().zip(intervals.into_iter().zip(truths)) {
                    *count += u32::from(lower.unwrap() <= truth && truth <= upper.unwrap());
                }
            }
            assert!(values(metric, 2).iter().all(|value| value.is_finite()));
        }
    }
    for of_metric in &covered {
        // Of 600 cohorts like these, 90 to 93 % of the intervals contained the truth, not 95 %: percentile intervals of 50
        // replicates have the expected coverage 1 - 2 (1 + 0.025 * 49) / 51 = 0.913. Of 120, 90 % is 108; a binomial count is
        // below 98 or 120 with a probability below 0.003 each.
        assert!(of_metric[2].iter().all(|count| (98..120).contains(count)), "{covered:?}");
    }
    // Observed events with the wrong sign: far off.
    assert!(covered[1][0][0] < 40, "{covered:?}");
}
