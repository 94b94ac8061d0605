//! Distribution calibration: are the predicted survival probabilities at the events spread evenly over [0, 1]?
//!
//! If the curves are right, S(T) at the true event times T is uniform. [0, 1] is cut into B bins of equal width; an event
//! counts 1 in the bin of S(T); a sample censored at C, whose S(T) lies somewhere below S(C), is spread over [0, S(C)] in
//! proportion. The bins should hold n/B each: `statistic = sum_b (mass_b - n/B)^2 / (n/B)`, compared with the chi-square
//! distribution of B - 1 degrees of freedom.
//! Source: Haider, Hoehn, Davis & Greiner (2020), JMLR 21(85), 1-63. Assumes independent censoring; a p value near 0 is
//! evidence against calibration. The mass of censored samples is spread evenly by construction, which lowers the power
//! of the test under heavy censoring: of true curves of 500 people a test at 5 % rejected 0.5 % of 200 cohorts with 30 % censored at
//! random and none with 70 % (`docs/src/honesty.md`).
//! Conventions: [`DCalibrationConvention`]. Golden values: `SurvivalEVAL` 0.9.0 `d_calibration`, and `mlr3proba` 0.8.9
//! `surv.dcalib` re-implemented in `numpy` and checked against the R code.

use serde::{Deserialize, Serialize};

use crate::calibration::{OwnTimeReading, survival_at_own_time};
use crate::chi_square::chi_square_upper_tail;
use crate::pairwise_sum::{pairwise_mean, pairwise_sum};
use crate::{MetricError, Outcomes, SurvivalCurves};

/// The maximum number of bins, more than any sample can fill, so that a mistyped number does not exhaust the memory.
const MAX_BINS: usize = 100_000;
/// Bins of the metric `d-calibration` of an evaluation.
pub(crate) const N_BINS: usize = 10;
/// The value that `mlr3proba` uses in place of a smaller survival probability.
const MLR3PROBA_FLOOR: f64 = 1e-5;

/// The implementation whose bins and statistic are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DCalibrationConvention {
    /// Bins [a, b), and S = 1 in the highest bin.
    #[default]
    Survivaleval,
    /// Bins (a, b], S floored at 1e-5.
    Mlr3proba,
    /// As [`Mlr3proba`](Self::Mlr3proba) with the behaviour of its R code, to reproduce published numbers: `seq.int(0)`
    /// is `c(1, 0)` in R, so that a censored sample in the lowest bin adds 1/(B S) there once too often. The bins then
    /// hold more than n; the statistic still compares them with n/B, the p value with their own mean.
    Mlr3probaAsInR,
}

/// The bins, their statistic and its p value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DCalibration {
    /// Mass of every bin, from the lowest survival probabilities to the highest; n/B each if calibrated.
    pub mass: Vec<f64>,
    /// sum (mass - n/B)^2 / (n/B), at least 0.
    pub statistic: f64,
    /// Chi-square upper tail with B - 1 degrees of freedom.
    pub p_value: f64,
    /// Samples.
    pub n: usize,
    /// Events among them.
    pub n_events: usize,
}

/// D-calibration of `curves` in `n_bins` equal bins of the survival probability; O(n log L + B).
///
/// Tied values share a bin; a value on an edge belongs to the bin that the convention closes there. Bin edges are
/// computed as the implementations do, k * (1/B) from their end, so that values on an edge fall on the same side.
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::calibration::{DCalibrationConvention, OwnTimeReading, d_calibration};
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 1.0], vec![true, false])?;
/// let curves = SurvivalCurves::new(vec![1.0], array![[0.25], [0.75]])?;
/// let reading = OwnTimeReading::OneBefore(Reading::Step);
/// let found = d_calibration(&outcomes, &curves, reading, 2, DCalibrationConvention::Survivaleval)?;
/// // The event lies in [0, 0.5). The censored sample had S = 0.75: a third of [0, 0.75] lies in [0.5, 1).
/// assert!((found.mass[0] - (1.0 + 2.0 / 3.0)).abs() < 1e-12 && (found.mass[1] - 1.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::LengthMismatch`] if `curves` has not one row per sample,
/// [`MetricError::InvalidSetting`] if `n_bins` is not in 2..=100000 or the reading is not valid.
pub fn d_calibration(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    reading: OwnTimeReading,
    n_bins: usize,
    convention: DCalibrationConvention,
) -> Result<DCalibration, MetricError> {
    if !(2..=MAX_BINS).contains(&n_bins) {
        let (setting, expected) = ("number of bins of the D-calibration", "a whole number from 2 to 100000");
        return Err(MetricError::InvalidSetting { setting, value: n_bins.to_string(), expected });
    }
    let survival = survival_at_own_time(outcomes, curves, reading)?;
    let rows = survival.into_iter().zip(outcomes.event().iter().copied());
    let mass = match convention {
        DCalibrationConvention::Survivaleval => closed_below(rows, n_bins),
        DCalibrationConvention::Mlr3proba => closed_above(rows, n_bins, false),
        DCalibrationConvention::Mlr3probaAsInR => closed_above(rows, n_bins, true),
    };
    let to_uniform = chi_square_statistic(&mass, pairwise_mean(&mass));
    let statistic = match convention {
        DCalibrationConvention::Survivaleval => to_uniform,
        _ => chi_square_statistic(&mass, outcomes.n() as f64 / n_bins as f64),
    };
    let p_value = chi_square_upper_tail(to_uniform, n_bins - 1);
    Ok(DCalibration { mass, statistic, p_value, n: outcomes.n(), n_events: outcomes.n_events() })
}

