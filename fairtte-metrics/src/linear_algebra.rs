//! Systems of equations with a symmetric positive definite matrix.

use ndarray::{Array1, Array2};

/// The lower triangle L of `matrix` = L L' (Cholesky), the upper triangle as it was. O(n^3).
///
/// # Errors
/// The first row whose pivot is not above `tolerance` times its diagonal cell, or not finite.
pub fn cholesky(mut matrix: Array2<f64>, tolerance: f64) -> Result<Array2<f64>, usize> {
    for j in 0..matrix.nrows() {
        for i in j..matrix.nrows() {
            let done: f64 = (0..j).map(|k| matrix[[i, k]] * matrix[[j, k]]).sum();
            let rest = matrix[[i, j]] - done;
            if i == j && !(rest > tolerance * matrix[[i, i]] && rest > 0.0 && rest.is_finite()) {
                return Err(i);
            }
            matrix[[i, j]] = if i == j { rest.sqrt() } else { rest / matrix[[j, j]] };
        }
    }
    Ok(matrix)
}

/// Solves L L' x = `vector`, with the lower triangle L of [`cholesky`]. O(n^2).
pub fn solve_lower(lower: &Array2<f64>, vector: &Array1<f64>) -> Array1<f64> {
    let n = vector.len();
    let mut x = vector.clone();
    for i in 0..n {
        let done: f64 = (0..i).map(|k| lower[[i, k]] * x[k]).sum();
        x[i] = (x[i] - done) / lower[[i, i]];
    }
    for i in (0..n).rev() {
        let done: f64 = (i + 1..n).map(|k| lower[[k, i]] * x[k]).sum();
        x[i] = (x[i] - done) / lower[[i, i]];
    }
    x
}

/// Solves `matrix` x = `vector`; `None` unless the matrix is positive definite. O(n^3).
pub fn cholesky_solve(matrix: Array2<f64>, vector: &Array1<f64>) -> Option<Array1<f64>> {
    cholesky(matrix, 0.0).ok().map(|lower| solve_lower(&lower, vector))
}
