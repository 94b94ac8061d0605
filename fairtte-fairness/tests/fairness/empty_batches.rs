//! Batches without a loss term (no event, with the Cox heads) change nothing: no parameter, no moment of an optimiser
//! and no state of a strategy, alone or among the batches of one step. Checked by the checkpoints of `fit`.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Plant, Study, Table};
use fairtte_data::Loader;
use fairtte_fairness::strategies::StepReport;
use fairtte_fairness::{
    EpochReport, FairnessError, Observer, Outputs, Scoring, StrategyConfig, Trainer, TrainingConfig, TrainingData,
};
use fairtte_metrics::EvaluationSettings;
use fairtte_survival::{ClassifierConfig, HeadConfig, PredictionGrid};

const N_TRAIN: usize = 400;

/// At most three samples in eight have an event: about a third of the batches of four have none.
fn table() -> Table {
    let mut table = Table::planted(N_TRAIN + 100, 4, Plant::default());
    for i in 0..table.event.len() {
        table.event[i] &= i * 7 % 8 < 3;
    }
    table
}

/// Every file of the newest state: networks, optimisers and counters.
type State = BTreeMap<PathBuf, Vec<u8>>;

fn state(checkpoint: &Path) -> State {
    let Ok(entries) = std::fs::read_dir(checkpoint) else { return State::new() };
    let newest = entries.map(|entry| entry.unwrap().path()).max().unwrap().join("last");
    let files = std::fs::read_dir(newest).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.file_name().unwrap().into(), std::fs::read(&path).unwrap())).collect()
}

/// Records the state before every batch, and stops after a number of batches.
struct Look<'a> {
    checkpoint: PathBuf,
    n: usize,
    stop: &'a AtomicBool,
    /// Whether a batch has a loss, and the state before it.
    seen: Vec<(bool, State)>,
}

impl Look<'_> {
    fn look(&mut self, has_loss: bool) {
        self.seen.push((has_loss, state(&self.checkpoint)));
        if self.seen.len() == self.n {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Observer for Look<'_> {
    fn started(&mut self, _first: usize, _epochs: usize, _n_steps: usize) {}
    fn step_done(&mut self, _epoch: usize, _report: &StepReport) {
        self.look(true);
    }
    fn batch_skipped(&mut self, _epoch: usize) {
        self.look(false);
    }
    fn epoch_done(&mut self, _report: &EpochReport) {}
}

/// The error with which a training in batches of four with these settings ends early.
fn train(
    config: &StrategyConfig,
    head: &str,
    settings: TrainingConfig,
    run: &Path,
    look: &mut Look<'_>,
) -> FairnessError {
    let (table, train) = (table(), (0..N_TRAIN).collect::<Vec<_>>());
    let validation: Vec<usize> = (N_TRAIN..N_TRAIN + 100).collect();
    let (cohort, features) = (table.cohort(), table.features(&train));
    let mut study = Study::new(table.part(&train), 4);
    let head = serde_json::from_value::<HeadConfig>(serde_json::json!({ head: {} })).unwrap().build().unwrap();
    let outcomes = cohort.outcomes(&train).unwrap();
    let hidden = study.spec.network.encoder.hidden;
    study.spec.network.classifier =
        ClassifierConfig::for_head(head.as_ref(), &study.cut_points, &outcomes, hidden).unwrap();
    let loader = Loader::of_features(&features, &cohort, table.groups.clone()).unwrap();
    let grid = PredictionGrid::at_cut_points(&study.cut_points);
    let scoring = Scoring::new(grid, &study.cut_points, &EvaluationSettings::default(), &outcomes).unwrap();
    let data = TrainingData {
        loader: &loader,
        train: &train,
        validation: &validation,
        levels: &study.cells.levels,
        kept_for: &[],
        outputs: Outputs { head: head.as_ref(), cut_points: &study.cut_points },
        scoring: &scoring,
        seed: 4,
        device: &study.spec.device,
    };
    let settings = TrainingConfig { batch_size: 4, checkpoint_minutes: 1e-9, ..settings };
    let mut strategy = config.build(&study.spec, &study.cells).unwrap();
    let stop = look.stop;
    Trainer::new(&data, &settings, run).observe(look).stop_when(stop).fit(strategy.as_mut()).unwrap_err()
}

/// The first 24 batches of a training: whether each has a loss, with the state before it, and the state after the last.
fn first_batches(config: &StrategyConfig, head: &str, accumulate: usize, run: &Path) -> (Vec<(bool, State)>, State) {
    first_batches_with(config, head, TrainingConfig { accumulate, ..TrainingConfig::default() }, run)
}

fn first_batches_with(
    config: &StrategyConfig,
    head: &str,
    settings: TrainingConfig,
    run: &Path,
) -> (Vec<(bool, State)>, State) {
    let stop = AtomicBool::new(false);
    let checkpoint = run.join("checkpoint");
    let mut look = Look { checkpoint: checkpoint.clone(), n: 24, stop: &stop, seen: Vec::new() };
    let error = train(config, head, settings, run, &mut look);
    assert!(matches!(error, FairnessError::Interrupted { epoch: 1, step: 24, .. }), "{error}");
    (look.seen, state(&checkpoint))
}

fn config(name: &str) -> StrategyConfig {
    let settings = match name {
        "dro-chi-square" => serde_json::json!({ "alpha": 1.0 }), // a batch of four has one event
        _ => serde_json::json!({}),
    };
    serde_json::from_value(serde_json::json!({ name: settings })).unwrap()
}

#[test]
fn a_batch_without_an_event_moves_nothing_and_any_other_one_does() {
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in StrategyConfig::catalogue() {
        let (seen, end) = first_batches(&config(name), "cox", 1, &folder.path().join(name));
        let after = seen[1..].iter().map(|(_, state)| state).chain([&end]);
        let mut n_skipped = 0;
        // Before the first batch there is no state yet.
        for (k, ((has_loss, before), after)) in seen.iter().zip(after).enumerate().skip(1) {
            assert!(!before.is_empty(), "{name}: no state before batch {k}");
            assert_eq!(*has_loss, before != after, "{name}: batch {k}");
            n_skipped += usize::from(!has_loss);
        }
        assert!((3..=14).contains(&n_skipped), "{name}: {n_skipped} of 23 without an event");
    }
}

#[test]
fn a_step_of_several_batches_is_taken_if_one_of_them_has_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let (mut n_taken, mut n_mixed) = (0, 0);
    for name in ["erm", "laftr", "controlled-attribute"] {
        for head in ["cox", "cox-time"] {
            let run = folder.path().join(format!("{name}-{head}"));
            let (seen, end) = first_batches(&config(name), head, 2, &run);
            let states: Vec<&State> = seen.iter().step_by(2).map(|(_, state)| state).chain([&end]).collect();
            for (k, pair) in seen.chunks_exact(2).enumerate().skip(1) {
                let has_loss = [pair[0].0, pair[1].0];
                assert_eq!(
                    has_loss.contains(&true),
                    states[k] != states[k + 1],
                    "{name} {head}: step {k} {has_loss:?}"
                );
                assert_eq!(pair[0].1, pair[1].1, "{name} {head}: state in the middle of a step");
                n_taken += usize::from(has_loss.contains(&true));
                n_mixed += usize::from(has_loss[0] != has_loss[1]);
            }
        }
    }
    assert!(n_taken < 6 * 11 && n_mixed > 6, "{n_taken} steps taken, {n_mixed} of one batch with and one without");
}

