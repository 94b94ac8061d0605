//! The metrics by which the models of a study are chosen and compared: three of survival curves, or three of a class.

use fairtte_metrics::Direction;
use fairtte_records::Monitor;
use serde::{Deserialize, Serialize};

/// Metrics of a study. The gaps of all are compared; further metrics of a class are recorded.
pub(crate) const N_MEASURES: usize = 3;

/// The AUC of all samples with weights for censoring, where the class is made from times: shown beside the AUC, by which models are
/// chosen and ranked.
pub(crate) const AUC_WITH_WEIGHTS: &str = "auc-weighted";

/// What the models of a study predict, and hence its metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measures {
    /// Survival curves; of one of several causes its incidence, whose metrics have the same names.
    #[default]
    Curves,
    /// The probability of a class.
    Class,
}

impl Measures {
    pub(crate) fn of_class(of_class: bool) -> Self {
        if of_class { Self::Class } else { Self::Curves }
    }

    /// Names in settings.
    pub(crate) fn names(self) -> [&'static str; N_MEASURES] {
        match self {
            Self::Curves => ["c-td", "auc-td", "ibs"],
            Self::Class => ["auc", "balanced-accuracy", "bce"],
        }
    }

    /// Titles.
    pub(crate) fn labels(self) -> [&'static str; N_MEASURES] {
        match self {
            Self::Curves => ["C^td", "AUC^td", "IBS"],
            Self::Class => ["AUC", "balanced acc.", "BCE"],
        }
    }

    /// Which values are better.
    pub(crate) fn direction(self, metric: usize) -> Direction {
        if matches!(self.names()[metric], "ibs" | "bce") { Direction::LowerIsBetter } else { Direction::HigherIsBetter }
    }

    /// What successive halving compares: the first metric, and that of the worst group.
    pub(crate) fn monitors(self) -> [Monitor; 2] {
        match self {
            Self::Curves => [Monitor::CTd, Monitor::WorstGroupCTd],
            Self::Class => [Monitor::Auc, Monitor::WorstGroupAuc],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_metric_is_the_one_that_halving_compares() {
        for measures in [Measures::Curves, Measures::Class] {
            let [overall, worst] = measures.monitors();
            assert_eq!((overall.name(), worst.overall()), (measures.names()[0], overall));
            assert_eq!(overall.direction(), measures.direction(0));
            assert_eq!(measures.direction(2), Direction::LowerIsBetter, "an error is smaller where it is better");
        }
    }
}
