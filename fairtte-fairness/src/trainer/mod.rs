//! Step 8: the only epoch loop.
//!
//! Every epoch draws its batches, dropout and sampling from streams that are named by seed, epoch and batch, and ends in
//! a checkpoint, as does every interval of wall-clock time and every stop request: a killed run resumes from its last
//! checkpoint and ends with the same weights. Checkpoints are written only between steps of the optimisers, each of which
//! consists of one or more batches. A batch without a sample that has a loss term (with the Cox heads: without an event)
//! is not part of its step: no strategy sees it, and a step of such batches alone is skipped (`plan.rs`).

mod plan;
mod progress;
mod schedule;
mod selection;
mod tensorboard;
mod validation;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Batch;
use burn::tensor::Device;
use fairtte_data::{Cohort, Loader, write_atomically};
use fairtte_metrics::GroupId;
use fairtte_survival::{CutPoints, SurvivalHead};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use self::plan::Plan;
use self::progress::{Took, Totals};
use self::schedule::Place;
use self::validation::Validator;
use crate::checkpoint::{Checkpoints, FOLDER, Progress};
use crate::monitor::{Monitor, Validation};
use crate::strategies::{Clock, StepContext, Strategy, Warning, Watch, Watched, predictions_differ, warnings};
use crate::{FairnessError, check};

pub(crate) use self::progress::Partial;
pub use self::progress::{EpochReport, Observer, Silent};
pub use self::schedule::{ConstantSchedule, CosineSchedule, ScheduleConfig, StepSchedule};
pub use self::selection::{Choice, SelectionRule, TOLERATED_LOSS};
pub use self::validation::Scoring;

/// Settings of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
        check("training.epochs", epochs, epochs >= 1, "at least 1")?;
        check("training.batch-size", batch_size, batch_size >= 2, "at least 2 (batch norm needs two)")?;
        check("training.accumulate", accumulate, accumulate >= 1, "at least 1")?;
        check("training.patience", patience, patience >= 1, "at least 1")?;
        let in_range = (0.0..=1e6).contains(&minutes);
        check("training.checkpoint-minutes", minutes, in_range, "a number from 0 to 1e6 (0 = off)")?;
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

/// The input of a training, fixed before the first step.
#[derive(Clone, Copy, Debug)]
pub struct TrainingData<'a> {
    /// The samples.
    pub cohort: &'a Cohort,
    /// Their pixels, outcomes and groups.
    pub loader: &'a Loader<'a>,
    /// Rows of the training part.
    pub train: &'a [usize],
    /// Rows of the validation part.
    pub validation: &'a [usize],
    /// Group of every row of the cohort, for the metrics by group.
    pub groups: &'a [Option<GroupId>],
    /// Names of the groups.
    pub levels: &'a [String],
    /// Loss and prediction rule.
    pub head: &'a dyn SurvivalHead,
    /// Time grid fitted on the training part.
    pub cut_points: &'a CutPoints,
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
    pub choices: BTreeMap<SelectionRule, Choice>,
    /// Warnings about parts of the method without effect, with what to change.
    pub warnings: Vec<Warning>,
}

/// Trains `strategy` in `folder` (`steps.jsonl`, `checkpoint/`), resuming from a checkpoint if there is one, and leaves
/// it with the weights of its best epoch.
///
/// # Errors
/// [`FairnessError::Survival`] if a part has no event, [`FairnessError::NotFinite`] if training diverges,
/// [`FairnessError::Monitor`] if the watched metric is undefined, [`FairnessError::Interrupted`] if `stop` was set
/// (while the weights are finished after the last epoch, checking it is left to the caller),
/// [`FairnessError::Data`] or [`FairnessError::Checkpoint`] if a file cannot be written or read.
pub fn fit(
    strategy: &mut dyn Strategy,
    data: &TrainingData<'_>,
    config: &TrainingConfig,
    folder: &Path,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<TrainedRun, FairnessError> {
    config.validate()?;
    let validator = Validator::new(data)?;
    strategy.check_batches(&validator.expected_batch(config.batch_size)?)?;
    let checkpoints = Checkpoints::new(&folder.join(FOLDER));
    let progress = checkpoints.restore(strategy)?;
    let n_batches = validator.n_batches(config.batch_size, &strategy.sampling())?;
    observer.started(progress.epochs.len(), config.epochs, n_batches);
    if let Some(partial) = &progress.partial {
        observer.resumed_after(partial.step);
    }
    let saved_at = Instant::now();
    let mut training =
        Training { strategy, data, config, validator, checkpoints, progress, observer, stop, saved_at, n_batches };
    if !training.progress.epochs.is_empty() {
        write_logs(folder, &training.progress.epochs)?; // the run may have been killed between checkpoint and logs
    }
    while !training.is_finished() {
        training.epoch()?;
        write_logs(folder, &training.progress.epochs)?;
        training.tell_epoch()?;
    }
    training.finish()
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
    strategy.finish(&Validator::new(data)?.parts())
}

/// Metrics of the validation part by its curves, `[n_validation, n_times]`: rows in the order of `data.validation`, times
/// those of the predictions. After [`use_epoch`] the curves need not be those that were scored at the end of the epoch:
/// weights may have been averaged and curves recalibrated since.
///
/// # Errors
/// [`FairnessError::Survival`] if the part has no event, [`FairnessError::Metric`] if they are not survival curves.
pub fn score_validation(data: &TrainingData<'_>, survival: &Array2<f64>) -> Result<Validation, FairnessError> {
    Ok(Validator::new(data)?.score_curves(survival)?.unwatched())
}

/// One training in progress.
struct Training<'a> {
    strategy: &'a mut dyn Strategy,
    data: &'a TrainingData<'a>,
    config: &'a TrainingConfig,
    validator: Validator<'a>,
    checkpoints: Checkpoints,
    progress: Progress,
    observer: &'a mut dyn Observer,
    stop: &'a AtomicBool,
    /// When the last checkpoint was written.
    saved_at: Instant,
    /// Batches of an epoch.
    n_batches: usize,
}

