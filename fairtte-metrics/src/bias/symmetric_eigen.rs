//! Eigenvalues and eigenvectors of a symmetric matrix.
//!
//! Householder reflections make the matrix tridiagonal; Givens rotations with Wilkinson's shift make it diagonal.
//! Source: Golub & Van Loan (2013), Matrix Computations, 4th ed., algorithms 8.3.1 to 8.3.3. Checked against numpy
//! through the principal components of scikit-learn (`components.rs`).

use ndarray::{Array1, Array2, Axis, azip, s};

/// Steps per eigenvalue; two or three are usual.
const MOST_STEPS: usize = 60;

/// The eigenvalues of a symmetric matrix in descending order, each with its eigenvector of length 1 as a row.
pub(super) struct SymmetricEigen {
    pub(super) values: Vec<f64>,
    /// `[n, n]`
    pub(super) vectors: Array2<f64>,
}

impl SymmetricEigen {
    /// Decomposes `matrix` `[n, n]`, symmetric and finite; `None` if the steps do not converge. O(n^3).
    pub(super) fn of(matrix: Array2<f64>) -> Option<Self> {
        let (mut tridiagonal, mut vectors) = tridiagonalise(matrix);
        tridiagonal.diagonalise(&mut vectors)?;
        let mut order: Vec<usize> = (0..tridiagonal.diagonal.len()).collect();
        order.sort_by(|a, b| tridiagonal.diagonal[*b].total_cmp(&tridiagonal.diagonal[*a]));
        let values = order.iter().map(|place| tridiagonal.diagonal[*place]).collect();
        Some(Self { values, vectors: vectors.select(Axis(0), &order) })
    }
}

/// A symmetric tridiagonal matrix.
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// Cell k is beside the diagonal in row k.
    beside: Vec<f64>,
}

/// Returns T and the rows Q with `matrix` = Q' T Q.
fn tridiagonalise(mut matrix: Array2<f64>) -> (Tridiagonal, Array2<f64>) {
    let n = matrix.nrows();
    let mut reflections: Vec<Array1<f64>> = Vec::new();
    let mut beside = Vec::with_capacity(n.saturating_sub(1));
    for k in 0..n.saturating_sub(1) {
        let mut v = matrix.slice(s![k + 1.., k]).to_owned();
        let length = v.dot(&v).sqrt();
        let reflected = if v[0] > 0.0 { -length } else { length };
        v[0] -= reflected;
        let squared = v.dot(&v);
        if squared > 0.0 {
            v *= (2.0 / squared).sqrt(); // the reflection is I - v v'
            let mut below = matrix.slice_mut(s![k + 1.., k + 1..]);
            let mut w = below.dot(&v);
            let half = w.dot(&v) / 2.0;
            azip!((w in &mut w, v in &v) *w -= half * v);
            for (row, mut cells) in below.rows_mut().into_iter().enumerate() {
                let (of_v, of_w) = (v[row], w[row]);
                azip!((cell in &mut cells, v in &v, w in &w) *cell -= of_v * w + of_w * v);
            }
        }
        beside.push(reflected);
        reflections.push(v);
    }
    let diagonal = matrix.diag().to_vec();
    let mut columns = Array2::eye(n); // the product of the reflections, from the last
    for (k, v) in reflections.iter().enumerate().rev() {
        let mut below = columns.slice_mut(s![k + 1.., k + 1..]);
        let along = v.dot(&below);
        for (row, mut cells) in below.rows_mut().into_iter().enumerate() {
            azip!((cell in &mut cells, along in &along) *cell -= v[row] * along);
        }
    }
    (Tridiagonal { diagonal, beside }, columns.t().as_standard_layout().into_owned())
}

