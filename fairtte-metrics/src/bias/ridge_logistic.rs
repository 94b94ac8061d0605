//! Logistic regression with a ridge penalty, by Newton's method.
//!
//! Minimises `sum_i log(1 + exp(-y_i (b + w x_i))) + penalty / 2 |w|^2` with y in {-1, 1}; the intercept b is not
//! penalised. The sum is strictly convex, so that the minimum is unique and finite even where a plane separates the
//! classes. Source: le Cessie & van Houwelingen (1992), <https://doi.org/10.2307/2347628>. It is the objective of
//! scikit-learn's `LogisticRegression(C = 1 / penalty)`, against which the tests compare.

use ndarray::{Array1, Array2, ArrayRef2, ArrayView1};

use crate::MetricError;
use crate::linear_algebra::cholesky_solve;

const MOST_STEPS: usize = 100;
/// Newton's method ends where half its decrement, the distance of the objective from its minimum, is below this.
const TOLERANCE: f64 = 1e-12;

/// A fitted model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RidgeLogistic {
    /// The intercept, then one coefficient per dimension.
    coefficients: Array1<f64>,
}

impl RidgeLogistic {
    /// Fits the model to `x` `[n, d]` and `in_group`, with `penalty` > 0. O(n d^2) per step.
    ///
    /// # Errors
    /// [`MetricError::NotFinite`] if the numbers are too large for `f64`.
    pub(super) fn fit(x: &ArrayRef2<f64>, in_group: &[bool], penalty: f64) -> Result<Self, MetricError> {
        let mut with_intercept = Array2::ones((x.nrows(), x.ncols() + 1));
        with_intercept.slice_mut(ndarray::s![.., 1..]).assign(x);
        let x = with_intercept;
        let mut coefficients = Array1::zeros(x.ncols());
        let mut objective = value(&x, in_group, penalty, &coefficients);
        for _ in 0..MOST_STEPS {
            let (gradient, hessian) = derivatives(&x, in_group, penalty, &coefficients);
            let too_large =
                || MetricError::NotFinite { what: "objective of the logistic regression", value: objective };
            let step = cholesky_solve(hessian, &gradient).ok_or_else(too_large)?;
            if gradient.dot(&step) / 2.0 <= TOLERANCE * (1.0 + objective) {
                coefficients -= &step; // converges quadratically: what is left is rounding
                break;
            }
            let mut share = 1.0;
            loop {
                let next = &coefficients - &(&step * share);
                let there = value(&x, in_group, penalty, &next);
                if there <= objective || share < 1e-10 {
                    (coefficients, objective) = (next, there);
                    break;
                }
                share /= 2.0;
            }
        }
        Ok(Self { coefficients })
    }

    /// The linear predictor of a sample: higher = more likely in the group.
    pub(super) fn predictor(&self, x: &ArrayView1<'_, f64>) -> f64 {
        let slopes = self.coefficients.slice(ndarray::s![1..]);
        self.coefficients[0] + slopes.dot(x)
    }
}

/// log(1 + exp(v)) without overflow.
fn softplus(v: f64) -> f64 {
    v.max(0.0) + (-v.abs()).exp().ln_1p()
}

fn value(x: &Array2<f64>, in_group: &[bool], penalty: f64, coefficients: &Array1<f64>) -> f64 {
    let linear = x.dot(coefficients);
    let loss: f64 = linear.iter().zip(in_group).map(|(v, is_in)| softplus(if *is_in { -v } else { *v })).sum();
    loss + penalty / 2.0 * coefficients.iter().skip(1).map(|w| w * w).sum::<f64>()
}

fn derivatives(
    x: &Array2<f64>,
    in_group: &[bool],
    penalty: f64,
    coefficients: &Array1<f64>,
) -> (Array1<f64>, Array2<f64>) {
    let probability = x.dot(coefficients).mapv(|v| 1.0 / (1.0 + (-v).exp()));
    let residual: Array1<f64> = probability.iter().zip(in_group).map(|(p, is_in)| p - f64::from(*is_in)).collect();
    let mut gradient = x.t().dot(&residual);
    let mut weighted = x.clone();
    for (mut row, p) in weighted.rows_mut().into_iter().zip(&probability) {
        row *= p * (1.0 - p);
    }
    let mut hessian = x.t().dot(&weighted);
    for k in 1..coefficients.len() {
        gradient[k] += penalty * coefficients[k];
        hessian[[k, k]] += penalty;
    }
    // Where every probability is 0 or 1 to rounding, the intercept has no curvature left.
    hessian[[0, 0]] += f64::MIN_POSITIVE.sqrt();
    (gradient, hessian)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
pub(super) mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    /// Numbers without order that every language computes alike.
    pub(in super::super) fn representation(n: usize, d: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, d), |(i, j)| {
            let (row, column) = (i as f64, j as f64);
            (1.7 * row + 2.3 * column * column + 0.9 * row * column).sin() + 0.5 * (0.6 * row).cos() * (j % 3) as f64
        })
    }

    const ONES: [usize; 17] = [0, 2, 4, 5, 8, 9, 12, 14, 19, 23, 24, 27, 29, 31, 33, 34, 38];

    /// Whether row `i` of `representation(40, 3)` has x0 + x1 + sin(5 i) > 0.3.
    pub(in super::super) const IN_GROUP: [bool; 40] = {
        let mut flags = [false; 40];
        let mut k = 0;
        while k < ONES.len() {
            flags[ONES[k]] = true;
            k += 1;
        }
        flags
    };

    #[test]
    fn coefficients_are_those_of_scikit_learn() {
        // scikit-learn 1.9.1: LogisticRegression(C=1, tol=1e-14, solver="newton-cholesky").fit(x, y).
        let model = RidgeLogistic::fit(&representation(40, 3), &IN_GROUP, 1.0).unwrap();
        let expected =
            [-0.467_154_390_604_744_9, 1.427_324_786_839_781_8, 1.604_503_934_322_194_7, -0.252_564_474_742_627_94];
        for (found, expected) in model.coefficients.iter().zip(expected) {
            assert_abs_diff_eq!(*found, expected, epsilon = 1e-7);
        }
        let (gradient, _) = derivatives(&with_ones(), &IN_GROUP, 1.0, &model.coefficients);
        assert!(gradient.iter().all(|slope| slope.abs() < 1e-5), "{gradient}");
    }

    fn with_ones() -> Array2<f64> {
        let mut x = Array2::ones((40, 4));
        x.slice_mut(ndarray::s![.., 1..]).assign(&representation(40, 3));
        x
    }

    #[test]
    fn separated_classes_have_finite_coefficients() {
        let x = Array2::from_shape_fn((20, 1), |(row, _)| if row < 10 { -1e3 } else { 1e3 });
        let in_group: Vec<bool> = (0..20).map(|row| row >= 10).collect();
        let model = RidgeLogistic::fit(&x, &in_group, 1.0).unwrap();
        assert!(model.predictor(&x.row(19)) > 0.0 && model.predictor(&x.row(0)) < 0.0);
        assert!(model.coefficients.iter().all(|w| w.is_finite()));
    }
}
