//! Tests of `src/strategies/controlled_attribute`; they need a back end, which `src` does not name.
use std::sync::atomic::AtomicBool;

use fairtte_survival::{CoxConfig, HeadConfig, PredictionGrid};

use super::super::table::{World, numbers};
use super::super::{Accumulation, Clock};
use super::*;
use crate::Silent;

fn small() -> ControlledAttributeConfig {
    ControlledAttributeConfig { min_events: 2, ..ControlledAttributeConfig::default() }
}

fn strategy(world: &World) -> ControlledAttribute {
    ControlledAttribute::new(&small(), &world.spec(), &world.cells()).unwrap()
}

fn weights(model: &GroupModel) -> Vec<(String, Vec<f64>)> {
    numbers(model.current.network())
}

#[test]
fn a_curve_is_the_sum_of_the_models_curves_weighed_by_training_shares() {
    for head in [HeadConfig::default(), HeadConfig::Cox(CoxConfig::default())] {
        let world = World::new(&head);
        let mut strategy = strategy(&world);
        world.with_parts(|parts| strategy.before_validation(parts)).unwrap();
        let counts = world.cells().counts();
        let share = counts[0] as f64 / (counts[0] + counts[1]) as f64;
        assert!((strategy.weights[0] - share).abs() < 1e-15 && share > 0.6);
        let grid = PredictionGrid::at_cut_points(&world.cut_points);
        let rule = CurveRule { head: world.head.as_ref(), grid: &grid };
        let batch = world.batch(&world.test, false);
        let of = |model: usize| strategy.models[model].chosen.survival(&batch, &rule).unwrap();
        let (a, b) = (of(0), of(1));
        let found = strategy.predict(&batch, &rule).unwrap();
        for ((found, a), b) in found.iter().zip(&a).zip(&b) {
            assert!((found - (share * a + (1.0 - share) * b)).abs() < 1e-12);
        }
        assert_ne!(a, b);
        // For any group of the sample.
        let without = Batch { groups: vec![None; batch.n()], ..batch.clone() };
        assert_eq!(strategy.predict(&without, &rule).unwrap(), found);
        // By the network of one group, whatever the groups of the samples.
        let by = |group: u32| strategy.predict_by(GroupId(group), &without, &rule).unwrap();
        assert_eq!([by(0), by(1), by(2)], [Some(a), Some(b), None]);
    }
}

#[test]
fn a_batch_trains_the_network_of_its_group_only() {
    let world = World::new(&HeadConfig::default());
    let mut strategy = strategy(&world);
    let before: Vec<_> = strategy.models.iter().map(weights).collect();
    assert_ne!(before[0], before[1], "networks start with different weights");
    let clock = Clock::default();
    let batch = world.batch(&world.train_rows(Some(1), 10), true);
    strategy.step(&batch, &world.context(0, &clock)).unwrap();
    assert_eq!(weights(&strategy.models[0]), before[0]);
    assert_ne!(weights(&strategy.models[1]), before[1]);
    let n_without = world.train.iter().filter(|row| world.groups[**row].is_none()).count();
    assert_eq!(strategy.log_terms(), [("csa: samples left out".to_owned(), n_without as f64)]);
}

