//! A fitted Cox model.

use fairtte_metrics::SurvivalCurves;
use fairtte_metrics::statistics::chi_square_upper_tail;
use ndarray::{Array1, Array2, ArrayView1};
use serde::{Deserialize, Serialize};

use super::newton::inverse;
use super::samples::key_of;
use super::settings::CoxSettings;
use crate::estimator::{Row, check_covariates};
use crate::{ClassicalError, Estimate, SurvivalModel};

/// The effect of one covariate on the log hazard: an [`Estimate`] with the name and the mean of its covariate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CoxCoefficient {
    /// Name of the covariate, for a level `column=level`; the number of a column without a name.
    pub name: String,
    /// Logarithm of the hazard ratio per unit of the covariate, or of the level against the first level.
    pub value: f64,
    /// Its standard error; `None` if the covariate was the same in all samples and left out, or if there is none (elastic net).
    pub standard_error: Option<f64>,
    /// Mean of the covariate in the samples of the fit.
    pub mean: f64,
}

impl CoxCoefficient {
    /// The number alone, with its standard error.
    pub fn estimate(&self) -> Estimate {
        Estimate { value: self.value, standard_error: self.standard_error }
    }

    /// Hazard ratio with the ends of its Wald interval; `None` without standard error or for a level outside (0, 1).
    pub fn hazard_ratio(&self, level: f64) -> Option<(f64, f64, f64)> {
        self.estimate().ratio(level)
    }

    /// Wald's test of a coefficient of 0; `None` without standard error.
    pub fn wald_test(&self) -> Option<ChiSquareTest> {
        let error = self.standard_error.filter(|error| *error > 0.0)?;
        Some(ChiSquareTest::new((self.value / error).powi(2), 1))
    }

    pub(super) fn is_finite(&self) -> bool {
        self.value.is_finite() && self.mean.is_finite() && self.standard_error.is_none_or(f64::is_finite)
    }
}

/// A statistic that has a chi-square distribution under the null hypothesis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ChiSquareTest {
    /// The statistic, >= 0.
    pub statistic: f64,
    /// Its degrees of freedom.
    pub degrees_of_freedom: usize,
    /// Probability of a statistic at least as large.
    pub p_value: f64,
}

impl ChiSquareTest {
    pub(super) fn new(statistic: f64, degrees_of_freedom: usize) -> Self {
        let statistic = statistic.max(0.0);
        Self { statistic, degrees_of_freedom, p_value: chi_square_upper_tail(statistic, degrees_of_freedom) }
    }
}

/// The baseline of one stratum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CoxBaseline {
    /// Values of the columns that tell the stratum, in the order of the settings; empty without strata.
    pub stratum: Vec<f64>,
    /// Event times, ascending.
    pub times: Vec<f64>,
    /// Cumulative hazard after each of them, of a sample with the means of all covariates.
    pub cumulative_hazard: Vec<f64>,
}

impl CoxBaseline {
    /// Cumulative hazard at the times of `grid`: 0 before the first event, and after the last as it is there.
    pub(super) fn at(&self, grid: &[f64]) -> Vec<f64> {
        let before = |time: &f64| self.times.partition_point(|known| known <= time).checked_sub(1);
        grid.iter().map(|time| before(time).map_or(0.0, |place| self.cumulative_hazard[place])).collect()
    }
}

/// A fitted Cox model.
///
/// The risk is the linear predictor, the logarithm of the hazard ratio against a sample with the means of all covariates; with
/// strata it compares samples of one stratum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CoxModel {
    pub(super) settings: CoxSettings,
    /// Columns of the fit.
    pub(super) n_columns: usize,
    /// Places of the covariates.
    pub(super) used: Vec<usize>,
    /// Places of the columns that tell the stratum.
    pub(super) strata: Vec<usize>,
    /// Samples of the fit.
    pub n: usize,
    /// Events among them.
    pub n_events: usize,
    /// One per covariate that tells no stratum.
    pub coefficients: Vec<CoxCoefficient>,
    /// `[p, p]`.
    pub(super) covariance: Vec<Vec<f64>>,
    /// Log partial likelihood of the coefficients, without penalty.
    pub log_likelihood: f64,
    /// Log partial likelihood of coefficients 0.
    pub log_likelihood_null: f64,
    pub(super) score_statistic: f64,
    /// By stratum with events.
    pub baselines: Vec<CoxBaseline>,
}

impl CoxModel {
    /// The settings of the fit.
    pub fn settings(&self) -> &CoxSettings {
        &self.settings
    }

    /// Covariance of the coefficients, plain or robust as set, `[p, p]`.
    pub fn covariance(&self) -> Array2<f64> {
        let p = self.covariance.len();
        Array2::from_shape_fn((p, p), |(row, column)| self.covariance[row][column])
    }

