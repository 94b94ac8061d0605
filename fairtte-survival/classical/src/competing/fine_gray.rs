//! Fine & Gray's regression of the subdistribution hazard: how covariates change the cumulative incidence of one cause.
//!
//! ```text
//! F(t | x) = 1 - exp(-H0(t) exp(x b))
//! ```
//!
//! The coefficients b have the largest weighted partial likelihood: a sample with an event of another cause at T stays at risk
//! at later times t with the weight G(t-) / G(T-), the share of them who would still be under observation. G is the Kaplan-Meier
//! curve of the censoring, in which events at the time of a censoring are still at risk (as in R `survfit(1 - d)`); tied
//! events by Breslow's approximation. Both are as in R `cmprsk` `crr`. The standard errors are those of the sandwich of the
//! paper, with the part that the estimation of G adds.
//! Source: Fine & Gray (1999), doi:10.1080/01621459.1999.10474144, sections 3 and 5. Golden values:
//! `crr` of `cmprsk` 2.2-11 (`tests/golden/r.R`) and its printed results in the tests of that package (`tests/golden/fine_gray.json`),
//! and the formulas of the paper as double loops in `NumPy`.
//!
//! A coefficient says in which direction a covariate moves the incidence, not the hazard of those at risk: exp(b) is a
//! ratio of subdistribution hazards, in whose risk set the dead remain.

use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves};
use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::linear_algebra::{cholesky, solve_lower};
use fairtte_metrics::{Outcomes, SurvivalCurves};
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use super::subdistribution::Samples;
use crate::estimator::{Column, NEVER, check_covariates, check_samples};
use crate::standardised::Standardised;
use crate::{ClassicalError, Estimate, SurvivalEstimator, SurvivalModel};

/// Newton's method ends with the step whose squared length in standard errors is below this.
const TOLERANCE: f64 = 1e-14;
/// A coefficient of a covariate with standard deviation 1 beyond it separates the samples.
const MOST_COEFFICIENT: f64 = 30.0;
/// The likelihood is flat where its information about a coefficient is below this share of that at coefficients of 0.
const FLAT: f64 = 1e-8;
/// Rounding may lower the log likelihood near its maximum by this share.
const ROUNDING: f64 = 1e-12;

/// Settings of the regression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FineGraySettings {
    /// The cause whose incidence is modelled, from 1 on; in no file, because it belongs to the outcomes. Default 1.
    #[serde(skip, default = "first_cause")]
    pub cause: u32,
    /// Steps of Newton's method after which the fit is given up, at least 1. Default 60.
    pub most_steps: usize,
}

fn first_cause() -> u32 {
    1
}

impl Default for FineGraySettings {
    fn default() -> Self {
        Self { cause: first_cause(), most_steps: 60 }
    }
}

/// The effect of one covariate on the log hazard of the subdistribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FineGrayCoefficient {
    /// Name of the covariate, for a level `column=level`; the number of a column without a name.
    pub name: String,
    /// Logarithm of the ratio of subdistribution hazards per unit of the covariate.
    pub value: f64,
    /// Its standard error by the sandwich of the paper.
    pub standard_error: f64,
    /// Mean of the covariate in the samples of the fit.
    pub mean: f64,
}

impl FineGrayCoefficient {
    /// Ratio of subdistribution hazards with the ends of its Wald interval; `None` for a level outside (0, 1).
    pub fn hazard_ratio(&self, level: f64) -> Option<(f64, f64, f64)> {
        Estimate { value: self.value, standard_error: Some(self.standard_error) }.ratio(level)
    }
}

/// A fitted regression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FineGrayModel {
    /// The cause.
    pub cause: u32,
    /// Samples of the fit.
    pub n: usize,
    /// Events of the cause among them.
    pub n_events: usize,
    /// Events of other causes.
    pub n_competing: usize,
    /// One per covariate.
    pub coefficients: Vec<FineGrayCoefficient>,
    /// Log weighted partial likelihood of the coefficients.
    pub log_likelihood: f64,
    /// That of coefficients 0.
    pub log_likelihood_null: f64,
    /// Event times of the cause, ascending.
    pub times: Vec<f64>,
    /// Cumulative hazard of the subdistribution after each of them, of a sample with the means of all covariates.
    pub cumulative_hazard: Vec<f64>,
}

impl FineGraySettings {
    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// [`ClassicalError::Setting`].
    pub fn check(&self) -> Result<(), ClassicalError> {
        let wrong = |setting, value: String| Err(ClassicalError::Setting { setting, value, expected: "at least 1" });
        match (self.cause, self.most_steps) {
            (0, _) => wrong("cause", self.cause.to_string()),
            (_, 0) => wrong("most-steps", self.most_steps.to_string()),
            _ => Ok(()),
        }
    }