impl Tridiagonal {
    /// Makes the matrix diagonal; the same rotations are applied to the rows of `vectors`.
    fn diagonalise(&mut self, vectors: &mut Array2<f64>) -> Option<()> {
        let Some(mut last) = self.diagonal.len().checked_sub(1) else { return Some(()) };
        let mut steps = 0;
        while last > 0 {
            for k in 0..last {
                if self.beside[k].abs() <= f64::EPSILON * (self.diagonal[k].abs() + self.diagonal[k + 1].abs()) {
                    self.beside[k] = 0.0;
                }
            }
            if self.beside[last - 1] == 0.0 {
                last -= 1;
                steps = 0;
                continue;
            }
            let first = (0..last).rev().find(|k| self.beside[*k] == 0.0).map_or(0, |k| k + 1);
            self.step(first, last, vectors);
            steps += 1;
            if steps > MOST_STEPS {
                return None;
            }
        }
        Some(())
    }

    /// One implicit step on the rows `first` to `last`, whose cells beside the diagonal are not 0.
    fn step(&mut self, first: usize, last: usize, vectors: &mut Array2<f64>) {
        let (diagonal, beside) = (&mut self.diagonal, &mut self.beside);
        let half = f64::midpoint(diagonal[last - 1], -diagonal[last]);
        let corner = beside[last - 1];
        let shift = diagonal[last] - corner * corner / (half + half.hypot(corner).copysign(half));
        let (mut head, mut bulge) = (diagonal[first] - shift, beside[first]);
        for k in first..last {
            let length = head.hypot(bulge);
            let (c, s) = if length > 0.0 { (head / length, bulge / length) } else { (1.0, 0.0) };
            if k > first {
                beside[k - 1] = length;
            }
            let (upper, between, lower) = (diagonal[k], beside[k], diagonal[k + 1]);
            diagonal[k] = c * c * upper + 2.0 * c * s * between + s * s * lower;
            diagonal[k + 1] = s * s * upper - 2.0 * c * s * between + c * c * lower;
            beside[k] = c * s * (lower - upper) + (c * c - s * s) * between;
            if k + 1 < last {
                (head, bulge) = (beside[k], s * beside[k + 1]);
                beside[k + 1] *= c;
            }
            let (mut first, mut second) = vectors.multi_slice_mut((s![k, ..], s![k + 1, ..]));
            azip!((x in &mut first, y in &mut second) (*x, *y) = (c * *x + s * *y, c * *y - s * *x));
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::array;

    use super::*;

    #[test]
    fn the_parts_give_the_matrix_again() {
        let n = 23;
        let noise = Array2::from_shape_fn((n, n), |(i, j)| ((3 * i + 7 * j * j + i * j) as f64).sin());
        let matrix = noise.dot(&noise.t());
        let found = SymmetricEigen::of(matrix.clone()).unwrap();
        assert!(found.values.windows(2).all(|pair| pair[0] >= pair[1]));
        let differ = |a: &Array2<f64>, b: &Array2<f64>| (a - b).iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        assert!(differ(&found.vectors.dot(&found.vectors.t()), &Array2::eye(n)) < 1e-12);
        let scaled = &found.vectors * &Array1::from_vec(found.values.clone()).insert_axis(Axis(1));
        assert!(differ(&found.vectors.t().dot(&scaled), &matrix) < 1e-11);
    }

    #[test]
    fn equal_and_zero_eigenvalues_and_the_smallest_sizes_are_exact() {
        let found = SymmetricEigen::of(array![[2.0, 1.0], [1.0, 2.0]]).unwrap();
        assert_abs_diff_eq!(found.values[..], [3.0, 1.0][..], epsilon = 1e-14);
        assert_eq!(SymmetricEigen::of(Array2::eye(4)).unwrap().values, [1.0; 4]);
        assert_eq!(SymmetricEigen::of(Array2::zeros((3, 3))).unwrap().values, [0.0; 3]);
        assert_eq!(SymmetricEigen::of(array![[5.0]]).unwrap().values, [5.0]);
        // Two equal rows: rank 1.
        let ones = SymmetricEigen::of(Array2::ones((6, 6))).unwrap();
        assert_abs_diff_eq!(ones.values[..], [6.0, 0.0, 0.0, 0.0, 0.0, 0.0][..], epsilon = 1e-14);
    }
}
