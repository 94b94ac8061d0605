//! One training in progress: epochs, steps, checkpoints and the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use burn::tensor::Device;
use fairtte_data::loader::Ahead;
use fairtte_models::computes_on_host;

use super::config::best_epoch;
use super::observer::{Observer as _, Observers};
use super::plan::Plan;
use super::progress::{Took, Totals};
use super::schedule::Place;
use super::validation::Validator;
use super::{LossScale, Partial, TrainedRun, TrainingConfig, TrainingData, selection};
use crate::checkpoint::{Checkpoints, Progress};
use crate::monitor::Validation;
use crate::predict::{Outputs, targets_of};
use crate::strategies::{
    Clock, EQUAL_PREDICTIONS, StepContext, Strategy, Watch, Watched, first_epoch, predictions_differ, warnings,
};
use crate::{Batch, FairnessError};

/// One training in progress.
pub(super) struct Training<'s, 'a> {
    pub(super) strategy: &'s mut dyn Strategy,
    pub(super) data: &'a TrainingData<'a>,
    pub(super) config: &'a TrainingConfig,
    pub(super) validator: Validator<'a>,
    pub(super) checkpoints: Checkpoints,
    pub(super) progress: Progress,
    pub(super) observers: Observers<'a>,
    pub(super) stop: Option<&'a AtomicBool>,
    /// When the last checkpoint was written.
    pub(super) saved_at: Instant,
    /// Batches of an epoch.
    pub(super) n_batches: usize,
}

impl Training<'_, '_> {
    fn best_epoch(&self) -> usize {
        best_epoch(&self.progress.epochs)
    }

    pub(super) fn is_finished(&self) -> bool {
        let in_the_middle = self.progress.partial.is_some();
        !in_the_middle && (self.config.is_over(&self.progress.epochs) || self.strategy.wants_to_stop())
    }

    /// One epoch, or the rest of one, with its validation and its checkpoint.
    pub(super) fn epoch(&mut self) -> Result<(), FairnessError> {
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
        let took = Took { data, step: started.elapsed(), clock: &clock };
        let scale = self.progress.loss_scale.as_mut();
        if let (Err(error), Some(scale)) = (&report, scale)
            && scale.forgives(error)
        {
            totals.overflow(scale.terms(), &took);
            self.observers.batch_skipped(epoch);
            return Ok(());
        }
        let mut report = report.map_err(|error| error.in_batch(&batch.sample_ids))?;
        self.progress.loss_scale.iter_mut().for_each(LossScale::good);
        report.terms.extend(self.progress.loss_scale.iter().flat_map(LossScale::terms));
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
    pub(super) fn report_epoch(&mut self) -> Result<(), FairnessError> {
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
    pub(super) fn finish(self) -> Result<TrainedRun, FairnessError> {
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
