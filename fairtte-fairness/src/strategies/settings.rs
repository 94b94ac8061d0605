//! What a strategy says of itself to the registry.

use std::fmt::Debug;

use super::{ExpectedBatch, Strategy, TrainingCells};
use crate::{FairnessError, LearnerSpec, TrainingConfig};

/// The settings of a strategy: the table `[strategy.NAME]` of a run file, from which the strategy is built.
pub trait StrategySettings: Debug + Send + Sync {
    /// Name in run files, in kebab case.
    fn name(&self) -> &'static str;

    /// What the method does, in one line of at most 100 characters, with its source.
    fn summary(&self) -> &'static str;

    /// Whether training reads the groups of the samples.
    fn needs_groups(&self) -> bool {
        true
    }

    /// Whether the method compares groups, so that training needs samples of at least two.
    fn compares_groups(&self) -> bool {
        self.needs_groups()
    }

    /// Whether the method works where events have several causes: it then only combines the losses of the head, and nothing in it
    /// takes an event of another cause for a censoring.
    fn models_causes(&self) -> bool {
        false
    }

    /// Whether the method works where masks are predicted: it then reads only the losses of samples and their representation.
    fn models_masks(&self) -> bool {
        false
    }

    /// Checks the ranges, and that no setting is without effect.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the setting (`gamma`), its value and its range.
    fn validate(&self) -> Result<(), FairnessError> {
        Ok(())
    }

    /// Refuses batches, or a head, with which the method cannot work. Called before the data are read and again before
    /// training, when the outcomes are known.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the setting, its value and what was expected.
    fn check_batches(&self, _expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        Ok(())
    }

    /// One sentence for each setting of `training` that is too short for the method to work as described; `n_steps` is the
    /// number of optimiser steps in an epoch.
    fn training_notes(&self, _training: &TrainingConfig, _n_steps: usize) -> Vec<String> {
        Vec::new()
    }

    /// Checks the settings and builds the strategy with freshly drawn weights.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] if groups are needed and no
    /// training sample has one.
    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError>;
}
