//! The order in which an epoch visits the rows of a part; it depends only on seed and epoch.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use fairtte_metrics::GroupId;
use fairtte_metrics::seeds::stream;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::Sampling;
use crate::{DataError, SettingsOf};

/// `n` of `rows`, or all if there are fewer, drawn without replacement from the stream `samples/NAME` of `seed`; in the order
/// of `rows`. O(rows).
///
/// ```
/// use fairtte_data::loader::draw_rows;
///
/// let rows = [2, 3, 5, 7, 11, 13];
/// let drawn = draw_rows(&rows, 3, 1, "test/sex/F");
/// assert_eq!(drawn, draw_rows(&rows, 3, 1, "test/sex/F"));
/// assert!(drawn.len() == 3 && drawn.is_sorted() && drawn.iter().all(|row| rows.contains(row)));
/// assert_eq!(draw_rows(&rows, 9, 1, "test/sex/F"), rows);
/// ```
pub fn draw_rows(rows: &[usize], n: usize, seed: u64, name: &str) -> Vec<usize> {
    let mut rng = stream(seed, &format!("samples/{name}"), &[]);
    let mut places: Vec<usize> = (0..rows.len()).collect();
    let (drawn, _) = places.partial_shuffle(&mut rng, n.min(rows.len()));
    drawn.sort_unstable();
    drawn.iter().map(|place| rows[*place]).collect()
}

/// The rows of an epoch in their order; no batch mixes rows of two runs.
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
            Ok(vec![(0..rows.len()).map(|_| rows[drawn(&cumulative, rng.random::<f64>() * total)]).collect()])
        }
        Sampling::Oversampled(cells) => Ok(vec![oversampled(rows, cells, &mut rng)?]),
    }
}

/// The first entry of the cumulative weights above `at`: a row of weight 0 has an empty interval and is never drawn.
fn drawn(cumulative: &[f64], at: f64) -> usize {
    cumulative.partition_point(|sum| *sum <= at).min(cumulative.len() - 1)
}

/// Every cell oversampled to the size of the largest, in random order.
fn oversampled(rows: &[usize], cells: &[Option<usize>], rng: &mut ChaCha8Rng) -> Result<Vec<usize>, DataError> {
    if cells.len() != rows.len() {
        return Err(DataError::ShapeMismatch { what: "list of cells", found: cells.len(), expected: rows.len() });
    }
    let mut order = Vec::new();
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (row, cell) in rows.iter().zip(cells) {
        match cell {
            Some(cell) => members.entry(*cell).or_default().push(*row),
            None => order.push(*row),
        }
    }
    let target = members.values().map(Vec::len).max().unwrap_or(0);
    for of_cell in members.values_mut() {
        let (n_copies, remainder) = (target / of_cell.len(), target % of_cell.len());
        for _ in 0..n_copies {
            order.extend_from_slice(of_cell);
        }
        let (once_more, _) = of_cell.partial_shuffle(rng, remainder);
        order.extend_from_slice(once_more);
    }
    order.shuffle(rng);
    Ok(order)
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
    let invalid = |value: f64, expected| DataError::setting(SettingsOf::Batches, "weights", value, expected);
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

/// How often each entry of `order` has appeared before it: it distinguishes repeated draws of a row in one epoch.
pub(super) fn earlier_draws(order: &[usize]) -> Vec<u64> {
    let mut counts: HashMap<usize, u64> = HashMap::new();
    let mut count = |row: &usize| {
        let count = counts.entry(*row).or_insert(0);
        *count += 1;
        *count - 1
    };
    order.iter().map(&mut count).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    // Ten samples in groups of 6, 3 and 1 with four events, weighted by group, by event and by both (weights are
    // 1 / (cells * samples of the cell)); draws at given uniform numbers, computed independently of this code in f64.
    fn epoch_order(rows: &[usize], sampling: &Sampling, seed: u64, epoch: u64) -> Result<Vec<usize>, DataError> {
        sampling.order(rows, seed, epoch)
    }

    #[test]
    fn draws_are_those_of_the_worked_cases() {
        let uniform = [0.0, 0.05, 0.2, 0.333, 0.34, 0.5, 0.6, 0.7, 0.75, 0.999_999];
        let cases: [([usize; 10], [usize; 10]); 3] = [
            ([0, 0, 0, 0, 0, 0, 1, 1, 1, 2], [0, 0, 3, 5, 6, 7, 8, 9, 9, 9]),
            ([1, 0, 0, 1, 0, 0, 1, 1, 0, 0], [0, 0, 1, 3, 3, 5, 6, 6, 7, 9]),
            ([1, 0, 0, 1, 0, 0, 3, 3, 2, 4], [0, 0, 3, 4, 4, 7, 8, 8, 8, 9]),
        ];
        let mut n_compared = 0;
        for (cells, expected) in cases {
            let n_cells = cells.iter().collect::<std::collections::BTreeSet<_>>().len();
            let size = |cell: &usize| cells.iter().filter(|other| *other == cell).count();
            let weights: Vec<f64> = cells.iter().map(|cell| 1.0 / (n_cells * size(cell)) as f64).collect();
            let cumulative = cumulative_weights(&weights, 10).unwrap();
            for (at, expected) in uniform.iter().zip(expected) {
                assert_eq!(drawn(&cumulative, at * cumulative[9]), expected, "{cells:?} at {at}");
                n_compared += 1;
            }
        }
        assert_eq!(n_compared, 30);
    }

    #[test]
    fn every_cell_is_repeated_up_to_the_largest_and_rows_without_one_come_once() {
        let rows = [10, 11, 12, 13, 14, 15, 16, 17, 18];
        let cells = [Some(7), Some(7), Some(7), Some(7), Some(7), Some(2), Some(2), None, Some(4)];
        let sampling = Sampling::Oversampled(cells.to_vec());
        let order = epoch_order(&rows, &sampling, 3, 0).unwrap();
        let count = |row: usize| order.iter().filter(|other| **other == row).count();
        assert_eq!(order.len(), 16);
        assert!((10..15).all(|row| count(row) == 1) && count(17) == 1 && count(18) == 5);
        // Five draws from two rows: two full copies of both, and one of them once more.
        assert!([(2, 3), (3, 2)].contains(&(count(15), count(16))), "{order:?}");
        assert_eq!(order, epoch_order(&rows, &sampling, 3, 0).unwrap(), "the same seed and epoch");
        assert_ne!(order, epoch_order(&rows, &sampling, 3, 1).unwrap());
        let more_of_15 = |epoch: &u64| {
            let order = epoch_order(&rows, &sampling, 3, *epoch).unwrap();
            order.iter().filter(|row| **row == 15).count() == 3
        };
        let n = (0..200).filter(more_of_15).count();
        assert!((70..130).contains(&n), "the extra row is drawn again in each epoch: {n} of 200");
    }

    #[test]
    fn nothing_to_repeat_and_wrong_lengths_are_told_apart() {
        assert_eq!(epoch_order(&[], &Sampling::Oversampled(vec![]), 3, 0).unwrap(), [0_usize; 0]);
        let mut order = epoch_order(&[4, 5], &Sampling::Oversampled(vec![None, None]), 3, 0).unwrap();
        order.sort_unstable();
        assert_eq!(order, [4, 5]);
        let error = epoch_order(&[4, 5], &Sampling::Oversampled(vec![None]), 3, 0).unwrap_err();
        assert!(error.to_string().contains("list of cells"), "{error}");
    }
}
