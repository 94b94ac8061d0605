//! Cox regression with coefficients that change with time: h(t | x) = h0(t) exp(x (b + c g(t))).
//!
//! The coefficients have the largest partial likelihood (Cox 1972), with the covariates x and x g(t) of the samples at risk at
//! every event time t, as R `coxph(.., tt = ..)`, or lifelines' `CoxTimeVaryingFitter` on rows that are split at event times. No
//! row is split here: the values at an event time are computed where they are needed, and event times at which g is the same
//! are handled together. The baseline follows the same approximation for ties as in the model with constant coefficients.

mod likelihood;
mod model;

use fairtte_metrics::Outcomes;
use fairtte_metrics::evaluation::Stop;
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use self::likelihood::VaryingLikelihood;
pub use self::model::CoxTimeVaryingModel;
use super::model::CoxCoefficient;
use super::newton::{Maximum, maximum};
use super::ordered::CoxTies;
use super::samples::{CoxSamples, Layout, Prepared};
use super::settings::{check_ridge, unstandardise};
use crate::estimator::Column;
use crate::{ClassicalError, SurvivalEstimator};

/// The function of time that multiplies a covariate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TimeFunction {
    /// t: the log hazard ratio is a straight line in time.
    Identity,
    /// log(t + 0.01) (default).
    #[default]
    Log,
    /// 1 after each of these times, 0 up to and including it: another hazard ratio after each. Ascending, each with events before
    /// and after it.
    Steps(Vec<f64>),
}

impl TimeFunction {
    /// Its values at a time: one, or one per step.
    pub(super) fn at(&self, time: f64) -> Vec<f64> {
        match self {
            Self::Identity => vec![time],
            Self::Log => vec![(time + 0.01).ln()],
            Self::Steps(knots) => knots.iter().map(|knot| f64::from(u8::from(time > *knot))).collect(),
        }
    }

    /// What the terms of a covariate are called.
    fn terms(&self, name: &str) -> Vec<String> {
        match self {
            Self::Identity => vec![format!("{name} * t")],
            Self::Log => vec![format!("{name} * log(t + 0.01)")],
            Self::Steps(knots) => knots.iter().map(|knot| format!("{name} * (t > {knot})")).collect(),
        }
    }

    fn check(&self) -> Result<(), ClassicalError> {
        let Self::Steps(knots) = self else { return Ok(()) };
        let ascending = knots.windows(2).all(|pair| pair[0] < pair[1]);
        if ascending && !knots.is_empty() && knots.iter().all(|knot| knot.is_finite()) {
            return Ok(());
        }
        let (setting, expected) = ("function.steps", "at least one finite time, in ascending order");
        Err(ClassicalError::Setting { setting, value: format!("{knots:?}"), expected })
    }
}

/// Settings of a Cox regression with time-varying coefficients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CoxTimeVaryingSettings {
    /// How coefficients change with time.
    pub function: TimeFunction,
    /// Names of the covariates whose coefficients change; `None` = all. A column without a name has its number, counted from 0.
    pub varying: Option<Vec<String>>,
    /// How events at the same time are counted.
    pub ties: CoxTies,
    /// Penalty: half of it times the sum of the squared coefficients of x and x g(t), with x standardised and g divided by its
    /// standard deviation over the events, is taken from the log partial likelihood. 0 = none.
    pub ridge: f64,
}

impl SurvivalEstimator for CoxTimeVaryingSettings {
    type Model = CoxTimeVaryingModel;

    fn check(&self) -> Result<(), ClassicalError> {
        self.function.check()?;
        check_ridge(self.ridge)
    }

    fn fit_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        stop: &Stop,
    ) -> Result<CoxTimeVaryingModel, ClassicalError> {
        self.fit_samples(&CoxSamples::new(covariates, outcomes).until(stop))
    }
}

/// A term of the model: a covariate, alone or times a function of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Term {
    /// Place of the covariate.
    pub(super) covariate: usize,
    /// Place of the function.
    pub(super) function: Option<usize>,
}