    /// Fits the regression to covariates `[n, p]`. O(n p^2) for each of about 5 steps, and a sort of the times.
    ///
    /// ```
    /// use fairtte_classical::FineGraySettings;
    /// use fairtte_metrics::competing::CompetingOutcomes;
    /// use ndarray::Array2;
    ///
    /// // Cause 1 is frequent where the covariate is 1, cause 2 where it is 0.
    /// let covariates = Array2::from_shape_fn((40, 1), |(row, _)| f64::from(row % 2 == 0));
    /// let cause = |row: u32| if row % 5 == 0 { 0 } else if row % 2 == 0 || row % 7 == 0 { 1 } else { 2 };
    /// let times = (0..40).map(|row| 1.0 + f64::from(row * 13 % 40)).collect();
    /// let outcomes = CompetingOutcomes::new(times, (0..40).map(cause).collect())?;
    /// let model = FineGraySettings::default().fit(&covariates, &outcomes)?;
    /// assert!(model.coefficients[0].value > 2.0 * model.coefficients[0].standard_error);
    /// let incidence = model.incidence_curves(&covariates, &[20.0, 40.0])?.incidence();
    /// assert!(incidence[[0, 1]] > incidence[[1, 1]] && incidence[[0, 1]] > incidence[[0, 0]]);
    /// # Ok::<(), fairtte_classical::ClassicalError>(())
    /// ```
    ///
    /// # Errors
    /// [`ClassicalError::Metric`] for a cause that does not exist; [`ClassicalError::Length`],
    /// [`ClassicalError::NoCovariates`], [`ClassicalError::NoEvents`], [`ClassicalError::NotFinite`];
    /// [`ClassicalError::Constant`], [`ClassicalError::Collinear`] or [`ClassicalError::Separates`] for covariates without an
    /// estimate.
    pub fn fit(&self, covariates: &Array2<f64>, outcomes: &CompetingOutcomes) -> Result<FineGrayModel, ClassicalError> {
        self.fit_columns(covariates, outcomes, &numbers(covariates), &NEVER)
    }

    /// As [`fit`](Self::fit), of covariates with `names` `[p]`, which coefficients and errors use.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn fit_named(
        &self,
        covariates: &Array2<f64>,
        outcomes: &CompetingOutcomes,
        names: &[String],
    ) -> Result<FineGrayModel, ClassicalError> {
        self.fit_columns(covariates, outcomes, names, &NEVER).map_err(|error| error.with_names(names))
    }

    /// As [`fit_named`](Self::fit_named) until `stop` is set; errors have the numbers of the columns.
    pub(crate) fn fit_columns(
        &self,
        covariates: &Array2<f64>,
        outcomes: &CompetingOutcomes,
        names: &[String],
        stop: &Stop,
    ) -> Result<FineGrayModel, ClassicalError> {
        self.check()?;
        let of_cause = outcomes.of_cause(self.cause)?;
        check_samples(covariates, &of_cause)?;
        let (n, p) = covariates.dim();
        let n_events = of_cause.n_events();
        if n_events < p {
            return Err(ClassicalError::FewEvents { n_events, n_coefficients: p });
        }
        let standardised = Standardised::new(covariates)?;
        standardised.check_independent()?;
        let Standardised { x, mean, deviation } = standardised;
        let samples = Samples::new(outcomes, self.cause, &x);
        let (found, log_likelihood_null) = self.maximum(&samples, stop)?;
        let last = samples.likelihood(&found);
        let errors = sandwich(last.information, &samples.score_products(&found))?;
        let (times, cumulative_hazard) = samples.cumulative_hazard(&found);
        let coefficient = |place: usize| FineGrayCoefficient {
            name: names.get(place).cloned().unwrap_or_else(|| place.to_string()),
            value: found[place] / deviation[place],
            standard_error: errors[place] / deviation[place],
            mean: mean[place],
        };
        Ok(FineGrayModel {
            cause: self.cause,
            n,
            n_events,
            n_competing: outcomes.all_causes().n_events() - n_events,
            coefficients: (0..p).map(coefficient).collect(),
            log_likelihood: last.value,
            log_likelihood_null,
            times,
            cumulative_hazard,
        })
    }

    /// The coefficients with the largest likelihood, and the likelihood of coefficients 0.
    fn maximum(&self, samples: &Samples, until: &Stop) -> Result<(Array1<f64>, f64), ClassicalError> {
        let separates = |place: usize| ClassicalError::Separates { columns: vec![Column::new(place)] };
        let mut coefficients = Array1::<f64>::zeros(samples.x.ncols());
        let mut here = samples.likelihood(&coefficients);
        let (null, at_zero) = (here.value, here.information.diag().to_owned());
        for _ in 0..self.most_steps {
            until.check()?;
            let is_flat = |place: &usize| here.information[[*place, *place]] < FLAT * at_zero[*place];
            if let Some(place) = (0..coefficients.len()).find(is_flat) {
                return Err(separates(place));
            }
            let lower = cholesky(here.information.clone(), 0.0).map_err(separates)?;
            let step = solve_lower(&lower, &here.gradient);
            // Where the covariates separate the events, the likelihood becomes flat, but the steps stay long.
            let is_short = step.iter().zip(&coefficients).all(|(step, b)| step.abs() <= 0.01 * (1.0 + b.abs()));
            if step.dot(&here.gradient) <= TOLERANCE && is_short {
                return Ok((coefficients + step, null));
            }
            let lowest = here.value - ROUNDING * here.value.abs();
            let shares = std::iter::successors(Some(1.0), |share| Some(share / 2.0)).take(20);
            let moved = |share: f64| {
                let next = &coefficients + &(&step * share);
                let there = samples.likelihood(&next);
                (next, there)
            };
            let uphill = shares.map(moved).find(|(_, there)| there.value.is_finite() && there.value >= lowest);
            (coefficients, here) = uphill.ok_or_else(|| separates(largest(&coefficients)))?;
            if coefficients.iter().any(|b| b.abs() > MOST_COEFFICIENT) {
                return Err(separates(largest(&coefficients)));
            }
        }
        Err(ClassicalError::NotConverged {
            what: "coefficients of the subdistribution hazard",
            n_steps: self.most_steps,
            instead: "let the search take more steps (most-steps)",
        })
    }
}

