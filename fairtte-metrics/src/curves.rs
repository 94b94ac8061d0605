//! Predicted survival curves of many samples on one time grid.

use std::borrow::Cow;

use ndarray::{Array2, Axis};

use crate::MetricError;
use crate::reading::{Position, Reading};

/// The tolerated numerical noise: how much a survival probability may rise between two columns or leave [0, 1].
///
/// The noise of a model that computes in `f32` and subtracts a cumulative sum from 1 is well below it.
pub const SURVIVAL_TOLERANCE: f64 = 1e-6;

/// S(t) of `n` samples on a shared grid of times; `survival[[row, k]]` = S of sample `row` at `grid[k]`.
///
/// ```
/// use fairtte_metrics::{Reading, SurvivalCurves};
/// use ndarray::array;
///
/// let curves = SurvivalCurves::new(vec![0.0, 1.0, 2.0], array![[1.0, 0.8, 0.4]])?;
/// assert_eq!(curves.at(0, 1.5, Reading::Step), 0.8);
/// assert!((curves.at(0, 1.5, Reading::Linear) - 0.6).abs() < 1e-12);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SurvivalCurves {
    grid: Vec<f64>,
    survival: Array2<f64>,
}

impl SurvivalCurves {
    /// Checks and keeps `survival` `[n, n_times]` on `grid` `[n_times]`.
    ///
    /// Values may leave [0, 1] or rise between columns by up to [`SURVIVAL_TOLERANCE`]: such noise is removed by
    /// clamping and by a running minimum, so that the kept curves lie in [0, 1] and never rise.
    ///
    /// # Errors
    /// [`MetricError::EmptyGrid`] or [`MetricError::InvalidGrid`] if the grid is not finite, >= 0 and strictly
    /// increasing, [`MetricError::GridMismatch`] if the columns do not fit, [`MetricError::InvalidSurvival`] or
    /// [`MetricError::RisingSurvival`] with row and column of the first bad value.
    pub fn new(mut grid: Vec<f64>, mut survival: Array2<f64>) -> Result<Self, MetricError> {
        check_grid(&grid)?;
        for time in &mut grid {
            *time += 0.0; // -0.0 becomes 0.0
        }
        if survival.ncols() != grid.len() {
            return Err(MetricError::GridMismatch { columns: survival.ncols(), n_times: grid.len() });
        }
        if !survival.is_standard_layout() {
            survival = survival.as_standard_layout().into_owned();
        }
        for (row, mut curve) in survival.axis_iter_mut(Axis(0)).enumerate() {
            let mut lowest = 1.0_f64;
            for (column, value) in curve.iter_mut().enumerate() {
                let range = -SURVIVAL_TOLERANCE..=1.0 + SURVIVAL_TOLERANCE;
                if !range.contains(value) {
                    return Err(MetricError::InvalidSurvival { row, column, value: *value });
                }
                if *value > lowest + SURVIVAL_TOLERANCE {
                    return Err(MetricError::RisingSurvival { row, column, before: lowest, value: *value });
                }
                // Not `max`: a negative zero would sort below zero.
                lowest = if *value <= 0.0 { 0.0 } else { lowest.min(*value) };
                *value = lowest;
            }
        }
        Ok(Self { grid, survival })
    }

    /// Times of the columns, in the unit of the data set.
    pub fn grid(&self) -> &[f64] {
        &self.grid
    }

    /// Survival probabilities, `[n, n_times]`.
    pub fn survival(&self) -> &Array2<f64> {
        &self.survival
    }

    /// The probabilities `[n, n_times]` themselves, without a copy.
    pub fn into_survival(self) -> Array2<f64> {
        self.survival
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.survival.nrows()
    }

