//! Where survival probabilities lie, and what is removed from them as noise.

use std::fmt;
use std::sync::Arc;

use ndarray::{Array2, ArrayView2, Axis};

use super::SURVIVAL_TOLERANCE;
use crate::MetricError;

/// Probabilities in the memory of another owner, which stays as long as this.
pub type SharedValues = Arc<dyn AsRef<[f64]> + Send + Sync>;

/// The probabilities, row after row.
#[derive(Clone)]
pub(super) enum Source {
    /// `[n, n_times]`, row-major.
    Owned(Arc<Array2<f64>>),
    /// `n` rows.
    Shared { values: SharedValues, n: usize },
}

impl Source {
    /// Number of rows.
    pub(super) fn n(&self) -> usize {
        match self {
            Self::Owned(survival) => survival.nrows(),
            Self::Shared { n, .. } => *n,
        }
    }

    /// All values.
    pub(super) fn values(&self) -> &[f64] {
        match self {
            Self::Owned(survival) => survival.as_slice().expect("made row-major on construction"),
            Self::Shared { values, .. } => (**values).as_ref(),
        }
    }

    /// As a matrix `[n, n_times]`.
    pub(super) fn view(&self, n_times: usize) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.n(), n_times), self.values()).expect("its length was checked on construction")
    }

    /// A copy of some rows.
    pub(super) fn select(&self, n_times: usize, rows: &[u32]) -> Array2<f64> {
        let index: Vec<usize> = rows.iter().map(|row| *row as usize).collect();
        self.view(n_times).select(Axis(0), &index)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values()).finish()
    }
}

/// Checks one curve and removes its noise, value by value.
pub(super) struct Cleaning {
    row: usize,
    column: usize,
    lowest: f64,
}

impl Cleaning {
    pub(super) fn new(row: usize) -> Self {
        Self { row, column: 0, lowest: 1.0 }
    }

    /// The next value of the curve without its noise.
    ///
    /// # Errors
    /// [`MetricError::InvalidSurvival`] or [`MetricError::RisingSurvival`] for more than noise.
    pub(super) fn next(&mut self, value: f64) -> Result<f64, MetricError> {
        let Self { row, column, lowest } = *self;
        if !(-SURVIVAL_TOLERANCE..=1.0 + SURVIVAL_TOLERANCE).contains(&value) {
            return Err(MetricError::InvalidSurvival { row, column, value });
        }
        if value > lowest + SURVIVAL_TOLERANCE {
            return Err(MetricError::RisingSurvival { row, column, before: lowest, value });
        }
        self.column += 1;
        // Not `max`: a negative zero would sort below zero.
        self.lowest = if value <= 0.0 { 0.0 } else { lowest.min(value) };
        Ok(self.lowest)
    }
}