/// With the heads in which censored samples have a loss term, every batch counts.
#[test]
fn heads_that_give_censored_samples_a_loss_pass_over_no_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (seen, _) = first_batches(&config("erm"), "nnet-survival", 1, folder.path());
    assert!(seen.iter().all(|(has_loss, _)| *has_loss));
}

#[test]
fn a_training_refuses_an_alpha_that_its_events_do_not_allow() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut look = Look { checkpoint: folder.path().to_owned(), n: 0, stop: &stop, seen: Vec::new() };
    let alpha = |alpha: f64| -> StrategyConfig {
        serde_json::from_value(serde_json::json!({ "dro-chi-square": { "alpha": alpha } })).unwrap()
    };
    let error = train(&alpha(0.9), "cox", TrainingConfig::default(), folder.path(), &mut look).to_string();
    // 1.0247 is below 2, the half of a batch, and above the events in it.
    assert!(error.starts_with("alpha is 0.9") && error.contains("(here 1.0247)"), "{error}");
    assert!(error.contains("events expected in half of batch-size 4, as head cox is split"), "{error}");
    assert!(look.seen.is_empty(), "a batch was made");
}

#[test]
fn batches_made_ahead_are_those_made_in_turn_also_where_some_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, n: usize| {
        let settings = TrainingConfig { prefetch: Some(n), ..TrainingConfig::default() };
        first_batches_with(&config("erm"), "cox", settings, &folder.path().join(name))
    };
    let (in_turn, again) = (of("first", 0), of("again", 0));
    assert!(in_turn.0.iter().any(|(has_loss, _)| !has_loss), "a batch is left out");
    // Optimisers name parameters by numbers that differ between two networks of one process.
    let same: Vec<&PathBuf> =
        in_turn.1.iter().filter(|(name, of)| again.1.get(*name) == Some(*of)).map(|(name, _)| name).collect();
    assert!(!same.is_empty(), "the weights are the same in two trainings: {:?}", in_turn.1.keys());
    for n in [1, 3] {
        let ahead = of(&n.to_string(), n);
        let pairs = in_turn
            .0
            .iter()
            .zip(&ahead.0)
            .map(|((skipped, one), (other_skipped, other))| (skipped == other_skipped, one, other));
        for (k, (alike, one, other)) in pairs.chain([(true, &in_turn.1, &ahead.1)]).enumerate() {
            let equal = same.iter().all(|name| one.get(*name) == other.get(*name));
            assert!(alike && equal, "{n} ahead: another state before batch {k}");
        }
    }
}
