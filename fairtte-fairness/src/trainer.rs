//! Step 8: the only epoch loop.
//!
//! Every epoch draws its batches, dropout and sampling from streams that are named by seed, epoch and step, and ends in
//! a complete checkpoint: a run that is killed goes on from its last complete epoch and ends with the same weights.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use burn::tensor::Device;
use fairtte_data::{Cohort, Loader, write_atomically};
use fairtte_metrics::{GroupId, Outcomes, Reading};
use fairtte_models::Batch;
use fairtte_survival::{CutPoints, PredictionGrid, SurvivalError, SurvivalHead, Targets};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoints, FOLDER, Progress};
use crate::monitor::{Monitor, Truth, Validation, event_blocks, validate};
use crate::predict::{CurveRule, EvaluationPart, Parts, predict};
use crate::strategies::{Accumulation, Clock, StepContext, StepReport, Strategy};
use crate::{FairnessError, check};

/// Settings of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Largest number of epochs, at least 1.
    pub epochs: usize,
    /// Samples per step, at least 2.
    pub batch_size: usize,
    /// Validation metric that early stopping watches and by which the weights are chosen.
    pub monitor: Monitor,
    /// Epochs without improvement after which training ends, at least 1.
    pub patience: usize,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self { epochs: 30, batch_size: 32, monitor: Monitor::Nll, patience: 5 }
    }
}

impl TrainingConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        check("training.epochs", self.epochs, self.epochs >= 1, "at least 1")?;
        check("training.batch-size", self.batch_size, self.batch_size >= 2, "at least 2 (batch norm needs two)")?;
        check("training.patience", self.patience, self.patience >= 1, "at least 1")
    }
}

/// What a training reads, all of it fixed before the first step.
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
    /// Seed of the run.
    pub seed: u64,
    /// Device without autodiff.
    pub device: &'a Device,
}

/// One line of `steps.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Epoch, counted from 1.
    pub epoch: usize,
    /// Number of steps.
    pub n_steps: usize,
    /// Mean task loss over the steps, before any weighting.
    pub train_loss: f64,
    /// Mean of what the optimiser descended.
    pub objective: f64,
    /// Mean gradient norm before clipping.
    pub gradient_norm: f64,
    /// Metrics of the validation part.
    pub validation: Validation,
    /// Whether this epoch is the best so far.
    pub best: bool,
    /// Groups absent from a batch, summed over the steps.
    pub absent_groups: usize,
    /// Further terms of the strategy at the last step.
    pub terms: BTreeMap<String, f64>,
    /// Wall-clock seconds of the epoch.
    pub seconds: f64,
    /// Seconds of it spent on making batches.
    pub data_seconds: f64,
}

/// Told what happens, for progress bars and logs.
pub trait Observer {
    /// A training starts, at `first` (counted from 0) of at most `epochs` epochs with `n_steps` steps each.
    fn started(&mut self, first: usize, epochs: usize, n_steps: usize);
    /// A step of epoch `epoch` (counted from 0) is done.
    fn step_done(&mut self, epoch: usize, report: &StepReport);
    /// An epoch is done and its checkpoint stands.
    fn epoch_done(&mut self, report: &EpochReport);
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn started(&mut self, _first: usize, _epochs: usize, _n_steps: usize) {}
    fn step_done(&mut self, _epoch: usize, _report: &StepReport) {}
    fn epoch_done(&mut self, _report: &EpochReport) {}
}

/// How a training ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainedRun {
    /// One report per epoch.
    pub epochs: Vec<EpochReport>,
    /// The epoch whose weights the strategy now has, counted from 1.
    pub best_epoch: usize,
    /// Whether the patience ran out before the epochs did.
    pub stopped_early: bool,
}

