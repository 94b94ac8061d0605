//! What can go wrong between outcomes and losses.

/// Why time could not be discretised or a head could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SurvivalError {
    /// Cut points need at least two points.
    #[error("time.intervals is {found}, expected at least 2 cut points (0 and the largest training time)")]
    TooFewIntervals {
        /// Number found.
        found: usize,
    },
    /// There is nothing to learn from.
    #[error("the {part} part has {n} samples and no observed event, expected at least one")]
    NoEvent {
        /// Name of the part.
        part: &'static str,
        /// Number of its samples.
        n: usize,
    },
    /// A setting is outside its range.
    #[error("{key} is {value}, expected {expected}")]
    Setting {
        /// Name of the setting.
        key: &'static str,
        /// Value found.
        value: f64,
        /// Range in words.
        expected: &'static str,
    },
}
