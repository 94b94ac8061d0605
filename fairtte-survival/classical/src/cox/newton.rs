//! The maximum of a concave log likelihood by Newton's method, with a ridge penalty.

use fairtte_metrics::linear_algebra::{cholesky, solve_lower};
use ndarray::{Array1, Array2, s};

use crate::ClassicalError;
use crate::estimator::Column;

const MOST_STEPS: usize = 60;
/// Newton's method ends with the step whose squared length in standard errors is below this: it converges quadratically,
/// so that what is left is below the rounding of numbers.
const TOLERANCE: f64 = 1e-12;
/// A coefficient of a covariate with standard deviation 1 beyond it separates the samples.
const MOST_COEFFICIENT: f64 = 30.0;
/// The likelihood is flat where its information about a coefficient is below this share of that at coefficients of 0.
const FLAT: f64 = 1e-8;
/// Share of a covariate's information that the others must leave unexplained.
const INDEPENDENT: f64 = 1e-9;
/// Rounding may lower the log likelihood near its maximum by this share.
const ROUNDING: f64 = 1e-12;

/// A log likelihood at one point.
pub(super) struct Derivatives {
    pub(super) value: f64,
    pub(super) gradient: Array1<f64>,
    /// Negative second derivatives.
    pub(super) information: Array2<f64>,
}

/// A log likelihood of coefficients of covariates with standard deviation 1.
pub(super) trait Concave {
    fn derivatives(&self, coefficients: &Array1<f64>) -> Derivatives;
}

/// The maximum, and what tests need.
pub(super) struct Maximum {
    pub(super) coefficients: Array1<f64>,
    /// Inverse of the (penalised) information, `[p, p]`.
    pub(super) covariance: Array2<f64>,
    /// Log likelihood, without the penalty.
    pub(super) log_likelihood: f64,
    /// That of coefficients 0.
    pub(super) log_likelihood_null: f64,
    /// Gradient at coefficients 0 times the inverse information there times the gradient.
    pub(super) score_statistic: f64,
}

struct Penalised<'a, L> {
    of: &'a L,
    ridge: f64,
}

impl<L: Concave> Penalised<'_, L> {
    /// Derivatives of the penalised log likelihood, and its value without the penalty.
    fn derivatives(&self, at: &Array1<f64>) -> (Derivatives, f64) {
        let mut here = self.of.derivatives(at);
        let plain = here.value;
        here.value -= 0.5 * self.ridge * at.dot(at);
        here.gradient.scaled_add(-self.ridge, at);
        here.information.diag_mut().map_inplace(|cell| *cell += self.ridge);
        (here, plain)
    }
}

/// The coefficients with the largest log likelihood minus `ridge` / 2 times the sum of their squares.
///
/// # Errors
/// Without a penalty [`ClassicalError::NotAtRisk`], [`ClassicalError::Collinear`]; [`ClassicalError::Separates`].
pub(super) fn maximum<L: Concave>(of: &L, p: usize, ridge: f64) -> Result<Maximum, ClassicalError> {
    let objective = Penalised { of, ridge };
    let mut coefficients = Array1::zeros(p);
    let (mut here, log_likelihood_null) = objective.derivatives(&coefficients);
    if ridge <= 0.0 {
        check_independent(&here.information)?;
    }
    let at_zero = here.information.diag().to_owned();
    let score_statistic = {
        let lower = cholesky(here.information.clone(), 0.0).map_err(|term| separates(&coefficients, term))?;
        solve_lower(&lower, &here.gradient).dot(&here.gradient)
    };
    for _ in 0..MOST_STEPS {
        let is_flat = |term: &usize| here.information[[*term, *term]] < FLAT * at_zero[*term];
        if let Some(term) = (0..p).find(is_flat) {
            return Err(separates(&coefficients, term));
        }
        let lower = cholesky(here.information.clone(), 0.0).map_err(|term| separates(&coefficients, term))?;
        let step = solve_lower(&lower, &here.gradient);
        let is_short = step.iter().zip(&coefficients).all(|(step, b)| step.abs() <= 0.01 * (1.0 + f64::abs(*b)));
        if step.dot(&here.gradient) <= TOLERANCE && is_short {
            let coefficients = coefficients + step;
            let (last, log_likelihood) = objective.derivatives(&coefficients);
            let covariance = inverse(last.information).map_err(|term| separates(&coefficients, term))?;
            return Ok(Maximum { coefficients, covariance, log_likelihood, log_likelihood_null, score_statistic });
        }
        (coefficients, here) = uphill(&objective, &coefficients, &here, &step)
            .ok_or_else(|| separates(&coefficients, largest(&coefficients)))?;
        if let Some(term) = coefficients.iter().position(|b: &f64| b.abs() > MOST_COEFFICIENT) {
            return Err(separates(&coefficients, term));
        }
    }
    Err(separates(&coefficients, largest(&coefficients)))
}

