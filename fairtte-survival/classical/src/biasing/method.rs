//! How a half is biased.

use ndarray::Array2;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// What is done to the drawn samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Biasing {
    /// Their rows of covariates are exchanged among them at random: covariates that do not belong to the outcome. Stands for bias
    /// of measurement.
    Permutation,
    /// Every covariate is exchanged by itself, so that the covariates of a sample do not belong together either (the paper's
    /// program). Columns that encode one covariate stay together.
    ColumnPermutation,
    /// They are deleted: fewer samples. Stands for bias of representation.
    Undersampling,
}

impl Biasing {
    /// All, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Permutation, Self::ColumnPermutation, Self::Undersampling];

    /// Its name in files and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Permutation => "permutation",
            Self::ColumnPermutation => "column-permutation",
            Self::Undersampling => "undersampling",
        }
    }

    /// The method of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// A biased half: the rows of the table that it has, and the row whose values each of its covariates has.
pub(super) struct Biased {
    /// Rows of the table, `[n]`.
    pub(super) rows: Vec<usize>,
    /// Covariates, `[n, p]`.
    pub(super) covariates: Array2<f64>,
    /// Samples that were drawn.
    pub(super) n_drawn: usize,
}

/// Draws every one of `rows` with probability `share` and biases the drawn. `covariates` are those of the table, `[n, p]`, and
/// `variables` the number of the covariate that each column encodes, `[p]`.
pub(super) fn bias(
    method: Biasing,
    rows: &[usize],
    share: f64,
    covariates: &Array2<f64>,
    variables: &[usize],
    rng: &mut ChaCha8Rng,
) -> Biased {
    let is_drawn: Vec<bool> = rows.iter().map(|_| rng.random::<f64>() < share).collect();
    let drawn: Vec<usize> = (0..rows.len()).filter(|place| is_drawn[*place]).collect();
    let n_drawn = drawn.len();
    if method == Biasing::Undersampling {
        let rows: Vec<usize> = rows.iter().zip(&is_drawn).filter(|(_, drawn)| !**drawn).map(|(row, _)| *row).collect();
        let covariates = covariates.select(ndarray::Axis(0), &rows);
        return Biased { rows, covariates, n_drawn };
    }
    let mut changed = covariates.select(ndarray::Axis(0), rows);
    let mut givers = drawn.clone();
    givers.shuffle(rng);
    let mut of_variable: Option<usize> = None;
    for (column, variable) in variables.iter().enumerate() {
        if method == Biasing::ColumnPermutation && of_variable.is_some_and(|last| last != *variable) {
            givers.shuffle(rng);
        }
        of_variable = Some(*variable);
        for (place, giver) in drawn.iter().zip(&givers) {
            changed[[*place, column]] = covariates[[rows[*giver], column]];
        }
    }
    Biased { rows: rows.to_vec(), covariates: changed, n_drawn }
}