    /// The rows at `index`, in that order; a row may be taken more than once.
    ///
    /// # Panics
    /// If an index is not below [`n`](Self::n).
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        Self { grid: self.grid.clone(), survival: self.survival.select(Axis(0), index) }
    }

    /// The rows at `index`, copied unless they are all rows in their order.
    pub(crate) fn rows(&self, index: &[usize]) -> Cow<'_, Self> {
        let is_all = index.len() == self.n() && index.iter().enumerate().all(|(place, row)| place == *row);
        if is_all { Cow::Borrowed(self) } else { Cow::Owned(self.select(index)) }
    }

    /// S of sample `row` at time `t`.
    ///
    /// # Panics
    /// If `row` is not below [`n`](Self::n).
    pub fn at(&self, row: usize, t: f64, reading: Reading) -> f64 {
        self.read(row, reading.position(&self.grid, t), reading)
    }

    /// Predicted probability of the event by `time`, `[n]`: 1 minus [`all_at`](Self::all_at).
    pub(crate) fn risk_at(&self, time: f64, reading: Reading) -> Vec<f64> {
        self.all_at(time, reading).into_iter().map(|survival| 1.0 - survival).collect()
    }

    /// S of every sample at time `t`, `[n]`.
    pub fn all_at(&self, t: f64, reading: Reading) -> Vec<f64> {
        let position = reading.position(&self.grid, t);
        (0..self.n()).map(|row| self.read(row, position, reading)).collect()
    }

    /// Mean of the curves over samples, `[n_times]`; `None` without samples.
    pub fn mean(&self) -> Option<Vec<f64>> {
        self.survival.mean_axis(Axis(0)).map(|mean| mean.to_vec())
    }

    /// Largest difference between the curves of two samples at one time of the grid, in [0, 1]; `None` with fewer than two
    /// samples. Below [`SURVIVAL_TOLERANCE`] all curves are equal up to rounding.
    ///
    /// ```
    /// use fairtte_metrics::SurvivalCurves;
    /// use ndarray::array;
    ///
    /// let curves = SurvivalCurves::new(vec![0.0, 1.0], array![[1.0, 0.75], [1.0, 0.25], [1.0, 0.5]])?;
    /// assert_eq!(curves.spread(), Some(0.5));
    /// assert_eq!(curves.select(&[0]).spread(), None);
    /// assert_eq!(curves.select(&[0, 0]).spread(), Some(0.0));
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    pub fn spread(&self) -> Option<f64> {
        let of_column = |column: ndarray::ArrayView1<'_, f64>| {
            let ends = column.iter().fold((1.0_f64, 0.0_f64), |(low, high), s| (low.min(*s), high.max(*s)));
            ends.1 - ends.0
        };
        (self.n() > 1).then(|| self.survival.columns().into_iter().map(of_column).fold(0.0, f64::max))
    }

    pub(crate) fn read(&self, row: usize, position: Position, reading: Reading) -> f64 {
        reading.value(self.curve(row), position)
    }

    /// The values of one row, one per grid point.
    pub(crate) fn curve(&self, row: usize) -> &[f64] {
        let (n_columns, survival) =
            (self.grid.len(), self.survival.as_slice().expect("made row-major on construction"));
        &survival[row * n_columns..][..n_columns]
    }

    /// S of many rows at several positions: `[positions, rows]`, row-major.
    ///
    /// Reads every row once, from one end to the other: reading column by column would miss the cache at each value.
    pub(crate) fn read_block(&self, rows: &[u32], positions: &[Position], reading: Reading) -> Vec<f64> {
        let mut block = vec![0.0; positions.len() * rows.len()];
        for (place, &row) in rows.iter().enumerate() {
            let curve = self.curve(row as usize);
            for (position, values) in positions.iter().zip(block.chunks_exact_mut(rows.len())) {
                values[place] = reading.value(curve, *position);
            }
        }
        block
    }

    pub(crate) fn check_rows(&self, n: usize) -> Result<(), MetricError> {
        if self.n() == n {
            Ok(())
        } else {
            Err(MetricError::LengthMismatch { what: "survival curves", found: self.n(), expected: n })
        }
    }
}

