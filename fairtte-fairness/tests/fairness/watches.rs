//! Idle parts are in the log of every epoch and in the warnings of a training, and active parts are not.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test may panic; values are worth seeing")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::common::{Plant, Trial};
use fairtte_data::Sampling;
use fairtte_fairness::Batch;
use fairtte_fairness::strategies::{Saved, StepContext, StepReport};
use fairtte_fairness::{
    CurveRule, EQUAL_PREDICTIONS, EpochReport, FairnessError, Strategy, StrategyConfig, TrainedRun,
};
use ndarray::{Array2, Axis};
use serde_json::{Value, json};

/// Four epochs of ten batches; the groups are visible in the inputs, and differ in hazard.
fn trial() -> Trial {
    let mut trial = Trial::new(400, Plant { hazard: 2.5, ..Plant::default() }, 8);
    trial.epochs = 4;
    trial
}

fn build(trial: &Trial, strategy: Value) -> Box<dyn Strategy> {
    let config: StrategyConfig = serde_json::from_value(strategy).unwrap();
    config.build(&trial.study.spec, &trial.study.cells).unwrap()
}

fn train(trial: &Trial, mut strategy: Box<dyn Strategy>) -> TrainedRun {
    let folder = tempfile::tempdir().unwrap();
    let trained = trial.fit(strategy.as_mut(), folder.path(), &AtomicBool::new(false)).unwrap();
    assert_eq!(of_log(folder.path()), trained.epochs.iter().map(|epoch| epoch.watched.clone()).collect::<Vec<_>>());
    trained
}

fn of_log(run: &Path) -> Vec<Vec<fairtte_fairness::Watched>> {
    let log = std::fs::read_to_string(run.join("steps.jsonl")).unwrap();
    log.lines().map(|line| serde_json::from_str::<EpochReport>(line).unwrap().watched).collect()
}

/// Names of the warnings, and whether `text` is in one of them.
fn warned(trained: &TrainedRun, text: &str) -> (Vec<String>, bool) {
    let says = trained.warnings.iter().any(|warning| warning.text.contains(text));
    (trained.warnings.iter().map(|warning| warning.name.clone()).collect(), says)
}

/// Trains `idle`, which must give the warning `name` with a text containing `change`, and `busy`, which must give no
/// warning.
fn check(name: &str, change: &str, idle: Value, busy: Value) {
    let trial = trial();
    let what = idle.to_string();
    let trained = train(&trial, build(&trial, idle));
    assert_eq!(warned(&trained, change), (vec![name.to_owned()], true), "{what}: {:?}", trained.warnings);
    let last = trained.epochs.last().unwrap().watched.iter().find(|watched| watched.name == name).unwrap();
    assert!(last.idle && last.value.is_some_and(|value| value < last.limit), "{what}: {last:?}");
    let what = busy.to_string();
    let trained = train(&trial, build(&trial, busy));
    println!("{what}: {:?}", trained.epochs.last().unwrap().watched);
    assert_eq!(trained.warnings, [], "{what}");
}

#[test]
fn weights_of_groups_that_never_move_are_named_with_their_step_size() {
    let dro = |eta: f64| json!({ "group-dro": { "eta": eta } });
    check("unmoved-weights", "`eta`", dro(1e-6), dro(0.5));
    let febs = |gamma: f64| json!({ "febs": { "gamma": gamma } });
    check("unmoved-weights", "`gamma`", febs(0.0), febs(5.0));
}

#[test]
fn an_adversary_that_learns_nothing_is_named_and_one_that_finds_the_group_is_not() {
    let laftr = |rate: f64| json!({ "laftr": { "mode": "dp", "gamma": 1e-3, "adversary-learning-rate": rate } });
    check("idle-adversary", "`aud-steps`", laftr(1e-12), laftr(1e-2));
    let lnl = |rate: f64| json!({ "lnl": { "mu": 0.0, "lambda": 0.0, "predictor-learning-rate": rate } });
    check("idle-adversary", "`predictor-learning-rate`", lnl(1e-12), lnl(1e-2));
}

#[test]
fn adversaries_that_learn_at_the_step_size_of_the_network_are_watched_too() {
    let mut slow = trial();
    slow.study.spec.optimiser.learning_rate = 1e-12;
    let cfair = || json!({ "cfair": { "lambda": 0.0, "stratum": { "kind": "event" } } });
    let trained = train(&slow, build(&slow, cfair()));
    // Weights that never move: no epoch is better than the first.
    let expected = ["idle-adversary", "first-epoch"].map(str::to_owned).to_vec();
    assert_eq!(warned(&trained, "`learning-rate`"), (expected, true));
    let mut fast = trial();
    fast.study.spec.optimiser.learning_rate = 5e-3;
    assert_eq!(train(&fast, build(&fast, cfair())).warnings, []);
}