    /// The coefficients, `[p]`.
    pub(super) fn values(&self) -> Array1<f64> {
        self.coefficients.iter().map(|coefficient| coefficient.value).collect()
    }

    /// Likelihood ratio test of all coefficients being 0; `None` of a penalised fit, whose statistic has another distribution.
    pub fn likelihood_ratio_test(&self) -> Option<ChiSquareTest> {
        let statistic = 2.0 * (self.log_likelihood - self.log_likelihood_null);
        self.is_plain().then(|| ChiSquareTest::new(statistic, self.coefficients.len()))
    }

    /// Wald's test of the same, with the plain or robust covariance as set; `None` of a penalised fit, and where the covariance
    /// has no inverse (fewer clusters than coefficients).
    pub fn wald_test(&self) -> Option<ChiSquareTest> {
        let values = self.values();
        let scale: Array1<f64> = self.covariance().diag().mapv(f64::sqrt);
        let mut scaled = self.covariance();
        scaled /= &scale;
        scaled /= &scale.view().insert_axis(ndarray::Axis(1));
        let standardised = &values / &scale;
        let inverse = self.is_plain().then(|| inverse(scaled).ok()).flatten()?;
        Some(ChiSquareTest::new(standardised.dot(&inverse.dot(&standardised)), values.len()))
    }

    /// The score test of the same, from gradient and information at coefficients of 0; `None` of a penalised fit.
    pub fn score_test(&self) -> Option<ChiSquareTest> {
        self.is_plain().then(|| ChiSquareTest::new(self.score_statistic, self.coefficients.len()))
    }

    fn is_plain(&self) -> bool {
        self.settings.ridge <= 0.0 && !self.coefficients.is_empty()
    }

    fn predictor(&self, row: &ArrayView1<'_, f64>) -> f64 {
        let terms = self.used.iter().zip(&self.coefficients);
        terms.map(|(place, term)| term.value * (row[*place] - term.mean)).sum()
    }

    /// Place of the baseline of every row.
    fn baseline_of(&self, covariates: &Array2<f64>) -> Result<Vec<usize>, ClassicalError> {
        let of_row = |(row, values): (usize, ArrayView1<'_, f64>)| {
            let key = key_of(&values, &self.strata);
            self.baselines.iter().position(|known| known.stratum == key).ok_or_else(|| ClassicalError::UnknownStratum {
                row: Row::new(row),
                stratum: self.stratum_name(&key),
                known: self
                    .baselines
                    .iter()
                    .map(|known| self.stratum_name(&known.stratum))
                    .collect::<Vec<_>>()
                    .join("; "),
            })
        };
        covariates.rows().into_iter().enumerate().map(of_row).collect()
    }

    fn stratum_name(&self, key: &[f64]) -> String {
        let parts = self.settings.strata.iter().zip(key).map(|(name, value)| format!("{name}={value}"));
        parts.collect::<Vec<_>>().join(", ")
    }
}

impl SurvivalModel for CoxModel {
    fn n_covariates(&self) -> usize {
        self.n_columns
    }

    fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        check_covariates(covariates, self.n_columns)?;
        Ok(covariates.rows().into_iter().map(|row| finite(self.predictor(&row))).collect())
    }

    fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        let risks = self.risk(covariates)?;
        let baseline_of = self.baseline_of(covariates)?;
        let hazards: Vec<Vec<f64>> = self.baselines.iter().map(|baseline| baseline.at(grid)).collect();
        let rows = risks.iter().zip(&baseline_of).map(|(risk, place)| (risk.exp(), hazards[*place].as_slice()));
        curves_of(grid, &rows.collect::<Vec<_>>())
    }
}

/// A number in place of an infinite predictor, which finite covariates and coefficients can have.
pub(super) fn finite(predictor: f64) -> f64 {
    if predictor.is_nan() { 0.0 } else { predictor.clamp(-f64::MAX, f64::MAX) }
}

/// exp(- ratio times hazard) by row, of ratios with hazards `[n_times]`.
///
/// # Errors
/// [`ClassicalError::Metric`] if `grid` is no time grid.
pub(super) fn curves_of(grid: &[f64], rows: &[(f64, &[f64])]) -> Result<SurvivalCurves, ClassicalError> {
    let survival = |(row, time): (usize, usize)| {
        let (ratio, hazards) = rows[row];
        // 0 times an infinite ratio: no hazard has passed.
        if hazards[time] > 0.0 { (-hazards[time] * ratio).exp() } else { 1.0 }
    };
    Ok(SurvivalCurves::new(grid.to_vec(), Array2::from_shape_fn((rows.len(), grid.len()), survival))?)
}
