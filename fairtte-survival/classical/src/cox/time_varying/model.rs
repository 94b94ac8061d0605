//! A fitted Cox model with time-varying coefficients.

use fairtte_metrics::SurvivalCurves;
use ndarray::{Array1, Array2, ArrayView1, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{CoxTimeVaryingSettings, Term};
use crate::cox::model::{ChiSquareTest, CoxCoefficient, finite};
use crate::cox::newton::inverse;
use crate::estimator::check_covariates;
use crate::{ClassicalError, SurvivalModel};

/// A fitted Cox model whose coefficients change with time.
///
/// A sample has no hazard ratio that holds at all times. Its risk is the logarithm of its cumulative hazard at the last event time
/// of the fit, which for constant coefficients is the linear predictor plus a constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CoxTimeVaryingModel {
    pub(super) settings: CoxTimeVaryingSettings,
    /// Names of the covariates.
    pub(super) names: Vec<String>,
    /// Samples of the fit.
    pub n: usize,
    /// Events among them.
    pub n_events: usize,
    pub(super) terms: Vec<Term>,
    /// Of the covariates, then of those that vary times each function of time; `mean` is that of the covariate.
    pub coefficients: Vec<CoxCoefficient>,
    pub(super) covariance: Vec<Vec<f64>>,
    /// Log partial likelihood of the coefficients, without penalty.
    pub log_likelihood: f64,
    /// Log partial likelihood of coefficients 0.
    pub log_likelihood_null: f64,
    /// Event times, ascending.
    pub times: Vec<f64>,
    /// Steps of the cumulative hazard at each of them, of a sample with the means of all covariates.
    pub steps: Vec<f64>,
    /// Event times below which a quarter, a half and three quarters of the events are; `None` of a model of an older version.
    #[serde(default)]
    pub event_quartiles: Option<[f64; 3]>,
}

impl CoxTimeVaryingModel {
    /// The settings of the fit.
    pub fn settings(&self) -> &CoxTimeVaryingSettings {
        &self.settings
    }

    /// Covariance of the coefficients, `[q, q]`.
    pub fn covariance(&self) -> Array2<f64> {
        let q = self.covariance.len();
        Array2::from_shape_fn((q, q), |(row, column)| self.covariance[row][column])
    }

    /// The coefficients of the covariates at a time, `[p]`: logarithms of hazard ratios per unit, with standard errors.
    ///
    /// # Errors
    /// [`ClassicalError::Setting`] if the time is no finite number >= 0.
    pub fn coefficients_at(&self, time: f64) -> Result<Vec<CoxCoefficient>, ClassicalError> {
        if !(time.is_finite() && time >= 0.0) {
            let (setting, expected) = ("time", "a finite number >= 0");
            return Err(ClassicalError::Setting { setting, value: time.to_string(), expected });
        }
        let covariance = self.covariance();
        let weights = self.weights_at(time);
        let values: Array1<f64> = self.coefficients.iter().map(|coefficient| coefficient.value).collect();
        let of_covariate = |(place, name): (usize, &String)| {
            let row = weights.row(place);
            CoxCoefficient {
                name: name.clone(),
                value: row.dot(&values),
                standard_error: Some(row.dot(&covariance.dot(&row)).max(0.0).sqrt()),
                mean: self.coefficients[place].mean,
            }
        };
        Ok(self.names.iter().enumerate().map(of_covariate).collect())
    }

    /// Wald's test that no coefficient changes with time; `None` of a penalised fit or if no coefficient may change.
    pub fn time_variation_test(&self) -> Option<ChiSquareTest> {
        let first = self.names.len();
        let n = self.terms.len() - first;
        let values: Array1<f64> = self.coefficients[first..].iter().map(|coefficient| coefficient.value).collect();
        let last: Vec<usize> = (first..self.terms.len()).collect();
        let mut covariance = self.covariance().select(Axis(0), &last).select(Axis(1), &last);
        let scale = covariance.diag().mapv(f64::sqrt);
        covariance /= &scale;
        covariance /= &scale.view().insert_axis(Axis(1));
        let inverse = (self.settings.ridge <= 0.0 && n > 0).then(|| inverse(covariance).ok()).flatten()?;
        let scaled = values / scale;
        Some(ChiSquareTest::new(scaled.dot(&inverse.dot(&scaled)), n))
    }

    /// Of every covariate the weights of the coefficients at a time, `[p, q]`.
    fn weights_at(&self, time: f64) -> Array2<f64> {
        let functions = self.settings.function.at(time);
        let mut weights = Array2::zeros((self.names.len(), self.terms.len()));
        for (place, term) in self.terms.iter().enumerate() {
            weights[[term.covariate, place]] = term.function.map_or(1.0, |function| functions[function]);
        }
        weights
    }

    /// Coefficients at every event time, `[n_times, p]`.
    fn course(&self) -> Array2<f64> {
        let values: Array1<f64> = self.coefficients.iter().map(|coefficient| coefficient.value).collect();
        let mut course = Array2::zeros((self.times.len(), self.names.len()));
        for (mut row, time) in course.rows_mut().into_iter().zip(&self.times) {
            row.assign(&self.weights_at(*time).dot(&values));
        }
        course
    }

    /// Logarithms of the steps of the cumulative hazard of a sample, `[n_times]`.
    fn log_steps(&self, course: &Array2<f64>, row: &ArrayView1<'_, f64>) -> Vec<f64> {
        let centred: Array1<f64> = row.iter().zip(&self.coefficients).map(|(x, term)| x - term.mean).collect();
        course.dot(&centred).iter().zip(&self.steps).map(|(eta, step)| finite(eta + step.ln())).collect()
    }
}

impl SurvivalModel for CoxTimeVaryingModel {
    fn n_covariates(&self) -> usize {
        self.names.len()
    }

    /// O(n K p) with K event times.
    fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        check_covariates(covariates, self.n_covariates())?;
        let course = self.course();
        let of_row = |row: usize| {
            let steps = self.log_steps(&course, &covariates.row(row));
            let largest = steps.iter().copied().fold(f64::MIN, f64::max);
            largest + steps.iter().map(|step| (step - largest).exp()).sum::<f64>().ln()
        };
        Ok((0..covariates.nrows()).into_par_iter().map(of_row).collect())
    }

    /// O(n K p) with K event times.
    fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        check_covariates(covariates, self.n_covariates())?;
        let course = self.course();
        // A step counts from the first time of the grid that is not before it.
        let place: Vec<usize> = self.times.iter().map(|time| grid.partition_point(|at| at < time)).collect();
        let mut survival = Array2::<f64>::zeros((covariates.nrows(), grid.len()));
        let rows: Vec<_> = survival.axis_iter_mut(Axis(0)).enumerate().collect();
        rows.into_par_iter().for_each(|(row, mut curve)| {
            for (place, step) in place.iter().zip(self.log_steps(&course, &covariates.row(row))) {
                if let Some(hazard) = curve.get_mut(*place) {
                    *hazard += step.exp();
                }
            }
            let mut hazard = 0.0;
            for value in &mut curve {
                hazard += *value;
                *value = (-hazard).exp();
            }
        });
        Ok(SurvivalCurves::new(grid.to_vec(), survival)?)
    }
}
