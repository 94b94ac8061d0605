//! The partial likelihood of a Cox model with its derivatives, and its maximum.

use ndarray::{Array1, Array2, ArrayView1, Axis};

use super::{CoxError, CoxTies};
use crate::Outcomes;
use crate::linear_algebra::{cholesky, solve_lower};

const MOST_STEPS: usize = 60;
/// Newton's method ends with the step whose squared length in standard errors is below this: it converges quadratically,
/// so that what is left is below the rounding of numbers.
const TOLERANCE: f64 = 1e-12;
/// A coefficient of a covariate with standard deviation 1 beyond it separates the samples.
const MOST_COEFFICIENT: f64 = 30.0;
/// The likelihood is flat where its information about a coefficient is below this share of that at coefficients of 0.
const FLAT: f64 = 1e-8;
/// Share of a covariate's variance that the others must leave unexplained.
const INDEPENDENT: f64 = 1e-9;
/// Rounding may lower the log likelihood near its maximum by this share.
const ROUNDING: f64 = 1e-12;

/// Samples in descending order of time, with covariates of mean 0 and standard deviation 1.
pub(super) struct Design {
    time: Vec<f64>,
    event: Vec<bool>,
    /// `[n, p]`.
    x: Array2<f64>,
    ties: CoxTies,
}

/// The log partial likelihood with its derivatives.
struct Likelihood {
    value: f64,
    gradient: Array1<f64>,
    /// Negative second derivatives.
    information: Array2<f64>,
}

/// The maximum of the partial likelihood.
pub(super) struct Maximum {
    pub(super) coefficients: Array1<f64>,
    pub(super) standard_errors: Vec<f64>,
    pub(super) log_likelihood: f64,
    /// That of coefficients 0.
    pub(super) log_likelihood_null: f64,
}

/// Sums over the samples at risk, or over tied events.
#[derive(Clone)]
struct Sums {
    risk: f64,
    first: Array1<f64>,
    second: Array2<f64>,
}

impl Sums {
    fn zero(p: usize) -> Self {
        Self { risk: 0.0, first: Array1::zeros(p), second: Array2::zeros((p, p)) }
    }

    fn add(&mut self, x: &ArrayView1<'_, f64>, risk: f64) {
        self.risk += risk;
        self.first.scaled_add(risk, x);
        for (mut row, cell) in self.second.rows_mut().into_iter().zip(x) {
            row.scaled_add(risk * cell, x);
        }
    }
}

impl Design {
    /// `x` is `[n, p]`, standardised.
    pub(super) fn new(outcomes: &Outcomes, x: &Array2<f64>, ties: CoxTies) -> Self {
        let mut order: Vec<usize> = (0..outcomes.n()).collect();
        order.sort_by(|a, b| outcomes.time()[*b].total_cmp(&outcomes.time()[*a]));
        let x = x.select(Axis(0), &order);
        let outcomes = outcomes.select(&order);
        Self { time: outcomes.time().to_vec(), event: outcomes.event().to_vec(), x, ties }
    }

