//! The survival probability that a curve gives a sample at the sample's own observed time.
//!
//! D-calibration and van Houwelingen's alpha need only this one number per sample, `S(T)`, and packages differ in how
//! they read it off a curve on a grid: before the first grid point, between two points, and beyond the last.
//! Golden values: `SurvivalEVAL` 0.9.0 `SurvivalEvaluator` (for [`OwnTimeReading::LinearFromOne`]).

use serde::{Deserialize, Serialize};

use crate::{MetricError, Outcomes, Reading, SurvivalCurves};

/// How S(T) is read off a sample's curve, T being its observed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum OwnTimeReading {
    /// By the given [`Reading`], which gives the value of the first column before the grid.
    FirstColumnBefore(Reading),
    /// By the given [`Reading`] from the first grid point on, and 1 before it: no event has happened yet.
    OneBefore(Reading),
    /// Straight lines between the grid points, from (0, 1) to the first one unless the grid starts at 0, and beyond
    /// the last one the line through (0, 1) and the last point, not below 0: the curves of `SurvivalEVAL`'s evaluator.
    LinearFromOne,
}

impl Default for OwnTimeReading {
    fn default() -> Self {
        Self::OneBefore(Reading::default())
    }
}

impl From<Reading> for OwnTimeReading {
    /// The curve of the reading, which is 1 before the grid: no event has happened yet.
    fn from(reading: Reading) -> Self {
        match reading {
            Reading::LinearFromOne => Self::LinearFromOne,
            _ => Self::OneBefore(reading),
        }
    }
}

/// S(T) of every sample at its own time T, `[n]`, each in [0, 1]. O(n log L) for L grid points.
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::calibration::{OwnTimeReading, survival_at_own_time};
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 3.0], vec![true, false])?;
/// let curves = SurvivalCurves::new(vec![2.0, 4.0], array![[0.8, 0.4], [0.8, 0.4]])?;
/// let step = survival_at_own_time(&outcomes, &curves, OwnTimeReading::OneBefore(Reading::Step))?;
/// assert_eq!(step, [1.0, 0.8]);
/// let linear = survival_at_own_time(&outcomes, &curves, OwnTimeReading::LinearFromOne)?;
/// assert!((linear[0] - 0.9).abs() < 1e-12 && (linear[1] - 0.6).abs() < 1e-12);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoSamples`] without samples, [`MetricError::LengthMismatch`] if `curves` has not one row per sample,
/// [`MetricError::InvalidSetting`] if the reading is refined by a factor of 0.
pub fn survival_at_own_time(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    reading: OwnTimeReading,
) -> Result<Vec<f64>, MetricError> {
    curves.check_rows(outcomes.n())?;
    if outcomes.n() == 0 {
        return Err(MetricError::NoSamples);
    }
    let own_times = outcomes.time().iter().copied().enumerate();
    Ok(match reading {
        OwnTimeReading::FirstColumnBefore(reading) => {
            reading.validate()?;
            own_times.map(|(row, time)| curves.at(row, time, reading)).collect()
        }
        OwnTimeReading::OneBefore(reading) => {
            reading.validate()?;
            let first = curves.grid()[0];
            own_times.map(|(row, time)| if time < first { 1.0 } else { curves.at(row, time, reading) }).collect()
        }
        OwnTimeReading::LinearFromOne => own_times.map(|(row, time)| linear_from_one(curves, row, time)).collect(),
    })
}

