//! Accelerated failure time models by maximum likelihood: log T = mu + x b + sigma W.
//!
//! W has the smallest-extreme-value, the normal or the logistic distribution, so that T is Weibull, log-normal or log-logistic
//! (Kalbfleisch & Prentice 2002, chapter 3, doi:10.1002/9781118032985). exp(b) is a ratio of times: 2 doubles every quantile of
//! the time of an event. `survreg` of R uses the same parameters; lifelines the same coefficients, as `lambda_` or `mu_`, but of
//! a Weibull or log-logistic model the shape rho = 1 / sigma.

mod distribution;
mod likelihood;

use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::{Outcomes, SurvivalCurves};
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};

pub use self::distribution::AftDistribution;
use self::likelihood::{Likelihood, inverse};
use crate::estimator::{NEVER, Row, check_covariates, check_samples, linear_predictor};
use crate::newton::maximise;
use crate::standardised::Standardised;
use crate::{ClassicalError, Estimate, SurvivalEstimator, SurvivalModel};

/// Settings of an accelerated failure time model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AftSettings {
    /// The distribution of time.
    pub distribution: AftDistribution,
    /// Strength of an L2 penalty, at least 0; 0 = none (default). What is maximised is the log-likelihood per sample minus
    /// penalty / 2 times the sum of `(b_k s_k)^2`, `s_k` the standard deviation of covariate k with the divisor n - 1, so that units
    /// do not matter. Intercept and scale are free. `penalizer` of lifelines, which penalises log rho or log sigma as well.
    pub penalty: f64,
}

impl SurvivalEstimator for AftSettings {
    type Model = AcceleratedFailureTime;

    fn check(&self) -> Result<(), ClassicalError> {
        if self.penalty.is_finite() && self.penalty >= 0.0 {
            return Ok(());
        }
        Err(ClassicalError::Setting {
            setting: "penalty",
            value: self.penalty.to_string(),
            expected: "a finite number of at least 0",
        })
    }

    fn fit_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        stop: &Stop,
    ) -> Result<AcceleratedFailureTime, ClassicalError> {
        AcceleratedFailureTime::fit_until(covariates, outcomes, self, stop)
    }
}

/// A fitted accelerated failure time model.
///
/// Survival is P(W > (log t - mu - x b) / sigma), 1 at time 0. The risk is minus the logarithm of the predicted median time, that is
/// -(mu + x b + sigma m), m = log(log 2) of a Weibull and 0 of a log-normal or log-logistic model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AcceleratedFailureTime {
    /// The settings.
    pub settings: AftSettings,
    /// Samples of the fit.
    pub n: usize,
    /// Events among them.
    pub n_events: usize,
    /// mu: log T of covariates 0 but for the noise.
    pub intercept: Estimate,
    /// b: what one unit of each covariate adds to log T, `[p]`; [`Estimate::ratio`] is the ratio of times.
    pub coefficients: Vec<Estimate>,
    /// Logarithm of sigma; [`Estimate::ratio`] is sigma.
    pub log_scale: Estimate,
    /// Inverse of the observed information (with a penalty of that of the penalised likelihood, as lifelines), in the order
    /// intercept, coefficients, log scale, `[p + 2][p + 2]`: where the standard errors come from.
    pub covariance: Vec<Vec<f64>>,
    /// Log-likelihood of the times, without penalty.
    pub log_likelihood: f64,
    /// That of the model without covariates.
    pub log_likelihood_null: f64,
}

/// The maximum for standardised covariates and centred log time.
struct Maximum {
    parameters: Array1<f64>,
    covariance: Array2<f64>,
    log_likelihood: f64,
}

impl Likelihood<'_> {
    fn maximum(&self, start: Array1<f64>, stop: &Stop) -> Result<Maximum, ClassicalError> {
        let (parameters, last) = maximise(self, start, stop)?;
        let squares: f64 = parameters.iter().skip(1).take(self.x.ncols()).map(|b| b * b).sum();
        let covariance = inverse(&last.information).ok_or(ClassicalError::ExactTimes)?;
        Ok(Maximum { parameters, covariance, log_likelihood: last.value + 0.5 * self.ridge * squares })
    }
}

impl AcceleratedFailureTime {
    /// Fits the model to covariates `[n, p]` and their outcomes by Newton's method with step halving; O(n p^2) for each of about
    /// ten steps.
    ///
    /// # Errors
    /// [`ClassicalError::TimeZero`] for a time of 0, [`ClassicalError::Constant`], [`ClassicalError::Collinear`] or
    /// [`ClassicalError::Separates`] for such covariates (the last two without a penalty), [`ClassicalError::ExactTimes`] if the
    /// covariates determine the times; those of [`SurvivalEstimator::fit`].
    pub fn fit(covariates: &Array2<f64>, outcomes: &Outcomes, settings: &AftSettings) -> Result<Self, ClassicalError> {
        Self::fit_until(covariates, outcomes, settings, &NEVER)
    }