/// Trains `strategy` in `folder` (`steps.jsonl`, `checkpoint/`), going on from a checkpoint if one is there, and leaves
/// it with the weights of its best epoch.
///
/// # Errors
/// [`FairnessError::Survival`] if a part has no event, [`FairnessError::NotFinite`] if training diverges,
/// [`FairnessError::Monitor`] if the watched metric is undefined, [`FairnessError::Interrupted`] if `stop` was set,
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
    strategy.check_batch_size(config.batch_size, data.head)?;
    let validation = Validator::new(data, config.monitor)?;
    let checkpoints = Checkpoints::new(&folder.join(FOLDER));
    let mut progress = checkpoints.restore(strategy)?;
    let log = folder.join("steps.jsonl");
    if !progress.epochs.is_empty() {
        write_lines(&log, &progress.epochs)?; // a kill may have come between checkpoint and log
    }
    let n_steps = data.loader.batches(data.train, config.batch_size, &strategy.sampling(), data.seed, 0)?.len();
    observer.started(progress.epochs.len(), config.epochs, n_steps);
    while !is_finished(&progress, config) && !strategy.wants_to_stop() {
        let epoch = progress.epochs.len();
        let started = Instant::now();
        let totals = train_one_epoch(strategy, data, config, epoch, &validation, observer, stop)?;
        let scores = validation.score(strategy, epoch)?;
        let improved = progress.best.is_none_or(|(_, best)| config.monitor.is_better(scores.monitored, best));
        if improved {
            progress.best = Some((epoch, scores.monitored));
        }
        let report = totals.report(epoch, scores, improved, started.elapsed().as_secs_f64());
        progress.epochs.push(report.clone());
        checkpoints.keep(strategy, &progress, improved)?;
        write_lines(&log, &progress.epochs)?;
        observer.epoch_done(&report);
        if stop.load(Ordering::Relaxed) {
            return Err(FairnessError::Interrupted { epoch: epoch + 1, n_complete: epoch + 1 });
        }
    }
    checkpoints.load_best(strategy)?;
    strategy.finish(&validation.parts())?;
    let best_epoch = progress.best.map_or(0, |(epoch, _)| epoch + 1);
    let stopped_early = progress.epochs.len() < config.epochs;
    Ok(TrainedRun { epochs: progress.epochs, best_epoch, stopped_early })
}

fn is_finished(progress: &Progress, config: &TrainingConfig) -> bool {
    let n_done = progress.epochs.len();
    let out_of_patience = progress.best.is_some_and(|(best, _)| n_done > best + config.patience);
    n_done >= config.epochs || out_of_patience
}

fn train_one_epoch(
    strategy: &mut dyn Strategy,
    data: &TrainingData<'_>,
    config: &TrainingConfig,
    epoch: usize,
    validation: &Validator<'_>,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<Totals, FairnessError> {
    let device = data.device.clone().autodiff();
    let (mut totals, clock) = (Totals::default(), Clock::default());
    let sampling = strategy.sampling();
    let mut batches = data.loader.batches(data.train, config.batch_size, &sampling, data.seed, epoch as u64)?;
    for step in 0.. {
        if stop.load(Ordering::Relaxed) {
            return Err(FairnessError::Interrupted { epoch: epoch + 1, n_complete: epoch });
        }
        let started = Instant::now();
        let Some(host) = batches.next() else { break };
        let batch = Batch::from_host(host, &device)?;
        totals.data_seconds += started.elapsed().as_secs_f64();
        let TrainingData { head, cut_points, seed, .. } = *data;
        let accumulation = Accumulation::default();
        let context = StepContext { head, cut_points, seed, epoch, step, rate: 1.0, accumulation, clock: &clock };
        let report = strategy.step(&batch, &context).map_err(|error| error.in_batch(&batch.sample_ids))?;
        observer.step_done(epoch, &report);
        totals.add(report);
        let n_done = step + 1;
        let is_due = strategy.validation_interval().is_some_and(|interval| n_done % interval.max(1) == 0);
        if is_due && batches.len() > 0 {
            validation.score(strategy, epoch)?;
            if strategy.wants_to_stop() {
                break;
            }
        }
    }
    Ok(totals)
}

