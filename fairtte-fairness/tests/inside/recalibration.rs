//! Tests of `src/strategies/recalibration`; they need a back end, which `src` does not name.
use std::sync::atomic::AtomicBool;

use fairtte_metrics::GroupId;
use fairtte_survival::{CoxConfig, HeadConfig, Interpolation, PcHazardConfig, PredictionGrid};

use super::super::MissingAttribute;
use super::super::table::World;
use super::maps::Map;
use super::*;
use crate::{EpochReport, Observer, Silent};

fn config(method: RecalibrationMethod) -> RecalibrationConfig {
    let min_events = if method == RecalibrationMethod::Quantile { 2 } else { 50 };
    RecalibrationConfig { method, min_events, ..RecalibrationConfig::default() }
}

const METHODS: [RecalibrationMethod; 3] =
    [RecalibrationMethod::Oe, RecalibrationMethod::HazardIntercept, RecalibrationMethod::Quantile];

fn trained(world: &World, config: RecalibrationConfig, epochs: usize) -> Recalibration {
    let folder = tempfile::tempdir().unwrap();
    let learner = Learner::new(&world.spec(), "network").unwrap();
    let mut strategy = Recalibration::new(&config, learner, &world.cells()).unwrap();
    world.fit(&mut strategy, epochs, folder.path(), &mut Silent, &AtomicBool::new(false)).unwrap();
    strategy
}

fn heads() -> [HeadConfig; 3] {
    [HeadConfig::default(), HeadConfig::PcHazard(PcHazardConfig::default()), HeadConfig::Cox(CoxConfig::default())]
}

#[test]
fn expected_and_observed_events_of_each_group_agree_up_to_the_prior() {
    for head in heads() {
        let world = World::new(&head);
        let strategy = trained(&world, config(RecalibrationMethod::Oe), 2);
        let grid = PredictionGrid::at_cut_points(&world.cut_points);
        let rule = CurveRule { head: world.head.as_ref(), grid: &grid };
        let curves = world.curves(&strategy, &world.validation, &rule);
        let outcomes = &world.validation_outcomes;
        let targets = world.cut_points.targets("validation", outcomes.time(), outcomes.event()).unwrap().intervals;
        for g in 0..2 {
            let Map::Exponent(a) = strategy.fitted.as_ref().unwrap().maps[g] else { panic!("not an exponent") };
            assert!((a - 1.0).abs() > 1e-3, "the map has an effect: {a}");
            let (mut expected, mut observed) = (0.0, 0.0);
            for (i, row) in world.validation.iter().enumerate() {
                if world.groups[*row].map(GroupId::index) != Some(g) {
                    continue;
                }
                for k in 0..=targets.index[i] {
                    let before = if k == 0 { 1.0 } else { curves[[i, k - 1]] };
                    expected += 1.0 - curves[[i, k]] / before;
                }
                observed += f64::from(u8::from(targets.event[i]));
            }
            assert!((expected + a - (observed + 1.0)).abs() < 1e-9, "group {g}: {expected} {observed} {a}");
        }
    }
}

#[test]
fn a_finer_grid_passes_through_the_mapped_cut_points_and_never_rises() {
    for head in heads() {
        let world = World::new(&head);
        let at_cuts = PredictionGrid::at_cut_points(&world.cut_points);
        let fine = PredictionGrid::new(&world.cut_points, 4, Interpolation::Linear)
            .unwrap()
            .with_early(world.head.as_ref(), &world.train_outcomes);
        for method in METHODS {
            let strategy = trained(&world, config(method), 2);
            let rule = |grid| CurveRule { head: world.head.as_ref(), grid };
            let coarse = world.curves(&strategy, &world.test, &rule(&at_cuts));
            let finer = world.curves(&strategy, &world.test, &rule(&fine));
            let plain = strategy.inner.predict(&world.batch(&world.test, false), &rule(&at_cuts)).unwrap();
            assert_ne!(coarse, plain, "{method:?} has no effect");
            for (row, curve) in finer.rows().into_iter().enumerate() {
                assert!(curve.iter().all(|s| (0.0..=1.0).contains(s)));
                assert!(curve.windows(2).into_iter().all(|pair| pair[1] <= pair[0] + 1e-12), "{method:?}: {curve}");
                for (k, cut) in at_cuts.times().iter().enumerate() {
                    let at = fine.times().iter().position(|time| (time - cut).abs() < 1e-9).unwrap();
                    let (found, expected) = (curve[at], coarse[[row, k]]);
                    assert!((found - expected).abs() < 1e-9, "{method:?}, cut {k}: {found} is not {expected}");
                }
            }
        }
    }
}