    /// Calls `visit` for every time with an event, from the latest.
    fn for_each_event_time(&self, coefficients: &Array1<f64>, mut visit: impl FnMut(&AtTime<'_>)) {
        let p = coefficients.len();
        let predictor = self.x.dot(coefficients);
        let (mut at_risk, mut events) = (Sums::zero(p), Sums::zero(p));
        let mut first = 0;
        while first < self.time.len() {
            let time = self.time[first];
            let end = first + self.time[first..].iter().take_while(|tied| **tied >= time).count();
            let is_event = |place: &usize| self.event[*place];
            let n_events = (first..end).filter(is_event).count();
            if n_events > 0 {
                events = Sums::zero(p);
            }
            for place in first..end {
                let risk = predictor[place].exp();
                at_risk.add(&self.x.row(place), risk);
                if self.event[place] {
                    events.add(&self.x.row(place), risk);
                }
            }
            if n_events > 0 {
                let linear: f64 = (first..end).filter(is_event).map(|place| predictor[place]).sum();
                let rows = (first..end).filter(is_event).collect();
                visit(&AtTime { time, n_events, at_risk: &at_risk, events: &events, linear, rows });
            }
            first = end;
        }
    }

    /// Share of the tied events that is taken from the samples at risk before each of them.
    fn shares(&self, n_events: usize) -> impl Iterator<Item = f64> + use<> {
        let step = match self.ties {
            CoxTies::Efron => 1.0 / n_events as f64,
            CoxTies::Breslow => 0.0,
        };
        (0..n_events).map(move |k| k as f64 * step)
    }

    fn likelihood(&self, coefficients: &Array1<f64>) -> Likelihood {
        let p = coefficients.len();
        let mut found = Likelihood { value: 0.0, gradient: Array1::zeros(p), information: Array2::zeros((p, p)) };
        self.for_each_event_time(coefficients, |at| {
            found.value += at.linear;
            for row in &at.rows {
                found.gradient += &self.x.row(*row);
            }
            for share in self.shares(at.n_events) {
                let risk = at.at_risk.risk - share * at.events.risk;
                let mean = (&at.at_risk.first - &(&at.events.first * share)) / risk;
                found.value -= risk.ln();
                found.gradient -= &mean;
                found.information.scaled_add(1.0 / risk, &at.at_risk.second);
                found.information.scaled_add(-share / risk, &at.events.second);
                for (mut row, cell) in found.information.rows_mut().into_iter().zip(&mean) {
                    row.scaled_add(-cell, &mean);
                }
            }
        });
        found
    }

    /// Event times, ascending, with the cumulative hazard of a sample at the mean of all covariates.
    pub(super) fn cumulative_hazard(&self, coefficients: &Array1<f64>) -> (Vec<f64>, Vec<f64>) {
        let mut steps: Vec<(f64, f64)> = Vec::new();
        self.for_each_event_time(coefficients, |at| {
            let hazard = self.shares(at.n_events).map(|share| (at.at_risk.risk - share * at.events.risk).recip());
            steps.push((at.time, hazard.sum()));
        });
        let mut sum = 0.0;
        steps.reverse();
        steps
            .into_iter()
            .map(|(time, step)| {
                (time, {
                    sum += step;
                    sum
                })
            })
            .unzip()
    }

    /// The coefficients with the largest partial likelihood; `terms` are their names. O(n p^2) per step.
    ///
    /// # Errors
    /// [`CoxError::Collinear`] or [`CoxError::NoMaximum`].
    pub(super) fn maximum(&self, terms: &[String]) -> Result<Maximum, CoxError> {
        self.check_independent(terms)?;
        let mut coefficients = Array1::zeros(terms.len());
        let mut here = self.likelihood(&coefficients);
        let (at_zero, log_likelihood_null) = (here.information.diag().to_owned(), here.value);
        for _ in 0..MOST_STEPS {
            let is_flat = |term: &usize| here.information[[*term, *term]] < FLAT * at_zero[*term];
            if let Some(term) = (0..terms.len()).find(is_flat) {
                return Err(no_maximum(terms, term));
            }
            let lower = cholesky(here.information.clone(), 0.0).map_err(|term| no_maximum(terms, term))?;
            let step = solve_lower(&lower, &here.gradient);
            let is_short = step.iter().zip(&coefficients).all(|(step, b)| step.abs() <= 0.01 * (1.0 + f64::abs(*b)));
            if step.dot(&here.gradient) <= TOLERANCE && is_short {
                let coefficients = coefficients + step;
                let last = self.likelihood(&coefficients);
                return Ok(Maximum {
                    standard_errors: standard_errors(last.information, terms)?,
                    log_likelihood: last.value,
                    log_likelihood_null,
                    coefficients,
                });
            }
            (coefficients, here) = self.uphill(&coefficients, &here, &step).ok_or_else(|| {
                let largest = largest(&coefficients);
                no_maximum(terms, largest)
            })?;
            if let Some(term) = coefficients.iter().position(|b: &f64| b.abs() > MOST_COEFFICIENT) {
                return Err(no_maximum(terms, term));
            }
        }
        Err(no_maximum(terms, largest(&coefficients)))
    }

    /// A step that does not lower the likelihood: the whole one, or a half, a quarter, ..
    fn uphill(&self, from: &Array1<f64>, here: &Likelihood, step: &Array1<f64>) -> Option<(Array1<f64>, Likelihood)> {
        let shares = std::iter::successors(Some(1.0), |share| Some(share / 2.0)).take(20);
        let moved = |share: f64| {
            let next = from + &(step * share);
            let there = self.likelihood(&next);
            (next, there)
        };
        let lowest = here.value - ROUNDING * here.value.abs();
        shares.map(moved).find(|(_, there)| there.value >= lowest && there.value.is_finite())
    }

    /// Every covariate varies beyond what those before it say.
    fn check_independent(&self, terms: &[String]) -> Result<(), CoxError> {
        let products = self.x.t().dot(&self.x);
        cholesky(products, INDEPENDENT)
            .map(|_| ())
            .map_err(|term| CoxError::Collinear { term: terms[term].clone(), others: terms[..term].join(", ") })
    }
}

/// One time with events.
struct AtTime<'a> {
    time: f64,
    n_events: usize,
    at_risk: &'a Sums,
    events: &'a Sums,
    /// Sum of the linear predictors of the events.
    linear: f64,
    /// The events.
    rows: Vec<usize>,
}

fn largest(coefficients: &Array1<f64>) -> usize {
    (0..coefficients.len()).max_by(|a, b| coefficients[*a].abs().total_cmp(&coefficients[*b].abs())).unwrap_or(0)
}

fn no_maximum(terms: &[String], term: usize) -> CoxError {
    CoxError::NoMaximum { term: terms.get(term).cloned().unwrap_or_default() }
}

/// Roots of the diagonal of the inverse information.
fn standard_errors(information: Array2<f64>, terms: &[String]) -> Result<Vec<f64>, CoxError> {
    let p = information.nrows();
    let lower = cholesky(information, 0.0).map_err(|term| no_maximum(terms, term))?;
    let unit = |k: usize| Array1::from_shape_fn(p, |j| f64::from(u8::from(j == k)));
    Ok((0..p).map(|k| solve_lower(&lower, &unit(k))[k].sqrt()).collect())
}
