//! Newton's method with step halving, for log-likelihoods with analytic second derivatives.

use fairtte_metrics::evaluation::Stop;
use ndarray::Array1;

use crate::ClassicalError;

/// The most steps of an iteration.
const MOST_STEPS: usize = 200;
/// The iteration ends with the step that raises the objective by less than this: it converges quadratically, so that what is
/// left after that step is below the rounding of numbers.
const TOLERANCE: f64 = 1e-12;
/// The last step is below this share of every parameter, or of 1.
const SHORT: f64 = 1e-3;
/// Rounding may lower the objective near its maximum by this share.
const ROUNDING: f64 = 1e-12;
/// A step is halved as often.
const MOST_HALVINGS: usize = 40;

/// What is maximised.
pub(crate) trait Objective {
    /// Value and derivatives at some parameters.
    type Point;

    /// Value and derivatives at `parameters`.
    fn at(&self, parameters: &Array1<f64>) -> Self::Point;

    /// The value.
    fn value(point: &Self::Point) -> f64;

    /// The step from `parameters`, with derivatives `here`.
    ///
    /// # Errors
    /// Where the objective grows without end.
    fn step(&self, parameters: &Array1<f64>, here: &Self::Point) -> Result<Step, ClassicalError>;

    /// Why there is no maximum, where the search was given up after `steps` at `parameters`.
    fn not_found(&self, _parameters: &Array1<f64>, steps: usize) -> ClassicalError {
        ClassicalError::NotFound { steps }
    }
}

/// A step of the parameters that leads uphill.
pub(crate) struct Step {
    pub(crate) by: Array1<f64>,
    /// The product of step and gradient: twice what the step raises a quadratic objective by.
    pub(crate) decrement: f64,
    /// Newton's step, neither shortened nor turned.
    pub(crate) is_exact: bool,
}

/// The parameters at the maximum, with the derivatives there.
///
/// # Errors
/// Those of [`Objective::step`] and [`Objective::not_found`]; once `until` is set.
pub(crate) fn maximise<O: Objective>(
    objective: &O,
    start: Array1<f64>,
    until: &Stop,
) -> Result<(Array1<f64>, O::Point), ClassicalError> {
    let mut parameters = start;
    let mut here = objective.at(&parameters);
    for done in 0..MOST_STEPS {
        until.check()?;
        let step = objective.step(&parameters, &here)?;
        let is_short = step.by.iter().zip(&parameters).all(|(by, at)| by.abs() <= SHORT * (1.0 + f64::abs(*at)));
        if step.is_exact && is_short && step.decrement <= TOLERANCE {
            let parameters = parameters + step.by;
            let last = objective.at(&parameters);
            return Ok((parameters, last));
        }
        let lowest = O::value(&here) - ROUNDING * O::value(&here).abs();
        let shares = std::iter::successors(Some(1.0), |share| Some(share / 2.0)).take(MOST_HALVINGS);
        let moved = |share: f64| {
            let next = &parameters + &(&step.by * share);
            let there = objective.at(&next);
            (next, there)
        };
        let is_uphill = |there: &O::Point| O::value(there).is_finite() && O::value(there) >= lowest;
        let found = shares.map(moved).find(|(_, there)| is_uphill(there));
        (parameters, here) = found.ok_or_else(|| objective.not_found(&parameters, done + 1))?;
    }
    Err(objective.not_found(&parameters, MOST_STEPS))
}