/// sum (mass - expected)^2 / expected.
fn chi_square_statistic(mass: &[f64], expected: f64) -> f64 {
    let terms: Vec<f64> = mass.iter().map(|mass| (mass - expected) * (mass - expected) / expected).collect();
    pairwise_sum(&terms)
}

/// What every row, S(T) and event, adds to each of the [`N_BINS`] bins, from the lowest.
pub(crate) fn masses_of_rows(
    rows: impl Iterator<Item = (f64, bool)>,
    convention: DCalibrationConvention,
) -> Vec<[f64; N_BINS]> {
    let of_row = |row| {
        let mass = match convention {
            DCalibrationConvention::Survivaleval => closed_below(std::iter::once(row), N_BINS),
            DCalibrationConvention::Mlr3proba => closed_above(std::iter::once(row), N_BINS, false),
            DCalibrationConvention::Mlr3probaAsInR => closed_above(std::iter::once(row), N_BINS, true),
        };
        std::array::from_fn(|bin| mass[bin])
    };
    rows.map(of_row).collect()
}

/// Bins [a, b) with edges 1 - k/B, filled from the highest; returned from the lowest.
fn closed_below(rows: impl Iterator<Item = (f64, bool)>, n_bins: usize) -> Vec<f64> {
    let width = -1.0 / n_bins as f64;
    let lower: Vec<f64> = (1..=n_bins).map(|k| if k == n_bins { 0.0 } else { k as f64 * width + 1.0 }).collect();
    let (mut events, mut first, mut below) = (vec![0.0; n_bins], vec![0.0; n_bins], vec![0.0; n_bins]);
    for (survival, event) in rows {
        let bin = lower.partition_point(|edge| *edge > survival);
        if event {
            events[bin] += 1.0;
            continue;
        }
        first[bin] += match survival {
            0.0 => 1.0,
            1.0 => 1.0 / n_bins as f64,
            _ => (survival - lower[bin]) / survival,
        };
        if bin + 1 < n_bins {
            below[bin] += 1.0 / (n_bins as f64 * survival);
        }
    }
    // What a censored sample adds to every bin below its own is added once, in a running sum over the bins.
    let mut from_above = 0.0;
    let mut mass: Vec<f64> = Vec::with_capacity(n_bins);
    for bin in 0..n_bins {
        mass.push(events[bin] + (first[bin] + from_above));
        from_above += below[bin];
    }
    mass.reverse();
    mass
}

