//! The curves as `SurvivalEvaluator` of `SurvivalEVAL` reads them.
//!
//! Straight lines between grid points; (0, 1) is added in front of a grid that starts after 0; beyond the last grid
//! point S follows the line through (0, 1) and that point, down to 0. This is not the line of the last grid interval.
//! Source: `SurvivalEVAL` 0.9.0, `predict_multi_probabilities_from_curve` with `interpolation="Linear"`; golden values
//! through its `integrated_brier_score`.

use ndarray::{Array1, Array2};

use crate::curves::{SurvivalCurves, check_grid};
use crate::{MetricError, Reading};

/// `curves` read at `times` the way `SurvivalEvaluator` does: new curves on the grid `times`.
///
/// Score them with [`Reading::Step`] at the same times. Cost: O(n L).
///
/// ```
/// use fairtte_metrics::SurvivalCurves;
/// use fairtte_metrics::scores::survival_evaluator_curves;
/// use ndarray::array;
///
/// let curves = SurvivalCurves::new(vec![2.0, 4.0], array![[0.8, 0.4]])?;
/// let read = survival_evaluator_curves(&curves, &[1.0, 3.0, 5.0, 9.0])?;
/// // Half way from 1 to 0.8; half way from 0.8 to 0.4; 1 - 0.6 * 5/4; 1 - 0.6 * 9/4 is below 0.
/// for (found, expected) in read.survival().iter().zip([0.9, 0.6, 0.25, 0.0]) {
///     assert!((found - expected).abs() < 1e-15);
/// }
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::EmptyGrid`] or [`MetricError::InvalidGrid`] for the times.
pub fn survival_evaluator_curves(curves: &SurvivalCurves, times: &[f64]) -> Result<SurvivalCurves, MetricError> {
    check_grid(times)?;
    let mut survival = Array2::zeros((curves.n(), times.len()));
    for (mut column, t) in survival.columns_mut().into_iter().zip(times) {
        column.assign(&Array1::from(curves.all_at(*t, Reading::LinearFromOne)));
    }
    SurvivalCurves::new(times.to_vec(), survival)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_grid_that_starts_at_zero_keeps_its_own_start() {
        let curves = SurvivalCurves::new(vec![0.0, 2.0], array![[0.8, 0.5]]).unwrap();
        let read = survival_evaluator_curves(&curves, &[0.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!(read.survival(), array![[0.8, 0.65, 0.5, 0.25]]);
    }

    #[test]
    fn a_grid_of_the_single_time_zero_holds_its_value() {
        let curves = SurvivalCurves::new(vec![0.0], array![[0.5]]).unwrap();
        assert_eq!(survival_evaluator_curves(&curves, &[0.0, 3.0]).unwrap().survival(), array![[0.5, 0.5]]);
    }

    #[test]
    fn a_flat_curve_stays_flat_beyond_the_shortest_grid() {
        let curves = SurvivalCurves::new(vec![f64::from_bits(1)], array![[1.0], [0.5]]).unwrap();
        assert_eq!(survival_evaluator_curves(&curves, &[3.0]).unwrap().survival(), array![[1.0], [0.0]]);
    }

    #[test]
    fn a_curve_is_read_from_one_before_its_grid_and_down_to_zero_beyond_it() {
        let curves = SurvivalCurves::new(vec![2.0, 4.0], array![[0.75, 0.5]]).unwrap();
        // Half way from 1 to 0.75, half way from 0.75 to 0.5, then 1 - t / 8.
        let read = survival_evaluator_curves(&curves, &[1.0, 3.0, 6.0, 9.0]).unwrap();
        assert_eq!(read.survival(), array![[0.875, 0.625, 0.25, 0.0]]);
    }
}
