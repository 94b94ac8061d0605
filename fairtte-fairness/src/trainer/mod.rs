//! Step 8: the only epoch loop.
//!
//! Every epoch draws its batches, dropout and sampling from streams that are named by seed, epoch and batch, and ends in
//! a checkpoint, as does every interval of wall-clock time and every stop request: a killed run resumes from its last
//! checkpoint and ends with the same weights. Checkpoints are written only between steps of the optimisers, each of which
//! consists of one or more batches. A batch without a sample that has a loss term (with the Cox heads: without an event)
//! is not part of its step: no strategy sees it, and a step of such batches alone is skipped (`plan.rs`).

mod config;
mod loss_scale;
mod observer;
mod plan;
mod progress;
mod schedule;
mod selection;
mod tensorboard;
mod training;
mod validation;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use burn::tensor::Device;
use fairtte_data::Loader;
use fairtte_metrics::Groups;
use fairtte_models::Precision;
use ndarray::Array2;

use self::observer::Observers;
use self::training::Training;
use self::validation::Validator;
use crate::checkpoint::{Checkpoints, FOLDER};
use crate::monitor::Validation;
use crate::predict::Outputs;
use crate::strategies::{Strategy, Warning};
use crate::{FairnessError, check};

pub use self::config::TrainingConfig;
pub(crate) use self::loss_scale::LossScale;
pub use self::observer::{Observer, Silent, StepsFile};
pub use self::progress::EpochReport;
pub(crate) use self::progress::Partial;
pub use self::schedule::{ConstantSchedule, CosineSchedule, ScheduleConfig, StepSchedule};
pub use self::selection::{Choice, Criterion, EpochRule, TOLERATED_LOSS, choices};
pub use self::tensorboard::TensorBoard;
pub use self::validation::Scoring;

/// What a training reads, all of it fixed before the first step. The samples and their groups are those of the loader.
#[derive(Clone, Copy, Debug)]
pub struct TrainingData<'a> {
    /// Pixels or columns, outcomes and groups of all samples.
    pub loader: &'a Loader<'a>,
    /// Rows of the training part.
    pub train: &'a [usize],
    /// Rows of the validation part.
    pub validation: &'a [usize],
    /// Names of the groups of the loader; none without groups.
    pub levels: &'a [String],
    /// Attributes for whose groups epochs are kept, each with the groups of all samples of the loader. Empty: the groups of
    /// the loader alone. For a strategy that reads no groups, one training then serves all attributes.
    pub kept_for: &'a [Groups],
    /// What the outputs mean.
    pub outputs: Outputs<'a>,
    /// How validation curves are scored.
    pub scoring: &'a Scoring,
    /// Seed of the run.
    pub seed: u64,
    /// Device without autodiff.
    pub device: &'a Device,
}

/// How a training ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainedRun {
    /// One report per epoch.
    pub epochs: Vec<EpochReport>,
    /// The epoch whose weights the strategy now has, counted from 1: the best by the watched metric.
    pub best_epoch: usize,
    /// Whether training stopped before the last epoch of the settings.
    pub stopped_early: bool,
    /// The epoch that each selection rule chooses; [`use_epoch`] loads the weights of one of them into a strategy.
    pub choices: BTreeMap<EpochRule, Choice>,
    /// Warnings about parts of the method without effect, with what to change.
    pub warnings: Vec<Warning>,
}

/// A training to be run: data, settings, run folder, observers and an optional flag that stops it.
///
/// ```no_run
/// # use fairtte_fairness::{FairnessError, StepsFile, Strategy, TrainedRun, Trainer, TrainingConfig, TrainingData};
/// # fn run(data: &TrainingData<'_>, strategy: &mut dyn Strategy) -> Result<TrainedRun, FairnessError> {
/// let folder = std::path::Path::new("run");
/// let mut log = StepsFile::in_folder(folder);
/// let config = TrainingConfig::default();
/// Trainer::new(data, &config, folder).observe(&mut log).fit(strategy)
/// # }
/// ```
pub struct Trainer<'a> {
    data: &'a TrainingData<'a>,
    config: &'a TrainingConfig,
    folder: &'a Path,
    observers: Observers<'a>,
    stop: Option<&'a AtomicBool>,
}

impl<'a> Trainer<'a> {
    /// A training in `folder`, where its checkpoints are kept, without observers and without a flag to stop it.
    pub fn new(data: &'a TrainingData<'a>, config: &'a TrainingConfig, folder: &'a Path) -> Self {
        Self { data, config, folder, observers: Observers::default(), stop: None }
    }

    /// Adds an observer; those added first are called first.
    #[must_use]
    pub fn observe(mut self, observer: &'a mut dyn Observer) -> Self {
        self.observers.0.push(observer);
        self
    }

