//! The calls of a training to a strategy and to an observer, and their order: validations within an epoch, a strategy
//! that ends the training, a resumed training, and the logs of each.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Plant, Trial};
use fairtte_data::Sampling;
use fairtte_fairness::Batch;
use fairtte_fairness::strategies::{Saved, StepContext, StepReport};
use fairtte_fairness::{
    ConstantSchedule, CurveRule, EpochReport, FairnessError, Monitor, Observer, Parts, ScheduleConfig, StepsFile,
    Strategy, StrategyConfig, TensorBoard, TrainedRun, Trainer, TrainingConfig, TrainingData, Validation,
    is_unfinished, predict, score_validation, use_epoch,
};
use fairtte_survival::{NnetSurvival, PredictionGrid};
use ndarray::Array2;

type Events = Rc<RefCell<Vec<String>>>;

/// `erm` that records its calls, validates every `interval` steps, and ends the training after `last` validations.
struct Recorded {
    inner: Box<dyn Strategy>,
    events: Events,
    interval: Option<usize>,
    n_validations: usize,
    last: usize,
}

impl Strategy for Recorded {
    fn name(&self) -> &'static str {
        "recorded"
    }
    fn sampling(&self) -> Sampling {
        self.inner.sampling()
    }
    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        self.events.borrow_mut().push(format!("batch {}", context.step + 1));
        self.inner.step(batch, context)
    }
    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        self.inner.before_validation(parts)
    }
    fn validation_interval(&self) -> Option<usize> {
        self.interval
    }
    fn after_validation(&mut self, validation: &Validation) -> Result<(), FairnessError> {
        assert!(validation.nll.is_finite());
        self.events.borrow_mut().push("validated".to_owned());
        self.n_validations += 1;
        Ok(())
    }
    fn wants_to_stop(&self) -> bool {
        self.n_validations >= self.last
    }
    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        self.inner.predict(batch, rule)
    }
    fn features(&self, batch: &Batch, layer: fairtte_fairness::Layer) -> Result<ndarray::Array2<f32>, FairnessError> {
        self.inner.features(batch, layer)
    }
    fn parts(&mut self) -> Vec<fairtte_fairness::strategies::NamedPart<'_>> {
        self.inner.parts()
    }

    fn save(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.inner.save(folder, what)
    }
    fn load(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.inner.load(folder, what)
    }
}

/// Records the events it receives, and stops the training after a number of batches.
struct Told<'a> {
    events: Events,
    stop: &'a AtomicBool,
    stop_after: usize,
    n: usize,
}

impl Observer for Told<'_> {
    fn started(&mut self, first: usize, epochs: usize, n_steps: usize) {
        self.events.borrow_mut().push(format!("started at {first} of {epochs} with {n_steps}"));
    }
    fn resumed_after(&mut self, n_done: usize) {
        self.events.borrow_mut().push(format!("resumed after {n_done}"));
    }
    fn step_done(&mut self, epoch: usize, _report: &StepReport) {
        self.n += 1;
        if self.n == self.stop_after {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.events.borrow_mut().push(format!("told of epoch {epoch}"));
    }
    fn batch_skipped(&mut self, epoch: usize) {
        self.events.borrow_mut().push(format!("skipped in epoch {epoch}"));
    }
    fn epoch_done(&mut self, report: &EpochReport) {
        self.events.borrow_mut().push(format!("epoch {} done", report.epoch));
    }
}

fn of_metrics(validation: &Validation) -> [Option<f64>; 3] {
    [Monitor::CTd, Monitor::AucTd, Monitor::Ibs].map(|metric| validation.value(metric))
}

/// 400 samples in ten batches of 40.
struct Setting {
    trial: Trial,
    training: TrainingConfig,
    interval: Option<usize>,
    last: usize,
    stop_after: usize,
}

impl Setting {
    fn new(epochs: usize) -> Self {
        let mut trial = Trial::new(400, Plant::default(), 6);
        trial.epochs = epochs;
        let training = trial.training();
        Self { trial, training, interval: None, last: usize::MAX, stop_after: usize::MAX }
    }

    fn erm(&self) -> Box<dyn Strategy> {
        StrategyConfig::default().build(&self.trial.study.spec, &self.trial.study.cells).unwrap()
    }

    fn run(&self, folder: &Path) -> (Vec<String>, Result<TrainedRun, FairnessError>) {
        let events = Events::default();
        let (interval, last) = (self.interval, self.last);
        let mut strategy = Recorded { inner: self.erm(), events: events.clone(), interval, n_validations: 0, last };
        let stop = AtomicBool::new(false);
        let mut told = Told { events: events.clone(), stop: &stop, stop_after: self.stop_after, n: 0 };
        let (mut steps, mut board) = (StepsFile::in_folder(folder), TensorBoard::in_folder(folder));
        let trained = self.trial.with_data(|data| {
            let trainer = Trainer::new(data, &self.training, folder).observe(&mut steps).observe(&mut board);
            trainer.observe(&mut told).stop_when(&stop).fit(&mut strategy)
        });
        (events.take(), trained)
    }

