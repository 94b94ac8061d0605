//! The log-likelihood of an accelerated failure time model with its derivatives.
//!
//! With y the logarithm of time, eta = mu + x b, s = log sigma and z = (y - eta) / sigma, an event adds log f0(z) - s and a
//! censored sample log S0(z), f0 and S0 the density and survival of the noise. With l this function of z, l' and l'' its
//! derivatives and d = 1 for an event: dl/d eta = -l' / sigma, dl/ds = -z l' - d, d2l/d eta2 = l'' / sigma^2,
//! d2l/(d eta ds) = (l' + z l'') / sigma, d2l/ds2 = z l' + z^2 l''. log f0, log S0 and log(1 / sigma) are concave and z is
//! linear in (mu, b) / sigma and 1 / sigma, so that without a penalty the log-likelihood is concave in these parameters
//! (Pratt 1981, doi:10.1080/01621459.1981.10477613) and has at most one stationary point in any: where Newton's method ends is
//! the maximum.

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rayon::prelude::*;

use super::AftDistribution;
use crate::newton::{Objective, Step};
use crate::standardised::involved;
use crate::{ClassicalError, Column};
use fairtte_metrics::linear_algebra::{cholesky, solve_lower};

/// Rows of a part, of which sums are added in order, so that they do not depend on the number of threads.
const PART: usize = 2048;
/// A direction in which the information, in units of the scale, is below this number per event has no maximum. At a
/// maximum each level of a covariate has the information of its events.
const FLAT: f64 = 1e-8;
/// A scale below this share of the standard deviation of log time is 0 but for rounding.
const SMALLEST_SCALE: f64 = 1e-9;

/// Samples, with covariates of mean 0 and standard deviation 1.
pub(super) struct Likelihood<'a> {
    pub(super) distribution: AftDistribution,
    /// Logarithms of the times minus their mean, `[n]`.
    pub(super) log_time: &'a [f64],
    /// `[n]`.
    pub(super) event: &'a [bool],
    /// `[n, p]`.
    pub(super) x: ArrayView2<'a, f64>,
    /// Factor of b^2 / 2, which is subtracted, for each coefficient b.
    pub(super) ridge: f64,
    /// Standard deviation of log time, or 1 if they are all equal.
    pub(super) spread: f64,
}

/// The penalised log-likelihood at (mu, b, s), `[p + 2]`, with its derivatives.
pub(super) struct Point {
    pub(super) value: f64,
    pub(super) gradient: Array1<f64>,
    /// Negative second derivatives.
    pub(super) information: Array2<f64>,
}

impl Point {
    fn zero(n_parameters: usize) -> Self {
        let information = Array2::zeros((n_parameters, n_parameters));
        Self { value: 0.0, gradient: Array1::zeros(n_parameters), information }
    }

    fn add(mut self, other: &Self) -> Self {
        self.value += other.value;
        self.gradient += &other.gradient;
        self.information += &other.information;
        self
    }
}