#[test]
fn maps_are_saved_with_the_weights() {
    let world = World::new(&HeadConfig::default());
    for method in METHODS {
        let mut strategy = trained(&world, config(method), 1);
        let folder = tempfile::tempdir().unwrap();
        strategy.save(folder.path(), Saved::Weights).unwrap();
        let learner = Learner::new(&world.spec(), "network").unwrap();
        let mut loaded = Recalibration::new(&config(method), learner, &world.cells()).unwrap();
        loaded.load(folder.path(), Saved::Weights).unwrap();
        assert_eq!(loaded.fitted, strategy.fitted);
        std::fs::write(folder.path().join("recalibration.json"), r#"{"cut_points":[0,2,1],"maps":[],"shares":[]}"#)
            .unwrap();
        let error = loaded.load(folder.path(), Saved::Weights).unwrap_err().to_string();
        assert!(error.contains("cut points that do not ascend from 0"), "{error}");
    }
}

#[test]
fn without_the_attribute_the_curves_of_all_maps_are_averaged_or_refused() {
    let world = World::new(&HeadConfig::default());
    let mut strategy = trained(&world, config(RecalibrationMethod::Oe), 1);
    let grid = PredictionGrid::at_cut_points(&world.cut_points);
    let rule = CurveRule { head: world.head.as_ref(), grid: &grid };
    let as_group = |group: Option<u32>, strategy: &Recalibration| {
        let batch = world.batch(&world.test, false);
        let groups = vec![group.map(GroupId); batch.n()];
        strategy.predict(&Batch { groups, ..batch }, &rule)
    };
    let shares = strategy.fitted.as_ref().unwrap().shares.clone();
    let of = |group: Option<u32>| as_group(group, &strategy).unwrap();
    let (a, b, none) = (of(Some(0)), of(Some(1)), of(None));
    for ((found, a), b) in none.iter().zip(&a).zip(&b) {
        assert!((found - (shares[0] * a + shares[1] * b)).abs() < 1e-12);
    }
    strategy.config.missing_attribute = MissingAttribute::Refuse;
    let error = as_group(None, &strategy).unwrap_err().to_string();
    let expected = format!(
        "strategy recalibration predicts by group, but sample \"s{}\" has no known group; set \
         missing-attribute = \"average\" to predict without one",
        world.test[0]
    );
    assert_eq!(error, expected);
}

/// Counts the completed epochs.
struct Epochs(usize);

impl Observer for Epochs {
    fn started(&mut self, _first: usize, _epochs: usize, _n_steps: usize) {}
    fn step_done(&mut self, _epoch: usize, _report: &StepReport) {}
    fn epoch_done(&mut self, _report: &EpochReport) {
        self.0 += 1;
    }
}

// Such as a cell of two crossed attributes.
#[test]
fn a_level_without_a_validation_row_keeps_its_curves() {
    let mut world = World::new(&HeadConfig::default());
    world.levels.push("c".to_owned());
    world.groups[world.train[0]] = Some(GroupId(2));
    let grid = PredictionGrid::at_cut_points(&world.cut_points);
    let rule = CurveRule { head: world.head.as_ref(), grid: &grid };
    for method in METHODS {
        let strategy = trained(&world, config(method), 1);
        let as_group = |group: u32| {
            let batch = world.batch(&world.test, false);
            let groups = vec![Some(GroupId(group)); batch.n()];
            strategy.predict(&Batch { groups, ..batch }, &rule).unwrap()
        };
        let plain = strategy.inner.predict(&world.batch(&world.test, false), &rule).unwrap();
        assert_eq!(as_group(2), plain, "{method:?}");
        assert!([0, 1].into_iter().all(|group| as_group(group) != plain), "{method:?} has no effect");
        assert_eq!(strategy.fitted.as_ref().unwrap().shares[2].to_bits(), 0.0_f64.to_bits());
    }
}

#[test]
fn a_validation_part_without_the_attribute_ends_the_first_epoch() {
    let mut world = World::new(&HeadConfig::default());
    for row in &world.validation {
        world.groups[*row] = None;
    }
    let learner = Learner::new(&world.spec(), "network").unwrap();
    let mut strategy = Recalibration::new(&config(RecalibrationMethod::Oe), learner, &world.cells()).unwrap();
    let (folder, mut epochs_done) = (tempfile::tempdir().unwrap(), Epochs(0));
    let error = world.fit(&mut strategy, 3, folder.path(), &mut epochs_done, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, FairnessError::EmptyGroup { part: "validation", .. }), "{error}");
    assert_eq!(epochs_done.0, 0);
}

