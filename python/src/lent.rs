//! Matrices of `NumPy` that are read where they lie.
#![expect(unsafe_code, reason = "memory of Python is read without the GIL, on threads of Rust")]

use std::sync::Arc;

use fairtte_metrics::{MetricError, SharedValues, SurvivalCurves};
use ndarray::Array2;
use numpy::{PyArray2, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::prelude::*;

use crate::arrays::Matrix;

/// The rows of an array of Python, in C order and double precision. The array stays as long as this, and with it its memory:
/// `NumPy` resizes no array that has other references.
pub(crate) struct Lent {
    _array: Py<PyArray2<f64>>,
    start: *const f64,
    /// Rows and columns.
    shape: [usize; 2],
}

// SAFETY: the memory is only read, and `_array`, a reference to a Python object, may itself cross threads.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl AsRef<[f64]> for Lent {
    fn as_ref(&self) -> &[f64] {
        // SAFETY: `start` and the length are those of the slice of `_array`, which is aligned, in one piece, and stays. Callers may
        // not write to it meanwhile, as the package documents; every bit pattern is a number, and `Curves` detects a change.
        unsafe { std::slice::from_raw_parts(self.start, self.shape[0] * self.shape[1]) }
    }
}

impl Lent {
    /// `None` for another order of the memory.
    fn new(array: &PyReadonlyArray2<'_, f64>) -> Option<Arc<Self>> {
        // A slice of Fortran order is one as well.
        let values = array.as_slice().ok().filter(|_| array.is_c_contiguous())?;
        let (start, shape) = (values.as_ptr(), [array.shape()[0], array.shape()[1]]);
        Some(Arc::new(Self { _array: (**array).clone().unbind(), start, shape }))
    }

    fn digest(&self) -> blake3::Hash {
        blake3::hash(bytemuck::cast_slice(self.as_ref()))
    }
}

/// A matrix of survival probabilities before it is checked: that of the caller, or a copy in rows and double precision.
pub(crate) enum Rows {
    Lent(Arc<Lent>),
    Copied(Array2<f64>),
}

impl Rows {
    /// Copies `[n, k]` only if it is not of double precision and C order.
    ///
    /// # Errors
    /// Those of [`Matrix::to_rows`].
    pub(crate) fn new(matrix: &Matrix<'_>, py: Python<'_>) -> PyResult<Self> {
        if let Matrix::Double(array) = matrix
            && let Some(lent) = Lent::new(array)
        {
            return Ok(Self::Lent(lent));
        }
        matrix.to_rows(py).map(Self::Copied)
    }

    /// Number of rows.
    pub(crate) fn n(&self) -> usize {
        match self {
            Self::Lent(lent) => lent.shape[0],
            Self::Copied(copied) => copied.nrows(),
        }
    }
}

/// Checked curves, and what tells whether their memory was written to since.
pub(crate) struct Curves {
    curves: SurvivalCurves,
    lent: Option<(Arc<Lent>, blake3::Hash)>,
}

impl Curves {
    /// The curves at the times `grid`.
    ///
    /// # Errors
    /// Those of [`SurvivalCurves::new`].
    pub(crate) fn new(grid: Vec<f64>, rows: Rows) -> Result<Self, MetricError> {
        let lent = match rows {
            Rows::Copied(copied) => return Ok(Self { curves: SurvivalCurves::new(grid, copied)?, lent: None }),
            Rows::Lent(lent) => lent,
        };
        let [n, columns] = lent.shape;
        if columns != grid.len() {
            return Err(MetricError::GridMismatch { columns, n_times: grid.len() });
        }
        let digest = lent.digest();
        let shared: SharedValues = Arc::<Lent>::clone(&lent);
        let curves = SurvivalCurves::of_shared(grid, n, shared)?;
        // A copy without noise does not read the array again.
        let is_read = std::ptr::eq(curves.survival().as_ptr(), lent.start);
        Ok(Self { curves, lent: is_read.then_some((lent, digest)) })
    }

    pub(crate) fn get(&self) -> &SurvivalCurves {
        &self.curves
    }

    /// What was computed from the curves is of one matrix only if nothing wrote to it.
    ///
    /// # Errors
    /// The message if something did.
    pub(crate) fn require_unchanged(&self) -> Result<(), String> {
        match &self.lent {
            Some((lent, digest)) if lent.digest() != *digest => {
                Err("survival was written to during or after its evaluation, \
                 which reads it without a copy; expected an array that keeps its values, such as survival.copy()"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }
}
