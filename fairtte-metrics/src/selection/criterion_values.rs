//! The value that each criterion of model selection gives to a run, and which runs it rules out.
//!
//! See `selection` for the criteria and their sources.

use std::cmp::Ordering;

use crate::selection::{Measured, Run, RunStanding, RunTable, RunValue, WorstGroup};
use crate::{Direction, MetricError};

/// How far, relative to the base utility, rounding may carry a run that lies exactly on the limit of tolerated loss.
const LIMIT_ROUNDING: f64 = 1e-12;

/// Whether `a` is at least as good as `b` everywhere and better somewhere.
pub(crate) fn dominates(direction: Direction, a: &[f64], b: &[f64]) -> bool {
    let orders = || a.iter().zip(b).map(|(a, b)| compare(direction, *a, *b));
    orders().all(Ordering::is_ge) && orders().any(Ordering::is_gt)
}

/// `Greater` if `a` is better than `b`; 0 and -0 are equal.
pub(crate) fn compare(direction: Direction, a: f64, b: f64) -> Ordering {
    let order = a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    match direction {
        Direction::HigherIsBetter => order,
        Direction::LowerIsBetter => order.reverse(),
    }
}

/// As [`compare`], with an undefined value the worst.
pub(crate) fn compare_defined(direction: Direction, a: &Measured, b: &Measured) -> Ordering {
    match (a.value(), b.value()) {
        (Some(a), Some(b)) => compare(direction, a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

pub(crate) fn by_utility(runs: &[&Run]) -> Vec<RunValue> {
    runs.iter().map(|run| eligible(run, defined(&run.utility))).collect()
}

pub(crate) fn by_gap(direction: Direction, runs: &[&Run], base_utility: f64, limit: f64) -> Vec<RunValue> {
    let slack = LIMIT_ROUNDING * base_utility.abs();
    let value = |run: &&Run| {
        let utility = defined(&run.utility);
        let tolerated = match direction {
            Direction::HigherIsBetter => utility >= limit - slack,
            Direction::LowerIsBetter => utility <= limit + slack,
        };
        let standing = if tolerated { RunStanding::Eligible } else { RunStanding::TooMuchLoss { limit } };
        RunValue { standing, ..eligible(run, defined(&run.gap)) }
    };
    runs.iter().map(value).collect()
}

/// The worst utility that is tolerated.
pub(crate) fn utility_limit(
    direction: Direction,
    base_utility: f64,
    tolerated_loss: f64,
    no_skill: Option<f64>,
) -> f64 {
    let skill = |no_skill| match direction {
        Direction::HigherIsBetter => f64::max(base_utility - no_skill, 0.0),
        Direction::LowerIsBetter => f64::max(no_skill - base_utility, 0.0),
    };
    let loss = tolerated_loss * no_skill.map_or(base_utility.abs(), skill);
    match direction {
        Direction::HigherIsBetter => base_utility - loss,
        Direction::LowerIsBetter => base_utility + loss,
    }
}

pub(crate) fn by_worst_group(direction: Direction, runs: &[&Run], worst_group: WorstGroup) -> Vec<RunValue> {
    let utilities: Vec<Vec<f64>> = runs.iter().map(|run| group_utilities(run)).collect();
    let of_all = worst_of_all(direction, &utilities);
    let value = |(run, own): (&&Run, &Vec<f64>)| {
        let worst = match worst_group {
            WorstGroup::OfEachRun => own.iter().copied().min_by(|a, b| compare(direction, *a, *b)),
            WorstGroup::OfAllRuns => Some(own[of_all]),
        };
        let dominating = utilities.iter().position(|other| dominates(direction, other, own));
        let standing =
            dominating.map_or(RunStanding::Eligible, |other| RunStanding::Dominated { by: runs[other].run.clone() });
        RunValue { standing, ..eligible(run, worst.expect("a table without groups was refused")) }
    };
    runs.iter().zip(&utilities).map(value).collect()
}

/// The first of the groups whose best utility over all runs is the worst.
fn worst_of_all(direction: Direction, utilities: &[Vec<f64>]) -> usize {
    let best = best_of_groups(direction, utilities);
    // `min_by` keeps the first of equal elements.
    (0..best.len()).min_by(|a, b| compare(direction, best[*a], best[*b])).unwrap_or(0)
}

fn best_of_groups(direction: Direction, utilities: &[Vec<f64>]) -> Vec<f64> {
    let n_groups = utilities.first().map_or(0, Vec::len);
    let best = |group: usize| utilities.iter().map(|run| run[group]).max_by(|a, b| compare(direction, *a, *b));
    (0..n_groups).filter_map(best).collect()
}

pub(crate) fn by_distance(table: &RunTable, runs: &[&Run]) -> Result<Vec<RunValue>, MetricError> {
    let utilities: Vec<Vec<f64>> = runs.iter().map(|run| group_utilities(run)).collect();
    let best = best_of_groups(table.direction, &utilities);
    let mut values = Vec::with_capacity(runs.len());
    for (run, own) in runs.iter().zip(&utilities) {
        let mut distance = 0.0_f64;
        for ((own, best), group) in own.iter().zip(&best).zip(&table.groups) {
            // `hypot` neither overflows nor loses small distances in their squares.
            distance = distance.hypot((own - best) / best);
            if !distance.is_finite() {
                return Err(MetricError::ZeroOptimum { group: group.clone(), best: *best });
            }
        }
        values.push(eligible(run, distance));
    }
    Ok(values)
}

fn eligible(run: &Run, value: f64) -> RunValue {
    RunValue { run: run.run.clone(), value, standing: RunStanding::Eligible }
}

fn group_utilities(run: &Run) -> Vec<f64> {
    run.group_utilities.iter().map(defined).collect()
}

fn defined(measured: &Measured) -> f64 {
    measured.value().expect("a run that lacks a needed value was excluded")
}