// Two batches of group a and one of group b make one step: each network is updated along the mean of its own gradients.
#[test]
fn several_batches_may_make_one_step_of_each_network() {
    let world = World::new(&HeadConfig::default());
    let mut together = strategy(&world);
    let rows = world.train_rows(Some(0), 20);
    let batches = [
        world.batch(&rows[..10], true),
        world.batch(&rows[10..], true),
        world.batch(&world.train_rows(Some(1), 10), true),
    ];
    let clock = Clock::default();
    let before: Vec<_> = together.models.iter().map(weights).collect();
    for (step, batch) in batches.iter().enumerate() {
        let accumulation = Accumulation { of: 3, last: step == 2 };
        let context = StepContext { accumulation, ..world.context(step, &clock) };
        let report = together.step(batch, &context).unwrap();
        // The norm of this batch's own gradient, whichever batch the weights move with.
        if step != 1 {
            let alone = strategy(&world).step(batch, &world.context(step, &clock)).unwrap();
            assert_eq!(report.gradient_norm.to_bits(), alone.gradient_norm.to_bits());
            assert_eq!(report.task_loss.to_bits(), alone.task_loss.to_bits());
        }
        assert!(report.gradient_norm > 0.0);
        // Running statistics of batch norm follow every batch; parameters do not.
        let is_moved = weights(&together.models[0])
            .iter()
            .zip(&before[0])
            .any(|(now, before)| !super::super::table::is_statistic(&now.0) && now.1 != before.1);
        assert_eq!(is_moved, step == 2);
    }
    // The single batch of group b: as without accumulation.
    let mut alone = strategy(&world);
    alone.step(&batches[2], &world.context(2, &clock)).unwrap();
    assert_eq!(weights(&together.models[1]), weights(&alone.models[1]));
}

#[test]
fn every_network_stops_at_the_best_epoch_of_its_own_group() {
    let world = World::new(&HeadConfig::default());
    let folder = tempfile::tempdir().unwrap();
    let mut strategy = strategy(&world);
    world.fit(&mut strategy, 25, folder.path(), &mut Silent, &AtomicBool::new(false)).unwrap();
    let mut n_stopped = 0;
    for model in &mut strategy.models {
        let best = model.best.as_ref().unwrap().1;
        // The weights used for prediction are the best ones, although training continued after them.
        let last = weights(model);
        model.current.replace(model.chosen.network().valid().train());
        model.best = None;
        world.with_parts(|parts| model.choose(parts)).unwrap();
        assert_eq!(model.best.as_ref().unwrap().1.to_bits(), best.to_bits(), "group {}", model.level);
        n_stopped += usize::from(last != weights(model));
    }
    assert!(n_stopped > 0, "no network had its best epoch before the last");
}

#[test]
fn a_group_with_few_events_is_named_or_left_out() {
    let world = World::new(&HeadConfig::default());
    let mut cells = world.cells();
    for (group, event) in cells.groups.iter().zip(&mut cells.event) {
        *event &= *group != Some(GroupId(1));
    }
    let build = |small_group| {
        let config = ControlledAttributeConfig { small_group, ..ControlledAttributeConfig::default() };
        ControlledAttribute::new(&config, &world.spec(), &cells)
    };
    let expected = "strategy controlled-attribute needs 10 events of group b in the training part, found 0";
    assert_eq!(build(SmallGroup::Refuse).unwrap_err().to_string(), expected);
    let strategy = build(SmallGroup::Drop).unwrap();
    assert_eq!((strategy.models.len(), &strategy.weights[..]), (1, &[1.0][..]));
    let Sampling::WithinGroups(groups) = strategy.sampling() else { panic!("not within groups") };
    assert!(groups.iter().flatten().all(|group| *group == GroupId(0)) && groups.len() == world.train.len());
    cells.event.fill(false);
    let config = ControlledAttributeConfig { small_group: SmallGroup::Drop, ..ControlledAttributeConfig::default() };
    assert!(ControlledAttribute::new(&config, &world.spec(), &cells).is_err(), "at least one group must remain");
    let config = ControlledAttributeConfig { min_events: 1, ..config };
    let expected = "min-events is 1, expected at least 2";
    assert_eq!(config.validate().unwrap_err().to_string(), expected);
}

#[test]
fn a_group_without_validation_samples_is_named() {
    let mut world = World::new(&HeadConfig::default());
    for row in world.validation.clone() {
        world.groups[row] = Some(GroupId(0));
    }
    let mut strategy = strategy(&world);
    let error = world.with_parts(|parts| strategy.before_validation(parts)).unwrap_err();
    let expected = "strategy controlled-attribute needs samples of group b in the validation part, found none";
    assert_eq!(error.to_string(), expected);
}
