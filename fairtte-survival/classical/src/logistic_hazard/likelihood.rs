//! The log-likelihood of person-periods with its derivatives.
//!
//! A sample that is at risk in m intervals has m rows, with the log odds of a hazard `alpha_j + x b + g_j x c` and the outcome 1 in
//! the last if it has the event there. The rows are never stored: sums over the rows of a sample multiply its covariates once.
//! The information of the alphas is a diagonal D, so that Newton's step solves for the other parameters alone, with the Schur
//! complement B - C' D^-1 C: O(rows + n p^2 + n J p) instead of O(rows (J + p)^2).

use fairtte_metrics::linear_algebra::{cholesky, solve_lower};
use ndarray::{Array1, Array2, Axis, aview1, s};
use rayon::prelude::*;

use crate::newton::{Objective, Step};
use crate::standardised::involved;
use crate::{ClassicalError, Column};

/// Samples of a part, of which sums are added in order, so that they do not depend on the number of threads.
const PART: usize = 1024;
/// A direction with less information per event has no maximum: at a maximum each level of a covariate has that of its events.
const FLAT: f64 = 1e-8;

/// Samples with at least one row, and the penalty.
pub(super) struct Likelihood {
    /// Covariates, `[n, p]`.
    pub(super) x: Array2<f64>,
    /// Rows of each sample, at least 1: it is at risk in the first of the intervals, `[n]`.
    pub(super) n_rows: Vec<usize>,
    /// Whether it has the event in its last row, `[n]`.
    pub(super) event: Vec<bool>,
    /// Intervals.
    pub(super) n_intervals: usize,
    /// g of each interval, `[n_intervals]`; `None` where effects are constant.
    pub(super) time: Option<Vec<f64>>,
    /// Factor of alpha^2 / 2, which is subtracted; if above 0 there is an intercept beside them.
    pub(super) ridge_of_intervals: f64,
    /// Factors of b^2 / 2 and of c^2 / 2, `[p]`.
    pub(super) ridge: Array1<f64>,
}

/// The penalised log-likelihood at the alphas and the other parameters, `[n_intervals]` and `[q]`, with its derivatives.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) value: f64,
    /// `[n_intervals + q]`.
    pub(super) gradient: Array1<f64>,
    /// Information of the alphas, `[n_intervals]`.
    pub(super) diagonal: Array1<f64>,
    /// Of each alpha with the others, `[n_intervals, q]`.
    pub(super) cross: Array2<f64>,
    /// Of the others, `[q, q]`.
    pub(super) block: Array2<f64>,
}

/// Sums over samples. Those of x are of the rows of a sample, weighted by g^0, g^1 and g^2.
struct Sums {
    value: f64,
    gradient_of_intervals: Array1<f64>,
    diagonal: Array1<f64>,
    /// Weights times x by interval, `[n_intervals, p]`.
    cross: Array2<f64>,
    gradient: [Array1<f64>; 2],
    products: [Array2<f64>; 3],
}

impl Sums {
    fn zero(n_intervals: usize, p: usize) -> Self {
        Self {
            value: 0.0,
            gradient_of_intervals: Array1::zeros(n_intervals),
            diagonal: Array1::zeros(n_intervals),
            cross: Array2::zeros((n_intervals, p)),
            gradient: std::array::from_fn(|_| Array1::zeros(p)),
            products: std::array::from_fn(|_| Array2::zeros((p, p))),
        }
    }

    fn add(mut self, other: &Self) -> Self {
        self.value += other.value;
        self.gradient_of_intervals += &other.gradient_of_intervals;
        self.diagonal += &other.diagonal;
        self.cross += &other.cross;
        for (sum, other) in self.gradient.iter_mut().zip(&other.gradient) {
            *sum += other;
        }
        for (sum, other) in self.products.iter_mut().zip(&other.products) {
            *sum += other;
        }
        self
    }
}

impl Likelihood {
    pub(super) fn n_covariates(&self) -> usize {
        self.x.ncols()
    }

    /// Place of the first coefficient among the parameters beside the alphas: 1 after an intercept.
    pub(super) fn first(&self) -> usize {
        usize::from(self.ridge_of_intervals > 0.0)
    }

    /// Parameters beside the alphas: an intercept if there is one, b, and c where effects change.
    pub(super) fn n_others(&self) -> usize {
        self.first() + self.n_covariates() * if self.time.is_some() { 2 } else { 1 }
    }

