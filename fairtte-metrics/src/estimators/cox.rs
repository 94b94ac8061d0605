//! A Cox model of a few covariates for weighted samples, fitted by Newton's method.
//!
//! Ties by Efron's approximation. A weight is the number of times that a sample occurs: a weight of 2 gives exactly the
//! model of a sample that contains the row twice, as a bootstrap replicate does (R's case weights differ at ties).
//! Source: Efron (1977), doi:10.1080/01621459.1977.10480613. Golden values: lifelines 0.30.3 `CoxPHFitter` on rows that
//! are repeated.
//!
//! With competing events it is a model of the subdistribution hazard: a subject who had one stays at risk at later times t, with
//! the weight G(t-) / G(T-), G the Kaplan-Meier curve of the censoring in the weighted sample (events first). Source: Fine &
//! Gray (1999), doi:10.1080/01621459.1999.10474144. Golden values: `fairtte-classical`'s, which are checked by themselves.

use crate::{MetricError, Outcomes};

/// Covariates of a calibration model: at most this many, so that a Hessian lies on the stack.
pub(crate) const MOST_COVARIATES: usize = 2;

const MOST_STEPS: usize = 50;
/// Newton's method ends with the step whose squared length in standard errors (Newton's decrement) is below this: it
/// converges quadratically, so that what is left is below a millionth of a standard error.
pub(super) const TOLERANCE: f64 = 1e-6;
/// Rounding may lower the log likelihood near its maximum, or move an information, by this share.
const ROUNDING: f64 = 1e-11;
/// A coefficient beyond it separates the samples: the likelihood has no maximum.
pub(super) const MOST_COEFFICIENT: f64 = 1e4;

pub(super) type Vector = [f64; MOST_COVARIATES];
/// A symmetric matrix: its first diagonal cell, the other cell, its second diagonal cell.
type Matrix = [f64; 3];

/// Samples in descending order of time, with their covariates.
#[derive(Clone, Debug)]
pub(crate) struct CoxDesign {
    /// Row numbers by descending time.
    pub(super) order: Vec<u32>,
    pub(super) time: Vec<f64>,
    pub(super) event: Vec<bool>,
    pub(super) covariates: Vec<Vector>,
    /// Covariates in use; the others are 0.
    pub(super) n_covariates: usize,
    /// Which samples had a competing event; empty without any.
    competing: Vec<bool>,
}

/// The sums over the samples at risk, or over the tied events.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    risk: f64,
    first: Vector,
    second: Matrix,
}

/// The log partial likelihood with its derivatives.
#[derive(Clone, Copy, Debug, Default)]
struct Likelihood {
    value: f64,
    gradient: Vector,
    information: Matrix,
    /// The diagonal of the information without the means that are subtracted: what rounding is measured by.
    scale: Vector,
}

impl CoxDesign {
    /// Row `i` has the covariates `covariates(i)`, of which the first `n_covariates` count.
    pub(crate) fn new(outcomes: &Outcomes, n_covariates: usize, covariates: impl Fn(usize) -> Vector) -> Self {
        let mut order: Vec<u32> = (0..crate::ids::to_u32(outcomes.n())).collect();
        order.sort_by(|a, b| outcomes.time()[*b as usize].total_cmp(&outcomes.time()[*a as usize]));
        let in_order = |row: &u32| *row as usize;
        Self {
            time: order.iter().map(|row| outcomes.time()[in_order(row)]).collect(),
            event: order.iter().map(|row| outcomes.event()[in_order(row)]).collect(),
            covariates: order.iter().map(|row| covariates(in_order(row))).collect(),
            order,
            n_covariates,
            competing: Vec::new(),
        }
    }

    /// The same where the rows marked in `competing` had a competing event.
    pub(crate) fn with_competing(self, competing: &[bool]) -> Self {
        let competing = if competing.contains(&true) {
            self.order.iter().map(|row| competing[*row as usize]).collect()
        } else {
            Vec::new()
        };
        Self { competing, ..self }
    }

    /// Whether a sample had a competing event.
    pub(crate) fn has_competing(&self) -> bool {
        !self.competing.is_empty()
    }

    /// The coefficients that maximise the partial likelihood of the rows with these weights, started at `start`.
    /// O(n) per step.
    ///
    /// # Errors
    /// [`MetricError::CalibrationModel`] without an event, without a maximum, or if the covariates do not vary.
    pub(crate) fn fit(&self, weights: &[u32], start: Vector) -> Result<Vector, MetricError> {
        let weights = self.in_order(weights);
        let mut coefficients = start;
        let mut here = self.likelihood(&weights, coefficients)?;
        for _ in 0..MOST_STEPS {
            let step = solve(here.information, here.scale, here.gradient, self.n_covariates).ok_or(SINGULAR)?;
            let decrement: f64 = step.iter().zip(here.gradient).map(|(step, gradient)| step * gradient).sum();
            if decrement <= TOLERANCE && is_short(step, coefficients) {
                return Ok(moved(coefficients, step, 1.0));
            }
            let mut share = 1.0;
            (coefficients, here) = loop {
                let next = moved(coefficients, step, share);
                let there = self.likelihood(&weights, next)?;
                if there.value >= here.value - ROUNDING * here.value.abs() {
                    break (next, there);
                }
                // The step overshoots.
                share /= 2.0;
                if share < 1e-6 {
                    return Err(NO_MAXIMUM);
                }
            };
            if coefficients.iter().any(|coefficient| coefficient.abs() > MOST_COEFFICIENT) {
                return Err(NO_MAXIMUM);
            }
        }
        Err(NO_MAXIMUM)
    }

