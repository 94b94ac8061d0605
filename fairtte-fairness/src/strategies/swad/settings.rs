//! Settings of SWAD.

use serde::{Deserialize, Serialize};

use super::Swad;
use crate::strategies::{NETWORK, Strategy, StrategySettings, TrainingCells};
use crate::{FairnessError, Learner, LearnerSpec, TrainingConfig, check_at_least, check_not_negative};

/// The validation loss that is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SwadCriterion {
    /// Mean negative log-likelihood of the part.
    #[default]
    Nll,
    /// The largest of the groups; that of the part if no sample has a group.
    WorstGroupNll,
}

/// Settings of SWAD.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SwadConfig {
    /// Evaluations in the window that finds the start, at least 1.
    pub n_converge: usize,
    /// Evaluations above the threshold that end the valley, at least 1.
    pub n_tolerance: usize,
    /// Relative excess over the mean loss of the window that is tolerated, at least 0.
    pub tolerance_ratio: f64,
    /// Steps between evaluations within an epoch; 0 = one evaluation per epoch.
    pub interval: usize,
    /// The loss that is watched.
    pub criterion: SwadCriterion,
}

impl Default for SwadConfig {
    fn default() -> Self {
        Self { n_converge: 2, n_tolerance: 3, tolerance_ratio: 0.05, interval: 0, criterion: SwadCriterion::Nll }
    }
}

impl StrategySettings for SwadConfig {
    fn name(&self) -> &'static str {
        "swad"
    }

    fn summary(&self) -> &'static str {
        "the mean of the weights over a valley of the validation loss (Cha et al. 2021)"
    }

    fn needs_groups(&self) -> bool {
        self.criterion == SwadCriterion::WorstGroupNll
    }

    /// Of one group the worst is that one.
    fn compares_groups(&self) -> bool {
        false
    }

    fn validate(&self) -> Result<(), FairnessError> {
        check_at_least("n-converge", self.n_converge, 1)?;
        check_at_least("n-tolerance", self.n_tolerance, 1)?;
        check_not_negative("tolerance-ratio", self.tolerance_ratio)
    }

    /// Whether `epochs` and `patience` leave room for the Ns + Ne evaluations in which a valley is found and ended; a sentence
    /// for each that does not. `n_steps` are the steps of the optimisers in an epoch.
    fn training_notes(&self, training: &TrainingConfig, n_steps: usize) -> Vec<String> {
        let Self { n_converge, n_tolerance, interval, .. } = *self;
        let per_epoch = if interval == 0 { 1 } else { n_steps.div_ceil(interval).max(1) };
        let needed = n_converge.saturating_add(n_tolerance);
        let epochs = needed.div_ceil(per_epoch);
        let note = |key: &str, value: usize| {
            let given = value.saturating_mul(per_epoch);
            (given < needed).then(|| {
                format!(
                    "strategy swad: {key} = {value} gives too few evaluations ({given}; n-converge + n-tolerance = {needed}): \
                     training may end before the valley, and the mean is then over a part of it; use {key} = {epochs} or \
                     more"
                )
            })
        };
        [note("`epochs`", training.epochs), note("`patience`", training.patience)].into_iter().flatten().collect()
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, _cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Swad::new(self, Learner::new(spec, NETWORK)?)?))
    }
}
