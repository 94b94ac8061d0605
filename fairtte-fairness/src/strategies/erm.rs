//! Empirical risk minimisation: the mean loss of the batch, the paper's base model.
//!
//! No fairness term; needs no attribute; has no settings. With the `DeepHit` head the mean over the batch is pycox's loss.

use super::objective::{Objective, Terms, Value};
use super::{ObjectiveStrategy, Strategy, StrategySettings, TrainingCells};
use crate::{FairnessError, LearnerSpec};
use fairtte_survival::NoSettings;

impl StrategySettings for NoSettings {
    fn name(&self) -> &'static str {
        "erm"
    }

    fn summary(&self) -> &'static str {
        "empirical risk minimisation: the plain mean loss"
    }

    fn needs_groups(&self) -> bool {
        false
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn models_masks(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, _cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        ObjectiveStrategy::boxed(Erm, spec)
    }
}

/// The plain mean loss of the samples with a loss term.
#[derive(Clone, Copy, Debug, Default)]
pub struct Erm;

impl Objective for Erm {
    fn name(&self) -> &'static str {
        "erm"
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        Ok(Value { objective: terms.mean(), absent_groups: 0, terms: Vec::new(), unread: Vec::new() })
    }
}
