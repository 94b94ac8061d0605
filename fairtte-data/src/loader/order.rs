//! In which order an epoch visits the rows of a part; nothing but seed and epoch decides it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use fairtte_metrics::GroupId;
use fairtte_metrics::seeds::stream;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;

use super::Sampling;
use crate::DataError;

/// The rows of an epoch in their order; no batch holds rows of two runs.
pub(super) fn epoch_runs(
    rows: &[usize],
    sampling: &Sampling,
    seed: u64,
    epoch: u64,
) -> Result<Vec<Vec<usize>>, DataError> {
    let mut rng = stream(seed, "order", &[epoch]);
    match sampling {
        Sampling::Sequential => Ok(vec![rows.to_vec()]),
        Sampling::Shuffled => {
            let mut order = rows.to_vec();
            order.shuffle(&mut rng);
            Ok(vec![order])
        }
        Sampling::WithinGroups(groups) => {
            let mut runs = rows_by_group(rows, groups)?;
            runs.shuffle(&mut rng);
            for run in &mut runs {
                run.shuffle(&mut rng);
            }
            Ok(runs)
        }
        Sampling::Weighted(weights) => {
            let cumulative = cumulative_weights(weights, rows.len())?;
            let total = cumulative.last().copied().unwrap_or(0.0);
            // The first entry above the draw: a row of weight 0 has no entry of its own and is never drawn.
            let draw = |_| {
                let at: f64 = rng.random::<f64>() * total;
                rows[cumulative.partition_point(|sum| *sum <= at).min(rows.len() - 1)]
            };
            Ok(vec![(0..rows.len()).map(draw).collect()])
        }
    }
}

fn rows_by_group(rows: &[usize], groups: &[Option<GroupId>]) -> Result<Vec<Vec<usize>>, DataError> {
    if groups.len() != rows.len() {
        return Err(DataError::ShapeMismatch { what: "list of groups", found: groups.len(), expected: rows.len() });
    }
    let mut by_group: BTreeMap<GroupId, Vec<usize>> = BTreeMap::new();
    for (row, group) in rows.iter().zip(groups) {
        if let Some(group) = group {
            by_group.entry(*group).or_default().push(*row);
        }
    }
    Ok(by_group.into_values().collect())
}

fn cumulative_weights(weights: &[f64], n_rows: usize) -> Result<Vec<f64>, DataError> {
    if weights.len() != n_rows {
        return Err(DataError::ShapeMismatch { what: "list of weights", found: weights.len(), expected: n_rows });
    }
    let invalid =
        |value: f64, expected| DataError::InvalidSetting { key: "weights", value: value.to_string(), expected };
    if let Some(&weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
        return Err(invalid(weight, "finite numbers >= 0"));
    }
    let sums = weights.iter().scan(0.0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    });
    let cumulative: Vec<f64> = sums.collect();
    match cumulative.last() {
        Some(total) if !(total.is_finite() && *total > 0.0) => Err(invalid(*total, "weights with a finite sum > 0")),
        _ => Ok(cumulative),
    }
}

/// The batches of all runs, as ranges of their concatenation.
pub(super) fn runs_ranges(runs: &[Vec<usize>], batch_size: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut begin = 0;
    for run in runs {
        ranges.extend(batch_ranges(run.len(), batch_size).into_iter().map(|r| r.start + begin..r.end + begin));
        begin += run.len();
    }
    ranges
}

fn batch_ranges(n: usize, batch_size: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> =
        (0..n).step_by(batch_size).map(|begin| begin..n.min(begin + batch_size)).collect();
    if batch_size > 1 && ranges.len() > 1 && ranges.last().is_some_and(|last| last.len() == 1) {
        ranges.pop();
        ranges.last_mut().expect("at least one batch is left").end = n;
    }
    ranges
}

/// How often each entry of `order` has appeared before it: draws of one row in one epoch are told apart by it.
pub(super) fn earlier_draws(order: &[usize]) -> Vec<u64> {
    let mut counts: HashMap<usize, u64> = HashMap::new();
    let mut count = |row: &usize| {
        let count = counts.entry(*row).or_insert(0);
        *count += 1;
        *count - 1
    };
    order.iter().map(&mut count).collect()
}
