//! Cox regression with an elastic net: a path of models, from none to many covariates.
//!
//! For every lambda of a descending path the coefficients b of standardised covariates minimise
//!
//! `-l(b) / n + lambda (r sum of |b| + (1 - r) / 2 sum of b^2)`
//!
//! with the log partial likelihood l of n samples and r = `l1-ratio` (Simon, Friedman, Hastie & Tibshirani 2011,
//! doi:10.18637/jss.v039.i05), which is the criterion of scikit-survival's `CoxnetSurvivalAnalysis` on columns of standard
//! deviation 1. That paper replaces the information by its diagonal in the space of samples; here the quadratic approximation
//! has the information itself of the covariates in play (a proximal Newton method), so that few approximations lead to the
//! optimum, and Efron's ties are as exact as Breslow's. One lambda is chosen by cross-validation.

mod criterion;
mod cross_validation;
mod model;
mod path;

use fairtte_metrics::Outcomes;
use fairtte_metrics::evaluation::Stop;
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

pub use self::cross_validation::LambdaValidation;
use self::cross_validation::cross_validate;
pub use self::model::CoxElasticNetModel;
use self::path::{Penalty, largest_lambda, path};
use super::model::{CoxBaseline, CoxCoefficient};
use super::ordered::CoxTies;
use super::samples::{CoxSamples, Layout, Prepared};
use crate::{ClassicalError, SurvivalEstimator};

/// Most values of a penalty: more are a mistake.
const MOST_LAMBDAS: usize = 10_000;
/// Most folds: more are a mistake.
const MOST_FOLDS: usize = 10_000;

/// Which lambda of the path predicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LambdaChoice {
    /// The one with the lowest cross-validated deviance (default).
    #[default]
    LowestDeviance,
    /// The largest one whose deviance is within one standard error of the lowest.
    OneStandardError,
    /// This one, without cross-validation; the path ends there.
    Fixed(f64),
}

/// Settings of a Cox regression with an elastic net.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CoxElasticNetSettings {
    /// How events at the same time are counted.
    pub ties: CoxTies,
    /// Share of the absolute values in the penalty, in [0, 1]: 1 = lasso, 0 = ridge.
    pub l1_ratio: f64,
    /// Values of lambda, in equal steps of their logarithm, at least 1.
    pub lambdas: usize,
    /// The smallest lambda as a share of the largest, in (0, 1); `None` = 0.0001 for more samples than covariates, else 0.01.
    pub smallest: Option<f64>,
    /// Which lambda predicts.
    pub choice: LambdaChoice,
    /// Folds of the cross-validation, at least 2; samples of a subject stay together.
    pub folds: usize,
    /// Seed of the folds.
    pub seed: u64,
}

impl Default for CoxElasticNetSettings {
    /// Efron's ties, equal shares of both penalties, 100 values of lambda, 10 folds.
    fn default() -> Self {
        Self {
            ties: CoxTies::Efron,
            l1_ratio: 0.5,
            lambdas: 100,
            smallest: None,
            choice: LambdaChoice::LowestDeviance,
            folds: 10,
            seed: 0,
        }
    }
}

impl SurvivalEstimator for CoxElasticNetSettings {
    type Model = CoxElasticNetModel;

    fn check(&self) -> Result<(), ClassicalError> {
        let wrong = |setting: &'static str, value: String, expected: &'static str| {
            Err(ClassicalError::Setting { setting, value, expected })
        };
        if !(0.0..=1.0).contains(&self.l1_ratio) {
            return wrong("l1-ratio", self.l1_ratio.to_string(), "a number between 0 and 1");
        }
        if !(1..=MOST_LAMBDAS).contains(&self.lambdas) {
            return wrong("lambdas", self.lambdas.to_string(), "a whole number from 1 to 10000");
        }
        if let Some(smallest) = self.smallest.filter(|share| !(*share > 0.0 && *share < 1.0)) {
            return wrong("smallest", smallest.to_string(), "a share between 0 and 1");
        }
        if !(2..=MOST_FOLDS).contains(&self.folds) {
            return wrong("folds", self.folds.to_string(), "a whole number from 2 to 10000");
        }
        match self.choice {
            LambdaChoice::Fixed(lambda) if !(lambda.is_finite() && lambda > 0.0) => {
                wrong("choice.fixed", lambda.to_string(), "a number > 0")
            }
            _ => Ok(()),
        }
    }

    fn fit_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        stop: &Stop,
    ) -> Result<CoxElasticNetModel, ClassicalError> {
        self.fit_samples(&CoxSamples::new(covariates, outcomes).until(stop))
    }
}

