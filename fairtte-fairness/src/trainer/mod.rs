//! Step 8: the only epoch loop.
//!
//! Every epoch draws its batches, dropout and sampling from streams that are named by seed, epoch and batch, and ends in
//! a checkpoint, as does every interval of wall-clock time and every stop request: a killed run resumes from its last
//! checkpoint and ends with the same weights. Checkpoints are written only between steps of the optimisers, each of which
//! consists of one or more batches. A batch without a sample that has a loss term (with the Cox heads: without an event)
//! is not part of its step: no strategy sees it, and a step of such batches alone is skipped (`plan.rs`).

mod loss_scale;
mod observer;
mod plan;
mod progress;
mod schedule;
mod selection;
mod tensorboard;
mod validation;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Batch;
use burn::tensor::Device;
use fairtte_data::Loader;
use fairtte_data::loader::Ahead;
use fairtte_metrics::Groups;
use fairtte_models::{Precision, computes_on_host};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use self::observer::Observers;
use self::plan::Plan;
use self::progress::{Took, Totals};
use self::schedule::Place;
use self::validation::Validator;
use crate::EQUAL_PREDICTIONS;
use crate::checkpoint::{Checkpoints, FOLDER, Progress};
use crate::monitor::{Monitor, Validation};
use crate::predict::{Outputs, targets_of};
use crate::strategies::{
    Clock, StepContext, Strategy, Warning, Watch, Watched, first_epoch, predictions_differ, warnings,
};
use crate::{FairnessError, check, check_at_least};

pub(crate) use self::loss_scale::LossScale;
pub use self::observer::{Observer, Silent, StepsFile};
pub use self::progress::EpochReport;
pub(crate) use self::progress::Partial;
pub use self::schedule::{ConstantSchedule, CosineSchedule, ScheduleConfig, StepSchedule};
pub use self::selection::{Choice, Criterion, EpochRule, TOLERATED_LOSS, choices};
pub use self::tensorboard::TensorBoard;
pub use self::validation::Scoring;

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
        let expected = "f32 or bf16 with training.accumulate above 1, because a step of several batches cannot be left out in part";
        check("precision", self.precision, known, expected)?;
        self.schedule.validate()
    }

    /// Whether these settings end a training after `epochs`.
    pub(crate) fn is_over(&self, epochs: &[EpochReport]) -> bool {
        let n_done = epochs.len();
        n_done >= self.epochs || (n_done > 0 && n_done >= best_epoch(epochs) + self.patience)
    }
}

/// The best epoch by the watched metric, counted from 1; 0 without one.
fn best_epoch(epochs: &[EpochReport]) -> usize {
    epochs.iter().rposition(|epoch| epoch.best).map_or(0, |index| index + 1)
}

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

/// A training to be run: data, settings and folder, with those who watch it and the flag that stops it.
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

/// One training in progress.
struct Training<'s, 'a> {
    strategy: &'s mut dyn Strategy,
    data: &'a TrainingData<'a>,
    config: &'a TrainingConfig,
    validator: Validator<'a>,
    checkpoints: Checkpoints,
    progress: Progress,
    observers: Observers<'a>,
    stop: Option<&'a AtomicBool>,
    /// When the last checkpoint was written.
    saved_at: Instant,
    /// Batches of an epoch.
    n_batches: usize,
}

impl Training<'_, '_> {
    fn best_epoch(&self) -> usize {
        best_epoch(&self.progress.epochs)
    }

    fn is_finished(&self) -> bool {
        let in_the_middle = self.progress.partial.is_some();
        !in_the_middle && (self.config.is_over(&self.progress.epochs) || self.strategy.wants_to_stop())
    }

    /// One epoch, or the rest of one, with its validation and its checkpoint.
    fn epoch(&mut self) -> Result<(), FairnessError> {
        let epoch = self.progress.epochs.len();
        let Partial { step: n_done, mut totals } = self.progress.partial.take().unwrap_or_default();
        let began = Instant::now();
        let before = totals.seconds;
        self.batches(epoch, n_done, &mut totals)?;
        let validation = match self.validate(epoch, &mut totals, self.stop) {
            Err(FairnessError::Interrupted { .. }) => {
                totals.seconds = before + began.elapsed().as_secs_f64();
                return Err(self.interrupted(epoch, self.n_batches, &totals));
            }
            validation => validation?,
        };
        let state = self.strategy.log_terms();
        let mut watched = totals.watched(&self.strategy.watches(), &state);
        watched.extend(validation.spread.map(|spread| predictions_differ().at(Some(spread))));
        totals.terms.extend(state);
        totals.seconds = before + began.elapsed().as_secs_f64();
        let monitor = self.config.monitor;
        let best = self.best_epoch().checked_sub(1).map(|index| self.progress.epochs[index].validation.monitored);
        let improved = best.is_none_or(|best| monitor.is_better(validation.monitored, best));
        self.progress.epochs.push(totals.report(epoch, validation, watched, improved));
        self.progress.stopped = self.strategy.wants_to_stop();
        self.save()
    }

