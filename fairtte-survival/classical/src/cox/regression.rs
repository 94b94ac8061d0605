//! A Cox model of named covariates with levels.

use fairtte_metrics::{Outcomes, SurvivalCurves};
use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};

use super::model::{CoxBaseline, CoxCoefficient, curves_of, finite};
use super::ordered::CoxTies;
use super::samples::{CoxSamples, Layout, deviations};
use super::settings::CoxSettings;
use crate::ClassicalError;
use crate::covariates::{Coding, Covariates};
use crate::estimator::Column;

/// A fitted Cox model of named covariates: how age and sex multiply the hazard.
///
/// In a report it is the baseline of covariates alone that an image model has to beat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CoxRegression {
    /// How events at the same time were counted.
    pub ties: CoxTies,
    /// Samples of the fit.
    pub n: usize,
    /// Events among them.
    pub n_events: usize,
    /// One per number, and one per level but the first.
    pub coefficients: Vec<CoxCoefficient>,
    /// Log partial likelihood of the coefficients.
    pub log_likelihood: f64,
    /// Log partial likelihood of coefficients 0.
    pub log_likelihood_null: f64,
    /// Event times, ascending.
    pub times: Vec<f64>,
    /// Cumulative hazard after each of them, of a sample with the means of all terms.
    pub cumulative_hazard: Vec<f64>,
    coding: Coding,
}

/// What is done with a term that is the same in all samples.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Constant {
    Refuse,
    LeaveOut,
}

impl CoxRegression {
    /// Fits the model to n samples. Cost: O(n p^2) for each of about 6 steps, with p terms, and a sort of the times.
    ///
    /// ```
    /// use fairtte_metrics::Outcomes;
    /// use fairtte_classical::{CovariateValues, Covariates, CoxRegression, CoxTies};
    ///
    /// // Women have the event at 1, 3 and 4, men at 2, 5 and 6.
    /// let outcomes = Outcomes::new(vec![1.0, 3.0, 4.0, 2.0, 5.0, 6.0], vec![true; 6])?;
    /// let sex = ["F", "F", "F", "M", "M", "M"].map(str::to_owned).to_vec();
    /// let covariates = Covariates::new(vec![("sex".to_owned(), CovariateValues::Levels(sex))])?;
    /// let model = CoxRegression::fit(&outcomes, &covariates, CoxTies::Efron)?;
    /// let (ratio, lower, upper) = model.coefficients[0].hazard_ratio(0.95).unwrap_or((1.0, 1.0, 1.0));
    /// assert_eq!(model.coefficients[0].name, "sex=M");
    /// assert!(lower < ratio && ratio < 0.5 && upper > 1.0);
    /// let curves = model.survival_curves(&covariates, &[0.5, 3.5])?;
    /// assert!(curves.survival()[[0, 1]] < curves.survival()[[3, 1]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ClassicalError::Length`]; [`ClassicalError`] for constant, collinear or separating covariates and for fewer events than
    /// terms.
    pub fn fit(outcomes: &Outcomes, covariates: &Covariates, ties: CoxTies) -> Result<Self, ClassicalError> {
        Self::fit_coded(outcomes, covariates, Coding::of(covariates), ties, Constant::Refuse)
    }

    /// As [`fit`](Self::fit), with the levels of `all` samples, of which `covariates` may be some: a term that is the same in
    /// all samples of the fit is left out, so that a level without samples there is predicted as the first level.
    ///
    /// # Errors
    /// Those of [`fit`](Self::fit), but for constant terms.
    pub fn fit_with_levels_of(
        all: &Covariates,
        outcomes: &Outcomes,
        covariates: &Covariates,
        ties: CoxTies,
    ) -> Result<Self, ClassicalError> {
        Self::fit_coded(outcomes, covariates, Coding::of(all), ties, Constant::LeaveOut)
    }

    fn fit_coded(
        outcomes: &Outcomes,
        covariates: &Covariates,
        coding: Coding,
        ties: CoxTies,
        constant: Constant,
    ) -> Result<Self, ClassicalError> {
        let (n, found) = (outcomes.n(), covariates.n());
        if found != n {
            return Err(ClassicalError::Length { found, expected: n });
        }
        let x = coding.design(covariates)?;
        let terms = coding.terms();
        let mean = x.mean_axis(Axis(0)).ok_or(ClassicalError::NoEvents)?;
        let deviation = deviations(&x, &mean);
        let varies: Vec<usize> = (0..terms.len()).filter(|term| deviation[*term] > 0.0).collect();
        if let Some(place) = (0..terms.len()).find(|term| !varies.contains(term) && constant == Constant::Refuse) {
            return Err(ClassicalError::Constant { column: Column::new(place).named(&terms), n });
        }
        let layout = Layout { used: varies, strata: Vec::new(), keys: vec![Vec::new()], stratum: vec![0; n] };
        let samples = CoxSamples::new(&x, outcomes).named(&terms);
        let named = |error: ClassicalError| error.with_places(&layout.used).with_names(&terms);
        let model = CoxSettings { ties, ..CoxSettings::default() }.fit_layout(&samples, &layout).map_err(named)?;
        let mut fitted = layout.used.iter().zip(model.coefficients).peekable();
        let coefficient = |(term, name): (usize, &String)| match fitted.next_if(|(place, _)| **place == term) {
            Some((_, coefficient)) => coefficient,
            None => CoxCoefficient { name: name.clone(), value: 0.0, standard_error: None, mean: mean[term] },
        };
        let coefficients = terms.iter().enumerate().map(coefficient).collect();
        let CoxBaseline { times, cumulative_hazard, .. } =
            model.baselines.into_iter().next().ok_or(ClassicalError::NoEvents)?;
        Ok(Self {
            ties,
            n,
            n_events: model.n_events,
            coefficients,
            log_likelihood: model.log_likelihood,
            log_likelihood_null: model.log_likelihood_null,
            times,
            cumulative_hazard,
            coding,
        })
    }

    /// Sum of coefficients times terms, each term minus its mean in the fit, `[n]`: the logarithm of the hazard ratio against
    /// a sample with the means.
    ///
    /// # Errors
    /// [`ClassicalError::OtherColumns`] if the columns are not those of the fit, [`ClassicalError::UnknownLevel`].
    pub fn linear_predictor(&self, covariates: &Covariates) -> Result<Vec<f64>, ClassicalError> {
        let x: Array2<f64> = self.coding.design(covariates)?;
        let of_row = |row: ndarray::ArrayView1<'_, f64>| {
            finite(row.iter().zip(&self.coefficients).map(|(x, term)| term.value * (x - term.mean)).sum())
        };
        Ok(x.rows().into_iter().map(of_row).collect())
    }

    /// Survival of samples with these covariates at the times of `grid`, `[n, n_times]`; after the last event time of the fit
    /// it stays as it is there. O(n L).
    ///
    /// # Errors
    /// Those of [`linear_predictor`](Self::linear_predictor) and of [`SurvivalCurves::new`] for the grid.
    pub fn survival_curves(&self, covariates: &Covariates, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        let (times, cumulative_hazard) = (self.times.clone(), self.cumulative_hazard.clone());
        let hazard = CoxBaseline { stratum: Vec::new(), times, cumulative_hazard }.at(grid);
        let predictors = self.linear_predictor(covariates)?;
        let rows: Vec<_> = predictors.into_iter().map(|predictor| (predictor.exp(), hazard.as_slice())).collect();
        curves_of(grid, &rows)
    }
}

#[cfg(test)]
mod tests;