/// Finite, >= 0, strictly increasing, at least one point.
pub(crate) fn check_grid(grid: &[f64]) -> Result<(), MetricError> {
    if grid.is_empty() {
        return Err(MetricError::EmptyGrid);
    }
    let mut before = f64::NEG_INFINITY;
    for (index, &time) in grid.iter().enumerate() {
        if !(time.is_finite() && time >= 0.0 && time > before) {
            return Err(MetricError::InvalidGrid { index, time });
        }
        before = time;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::array;

    use super::*;

    // Probability-mass curve of `pycox` 0.3.0 on cuts 0..3, and its `interpolate(2)` values.
    const PMF: [f64; 4] = [0.855_447_1, 0.823_193, 0.175_351_7, 0.087_675_9];
    const PMF_REFINED: [f64; 7] =
        [0.855_447_1, 0.839_32, 0.823_193, 0.499_272_3, 0.175_351_7, 0.131_513_8, 0.087_675_9];
    // Logistic-hazard curve of the same package, with linear and with constant-hazard interpolation.
    const HAZARD: [f64; 4] = [0.377_540_7, 0.276_004_5, 0.032_900_6, 0.016_450_3];
    const HAZARD_LINEAR: [f64; 7] =
        [0.377_540_7, 0.326_772_6, 0.276_004_5, 0.154_452_5, 0.032_900_6, 0.024_675_4, 0.016_450_3];
    const HAZARD_CONSTANT: [f64; 7] =
        [0.377_540_6, 0.322_804_7, 0.276_004_4, 0.095_292_7, 0.032_900_6, 0.023_264_2, 0.016_450_3];

    fn curve(values: [f64; 4]) -> SurvivalCurves {
        SurvivalCurves::new(vec![0.0, 1.0, 2.0, 3.0], array![values]).unwrap()
    }

    #[test]
    fn refined_and_constant_hazard_readings_match_pycox() {
        let cases = [
            (PMF, Reading::Refined { factor: 2 }, PMF_REFINED),
            (HAZARD, Reading::Refined { factor: 2 }, HAZARD_LINEAR),
            (HAZARD, Reading::ConstantHazard, HAZARD_CONSTANT),
        ];
        for (values, reading, expected) in cases {
            for (k, expected) in expected.into_iter().enumerate() {
                assert_abs_diff_eq!(curve(values).at(0, k as f64 / 2.0, reading), expected, epsilon = 2e-7);
            }
        }
    }

    #[test]
    fn a_refined_reading_with_one_part_is_a_step_and_with_many_approaches_the_line() {
        let curves = curve(PMF);
        for t in [0.0, 0.3, 1.0, 1.7, 2.999, 3.0, 8.0] {
            assert_eq!(curves.at(0, t, Reading::Refined { factor: 1 }), curves.at(0, t, Reading::Step));
            let fine = curves.at(0, t, Reading::Refined { factor: 1_000_000 });
            assert_abs_diff_eq!(fine, curves.at(0, t, Reading::Linear), epsilon = 1e-6);
        }
    }

    #[test]
    fn only_all_rows_in_their_order_are_borrowed() {
        let curves = SurvivalCurves::new(vec![1.0], array![[0.9], [0.5]]).unwrap();
        assert!(matches!(curves.rows(&[0, 1]), Cow::Borrowed(_)));
        for rows in [&[1, 0][..], &[0], &[0, 1, 1]] {
            assert!(matches!(curves.rows(rows), Cow::Owned(found) if found == curves.select(rows)));
        }
    }

    #[test]
    fn noise_is_cleaned_and_errors_name_row_and_column() {
        let noisy = SurvivalCurves::new(vec![0.0, 1.0, 2.0], array![[1.000_000_5, 0.5, 0.500_000_9]]).unwrap();
        assert_eq!(noisy.survival(), array![[1.0, 0.5, 0.5]]);
        let tiny = SurvivalCurves::new(vec![1.0], array![[-1e-9]]).unwrap();
        assert!(tiny.survival()[[0, 0]].is_sign_positive());
        let rising = SurvivalCurves::new(vec![0.0, 1.0], array![[0.5, 0.4], [0.5, 0.6]]);
        assert_eq!(rising, Err(MetricError::RisingSurvival { row: 1, column: 1, before: 0.5, value: 0.6 }));
        let above = SurvivalCurves::new(vec![0.0, 1.0], array![[0.5, 0.4], [1.5, 0.6]]);
        assert_eq!(above, Err(MetricError::InvalidSurvival { row: 1, column: 0, value: 1.5 }));
        let nan = SurvivalCurves::new(vec![0.0], array![[f64::NAN]]);
        assert!(matches!(nan, Err(MetricError::InvalidSurvival { row: 0, column: 0, .. })));
    }

    #[test]
    fn a_grid_must_be_finite_and_increasing_and_fit_the_columns() {
        let build = |grid: Vec<f64>| SurvivalCurves::new(grid, array![[0.5, 0.4]]).unwrap_err();
        assert_eq!(build(vec![]), MetricError::EmptyGrid);
        assert_eq!(build(vec![1.0, 1.0]), MetricError::InvalidGrid { index: 1, time: 1.0 });
        assert_eq!(build(vec![-1.0, 1.0]), MetricError::InvalidGrid { index: 0, time: -1.0 });
        assert_eq!(build(vec![1.0]), MetricError::GridMismatch { columns: 2, n_times: 1 });
    }

    #[test]
    fn the_mean_curve_averages_rows_and_is_none_without_rows() {
        let curves = SurvivalCurves::new(vec![0.0, 1.0], array![[1.0, 0.5], [1.0, 0.25]]).unwrap();
        assert_eq!(curves.mean(), Some(vec![1.0, 0.375]));
        assert_eq!(curves.select(&[]).mean(), None);
    }
}