    /// How far `other` is from a fit, in standard errors: 0 if they are equal, and small where the likelihood says little.
    #[cfg(test)]
    pub(super) fn standard_errors_between(&self, weights: &[u32], fit: Vector, other: Vector) -> f64 {
        let [first, cross, second] = self.likelihood(&self.in_order(weights), fit).expect("it is a fit").information;
        let [x, y]: Vector = std::array::from_fn(|k| fit[k] - other[k]);
        (first * x * x + 2.0 * cross * x * y + second * y * y).max(0.0).sqrt()
    }

    /// The cumulative baseline hazard up to and including `time`, of covariates 0.
    ///
    /// # Errors
    /// [`MetricError::CalibrationModel`] if a risk overflows.
    pub(crate) fn baseline(&self, weights: &[u32], coefficients: Vector, time: f64) -> Result<f64, MetricError> {
        let mut hazard = 0.0;
        self.for_each_event_time(&self.in_order(weights), coefficients, |at, n_events, at_risk, events, _| {
            if at <= time {
                hazard += hazard_step(n_events, at_risk, events);
            }
        })?;
        Ok(hazard)
    }

    /// The event times, ascending, with the cumulative baseline hazard after each of them, of covariates 0. O(n).
    ///
    /// # Errors
    /// As [`baseline`](Self::baseline).
    pub(crate) fn cumulative_hazard(
        &self,
        weights: &[u32],
        coefficients: Vector,
    ) -> Result<(Vec<f64>, Vec<f64>), MetricError> {
        let mut steps = Vec::new();
        self.for_each_event_time(&self.in_order(weights), coefficients, |at, n_events, at_risk, events, _| {
            steps.push((at, hazard_step(n_events, at_risk, events)));
        })?;
        let mut sum = 0.0;
        let cumulative = steps.into_iter().rev().map(|(at, step)| {
            sum += step;
            (at, sum)
        });
        Ok(cumulative.unzip())
    }

    fn in_order(&self, weights: &[u32]) -> Vec<u32> {
        self.order.iter().map(|row| weights[*row as usize]).collect()
    }

    fn likelihood(&self, weights: &[u32], coefficients: Vector) -> Result<Likelihood, MetricError> {
        let mut found = Likelihood::default();
        self.for_each_event_time(weights, coefficients, |_, n_events, at_risk, events, linear| {
            found.value += linear.risk;
            for k in 0..self.n_covariates {
                found.gradient[k] += linear.first[k];
            }
            for tie in 0..n_events {
                let share = f64::from(tie) / f64::from(n_events);
                let risk = at_risk.risk - share * events.risk;
                let inverse = risk.recip();
                let [x, y]: Vector = std::array::from_fn(|k| (at_risk.first[k] - share * events.first[k]) * inverse);
                found.value -= risk.ln();
                found.gradient[0] -= x;
                found.gradient[1] -= y;
                found.scale[0] += (at_risk.second[0] - share * events.second[0]) * inverse;
                found.scale[1] += (at_risk.second[2] - share * events.second[2]) * inverse;
                for (k, (cell, product)) in found.information.iter_mut().zip([x * x, x * y, y * y]).enumerate() {
                    *cell += (at_risk.second[k] - share * events.second[k]) * inverse - product;
                }
            }
        })?;
        if found.value.is_finite() { Ok(found) } else { Err(NO_MAXIMUM) }
    }

    /// Calls `visit` for every time with an event, from the latest, with the number of events there, the sums over the
    /// samples at risk and over the events, and, in `risk` and `first` of the last, the sums of the events' linear
    /// predictors and covariates.
    fn for_each_event_time(
        &self,
        weights: &[u32],
        coefficients: Vector,
        mut visit: impl FnMut(f64, u32, &Sums, &Sums, &Sums),
    ) -> Result<(), MetricError> {
        let mut at_risk = Sums::default();
        let mut first = 0;
        let mut any = false;
        let mut retained = self.retained(weights, coefficients).into_iter();
        while first < self.time.len() {
            let tied = self.time[first..].iter().take_while(|time| **time >= self.time[first]).count();
            let (mut events, mut linear, mut n_events) = (Sums::default(), Sums::default(), 0);
            for place in (first..first + tied).filter(|place| weights[*place] > 0) {
                let (covariates, weight) = (&self.covariates[place], f64::from(weights[place]));
                let predictor: f64 = covariates.iter().zip(coefficients).map(|(x, b)| x * b).sum();
                let risk = weight * predictor.exp();
                at_risk.add(*covariates, risk);
                if self.event[place] {
                    events.add(*covariates, risk);
                    linear.risk += weight * predictor;
                    linear.first.iter_mut().zip(covariates).for_each(|(sum, x)| *sum += weight * x);
                    n_events += weights[place];
                }
            }
            let of_competing = retained.next();
            if n_events > 0 {
                any = true;
                let with_competing = of_competing.map_or(at_risk, |retained| at_risk.plus(&retained));
                if !with_competing.risk.is_finite() {
                    return Err(NO_MAXIMUM);
                }
                visit(self.time[first], n_events, &with_competing, &events, &linear);
            }
            first += tied;
        }
        if any { Ok(()) } else { Err(MetricError::CalibrationModel { reason: "there is no event" }) }
    }