    /// Products of coefficients and covariates of every sample: those of all times, and those that g multiplies.
    fn predictors(&self, parameters: &Array1<f64>) -> (Array1<f64>, Option<Array1<f64>>) {
        let (p, first) = (self.n_covariates(), self.n_intervals + self.first());
        let intercept = if self.first() == 1 { parameters[self.n_intervals] } else { 0.0 };
        let constant = self.x.dot(&parameters.slice(s![first..first + p])) + intercept;
        let changing = self.time.as_ref().map(|_| self.x.dot(&parameters.slice(s![first + p..])));
        (constant, changing)
    }

    fn part(
        &self,
        start: usize,
        parameters: &Array1<f64>,
        (constant, changing): &(Array1<f64>, Option<Array1<f64>>),
    ) -> Sums {
        let end = self.event.len().min(start + PART);
        let x = self.x.slice(s![start..end, ..]);
        let mut sums = Sums::zero(self.n_intervals, self.n_covariates());
        let mut weights = Array2::<f64>::zeros((end - start, self.n_intervals));
        let mut residuals = Array2::<f64>::zeros((2, end - start));
        let mut totals = Array2::<f64>::zeros((3, end - start));
        for (place, mut weights) in weights.rows_mut().into_iter().enumerate() {
            let sample = start + place;
            let (u, v) = (constant[sample], changing.as_ref().map_or(0.0, |changing| changing[sample]));
            let last = self.n_rows[sample] - 1;
            let (mut residual_sums, mut weight_sums) = ([0.0; 2], [0.0; 3]);
            for (interval, kept) in weights.iter_mut().enumerate().take(last + 1) {
                let g = self.time.as_ref().map_or(0.0, |time| time[interval]);
                let log_odds = parameters[interval] + u + g * v;
                let small = (-log_odds.abs()).exp();
                let hazard = if log_odds >= 0.0 { 1.0 } else { small } / (1.0 + small);
                let has_event = interval == last && self.event[sample];
                let residual = f64::from(u8::from(has_event)) - hazard;
                let weight = small / ((1.0 + small) * (1.0 + small));
                sums.value -= log_odds.max(0.0) + small.ln_1p() - if has_event { log_odds } else { 0.0 };
                sums.gradient_of_intervals[interval] += residual;
                sums.diagonal[interval] += weight;
                *kept = weight;
                residual_sums[0] += residual;
                residual_sums[1] += g * residual;
                weight_sums[0] += weight;
                weight_sums[1] += g * weight;
                weight_sums[2] += g * g * weight;
            }
            residuals.column_mut(place).assign(&aview1(&residual_sums));
            totals.column_mut(place).assign(&aview1(&weight_sums));
        }
        sums.cross = weights.t().dot(&x);
        let powers = if changing.is_some() { 3 } else { 1 };
        for power in 0..powers {
            if power < 2 {
                sums.gradient[power] = x.t().dot(&residuals.row(power));
            }
            let weighted = &x * &totals.row(power).insert_axis(Axis(1));
            sums.products[power] = weighted.t().dot(&x);
        }
        sums
    }

    /// The derivatives by all parameters, from the sums.
    fn assembled(&self, sums: Sums, parameters: &Array1<f64>) -> Point {
        let (p, first, n_intervals, q) = (self.n_covariates(), self.first(), self.n_intervals, self.n_others());
        let Sums { value, gradient_of_intervals, diagonal, cross: of_x, gradient: of_b, products } = sums;
        let mut gradient = Array1::zeros(n_intervals + q);
        let (mut cross, mut block) = (Array2::zeros((n_intervals, q)), Array2::zeros((q, q)));
        gradient.slice_mut(s![..n_intervals]).assign(&gradient_of_intervals);
        let (b, c) = (first..first + p, first + p..first + 2 * p);
        gradient.slice_mut(s![n_intervals + first..n_intervals + first + p]).assign(&of_b[0]);
        cross.slice_mut(s![.., b.clone()]).assign(&of_x);
        block.slice_mut(s![b.clone(), b.clone()]).assign(&products[0]);
        if let Some(time) = &self.time {
            gradient.slice_mut(s![n_intervals + first + p..]).assign(&of_b[1]);
            let time = Array1::from(time.clone()).insert_axis(Axis(1));
            cross.slice_mut(s![.., c.clone()]).assign(&(&of_x * &time));
            block.slice_mut(s![b.clone(), c.clone()]).assign(&products[1]);
            block.slice_mut(s![c.clone(), b]).assign(&products[1]);
            block.slice_mut(s![c.clone(), c]).assign(&products[2]);
        }
        if first == 1 {
            gradient[n_intervals] = gradient_of_intervals.sum();
            cross.column_mut(0).assign(&diagonal);
            let with_intercept = cross.sum_axis(Axis(0));
            block.row_mut(0).assign(&with_intercept);
            block.column_mut(0).assign(&with_intercept);
        }
        let mut point = Point { value, gradient, diagonal, cross, block };
        self.penalise(&mut point, parameters);
        point
    }