    /// The batches of an epoch after the first `n_done` ones.
    fn batches(&mut self, epoch: usize, n_done: usize, totals: &mut Totals) -> Result<(), FairnessError> {
        let TrainingData { loader, train, seed, device, .. } = *self.data;
        let device = device.clone().autodiff();
        let sampling = self.strategy.sampling();
        let batches = loader.batches(train, self.config.batch_size, &sampling, seed, epoch as u64)?;
        let plan = self.plan(batches.rows())?;
        let on_host = computes_on_host(&device);
        let n_ahead = self.config.prefetch.unwrap_or(if on_host { 0 } else { 2 });
        let batches = if on_host { batches } else { batches.as_stored() };
        let places = (n_done..plan.n()).filter(|step| plan.has_loss(*step));
        std::thread::scope(|scope| {
            let batches = Ahead::new(batches, places, n_ahead, scope);
            self.steps((epoch, n_done), &plan, batches, &device, totals)
        })
    }

    /// The steps of an epoch from batch `n_done` on; `batches` are those of them that have a loss.
    fn steps(
        &mut self,
        (epoch, n_done): (usize, usize),
        plan: &Plan,
        mut batches: Ahead<'_>,
        device: &Device,
        totals: &mut Totals,
    ) -> Result<(), FairnessError> {
        let began = Instant::now();
        let before = totals.seconds;
        for step in n_done..plan.n() {
            if plan.has_loss(step) {
                let started = Instant::now();
                let Some(host) = batches.next() else { break };
                let mut batch = Batch::from_host(host, device)?;
                batch.pixels = batch.pixels.in_precision(self.config.precision);
                self.step((epoch, step), plan, &batch, started.elapsed(), totals)?;
            } else {
                totals.skip();
                self.observers.batch_skipped(epoch);
            }
            if !plan.ends_step(step) {
                continue;
            }
            let n_steps = step / self.config.accumulate + 1;
            let is_due = self.strategy.validation_interval().is_some_and(|every| n_steps.is_multiple_of(every.max(1)));
            if is_due && step + 1 < plan.n() {
                // To its end: a checkpoint cannot say that this validation is still to be done.
                self.validate(epoch, totals, None)?;
                if self.strategy.wants_to_stop() {
                    break;
                }
            }
            totals.seconds = before + began.elapsed().as_secs_f64();
            self.pause(epoch, step + 1, totals)?;
        }
        Ok(())
    }

