//! A training whose device fails in the middle of a step, for the test of what such a failure leaves behind.
//!
//! The objective is the mean loss, as of `erm`, which needs no group. In the call of it that `FAILS_IN_STEP` names, counted from 1
//! in every process, it panics with the message `FAILS_WITH`, as burn does for a device that fails. Without these variables it
//! never does, and they are no settings: a run that failed and one that did not are the same run.

use std::env::var;

use fairtte_fairness::strategies::{Objective, ObjectiveStrategy, StrategySettings, Terms, TrainingCells, Value};
use fairtte_fairness::{FairnessError, LearnerSpec, Strategy};
use serde::{Deserialize, Serialize};

/// The table `[strategy.lost-device]`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostDeviceConfig {}

impl StrategySettings for LostDeviceConfig {
    fn name(&self) -> &'static str {
        "lost-device"
    }

    fn summary(&self) -> &'static str {
        "the mean loss, on a device that fails in a step (a test)"
    }

    fn needs_groups(&self) -> bool {
        false
    }

    fn build(&self, spec: &LearnerSpec, _cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        ObjectiveStrategy::boxed(LostDevice { n_steps: 0 }, spec)
    }
}

/// The objective.
#[derive(Debug)]
pub struct LostDevice {
    /// Steps of this process.
    n_steps: usize,
}

impl Objective for LostDevice {
    fn name(&self) -> &'static str {
        "lost-device"
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        self.n_steps += 1;
        let fails = var("FAILS_IN_STEP").is_ok_and(|step| step == self.n_steps.to_string());
        assert!(!fails, "{}", var("FAILS_WITH").unwrap_or_default());
        Ok(Value { objective: terms.mean(), absent_groups: 0, terms: Vec::new(), unread: Vec::new() })
    }
}
