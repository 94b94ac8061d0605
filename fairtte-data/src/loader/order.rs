//! In which order an epoch visits the rows of a part; nothing but seed and epoch decides it.

use std::collections::HashMap;
use std::ops::Range;

use fairtte_metrics::seeds::stream;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;

use super::Sampling;
use crate::DataError;

pub(super) fn epoch_order(rows: &[usize], sampling: &Sampling, seed: u64, epoch: u64) -> Result<Vec<usize>, DataError> {
    let mut rng = stream(seed, "order", &[epoch]);
    match sampling {
        Sampling::Sequential => Ok(rows.to_vec()),
        Sampling::Shuffled => {
            let mut order = rows.to_vec();
            order.shuffle(&mut rng);
            Ok(order)
        }
        Sampling::Weighted(weights) => {
            let cumulative = cumulative_weights(weights, rows.len())?;
            let total = cumulative.last().copied().unwrap_or(0.0);
            // The first entry above the draw: a row of weight 0 has no entry of its own and is never drawn.
            let draw = |_| {
                let at: f64 = rng.random::<f64>() * total;
                rows[cumulative.partition_point(|sum| *sum <= at).min(rows.len() - 1)]
            };
            Ok((0..rows.len()).map(draw).collect())
        }
    }
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

pub(super) fn batch_ranges(n: usize, batch_size: usize) -> Vec<Range<usize>> {
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
