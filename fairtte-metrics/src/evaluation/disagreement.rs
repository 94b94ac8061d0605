//! How times of curves and observed times disagree, as [`MetricError`](crate::MetricError) says it: it imports nothing of the crate.

use std::fmt;

/// A time with six significant digits, for a message.
pub(crate) fn shortened(time: f64) -> f64 {
    format!("{time:.5e}").parse().unwrap_or(time)
}

/// How times of curves and observed times disagree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disagreement {
    /// No event lies within the times of the curves.
    NoOverlap(Option<UnitFactor>),
    /// The curves are more than 50 times as long as the follow-up, or half of the samples more than 50 times as long as
    /// the curves.
    HardlyAny(Option<UnitFactor>),
    /// The ranges differ by about the factor of two units, and the curves fit the outcomes far better after conversion.
    OtherUnits(UnitFactor),
}

/// A conversion of outcome times into the unit of the curves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitFactor {
    /// Unit that the curves seem to have.
    pub curves: &'static str,
    /// Unit that the outcomes seem to have.
    pub outcomes: &'static str,
    /// Number of the smaller unit in the larger.
    pub factor: f64,
    /// Whether the outcome times must be multiplied by the factor; otherwise they must be divided by it.
    pub multiply: bool,
}

impl UnitFactor {
    /// What an outcome time must be multiplied by.
    pub(super) fn scale(&self) -> f64 {
        if self.multiply { self.factor } else { self.factor.recip() }
    }
}

/// What to do with training times that disagree with evaluated ones: those are the `outcomes` of `factor`, and the training times its
/// `curves`.
pub(crate) fn of_training_times(factor: Option<&UnitFactor>) -> String {
    let same = "if the unit is the same, censor the longer of the two where the other ends";
    let Some(UnitFactor { curves, outcomes, factor, multiply }) = factor else {
        return format!("they hardly overlap, expected the same unit of time; {same}");
    };
    let verb = if *multiply { "divide" } else { "multiply" };
    format!("they look like {curves} and {outcomes}; {verb} the training times by {factor}; {same}")
}

impl fmt::Display for UnitFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { curves, outcomes, factor, multiply } = self;
        let verb = if *multiply { "multiply" } else { "divide" };
        write!(f, "they look like {curves} and {outcomes}; {verb} the outcome times by {factor}")
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same = "; if the unit is the same, censor the outcomes or cut the curves where the shorter of the two ends";
        match self {
            Self::NoOverlap(Some(factor)) => factor.fmt(f),
            Self::HardlyAny(Some(factor)) | Self::OtherUnits(factor) => write!(f, "{factor}{same}"),
            Self::NoOverlap(None) => {
                f.write_str("no event lies within the times of the curves, expected the same unit of time")
            }
            Self::HardlyAny(None) => write!(f, "they hardly overlap, expected the same unit of time{same}"),
        }
    }
}
