//! A fitted path of Cox models with an elastic net.

use fairtte_metrics::SurvivalCurves;
use ndarray::{Array2, ArrayView1};
use serde::{Deserialize, Serialize};

use super::{CoxElasticNetSettings, LambdaValidation};
use crate::cox::model::{CoxBaseline, CoxCoefficient, curves_of, finite};
use crate::estimator::check_covariates;
use crate::{ClassicalError, SurvivalModel};

/// A path of Cox models with an elastic net, of which one predicts.
///
/// The risk is its linear predictor, the logarithm of the hazard ratio against a sample with the means of all covariates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CoxElasticNetModel {
    pub(super) settings: CoxElasticNetSettings,
    /// Samples of the fit.
    pub n: usize,
    /// Events among them.
    pub n_events: usize,
    /// Of the model that predicts, in the units of the covariates; without standard errors, which a penalty does not allow.
    pub coefficients: Vec<CoxCoefficient>,
    /// Values of lambda, descending.
    pub lambdas: Vec<f64>,
    /// By lambda the coefficients, in the units of the covariates, `[n_lambdas, p]`.
    pub path: Vec<Vec<f64>>,
    /// By lambda the share of the deviance of a model without covariates that is explained.
    pub deviance_ratios: Vec<f64>,
    /// Place of the lambda that predicts.
    pub chosen: usize,
    /// The cross-validation; `None` of a fixed lambda.
    pub validation: Option<LambdaValidation>,
    pub(super) baseline: CoxBaseline,
}

impl CoxElasticNetModel {
    /// The settings of the fit.
    pub fn settings(&self) -> &CoxElasticNetSettings {
        &self.settings
    }

    /// The baseline of the model that predicts.
    pub fn baseline(&self) -> &CoxBaseline {
        &self.baseline
    }

    /// Names of the covariates with a coefficient that is not 0 in the model that predicts.
    pub fn selected(&self) -> impl Iterator<Item = &str> {
        self.coefficients.iter().filter(|term| term.value.abs() > 0.0).map(|term| term.name.as_str())
    }
}

impl SurvivalModel for CoxElasticNetModel {
    fn n_covariates(&self) -> usize {
        self.coefficients.len()
    }

    fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        check_covariates(covariates, self.n_covariates())?;
        let of_row = |row: ArrayView1<'_, f64>| {
            finite(row.iter().zip(&self.coefficients).map(|(x, term)| term.value * (x - term.mean)).sum())
        };
        Ok(covariates.rows().into_iter().map(of_row).collect())
    }

    fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        let hazards = self.baseline.at(grid);
        let risks = self.risk(covariates)?;
        curves_of(grid, &risks.iter().map(|risk| (risk.exp(), hazards.as_slice())).collect::<Vec<_>>())
    }
}
