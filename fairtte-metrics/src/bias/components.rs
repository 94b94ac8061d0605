//! A representation in fewer dimensions: every dimension standardised, then the principal components of largest variance.
//!
//! A dimension becomes (x - mean) / standard deviation with divisor n; a dimension without variance is left out. If at
//! most `n_components` are left, they are kept as they are, since distances and clusters do not depend on a rotation.
//! Otherwise the scores on the `n_components` eigenvectors of largest eigenvalue of the correlation matrix are returned;
//! with fewer samples than dimensions they are computed from the `[n, n]` matrix of inner products, which has the same
//! eigenvalues. The sign of a component is such that its score of largest size is positive.
//! Source: Jolliffe (2002), Principal Component Analysis, 2nd ed., sections 2.3 and 3.5. Golden values: scikit-learn
//! 1.9.1 `StandardScaler` and `PCA(svd_solver="full")`, recorded in the tests.

use ndarray::{Array1, Array2, ArrayRef2, Axis};
use serde::Serialize;

use super::quantise::check_matrix;
use super::symmetric_eigen::SymmetricEigen;
use super::wasserstein::representable;
use crate::MetricError;

/// Eigenvalues below this share of the largest are rounding.
const ROUNDING: f64 = 1e-10;

/// A representation in fewer dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Components {
    /// The samples along the kept directions, `[n, k]`.
    pub scores: Array2<f64>,
    /// What was done.
    pub reduction: Reduction,
}

/// How a representation became smaller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reduction {
    /// Dimensions of the representation.
    pub n_dimensions: usize,
    /// Dimensions among them that have the same value in every sample; they are left out.
    pub n_constant: usize,
    /// Dimensions that are left: principal components, or all that vary.
    pub n_components: usize,
    /// Share of the variance of the standardised dimensions that is left, in (0, 1].
    pub explained_variance: f64,
}

/// Standardises the columns of `representation` `[n, d]` and keeps at most `n_components` directions.
///
/// Cost: O(n d min(n, d) + min(n, d)^3) where directions are left out, otherwise O(n d).
///
/// # Errors
/// [`MetricError::NoSamples`] without rows or columns, [`MetricError::InvalidNumber`] for a number that is not finite,
/// [`MetricError::NotFinite`] if the eigenvalues do not converge, [`MetricError::ConstantRepresentation`] if no
/// dimension varies, [`MetricError::InvalidSetting`] if `n_components` is 0.
pub fn principal_components(representation: &ArrayRef2<f64>, n_components: usize) -> Result<Components, MetricError> {
    let rows: Vec<usize> = (0..representation.nrows()).collect();
    principal_components_fitted(representation, &rows, n_components)
}

/// As [`principal_components`], with means, deviations and directions of the rows `fitted_on` alone, for example those of
/// a training part; the scores are those of all rows. A dimension that does not vary among these rows is left out, and the
/// explained variance is theirs.
///
/// # Errors
/// As [`principal_components`]; [`MetricError::NoSamples`] if `fitted_on` is empty.
///
/// # Panics
/// If a row of `fitted_on` is not below the number of rows.
pub fn principal_components_fitted(
    representation: &ArrayRef2<f64>,
    fitted_on: &[usize],
    n_components: usize,
) -> Result<Components, MetricError> {
    if n_components == 0 {
        let (setting, expected) = ("components", "a whole number >= 1");
        return Err(MetricError::InvalidSetting { setting, value: "0".to_owned(), expected });
    }
    check_matrix(representation)?;
    let n_dimensions = representation.ncols();
    let fitting = representation.select(Axis(0), fitted_on);
    check_matrix(&fitting)?;
    let standardised = standardise(representation, &fitting)?;
    let n_varying = standardised.ncols();
    if n_varying == 0 {
        return Err(MetricError::ConstantRepresentation { n: fitting.nrows() });
    }
    let (scores, explained_variance) =
        if n_varying <= n_components { (standardised, 1.0) } else { project(&standardised, fitted_on, n_components)? };
    let reduction = Reduction {
        n_dimensions,
        n_constant: n_dimensions - n_varying,
        n_components: scores.ncols(),
        explained_variance,
    };
    Ok(Components { scores, reduction })
}

