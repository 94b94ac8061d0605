//! Permutation importance on out-of-bag samples, tree by tree.
//!
//! For every tree: Harrell's C of the samples that it was grown without, minus that C after the values of one column were permuted among
//! these samples. The importance of the column is the mean over trees; a tree that does not split by the column counts 0.
//! Sources: Breiman 2001, <https://doi.org/10.1023/A:1010933404324>, section 10; Cutler's manual of random forests; with 1 - C as the
//! error of a survival tree as in ranger (`importance = "permutation"`), whose definition this is. randomForestSRC permutes tree by
//! tree as well (`importance = "permute"`), but compares errors of blocks of 10 trees (`block.size`); with a block of 1 tree it is
//! this importance.

use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use ndarray::Array2;
use rand::seq::SliceRandom as _;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::RandomSurvivalForest;
use super::out_of_bag::concordance;
use super::tree::{Tree, TreeNode};
use crate::ClassicalError;

/// Permutation importance of the columns of a forest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Importance {
    /// By column, in the order of the fit.
    pub columns: Vec<ColumnImportance>,
    /// Trees behind them: those whose out-of-bag samples have a pair to compare.
    pub n_trees: usize,
}

/// Permutation importance of a column.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ColumnImportance {
    /// By how much Harrell's C of a tree falls, in [-1, 1]; about 0 for a column without effect.
    pub value: f64,
    /// Standard error over trees: the standard deviation of the differences, divided by the root of their number. What another forest
    /// of the same samples would change; other samples would change more.
    pub standard_error: f64,
}

impl RandomSurvivalForest {
    /// The importance of every column, from the training samples: their covariates `[n, p]` and outcomes are given again. Permutations
    /// are drawn from `seed`. O(trees p n log n), in parallel over trees.
    ///
    /// # Errors
    /// [`ClassicalError`] if the samples cannot be those of the fit, [`ClassicalError::NoneOutOfBag`] if fewer than two trees have
    /// out-of-bag samples with a pair to compare.
    pub fn importance(
        &self,
        columns: &Array2<f64>,
        outcomes: &Outcomes,
        seed: u64,
    ) -> Result<Importance, ClassicalError> {
        let left_out = self.left_out(columns)?;
        let (found, expected) = (outcomes.n(), self.n_samples);
        if found != expected {
            return Err(ClassicalError::OutcomesOf { found, expected });
        }
        let of_tree = |place: usize| {
            let rows: Vec<usize> = (0..self.n_samples).filter(|row| left_out.contains(place, *row)).collect();
            let samples = OutOfBagSamples { columns, outcomes: outcomes.select(&rows), rows };
            samples.falls(&self.trees[place], self.n_columns, seed, place)
        };
        let falls: Vec<Vec<f64>> = (0..self.trees.len()).into_par_iter().filter_map(of_tree).collect();
        let n = falls.len() as f64;
        if falls.len() < 2 {
            return Err(ClassicalError::NoneOutOfBag);
        }
        let of_column = |column: usize| {
            let value = falls.iter().map(|falls| falls[column]).sum::<f64>() / n;
            let squares: f64 = falls.iter().map(|falls| (falls[column] - value).powi(2)).sum();
            ColumnImportance { value, standard_error: (squares / (n - 1.0) / n).sqrt() }
        };
        Ok(Importance { columns: (0..self.n_columns).map(of_column).collect(), n_trees: falls.len() })
    }
}

/// The samples that a tree was grown without.
struct OutOfBagSamples<'a> {
    columns: &'a Array2<f64>,
    rows: Vec<usize>,
    outcomes: Outcomes,
}

impl OutOfBagSamples<'_> {
    /// By column, how much C falls; `None` if no pair can be compared.
    fn falls(&self, tree: &Tree, n_columns: usize, seed: u64, place: usize) -> Option<Vec<f64>> {
        let risk = |values: &dyn Fn(usize, usize) -> f64| {
            let of_sample = |sample: usize| tree.leaf(|column| values(sample, column)).mortality;
            (0..self.rows.len()).map(of_sample).collect()
        };
        // Without an event or a later time there is no pair, whatever the risks.
        let c = |risk: Vec<f64>| concordance(&self.outcomes, risk).ok();
        let intact = c(risk(&|sample, column| self.columns[[self.rows[sample], column]]))?;
        let mut is_used = vec![false; n_columns];
        for node in &tree.nodes {
            if let TreeNode::Split { column, .. } = node {
                is_used[*column as usize] = true;
            }
        }
        let of_column = |permuted: usize| {
            if !is_used[permuted] {
                return Some(0.0);
            }
            let mut rows = self.rows.clone();
            rows.shuffle(&mut stream(seed, "classical/forest/importance", &[place as u64, permuted as u64]));
            let value = |sample: usize, column: usize| {
                self.columns[[if column == permuted { rows[sample] } else { self.rows[sample] }, column]]
            };
            Some(intact - c(risk(&value))?)
        };
        (0..n_columns).map(of_column).collect()
    }
}
