//! From samples and cut points to the likelihood of person-periods, and from its parameters to those of the model.

use fairtte_metrics::Outcomes;
use fairtte_metrics::linear_algebra::{cholesky, solve_lower};
use ndarray::{Array1, Array2, Axis, s};

use super::likelihood::{Likelihood, Point};
use super::{
    CensoredInterval, CutPoints, HazardPenalty, Interval, IntervalHazard, LogisticHazardSettings, Ridge, TimeEffects,
};
use crate::standardised::Standardised;
use crate::{ClassicalError, Estimate};

/// Intervals in which a sample is at risk, and whether it has the event in the last of them.
#[derive(Clone, Copy)]
struct Followed {
    n_intervals: usize,
    event: bool,
}

/// What the likelihood is made of.
pub(super) struct PersonPeriods {
    pub(super) likelihood: Likelihood,
    /// Samples at risk and events of all intervals.
    counts: Vec<(usize, usize)>,
    /// Intervals whose alpha is estimated, ascending.
    free: Vec<usize>,
    /// What was subtracted from the covariates, and what they were divided by, `[p]`.
    origin: Array1<f64>,
    unit: Array1<f64>,
    is_penalised: bool,
}

impl PersonPeriods {
    pub(super) fn new(
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        cut_points: &CutPoints,
        settings: &LogisticHazardSettings,
    ) -> Result<Self, ClassicalError> {
        let ridge = match settings.penalty {
            HazardPenalty::None => None,
            HazardPenalty::L2(ridge) => Some(ridge),
        };
        let followed = followed(outcomes, cut_points, settings.censored);
        let counts = counts(&followed, cut_points.n_intervals());
        if counts.iter().all(|(_, n_events)| *n_events == 0) {
            let last = cut_points.times().last().copied().unwrap_or_default();
            return Err(ClassicalError::NoEventByLastCut { last });
        }
        let is_mixed = |(n_at_risk, n_events): &(usize, usize)| *n_events > 0 && n_events < n_at_risk;
        let are_penalised = ridge.is_some_and(|ridge| ridge.intervals);
        let free: Vec<usize> = (0..counts.len()).filter(|place| are_penalised || is_mixed(&counts[*place])).collect();
        if free.is_empty() || counts.iter().all(|(n_at_risk, n_events)| n_at_risk == n_events) {
            return Err(ClassicalError::NoMixedInterval);
        }
        let time = time_of(settings.effects, &free, ridge.is_none())?;
        // Rows in intervals with an alpha; the event counts if it is in one of them.
        let n_rows = |of: &Followed| free.partition_point(|place| *place < of.n_intervals);
        let in_last = |of: &Followed| of.event && free.binary_search(&(of.n_intervals - 1)).is_ok();
        let used: Vec<usize> = (0..followed.len()).filter(|row| n_rows(&followed[*row]) > 0).collect();
        let standardised = Standardised::new(&covariates.select(Axis(0), &used)).map_err(|error| match error {
            ClassicalError::Constant { column, .. } if varies(covariates, column.place) => {
                ClassicalError::NotAtRisk { column }
            }
            other => other,
        })?;
        if ridge.is_none() {
            standardised.check_independent()?;
        }
        let Standardised { mut x, mean: mut origin, deviation: unit } = standardised;
        let is_raw = ridge.is_some_and(|ridge| !ridge.standardise);
        if is_raw && are_penalised && time.is_some() {
            // The penalty of the alphas depends on the origin of covariates whose effect changes.
            x += &(&origin / &unit);
            origin.fill(0.0);
        }
        let strength = ridge.map_or(0.0, |ridge: Ridge| 1.0 / ridge.c);
        let likelihood = Likelihood {
            x,
            n_rows: used.iter().map(|row| n_rows(&followed[*row])).collect(),
            event: used.iter().map(|row| in_last(&followed[*row])).collect(),
            n_intervals: free.len(),
            time,
            ridge_of_intervals: if are_penalised { strength } else { 0.0 },
            ridge: unit.mapv(|unit| if is_raw { strength / (unit * unit) } else { strength }),
        };
        Ok(Self { likelihood, counts, free, origin, unit, is_penalised: ridge.is_some() })
    }

    /// The hazards of all samples together.
    pub(super) fn start(&self) -> Array1<f64> {
        let log_odds = |n_at_risk: usize, n_events: usize| (n_events as f64 / (n_at_risk - n_events) as f64).ln();
        let n_intervals = self.likelihood.n_intervals;
        let mut start = Array1::zeros(n_intervals + self.likelihood.n_others());
        if self.likelihood.first() == 1 {
            let sum = |of: fn(&(usize, usize)) -> usize| self.counts.iter().map(of).sum();
            start[n_intervals] = log_odds(sum(|counts| counts.0), sum(|counts| counts.1));
            return start;
        }
        for (alpha, place) in start.iter_mut().zip(&self.free) {
            let (n_at_risk, n_events) = self.counts[*place];
            *alpha = log_odds(n_at_risk, n_events);
        }
        start
    }

    /// The penalised log-likelihood `value` at `parameters` without its penalty.
    pub(super) fn without_penalty(&self, parameters: &Array1<f64>, value: f64) -> f64 {
        let (of, first) = (&self.likelihood, self.likelihood.n_intervals + self.likelihood.first());
        let alphas = parameters.slice(s![..of.n_intervals]);
        let others = parameters.iter().skip(first).zip(of.ridge.iter().cycle());
        let squares: f64 = others.map(|(b, ridge)| ridge * b * b).sum();
        value + 0.5 * (squares + of.ridge_of_intervals * alphas.dot(&alphas))
    }