impl Likelihood<'_> {
    /// Sums over some rows; of the information its lower triangle.
    fn part(&self, first: usize, parameters: &Array1<f64>) -> Point {
        let (p, end) = (self.x.ncols(), self.event.len().min(first + PART));
        let x = self.x.slice(s![first..end, ..]);
        let eta = x.dot(&parameters.slice(s![1..=p])) + parameters[0];
        let (log_scale, mut point) = (parameters[p + 1], Point::zero(p + 2));
        let scale = log_scale.exp();
        // Of each row the derivative by eta and the negative second derivatives by eta, and by eta and log sigma.
        let mut terms = Array2::zeros((end - first, 3));
        for (place, (mut terms, eta)) in terms.rows_mut().into_iter().zip(&eta).enumerate() {
            let z = (self.log_time[first + place] - eta) / scale;
            let is_event = self.event[first + place];
            let of_z = if is_event { self.distribution.log_density(z) } else { self.distribution.log_survival(z) };
            let event = f64::from(u8::from(is_event));
            point.value += of_z.value - event * log_scale;
            point.gradient[p + 1] -= z * of_z.first + event;
            point.information[[p + 1, p + 1]] -= z * (of_z.first + z * of_z.second);
            terms[0] = -of_z.first / scale;
            terms[1] = -of_z.second / (scale * scale);
            terms[2] = -(of_z.first + z * of_z.second) / scale;
        }
        let (sums, products) = (terms.sum_axis(Axis(0)), x.t().dot(&terms));
        let weighted = &x * &terms.slice(s![.., 1..2]);
        point.gradient[0] = sums[0];
        point.gradient.slice_mut(s![1..=p]).assign(&products.column(0));
        point.information[[0, 0]] = sums[1];
        point.information.slice_mut(s![1..=p, 0]).assign(&products.column(1));
        point.information.slice_mut(s![1..=p, 1..=p]).assign(&weighted.t().dot(&x));
        point.information[[p + 1, 0]] = sums[2];
        point.information.slice_mut(s![p + 1, 1..=p]).assign(&products.column(2));
        point
    }

    /// Refuses a direction of the coefficients without information: `lower` is the Cholesky factor of it.
    fn check_bounded(&self, here: &Point, lower: &Array2<f64>, scale: f64) -> Result<(), ClassicalError> {
        let n_events = self.event.iter().filter(|event| **event).count() as f64;
        let is_flat = |k: &usize| (lower[[*k, *k]] * scale).powi(2) < FLAT * n_events;
        match (1..=self.x.ncols()).find(is_flat) {
            Some(flat) if self.ridge <= 0.0 => {
                let columns = involved(&here.information, flat).into_iter().filter_map(|k| k.checked_sub(1));
                Err(ClassicalError::Separates { columns: columns.map(Column::new).collect() })
            }
            _ => Ok(()),
        }
    }

    /// The factor of the information with the least addition to its diagonal that makes it positive definite, and whether
    /// nothing was added.
    fn factor(&self, here: &Point, scale: f64) -> Option<(Array2<f64>, bool)> {
        if let Ok(lower) = cholesky(here.information.clone(), 0.0) {
            return Some((lower, true));
        }
        // The information of a location has the unit 1 / sigma^2, that of the log scale none.
        let n = self.event.len() as f64;
        let of_log_scale = here.gradient.len() - 1;
        let additions = (-6..=6).map(|power| 10.0_f64.powi(power));
        let damped = |addition: f64| {
            let mut information = here.information.clone();
            for (place, cell) in information.diag_mut().iter_mut().enumerate() {
                *cell += addition * (cell.abs() + if place == of_log_scale { n } else { n / (scale * scale) });
            }
            cholesky(information, 0.0).ok()
        };
        additions.map(damped).find_map(|lower| lower.map(|lower| (lower, false)))
    }
}

impl Objective for Likelihood<'_> {
    type Point = Point;

    fn at(&self, parameters: &Array1<f64>) -> Point {
        let p = self.x.ncols();
        let starts: Vec<usize> = (0..self.event.len()).step_by(PART).collect();
        let parts: Vec<Point> = starts.into_par_iter().map(|first| self.part(first, parameters)).collect();
        let mut point = parts.iter().fold(Point::zero(p + 2), Point::add);
        for (k, b) in parameters.iter().enumerate().skip(1).take(p) {
            point.value -= 0.5 * self.ridge * b * b;
            point.gradient[k] -= self.ridge * b;
            point.information[[k, k]] += self.ridge;
        }
        let lower = point.information.clone();
        for ((row, column), cell) in point.information.indexed_iter_mut() {
            *cell = lower[[row.max(column), row.min(column)]];
        }
        point
    }

    fn value(point: &Point) -> f64 {
        point.value
    }

    fn step(&self, parameters: &Array1<f64>, here: &Point) -> Result<Step, ClassicalError> {
        let log_scale = parameters[parameters.len() - 1];
        let scale = log_scale.exp();
        if scale < SMALLEST_SCALE * self.spread {
            return Err(ClassicalError::ExactTimes);
        }
        let (lower, is_undamped) = self.factor(here, scale).ok_or(ClassicalError::ExactTimes)?;
        if is_undamped {
            self.check_bounded(here, &lower, scale)?;
        }
        let mut by = solve_lower(&lower, &here.gradient);
        // The scale changes by a factor of at most e in a step.
        let change = by[by.len() - 1].abs();
        if change > 1.0 {
            by /= change;
        }
        Ok(Step { decrement: by.dot(&here.gradient), is_exact: is_undamped && change <= 1.0, by })
    }
}

/// The inverse of a positive definite matrix; `None` of another.
pub(super) fn inverse(matrix: &Array2<f64>) -> Option<Array2<f64>> {
    let lower = cholesky(matrix.clone(), 0.0).ok()?;
    let mut inverse = Array2::eye(matrix.nrows());
    for mut column in inverse.axis_iter_mut(Axis(1)) {
        let solved = solve_lower(&lower, &column.to_owned());
        column.assign(&solved);
    }
    Some(inverse)
}