impl Training<'_> {
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
        let validation = self.validate(epoch, &mut totals)?;
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
        let mut batches = loader.batches(train, self.config.batch_size, &sampling, seed, epoch as u64)?;
        let plan = self.plan(batches.rows())?;
        let began = Instant::now();
        let before = totals.seconds;
        let mut skipped = n_done;
        for step in n_done..plan.n() {
            if plan.has_loss(step) {
                let started = Instant::now();
                let Some(host) = batches.nth(std::mem::take(&mut skipped)) else { break };
                let batch = Batch::from_host(host, &device)?;
                self.step((epoch, step), &plan, &batch, started.elapsed(), totals)?;
            } else {
                skipped += 1;
                totals.skip();
                self.observer.batch_skipped(epoch);
            }
            if !plan.ends_step(step) {
                continue;
            }
            let n_steps = step / self.config.accumulate + 1;
            let is_due = self.strategy.validation_interval().is_some_and(|every| n_steps.is_multiple_of(every.max(1)));
            if is_due && step + 1 < plan.n() {
                self.validate(epoch, totals)?;
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
        let TrainingData { head, cut_points, cohort, .. } = *self.data;
        let has_loss = |rows: &[usize]| {
            let samples = || rows.iter().map(|row| &cohort.samples[*row]);
            let (time, event): (Vec<f64>, Vec<bool>) = samples().map(|sample| (sample.time, sample.event)).unzip();
            Ok(head.counted(&cut_points.targets("training", &time, &event)?).contains(&true))
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
        let TrainingData { head, cut_points, seed, .. } = *self.data;
        let place = Place { epoch, step: step / accumulate, n_steps: plan.n().div_ceil(accumulate), epochs };
        let (rate, accumulation, clock) = (schedule.factor(place), plan.accumulation(step), Clock::default());
        let context = StepContext { head, cut_points, seed, epoch, step, rate, accumulation, clock: &clock };
        let started = Instant::now();
        let report = self.strategy.step(batch, &context).map_err(|error| error.in_batch(&batch.sample_ids))?;
        let took = Took { data, step: started.elapsed(), clock: &clock };
        self.observer.step_done(epoch, &report);
        totals.add(report, rate, &took);
        Ok(())
    }

    fn validate(&mut self, epoch: usize, totals: &mut Totals) -> Result<Validation, FairnessError> {
        let started = Instant::now();
        let validation = self.validator.score(self.strategy, self.config.monitor, epoch)?;
        totals.validation_seconds += started.elapsed().as_secs_f64();
        Ok(validation)
    }

    /// Writes the state in the middle of an epoch if it is time or a stop was requested; returns `Interrupted` in the
    /// latter case.
    fn pause(&mut self, epoch: usize, step: usize, totals: &Totals) -> Result<(), FairnessError> {
        let is_wanted = self.stop.load(Ordering::Relaxed);
        let interval = self.config.checkpoint_minutes * 60.0;
        let is_due = interval > 0.0 && self.saved_at.elapsed().as_secs_f64() >= interval;
        if !is_wanted && !is_due {
            return Ok(());
        }
        self.progress.partial = Some(Partial { step, totals: totals.clone() });
        self.save()?;
        self.progress.partial = None;
        if is_wanted {
            return Err(FairnessError::Interrupted { epoch: epoch + 1, step, n_steps: self.n_batches });
        }
        Ok(())
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

    /// Reports the completed epoch to the observer; returns `Interrupted` if a stop was requested.
    fn tell_epoch(&mut self) -> Result<(), FairnessError> {
        let Some(report) = self.progress.epochs.last() else { return Ok(()) };
        self.observer.epoch_done(report);
        if self.stop.load(Ordering::Relaxed) {
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
        self.strategy.finish(&self.validator.parts())?;
        let epochs = self.progress.epochs;
        let watches: Vec<Watch> = self.strategy.watches().into_iter().chain([predictions_differ()]).collect();
        let seen: Vec<&[Watched]> = epochs.iter().map(|epoch| &epoch.watched[..]).collect();
        let warnings = warnings(self.strategy.name(), &watches, &seen, best_epoch);
        let stopped_early = epochs.len() < self.config.epochs;
        Ok(TrainedRun { epochs, best_epoch, stopped_early, choices, warnings })
    }
}

/// `steps.jsonl` and the event file of `TensorBoard`.
fn write_logs(folder: &Path, epochs: &[EpochReport]) -> Result<(), FairnessError> {
    write_atomically(&folder.join("steps.jsonl"), |file| {
        for epoch in epochs {
            serde_json::to_writer(&mut *file, epoch)?;
            file.write_all(b"\n")?;
        }
        Ok(())
    })?;
    tensorboard::write_events(folder, epochs)
}

#[cfg(test)]
#[path = "../../tests/inside/trainer_settings.rs"]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests;
