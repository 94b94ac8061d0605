//! LNL

use burn::tensor::Tensor;

use super::adversary::{cross_entropy, negative_entropy};
use super::batch_cells::BatchCells;
use super::reversal::reverse_gradient;

/// What encoder and head descend in phase 1: the task and, times lambda, the negative entropy of the predictor.
fn for_network(task: Tensor<1>, negative_entropy: Tensor<1>, lambda: f64) -> Tensor<1> {
    task + negative_entropy * lambda
}

/// What the predictor descends in phase 2, and the encoder ascends times mu: the cross-entropy of the groups.
fn for_predictor(
    representation: Tensor<2>,
    mu: f64,
    predictor: impl Fn(Tensor<2>) -> Tensor<2>,
    cells: &BatchCells,
) -> Tensor<1> {
    cross_entropy(predictor(reverse_gradient(representation, mu)), cells)
}

#[cfg(test)]
#[path = "../../tests/inside/lnl.rs"]
mod tests;
