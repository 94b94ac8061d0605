//! When two predictions are tied, and what tied pairs count in a concordance.
//!
//! With C concordant, D discordant and T tied comparable pairs and E pairs of events at the same time:
//!
//! ```text
//! Dropped      C / (C + D)                    Predictions  (C + T/2) / (C + D + T)
//! Times        (C + E/2) / (C + D + E)        All          (C + T/2 + E/2) / (C + D + T + E)
//! ```
//!
//! Names and formulas are those of `SurvivalEVAL` 0.9.0 (`ties=` "None", "Risk", "Time", "All"), whose recorded values
//! they reproduce; `Predictions` is Harrell's definition and what `scikit-survival`, `lifelines`, `torchsurv` and R
//! use.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::rank::auc_td::TIE_TOLERANCE;

/// When two predictions are tied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TieTest {
    /// If they differ by at most [`TIE_TOLERANCE`] (`scikit-survival`, `SurvivalEVAL`, `torchsurv`).
    #[default]
    Near,
    /// If they are equal (`lifelines`, R `survival`, `pycox`).
    Exact,
}

impl TieTest {
    /// The largest difference of two tied predictions.
    pub fn tolerance(self) -> f64 {
        match self {
            Self::Near => TIE_TOLERANCE,
            Self::Exact => 0.0,
        }
    }
}

/// Which tied pairs count one half; the others are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TiedPairs {
    /// None of them.
    Dropped,
    /// Comparable pairs with tied predictions.
    #[default]
    Predictions,
    /// Pairs of events at the same time, whatever their predictions; comparable pairs with tied predictions are dropped.
    Times,
    /// Both.
    All,
}

/// The pairs of a concordance by kind, each a number of pairs or the sum of their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PairSums {
    pub(crate) concordant: f64,
    pub(crate) discordant: f64,
    pub(crate) tied: f64,
    /// Unordered pairs of events at the same time.
    pub(crate) tied_events: f64,
}

impl PairSums {
    /// The score of the pairs and how many of them count, or the error `undefined` if no pair counts.
    pub(crate) fn share(&self, ties: TiedPairs, undefined: MetricError) -> Result<(f64, f64), MetricError> {
        let predictions = if matches!(ties, TiedPairs::Predictions | TiedPairs::All) { self.tied } else { 0.0 };
        let events = if matches!(ties, TiedPairs::Times | TiedPairs::All) { self.tied_events } else { 0.0 };
        let score = self.concordant + 0.5 * (predictions + events);
        let total = self.concordant + self.discordant + predictions + events;
        if total > 0.0 { Ok((score, total)) } else { Err(undefined) }
    }
}

/// Why no pair is left: no event, no comparable pair, or nothing but tied ones.
pub(crate) fn no_pair(n: usize, n_events: usize, n_tied: u64) -> MetricError {
    match (n_events, n_tied) {
        (0, _) => MetricError::NoEvents { n },
        (_, 0) => MetricError::NoComparablePairs { n, n_events },
        _ => MetricError::OnlyTiedPairs { n_tied },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_takes_its_tied_pairs_as_one_half() {
        // The example of 12 samples with times on a grid: 31 concordant of 44, 2 tied, 3 pairs of tied events.
        let sums = PairSums { concordant: 31.0, discordant: 11.0, tied: 2.0, tied_events: 3.0 };
        let share = |ties| sums.share(ties, no_pair(12, 8, 2)).unwrap();
        assert_eq!(share(TiedPairs::Dropped), (31.0, 42.0));
        assert_eq!(share(TiedPairs::Predictions), (32.0, 44.0));
        assert_eq!(share(TiedPairs::Times), (32.5, 45.0));
        assert_eq!(share(TiedPairs::All), (33.5, 47.0));
    }

    #[test]
    fn a_rule_that_leaves_no_pair_says_why() {
        let tied = PairSums { tied: 4.0, ..PairSums::default() };
        assert_eq!(tied.share(TiedPairs::Dropped, no_pair(5, 2, 4)), Err(MetricError::OnlyTiedPairs { n_tied: 4 }));
        assert_eq!(tied.share(TiedPairs::Predictions, no_pair(5, 2, 4)), Ok((2.0, 4.0)));
        assert_eq!(no_pair(5, 0, 0), MetricError::NoEvents { n: 5 });
        assert_eq!(no_pair(5, 2, 0), MetricError::NoComparablePairs { n: 5, n_events: 2 });
    }
}
