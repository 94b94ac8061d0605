//! Whose inputs a sample of the shifted group has, and which samples leave the training part.
//!
//! Of `n` training samples of the group the `round(undersample x n)` whose identities come first in the order of a keyed hash
//! leave the training part; of the others the `round(permute x n)` first of another hash exchange their inputs: each has those of the
//! next one in that order, and the last those of the first. No sample keeps its own inputs, and none has those of a sample that left.
//! A single sample has no other to exchange with. Two samples of one subject may exchange films.

use std::collections::{BTreeMap, BTreeSet};

use fairtte_metrics::Groups;

use super::{ShiftConfig, Target, first_by_hash, key};
use crate::DataError;
use crate::cohort::Cohort;

/// Rows that a shift exchanges or leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShiftedRows {
    /// By row whose inputs are exchanged, the row whose inputs it has.
    givers: BTreeMap<usize, usize>,
    /// Rows that leave the training part.
    pub left_out: BTreeSet<usize>,
}

impl ShiftedRows {
    /// The row whose inputs the sample at `row` has, if not its own.
    pub fn giver(&self, row: usize) -> Option<usize> {
        self.givers.get(&row).copied()
    }

    /// Samples with the inputs of another.
    pub fn n_permuted(&self) -> usize {
        self.givers.len()
    }

    /// The row whose inputs every one of `n` rows has, `[n]`.
    pub fn inputs(&self, n: usize) -> Vec<usize> {
        (0..n).map(|row| self.giver(row).unwrap_or(row)).collect()
    }
}

/// The rows that `config` exchanges or leaves out; the arguments are those of [`apply_shift`](super::apply_shift).
///
/// # Errors
/// As [`apply_shift`](super::apply_shift).
///
/// # Panics
/// If a row is not below the number of samples.
pub fn shifted_rows(
    cohort: &Cohort,
    train_rows: &[usize],
    groups: &[Groups],
    config: &ShiftConfig,
    seed: u64,
) -> Result<ShiftedRows, DataError> {
    let target = Target::find(cohort, train_rows, groups, config)?;
    Ok(of_target(cohort, &target.rows, config, seed))
}

/// The same of the training rows of the group.
pub(super) fn of_target(cohort: &Cohort, rows: &[usize], config: &ShiftConfig, seed: u64) -> ShiftedRows {
    let first = |share: Option<f64>, rows: &[usize], name: &str| match share {
        Some(share) => first_by_hash(cohort, rows, share, &key(seed, name)),
        None => Vec::new(),
    };
    // One sample of the group stays, however large the share.
    let left_out = first(config.undersample, rows, "shift-undersample").into_iter().take(rows.len() - 1);
    let left_out: BTreeSet<usize> = left_out.collect();
    let kept: Vec<usize> = rows.iter().copied().filter(|row| !left_out.contains(row)).collect();
    let drawn = first(config.permute, &kept, "shift-permute");
    let next = drawn.iter().skip(1).chain(drawn.first()).copied();
    let givers = drawn.iter().copied().zip(next).filter(|(row, giver)| row != giver).collect();
    ShiftedRows { givers, left_out }
}
