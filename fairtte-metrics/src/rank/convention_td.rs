//! The conventions of C^td by name; what they compute is in `concordance_td_variants.rs`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::rank::{TiedPairs, TiedPredictions};

/// Which pairs are compared and how much tied ones count; the table is at the top of `concordance_td_variants.rs` and
/// in the guide.
///
/// Written as `strict`, `half`, `adjusted`, `survivaleval-dropped`, `survivaleval-predictions`, `survivaleval-times` or
/// `survivaleval-all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ConventionTd {
    /// The definition, comparing predictions exactly (`pycox` `antolini` with [`TiedPredictions::Strict`]).
    Antolini(TiedPredictions),
    /// `pycox` `adj_antolini`, comparing predictions exactly.
    Adjusted,
    /// `SurvivalEVAL`, predictions within [`TIE_TOLERANCE`](crate::rank::TIE_TOLERANCE) are tied.
    SurvivalEval(TiedPairs),
}

impl ConventionTd {
    /// All conventions.
    pub const ALL: [Self; 7] = [
        Self::Antolini(TiedPredictions::Strict),
        Self::Antolini(TiedPredictions::Half),
        Self::Adjusted,
        Self::SurvivalEval(TiedPairs::Dropped),
        Self::SurvivalEval(TiedPairs::Predictions),
        Self::SurvivalEval(TiedPairs::Times),
        Self::SurvivalEval(TiedPairs::All),
    ];
}

impl fmt::Display for ConventionTd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Antolini(ties) => ties.fmt(f),
            Self::Adjusted => f.write_str("adjusted"),
            Self::SurvivalEval(ties) => write!(f, "survivaleval-{ties}"),
        }
    }
}

impl From<ConventionTd> for String {
    fn from(convention: ConventionTd) -> Self {
        convention.to_string()
    }
}

impl TryFrom<String> for ConventionTd {
    type Error = MetricError;

    fn try_from(value: String) -> Result<Self, MetricError> {
        let named = Self::ALL.into_iter().find(|convention| convention.to_string() == value);
        let expected = "strict, half, adjusted, or survivaleval- and dropped, predictions, times or all";
        named.ok_or(MetricError::InvalidSetting { setting: "convention of C^td", value, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_convention_is_one_word_shown_as_in_files() {
        let names: Vec<String> = ConventionTd::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(names[..4], ["strict", "half", "adjusted", "survivaleval-dropped"]);
        for convention in ConventionTd::ALL {
            let written = serde_json::to_string(&convention).unwrap();
            assert_eq!(written, format!("\"{convention}\""));
            assert_eq!(serde_json::from_str::<ConventionTd>(&written).unwrap(), convention);
        }
        let unknown = serde_json::from_str::<ConventionTd>("\"antolini\"").unwrap_err();
        assert!(unknown.to_string().contains("expected strict, half, adjusted"), "{unknown}");
    }
}
