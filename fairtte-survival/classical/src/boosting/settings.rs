//! Settings of gradient boosting.

use serde::{Deserialize, Serialize};

use crate::estimator::{EXPECTED_TREES, MOST_TREES};
use crate::{ClassicalError, ColumnsPerSplit};

/// Settings of gradient-boosted Cox regression. The defaults are those of scikit-survival 0.28.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BoostingSettings {
    /// Trees, at least 1.
    pub trees: usize,
    /// What every tree is multiplied by, above 0 and at most 1.
    pub learning_rate: f64,
    /// Splits on the way to a leaf, at least 1.
    pub max_depth: usize,
    /// Samples of a node that may be split, at least 2.
    pub min_samples_split: u32,
    /// Samples of a child, at least 1.
    pub min_samples_leaf: u32,
    /// Columns that are drawn for a split. One that is constant in the node counts as drawn.
    pub columns_per_split: ColumnsPerSplit,
    /// Share of the samples, drawn without replacement, that a tree is fitted to, above 0 and at most 1. The gradient is that of all.
    pub subsample: f64,
    /// Share of the earlier trees that a tree is fitted without, in [0, 1); 0 = none, otherwise at least one (Rashmi & Gilad-Bachrach
    /// 2015).
    pub dropout: f64,
    /// Whether samples are held out that say when to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_stopping: Option<EarlyStopping>,
    /// Seed of samples, columns, dropped trees and held-out samples.
    pub seed: u64,
}

/// When to stop before all trees are fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct EarlyStopping {
    /// Share of the samples that is held out, the same of those with and without event, in (0, 1).
    pub share: f64,
    /// Losses of the held-out samples that are remembered, at least 1: the fit stops at a tree whose loss is not below any of them.
    pub patience: usize,
    /// By how much it must be below, at least 0: a difference of sums of negative log partial likelihood.
    pub tolerance: f64,
}

impl Default for BoostingSettings {
    fn default() -> Self {
        Self {
            trees: 100,
            learning_rate: 0.1,
            max_depth: 3,
            min_samples_split: 2,
            min_samples_leaf: 1,
            columns_per_split: ColumnsPerSplit::All,
            subsample: 1.0,
            dropout: 0.0,
            early_stopping: None,
            seed: 0,
        }
    }
}

impl Default for EarlyStopping {
    /// A tenth of the samples, ten trees, 1e-4.
    fn default() -> Self {
        Self { share: 0.1, patience: 10, tolerance: 1e-4 }
    }
}

impl BoostingSettings {
    /// Checks the ranges.
    pub(super) fn check_ranges(&self) -> Result<(), ClassicalError> {
        let is_share = |value: f64| value > 0.0 && value <= 1.0;
        let (rate, n_columns) = (self.learning_rate, self.columns_per_split);
        demand((1..=MOST_TREES).contains(&self.trees), "trees", &self.trees, EXPECTED_TREES)?;
        demand(is_share(rate), "learning-rate", &rate, "a number above 0 and at most 1")?;
        demand(self.max_depth > 0, "max-depth", &self.max_depth, "at least 1")?;
        demand(self.min_samples_split >= 2, "min-samples-split", &self.min_samples_split, "at least 2")?;
        demand(self.min_samples_leaf >= 1, "min-samples-leaf", &self.min_samples_leaf, "at least 1")?;
        demand(n_columns != ColumnsPerSplit::Count(0), "columns-per-split", &0, "at least 1")?;
        demand(is_share(self.subsample), "subsample", &self.subsample, "a share above 0 and at most 1")?;
        demand((0.0..1.0).contains(&self.dropout), "dropout", &self.dropout, "a share from 0 to below 1")?;
        if let Some(EarlyStopping { share, patience, tolerance }) = &self.early_stopping {
            demand(is_share(*share) && *share < 1.0, "early-stopping.share", share, "a share between 0 and 1")?;
            demand(*patience > 0, "early-stopping.patience", patience, "at least 1")?;
            let is_finite = tolerance.is_finite() && *tolerance >= 0.0;
            demand(is_finite, "early-stopping.tolerance", tolerance, "a finite number, at least 0")?;
        }
        Ok(())
    }
}

fn demand(
    is_valid: bool,
    setting: &'static str,
    value: &dyn ToString,
    expected: &'static str,
) -> Result<(), ClassicalError> {
    let wrong = || ClassicalError::Setting { setting, value: value.to_string(), expected };
    is_valid.then_some(()).ok_or_else(wrong)
}