    fn fit_until(
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        settings: &AftSettings,
        stop: &Stop,
    ) -> Result<Self, ClassicalError> {
        settings.check()?;
        check_samples(covariates, outcomes)?;
        if let Some(row) = outcomes.time().iter().position(|time| *time <= 0.0) {
            return Err(ClassicalError::TimeZero { row: Row::new(row) });
        }
        let standardised = Standardised::new(covariates)?;
        if settings.penalty <= 0.0 {
            standardised.check_independent()?;
        }
        let n = outcomes.n() as f64;
        let log_time: Array1<f64> = outcomes.time().iter().map(|time| time.ln()).collect();
        let mean_log_time = log_time.sum() / n;
        let log_time = log_time - mean_log_time;
        let deviation = (log_time.dot(&log_time) / n).sqrt();
        // Equal times differ from their mean by rounding.
        let spread = if deviation > 1e-14 * (1.0 + mean_log_time.abs()) { deviation } else { 1.0 };
        let of = |x, ridge| Likelihood {
            distribution: settings.distribution,
            log_time: log_time.as_slice().unwrap_or(&[]),
            event: outcomes.event(),
            x,
            ridge,
            spread,
        };
        let none = Array2::zeros((outcomes.n(), 0));
        let null = of(none.view(), 0.0).maximum(Array1::from(vec![0.0, spread.ln()]), stop)?;
        let mut start = Array1::zeros(covariates.ncols() + 2);
        start[0] = null.parameters[0];
        start[covariates.ncols() + 1] = null.parameters[1];
        // n times the penalty, for deviations with the divisor n; constant columns are refused, so that n > 1.
        let ridge = settings.penalty * n * n / (n - 1.0);
        let maximum = of(standardised.x.view(), ridge).maximum(start, stop)?;
        let sum_log_time: f64 =
            outcomes.time().iter().zip(outcomes.event()).filter(|(_, event)| **event).map(|(time, _)| time.ln()).sum();
        let mut model = Self::in_units(settings, &standardised, mean_log_time, &maximum);
        (model.n, model.n_events) = (outcomes.n(), outcomes.n_events());
        model.log_likelihood = maximum.log_likelihood - sum_log_time;
        model.log_likelihood_null = null.log_likelihood - sum_log_time;
        Ok(model)
    }

    /// The model in the units of covariates and time.
    fn in_units(settings: &AftSettings, of: &Standardised, mean_log_time: f64, maximum: &Maximum) -> Self {
        let p = of.mean.len();
        // From the parameters of the standardised columns to those of the columns.
        let mut map = Array2::eye(p + 2);
        for k in 0..p {
            map[[k + 1, k + 1]] = 1.0 / of.deviation[k];
            map[[0, k + 1]] = -of.mean[k] / of.deviation[k];
        }
        let mut values = map.dot(&maximum.parameters);
        values[0] += mean_log_time;
        let covariance = map.dot(&maximum.covariance).dot(&map.t());
        let estimate =
            |k: usize| Estimate { value: values[k], standard_error: Some(covariance[[k, k]].max(0.0).sqrt()) };
        Self {
            settings: settings.clone(),
            n: 0,
            n_events: 0,
            intercept: estimate(0),
            coefficients: (1..=p).map(estimate).collect(),
            log_scale: estimate(p + 1),
            covariance: covariance.axis_iter(Axis(0)).map(|row| row.to_vec()).collect(),
            log_likelihood: 0.0,
            log_likelihood_null: 0.0,
        }
    }

    /// sigma: the scale of the noise of log time.
    pub fn scale(&self) -> f64 {
        self.log_scale.value.exp()
    }

    /// Logarithm of the predicted median time of samples with these covariates `[n, p]`, `[n]`.
    ///
    /// # Errors
    /// [`ClassicalError::Columns`], [`ClassicalError::NotFinite`] or [`ClassicalError::Predictor`] for other covariates.
    pub fn median_log_times(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        let median = self.scale() * self.settings.distribution.median();
        Ok(self.locations(covariates)?.into_iter().map(|location| location + median).collect())
    }

    /// mu + x b, `[n]`.
    fn locations(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        check_covariates(covariates, self.n_covariates())?;
        let coefficients: Vec<f64> = self.coefficients.iter().map(|b| b.value).collect();
        linear_predictor(covariates, self.intercept.value, &coefficients)
    }
}

impl SurvivalModel for AcceleratedFailureTime {
    fn n_covariates(&self) -> usize {
        self.coefficients.len()
    }

    fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        let locations = self.locations(covariates)?;
        let (distribution, scale) = (self.settings.distribution, self.scale());
        let log_grid: Vec<f64> = grid.iter().map(|time| time.ln()).collect();
        let survival = Array2::from_shape_fn((locations.len(), grid.len()), |(row, column)| {
            distribution.survival((log_grid[column] - locations[row]) / scale)
        });
        Ok(SurvivalCurves::new(grid.to_vec(), survival)?)
    }

    fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        Ok(self.median_log_times(covariates)?.into_iter().map(|median| -median).collect())
    }
}

#[cfg(test)]
mod tests;
