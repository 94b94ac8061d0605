//! Numbers that are no probabilities as a whole: percent, logits, scores.

use std::fmt;

use fairtte_metrics::SURVIVAL_TOLERANCE;

/// What numbers are that are no probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherScale {
    /// 100 p: none is negative, none exceeds 100.
    Percent,
    /// Logits or other scores on both sides of 0.
    Logit,
    /// Scores above 100.
    Risk,
}

impl OtherScale {
    /// What to do with the numbers.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Percent => "divide them by 100",
            Self::Logit => "write 1 / (1 + exp(-value)) if they are logits; other scores have no probability",
            Self::Risk => {
                "scores without a probability have ranks only, and calibration and thresholds need probabilities"
            }
        }
    }

    /// That of numbers between these.
    pub(super) fn of(lowest: f64, highest: f64) -> Self {
        match (lowest, highest) {
            (lowest, _) if lowest < -SURVIVAL_TOLERANCE => Self::Logit,
            (_, highest) if highest <= 100.0 * (1.0 + SURVIVAL_TOLERANCE) => Self::Percent,
            _ => Self::Risk,
        }
    }
}

impl fmt::Display for OtherScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Percent => "percent",
            Self::Logit => "logits or scores",
            Self::Risk => "scores",
        })
    }
}
