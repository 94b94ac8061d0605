//! Cox regression: how covariates such as age and sex multiply the hazard.
//!
//! h(t | x) = h0(t) exp(x b). The coefficients b have the largest partial likelihood (Cox 1972,
//! doi:10.1111/j.2517-6161.1972.tb00899.x; Newton's method), tied events by Efron's (1977,
//! doi:10.1080/01621459.1977.10480613) or Breslow's (1974, doi:10.2307/2529620) approximation. The cumulative baseline
//! hazard uses the same approximation, as R `survfit` does; lifelines and scikit-survival use Breslow's with both. In a
//! report it is the baseline of covariates alone that an image model has to beat.

mod covariates;
mod cross_fitted;
mod error;
mod partial_likelihood;

use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};

use crate::normal::normal_quantile;
use crate::{MetricError, Outcomes, SurvivalCurves};

use covariates::{Coding, coding_of, design};
pub use covariates::{CovariateValues, Covariates};
pub use cross_fitted::{CrossFitted, cross_fitted_curves};
pub use error::CoxError;
use partial_likelihood::{Design, Maximum};

/// The approximation for events at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoxTies {
    /// As if tied events happened in every order (default).
    #[default]
    Efron,
    /// As if every tied event had all of them at risk.
    Breslow,
}

/// A fitted Cox model.
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
    coding: Vec<Coding>,
}

/// The effect of one term on the log hazard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CoxCoefficient {
    /// Name of the covariate, for a level `column=level`.
    pub name: String,
    /// Logarithm of the hazard ratio per unit of the covariate, or of the level against the first level.
    pub value: f64,
    /// Its standard error, from the inverse information; `None` if the term was the same in all samples and left out.
    pub standard_error: Option<f64>,
    /// Mean of the term in the samples of the fit.
    pub mean: f64,
}

impl CoxCoefficient {
    /// Hazard ratio with the ends of its Wald interval; `None` without standard error or for a level outside (0, 1).
    pub fn hazard_ratio(&self, level: f64) -> Option<(f64, f64, f64)> {
        let error = self.standard_error.filter(|_| level > 0.0 && level < 1.0)?;
        let reach = normal_quantile(f64::midpoint(1.0, level)) * error;
        Some((self.value.exp(), (self.value - reach).exp(), (self.value + reach).exp()))
    }
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
    /// use fairtte_metrics::estimators::{CovariateValues, Covariates, CoxRegression, CoxTies};
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
    /// [`MetricError::LengthMismatch`]; [`MetricError::CoxRegression`] for constant, collinear or separating covariates and
    /// for fewer events than terms.
    pub fn fit(outcomes: &Outcomes, covariates: &Covariates, ties: CoxTies) -> Result<Self, MetricError> {
        Self::fit_coded(outcomes, covariates, coding_of(covariates), ties, Constant::Refuse)
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
    ) -> Result<Self, MetricError> {
        Self::fit_coded(outcomes, covariates, coding_of(all), ties, Constant::LeaveOut)
    }