    /// Which of the batches of these rows have a sample with a loss term.
    fn plan<'r>(&self, batches: impl Iterator<Item = &'r [usize]>) -> Result<Plan, FairnessError> {
        let TrainingData { outputs: Outputs { head, cut_points }, loader, .. } = *self.data;
        let has_loss = |rows: &[usize]| {
            Ok(head.counted(&targets_of("training", loader.cohort(), rows, cut_points)?).contains(&true))
        };
        let has_loss = batches.map(has_loss).collect::<Result<_, FairnessError>>()?;
        Ok(Plan::new(has_loss, self.config.accumulate))
    }

    /// Makes the step of one batch that has a loss.
    fn step(
        &mut self,
        (epoch, step): (usize, usize),
        plan: &Plan,
        batch: &Batch,
        data: Duration,
        totals: &mut Totals,
    ) -> Result<(), FairnessError> {
        let TrainingConfig { accumulate, epochs, schedule, .. } = *self.config;
        let TrainingData { outputs, seed, .. } = *self.data;
        let place = Place { epoch, step: step / accumulate, n_steps: plan.n().div_ceil(accumulate), epochs };
        let (rate, accumulation, clock) = (schedule.factor(place), plan.accumulation(step), Clock::default());
        let loss_scale = self.progress.loss_scale.as_ref().map_or(1.0, LossScale::factor);
        let context = StepContext { outputs, seed, epoch, step, rate, accumulation, loss_scale, clock: &clock };
        let started = Instant::now();
        let report = self.strategy.step(batch, &context);
        let scale = self.progress.loss_scale.as_mut();
        if let (Err(error), Some(scale)) = (&report, scale)
            && scale.forgives(error)
        {
            totals.overflow();
            return Ok(());
        }
        let mut report = report.map_err(|error| error.in_batch(&batch.sample_ids))?;
        self.progress.loss_scale.iter_mut().for_each(LossScale::good);
        report.terms.extend(self.progress.loss_scale.iter().flat_map(LossScale::terms));
        let took = Took { data, step: started.elapsed(), clock: &clock };
        self.observers.step_done(epoch, &report);
        totals.add(report, rate, &took);
        Ok(())
    }

    /// Scores the validation part; `Interrupted` without a place if `stop` was set meanwhile.
    fn validate(
        &mut self,
        epoch: usize,
        totals: &mut Totals,
        stop: Option<&AtomicBool>,
    ) -> Result<Validation, FairnessError> {
        let started = Instant::now();
        let validation = self.validator.score(self.strategy, self.config.monitor, epoch, stop)?;
        totals.validation_seconds += started.elapsed().as_secs_f64();
        Ok(validation)
    }

    /// Writes the state in the middle of an epoch if it is time or a stop was requested; returns `Interrupted` in the
    /// latter case.
    fn pause(&mut self, epoch: usize, step: usize, totals: &Totals) -> Result<(), FairnessError> {
        let is_wanted = self.is_stop_requested();
        let interval = self.config.checkpoint_minutes * 60.0;
        let is_due = interval > 0.0 && self.saved_at.elapsed().as_secs_f64() >= interval;
        if !is_wanted && !is_due {
            return Ok(());
        }
        if is_wanted {
            return Err(self.interrupted(epoch, step, totals));
        }
        self.save_partial(step, totals)
    }

    /// Writes the state after the first `step` batches of an epoch.
    fn save_partial(&mut self, step: usize, totals: &Totals) -> Result<(), FairnessError> {
        self.progress.partial = Some(Partial { step, totals: totals.clone() });
        self.save()?;
        self.progress.partial = None;
        Ok(())
    }

    /// The error for a stop that was requested, after the state was written.
    fn interrupted(&mut self, epoch: usize, step: usize, totals: &Totals) -> FairnessError {
        let interrupted = FairnessError::Interrupted { epoch: epoch + 1, step, n_steps: self.n_batches };
        self.save_partial(step, totals).err().unwrap_or(interrupted)
    }

    /// Writes a checkpoint with the weights of all epochs that may still be chosen.
    fn save(&mut self) -> Result<(), FairnessError> {
        let mut kept = selection::needed(&self.validations())?;
        kept.extend(Some(self.best_epoch()).filter(|epoch| *epoch > 0));
        self.checkpoints.keep(self.strategy, &self.progress, &kept)?;
        self.saved_at = Instant::now();
        Ok(())
    }

    fn validations(&self) -> Vec<&Validation> {
        self.progress.epochs.iter().map(|epoch| &epoch.validation).collect()
    }

    fn is_stop_requested(&self) -> bool {
        self.stop.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Reports the epoch that is complete; returns `Interrupted` if a stop was requested.
    fn report_epoch(&mut self) -> Result<(), FairnessError> {
        self.observers.epochs_saved(&self.progress.epochs)?;
        let Some(report) = self.progress.epochs.last() else { return Ok(()) };
        self.observers.epoch_done(report);
        if self.is_stop_requested() {
            let (epoch, n_steps) = (report.epoch, self.n_batches);
            return Err(FairnessError::Interrupted { epoch, step: n_steps, n_steps });
        }
        Ok(())
    }

    /// Loads the weights of the best epoch and finishes them.
    fn finish(self) -> Result<TrainedRun, FairnessError> {
        let best_epoch = self.best_epoch();
        let choices = selection::choices(&self.validations())?;
        self.checkpoints.load_epoch(self.strategy, best_epoch)?;
        let n_steps = self.n_batches;
        let finished = self.strategy.finish(&self.validator.parts(self.stop));
        finished.map_err(|error| match error {
            FairnessError::Interrupted { .. } => {
                FairnessError::Interrupted { epoch: self.progress.epochs.len(), step: n_steps, n_steps }
            }
            error => error,
        })?;
        let epochs = self.progress.epochs;
        let watches: Vec<Watch> = self.strategy.watches().into_iter().chain([predictions_differ()]).collect();
        let seen: Vec<&[Watched]> = epochs.iter().map(|epoch| &epoch.watched[..]).collect();
        let mut warnings = warnings(self.strategy.name(), &watches, &seen, best_epoch);
        // Some strategies do not predict with the weights of this epoch alone; equal predictions are reported already.
        let is_said = warnings.iter().any(|warning| warning.name == EQUAL_PREDICTIONS);
        if !is_said && self.strategy.describe_weights(best_epoch).starts_with(&format!("epoch {best_epoch}")) {
            let losses: Vec<f64> = epochs.iter().map(|epoch| epoch.train_loss).collect();
            let monitor = self.config.monitor.name();
            warnings.extend(first_epoch(self.strategy.name(), monitor, &losses, best_epoch));
        }
        let stopped_early = epochs.len() < self.config.epochs;
        Ok(TrainedRun { epochs, best_epoch, stopped_early, choices, warnings })
    }
}

#[cfg(test)]
#[path = "../../tests/inside/trainer_settings.rs"]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests;
