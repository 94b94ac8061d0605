//! Settings of a Cox regression, and its fit.

use fairtte_metrics::Outcomes;
use fairtte_metrics::evaluation::Stop;
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use super::model::{CoxBaseline, CoxCoefficient, CoxModel};
use super::newton::{Maximum, maximum};
use super::ordered::CoxTies;
use super::samples::{CoxSamples, Layout, Prepared};
use super::score_residuals::robust_covariance;
use crate::estimator::Column;
use crate::{ClassicalError, SurvivalEstimator};

/// Which standard errors a Cox model has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CoxErrors {
    /// From the inverse information, which is right if the model is (default).
    #[default]
    Plain,
    /// The sandwich V (sum of u u') V of the inverse information V and the score residuals u, also right where hazards are not
    /// proportional (Lin & Wei 1989, doi:10.1080/01621459.1989.10478874); residuals of a subject are added before.
    Robust,
}

/// Settings of a Cox regression.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CoxSettings {
    /// How events at the same time are counted.
    pub ties: CoxTies,
    /// Penalty: half of it times the sum of the squared coefficients of standardised covariates is taken from the log partial
    /// likelihood. 0 = none.
    pub ridge: f64,
    /// Names of covariates whose values tell the stratum: samples are compared within their stratum only, and each has its own
    /// baseline. A column without a name has its number, counted from 0, as name.
    pub strata: Vec<String>,
    /// Which standard errors the coefficients have.
    pub errors: CoxErrors,
}

impl SurvivalEstimator for CoxSettings {
    type Model = CoxModel;

    fn check(&self) -> Result<(), ClassicalError> {
        check_ridge(self.ridge)
    }

    fn fit_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        stop: &Stop,
    ) -> Result<CoxModel, ClassicalError> {
        self.fit_samples(&CoxSamples::new(covariates, outcomes).until(stop))
    }
}

/// # Errors
/// [`ClassicalError::Setting`].
pub(super) fn check_ridge(ridge: f64) -> Result<(), ClassicalError> {
    if ridge.is_finite() && ridge >= 0.0 {
        return Ok(());
    }
    Err(ClassicalError::Setting { setting: "ridge", value: ridge.to_string(), expected: "a number >= 0" })
}

impl CoxSettings {
    /// Fits the model to samples that may have names and subjects. O(n p^2) for each of about 6 steps, and a sort of the times.
    ///
    /// # Errors
    /// [`ClassicalError`] for settings outside their range and samples that do not fit together; without a ridge penalty also for
    /// constant, collinear or separating covariates, each by its name, and for fewer events than coefficients.
    pub fn fit_samples(&self, samples: &CoxSamples<'_>) -> Result<CoxModel, ClassicalError> {
        self.check()?;
        samples.check()?;
        let layout = Layout::new(samples.covariates, samples.places("strata", &self.strata)?);
        if layout.used.is_empty() {
            return Err(ClassicalError::NoCovariates);
        }
        let named = |error: ClassicalError| {
            let error = error.with_places(&layout.used);
            samples.names.map_or_else(|| error.clone(), |names| error.clone().with_names(names))
        };
        self.fit_layout(samples, &layout).map_err(named)
    }

    /// Fits the model to the covariates of `layout`, of which there may be none.
    ///
    /// # Errors
    /// As [`fit_samples`](Self::fit_samples), by the place in `layout.used`.
    pub(super) fn fit_layout(&self, samples: &CoxSamples<'_>, layout: &Layout) -> Result<CoxModel, ClassicalError> {
        let (n, n_events, p) = (samples.outcomes.n(), samples.outcomes.n_events(), layout.used.len());
        let prepared = Prepared::new(samples.covariates, samples.outcomes, layout, self.ties)?;
        if self.ridge <= 0.0 && n_events < p.max(1) {
            return Err(ClassicalError::FewEvents { n_events, n_coefficients: p.max(1) });
        }
        let found = maximum(&prepared.ordered, p, self.ridge, samples.stop)?;
        let ordered = &prepared.ordered;
        let sweep = ordered.sweep(&ordered.x.dot(&found.coefficients), &ordered.all());
        let steps = ordered.steps(&sweep, &ordered.all());
        let baselines = ordered.baselines(&steps).into_iter().map(|(stratum, times, cumulative_hazard)| CoxBaseline {
            stratum: layout.keys[stratum].clone(),
            times,
            cumulative_hazard,
        });
        let Maximum { coefficients, mut covariance, log_likelihood, log_likelihood_null, score_statistic } = found;
        if self.errors == CoxErrors::Robust {
            covariance = robust_covariance(ordered, &sweep, &steps, &covariance, samples.subjects);
        }
        unstandardise(&mut covariance, &prepared.deviation);
        let names = samples.all_names();
        let coefficient = |(place, column): (usize, &usize)| CoxCoefficient {
            name: names[*column].clone(),
            value: coefficients[place] / prepared.deviation[place],
            standard_error: Some(covariance[[place, place]].sqrt()),
            mean: prepared.mean[place],
        };
        let coefficients: Vec<CoxCoefficient> = layout.used.iter().enumerate().map(coefficient).collect();
        if let Some(place) = coefficients.iter().position(|found| !found.is_finite()) {
            return Err(ClassicalError::Separates { columns: vec![Column::new(place)] });
        }
        Ok(CoxModel {
            settings: self.clone(),
            n_columns: samples.covariates.ncols(),
            used: layout.used.clone(),
            strata: layout.strata.clone(),
            n,
            n_events,
            covariance: covariance.rows().into_iter().map(|row| row.to_vec()).collect(),
            coefficients,
            log_likelihood,
            log_likelihood_null,
            score_statistic,
            baselines: baselines.collect(),
        })
    }
}

/// The covariance of coefficients of the covariates in place of that of standardised ones.
pub(super) fn unstandardise(covariance: &mut Array2<f64>, deviation: &Array1<f64>) {
    *covariance /= deviation;
    *covariance /= &deviation.view().insert_axis(ndarray::Axis(1));
}
