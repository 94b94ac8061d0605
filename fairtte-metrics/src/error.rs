//! What can go wrong in a metric; never a NaN, always a reason.

/// Why a metric could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// Two arrays that must describe the same samples have different lengths.
    #[error("{found} {what} for {expected} samples, expected one each")]
    LengthMismatch {
        /// What was counted.
        what: &'static str,
        /// Number found.
        found: usize,
        /// Number of samples.
        expected: usize,
    },
    /// A time is not a finite number above 0.
    #[error("time of row {row} is {time}, expected a finite number > 0")]
    InvalidTime {
        /// Row, counted from 0.
        row: usize,
        /// The value found.
        time: f64,
    },
    /// A membership points past the last level of its attribute.
    #[error("row {row} of attribute \"{attribute}\" names a group beyond its {n_levels} levels")]
    UnknownGroup {
        /// Name of the attribute.
        attribute: String,
        /// Row, counted from 0.
        row: usize,
        /// Number of levels.
        n_levels: usize,
    },
}