    /// The metrics of the validation part by the present predictions of a strategy.
    fn scored(&self, strategy: &dyn Strategy) -> Validation {
        let trial = &self.trial;
        let grid = PredictionGrid::at_cut_points(&trial.study.cut_points);
        let rule = CurveRule { head: &NnetSurvival, grid: &grid };
        let curves = predict(strategy, &trial.loader(), &trial.validation, &rule, &trial.study.spec.device).unwrap();
        trial.with_data(|data| score_validation(data, &curves)).unwrap()
    }

    /// The calls without the batch events of the observer.
    fn calls(&self) -> (String, TrainedRun) {
        let folder = tempfile::tempdir().unwrap();
        let (events, trained) = self.run(folder.path());
        let calls = events.into_iter().filter(|event| !event.starts_with("told")).map(|event| match &event[..] {
            "validated" => "V".to_owned(),
            other => other.strip_prefix("batch ").unwrap_or(other).to_owned(),
        });
        (calls.collect::<Vec<_>>().join(" "), trained.unwrap())
    }
}

#[test]
fn validations_come_at_the_end_of_an_epoch_unless_a_strategy_asks_for_more() {
    let mut setting = Setting::new(2);
    let (calls, trained) = setting.calls();
    let expected = "started at 0 of 2 with 10 1 2 3 4 5 6 7 8 9 10 V epoch 1 done 1 2 3 4 5 6 7 8 9 10 V epoch 2 done";
    assert_eq!((&calls[..], trained.stopped_early), (expected, false));
    setting = Setting { interval: Some(4), ..Setting::new(1) };
    assert_eq!(setting.calls().0, "started at 0 of 1 with 10 1 2 3 4 V 5 6 7 8 V 9 10 V epoch 1 done");
    // The last validation of an epoch is not repeated.
    setting.interval = Some(5);
    assert_eq!(setting.calls().0, "started at 0 of 1 with 10 1 2 3 4 5 V 6 7 8 9 10 V epoch 1 done");
}

/// Steps of three batches, of which the last has one: an interval counts steps, not batches.
#[test]
fn an_interval_counts_steps_of_several_batches() {
    let mut setting = Setting { interval: Some(2), ..Setting::new(1) };
    setting.training.accumulate = 3;
    assert_eq!(setting.calls().0, "started at 0 of 1 with 10 1 2 3 4 5 6 V 7 8 9 10 V epoch 1 done");
    setting.interval = Some(3);
    assert_eq!(setting.calls().0, "started at 0 of 1 with 10 1 2 3 4 5 6 7 8 9 V 10 V epoch 1 done");
    setting.interval = Some(1);
    assert_eq!(setting.calls().0, "started at 0 of 1 with 10 1 2 3 V 4 5 6 V 7 8 9 V 10 V epoch 1 done");
}

#[test]
fn a_strategy_that_wants_to_stop_ends_the_training_within_an_epoch_and_for_good() {
    let setting = Setting { interval: Some(4), last: 4, ..Setting::new(5) };
    let folder = tempfile::tempdir().unwrap();
    let (events, trained) = setting.run(folder.path());
    let trained = trained.unwrap();
    let n_batches = events.iter().filter(|event| event.starts_with("batch")).count();
    // Validations after batches 4, 8 and 10 of the first epoch, and after batch 4 of the second, whose end has one more.
    assert_eq!((n_batches, trained.epochs.len(), trained.stopped_early), (14, 2, true));
    assert_eq!(trained.epochs.iter().map(|epoch| epoch.n_steps).collect::<Vec<_>>(), [10, 4]);
    assert!(!is_unfinished(folder.path(), &setting.training).unwrap(), "the strategy is done, not the epochs");
    let unfinished = Setting { stop_after: 3, ..Setting::new(5) };
    let folder = tempfile::tempdir().unwrap();
    assert!(unfinished.run(folder.path()).1.is_err());
    assert!(is_unfinished(folder.path(), &unfinished.training).unwrap());
}

#[test]
fn an_observer_is_told_where_a_training_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let stopped = Setting { stop_after: 13, ..Setting::new(2) };
    let (events, trained) = stopped.run(folder.path());
    assert!(matches!(trained, Err(FairnessError::Interrupted { epoch: 2, step: 3, n_steps: 10 })), "{trained:?}");
    assert_eq!(events.iter().filter(|event| *event == "told of epoch 0").count(), 10);
    assert_eq!(events.last().unwrap(), "told of epoch 1");
    let (events, trained) = Setting::new(2).run(folder.path());
    assert_eq!(events[..3], ["started at 1 of 2 with 10", "resumed after 3", "batch 4"]);
    assert_eq!(trained.unwrap().epochs[1].n_steps, 10);
    let (events, _) = Setting::new(2).run(folder.path());
    assert_eq!(events, ["started at 2 of 2 with 10"], "a completed training does not start again");
}