/// The columns that vary in `fitting`, where each has mean 0 and variance 1 after this.
fn standardise(representation: &ArrayRef2<f64>, fitting: &Array2<f64>) -> Result<Array2<f64>, MetricError> {
    let n = fitting.nrows() as f64;
    let mut kept: Vec<Array1<f64>> = Vec::with_capacity(representation.ncols());
    for (column, all) in fitting.columns().into_iter().zip(representation.columns()) {
        // In units of a power of 2 near its largest value, so that no square overflows or vanishes; this rounds nothing.
        let largest = column.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let unit = largest.log2().floor().min(1023.0).exp2();
        let first = column[0];
        if column.iter().all(|value| (value / unit - first / unit).abs() <= 0.0) || largest <= 0.0 {
            continue;
        }
        let scaled = column.mapv(|value| value / unit);
        let mean = scaled.sum() / n;
        let centred = scaled.mapv(|value| value - mean);
        let spread = (centred.dot(&centred) / n).sqrt();
        let spread = representable("standard deviation of the representation", spread)?;
        kept.push(all.mapv(|value| (value / unit - mean) / spread));
    }
    let mut standardised = Array2::zeros((representation.nrows(), kept.len()));
    for (mut column, values) in standardised.columns_mut().into_iter().zip(kept) {
        column.assign(&values);
    }
    Ok(standardised)
}