/// The columns by their numbers.
fn numbers(covariates: &Array2<f64>) -> Vec<String> {
    (0..covariates.ncols()).map(|place| place.to_string()).collect()
}

/// With one kind of event, as the regression with one cause: Cox's with Breslow's ties.
impl SurvivalEstimator for FineGraySettings {
    type Model = FineGrayModel;

    fn check(&self) -> Result<(), ClassicalError> {
        Self::check(self)
    }

    fn fit_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        stop: &Stop,
    ) -> Result<FineGrayModel, ClassicalError> {
        let one = Self { cause: first_cause(), ..self.clone() };
        one.fit_columns(covariates, &of_one_kind(outcomes)?, &numbers(covariates), stop)
    }
}

/// Curves are 1 - F, the probability of not having had the cause; the risk is the linear predictor.
impl SurvivalModel for FineGrayModel {
    fn n_covariates(&self) -> usize {
        self.coefficients.len()
    }

    fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        Ok(self.incidence_curves(covariates, grid)?.without().clone())
    }

    fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        self.linear_predictor(covariates)
    }
}

/// Events of one kind as those of cause 1.
///
/// # Errors
/// Those of [`CompetingOutcomes::with_causes`].
pub(crate) fn of_one_kind(outcomes: &Outcomes) -> Result<CompetingOutcomes, ClassicalError> {
    let cause = outcomes.event().iter().map(|event| u32::from(*event)).collect();
    Ok(CompetingOutcomes::with_causes(outcomes.time().to_vec(), cause, first_cause())?)
}

impl FineGrayModel {
    /// Sum of coefficients times covariates minus their means, `[n]`: the logarithm of the ratio of subdistribution hazards
    /// against a sample with the means. Higher = higher incidence at every time.
    ///
    /// # Errors
    /// [`ClassicalError::Columns`] or [`ClassicalError::NotFinite`] for other covariates.
    pub fn linear_predictor(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        check_covariates(covariates, self.coefficients.len())?;
        let of_row = |row: ndarray::ArrayView1<'_, f64>| {
            row.iter().zip(&self.coefficients).map(|(x, term)| term.value * (x - term.mean)).sum()
        };
        Ok(covariates.rows().into_iter().map(of_row).collect())
    }

    /// Cumulative incidence of the cause at the times of `grid` of samples with these covariates `[n, p]`, `[n, n_times]`;
    /// after the last event time of the fit it stays as it is there. O(n L).
    ///
    /// # Errors
    /// Those of [`linear_predictor`](Self::linear_predictor), [`ClassicalError::Metric`] if `grid` is no time grid.
    pub fn incidence_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<IncidenceCurves, ClassicalError> {
        let passed = |time: &f64| self.times.partition_point(|known| known <= time);
        let at = |time: &f64| passed(time).checked_sub(1).map_or(0.0, |place| self.cumulative_hazard[place]);
        let hazard: Vec<f64> = grid.iter().map(at).collect();
        let ratios: Vec<f64> = self.linear_predictor(covariates)?.into_iter().map(f64::exp).collect();
        // 0 times an infinite ratio: no hazard has passed.
        let incidence = |(row, time): (usize, usize)| {
            if hazard[time] > 0.0 { -(-hazard[time] * ratios[row]).exp_m1() } else { 0.0 }
        };
        Ok(IncidenceCurves::new(grid.to_vec(), Array2::from_shape_fn((ratios.len(), grid.len()), incidence))?)
    }
}

fn largest(coefficients: &Array1<f64>) -> usize {
    (0..coefficients.len()).max_by(|a, b| coefficients[*a].abs().total_cmp(&coefficients[*b].abs())).unwrap_or(0)
}

/// Roots of the diagonal of I^-1 M I^-1.
fn sandwich(information: Array2<f64>, middle: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
    let p = information.nrows();
    let lower =
        cholesky(information, 0.0).map_err(|place| ClassicalError::Separates { columns: vec![Column::new(place)] })?;
    let unit = |k: usize| Array1::from_shape_fn(p, |j| f64::from(u8::from(j == k)));
    let variance = |k: usize| {
        let column = solve_lower(&lower, &unit(k));
        column.dot(&middle.dot(&column))
    };
    Ok((0..p).map(|k| variance(k).max(0.0).sqrt()).collect())
}