/// Ten batches are four steps of up to three: a warm-up of eight steps is over after two epochs.
#[test]
fn the_schedule_counts_steps_of_several_batches() {
    let mut setting = Setting::new(3);
    setting.training.accumulate = 3;
    setting.training.schedule = ScheduleConfig::Constant(ConstantSchedule { warm_up: 8 });
    let rates: Vec<f64> = setting.calls().1.epochs.iter().map(|epoch| epoch.rate).collect();
    assert_eq!(rates, [0.5, 1.0, 1.0]);
}

#[test]
fn settings_are_checked_before_the_first_step() {
    let mut setting = Setting::new(1);
    setting.training.patience = 0;
    let folder = tempfile::tempdir().unwrap();
    let (events, trained) = setting.run(folder.path());
    assert_eq!(trained.unwrap_err().to_string(), "patience is 0, expected at least 1");
    assert!(events.is_empty(), "{events:?}");
}

#[test]
fn an_average_whose_valley_has_ended_stops_the_training() {
    let setting = Setting::new(60);
    let config: StrategyConfig = serde_json::from_value(
        serde_json::json!({ "swad": { "n-converge": 2, "n-tolerance": 2, "tolerance-ratio": 0.0 } }),
    )
    .unwrap();
    let mut strategy = config.build(&setting.trial.study.spec, &setting.trial.study.cells).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let trained = setting.trial.fit(strategy.as_mut(), folder.path(), &AtomicBool::new(false)).unwrap();
    assert!(trained.stopped_early && trained.epochs.len() < 60, "{} epochs", trained.epochs.len());
    assert!(strategy.wants_to_stop());
    let last = &trained.epochs.last().unwrap().terms;
    let [first, last] = ["first", "last"].map(|end| last[&format!("swad: {end} segment")]);
    assert!(last > first, "segments {first} to {last}");
    let weights = format!("averaged over epochs {first} to {last}");
    assert_eq!(strategy.describe_weights(1), weights);
}

/// A process may be killed after a checkpoint and before the logs.
#[test]
fn logs_that_are_behind_the_checkpoint_are_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let trained = Setting::new(2).run(folder.path()).1.unwrap();
    let logs = [folder.path().join("steps.jsonl"), folder.path().join("tensorboard/events.out.tfevents.fairtte")];
    let before = logs.clone().map(|log| std::fs::read(log).unwrap());
    for log in &logs {
        std::fs::remove_file(log).unwrap();
    }
    assert_eq!(Setting::new(2).run(folder.path()).1.unwrap(), trained);
    assert_eq!(logs.map(|log| std::fs::read(log).unwrap()), before);
}

#[test]
fn a_validation_part_is_scored_again_as_it_was_in_training() {
    let folder = tempfile::tempdir().unwrap();
    let setting = Setting::new(3);
    let trained = setting.run(folder.path()).1.unwrap();
    let mut strategy = setting.erm();
    for epoch in &trained.epochs {
        let use_it = |data: &TrainingData<'_>| use_epoch(strategy.as_mut(), data, folder.path(), epoch.epoch);
        if setting.trial.with_data(use_it).is_err() {
            continue; // not chosen by any rule
        }
        let scored = setting.scored(strategy.as_ref());
        assert_eq!(of_metrics(&scored), of_metrics(&epoch.validation));
        assert!(scored.value(Monitor::CTd).is_some_and(|c_td| c_td > 0.5), "{scored:?}");
    }
}

/// Step sizes so large that some training gets worse before it ends.
#[test]
fn a_training_ends_with_the_weights_of_its_best_epoch() {
    let mut n_worse = 0;
    for learning_rate in [0.02, 0.05, 0.1] {
        let mut setting = Setting::new(20);
        setting.trial.study.spec.optimiser.learning_rate = learning_rate;
        let folder = tempfile::tempdir().unwrap();
        let mut strategy = setting.erm();
        let trained = setting.trial.fit(strategy.as_mut(), folder.path(), &AtomicBool::new(false)).unwrap();
        let best = &trained.epochs[trained.best_epoch - 1].validation;
        assert!(trained.epochs.iter().all(|epoch| epoch.validation.nll >= best.nll));
        assert_eq!(of_metrics(&setting.scored(strategy.as_ref())), of_metrics(best), "rate {learning_rate}");
        n_worse += usize::from(of_metrics(&trained.epochs[19].validation) != of_metrics(best));
    }
    assert!(n_worse > 0, "the last epoch was always the best");
}

/// Seconds by phase are parts of the epoch's, and none is missing.
#[test]
fn the_time_of_an_epoch_is_told_by_phase() {
    let folder = tempfile::tempdir().unwrap();
    for epoch in Setting::new(2).run(folder.path()).1.unwrap().epochs {
        let EpochReport { seconds, data_seconds, forward_seconds, backward_seconds, update_seconds, .. } = epoch;
        let parts = [data_seconds, forward_seconds, backward_seconds, update_seconds, epoch.validation_seconds];
        assert!(parts.iter().all(|part| *part > 0.0), "{parts:?}");
        assert!(parts.iter().sum::<f64>() <= seconds, "{parts:?} of {seconds}");
    }
}
