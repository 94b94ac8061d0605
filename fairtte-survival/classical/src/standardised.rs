//! Covariates with mean 0 and standard deviation 1, on which the regressions work.

use fairtte_metrics::linear_algebra::cholesky;
use ndarray::{Array1, Array2, ArrayView1, Axis};

use crate::{ClassicalError, Column};

/// Share of a covariate's variance that those before it must leave unexplained.
const INDEPENDENT: f64 = 1e-9;
/// A deviation below this share of the largest value is rounding.
const ROUNDING: f64 = 1e-14;

/// Standardised covariates of n samples.
pub(crate) struct Standardised {
    /// `[n, p]`.
    pub(crate) x: Array2<f64>,
    /// Means of the columns, `[p]`.
    pub(crate) mean: Array1<f64>,
    /// Their standard deviations, with the divisor n, `[p]`.
    pub(crate) deviation: Array1<f64>,
}

impl Standardised {
    /// Standardises finite `covariates` `[n, p]` of at least one sample. O(n p).
    ///
    /// # Errors
    /// [`ClassicalError::Constant`], [`ClassicalError::Spread`].
    pub(crate) fn new(covariates: &Array2<f64>) -> Result<Self, ClassicalError> {
        let n = covariates.nrows();
        // Divided first: the sum of large numbers may be infinite.
        let mean: Array1<f64> =
            covariates.columns().into_iter().map(|column| column.iter().map(|x| x / n as f64).sum()).collect();
        let of_column = |(place, (column, mean)): (usize, (ArrayView1<'_, f64>, &f64))| {
            let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
            let (deviation, first) = (variance.sqrt(), column[0]);
            let largest = column.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
            let is_same = column.iter().all(|x| x.total_cmp(&first).is_eq() || (x - first).abs() <= ROUNDING * largest);
            let column = Column::new(place);
            match deviation {
                _ if is_same => Err(ClassicalError::Constant { column, n }),
                1e-100..=1e100 => Ok(deviation),
                _ if deviation.is_nan() => Err(ClassicalError::Spread { column, deviation: f64::INFINITY }),
                _ => Err(ClassicalError::Spread { column, deviation }),
            }
        };
        let deviation = covariates.columns().into_iter().zip(&mean).enumerate().map(of_column);
        let deviation: Array1<f64> = deviation.collect::<Result<Vec<f64>, _>>()?.into();
        let x = (covariates - &mean) / &deviation;
        Ok(Self { x, mean, deviation })
    }

    /// Refuses a column that is a linear combination of those before it. O(n p^2).
    ///
    /// # Errors
    /// [`ClassicalError::Collinear`].
    pub(crate) fn check_independent(&self) -> Result<(), ClassicalError> {
        let products = self.x.t().dot(&self.x);
        cholesky(products.clone(), INDEPENDENT).map(drop).map_err(|place| {
            let columns = involved(&products, place);
            let others = columns.into_iter().filter(|other| *other != place).map(Column::new).collect();
            ClassicalError::Collinear { column: Column::new(place), others }
        })
    }
}

/// The columns with a part in the combination of the first `place + 1` along which the quadratic form `matrix` is nearly 0,
/// ascending; the last is `place`.
pub(crate) fn involved(matrix: &Array2<f64>, place: usize) -> Vec<usize> {
    /// Parts below this are rounding.
    const PART: f64 = 1e-3;
    let before: Vec<usize> = (0..place).collect();
    let block = matrix.select(Axis(0), &before).select(Axis(1), &before);
    let along: Array1<f64> = before.iter().map(|row| matrix[[*row, place]]).collect();
    let Some(parts) = fairtte_metrics::linear_algebra::cholesky_solve(block, &along) else {
        return vec![place];
    };
    // In units of the diagonal, so that the scale of a column does not matter.
    let size = |column: usize| matrix[[column, column]].sqrt();
    let has_part = |column: &usize| parts[*column].abs() * size(*column) > PART * size(place);
    before.into_iter().filter(has_part).chain([place]).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use ndarray::array;

    use super::*;

    fn refused(covariates: &Array2<f64>) -> String {
        Standardised::new(covariates).and_then(|x| x.check_independent()).unwrap_err().to_string()
    }

    #[test]
    fn columns_have_mean_0_and_deviation_1() {
        let standardised = Standardised::new(&array![[1.0, -1e90], [2.0, 1e90], [6.0, 1e90]]).unwrap();
        assert!((standardised.mean[0] - 3.0).abs() < 1e-15);
        // The squares are 4, 1 and 9.
        assert!((standardised.deviation[0] - (14.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        for column in standardised.x.columns() {
            assert!(column.sum().abs() < 1e-14);
            assert!((column.dot(&column) - 3.0).abs() < 1e-14);
        }
    }

    #[test]
    fn constant_and_collinear_columns_and_extreme_spreads_are_named() {
        let same = "covariate 1 is the same in all 2 samples, expected one that varies";
        assert_eq!(refused(&array![[1.0, 0.3], [2.0, 0.1 + 0.2]]), same);
        // Column 3 = column 0 - 2 column 1 + 5; column 2 has no part.
        let x = Array2::from_shape_fn((9, 4), |(row, column)| {
            let value = |column: usize| ((row * row * (3 + column) + row) % 7) as f64;
            if column == 3 { value(0) - 2.0 * value(1) + 5.0 } else { value(column) }
        });
        assert_eq!(refused(&x), "covariate 3 is a linear combination of others (0, 1): leave one of them out");
        let large = "covariate 0 has the standard deviation inf, expected between 1e-100 and 1e100: change its unit";
        assert_eq!(refused(&array![[1e308], [-1e308], [1e308]]), large);
        let small = refused(&array![[1e-120], [3e-120]]);
        assert!(small.starts_with("covariate 0 has the standard deviation "), "{small}");
    }
}
