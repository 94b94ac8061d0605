//! The report of one epoch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Validation, Watched};

/// One line of `steps.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Epoch, counted from 1.
    pub epoch: usize,
    /// Number of batches.
    pub n_steps: usize,
    /// Mean task loss over the batches that have one, before any weighting; 0 if none has.
    pub train_loss: f64,
    /// Batches without a sample that has a loss term: batches without an event, with the Cox heads. They update no weights
    /// and enter no mean.
    #[serde(default)]
    pub batches_without_loss: usize,
    /// Mean of the objective that the optimiser minimised, over the batches that have a loss.
    pub objective: f64,
    /// Mean gradient norm before clipping, over the same batches.
    pub gradient_norm: f64,
    /// Factor of the step sizes at the last step, from the schedule.
    #[serde(default = "one")]
    pub rate: f64,
    /// Metrics of the validation part.
    pub validation: Validation,
    /// Whether this epoch is the best so far.
    pub best: bool,
    /// Groups absent from a batch, summed over the batches.
    pub absent_groups: usize,
    /// Further terms of the strategy at the last batch, and of its state at the end of the epoch.
    pub terms: BTreeMap<String, f64>,
    /// Whether the parts of the strategy that may be without effect had one, and whether predictions differ.
    #[serde(default)]
    pub watched: Vec<Watched>,
    /// When it ended, in seconds since 1970 UTC.
    #[serde(default)]
    pub ended: f64,
    /// Wall-clock seconds of the epoch, validation included.
    pub seconds: f64,
    /// Seconds of it spent on making batches.
    pub data_seconds: f64,
    /// Seconds of it spent in the steps except for the two items below: networks and losses.
    #[serde(default)]
    pub forward_seconds: f64,
    /// Seconds of it spent on gradients and on waiting for the values of the step.
    #[serde(default)]
    pub backward_seconds: f64,
    /// Seconds of it spent on updating the weights.
    #[serde(default)]
    pub update_seconds: f64,
    /// Seconds of it spent on validation, baselines included.
    #[serde(default)]
    pub validation_seconds: f64,
}

fn one() -> f64 {
    1.0
}