fn linear_from_one(curves: &SurvivalCurves, row: usize, time: f64) -> f64 {
    let (grid, survival) = (curves.grid(), curves.curve(row));
    let last = grid.len() - 1;
    if time > grid[last] {
        // The line through (0, 1) has no slope if the only known time is 0.
        let line = |end: f64| (1.0 - (1.0 - survival[last]) * time / end).max(0.0);
        return if grid[last] > 0.0 { line(grid[last]) } else { survival[last] };
    }
    // The interval that ends at or after `time`: a time on a grid point is the end of its interval. The order of the
    // operations is that of the reference, because a value on the edge of a bin falls to one side by rounding.
    let end = grid.partition_point(|point| *point < time);
    let point = |k: usize| (grid[k], survival[k]);
    let ((start_time, start), (end_time, end)) = match end.checked_sub(1) {
        Some(before) => (point(before), point(end)),
        None if grid[0] > 0.0 => ((0.0, 1.0), point(0)),
        None => return survival[0],
    };
    let (slope, elapsed) = ((end - start) / (end_time - start_time), time - start_time);
    // An interval may be so short that its slope overflows.
    let change = if slope.is_finite() { slope * elapsed } else { (end - start) * (elapsed / (end_time - start_time)) };
    (change + start).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::array;

    use super::*;

    fn read(grid: &[f64], values: &[f64], times: &[f64], reading: OwnTimeReading) -> Vec<f64> {
        let rows = times.iter().flat_map(|_| values).copied().collect();
        let survival = ndarray::Array2::from_shape_vec((times.len(), grid.len()), rows).unwrap();
        let curves = SurvivalCurves::new(grid.to_vec(), survival).unwrap();
        let outcomes = Outcomes::new(times.to_vec(), vec![true; times.len()]).unwrap();
        survival_at_own_time(&outcomes, &curves, reading).unwrap()
    }

    #[test]
    fn the_line_starts_at_one_and_falls_to_zero_beyond_the_grid() {
        let found = read(&[2.0, 4.0], &[0.8, 0.5], &[0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0], OwnTimeReading::LinearFromOne);
        for (found, expected) in found.iter().zip([1.0, 0.9, 0.8, 0.65, 0.5, 0.25, 0.0]) {
            assert_abs_diff_eq!(*found, expected, epsilon = 1e-15);
        }
        let from_zero = read(&[0.0, 4.0], &[0.9, 0.5], &[0.0, 2.0], OwnTimeReading::LinearFromOne);
        assert_abs_diff_eq!(from_zero[0], 0.9);
        assert_abs_diff_eq!(from_zero[1], 0.7, epsilon = 1e-15);
    }

    #[test]
    fn a_grid_of_time_zero_alone_and_a_tiny_interval_still_give_probabilities() {
        assert_eq!(read(&[0.0], &[0.7], &[0.0, 5.0], OwnTimeReading::LinearFromOne), [0.7, 0.7]);
        let tiny = read(&[5e-324, 1.0], &[0.5, 0.25], &[0.0, 5e-324, 1.0], OwnTimeReading::LinearFromOne);
        assert!(tiny.iter().all(|value| (0.0..=1.0).contains(value)), "{tiny:?}");
    }

    #[test]
    fn readings_differ_only_before_the_grid() {
        let times = [0.5, 1.0, 1.5, 9.0];
        let first = read(&[1.0, 2.0], &[0.75, 0.5], &times, OwnTimeReading::FirstColumnBefore(Reading::Step));
        let one = read(&[1.0, 2.0], &[0.75, 0.5], &times, OwnTimeReading::OneBefore(Reading::Step));
        assert_eq!(first, [0.75, 0.75, 0.75, 0.5]);
        assert_eq!(one, [1.0, 0.75, 0.75, 0.5]);
    }

    #[test]
    fn bad_input_is_named() {
        let outcomes = Outcomes::new(vec![1.0], vec![true]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.5]]).unwrap();
        let mismatch = survival_at_own_time(&outcomes, &curves, OwnTimeReading::default());
        assert!(matches!(mismatch, Err(MetricError::LengthMismatch { found: 2, expected: 1, .. })));
        let zero = OwnTimeReading::OneBefore(Reading::Refined { factor: 0 });
        let refused = survival_at_own_time(&outcomes, &curves.select(&[0]), zero);
        assert!(matches!(refused, Err(MetricError::InvalidSetting { .. })));
        let nobody = survival_at_own_time(&outcomes.select(&[]), &curves.select(&[]), OwnTimeReading::default());
        assert_eq!(nobody, Err(MetricError::NoSamples));
    }
}
