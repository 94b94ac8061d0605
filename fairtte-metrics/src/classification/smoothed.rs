//! The observed share of positive samples as a smooth function of the predicted probability: the flexible calibration curve.
//!
//! ```text
//! logit o(i) = a + b x(i) + c s(x(i)), x(i) = logit p(i), s the term of a restricted cubic spline
//! ```
//!
//! by logistic regression. The knots are the quantiles 0.1, 0.5 and 0.9 of x, as in `calibration/calibration_index.rs`, from which
//! the spline comes. Sources: Van Calster et al. (2016), <https://doi.org/10.1016/j.jclinepi.2015.12.005> (flexible calibration
//! curves); Harrell (2015), section 2.4.5 (basis); Austin & Steyerberg (2019), <https://doi.org/10.1002/sim.8281> (index). p outside
//! [1e-10, 1 - 1e-10] is moved to its end before the logit. Where the knots coincide, the curve is a line in the logit; where all
//! predictions are equal, it is the share of positive samples.

use ndarray::{Array1, Array2};

use super::calibration::{logit, overlap};
use crate::MetricError;
use crate::calibration::calibration_index::spline;
use crate::classification::ClassPredictions;
use crate::linear_algebra::cholesky_solve;
use crate::resampling::bootstrap::quantile;

const SMALLEST: f64 = 1e-10;
const MOST_STEPS: usize = 60;
const MOST_COEFFICIENTS: usize = 3;

type Basis = [f64; MOST_COEFFICIENTS];

/// The smoothed share at the probability of every sample, `[n]`; O(n log n).
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::OneClass`]; [`MetricError::SeparatedClasses`] if the likelihood has no maximum.
pub(crate) fn smoothed(predictions: &ClassPredictions) -> Result<Vec<f64>, MetricError> {
    let (n_positive, n_negative) = predictions.both_classes()?;
    let x: Vec<f64> = predictions.probability().iter().map(|p| logit(p.clamp(SMALLEST, 1.0 - SMALLEST))).collect();
    let mut sorted = x.clone();
    sorted.sort_by(f64::total_cmp);
    if sorted[sorted.len() - 1] - sorted[0] <= 0.0 {
        return Ok(vec![n_positive / (n_positive + n_negative); x.len()]);
    }
    if !overlap(predictions) {
        return Err(MetricError::SeparatedClasses);
    }
    let knots = [0.1, 0.5, 0.9].map(|share| quantile(&sorted, share));
    let is_spline = knots[0] < knots[1] && knots[1] < knots[2];
    // Centred, for a well conditioned information.
    let middle = knots[1];
    let basis = |x: &f64| [1.0, x - middle, if is_spline { spline(*x, knots) } else { 0.0 }];
    let basis: Vec<Basis> = x.iter().map(basis).collect();
    let spline = if is_spline { fit(&basis, predictions.positive(), 3) } else { None };
    // Two distinct predictions have no curvature.
    let line = || fit(&basis, predictions.positive(), 2);
    let coefficients = spline.or_else(line).ok_or(MetricError::SeparatedClasses)?;
    Ok(basis.iter().map(|terms| expit(dot(terms, &coefficients))).collect())
}

fn dot(terms: &Basis, coefficients: &Array1<f64>) -> f64 {
    terms.iter().zip(coefficients).map(|(term, coefficient)| term * coefficient).sum()
}

fn expit(eta: f64) -> f64 {
    let tail = (-eta.abs()).exp();
    if eta >= 0.0 { 1.0 / (1.0 + tail) } else { tail / (1.0 + tail) }
}

/// The first `n` coefficients of highest likelihood, by Newton steps that are halved while the likelihood falls; `None` if they are
/// not found.
fn fit(basis: &[Basis], positive: &[bool], n: usize) -> Option<Array1<f64>> {
    let log_likelihood = |coefficients: &Array1<f64>| -> f64 {
        let term = |(terms, positive): (&Basis, &bool)| {
            let eta = dot(terms, coefficients);
            f64::from(u8::from(*positive)) * eta - (eta.max(0.0) + (-eta.abs()).exp().ln_1p())
        };
        basis.iter().zip(positive).map(term).sum()
    };
    let mut found = Array1::zeros(n);
    let mut now = log_likelihood(&found);
    for _ in 0..MOST_STEPS {
        let (mut gradient, mut information) = (Array1::<f64>::zeros(n), Array2::<f64>::zeros((n, n)));
        for (terms, positive) in basis.iter().zip(positive) {
            let share = expit(dot(terms, &found));
            for a in 0..n {
                gradient[a] += terms[a] * (f64::from(u8::from(*positive)) - share);
                for b in 0..n {
                    information[[a, b]] += terms[a] * terms[b] * share * (1.0 - share);
                }
            }
        }
        let step = cholesky_solve(information, &gradient)?;
        if step.iter().all(|step| step.abs() < 1e-10) {
            return Some(found + step);
        }
        let mut share = 1.0;
        loop {
            let next = &found + &(&step * share);
            let value = log_likelihood(&next);
            if value >= now - 1e-12 * basis.len() as f64 {
                (found, now) = (next, value);
                break;
            }
            share *= 0.5;
            if share < 1e-6 {
                return None;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_abs_diff_eq;

    fn predictions(probability: Vec<f64>, positive: Vec<bool>) -> ClassPredictions {
        ClassPredictions::new(probability, positive).unwrap()
    }

    /// Two predictions: the curve goes through the share of each, whatever its shape.
    #[test]
    fn two_predictions_have_their_observed_shares() {
        let probability = (0..100).map(|k| if k < 60 { 0.2 } else { 0.7 }).collect();
        let positive = (0..100).map(|k| !(15..80).contains(&k)).collect();
        let found = smoothed(&predictions(probability, positive)).unwrap();
        assert_abs_diff_eq!(found[0], 0.25, epsilon = 1e-9);
        assert_abs_diff_eq!(found[99], 0.5, epsilon = 1e-9);
    }

    #[test]
    fn equal_predictions_have_the_share_and_separated_ones_a_reason() {
        let found = smoothed(&predictions(vec![0.4; 4], vec![true, false, false, false])).unwrap();
        assert_eq!(found, [0.25; 4]);
        let apart = predictions(vec![0.1, 0.2, 0.8, 0.9], vec![false, false, true, true]);
        assert_eq!(smoothed(&apart), Err(MetricError::SeparatedClasses));
    }

    /// Logit models of one group and probabilities of 0 and 1: finite.
    #[test]
    fn certain_probabilities_have_a_finite_curve() {
        let probability = (0..40).map(|k| [0.0, 0.3, 0.6, 1.0][k % 4]).collect();
        let positive = (0..40).map(|k| k % 3 == 0).collect();
        let found = smoothed(&predictions(probability, positive)).unwrap();
        assert!(found.iter().all(|share| share.is_finite() && (0.0..=1.0).contains(share)));
    }
}