    /// Ends the training with a checkpoint and [`FairnessError::Interrupted`] after the optimiser step during which `flag`
    /// was set, or after the batch of a validation or of the fit of a baseline.
    #[must_use]
    pub fn stop_when(self, flag: &'a AtomicBool) -> Self {
        Self { stop: Some(flag), ..self }
    }

    /// Trains `strategy`, resuming from a checkpoint of the folder if there is one, and leaves it with the weights of its
    /// best epoch.
    ///
    /// # Errors
    /// [`FairnessError::Survival`] if a part has no event, [`FairnessError::NotFinite`] if training diverges,
    /// [`FairnessError::Monitor`] if the watched metric is undefined, [`FairnessError::Interrupted`] if the flag was set
    /// before the last step ended (later the caller must check it), [`FairnessError::Data`] or [`FairnessError::Checkpoint`]
    /// if a file cannot be written or read.
    pub fn fit(self, strategy: &mut dyn Strategy) -> Result<TrainedRun, FairnessError> {
        let Self { data, config, folder, mut observers, stop } = self;
        config.validate()?;
        config.precision.check(data.device)?;
        let (head, n_causes) = (data.outputs.head, data.loader.cohort().causes().len().max(1));
        let expected = format!("a head that was built for {n_causes}, the number of causes of an event");
        check("head", head.name(), head.n_causes() == n_causes, &expected)?;
        if head.of_masks().is_some() != data.loader.has_masks() {
            return Err(FairnessError::MasksAndHead { head: head.name() });
        }
        let validator = Validator::new(data)?;
        strategy.check_batches(&validator.expected_batch(config.batch_size)?)?;
        let checkpoints = Checkpoints::new(&folder.join(FOLDER));
        let mut progress = checkpoints.restore(strategy)?;
        if config.precision == Precision::F16 {
            progress.loss_scale.get_or_insert_default();
        }
        let n_batches = validator.n_batches(config.batch_size, &strategy.sampling())?;
        observers.started(progress.epochs.len(), config.epochs, n_batches);
        if let Some(partial) = &progress.partial {
            observers.resumed_after(partial.step);
        }
        if !progress.epochs.is_empty() {
            observers.epochs_saved(&progress.epochs)?; // a kill may have come between checkpoint and logs
        }
        let saved_at = Instant::now();
        let mut training =
            Training { strategy, data, config, validator, checkpoints, progress, observers, stop, saved_at, n_batches };
        while !training.is_finished() {
            training.epoch()?;
            training.report_epoch()?;
        }
        training.finish()
    }
}

/// Loads the weights of an epoch (counted from 1) that a selection rule chose into `strategy`, trained in `folder`.
///
/// # Errors
/// [`FairnessError::Checkpoint`] if they were not kept, and the errors of [`Strategy::finish`].
pub fn use_epoch(
    strategy: &mut dyn Strategy,
    data: &TrainingData<'_>,
    folder: &Path,
    epoch: usize,
) -> Result<(), FairnessError> {
    Checkpoints::new(&folder.join(FOLDER)).load_epoch(strategy, epoch)?;
    strategy.finish(&Validator::new(data)?.parts(None))
}

/// Metrics of the validation part by its curves, `[n_validation, n_times]`: rows in the order of `data.validation`, times
/// those of the predictions. After [`use_epoch`] the curves need not be those that were scored at the end of the epoch:
/// weights may have been averaged and curves recalibrated since. Of several causes there is a block of times for each
/// ([`of_cause`](crate::of_cause)); with the one of the predicted cause alone the likelihood counts as infinite.
///
/// # Errors
/// [`FairnessError::Survival`] if the part has no event, [`FairnessError::Metric`] if they are not survival curves.
pub fn score_validation(data: &TrainingData<'_>, survival: &Array2<f64>) -> Result<Validation, FairnessError> {
    Ok(Validator::new(data)?.score_curves(survival)?.unwatched())
}

/// As [`score_validation`], of masks, which `strategy` predicts again.
///
/// # Errors
/// [`FairnessError::MasksAndHead`] if the head predicts no masks; as [`predict`](crate::predict).
pub fn score_validation_masks(data: &TrainingData<'_>, strategy: &dyn Strategy) -> Result<Validation, FairnessError> {
    let head = data.outputs.head;
    let masks = head.of_masks().ok_or_else(|| FairnessError::MasksAndHead { head: head.name() })?;
    let validator = Validator::new(data)?;
    Ok(validator.score_masks(masks, strategy, &validator.parts(None).validation)?.unwatched())
}

#[cfg(test)]
#[path = "../../tests/inside/trainer_settings.rs"]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests;
