//! Settings of the loop.

use fairtte_models::Precision;
use serde::{Deserialize, Serialize};

use super::{EpochReport, ScheduleConfig};
use crate::monitor::Monitor;
use crate::{FairnessError, check, check_at_least};

/// Settings of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Largest number of epochs, at least 1.
    pub epochs: usize,
    /// Samples per batch, at least 2.
    pub batch_size: usize,
    /// Batches per step of the optimisers, at least 1; gradients are averaged. What is computed over a batch (ranking,
    /// risk sets, discrepancies, groups of a batch, batch norm) still uses one batch. The last step of an epoch may
    /// have fewer.
    pub accumulate: usize,
    /// Validation metric that early stopping watches and by which the weights are chosen.
    pub monitor: Monitor,
    /// Epochs without improvement after which training ends, at least 1.
    pub patience: usize,
    /// Minutes after which a checkpoint is written in the middle of an epoch, at least 0; 0 = only at its end.
    pub checkpoint_minutes: f64,
    /// Batches that the host makes while the device computes, at most 64; 0 = each when it is needed. Absent: 2 on a device with
    /// memory of its own, 0 where the host computes. It changes no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<usize>,
    /// Precision of the activations of the backbone while it trains: `f32`, `bf16` or `f16`. Parameters, optimiser, norms, losses,
    /// validation and prediction stay in f32.
    pub precision: Precision,
    /// How step sizes change over the training.
    pub schedule: ScheduleConfig,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            epochs: 30,
            batch_size: 32,
            accumulate: 1,
            monitor: Monitor::Nll,
            patience: 5,
            checkpoint_minutes: 15.0,
            prefetch: None,
            precision: Precision::F32,
            schedule: ScheduleConfig::default(),
        }
    }
}

impl TrainingConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        let Self { epochs, batch_size, accumulate, patience, checkpoint_minutes: minutes, .. } = *self;
        check_at_least("epochs", epochs, 1)?;
        check("batch-size", batch_size, batch_size >= 2, "at least 2 (batch norm needs two)")?;
        check_at_least("accumulate", accumulate, 1)?;
        check_at_least("patience", patience, 1)?;
        let in_range = (0.0..=1e6).contains(&minutes);
        check("checkpoint-minutes", minutes, in_range, "a number from 0 to 1e6 (0 = off)")?;
        let n_ahead = self.prefetch.unwrap_or(0);
        check("prefetch", n_ahead, n_ahead <= 64, "a whole number from 0 to 64 (0 = off)")?;
        let known = self.precision != Precision::F16 || accumulate == 1;
        let expected =
            "f32 or bf16 with accumulate above 1, because a step of several batches cannot be left out in part";
        check("precision", self.precision, known, expected)?;
        self.schedule.validate()
    }

    /// Whether these settings end a training after `epochs`.
    pub(crate) fn is_over(&self, epochs: &[EpochReport]) -> bool {
        let n_done = epochs.len();
        n_done >= self.epochs || (n_done > 0 && n_done >= best_epoch(epochs).saturating_add(self.patience))
    }
}

/// The best epoch by the watched metric, counted from 1; 0 without one.
pub(super) fn best_epoch(epochs: &[EpochReport]) -> usize {
    epochs.iter().rposition(|epoch| epoch.best).map_or(0, |index| index + 1)
}
