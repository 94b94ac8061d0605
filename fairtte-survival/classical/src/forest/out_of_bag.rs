//! Predictions of training samples by the trees that were grown without them.
//!
//! The draws of a tree come first in its random stream, so they are drawn again here and need no place in the forest.

use fairtte_metrics::rank::{TieTest, TiedPairs, harrell_concordance};
use fairtte_metrics::{Outcomes, Risk, SurvivalCurves};
use ndarray::{Array2, Axis};
use rayon::prelude::*;

use super::draw::draw;
use super::settings::Sampling;
use super::{RandomSurvivalForest, tree_stream};
use crate::ClassicalError;
use crate::estimator::check_covariates;

/// Predictions of every training sample by the trees that were grown without it.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOfBag {
    /// Expected mortality, `[n]`; `None` of a sample that every tree was grown from.
    pub risk: Vec<Option<f64>>,
    /// Trees behind each, `[n]`.
    pub n_trees: Vec<u32>,
}

impl OutOfBag {
    /// The out-of-bag error: 1 - Harrell's C of the samples that have an out-of-bag risk, in [0, 1]; 1/2 = no order.
    ///
    /// The prediction error of ranger and randomForestSRC. They differ in pairs at the same time: here an event and a censoring at
    /// the same time are a pair that may be concordant, as Harrell defines; ranger scores it 0 or 1/2.
    ///
    /// # Errors
    /// [`ClassicalError::NoneOutOfBag`] if no sample has a risk, [`ClassicalError::Length`] if `outcomes` are of other samples,
    /// [`ClassicalError::Metric`] if there is no pair to compare.
    pub fn error(&self, outcomes: &Outcomes) -> Result<f64, ClassicalError> {
        let (found, expected) = (outcomes.n(), self.risk.len());
        if found != expected {
            return Err(ClassicalError::OutcomesOf { found, expected });
        }
        let (rows, risk): (Vec<usize>, Vec<f64>) =
            self.risk.iter().enumerate().filter_map(|(row, risk)| risk.map(|risk| (row, risk))).unzip();
        if rows.is_empty() {
            return Err(ClassicalError::NoneOutOfBag);
        }
        Ok(1.0 - concordance(&outcomes.select(&rows), risk)?)
    }
}

/// Harrell's C.
pub(super) fn concordance(outcomes: &Outcomes, risk: Vec<f64>) -> Result<f64, ClassicalError> {
    Ok(harrell_concordance(outcomes, &Risk::new(risk)?, TieTest::Near, TiedPairs::Predictions)?.value)
}

/// Out-of-bag survival curves, of the samples that some tree was grown without.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOfBagCurves {
    /// Rows of the training data, ascending.
    pub rows: Vec<usize>,
    /// Their curves, in this order.
    pub curves: SurvivalCurves,
}

/// By tree, the rows that it was grown without, as bits.
pub(super) struct LeftOut {
    bits: Vec<Vec<u64>>,
}

impl LeftOut {
    pub(super) fn contains(&self, tree: usize, row: usize) -> bool {
        self.bits[tree][row / 64] >> (row % 64) & 1 == 1
    }
}

impl RandomSurvivalForest {
    /// Predictions of the training samples, whose covariates `[n, p]` are given again, by the trees that were grown without them.
    ///
    /// # Errors
    /// [`ClassicalError`] if the covariates cannot be those of the fit.
    pub fn out_of_bag(&self, columns: &Array2<f64>) -> Result<OutOfBag, ClassicalError> {
        let left_out = self.left_out(columns)?;
        let (sums, n_trees) = self.mortality(columns, |tree, row| left_out.contains(tree, row));
        let risk = sums.iter().zip(&n_trees).map(|(sum, n)| (*n > 0).then(|| sum / f64::from(*n))).collect();
        Ok(OutOfBag { risk, n_trees })
    }

    /// Survival at the times of `grid` of the training samples, whose covariates `[n, p]` are given again, by the trees that were
    /// grown without them.
    ///
    /// # Errors
    /// [`ClassicalError`] if the covariates cannot be those of the fit or `grid` is no time grid,
    /// [`ClassicalError::NoneOutOfBag`] if every tree was grown from all samples.
    pub fn out_of_bag_curves(&self, columns: &Array2<f64>, grid: &[f64]) -> Result<OutOfBagCurves, ClassicalError> {
        let left_out = self.left_out(columns)?;
        let is_out = |row: usize| (0..self.trees.len()).any(|tree| left_out.contains(tree, row));
        let rows: Vec<usize> = (0..self.n_samples).filter(|row| is_out(*row)).collect();
        if rows.is_empty() {
            return Err(ClassicalError::NoneOutOfBag);
        }
        let survival = self.survival(columns, grid, |tree, row| left_out.contains(tree, row));
        let curves = SurvivalCurves::new(grid.to_vec(), survival.select(Axis(0), &rows))?;
        Ok(OutOfBagCurves { rows, curves })
    }

    /// Checks that the covariates may be those of the fit, and draws the samples of all trees again.
    pub(super) fn left_out(&self, columns: &Array2<f64>) -> Result<LeftOut, ClassicalError> {
        check_covariates(columns, self.n_columns)?;
        let (found, expected) = (columns.nrows(), self.n_samples);
        if found != expected || !self.units.fit(expected) {
            return Err(ClassicalError::Length { found, expected });
        }
        let of_tree = |drawn: &mut Vec<u32>, tree: usize| {
            let mut bits = vec![0; expected.div_ceil(64)];
            if self.settings.sampling != Sampling::All {
                draw(expected, &self.units, self.settings.sampling, drawn, &mut tree_stream(self.settings.seed, tree));
                for (row, _) in drawn.iter().enumerate().filter(|(_, drawn)| **drawn == 0) {
                    bits[row / 64] |= 1 << (row % 64);
                }
            }
            bits
        };
        let bits = (0..self.trees.len()).into_par_iter().map_init(Vec::new, of_tree).collect();
        Ok(LeftOut { bits })
    }
}
