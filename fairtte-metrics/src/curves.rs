//! Predicted survival curves of many samples on one time grid.

use std::sync::{Arc, OnceLock};

use ndarray::{Array1, Array2, Axis};

use crate::MetricError;
use crate::ids::to_u32;
use crate::reading::{Position, Reading};

/// The tolerated numerical noise: how much a survival probability may rise between two columns or leave [0, 1].
///
/// The noise of a model that computes in `f32` and subtracts a cumulative sum from 1 is well below it.
pub const SURVIVAL_TOLERANCE: f64 = 1e-6;

/// S(t) of `n` samples on a shared grid of times; `survival[[row, k]]` = S of sample `row` at `grid[k]`.
///
/// Clones and [selected](Self::select) rows share the memory of the curves that they come from, which stays as long as one of
/// them.
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
#[derive(Clone, Debug)]
pub struct SurvivalCurves {
    grid: Arc<[f64]>,
    /// `[n_source, n_times]`, row-major.
    source: Arc<Array2<f64>>,
    /// The rows of the source that these curves are; all of them without it.
    selected: Option<Selected>,
}

/// Rows of other curves.
#[derive(Clone, Debug)]
struct Selected {
    rows: Arc<[u32]>,
    /// A copy of them, made when it is first asked for.
    gathered: OnceLock<Array2<f64>>,
}

impl PartialEq for SurvivalCurves {
    fn eq(&self, other: &Self) -> bool {
        self.grid == other.grid && self.n() == other.n() && (0..self.n()).all(|row| self.curve(row) == other.curve(row))
    }
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
        Ok(Self { grid: grid.into(), source: Arc::new(survival), selected: None })
    }

    /// Times of the columns, in the unit of the data set.
    pub fn grid(&self) -> &[f64] {
        &self.grid
    }

    /// Survival probabilities, `[n, n_times]`; of [selected](Self::select) rows a copy, which is kept.
    pub fn survival(&self) -> &Array2<f64> {
        match &self.selected {
            None => &self.source,
            Some(selected) => selected.gathered.get_or_init(|| self.gather(&selected.rows)),
        }
    }

    /// The probabilities `[n, n_times]` themselves, without a copy unless other curves share their memory.
    pub fn into_survival(self) -> Array2<f64> {
        match self.selected {
            None => Arc::unwrap_or_clone(self.source),
            Some(ref selected) => self.gather(&selected.rows),
        }
    }

    fn gather(&self, rows: &[u32]) -> Array2<f64> {
        let index: Vec<usize> = rows.iter().map(|row| *row as usize).collect();
        self.source.select(Axis(0), &index)
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.selected.as_ref().map_or_else(|| self.source.nrows(), |selected| selected.rows.len())
    }

    /// The rows at `index`, in that order; a row may be taken more than once. The curves themselves are not copied.
    ///
    /// # Panics
    /// If an index is not below [`n`](Self::n).
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        let rows = index.iter().map(|&row| self.source_row(row)).collect();
        let selected = Some(Selected { rows, gathered: OnceLock::new() });
        Self { grid: Arc::clone(&self.grid), source: Arc::clone(&self.source), selected }
    }

    /// The row of the source.
    fn source_row(&self, row: usize) -> u32 {
        if let Some(selected) = &self.selected {
            return selected.rows[row];
        }
        assert!(row < self.source.nrows(), "row {row} of {} curves", self.source.nrows());
        to_u32(row)
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
        let sum = match &self.selected {
            None => self.source.sum_axis(Axis(0)),
            // A column that is a vector is added up in another order.
            Some(_) if self.grid.len() == 1 => self.survival().sum_axis(Axis(0)),
            Some(_) => (0..self.n())
                .fold(Array1::zeros(self.grid.len()), |sum, row| sum + ndarray::ArrayView1::from(self.curve(row))),
        };
        (self.n() > 0).then(|| (sum / self.n() as f64).to_vec())
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
        let mut ends = vec![(1.0_f64, 0.0_f64); self.grid.len()];
        for row in 0..self.n() {
            for ((low, high), s) in ends.iter_mut().zip(self.curve(row)) {
                (*low, *high) = (low.min(*s), high.max(*s));
            }
        }
        (self.n() > 1).then(|| ends.into_iter().map(|(low, high)| high - low).fold(0.0, f64::max))
    }

    pub(crate) fn read(&self, row: usize, position: Position, reading: Reading) -> f64 {
        reading.value(self.curve(row), position)
    }

    /// The values of one row, one per grid point.
    pub(crate) fn curve(&self, row: usize) -> &[f64] {
        let row = self.selected.as_ref().map_or(row, |selected| selected.rows[row] as usize);
        let (n_columns, survival) = (self.grid.len(), self.source.as_slice().expect("made row-major on construction"));
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
    fn selected_rows_are_those_of_the_source_and_share_its_memory() {
        let values = Array2::from_shape_fn((7, 3), |(row, k)| 0.9 / (1.0 + 0.37 * row as f64 + k as f64));
        let curves = SurvivalCurves::new(vec![0.0, 1.0, 2.0], values.clone()).unwrap();
        let some = curves.select(&[5, 1, 1, 6]);
        let expected = SurvivalCurves::new(vec![0.0, 1.0, 2.0], values.select(Axis(0), &[5, 1, 1, 6])).unwrap();
        assert_eq!(some.n(), 4);
        assert!(std::ptr::eq(some.curve(1).as_ptr(), curves.curve(1).as_ptr()));
        assert_eq!(some, expected);
        assert_ne!(some, curves.select(&[5, 1, 6, 1]));
        assert_ne!(some, curves.select(&[5, 1, 1]));
        // The same operations in the same order: equal to the last bit.
        assert_eq!((some.mean(), some.spread()), (expected.mean(), expected.spread()));
        assert_eq!(some.all_at(1.5, Reading::Linear), expected.all_at(1.5, Reading::Linear));
        let again = some.select(&[3, 0]);
        assert_eq!(again.survival(), values.select(Axis(0), &[6, 5]));
        assert_eq!(again.clone().into_survival(), values.select(Axis(0), &[6, 5]));
        assert_eq!((curves.survival(), curves.clone().into_survival()), (&values, values.clone()));
        assert_eq!(again.survival().as_ptr(), again.survival().as_ptr());
    }

    #[test]
    fn one_owner_gives_its_probabilities_away_without_a_copy() {
        let curves = SurvivalCurves::new(vec![0.0, 1.0], array![[1.0, 0.5], [0.9, 0.25]]).unwrap();
        let place = curves.survival().as_ptr();
        let shared = curves.clone();
        assert_ne!(shared.into_survival().as_ptr(), place);
        let owned = curves.into_survival();
        assert_eq!((owned.as_ptr(), owned), (place, array![[1.0, 0.5], [0.9, 0.25]]));
    }

    #[test]
    #[should_panic(expected = "row 2 of 2 curves")]
    fn a_row_that_does_not_exist_is_not_selected() {
        let _ = SurvivalCurves::new(vec![1.0], array![[0.9], [0.5]]).unwrap().select(&[2]);
    }

    #[test]
    fn one_column_of_selected_rows_has_the_mean_of_a_copy() {
        let values = Array2::from_shape_fn((40, 1), |(row, _)| 1.0 / (1.0 + 0.1 * row as f64));
        let rows: Vec<usize> = (0..40).rev().step_by(3).collect();
        let copied = SurvivalCurves::new(vec![1.0], values.select(Axis(0), &rows)).unwrap();
        assert_eq!(SurvivalCurves::new(vec![1.0], values).unwrap().select(&rows).mean(), copied.mean());
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