#[test]
fn settings_are_checked_and_too_few_events_for_quantiles_are_named() {
    let world = World::new(&HeadConfig::default());
    let message = |config: RecalibrationConfig| config.validate().unwrap_err().to_string();
    let oe = config(RecalibrationMethod::Oe);
    let expected = "prior is 0, expected a finite number > 0";
    assert_eq!(message(RecalibrationConfig { prior: 0.0, ..oe }), expected);
    let expected = "shared is true, expected no value without method = \"hazard-intercept\"";
    assert_eq!(message(RecalibrationConfig { shared: true, ..oe }), expected);
    let config = RecalibrationConfig { method: RecalibrationMethod::Quantile, ..RecalibrationConfig::default() };
    let learner = Learner::new(&world.spec(), "network").unwrap();
    let mut strategy = Recalibration::new(&config, learner, &world.cells()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut epochs_done = Epochs(0);
    let error = world.fit(&mut strategy, 3, folder.path(), &mut epochs_done, &AtomicBool::new(false)).unwrap_err();
    assert_eq!(epochs_done.0, 0, "a training without enough events ends in its first epoch");
    let is_event_of_a = |row: &&usize| world.groups[**row] == Some(GroupId(0)) && world.cohort.samples[**row].event;
    let n_events = world.validation.iter().filter(is_event_of_a).count();
    let n_of_all = world.validation.iter().filter(|row| world.cohort.samples[**row].event).count();
    assert!(0 < n_events && 2 * n_events != n_of_all, "{n_events} of {n_of_all} would be found in the other group too");
    let expected =
        format!("strategy recalibration needs 50 events of group a in the validation part, found {n_events}");
    assert!(error.to_string().starts_with(&expected), "{error}");
}

// The weights of an epoch are loaded before its maps are fitted: the maps of another epoch do not apply to it.
#[test]
fn weights_without_maps_predict_without_maps() {
    let world = World::new(&HeadConfig::default());
    let grid = PredictionGrid::at_cut_points(&world.cut_points);
    let rule = CurveRule { head: world.head.as_ref(), grid: &grid };
    let learner = Learner::new(&world.spec(), "network").unwrap();
    let mut fresh = Recalibration::new(&config(RecalibrationMethod::Oe), learner, &world.cells()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fresh.save(folder.path(), Saved::Weights).unwrap();
    let mut strategy = trained(&world, config(RecalibrationMethod::Oe), 1);
    strategy.load(folder.path(), Saved::Weights).unwrap();
    let batch = world.batch(&world.test, false);
    let plain = strategy.inner.predict(&batch, &rule).unwrap();
    assert_eq!(strategy.predict(&batch, &rule).unwrap(), plain);
}
