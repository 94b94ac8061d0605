//! LAFTR

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

use fairtte_metrics::GroupId;
use serde::{Deserialize, Serialize};

use super::batch_cells::{BatchCells, constant};

/// Which fairness the adversary stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaftrMode {
    /// Demographic parity: the adversary sees every sample.
    #[default]
    Dp,
    /// Equalised odds: it is told the stratum, and every (group, stratum) cell weighs the same.
    Eqodd,
    /// Equal opportunity in stratum 0.
    Eqopp0,
    /// Equal opportunity in stratum 1.
    Eqopp1,
}

impl LaftrMode {
    /// The cells that count, of `n_groups` groups and `n_strata` strata. `strata` is not read for [`Dp`](Self::Dp).
    fn cells(
        self,
        groups: &[Option<GroupId>],
        strata: &[Option<usize>],
        (n_groups, n_strata): (usize, usize),
    ) -> BatchCells {
        let only = |y: usize| -> Vec<_> { strata.iter().map(|stratum| (*stratum == Some(y)).then_some(0)).collect() };
        match self {
            Self::Dp => BatchCells::of_groups(groups, n_groups),
            Self::Eqodd => BatchCells::new(groups, strata, (n_groups, n_strata)),
            Self::Eqopp0 => BatchCells::new(groups, &only(0), (n_groups, 1)),
            Self::Eqopp1 => BatchCells::new(groups, &only(1), (n_groups, 1)),
        }
    }
}

/// Error of the adversary on every sample, 1 - p(own group): probabilities `[batch, n_groups]` -> `[batch]`.
fn errors(probabilities: Tensor<2>, cells: &BatchCells) -> Tensor<1> {
    cells.own(probabilities).neg() + 1.0
}

/// `L_adv` = J - (2 / G) sum over cells of the cell's mean error, `[1]`: J strata, G groups in training.
fn adversary_gain(errors: Tensor<1>, cells: &BatchCells, n_groups: usize) -> Tensor<1> {
    let coefficients = cells.coefficients(|y, g| 2.0 / (n_groups * cells.n(y, g)) as f64);
    let coefficients = constant(&coefficients, &errors);
    (errors * coefficients).sum().neg() + cells.n_strata() as f64
}

/// `L_adv` of the adversary's logits `[batch, n_groups]`, `[1]`.
fn gain_of_logits(logits: Tensor<2>, cells: &BatchCells, n_groups: usize) -> Tensor<1> {
    adversary_gain(errors(softmax(logits, 1), cells), cells, n_groups)
}

/// What encoder and head descend: the task and, times gamma, the adversary's gain.
fn for_network(task: Tensor<1>, gain: Tensor<1>, gamma: f64) -> Tensor<1> {
    task + gain * gamma
}

/// What the adversary descends: it ascends on its gain, times gamma.
fn for_adversary(gain: Tensor<1>, gamma: f64) -> Tensor<1> {
    gain * -gamma
}

#[cfg(test)]
#[path = "../../tests/inside/laftr.rs"]
mod tests;