impl CoxTimeVaryingSettings {
    /// Fits the model to samples that may have names. With K different event times (steps: K steps), O(K n p^2) for each of about
    /// 6 steps of Newton's method; the memory is that of the samples.
    ///
    /// # Errors
    /// [`ClassicalError`] for settings outside their range and samples that do not fit together, for events at one time only or
    /// steps without events on both sides; without a ridge penalty also for constant, collinear or separating terms, by name,
    /// and for fewer events than coefficients.
    pub fn fit_samples(&self, samples: &CoxSamples<'_>) -> Result<CoxTimeVaryingModel, ClassicalError> {
        self.check()?;
        samples.check()?;
        let names = samples.all_names();
        let varying = match &self.varying {
            Some(wanted) => samples.places("varying", wanted)?,
            None => (0..names.len()).collect(),
        };
        let layout = Layout::new(samples.covariates, Vec::new());
        let prepared = Prepared::new(samples.covariates, samples.outcomes, &layout, self.ties)
            .map_err(|error| samples.names.map_or_else(|| error.clone(), |names| error.clone().with_names(names)))?;
        let (terms, term_names) = self.terms(&names, &varying);
        let (n_events, n_coefficients) = (samples.outcomes.n_events(), terms.len());
        if self.ridge <= 0.0 && n_events < n_coefficients {
            return Err(ClassicalError::FewEvents { n_events, n_coefficients });
        }
        let scale = self.scale(samples.outcomes)?;
        let likelihood = VaryingLikelihood::new(&prepared.ordered, &self.function, &scale, &terms);
        let of_term: Vec<usize> = terms.iter().map(|term| term.covariate).collect();
        let by_term = |error: ClassicalError| error.with_names(&term_names).with_places(&of_term);
        let found = maximum(&likelihood, terms.len(), self.ridge, samples.stop).map_err(by_term)?;
        let (times, steps) = likelihood.baseline(&found.coefficients);
        let unit = |term: &Term| prepared.deviation[term.covariate] * term.function.map_or(1.0, |k| scale[k]);
        let units: Array1<f64> = terms.iter().map(unit).collect();
        let Maximum { coefficients, mut covariance, log_likelihood, log_likelihood_null, .. } = found;
        unstandardise(&mut covariance, &units);
        let coefficient = |(place, name): (usize, String)| CoxCoefficient {
            name,
            value: coefficients[place] / units[place],
            standard_error: Some(covariance[[place, place]].sqrt()),
            mean: prepared.mean[terms[place].covariate],
        };
        let coefficients: Vec<CoxCoefficient> = term_names.iter().cloned().enumerate().map(coefficient).collect();
        if let Some(place) = coefficients.iter().position(|found| !found.is_finite()) {
            return Err(by_term(ClassicalError::Separates { columns: vec![Column::new(place)] }));
        }
        Ok(CoxTimeVaryingModel {
            settings: self.clone(),
            names,
            n: samples.outcomes.n(),
            n_events,
            terms,
            covariance: covariance.rows().into_iter().map(|row| row.to_vec()).collect(),
            coefficients,
            log_likelihood,
            log_likelihood_null,
            times,
            steps,
            event_quartiles: Some(event_quartiles(samples.outcomes)),
        })
    }

    /// The covariates, then those that vary times each function, with their names.
    fn terms(&self, names: &[String], varying: &[usize]) -> (Vec<Term>, Vec<String>) {
        let mut terms: Vec<Term> = (0..names.len()).map(|covariate| Term { covariate, function: None }).collect();
        let mut term_names = names.to_vec();
        for covariate in varying {
            for (function, name) in self.function.terms(&names[*covariate]).into_iter().enumerate() {
                terms.push(Term { covariate: *covariate, function: Some(function) });
                term_names.push(name);
            }
        }
        (terms, term_names)
    }

    /// Standard deviation of each function over the events.
    fn scale(&self, outcomes: &Outcomes) -> Result<Vec<f64>, ClassicalError> {
        let events = outcomes.time().iter().zip(outcomes.event()).filter(|(_, event)| **event);
        let values: Vec<Vec<f64>> = events.map(|(time, _)| self.function.at(*time)).collect();
        let n_functions = values.first().map_or(0, Vec::len);
        let deviation = |function: usize| {
            let mean = values.iter().map(|values| values[function]).sum::<f64>() / values.len() as f64;
            let squares = values.iter().map(|values| (values[function] - mean).powi(2)).sum::<f64>();
            let is_same = values.iter().all(|value| value[function].total_cmp(&values[0][function]).is_eq());
            if is_same { 0.0 } else { (squares / values.len() as f64).sqrt() }
        };
        let scale: Vec<f64> = (0..n_functions).map(deviation).collect();
        match (scale.iter().position(|deviation| *deviation <= 0.0), &self.function) {
            (None, _) => Ok(scale),
            (Some(place), TimeFunction::Steps(knots)) => {
                let (setting, expected) = ("function.steps", "a time with events before and after it");
                Err(ClassicalError::Setting { setting, value: knots[place].to_string(), expected })
            }
            (Some(_), _) => {
                let mut events = outcomes.time().iter().zip(outcomes.event()).filter(|(_, event)| **event);
                Err(ClassicalError::OneEventTime { time: events.next().map_or(0.0, |(time, _)| *time) })
            }
        }
    }
}

/// The times in the middle and at the quarters of the ascending event times.
fn event_quartiles(outcomes: &Outcomes) -> [f64; 3] {
    let events = outcomes.time().iter().zip(outcomes.event()).filter(|(_, event)| **event);
    let mut times: Vec<f64> = events.map(|(time, _)| *time).collect();
    times.sort_by(f64::total_cmp);
    [1, 2, 3].map(|k| times[(times.len() - 1) * k / 4])
}

#[cfg(test)]
mod tests;