    fn penalise(&self, point: &mut Point, parameters: &Array1<f64>) {
        let (p, n_intervals, first) = (self.n_covariates(), self.n_intervals, self.first());
        for (place, value) in parameters.iter().enumerate() {
            let factor = match place.checked_sub(n_intervals) {
                None => self.ridge_of_intervals,
                Some(other) => other.checked_sub(first).map_or(0.0, |k| self.ridge[k % p]),
            };
            point.value -= 0.5 * factor * value * value;
            point.gradient[place] -= factor * value;
            match place.checked_sub(n_intervals) {
                None => point.diagonal[place] += factor,
                Some(other) => point.block[[other, other]] += factor,
            }
        }
    }

    /// The covariates of a direction without information, which ends at `place` of the parameters beside the alphas.
    fn separating(&self, schur: &Array2<f64>, place: usize) -> ClassicalError {
        let columns = involved(schur, place).into_iter().filter_map(|other| other.checked_sub(self.first()));
        let mut columns: Vec<usize> = columns.map(|other| other % self.n_covariates()).collect();
        columns.sort_unstable();
        columns.dedup();
        ClassicalError::Separates { columns: columns.into_iter().map(Column::new).collect() }
    }
}

impl Point {
    /// C' D^-1, `[q, n_intervals]`.
    pub(super) fn shares(&self) -> Array2<f64> {
        (&self.cross / &self.diagonal.view().insert_axis(Axis(1))).reversed_axes()
    }

    /// B - C' D^-1 C: the information of the other parameters when the alphas are at their best.
    pub(super) fn schur(&self) -> Array2<f64> {
        &self.block - &self.shares().dot(&self.cross)
    }
}

impl Objective for Likelihood {
    type Point = Point;

    fn at(&self, parameters: &Array1<f64>) -> Point {
        let predictors = self.predictors(parameters);
        let starts: Vec<usize> = (0..self.event.len()).step_by(PART).collect();
        let parts: Vec<Sums> = starts.into_par_iter().map(|start| self.part(start, parameters, &predictors)).collect();
        let sums = parts.iter().fold(Sums::zero(self.n_intervals, self.n_covariates()), Sums::add);
        self.assembled(sums, parameters)
    }

    fn value(point: &Point) -> f64 {
        point.value
    }

    fn step(&self, _: &Array1<f64>, here: &Point) -> Result<Step, ClassicalError> {
        let (of_intervals, of_others) = here.gradient.view().split_at(Axis(0), self.n_intervals);
        let (shares, schur) = (here.shares(), here.schur());
        let lower = cholesky(schur.clone(), 0.0).map_err(|place| self.separating(&schur, place))?;
        let n_events = self.event.iter().filter(|event| **event).count() as f64;
        let is_flat = |k: &usize| {
            self.ridge[(*k - self.first()) % self.n_covariates()] <= 0.0 && lower[[*k, *k]].powi(2) < FLAT * n_events
        };
        if let Some(place) = (self.first()..self.n_others()).find(is_flat) {
            return Err(self.separating(&schur, place));
        }
        let others = solve_lower(&lower, &(&of_others - &shares.dot(&of_intervals)));
        let intervals = (&of_intervals - &here.cross.dot(&others)) / &here.diagonal;
        let mut by = Array1::zeros(here.gradient.len());
        by.slice_mut(s![..self.n_intervals]).assign(&intervals);
        by.slice_mut(s![self.n_intervals..]).assign(&others);
        Ok(Step { decrement: by.dot(&here.gradient), by, is_exact: true })
    }
}