/// The scores of all rows on the first components of the rows `fitted_on`, and the share of their variance.
fn project(
    standardised: &Array2<f64>,
    fitted_on: &[usize],
    n_components: usize,
) -> Result<(Array2<f64>, f64), MetricError> {
    let fitting = standardised.select(Axis(0), fitted_on);
    let (n, d) = fitting.dim();
    let few_samples = n < d;
    let products = if few_samples { fitting.dot(&fitting.t()) } else { fitting.t().dot(&fitting) };
    let not_converged = MetricError::NotFinite { what: "eigenvalue of the representation", value: f64::NAN };
    let eigen = SymmetricEigen::of(products).ok_or(not_converged)?;
    let largest = eigen.values[0];
    let n_kept = eigen.values.iter().take(n_components).take_while(|value| **value > ROUNDING * largest).count();
    let vectors = eigen.vectors.select(Axis(0), &(0..n_kept).collect::<Vec<_>>());
    let lengths: Array1<f64> = eigen.values.iter().take(n_kept).map(|value| value.sqrt()).collect();
    let mut scores = if !few_samples {
        standardised.dot(&vectors.t())
    } else if fitted_on.iter().copied().eq(0..standardised.nrows()) {
        // Left singular vectors are the scores of the rows in the order in which they were fitted.
        vectors.t().to_owned() * lengths
    } else {
        // Left singular vectors give the right ones, along which the other rows are projected.
        standardised.dot(&(fitting.t().dot(&vectors.t()) / lengths))
    };
    for mut column in scores.columns_mut() {
        let extreme = column.iter().fold(0.0, |most: f64, value| if value.abs() > most.abs() { *value } else { most });
        if extreme < 0.0 {
            column.mapv_inplace(|value| -value);
        }
    }
    let kept: f64 = eigen.values[..n_kept].iter().sum();
    Ok((scores, (kept / (n * d) as f64).min(1.0)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::super::ridge_logistic::tests::representation;
    use super::*;

    #[test]
    fn components_are_those_of_scikit_learn() {
        // scikit-learn 1.9.1: z = StandardScaler().fit_transform(x); PCA(3, svd_solver="full").fit_transform(z); sum of
        // explained_variance_ratio_ and row 2, every component with its largest score positive.
        let cases = [
            (
                40,
                7,
                0.584_971_058_693_324_8,
                [1.450_071_623_447_818, 0.628_177_655_529_945_5, -1.470_850_857_922_620_7],
            ),
            (
                9,
                15,
                0.761_748_787_015_364_2,
                [2.518_639_990_609_432, -0.846_661_650_751_082_2, -1.438_142_311_915_538_3],
            ),
        ];
        for (n, d, share, row) in cases {
            let found = principal_components(&representation(n, d), 3).unwrap();
            assert_abs_diff_eq!(found.reduction.explained_variance, share, epsilon = 1e-12);
            assert_abs_diff_eq!(found.scores.row(2).to_vec()[..], row[..], epsilon = 1e-10);
        }
    }

    #[test]
    fn components_of_some_rows_are_those_of_these_rows_alone() {
        // More rows than dimensions, and fewer: both ways to the directions.
        for (n, d, n_fitted) in [(40, 7, 25), (40, 30, 12)] {
            let x = representation(n, d);
            let fitted_on: Vec<usize> = (0..n_fitted).map(|row| row * 3 % n).collect();
            let found = principal_components_fitted(&x, &fitted_on, 3).unwrap();
            let alone = principal_components(&x.select(Axis(0), &fitted_on), 3).unwrap();
            assert_eq!(found.scores.nrows(), n);
            assert_abs_diff_eq!(
                found.reduction.explained_variance,
                alone.reduction.explained_variance,
                epsilon = 1e-12
            );
            for (all, alone) in found.scores.columns().into_iter().zip(alone.scores.columns()) {
                let of_fitted: Vec<f64> = fitted_on.iter().map(|row| all[*row]).collect();
                // The sign is that of the largest score of all rows.
                let sign = (of_fitted[0] * alone[0]).signum();
                for (found, expected) in of_fitted.iter().zip(alone) {
                    assert_abs_diff_eq!(sign * found, *expected, epsilon = 1e-9);
                }
            }
        }
        assert!(principal_components_fitted(&representation(9, 3), &[], 2).is_err());
    }

    #[test]
    fn the_order_of_the_rows_that_components_are_fitted_on_does_not_matter() {
        let x = representation(9, 15);
        let (in_order, reversed) = (principal_components(&x, 3).unwrap(), (0..9).rev().collect::<Vec<_>>());
        let found = principal_components_fitted(&x, &reversed, 3).unwrap();
        for (found, expected) in found.scores.iter().zip(&in_order.scores) {
            assert_abs_diff_eq!(*found, *expected, epsilon = 1e-9);
        }
    }

    #[test]
    fn few_dimensions_are_standardised_and_kept_and_constant_ones_left_out() {
        let x = ndarray::array![[1.0, 7.0, -2.0], [3.0, 7.0, 2.0]];
        let found = principal_components(&x, 64).unwrap();
        assert_eq!(found.scores, ndarray::array![[-1.0, -1.0], [1.0, 1.0]]);
        let expected = Reduction { n_dimensions: 3, n_constant: 1, n_components: 2, explained_variance: 1.0 };
        assert_eq!(found.reduction, expected);
    }

    #[test]
    fn directions_without_variance_are_no_components() {
        // Three copies of one dimension have one component; the units of a dimension do not matter.
        let x = Array2::from_shape_fn((10, 3), |(row, column)| (row as f64).sin() * [1.0, 1e3, 1e6][column]);
        let found = principal_components(&x, 2).unwrap();
        assert_eq!(found.reduction.n_components, 1);
        assert_abs_diff_eq!(found.reduction.explained_variance, 1.0, epsilon = 1e-12);
        assert!(matches!(
            principal_components(&Array2::ones((4, 2)), 3),
            Err(MetricError::ConstantRepresentation { n: 4 })
        ));
        assert!(principal_components(&x, 0).is_err());
    }
}