    /// The log-likelihood of hazards that do not depend on covariates.
    pub(super) fn log_likelihood_null(&self) -> f64 {
        let of_interval = |(n_at_risk, n_events): &(usize, usize)| {
            let term =
                |count: usize| if count == 0 { 0.0 } else { count as f64 * (count as f64 / *n_at_risk as f64).ln() };
            term(*n_events) + term(n_at_risk - n_events)
        };
        self.counts.iter().map(of_interval).sum()
    }

    /// Mean of g over the person-periods in intervals with an alpha; 0 with constant effects.
    pub(super) fn mean_time(&self) -> f64 {
        let Some(time) = &self.likelihood.time else { return 0.0 };
        let n_at_risk = |place: &usize| self.counts[*place].0 as f64;
        let n: f64 = self.free.iter().map(n_at_risk).sum();
        self.free.iter().zip(time).map(|(place, g)| n_at_risk(place) / n * g).sum()
    }

    /// b, c and the intervals, in the units of the covariates.
    pub(super) fn estimates(
        &self,
        parameters: &Array1<f64>,
        last: &Point,
    ) -> (Vec<Estimate>, Vec<Estimate>, Vec<Interval>) {
        let (of, p) = (&self.likelihood, self.likelihood.n_covariates());
        let (n_intervals, first) = (of.n_intervals, of.first());
        let schur = if self.is_penalised { None } else { cholesky(last.schur(), 0.0).ok() };
        let variance = |along: &Array1<f64>| schur.as_ref().map(|schur| along.dot(&solve_lower(schur, along)));
        let coefficient = |other: usize| {
            let unit = self.unit[(other - first) % p];
            let along = Array1::from_shape_fn(of.n_others(), |k| if k == other { 1.0 / unit } else { 0.0 });
            let value = parameters[n_intervals + other] / unit;
            Estimate { value, standard_error: variance(&along).map(f64::sqrt) }
        };
        let shares = last.shares();
        let alpha = |place: usize| {
            // alpha of covariates 0 is that of covariates at their origin, and minus their products with the coefficients there.
            let g = of.time.as_ref().map_or(0.0, |time| time[place]);
            let at_zero = Array1::from_shape_fn(of.n_others(), |other| match other.checked_sub(first) {
                None => -1.0,
                Some(k) => self.origin[k % p] / self.unit[k % p] * if k < p { 1.0 } else { g },
            });
            let others = parameters.slice(s![n_intervals..]);
            let along = &shares.column(place) + &at_zero;
            let error = variance(&along).map(|variance| (variance + 1.0 / last.diagonal[place]).sqrt());
            Estimate { value: parameters[place] - at_zero.dot(&others), standard_error: error }
        };
        let interval = |place: usize| {
            let (n_at_risk, n_events) = self.counts[place];
            let hazard = match self.free.binary_search(&place) {
                Ok(free) => IntervalHazard::LogOdds(alpha(free)),
                Err(_) if n_events > 0 => IntervalHazard::One,
                Err(_) => IntervalHazard::Zero,
            };
            Interval { n_at_risk, n_events, hazard }
        };
        let coefficients = (first..first + p).map(coefficient).collect();
        let of_time = (first + p..of.n_others()).map(coefficient).collect();
        (coefficients, of_time, (0..self.counts.len()).map(interval).collect())
    }
}

fn varies(covariates: &Array2<f64>, column: usize) -> bool {
    let first = covariates[[0, column]];
    covariates.column(column).iter().any(|x| x.total_cmp(&first).is_ne())
}

fn followed(outcomes: &Outcomes, cut_points: &CutPoints, censored: CensoredInterval) -> Vec<Followed> {
    let n = cut_points.n_intervals();
    let of_sample = |(time, event): (&f64, &bool)| {
        let within = cut_points.n_before(*time);
        match (event, censored) {
            _ if within == n => Followed { n_intervals: n, event: false },
            (true, _) => Followed { n_intervals: within + 1, event: true },
            (false, CensoredInterval::LeftOut) => Followed { n_intervals: cut_points.n_by(*time), event: false },
            (false, CensoredInterval::AtRisk) => Followed { n_intervals: within + 1, event: false },
        }
    };
    outcomes.time().iter().zip(outcomes.event()).map(of_sample).collect()
}

/// Samples at risk and events, `[n_intervals]`.
fn counts(followed: &[Followed], n_intervals: usize) -> Vec<(usize, usize)> {
    let mut counts = vec![(0, 0); n_intervals];
    for of in followed {
        for (n_at_risk, _) in &mut counts[..of.n_intervals] {
            *n_at_risk += 1;
        }
        if of.event {
            counts[of.n_intervals - 1].1 += 1;
        }
    }
    counts
}

/// g of the intervals `free`.
fn time_of(effects: TimeEffects, free: &[usize], needs_two: bool) -> Result<Option<Vec<f64>>, ClassicalError> {
    let value = match effects {
        TimeEffects::Constant => return Ok(None),
        TimeEffects::Linear => "linear",
        TimeEffects::Logarithmic => "logarithmic",
    };
    if needs_two && free.len() < 2 {
        return Err(ClassicalError::Setting {
            setting: "effects",
            value: value.to_owned(),
            expected: "constant, because one interval only has samples with and without event",
        });
    }
    Ok(free.iter().map(|place| effects.at(*place)).collect())
}
