//! What can go wrong between outcomes and losses.

/// Why time could not be discretised or a head could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SurvivalError {
    /// The number of cut points is outside its range.
    #[error("time.intervals is {found}, expected 2 to 10000 cut points")]
    Intervals {
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
