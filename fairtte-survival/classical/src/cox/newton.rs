//! The maximum of a concave log likelihood with a ridge penalty, and what can go wrong with it.

use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::linear_algebra::{cholesky, solve_lower};
use ndarray::{Array1, Array2, s};

use crate::ClassicalError;
use crate::estimator::Column;
use crate::newton::{Objective, Step, maximise};

/// A coefficient of a covariate with standard deviation 1 beyond it separates the samples.
pub(super) const MOST_COEFFICIENT: f64 = 30.0;
/// The likelihood is flat where its information about a coefficient is below this share of that at coefficients of 0.
const FLAT: f64 = 1e-8;
/// Share of a covariate's information that the others must leave unexplained.
const INDEPENDENT: f64 = 1e-9;

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

    /// The size of a coefficient beyond which its term separates the samples.
    fn most(&self, _term: usize) -> f64 {
        MOST_COEFFICIENT
    }
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
    /// Diagonal of the penalised information at coefficients of 0, `[p]`.
    at_zero: Array1<f64>,
}

/// Derivatives of the penalised log likelihood, and its value without the penalty.
struct Point {
    penalised: Derivatives,
    plain: f64,
}

impl<L: Concave> Objective for Penalised<'_, L> {
    type Point = Point;

    fn at(&self, coefficients: &Array1<f64>) -> Point {
        let mut penalised = self.of.derivatives(coefficients);
        let plain = penalised.value;
        penalised.value -= 0.5 * self.ridge * coefficients.dot(coefficients);
        penalised.gradient.scaled_add(-self.ridge, coefficients);
        penalised.information.diag_mut().map_inplace(|cell| *cell += self.ridge);
        Point { penalised, plain }
    }

    fn value(point: &Point) -> f64 {
        point.penalised.value
    }

    fn step(&self, coefficients: &Array1<f64>, here: &Point) -> Result<Step, ClassicalError> {
        let Derivatives { gradient, information, .. } = &here.penalised;
        let terms = || 0..self.at_zero.len();
        let is_beyond = |term: &usize| coefficients[*term].abs() > self.of.most(*term);
        let is_flat = |term: &usize| information[[*term, *term]] < FLAT * self.at_zero[*term];
        if let Some(term) = terms().find(is_beyond).or_else(|| terms().find(is_flat)) {
            return Err(separates(coefficients, term));
        }
        let lower = cholesky(information.clone(), 0.0).map_err(|term| separates(coefficients, term))?;
        let by = solve_lower(&lower, gradient);
        Ok(Step { decrement: by.dot(gradient), by, is_exact: true })
    }

    fn not_found(&self, coefficients: &Array1<f64>, _: usize) -> ClassicalError {
        separates(coefficients, largest(coefficients))
    }
}

/// The coefficients with the largest log likelihood minus `ridge` / 2 times the sum of their squares.
///
/// # Errors
/// Without a penalty [`ClassicalError::NotAtRisk`], [`ClassicalError::Collinear`]; [`ClassicalError::Separates`]; once `stop` is set.
pub(super) fn maximum<L: Concave>(of: &L, p: usize, ridge: f64, stop: &Stop) -> Result<Maximum, ClassicalError> {
    let zero = Array1::zeros(p);
    let mut objective = Penalised { of, ridge, at_zero: Array1::zeros(p) };
    let start = objective.at(&zero);
    let Derivatives { gradient, information, .. } = &start.penalised;
    if ridge <= 0.0 {
        check_independent(information)?;
    }
    let lower = cholesky(information.clone(), 0.0).map_err(|term| separates(&zero, term))?;
    let score_statistic = solve_lower(&lower, gradient).dot(gradient);
    objective.at_zero = information.diag().to_owned();
    let (coefficients, last) = maximise(&objective, zero, stop)?;
    let covariance = inverse(last.penalised.information).map_err(|term| separates(&coefficients, term))?;
    Ok(Maximum {
        coefficients,
        covariance,
        log_likelihood: last.plain,
        log_likelihood_null: start.plain,
        score_statistic,
    })
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