/// Bins (a, b] with edges k/B; `as_in_r` counts the full share of the lowest bin again for its own censored samples.
fn closed_above(rows: impl Iterator<Item = (f64, bool)>, n_bins: usize, as_in_r: bool) -> Vec<f64> {
    let width = 1.0 / n_bins as f64;
    let upper: Vec<f64> = (1..=n_bins).map(|k| if k == n_bins { 1.0 } else { k as f64 * width }).collect();
    let (mut mass, mut below) = (vec![0.0; n_bins], vec![0.0; n_bins]);
    for (survival, event) in rows {
        let survival = survival.max(MLR3PROBA_FLOOR);
        let bin = upper.partition_point(|edge| *edge < survival);
        if event {
            mass[bin] += 1.0;
            continue;
        }
        let lower = if bin == 0 { 0.0 } else { upper[bin - 1] };
        mass[bin] += (survival - lower) / survival;
        let share = 1.0 / (n_bins as f64 * survival);
        below[bin] += share;
        if as_in_r && bin == 0 {
            mass[0] += share;
        }
    }
    let mut from_above = 0.0;
    for bin in (0..n_bins).rev() {
        mass[bin] += from_above;
        from_above += below[bin];
    }
    mass
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::Array2;

    use super::*;
    use crate::Reading;

    /// Samples whose own survival probability is given.
    fn calibrate(rows: &[(f64, bool)], n_bins: usize, convention: DCalibrationConvention) -> DCalibration {
        let survival = Array2::from_shape_vec((rows.len(), 1), rows.iter().map(|row| row.0).collect()).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], survival).unwrap();
        let outcomes = Outcomes::new(vec![1.0; rows.len()], rows.iter().map(|row| row.1).collect()).unwrap();
        let reading = OwnTimeReading::OneBefore(Reading::Step);
        d_calibration(&outcomes, &curves, reading, n_bins, convention).unwrap()
    }

    use DCalibrationConvention::{Mlr3proba, Mlr3probaAsInR, Survivaleval};

    #[test]
    fn one_event_in_every_bin_is_perfect() {
        let rows: Vec<(f64, bool)> = (0..10).map(|k| (0.05 + 0.1 * f64::from(k), true)).collect();
        for convention in [Survivaleval, Mlr3proba] {
            let found = calibrate(&rows, 10, convention);
            assert_eq!((found.mass, found.statistic, found.p_value), (vec![1.0; 10], 0.0, 1.0));
        }
    }

    #[test]
    fn a_value_on_an_edge_belongs_to_the_bin_above_or_below_by_convention() {
        let rows = [(0.5, true), (1.0, true), (0.0, true)];
        assert_eq!(calibrate(&rows, 2, Survivaleval).mass, [1.0, 2.0]);
        assert_eq!(calibrate(&rows, 2, Mlr3proba).mass, [2.0, 1.0]);
    }

    #[test]
    fn a_censored_sample_is_spread_over_the_bins_below() {
        for convention in [Survivaleval, Mlr3proba] {
            let found = calibrate(&[(0.8, false)], 4, convention);
            for (found, expected) in found.mass.iter().zip([0.3125, 0.3125, 0.3125, 0.0625]) {
                assert_abs_diff_eq!(*found, expected, epsilon = 1e-15);
            }
            assert_eq!(calibrate(&[(1.0, false)], 4, convention).mass, [0.25; 4]);
        }
        assert_eq!(calibrate(&[(0.0, false)], 4, Survivaleval).mass, [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(calibrate(&[(0.0, false)], 4, Mlr3proba).mass, [1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn the_r_code_counts_a_censored_sample_of_the_lowest_bin_twice() {
        let rows = [(0.2, false), (0.9, true)];
        assert_eq!(calibrate(&rows, 2, Mlr3proba).mass, [1.0, 1.0]);
        let in_r = calibrate(&rows, 2, Mlr3probaAsInR);
        assert_eq!(in_r.mass, [3.5, 1.0]); // 1 + 1 / (2 * 0.2)
        assert_eq!(in_r.statistic, 6.25); // against 1 in each bin
        assert_abs_diff_eq!(in_r.p_value, 0.238_592_829_316_432_1, epsilon = 1e-12); // 2.5^2 / 4.5 on 1 df: 1.3888..
    }

    #[test]
    fn mass_is_conserved_and_a_senseless_number_of_bins_is_refused() {
        let rows: Vec<(f64, bool)> = (0..97).map(|k| (f64::from(k * k % 97) / 96.0, k % 3 == 0)).collect();
        for convention in [Survivaleval, Mlr3proba] {
            for n_bins in [2, 3, 10, 33] {
                let mass = calibrate(&rows, n_bins, convention).mass;
                assert_abs_diff_eq!(mass.iter().sum::<f64>(), 97.0, epsilon = 1e-10);
            }
        }
        let outcomes = Outcomes::new(vec![1.0], vec![true]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], ndarray::array![[0.5]]).unwrap();
        for n_bins in [1, usize::MAX] {
            let refused = d_calibration(&outcomes, &curves, OwnTimeReading::default(), n_bins, Survivaleval);
            assert!(matches!(refused, Err(MetricError::InvalidSetting { .. })));
        }
    }
}
