//! Errors of time discretisation, heads and baselines.

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
    /// A part of the data has no observed event.
    #[error("the {part} part has no observed event (samples: {n}), expected at least one")]
    NoEvent {
        /// Name of the part.
        part: &'static str,
        /// Number of its samples.
        n: usize,
    },
    /// A setting is outside its range.
    #[error("{key} is {value}, expected {expected}")]
    Setting {
        /// Name of the setting as it is written: the field in kebab case, `gradient-clip`.
        key: &'static str,
        /// Value found.
        value: f64,
        /// Range in words.
        expected: &'static str,
    },
    /// A head of another crate has the name of a head of this one.
    #[error("head is {name}, expected a name that no head of fairtte-survival has")]
    HeadName {
        /// The name.
        name: &'static str,
    },
    /// A head of one kind of event where events have several causes.
    #[error("head {head} is about one kind of event, expected {expected} for one of several causes")]
    OneKind {
        /// Name of the head.
        head: &'static str,
        /// Names of the heads of several causes.
        expected: String,
    },
    /// All times are the same: there is nothing to divide into intervals, or to scale.
    #[error("all times of the {part} part are {time} (samples: {n}), expected at least two different times")]
    TimesAllEqual {
        /// Name of the part.
        part: &'static str,
        /// Number of its samples.
        n: usize,
        /// The time.
        time: f64,
    },
    /// A time is negative or not finite.
    #[error("time of row {row} of the {part} part is {time}, expected a finite number >= 0")]
    InvalidTime {
        /// Name of the part.
        part: &'static str,
        /// Row among the discretised samples, counted from 0.
        row: usize,
        /// Value found.
        time: f64,
    },
    /// A head that predicts relative to a baseline cannot give curves before a baseline is fitted.
    #[error("head {head} has no baseline hazard yet, expected one that was fitted on the training part")]
    NoBaseline {
        /// Name of the head.
        head: &'static str,
    },
    /// The outputs for which a baseline is fitted are not finite.
    #[error("baseline hazard at time {time} is not a finite number, expected finite outputs for all training samples")]
    BaselineNotFinite {
        /// The event time.
        time: f64,
    },
}
