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
    /// A time is not a finite number, or lies below 0.
    #[error("time of row {row} is {time}, expected a finite number >= 0")]
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
    /// There is nothing to evaluate.
    #[error("no samples, expected at least one")]
    NoSamples,
    /// A time grid has no point.
    #[error("the time grid is empty, expected at least one time")]
    EmptyGrid,
    /// A point of a time grid is not finite, is negative, or does not lie above the point before it.
    #[error("point {index} of the time grid is {time}, expected finite times >= 0 in strictly increasing order")]
    InvalidGrid {
        /// Position in the grid, counted from 0.
        index: usize,
        /// The value found.
        time: f64,
    },
    /// The survival matrix does not have one column per grid point.
    #[error("survival has {columns} columns for a grid of {n_times} times, expected one each")]
    GridMismatch {
        /// Columns found.
        columns: usize,
        /// Points of the grid.
        n_times: usize,
    },
    /// A survival probability is not a number in [0, 1].
    #[error("survival of row {row} in column {column} is {value}, expected a number in [0, 1]")]
    InvalidSurvival {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// The value found.
        value: f64,
    },
    /// A survival curve rises.
    #[error(
        "survival of row {row} rises from {before} to {value} in column {column}, expected a curve that never rises"
    )]
    RisingSurvival {
        /// Row, counted from 0.
        row: usize,
        /// Column of the higher value, counted from 0.
        column: usize,
        /// Value in the column before.
        before: f64,
        /// The value found.
        value: f64,
    },
    /// No event was observed.
    #[error("none of {n} samples has an observed event")]
    NoEvents {
        /// Number of samples.
        n: usize,
    },
    /// Events exist, but nobody is known to have outlived one of them.
    #[error("no comparable pair among {n} samples with {n_events} events")]
    NoComparablePairs {
        /// Number of samples.
        n: usize,
        /// Number of events.
        n_events: usize,
    },
    /// Nobody had the event by `time`.
    #[error("no event at or before time {time}")]
    NoCases {
        /// Evaluation time.
        time: f64,
    },
    /// Nobody is known to be free of the event after `time`.
    #[error("no sample under observation after time {time}")]
    NoControls {
        /// Evaluation time.
        time: f64,
    },
    /// The probability of being uncensored is 0 where it must be divided by.
    #[error("the censoring curve is zero at time {time}, so no weight exists there")]
    ZeroCensoringSurvival {
        /// The time asked for.
        time: f64,
    },
    /// The censoring curve is unknown beyond the last time it was fitted on.
    #[error("time {time} lies beyond {last}, the last time the censoring curve was fitted on")]
    BeyondCensoringCurve {
        /// The time asked for.
        time: f64,
        /// Last time of the fitting sample.
        last: f64,
    },
    /// An evaluation time lies where the evaluated sample says nothing.
    #[error("evaluation time {time} lies outside [{first}, {last}), the times observed in the evaluated sample")]
    OutsideObservedTimes {
        /// The evaluation time.
        time: f64,
        /// First observed time.
        first: f64,
        /// Last observed time.
        last: f64,
    },
    /// No evaluation time is left after clipping to the support of the data.
    #[error("no evaluation time can be chosen: the window runs from {lower} to {upper}")]
    EmptyWindow {
        /// Lower end.
        lower: f64,
        /// Upper end after clipping.
        upper: f64,
    },
    /// The metric is undefined at every evaluation time.
    #[error("undefined at all {n_times} evaluation times; at the first: {first}")]
    UndefinedAtEveryTime {
        /// Number of evaluation times.
        n_times: usize,
        /// Why it is undefined at the first of them.
        first: Box<MetricError>,
    },
    /// An integral over time needs at least two times.
    #[error("{n_times} evaluation times, expected at least 2 to integrate over")]
    TooFewTimes {
        /// Number of evaluation times.
        n_times: usize,
    },
    /// A mean weighted by the drop of survival has no drop to weigh with.
    #[error("the survival of the evaluated sample does not drop by time {time}, so its mean has no weight")]
    NoSurvivalDrop {
        /// Last evaluation time.
        time: f64,
    },
    /// A comparison of groups needs two groups with a value.
    #[error("attribute \"{attribute}\" has {n_defined} of {n_levels} groups with a value, expected at least 2")]
    TooFewGroups {
        /// Name of the attribute.
        attribute: String,
        /// Groups with a value.
        n_defined: usize,
        /// All levels.
        n_levels: usize,
    },
    /// A ratio would divide by zero.
    #[error("the largest group value of attribute \"{attribute}\" is 0, so no ratio exists")]
    ZeroDenominator {
        /// Name of the attribute.
        attribute: String,
    },
    /// The overall value that the groups are compared with is itself undefined.
    #[error("the overall value is undefined: {reason}")]
    OverallUndefined {
        /// Why.
        reason: Box<MetricError>,
    },
    /// A setting is outside its range.
    #[error("{setting} is {value}, expected {expected}")]
    InvalidSetting {
        /// Name of the setting.
        setting: &'static str,
        /// The value found.
        value: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// A subject has samples in two strata, so it cannot be drawn within one.
    #[error("subject \"{subject}\" has samples in two strata, expected one stratum per subject")]
    SubjectInTwoStrata {
        /// The first such subject, by name.
        subject: crate::SubjectId,
    },
    /// A sample occurs too often in a bootstrap replicate for the compact form of its weights.
    #[error("a sample is drawn more than 65535 times in bootstrap replicate {replicate}")]
    TooManyDraws {
        /// Replicate, counted from 0.
        replicate: usize,
    },
    /// A sum over groups needs one group with a value.
    #[error("none of the {n_levels} groups of attribute \"{attribute}\" has a value")]
    NoDefinedGroup {
        /// Name of the attribute.
        attribute: String,
        /// All levels.
        n_levels: usize,
    },
    /// A ratio of values with different signs, or of losses, says nothing about equality.
    #[error("a value compared for attribute \"{attribute}\" is {value}, expected values >= 0 for a ratio")]
    NegativeRatio {
        /// Name of the attribute.
        attribute: String,
        /// The first negative value.
        value: f64,
    },
    /// A number that was handed in, or that follows from it, is not finite.
    #[error("{what} is {value}, expected a finite number")]
    NotFinite {
        /// What the number is.
        what: &'static str,
        /// The value found.
        value: f64,
    },
    /// No attribute has the name that a setting asks for.
    #[error("no attribute is called \"{attribute}\", expected one of: {known}")]
    UnknownAttribute {
        /// The name asked for.
        attribute: String,
        /// The names there are.
        known: String,
    },
    /// Too few bootstrap replicates define the value.
    #[error("{n_defined} of {n_replicates} bootstrap replicates define the value, too few for an interval")]
    NoDefinedReplicate {
        /// Replicates that define it.
        n_defined: usize,
        /// Replicates drawn.
        n_replicates: usize,
    },
    /// A value does not exist without one of the units, so its skewness cannot be estimated.
    #[error("undefined without {n_undefined} of {n_blocks} jackknife blocks, so that no BCa interval exists")]
    JackknifeUndefined {
        /// Blocks without which the value does not exist.
        n_undefined: usize,
        /// All blocks.
        n_blocks: usize,
    },
    /// The `BCa` interval does not exist.
    #[error("no BCa interval: {reason}")]
    BcaUndefined {
        /// Why.
        reason: &'static str,
    },
    /// Two lists that must come from the same draws have different lengths.
    #[error("{first} and {second} {what}, expected those of the same draws")]
    NotAligned {
        /// What was counted.
        what: &'static str,
        /// Number in the first list.
        first: usize,
        /// Number in the second list.
        second: usize,
    },
}