    fn fit_coded(
        outcomes: &Outcomes,
        covariates: &Covariates,
        coding: Vec<Coding>,
        ties: CoxTies,
        constant: Constant,
    ) -> Result<Self, MetricError> {
        let (n, n_events) = (outcomes.n(), outcomes.n_events());
        if covariates.n() != n {
            let what = "covariates";
            return Err(MetricError::LengthMismatch { what, found: covariates.n(), expected: n });
        }
        let x = design(&coding, covariates).map_err(MetricError::CoxRegression)?;
        let terms: Vec<String> = coding.iter().flat_map(Coding::terms).collect();
        let mean = x.mean_axis(Axis(0)).ok_or(MetricError::NoSamples)?;
        let deviation = deviations(&x, &mean);
        let varies: Vec<usize> = (0..terms.len()).filter(|term| deviation[*term] > 0.0).collect();
        if let Some(term) = (0..terms.len()).find(|term| !varies.contains(term) && constant == Constant::Refuse) {
            return Err(MetricError::CoxRegression(CoxError::Constant { term: terms[term].clone(), n }));
        }
        let n_coefficients = varies.len().max(1);
        if n_events < n_coefficients {
            return Err(MetricError::CoxRegression(CoxError::FewEvents { n_events, n_coefficients }));
        }
        let standardised = (&x - &mean).select(Axis(1), &varies) / &deviation.select(Axis(0), &varies);
        let design = Design::new(outcomes, &standardised, ties);
        let of_varying: Vec<String> = varies.iter().map(|term| terms[*term].clone()).collect();
        let found = design.maximum(&of_varying).map_err(MetricError::CoxRegression)?;
        let (event_times, cumulative_hazard) = design.cumulative_hazard(&found.coefficients);
        let Maximum { coefficients, standard_errors, log_likelihood, log_likelihood_null } = found;
        let coefficient = |(term, name): (usize, String)| {
            let place = varies.iter().position(|varying| *varying == term);
            CoxCoefficient {
                name,
                value: place.map_or(0.0, |place| coefficients[place] / deviation[term]),
                standard_error: place.map(|place| standard_errors[place] / deviation[term]),
                mean: mean[term],
            }
        };
        let coefficients = terms.into_iter().enumerate().map(coefficient).collect();
        Ok(Self {
            ties,
            n,
            n_events,
            coefficients,
            log_likelihood,
            log_likelihood_null,
            times: event_times,
            cumulative_hazard,
            coding,
        })
    }

    /// Sum of coefficients times terms, each term minus its mean in the fit, `[n]`: the logarithm of the hazard ratio against
    /// a sample with the means.
    ///
    /// # Errors
    /// [`MetricError::CoxRegression`] if the columns are not those of the fit, or for a level that it does not know.
    pub fn linear_predictor(&self, covariates: &Covariates) -> Result<Vec<f64>, MetricError> {
        let x = design(&self.coding, covariates).map_err(MetricError::CoxRegression)?;
        let of_row = |row: ndarray::ArrayView1<'_, f64>| {
            row.iter().zip(&self.coefficients).map(|(x, term)| term.value * (x - term.mean)).sum()
        };
        Ok(x.rows().into_iter().map(of_row).collect())
    }

    /// Survival of samples with these covariates at the times of `grid`, `[n, n_times]`; after the last event time of the fit
    /// it stays as it is there. O(n L).
    ///
    /// # Errors
    /// Those of [`linear_predictor`](Self::linear_predictor) and of [`SurvivalCurves::new`] for the grid.
    pub fn survival_curves(&self, covariates: &Covariates, grid: &[f64]) -> Result<SurvivalCurves, MetricError> {
        let after = |time: &f64| self.times.partition_point(|known| known <= time);
        let hazard: Vec<f64> = grid
            .iter()
            .map(|time| after(time).checked_sub(1).map_or(0.0, |place| self.cumulative_hazard[place]))
            .collect();
        let ratios: Vec<f64> = self.linear_predictor(covariates)?.into_iter().map(f64::exp).collect();
        // 0 times an infinite ratio: no hazard has passed.
        let survival =
            |(row, time): (usize, usize)| if hazard[time] > 0.0 { (-hazard[time] * ratios[row]).exp() } else { 1.0 };
        SurvivalCurves::new(grid.to_vec(), Array2::from_shape_fn((ratios.len(), grid.len()), survival))
    }
}

/// Standard deviations of the columns; exactly 0 of one whose values are all equal.
fn deviations(x: &Array2<f64>, mean: &Array1<f64>) -> Array1<f64> {
    let of_column = |(column, mean): (ndarray::ArrayView1<'_, f64>, &f64)| {
        let first = column.first().copied().unwrap_or(0.0);
        if column.iter().all(|value| value.total_cmp(&first).is_eq()) {
            return 0.0;
        }
        (column.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / column.len() as f64).sqrt()
    };
    x.columns().into_iter().zip(mean).map(of_column).collect()
}

#[cfg(test)]
mod tests;
