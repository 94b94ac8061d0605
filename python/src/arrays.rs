//! From arrays of `NumPy` to the types of the crates, each array copied once.

use fairtte_metrics::{Outcomes, SubjectId};
use ndarray::{Array2, ArrayView2, Axis, Zip};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::errors::{Names, metric_error, of_metric};
use crate::pool::detached;

/// A matrix of either precision.
#[derive(FromPyObject)]
pub(crate) enum Matrix<'py> {
    Double(PyReadonlyArray2<'py, f64>),
    Single(PyReadonlyArray2<'py, f32>),
}

impl Matrix<'_> {
    /// The only copy: `[n, k]` in rows, of double precision. Other Python threads run meanwhile.
    ///
    /// # Errors
    /// `InternalError` for a panic.
    pub(crate) fn to_rows(&self, py: Python<'_>) -> PyResult<Array2<f64>> {
        match self {
            Self::Double(array) => {
                let array = array.as_array();
                detached(py, move || in_rows(array, |value| value))
            }
            Self::Single(array) => {
                let array = array.as_array();
                detached(py, move || in_rows(array, f64::from))
            }
        }
    }
}

/// Copies in the order of the memory that is read, in blocks of rows where that is not the order of the rows.
fn in_rows<T: Copy>(from: ArrayView2<'_, T>, convert: impl Fn(T) -> f64) -> Array2<f64> {
    const BLOCK: usize = 64;
    if from.is_standard_layout() {
        return from.map(|value| convert(*value));
    }
    let mut rows = Array2::zeros(from.raw_dim());
    let blocks = rows.axis_chunks_iter_mut(Axis(0), BLOCK).zip(from.axis_chunks_iter(Axis(0), BLOCK));
    for (to, from) in blocks {
        Zip::from(to.reversed_axes()).and(from.reversed_axes()).for_each(|to, value| *to = convert(*value));
    }
    rows
}

pub(crate) type Numbers<'py> = PyReadonlyArray1<'py, f64>;
pub(crate) type Flags<'py> = PyReadonlyArray1<'py, bool>;

/// Times and events.
///
/// # Errors
/// `MetricError` if the lengths differ or a time is not a finite number >= 0.
pub(crate) fn outcomes(time: &Numbers<'_>, event: &Flags<'_>, names: Names) -> PyResult<Outcomes> {
    let (time, event) = (time.as_array().to_vec(), event.as_array().to_vec());
    if time.len() != event.len() {
        let message = format!("{} has {} values and event {}, expected as many", names.time, time.len(), event.len());
        return Err(metric_error(message));
    }
    Outcomes::new(time, event).map_err(|error| of_metric(&error, names))
}

/// The subject of each of `n` samples; without `subjects`, every sample is of another one.
///
/// # Errors
/// `MetricError` if their number differs.
pub(crate) fn subject_ids(subjects: Option<Vec<String>>, n: usize) -> PyResult<Vec<SubjectId>> {
    match subjects {
        Some(subjects) if subjects.len() != n => {
            let message = format!("subject has {} values, expected {n}, one for each of time", subjects.len());
            Err(metric_error(message))
        }
        Some(subjects) => Ok(subjects.into_iter().map(SubjectId::new).collect()),
        None => Ok((0..n).map(|row| SubjectId::new(format!("{row:09}"))).collect()),
    }
}
