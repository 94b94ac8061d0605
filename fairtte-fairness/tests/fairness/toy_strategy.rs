//! The recipe "A strategy" of CONTRIBUTING.md, followed once: one file with the public items of the crate only, in under 90
//! lines. It is that of the example program `tests/outside`, which registers it; here it is trained without a program.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

#[path = "../../../tests/outside/src/worst_group.rs"]
mod worst_group;

use std::sync::atomic::AtomicBool;

use crate::common::{Plant, Trial};
use burn::tensor::Device;
use fairtte_fairness::strategies::{Saved, StrategySettings as _};
use fairtte_fairness::{CurveRule, FairnessError, Strategy, predict};
use fairtte_survival::{NnetSurvival, PredictionGrid};
use ndarray::Array2;
use worst_group::WorstGroupConfig;

fn build(trial: &Trial, weight: f64) -> Result<Box<dyn Strategy>, FairnessError> {
    WorstGroupConfig { weight }.build(&trial.study.spec, &trial.study.cells)
}

/// The trial with one sample in ten without the attribute.
fn trial() -> Trial {
    let mut trial = Trial::new(200, Plant { share: 0.2, ..Plant::default() }, 6);
    (0..trial.table.groups.len()).step_by(10).for_each(|row| trial.table.groups[row] = None);
    trial.epochs = 3;
    trial
}

fn curves(trial: &Trial, strategy: &dyn Strategy) -> Array2<f64> {
    let grid = PredictionGrid::at_cut_points(&trial.study.cut_points);
    let rule = CurveRule { head: &NnetSurvival, grid: &grid };
    predict(strategy, &trial.loader(), &trial.test, &rule, &Device::flex()).unwrap()
}

#[test]
fn a_strategy_takes_fewer_than_90_lines() {
    let n_lines = include_str!("../../../tests/outside/src/worst_group.rs").lines().count();
    assert!(n_lines < 90, "{n_lines} lines");
}

#[test]
fn the_toy_is_trained_saved_loaded_and_resumed() {
    let (trial, folder) = (trial(), tempfile::tempdir().unwrap());
    let (never, at_once) = (AtomicBool::new(false), AtomicBool::new(true));
    let mut whole = build(&trial, 1.0).unwrap();
    let trained = trial.fit(whole.as_mut(), &folder.path().join("whole"), &never).unwrap();
    assert!(trained.epochs[2].train_loss < trained.epochs[0].train_loss, "{:?}", trained.epochs);
    let expected = curves(&trial, whole.as_ref());

    whole.save(&folder.path().join("saved"), Saved::Weights).unwrap();
    let mut loaded = build(&trial, 1.0).unwrap();
    assert_ne!(curves(&trial, loaded.as_ref()), expected);
    loaded.load(&folder.path().join("saved"), Saved::Weights).unwrap();
    assert_eq!(curves(&trial, loaded.as_ref()), expected);

    // Stopped after every single step.
    let run = folder.path().join("stopped");
    for _ in 0..4 {
        let error = trial.fit(build(&trial, 1.0).unwrap().as_mut(), &run, &at_once).unwrap_err();
        assert!(matches!(error, FairnessError::Interrupted { epoch: 1, .. }), "{error}");
    }
    let mut resumed = build(&trial, 1.0).unwrap();
    trial.fit(resumed.as_mut(), &run, &never).unwrap();
    assert_eq!(curves(&trial, resumed.as_ref()), expected);

    let mut plain = build(&trial, 0.0).unwrap();
    trial.fit(plain.as_mut(), &folder.path().join("plain"), &never).unwrap();
    assert_ne!(curves(&trial, plain.as_ref()), expected, "the worst group has no weight");
}

#[test]
fn a_setting_out_of_range_names_its_key() {
    let error = build(&trial(), -1.0).err().unwrap();
    let sentence = "weight is -1, expected a finite number >= 0";
    assert_eq!(error.to_string(), sentence);
}