#[test]
fn a_code_that_carries_nothing_is_named_with_the_weight_that_holds_it() {
    let odr = |weight: f64| json!({ "odr": { "code": 8, "lambda-orthogonality": weight, "lambda-entropy": 0.0 } });
    let mut trial = trial();
    trial.study.spec.optimiser.learning_rate = 1e-2;
    trial.epochs = 8;
    let trained = train(&trial, build(&trial, odr(30.0)));
    let (names, says) = warned(&trained, "`lambda-orthogonality`");
    assert!(names.contains(&"empty-code".to_owned()) && says, "{:?}", trained.warnings);
    let trained = train(&trial, build(&trial, odr(0.001)));
    assert_eq!(trained.warnings, [], "{:?}", trained.epochs.last().unwrap().terms);
}

// At a gamma of 1e6 no two samples are alike: all kernels are 0, and the unbiased term has neither value nor gradient.
#[test]
fn a_discrepancy_of_nothing_is_named() {
    let kernel =
        |gamma: f64| json!({ "fair-representation": { "kernels": "single", "gamma": gamma, "estimator": "unbiased" } });
    check("no-discrepancy", "pairs skipped", kernel(1e6), kernel(0.05));
}

#[test]
fn an_average_without_a_valley_is_named() {
    let trial = trial();
    let trained = train(&trial, build(&trial, json!({ "swad": { "n-converge": 4 } })));
    assert_eq!(warned(&trained, "`patience`"), (vec!["no-valley".to_owned()], true));
}

/// Trains as another strategy, and predicts the mean of its curves for every sample.
struct Constant(Box<dyn Strategy>);

impl Strategy for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }
    fn sampling(&self) -> Sampling {
        self.0.sampling()
    }
    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        self.0.step(batch, context)
    }
    fn before_validation(&mut self, parts: &fairtte_fairness::Parts<'_>) -> Result<(), FairnessError> {
        self.0.before_validation(parts)
    }
    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        let mut curves = self.0.predict(batch, rule)?;
        let times = curves.ncols();
        let mean = Array2::from_shape_fn((curves.nrows(), times), |(_, k)| 1.0 - 0.1 * (k + 1) as f64);
        curves.assign(&mean);
        Ok(curves)
    }
    fn features(&self, batch: &Batch, layer: fairtte_fairness::Layer) -> Result<ndarray::Array2<f32>, FairnessError> {
        self.0.features(batch, layer)
    }
    fn parts(&mut self) -> Vec<fairtte_fairness::strategies::NamedPart<'_>> {
        self.0.parts()
    }

    fn save(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.0.save(folder, what)
    }
    fn load(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.0.load(folder, what)
    }
}

#[test]
fn predictions_that_are_all_equal_are_named_whatever_the_strategy() {
    let trial = trial();
    let erm = || build(&trial, json!({ "erm": {} }));
    let trained = train(&trial, Box::new(Constant(erm())));
    let means = "constant: all predictions of the validation part are equal";
    assert_eq!(warned(&trained, means), (vec![EQUAL_PREDICTIONS.to_owned()], true), "{:?}", trained.warnings);
    assert!(trained.epochs.iter().all(|epoch| epoch.validation.spread == Some(0.0)));

    let trained = train(&trial, erm());
    assert_eq!(trained.warnings, []);
    let spread = trained.epochs[3].validation.spread.unwrap();
    assert!(spread > 0.05, "{spread}");
}

#[test]
fn a_strategy_that_does_not_say_what_of_it_predicts_is_not_exported() {
    let error = Constant(build(&trial(), json!({ "erm": {} }))).export().unwrap_err().to_string();
    let expected = "strategy constant cannot be exported: it does not say which of its networks predict, and how";
    assert_eq!(error, expected);
}

#[test]
fn the_spread_of_an_epoch_is_that_of_its_validation_curves() {
    let mut trial = trial();
    trial.epochs = 1;
    let mut strategy = build(&trial, json!({ "erm": {} }));
    let folder = tempfile::tempdir().unwrap();
    let trained = trial.fit(strategy.as_mut(), folder.path(), &AtomicBool::new(false)).unwrap();
    let grid = fairtte_survival::PredictionGrid::at_cut_points(&trial.study.cut_points);
    let rule = CurveRule { head: &fairtte_survival::NnetSurvival, grid: &grid };
    let device = burn::tensor::Device::flex();
    let curves =
        fairtte_fairness::predict(strategy.as_ref(), &trial.loader(), &trial.validation, &rule, &device).unwrap();
    let spread = curves.axis_iter(Axis(1)).map(|column| {
        let values: Vec<f64> = column.to_vec();
        values.iter().copied().fold(f64::MIN, f64::max) - values.iter().copied().fold(f64::MAX, f64::min)
    });
    assert_eq!(trained.epochs[0].validation.spread, spread.reduce(f64::max));
}
