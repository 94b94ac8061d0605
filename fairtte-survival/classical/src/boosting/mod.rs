//! Gradient-boosted Cox regression: a sum of regression trees as log hazard ratio, fitted to the partial likelihood.
//!
//! Starting at f = 0, every tree is fitted by squared error to the negative gradient of the negative log partial likelihood
//! (`partial_likelihood.rs`) and added to f after multiplication by the learning rate; a leaf is the mean gradient of its samples, without
//! a line search.
//! Sources: Friedman 2001, <https://doi.org/10.1214/aos/1013203451>; Ridgeway 1999; Hothorn et al. 2006. Settings, and predictions to
//! 1e-10, are those of `GradientBoostingSurvivalAnalysis(loss="coxph")` of scikit-survival 0.28, with two differences: it rounds columns
//! to single precision, and of columns with the same best split it takes one by chance.

mod partial_likelihood;
mod settings;
mod stages;
mod tree;

use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::{Outcomes, SubjectId, SurvivalCurves};
use ndarray::Array2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::partial_likelihood::Baseline;
pub use self::settings::{BoostingSettings, EarlyStopping};
use self::tree::RegressionTree;
use crate::estimator::{NEVER, check_covariates, check_samples};
use crate::units::Units;
use crate::{ClassicalError, SurvivalEstimator, SurvivalModel};

impl SurvivalEstimator for BoostingSettings {
    type Model = GradientBoostedCox;

    fn fit_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        stop: &Stop,
    ) -> Result<GradientBoostedCox, ClassicalError> {
        GradientBoostedCox::fit_until(covariates, outcomes, self, &Units::default(), stop).map(|(model, _)| model)
    }

    fn check(&self) -> Result<(), ClassicalError> {
        self.check_ranges()
    }
}

impl BoostingSettings {
    /// As [`fit_until`](SurvivalEstimator::fit_until), with the subjects of the samples `[n]`: all samples of a subject are held out for
    /// early stopping or none, and are in the part that a tree is fitted to or not.
    ///
    /// # Errors
    /// As [`fit_until`](SurvivalEstimator::fit_until), and [`ClassicalError::Metric`] if there are not as many subjects as samples.
    pub fn fit_subjects(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        subjects: &[SubjectId],
        stop: &Stop,
    ) -> Result<GradientBoostedCox, ClassicalError> {
        let units = Units::of_subjects(outcomes.n(), subjects)?;
        GradientBoostedCox::fit_until(covariates, outcomes, self, &units, stop).map(|(model, _)| model)
    }
}

/// A fitted sum of trees f with a baseline: the hazard of a sample is the baseline hazard times exp(f).
///
/// The risk is f, a log hazard ratio. S(t) = exp(-H(t) exp(f)) with Breslow's estimator H of the cumulative baseline hazard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GradientBoostedCox {
    settings: BoostingSettings,
    n_columns: usize,
    trees: Vec<RegressionTree>,
    /// What each tree is multiplied by.
    factors: Vec<f64>,
    baseline: Baseline,
}

/// The course of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct BoostingTrace {
    /// Negative log partial likelihood of the training samples, before the first tree and after every tree, `[trees + 1]`.
    pub losses: Vec<f64>,
    /// With early stopping, the samples that were held out.
    pub held_out: Option<HeldOut>,
}

/// Samples that no tree was fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// Their rows, ascending.
    pub rows: Vec<usize>,
    /// Their negative log partial likelihood after every tree, `[trees]`.
    pub losses: Vec<f64>,
}

impl GradientBoostedCox {
    /// Fits trees to covariates `[n, p]` and their outcomes. O(n p log n + trees depth p n), in parallel over columns; the result does not
    /// depend on the number of threads.
    ///
    /// # Errors
    /// [`ClassicalError`] if a setting is outside its range, there is no event, or a value is not finite.
    pub fn fit(
        columns: &Array2<f64>,
        outcomes: &Outcomes,
        settings: &BoostingSettings,
    ) -> Result<(Self, BoostingTrace), ClassicalError> {
        Self::fit_until(columns, outcomes, settings, &Units::default(), &NEVER)
    }

    fn fit_until(
        columns: &Array2<f64>,
        outcomes: &Outcomes,
        settings: &BoostingSettings,
        units: &Units,
        stop: &Stop,
    ) -> Result<(Self, BoostingTrace), ClassicalError> {
        settings.check_ranges()?;
        check_samples(columns, outcomes)?;
        let n = outcomes.n();
        if u32::try_from(n).is_err() {
            return Err(ClassicalError::TooMany { n });
        }
        let held_out = match &settings.early_stopping {
            Some(stopping) => stages::held_out(outcomes, units, stopping, settings.seed)?,
            None => Vec::new(),
        };
        Self::from_draws(columns, outcomes, settings, held_out, &mut stages::Seeded(settings, units), stop)
    }

    fn from_draws(
        columns: &Array2<f64>,
        outcomes: &Outcomes,
        settings: &BoostingSettings,
        held_out: Vec<u32>,
        draws: &mut impl stages::Draws,
        stop: &Stop,
    ) -> Result<(Self, BoostingTrace), ClassicalError> {
        let fitted = stages::fit(columns, outcomes, settings, held_out, draws, stop)?;
        let model = Self {
            settings: settings.clone(),
            n_columns: columns.ncols(),
            trees: fitted.trees,
            factors: fitted.factors,
            baseline: fitted.baseline,
        };
        Ok((model, fitted.trace))
    }

    /// The settings of the fit.
    pub fn settings(&self) -> &BoostingSettings {
        &self.settings
    }

    /// Trees, fewer than in the settings if the fit stopped early.
    pub fn n_trees(&self) -> usize {
        self.trees.len()
    }

    /// The log hazard ratios of samples after the first tree, after the first two, and so on: `trees` vectors `[n]`, the last of them the
    /// [`risk`](SurvivalModel::risk). With dropout, trees have the weights of the whole fit.
    ///
    /// # Errors
    /// [`ClassicalError::Columns`] or [`ClassicalError::NotFinite`] for other covariates.
    pub fn staged_risk<'a>(
        &'a self,
        columns: &'a Array2<f64>,
    ) -> Result<impl Iterator<Item = Vec<f64>> + 'a, ClassicalError> {
        check_covariates(columns, self.n_columns)?;
        let start = vec![0.0; columns.nrows()];
        Ok(self.trees.iter().zip(&self.factors).scan(start, |f, (tree, factor)| {
            for (row, f) in f.iter_mut().enumerate() {
                *f += factor * tree.value(|column| columns[[row, column]]);
            }
            Some(f.clone())
        }))
    }
}

impl SurvivalModel for GradientBoostedCox {
    fn n_covariates(&self) -> usize {
        self.n_columns
    }

    fn risk(&self, columns: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        check_covariates(columns, self.n_columns)?;
        let of_row = |row: usize| {
            let of_tree =
                |(tree, factor): (&RegressionTree, &f64)| factor * tree.value(|column| columns[[row, column]]);
            self.trees.iter().zip(&self.factors).map(of_tree).sum()
        };
        Ok((0..columns.nrows()).into_par_iter().map(of_row).collect())
    }

    fn survival_curves(&self, columns: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        let risk = self.risk(columns)?;
        let log_hazard: Vec<f64> = grid.iter().map(|time| self.baseline.log_hazard_at(*time)).collect();
        let survival = |(row, column): (usize, usize)| (-(log_hazard[column] + risk[row]).exp()).exp();
        Ok(SurvivalCurves::new(grid.to_vec(), Array2::from_shape_fn((risk.len(), grid.len()), survival))?)
    }
}

#[cfg(test)]
mod tests;
