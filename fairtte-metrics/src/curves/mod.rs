//! Predicted survival curves of many samples on one time grid.

use std::sync::{Arc, OnceLock};

use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::MetricError;
use crate::ids::to_u32;
use crate::reading::{Position, Reading};

mod source;
#[cfg(test)]
mod tests;

pub use source::SharedValues;
use source::{Cleaning, Source};

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
    source: Source,
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
    pub fn new(grid: Vec<f64>, mut survival: Array2<f64>) -> Result<Self, MetricError> {
        let grid = checked_grid(grid)?;
        if survival.ncols() != grid.len() {
            return Err(MetricError::GridMismatch { columns: survival.ncols(), n_times: grid.len() });
        }
        if !survival.is_standard_layout() {
            survival = survival.as_standard_layout().into_owned();
        }
        for (row, mut curve) in survival.axis_iter_mut(Axis(0)).enumerate() {
            let mut cleaning = Cleaning::new(row);
            for value in &mut curve {
                *value = cleaning.next(*value)?;
            }
        }
        Ok(Self { grid: grid.into(), source: Source::Owned(Arc::new(survival)), selected: None })
    }

    /// [`new`](Self::new) for the memory of another owner, such as a mapped file or an array of another language:
    /// `survival` contains `n` rows of `n_times`, one after another. They are read there and not copied, unless noise has to be
    /// removed. The owner must give the same values as long as the curves exist.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use fairtte_metrics::SurvivalCurves;
    ///
    /// let shared: Arc<Vec<f64>> = Arc::new(vec![1.0, 0.8, 0.4, 1.0, 0.5, 0.25]);
    /// let curves = SurvivalCurves::of_shared(vec![0.0, 1.0, 2.0], 2, shared.clone())?;
    /// assert_eq!(curves.survival().row(1).to_vec(), [1.0, 0.5, 0.25]);
    /// assert_eq!(curves.survival().as_ptr(), shared.as_ptr());
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`new`](Self::new), and [`MetricError::LengthMismatch`] if there are not `n * n_times` values.
    pub fn of_shared(grid: Vec<f64>, n: usize, survival: SharedValues) -> Result<Self, MetricError> {
        let grid = checked_grid(grid)?;
        let source = Source::Shared { values: survival, n };
        let values = source.values();
        if Some(values.len()) != n.checked_mul(grid.len()) {
            let expected = n.saturating_mul(grid.len());
            return Err(MetricError::LengthMismatch { what: "survival probabilities", found: values.len(), expected });
        }
        let mut is_clean = true;
        for (row, curve) in values.chunks_exact(grid.len()).enumerate() {
            let mut cleaning = Cleaning::new(row);
            for value in curve {
                is_clean &= cleaning.next(*value)?.to_bits() == value.to_bits();
            }
        }
        if !is_clean {
            let copy = source.view(grid.len()).to_owned();
            return Self::new(grid, copy);
        }
        Ok(Self { grid: grid.into(), source, selected: None })
    }

    /// Times of the columns, in the unit of the data set.
    pub fn grid(&self) -> &[f64] {
        &self.grid
    }

    /// Survival probabilities, `[n, n_times]`; of [selected](Self::select) rows a copy, which is kept.
    pub fn survival(&self) -> ArrayView2<'_, f64> {
        match &self.selected {
            None => self.source.view(self.grid.len()),
            Some(selected) => selected.gathered.get_or_init(|| self.gather(&selected.rows)).view(),
        }
    }

    /// The probabilities `[n, n_times]` themselves, without a copy unless other curves or another owner share their memory.
    pub fn into_survival(self) -> Array2<f64> {
        match (self.selected, self.source) {
            (None, Source::Owned(survival)) => Arc::unwrap_or_clone(survival),
            (None, shared) => shared.view(self.grid.len()).to_owned(),
            (Some(Selected { rows, .. }), source) => source.select(self.grid.len(), &rows),
        }
    }

    fn gather(&self, rows: &[u32]) -> Array2<f64> {
        self.source.select(self.grid.len(), rows)
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.selected.as_ref().map_or_else(|| self.source.n(), |selected| selected.rows.len())
    }

    /// The rows at `index`, in that order; a row may be taken more than once. The curves themselves are not copied.
    ///
    /// # Panics
    /// If an index is not below [`n`](Self::n).
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        let rows = index.iter().map(|&row| self.source_row(row)).collect();
        let selected = Some(Selected { rows, gathered: OnceLock::new() });
        Self { grid: Arc::clone(&self.grid), source: self.source.clone(), selected }
    }

    /// The row of the source.
    fn source_row(&self, row: usize) -> u32 {
        if let Some(selected) = &self.selected {
            return selected.rows[row];
        }
        assert!(row < self.source.n(), "row {row} of {} curves", self.source.n());
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
            None => self.survival().sum_axis(Axis(0)),
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
        let n_columns = self.grid.len();
        &self.source.values()[row * n_columns..][..n_columns]
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

/// The grid if it [can be one](check_grid), -0.0 as 0.0.
fn checked_grid(mut grid: Vec<f64>) -> Result<Vec<f64>, MetricError> {
    check_grid(&grid)?;
    for time in &mut grid {
        *time += 0.0;
    }
    Ok(grid)
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