    /// By distinct time, from the latest: the sums over the samples that had a competing event before it, each with its
    /// weight G(t-) / G(T-). Empty without competing events.
    fn retained(&self, weights: &[u32], coefficients: Vector) -> Vec<Sums> {
        if !self.has_competing() {
            return Vec::new();
        }
        let mut n_at_risk: f64 = weights.iter().copied().map(f64::from).sum();
        let (mut censoring, mut so_far, mut retained) = (1.0, Sums::default(), Vec::new());
        let mut end = self.time.len();
        while end > 0 {
            let tied = self.time[..end].iter().rev().take_while(|time| **time <= self.time[end - 1]).count();
            retained.push(so_far.times(censoring));
            let (mut n_events, mut n_censored) = (0.0, 0.0);
            for place in (end - tied..end).filter(|place| weights[*place] > 0) {
                let (covariates, weight) = (&self.covariates[place], f64::from(weights[place]));
                if self.competing[place] {
                    let predictor: f64 = covariates.iter().zip(coefficients).map(|(x, b)| x * b).sum();
                    // A sample is observed here: G(T-) is above 0.
                    so_far.add(*covariates, weight * predictor.exp() / censoring);
                }
                let count = if self.event[place] || self.competing[place] { &mut n_events } else { &mut n_censored };
                *count += weight;
            }
            if n_censored > 0.0 {
                censoring *= 1.0 - n_censored / (n_at_risk - n_events);
            }
            n_at_risk -= n_events + n_censored;
            end -= tied;
        }
        retained.reverse();
        retained
    }
}

/// The step of the baseline hazard at an event time, by Efron's approximation.
fn hazard_step(n_events: u32, at_risk: &Sums, events: &Sums) -> f64 {
    (0..n_events).map(|k| at_risk.risk - f64::from(k) / f64::from(n_events) * events.risk).map(f64::recip).sum()
}

impl Sums {
    fn plus(&self, other: &Self) -> Self {
        Self {
            risk: self.risk + other.risk,
            first: std::array::from_fn(|k| self.first[k] + other.first[k]),
            second: std::array::from_fn(|k| self.second[k] + other.second[k]),
        }
    }

    fn times(&self, factor: f64) -> Self {
        Self {
            risk: factor * self.risk,
            first: self.first.map(|sum| factor * sum),
            second: self.second.map(|sum| factor * sum),
        }
    }

    fn add(&mut self, [x, y]: Vector, risk: f64) {
        self.risk += risk;
        let (by_x, by_y) = (risk * x, risk * y);
        self.first[0] += by_x;
        self.first[1] += by_y;
        self.second[0] += by_x * x;
        self.second[1] += by_x * y;
        self.second[2] += by_y * y;
    }
}

/// Where the predictions separate the events, the likelihood becomes flat, but the steps stay long.
pub(super) fn is_short(step: Vector, coefficients: Vector) -> bool {
    step.iter().zip(coefficients).all(|(step, b)| step.abs() <= 0.01 * (1.0 + b.abs()))
}

pub(super) fn moved(from: Vector, step: Vector, share: f64) -> Vector {
    std::array::from_fn(|k| from[k] + share * step[k])
}

/// The covariates are collinear or constant.
pub(crate) const SINGULAR: MetricError =
    MetricError::CalibrationModel { reason: "the predictions do not vary among the samples at risk" };
const NO_MAXIMUM: MetricError =
    MetricError::CalibrationModel { reason: "its likelihood has no maximum: the predictions separate the events" };

/// Solves `matrix` x = `vector` in the first `n` dimensions, `matrix` symmetric; `None` unless it is positive definite
/// beyond the rounding of numbers as large as `scale`, by dimension.
pub(super) fn solve(matrix: Matrix, scale: Vector, vector: Vector, n: usize) -> Option<Vector> {
    let [first, cross, second] = matrix;
    let varies = |information: f64, scale: f64| information > ROUNDING * scale && information.is_finite();
    match n {
        0 => Some([0.0; MOST_COVARIATES]),
        1 => varies(first, scale[0]).then(|| [vector[0] / first, 0.0]),
        _ => {
            let determinant = first * second - cross * cross;
            let is_definite = determinant > 1e-12 * first * second;
            (varies(first, scale[0]) && varies(second, scale[1]) && is_definite).then(|| {
                let [x, y] = vector;
                [(second * x - cross * y) / determinant, (first * y - cross * x) / determinant]
            })
        }
    }
}
