//! Would this metric have noticed? The biasing experiment of Sonabend et al. (2022), "Flexible group fairness metrics for survival
//! analysis", Algorithm 1, <https://doi.org/10.48550/arXiv.2206.03256>.
//!
//! A table is cut into two random halves. A share sigma of one half is biased: the covariates of the drawn samples are exchanged
//! among them ([`Biasing::Permutation`]), or the drawn samples are deleted ([`Biasing::Undersampling`]). An estimator is
//! cross-validated within each half, and F = |`L_biased` - `L_unbiased`| is how far apart a measure L sees the two. A measure that
//! notices the bias has an F that grows with sigma.
//!
//! ```text
//! for every method, share sigma and repeat, each with random numbers of its own:
//!     halves         D_B, D_U, equal in size (of an odd number D_U has one sample more)
//!     drawn          every sample of D_B with probability sigma
//!     D_B            with the covariates of the drawn permuted, or without the drawn
//!     L_B, L_U       mean over three folds of the loss of the estimator, fitted to the other two
//!     F              |L_B - L_U|
//! ```
//!
//! [`cells`] lists what is computed, [`run_cell`] computes one of them, so that a run can be saved cell by cell and resumed, and
//! [`analyse`] makes the table of means, the regressions and the rank correlations of all.
//!
//! What the paper leaves open and its published program (<https://github.com/Vollmer-Lab/survival_fairness>, 2022) decides
//! otherwise: that program permutes every covariate by itself ([`Biasing::ColumnPermutation`] does), and deletes exact shares of
//! the events and of the censored; the text, and this module, draw samples with probability sigma. Both average losses over folds.

mod analysis;
mod cell;
mod folds;
mod measures;
mod method;

pub use analysis::{Analysis, MeasureSummary, ShareSummary, TableCorrelation, Trend, analyse};
pub use cell::{BiasingTable, Cell, CellResult, HalfLosses, cells, run_cell};
pub use measures::Measure;
pub use method::Biasing;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::ClassicalError;

/// Most repeats: more are a mistake.
const MOST_REPEATS: usize = 100_000;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BiasingSettings {
    /// How a half is biased, each once.
    pub methods: Vec<Biasing>,
    /// Probability with which a sample of the biased half is drawn, each in [0, 1) and once.
    pub shares: Vec<f64>,
    /// Repeats of every share, 1 to 100,000.
    pub repeats: usize,
    /// Folds of the cross-validation within a half, at least 2.
    pub folds: usize,
    /// The measures, each once.
    pub measures: Vec<Measure>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for BiasingSettings {
    /// The paper's: permutation and undersampling, shares 0 to 0.9 in steps of 0.1, ten repeats, three folds, eight measures.
    fn default() -> Self {
        Self {
            methods: vec![Biasing::Permutation, Biasing::Undersampling],
            shares: (0..10).map(|tenth| f64::from(tenth) / 10.0).collect(),
            repeats: 10,
            folds: 3,
            measures: Measure::PAPER.to_vec(),
            seed: 0,
        }
    }
}

impl BiasingSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ClassicalError::Setting`].
    pub fn check(&self) -> Result<(), ClassicalError> {
        let wrong = |setting, value: String, expected| Err(ClassicalError::Setting { setting, value, expected });
        if let Some(share) = self.shares.iter().find(|share| !(0.0..1.0).contains(*share)) {
            return wrong("shares", share.to_string(), "numbers in [0, 1)");
        }
        if let Some(share) = repeated(&self.shares) {
            return wrong("shares", share.to_string(), "each share once");
        }
        if let Some(method) = repeated(&self.methods) {
            return wrong("methods", method.name().to_owned(), "each method once");
        }
        if let Some(measure) = repeated(&self.measures) {
            return wrong("measures", measure.name().to_owned(), "each measure once");
        }
        for (setting, n) in
            [("shares", self.shares.len()), ("methods", self.methods.len()), ("measures", self.measures.len())]
        {
            if n == 0 {
                return wrong(setting, "empty".to_owned(), "at least one");
            }
        }
        if !(1..=MOST_REPEATS).contains(&self.repeats) {
            return wrong("repeats", self.repeats.to_string(), "a whole number from 1 to 100000");
        }
        if self.folds < 2 {
            return wrong("folds", self.folds.to_string(), "at least 2");
        }
        Ok(())
    }
}

fn repeated<T: PartialEq>(values: &[T]) -> Option<&T> {
    values.iter().enumerate().find(|(place, value)| values[..*place].contains(value)).map(|(_, value)| value)
}
