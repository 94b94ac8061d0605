//! The losses of the adversaries within strata, and the balanced loss of the task.

use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;

use crate::strategies::batch_cells::{BatchCells, own_column};
use crate::strategies::groups::weighted_sum;

/// Weight of a sample in the loss of its stratum, which is divided by their sum.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Weights {
    /// 1 / number of samples of its cell in the batch: every group there has the same weight.
    Batch,
    /// 1 / P(group | stratum) in training, as samples are drawn, `[n_strata][n_groups]`: equal weights of the groups on
    /// average.
    Training(Vec<Vec<f64>>),
}

impl Weights {
    pub(super) fn of(&self, cells: &BatchCells, stratum: usize, group: usize) -> f64 {
        match self {
            Self::Batch => 1.0 / cells.n(stratum, group) as f64,
            Self::Training(table) => table[stratum][group],
        }
    }
}

/// Weights 1 / P(group | stratum) from the number of training samples, `[n_strata][n_groups]`, and how often one sample of
/// each group is drawn, `[n_groups]`, up to a factor. A cell without a sample gets 0: no batch has one of it.
pub(super) fn training_weights(counts: &[Vec<usize>], rates: &[f64]) -> Weights {
    let of_stratum = |counts: &Vec<usize>| {
        let drawn: Vec<f64> = counts.iter().zip(rates).map(|(of_cell, rate)| *of_cell as f64 * rate).collect();
        let n: f64 = drawn.iter().sum();
        drawn.into_iter().map(|of_cell| if of_cell > 0.0 { n / of_cell } else { 0.0 }).collect()
    };
    Weights::Training(counts.iter().map(of_stratum).collect())
}

/// Loss of the adversary of every stratum in the batch, `[1]` each; `logits(stratum, rows)` returns its logits for
/// these rows of the batch, `[n, n_groups]`. An adversary without a sample is not evaluated, so neither momentum nor
/// weight decay changes it.
pub(super) fn adversary_losses(
    cells: &BatchCells,
    weights: &Weights,
    logits: impl Fn(usize, &[usize]) -> Tensor<2>,
) -> Vec<Tensor<1>> {
    let of_stratum = |stratum| {
        let (rows, groups) = cells.members(stratum);
        let ask = || stratum_loss(logits(stratum, &rows), &groups, |group| weights.of(cells, stratum, group));
        (!rows.is_empty()).then(ask)
    };
    (0..cells.n_strata()).filter_map(of_stratum).collect()
}

/// Mean over the strata in the batch; `None` without any.
pub(super) fn mean_over_strata(losses: Vec<Tensor<1>>) -> Option<Tensor<1>> {
    let n = losses.len();
    losses.into_iter().reduce(|sum, loss| sum + loss).map(|sum| sum * (1.0 / n as f64))
}

/// Weighted mean cross-entropy of the samples of one stratum: logits `[n, n_groups]`, groups `[n]` and the weight of each
/// group -> `[1]`.
fn stratum_loss(logits: Tensor<2>, groups: &[usize], weight: impl Fn(usize) -> f64) -> Tensor<1> {
    let weights: Vec<f64> = groups.iter().map(|group| weight(*group)).collect();
    let sum: f64 = weights.iter().sum();
    let shares: Vec<f64> = weights.into_iter().map(|weight| weight / sum).collect();
    let losses = own_column(log_softmax(logits, 1), groups).neg(); // [n]
    weighted_sum(&losses, shares)
}

/// Coefficient of the task loss of every sample, `[batch]`: every stratum in the batch gets the same total weight.
/// Samples without a stratum keep their share 1/n; those that are not counted get 0.
pub(super) fn task_coefficients(strata: &[Option<usize>], counted: &[bool]) -> Vec<f64> {
    let mut counts = vec![0_usize; strata.iter().flatten().max().map_or(0, |last| last + 1)];
    for stratum in strata.iter().zip(counted).filter_map(|(stratum, counted)| stratum.filter(|_| *counted)) {
        counts[stratum] += 1;
    }
    let n = counted.iter().filter(|counted| **counted).count().max(1) as f64;
    let share = counts.iter().sum::<usize>() as f64 / n;
    let n_present = counts.iter().filter(|n| **n > 0).count() as f64;
    let of_sample = |(stratum, counted): (&Option<usize>, &bool)| match stratum {
        _ if !counted => 0.0,
        Some(stratum) => share / (n_present * counts[*stratum] as f64),
        None => 1.0 / n,
    };
    strata.iter().zip(counted).map(of_sample).collect()
}
