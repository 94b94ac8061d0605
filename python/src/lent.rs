//! Matrices of `NumPy` that are read where they lie.
#![expect(unsafe_code, reason = "memory of Python is read without the GIL, on threads of Rust")]

use std::sync::Arc;

use fairtte_metrics::{MetricError, SharedValues, SurvivalCurves};
use ndarray::Array2;
use numpy::{PyArray2, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::prelude::*;

use crate::arrays::Matrix;

/// The rows of an array of Python, in C order and double precision. The array stays as long as this, and with it its memory:
/// `NumPy` resizes no array that somebody else refers to.
struct Lent {
    _array: Py<PyArray2<f64>>,
    start: *const f64,
    len: usize,
}

// SAFETY: the memory is only read, and `_array`, a reference to a Python object, may itself cross threads.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl AsRef<[f64]> for Lent {
    fn as_ref(&self) -> &[f64] {
        // SAFETY: `start` and `len` are those of the slice of `_array`, which is aligned, in one piece, and stays. Callers may
        // not write to it meanwhile, as the package documents; every bit pattern is a number, and `Curves` detects a change.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Lent {
    /// `None` for another order of the memory.
    fn new(array: &PyReadonlyArray2<'_, f64>) -> Option<Arc<Self>> {
        // A slice of Fortran order is one as well.
        let values = array.as_slice().ok().filter(|_| array.is_c_contiguous())?;
        let (start, len) = (values.as_ptr(), values.len());
        Some(Arc::new(Self { _array: (**array).clone().unbind(), start, len }))
    }

    fn digest(&self) -> blake3::Hash {
        blake3::hash(bytemuck::cast_slice(self.as_ref()))
    }
}

/// A matrix of survival probabilities before it is checked: that of the caller, or a copy in rows and double precision.
pub(crate) struct Rows {
    n: usize,
    memory: Memory,
}

enum Memory {
    Lent(Arc<Lent>),
    Copied(Array2<f64>),
}

impl Rows {
    /// Copies `[n, k]` only if it is not of double precision and C order.
    ///
    /// # Errors
    /// Those of [`Matrix::to_rows`].
    pub(crate) fn new(matrix: &Matrix<'_>, py: Python<'_>) -> PyResult<Self> {
        let lent = match matrix {
            Matrix::Double(array) => Lent::new(array).map(|lent| (array.shape()[0], lent)),
            Matrix::Single(_) => None,
        };
        if let Some((n, lent)) = lent {
            return Ok(Self { n, memory: Memory::Lent(lent) });
        }
        let copied = matrix.to_rows(py)?;
        Ok(Self { n: copied.nrows(), memory: Memory::Copied(copied) })
    }

    /// Number of rows.
    pub(crate) fn n(&self) -> usize {
        self.n
    }
}

/// Checked curves, and what tells whether their memory was written to since.
pub(crate) struct Curves {
    curves: SurvivalCurves,
    lent: Option<(Arc<Lent>, blake3::Hash)>,
}

impl Curves {
    /// The curves at the times `grid`; `n_columns` is the number of columns of the matrix.
    ///
    /// # Errors
    /// Those of [`SurvivalCurves::new`].
    pub(crate) fn new(grid: Vec<f64>, rows: Rows) -> Result<Self, MetricError> {
        let lent = match rows.memory {
            Memory::Copied(copied) => return Ok(Self { curves: SurvivalCurves::new(grid, copied)?, lent: None }),
            Memory::Lent(lent) => lent,
        };
        let n_columns = lent.len.checked_div(rows.n).unwrap_or(grid.len());
        if n_columns != grid.len() {
            return Err(MetricError::GridMismatch { columns: n_columns, n_times: grid.len() });
        }
        let digest = lent.digest();
        let shared: SharedValues = Arc::<Lent>::clone(&lent);
        let curves = SurvivalCurves::of_shared(grid, rows.n, shared)?;
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