impl CoxElasticNetSettings {
    /// Fits the path, and chooses a lambda. For each lambda O(n p + n a^2) with a covariates in play, for each of a few steps;
    /// cross-validation repeats it for every fold, in parallel, with a result that does not depend on the number of threads.
    ///
    /// # Errors
    /// [`ClassicalError`] for settings outside their range, samples that do not fit together, and constant covariates, by name;
    /// [`ClassicalError::EventsInOneFold`] for a cross-validation whose events are all of one subject, or by chance in one fold;
    /// [`ClassicalError::NotConverged`].
    pub fn fit_samples(&self, samples: &CoxSamples<'_>) -> Result<CoxElasticNetModel, ClassicalError> {
        self.check()?;
        samples.check()?;
        let names = samples.all_names();
        let layout = Layout::new(samples.covariates, Vec::new());
        let prepared = Prepared::new(samples.covariates, samples.outcomes, &layout, self.ties)
            .map_err(|error| samples.names.map_or_else(|| error.clone(), |names| error.clone().with_names(names)))?;
        let lambdas = self.lambda_path(&prepared);
        let standardised =
            path(&prepared.ordered, Penalty { lambdas: &lambdas, l1_ratio: self.l1_ratio }, samples.stop)?;
        let (validation, chosen) = match self.choice {
            LambdaChoice::Fixed(_) => (None, lambdas.len() - 1),
            choice => {
                let found = cross_validate(samples, self, &lambdas)?;
                let chosen =
                    if choice == LambdaChoice::LowestDeviance { found.lowest } else { found.one_standard_error };
                (Some(found), chosen)
            }
        };
        let ordered = &prepared.ordered;
        let saturated = saturated_likelihood(&prepared);
        let null = ordered.likelihoods(&[Array1::zeros(names.len())])[0];
        let explained = |value: f64| {
            let possible = saturated - null;
            if possible > 0.0 { (value - null) / possible } else { 0.0 }
        };
        let sweep = ordered.sweep(&ordered.x.dot(&standardised[chosen]), &ordered.all());
        let steps = ordered.steps(&sweep, &ordered.all());
        let (_, times, cumulative_hazard) =
            ordered.baselines(&steps).into_iter().next().ok_or(ClassicalError::NoEvents)?;
        let path: Vec<Vec<f64>> = standardised.iter().map(|b| (b / &prepared.deviation).to_vec()).collect();
        let coefficient = |(place, name): (usize, String)| CoxCoefficient {
            name,
            value: path[chosen][place],
            standard_error: None,
            mean: prepared.mean[place],
        };
        let coefficients: Vec<CoxCoefficient> = names.into_iter().enumerate().map(coefficient).collect();
        Ok(CoxElasticNetModel {
            settings: self.clone(),
            n: samples.outcomes.n(),
            n_events: samples.outcomes.n_events(),
            coefficients,
            deviance_ratios: ordered.likelihoods(&standardised).into_iter().map(explained).collect(),
            lambdas,
            path,
            chosen,
            validation,
            baseline: CoxBaseline { stratum: Vec::new(), times, cumulative_hazard },
        })
    }

    /// Values of lambda, descending: from the smallest at which all coefficients are 0, or from a fixed one if that is larger.
    fn lambda_path(&self, prepared: &Prepared) -> Vec<f64> {
        let largest = largest_lambda(&prepared.ordered, self.l1_ratio);
        let (n, p) = prepared.ordered.x.dim();
        let smallest = match self.choice {
            LambdaChoice::Fixed(lambda) => lambda,
            _ => largest * self.smallest.unwrap_or(if n > p { 1e-4 } else { 1e-2 }),
        };
        if smallest >= largest || self.lambdas == 1 {
            return vec![if matches!(self.choice, LambdaChoice::Fixed(_)) { smallest } else { largest }];
        }
        let last = (self.lambdas - 1) as f64;
        let at = |k: usize| largest * (smallest / largest).powf(k as f64 / last);
        (0..self.lambdas - 1).map(at).chain(std::iter::once(smallest)).collect()
    }
}

/// The log partial likelihood of a model in which every event is certain to be the next.
fn saturated_likelihood(prepared: &Prepared) -> f64 {
    let blocks = &prepared.ordered.blocks;
    let of_block = |n_events: usize| {
        let orders = prepared.ordered.ties.steps(n_events);
        orders.map(|(share, count)| count * (n_events as f64 * (1.0 - share)).ln()).sum::<f64>()
    };
    -blocks.iter().map(|block| of_block(block.n_events)).sum::<f64>()
}

#[cfg(test)]
mod tests;