/// A step that does not lower the likelihood: the whole one, or a half, a quarter, ..
fn uphill<L: Concave>(
    objective: &Penalised<'_, L>,
    from: &Array1<f64>,
    here: &Derivatives,
    step: &Array1<f64>,
) -> Option<(Array1<f64>, Derivatives)> {
    let shares = std::iter::successors(Some(1.0), |share| Some(share / 2.0)).take(20);
    let moved = |share: f64| {
        let next = from + &(step * share);
        let (there, _) = objective.derivatives(&next);
        (next, there)
    };
    let lowest = here.value - ROUNDING * here.value.abs();
    shares.map(moved).find(|(_, there)| there.value >= lowest && there.value.is_finite())
}

/// The inverse of a symmetric positive definite matrix; `Err` with the first row without a positive pivot.
pub(super) fn inverse(matrix: Array2<f64>) -> Result<Array2<f64>, usize> {
    let p = matrix.nrows();
    let lower = cholesky(matrix, 0.0)?;
    let mut inverse = Array2::zeros((p, p));
    for k in 0..p {
        let unit = Array1::from_shape_fn(p, |j| f64::from(u8::from(j == k)));
        inverse.column_mut(k).assign(&solve_lower(&lower, &unit));
    }
    Ok(inverse)
}

/// Every covariate varies among the samples at risk, beyond what those before it say.
fn check_independent(information: &Array2<f64>) -> Result<(), ClassicalError> {
    let largest = information.diag().iter().copied().fold(0.0, f64::max);
    if let Some(place) = information.diag().iter().position(|cell| *cell <= INDEPENDENT * largest) {
        return Err(ClassicalError::NotAtRisk { column: Column::new(place) });
    }
    let Err(place) = cholesky(information.clone(), INDEPENDENT) else { return Ok(()) };
    let before = information.slice(s![..place, ..place]).to_owned();
    let along = information.slice(s![..place, place]).to_owned();
    let shares = cholesky(before, 0.0).map_or_else(|_| Array1::ones(place), |lower| solve_lower(&lower, &along));
    let size = |other: &usize| shares[*other].abs() * information[[*other, *other]].sqrt();
    let is_part = |other: &usize| size(other) > 1e-4 * information[[place, place]].sqrt();
    let others = (0..place).filter(is_part).map(Column::new).collect();
    Err(ClassicalError::Collinear { column: Column::new(place), others })
}

fn largest(coefficients: &Array1<f64>) -> usize {
    (0..coefficients.len()).max_by(|a, b| coefficients[*a].abs().total_cmp(&coefficients[*b].abs())).unwrap_or(0)
}

/// Names `term` and every covariate whose coefficient grows like the largest.
fn separates(coefficients: &Array1<f64>, term: usize) -> ClassicalError {
    let most = coefficients.iter().fold(0.0, |most: f64, b| most.max(b.abs()));
    let grows = |place: &usize| *place == term || (most > 1.0 && coefficients[*place].abs() > 0.5 * most);
    ClassicalError::Separates { columns: (0..coefficients.len()).filter(grows).map(Column::new).collect() }
}