/// Sums over the steps of an epoch.
#[derive(Debug, Default)]
struct Totals {
    n_steps: usize,
    task_loss: f64,
    objective: f64,
    gradient_norm: f64,
    absent_groups: usize,
    data_seconds: f64,
    terms: Vec<(String, f64)>,
}

impl Totals {
    fn add(&mut self, step: StepReport) {
        self.n_steps += 1;
        self.task_loss += step.task_loss;
        self.objective += step.objective;
        self.gradient_norm += step.gradient_norm;
        self.absent_groups += step.absent_groups;
        self.terms = step.terms;
    }

    fn report(self, epoch: usize, validation: Validation, best: bool, seconds: f64) -> EpochReport {
        let n_steps = self.n_steps as f64;
        EpochReport {
            epoch: epoch + 1,
            n_steps: self.n_steps,
            train_loss: self.task_loss / n_steps,
            objective: self.objective / n_steps,
            gradient_norm: self.gradient_norm / n_steps,
            validation,
            best,
            absent_groups: self.absent_groups,
            terms: self.terms.into_iter().collect(),
            seconds,
            data_seconds: self.data_seconds,
        }
    }
}

/// Scores the validation part after every epoch.
struct Validator<'a> {
    data: &'a TrainingData<'a>,
    monitor: Monitor,
    train: Outcomes,
    outcomes: Outcomes,
    targets: Targets,
    grid: PredictionGrid,
    blocks: Vec<(usize, usize)>,
    groups: Vec<Option<GroupId>>,
}

impl<'a> Validator<'a> {
    fn new(data: &'a TrainingData<'a>, monitor: Monitor) -> Result<Self, FairnessError> {
        let TrainingData { cohort, cut_points, head, .. } = *data;
        let outcomes = cohort.outcomes(data.validation)?;
        if outcomes.n_events() == 0 {
            return Err(SurvivalError::NoEvent { part: "validation", n: outcomes.n() }.into());
        }
        let train = cohort.outcomes(data.train)?;
        let intervals = cut_points.targets("training", train.time(), train.event())?.intervals;
        Ok(Self {
            data,
            monitor,
            train,
            targets: cut_points.targets("validation", outcomes.time(), outcomes.event())?,
            outcomes,
            grid: PredictionGrid::at_cut_points(cut_points),
            blocks: event_blocks(cut_points.n(), &intervals, head.needs_baseline()),
            groups: data.validation.iter().map(|row| data.groups[*row]).collect(),
        })
    }

    /// What a strategy may look at.
    fn parts(&self) -> Parts<'_> {
        let TrainingData { loader, train, validation, levels, head, cut_points, device, .. } = *self.data;
        let part = |rows, outcomes| EvaluationPart { loader, rows, outcomes, head, device };
        let (train, validation) = (part(train, &self.train), part(validation, &self.outcomes));
        Parts { train, validation, cut_points, levels }
    }

    /// Metrics of the validation part, which the strategy is told.
    fn score(&self, strategy: &mut dyn Strategy, epoch: usize) -> Result<Validation, FairnessError> {
        strategy.before_validation(&self.parts())?;
        let TrainingData { loader, validation, levels, head, device, .. } = *self.data;
        let survival = predict(strategy, loader, validation, &CurveRule { head, grid: &self.grid }, device)?;
        let truth = Truth {
            outcomes: &self.outcomes,
            intervals: &self.targets.intervals,
            blocks: &self.blocks,
            groups: &self.groups,
            levels,
            reading: if head.starts_at_one() { Reading::Linear } else { Reading::default() },
        };
        let scores = validate(self.monitor, (&survival, self.grid.times()), &truth)
            .map_err(|source| FairnessError::Monitor { monitor: self.monitor.name(), epoch: epoch + 1, source })?;
        strategy.after_validation(&scores)?;
        Ok(scores)
    }
}

fn write_lines(path: &Path, epochs: &[EpochReport]) -> Result<(), FairnessError> {
    write_atomically(path, |file| {
        for epoch in epochs {
            serde_json::to_writer(&mut *file, epoch)?;
            file.write_all(b"\n")?;
        }
        Ok(())
    })?;
    Ok(())
}
