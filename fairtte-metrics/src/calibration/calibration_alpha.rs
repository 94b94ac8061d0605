//! Van Houwelingen's calibration alpha: observed events over expected events.
//!
//! `alpha = sum_i d_i / sum_i H_i(T_i)`, with the predicted cumulative hazard H = -log S at the sample's own time. Under
//! the true curves the expectation of both sums is the same, so 1 is ideal; above 1 the model predicts too few events,
//! below 1 too many.
//! Source: van Houwelingen (2000), Statistics in Medicine 19, 3401-3415; the ratio as `mlr3proba` 0.8.9
//! `surv.calib_alpha(method = "ratio")` offers it. Where H is 0 (S = 1) or infinite (S = 0) that package puts a small
//! number in its place; we do the same and count the replacements, because an event that was certain (S = 0) then
//! counts as hardly expected.
//! Golden values: that measure re-implemented in `numpy` and checked against the R code.

use serde::{Deserialize, Serialize};

use crate::calibration::{OwnTimeReading, survival_at_own_time};
use crate::pairwise_sum::pairwise_sum;
use crate::{MetricError, Outcomes, SurvivalCurves};

/// The value that `mlr3proba` uses in place of a cumulative hazard of 0 or infinity.
pub const DEFAULT_HAZARD_REPLACEMENT: f64 = 1e-3;

/// Observed against expected events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CalibrationAlpha {
    /// Observed over expected events; 1 is ideal, 0 without any event.
    pub alpha: f64,
    /// Observed events.
    pub n_events: usize,
    /// Expected events: the sum of the cumulative hazards.
    pub expected_events: f64,
    /// Samples whose cumulative hazard is 0 or infinite and was replaced.
    pub n_replaced: usize,
    /// Samples.
    pub n: usize,
}

/// Alpha of `curves`, with `replacement` (by default [`DEFAULT_HAZARD_REPLACEMENT`]) for a cumulative hazard of 0 or
/// infinity; O(n log L).
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::calibration::{DEFAULT_HAZARD_REPLACEMENT, OwnTimeReading, calibration_alpha};
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0], vec![true, false])?;
/// let curves = SurvivalCurves::new(vec![1.0, 2.0], array![[0.5, 0.25], [0.5, 0.25]])?;
/// let reading = OwnTimeReading::OneBefore(Reading::Step);
/// let found = calibration_alpha(&outcomes, &curves, reading, DEFAULT_HAZARD_REPLACEMENT)?;
/// // One event; log 2 + log 4 expected.
/// assert!((found.alpha - 1.0 / (3.0 * 2.0_f64.ln())).abs() < 1e-12);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::LengthMismatch`] if `curves` has not one row per sample,
/// [`MetricError::InvalidSetting`] if `replacement` is not a number from 2^-1022 to 2^52 or the reading is not valid.
pub fn calibration_alpha(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    reading: OwnTimeReading,
    replacement: f64,
) -> Result<CalibrationAlpha, MetricError> {
    if !(f64::MIN_POSITIVE..=1.0 / f64::EPSILON).contains(&replacement) {
        let (setting, expected) =
            ("replacement of a cumulative hazard of 0 or infinity", "a number from 2^-1022 to 2^52");
        return Err(MetricError::InvalidSetting { setting, value: replacement.to_string(), expected });
    }
    let survival = survival_at_own_time(outcomes, curves, reading)?;
    let mut n_replaced = 0;
    let hazards: Vec<f64> = survival
        .iter()
        .map(|survival| {
            let hazard = -survival.ln();
            if hazard > 0.0 && hazard.is_finite() {
                return hazard;
            }
            n_replaced += 1;
            replacement
        })
        .collect();
    let (n_events, expected_events) = (outcomes.n_events(), pairwise_sum(&hazards));
    let alpha = n_events as f64 / expected_events;
    Ok(CalibrationAlpha { alpha, n_events, expected_events, n_replaced, n: outcomes.n() })
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use ndarray::array;

    use super::*;
    use crate::Reading;

    const STEP: OwnTimeReading = OwnTimeReading::OneBefore(Reading::Step);

    #[test]
    fn certain_curves_are_replaced_and_counted() {
        let outcomes = Outcomes::new(vec![1.0; 4], vec![true, true, true, false]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], array![[1.0], [0.0], [0.5], [0.25]]).unwrap();
        let found = calibration_alpha(&outcomes, &curves, STEP, DEFAULT_HAZARD_REPLACEMENT).unwrap();
        assert_eq!((found.n_events, found.n_replaced, found.n), (3, 2, 4));
        assert_relative_eq!(found.alpha, 3.0 / (0.002 + 3.0 * 2.0_f64.ln()), max_relative = 1e-14);
    }

    #[test]
    fn no_event_gives_zero_and_bad_replacements_are_refused() {
        let outcomes = Outcomes::new(vec![1.0], vec![false]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], array![[0.5]]).unwrap();
        let alpha = |replacement| calibration_alpha(&outcomes, &curves, STEP, replacement);
        assert_eq!(alpha(1e-3).unwrap().alpha, 0.0);
        for bad in [0.0, -1.0, 1e16, f64::NAN, f64::INFINITY] {
            assert!(matches!(alpha(bad), Err(MetricError::InvalidSetting { .. })), "{bad}");
        }
    }
}
