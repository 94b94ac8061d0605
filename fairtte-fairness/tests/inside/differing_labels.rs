//! Effects of the methods when the same feature has opposite effects in two groups: 5 tables, every method on each of them.
//!
//! x1 raises the risk of group b (a third of those with the attribute) by as much as it lowers that of group a; x0 works alike
//! in both. Stated before the first run, for C^td on the test part, means over the tables, and what was found:
//! - `erm`, which does not see the group, follows the majority: its gap between the groups is at least 0.1. Found: 0.15.
//! - `domain-independent` with equal weights lets the two meanings of x1 cancel: at most half of that gap, and less in every
//!   table. Did not hold: 0.63 of it, less in four of five. It is lower in the mean, which is what is asserted; group a pays.
//! - with `own-group` it uses the right meaning: the worst group gains at least 0.1. Found: 0.12.
//! - `controlled-attribute` weighs the two meanings by the sizes of the groups, as the plain mean of the losses does: its gap is
//!   within 0.15 of that of `erm`. Found: 0.01 above it. It does not help here.
//!
//! Neither has a setting that could be 0. Their control is the same method on a placebo: another attribute with the same
//! shares and no effect. Stated before the run: with it, the gap of `mean-logits` is larger and the worst group under
//! `own-group`
//! is lower by at least 0.1. Found: 0.145 (0.094 with the attribute), and 0.50 (0.63).
//!
//! An earlier run on tables of 700 samples (34 of group b in a test part) had gaps under `erm` that changed their sign
//! between tables, 0.08 in the mean: too few samples to judge, hence 2,000. The statements are unchanged.

use std::sync::atomic::AtomicBool;

use fairtte_metrics::rank::{TiedPredictions, concordance_td};
use fairtte_metrics::{GroupId, Reading, SurvivalCurves};
use fairtte_survival::{HeadConfig, NoSettings, PredictionGrid};

use super::table::World;
use super::{ControlledAttributeConfig, DomainIndependentConfig, DomainInference, MissingAttribute, StrategyConfig};
use crate::{CurveRule, Silent};

/// The same table with an attribute that a third of the samples have by chance.
fn placebo(mut world: World) -> World {
    let by_chance = |i: usize| GroupId(u32::from(((i as f64 + 0.5) * std::f64::consts::SQRT_2).fract() < 1.0 / 3.0));
    world.groups = world.groups.iter().enumerate().map(|(i, group)| group.map(|_| by_chance(i))).collect();
    world
}

/// C^td of both groups on the test part, after a training in `world`; `groups` are those that the metric distinguishes.
fn by_group(world: &World, groups: &[Option<GroupId>], config: &StrategyConfig) -> [f64; 2] {
    let folder = tempfile::tempdir().unwrap();
    let mut strategy = config.build(&world.spec(), &world.cells()).unwrap();
    world.fit(strategy.as_mut(), 10, folder.path(), &mut Silent, &AtomicBool::new(false)).unwrap();
    let grid = PredictionGrid::at_cut_points(&world.cut_points);
    let rule = CurveRule { head: world.head.as_ref(), grid: &grid };
    [0, 1].map(|g| {
        let of_group = |row: &usize| groups[*row] == Some(GroupId(g));
        let rows: Vec<usize> = world.test.iter().copied().filter(of_group).collect();
        let curves = SurvivalCurves::new(grid.times().to_vec(), world.curves(strategy.as_ref(), &rows, &rule)).unwrap();
        let outcomes = world.cohort.outcomes(&rows).unwrap();
        concordance_td(&outcomes, &curves, Reading::default(), TiedPredictions::Strict).unwrap().value
    })
}

#[test]
fn what_helps_when_labelling_functions_differ() {
    let domain = |inference| {
        let missing_attribute = MissingAttribute::Average;
        StrategyConfig::DomainIndependent(DomainIndependentConfig { inference, missing_attribute })
    };
    let methods = [
        StrategyConfig::Erm(NoSettings {}),
        domain(DomainInference::MeanLogits),
        domain(DomainInference::OwnGroup),
        StrategyConfig::ControlledAttribute(ControlledAttributeConfig::default()),
    ];
    let (mut gaps, mut worst) = ([0.0; 6], [0.0; 6]);
    for seed in 1..=5 {
        let table = || World::of(&HeadConfig::default(), 2_000, 1.5, seed);
        let (world, without) = (table(), placebo(table()));
        let of = |method: usize| by_group(&world, &world.groups, &methods[method]);
        let of_placebo = |method: usize| by_group(&without, &world.groups, &methods[method]);
        let found = [of(0), of(1), of(2), of(3), of_placebo(1), of_placebo(2)];
        println!(
            "table {seed}: C^td of groups a and b under erm, mean-logits, own-group, csa; mean-logits and own-group on a \
             placebo: {found:.3?}"
        );
        for (method, [a, b]) in found.into_iter().enumerate() {
            gaps[method] += (a - b) / 5.0;
            worst[method] += a.min(b) / 5.0;
        }
    }
    println!("mean gaps {gaps:.3?}, mean worst groups {worst:.3?}");
    assert!(gaps[0] > 0.1, "there is nothing to close: {gaps:?}");
    assert!(gaps[1].abs() < gaps[0], "mean-logits: {gaps:?}");
    assert!(gaps[1].abs() < gaps[4], "mean-logits against the placebo: {gaps:?}");
    assert!(worst[2] > worst[0] + 0.1, "own-group: {worst:?}");
    assert!(worst[2] > worst[5] + 0.1, "own-group against the placebo: {worst:?}");
    assert!((gaps[3] - gaps[0]).abs() < 0.15, "csa: {gaps:?}");
}
