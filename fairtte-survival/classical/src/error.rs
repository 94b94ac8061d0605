//! What an estimator cannot be fitted to.

use fairtte_metrics::{MetricError, SampleId};

use crate::estimator::{Column, Row};

/// Why an estimator cannot be fitted or cannot predict.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassicalError {
    /// Covariates and outcomes are of other samples.
    #[error("covariates of {found} samples, expected those of {expected}")]
    Length {
        /// Rows of the covariates.
        found: usize,
        /// Samples.
        expected: usize,
    },
    /// Outcomes are of other samples than a prediction.
    #[error("outcomes of {found} samples, expected those of {expected}")]
    OutcomesOf {
        /// Outcomes.
        found: usize,
        /// Samples that are predicted.
        expected: usize,
    },
    /// No tree was grown without a sample that could test it.
    #[error("no out-of-bag samples, expected a sampling that leaves some out and more than one tree")]
    NoneOutOfBag,
    /// There are no columns.
    #[error("no covariates, expected at least one")]
    NoCovariates,
    /// More samples than the estimator can count.
    #[error("{n} samples, expected fewer than 2^32")]
    TooMany {
        /// Samples.
        n: usize,
    },
    /// The model of one of several causes cannot be fitted.
    #[error("the model of cause {cause}: {source}")]
    OfCause {
        /// The cause.
        cause: u32,
        /// Why.
        source: Box<ClassicalError>,
    },
    /// Events of several causes were given to an estimator of one kind of event.
    #[error("{estimator} models one kind of event, expected one of {expected} for one of several causes")]
    OneKind {
        /// Name of the estimator.
        estimator: &'static str,
        /// Names of those that model a cause.
        expected: String,
    },
    /// Nothing can be learnt.
    #[error("no sample has an event, expected at least one")]
    NoEvents,
    /// The model is of the logarithm of time.
    #[error("time of {row} is 0, expected a time above 0: the model is of the logarithm of time")]
    TimeZero {
        /// The sample.
        row: Row,
    },
    /// Squares of the values leave the range of the arithmetic.
    #[error(
        "covariate {column} has the standard deviation {deviation:e}, expected between 1e-100 and 1e100: change its unit"
    )]
    Spread {
        /// The covariate.
        column: Column,
        /// The standard deviation found.
        deviation: f64,
    },
    /// The scale of a parametric model shrinks to 0.
    #[error(
        "the times of the events follow the covariates exactly, so that the likelihood has no maximum: expected more events \
         than coefficients, and times that vary beside the covariates"
    )]
    ExactTimes,
    /// The cut points of a discrete time scale are not such.
    #[error("cut point {index} is {time}, expected finite times that ascend from above 0")]
    CutPoints {
        /// Place, counted from 0.
        index: usize,
        /// The time found.
        time: f64,
    },
    /// Every event is after the last cut point.
    #[error("no sample has an event by {last}, the last cut point, expected at least one")]
    NoEventByLastCut {
        /// The last cut point.
        last: f64,
    },
    /// No interval says anything about covariates.
    #[error(
        "in every interval with events all samples at risk have one, expected an interval in which some have an event and \
         others do not"
    )]
    NoMixedInterval,
    /// An iteration has not ended.
    #[error("the maximum of the likelihood is not found after {steps} steps of Newton's method")]
    NotFound {
        /// Steps.
        steps: usize,
    },
    /// A prediction leaves the range of the arithmetic.
    #[error("the linear predictor of {row} is {value}, expected a finite number: its covariates are too large")]
    Predictor {
        /// The sample.
        row: Row,
        /// The value found.
        value: f64,
    },
    /// A value is missing or infinite.
    #[error("covariate {column} of row {row} is {value}, expected a finite number")]
    NotFinite {
        /// Row, counted from 0.
        row: usize,
        /// The covariate.
        column: Column,
        /// The value found.
        value: f64,
    },
    /// A hazard or a probability of treatment of the generator overflows.
    #[error("the {what} of row {row} has the number {value}, expected finite numbers")]
    Overflow {
        /// What overflows.
        what: &'static str,
        /// Row, counted from 0.
        row: usize,
        /// The value found.
        value: f64,
    },
    /// Another number of columns than in the fit.
    #[error("{found} covariates, expected the {expected} of the fit")]
    Columns {
        /// Columns found.
        found: usize,
        /// Columns of the fit.
        expected: usize,
    },
    /// A column occurs twice.
    #[error("covariate \"{column}\" is named twice, expected once")]
    Repeated {
        /// Name of the column.
        column: String,
    },
    /// A column does not have one value per sample.
    #[error("covariate \"{column}\" has {found} values, expected {expected}, one per sample")]
    ColumnLength {
        /// Name of the column.
        column: String,
        /// Values found.
        found: usize,
        /// Number of samples.
        expected: usize,
    },
    /// Another number of names than of columns.
    #[error("{found} names of covariates, expected {expected}, one per column")]
    Names {
        /// Names found.
        found: usize,
        /// Columns.
        expected: usize,
    },
    /// No column has this name.
    #[error("{setting} names the covariate \"{name}\", expected one of: {known}")]
    UnknownCovariate {
        /// The setting that names it.
        setting: &'static str,
        /// The name found.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// New samples do not have the columns of the fit.
    #[error("the covariates are {found}, expected those of the fit: {expected}")]
    OtherColumns {
        /// Names and kinds found.
        found: String,
        /// Names and kinds of the fit.
        expected: String,
    },
    /// New samples have a level that the fit does not know.
    #[error("covariate \"{column}\" is \"{level}\" in row {row}, expected a level of the fit: {known}")]
    UnknownLevel {
        /// Name of the column.
        column: String,
        /// Row, counted from 0.
        row: usize,
        /// The level found.
        level: String,
        /// The levels known.
        known: String,
    },
    /// A new sample is in no stratum of the fit.
    #[error("{row} is in the stratum {stratum}, expected one with events in the fit: {known}")]
    UnknownStratum {
        /// The sample.
        row: Row,
        /// The stratum found, as `covariate=value`.
        stratum: String,
        /// The strata known.
        known: String,
    },
    /// A covariate is the same in all samples.
    #[error("covariate {column} is the same in all {n} samples, expected one that varies")]
    Constant {
        /// The covariate.
        column: Column,
        /// Number of samples.
        n: usize,
    },
    /// The squares of a covariate are no numbers.
    #[error("covariate {column} has values whose squares overflow, expected smaller ones")]
    TooLarge {
        /// The covariate.
        column: Column,
    },
    /// A covariate is the same in all samples that are compared.
    #[error(
        "covariate {column} is the same among the samples at risk at every event time (of a stratum), expected one that varies"
    )]
    NotAtRisk {
        /// The covariate.
        column: Column,
    },
    /// A covariate says what others say.
    #[error("covariate {column} is a linear combination of others ({}): leave one of them out", listed(.others))]
    Collinear {
        /// The covariate.
        column: Column,
        /// The others, in the order of the columns.
        others: Vec<Column>,
    },
    /// Fewer events than coefficients.
    #[error("number of events: {n_events}, expected at least {n_coefficients}, the number of coefficients")]
    FewEvents {
        /// Observed events.
        n_events: usize,
        /// Coefficients.
        n_coefficients: usize,
    },
    /// No fold can be predicted from events of the others.
    #[error(
        "cross-validation: all events ({n_events}) are in one fold, expected events in at least two; more subjects with events or \
         another seed may help, choice = {{ fixed = .. }} needs no folds"
    )]
    EventsInOneFold {
        /// Observed events.
        n_events: usize,
    },
    /// The likelihood grows without end, or as good as.
    #[error("{}", separating(.columns))]
    Separates {
        /// The covariates whose coefficients grow.
        columns: Vec<Column>,
    },
    /// A search for an optimum did not end.
    #[error("{what} do not settle in {n_steps} steps: leave out covariates that nearly repeat others, or {instead}")]
    NotConverged {
        /// What is searched.
        what: &'static str,
        /// Steps made.
        n_steps: usize,
        /// Which setting may help.
        instead: &'static str,
    },
    /// Nothing can be said about time.
    #[error("all events are at time {time}, expected events at different times")]
    OneEventTime {
        /// The time.
        time: f64,
    },
    /// A setting is outside its range.
    #[error("{setting} is {value}, expected {expected}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// The value found.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// Outcomes or curves cannot be used.
    #[error(transparent)]
    Metric(#[from] MetricError),
}

impl ClassicalError {
    /// The same error with the names of the covariates, `[p]`, in place of their numbers.
    #[must_use]
    pub fn with_names(self, names: &[String]) -> Self {
        self.map_columns(|column| column.named(names))
    }

    /// The same error with the names of the samples, `[n]`, in place of their rows.
    #[must_use]
    pub fn with_samples(self, samples: &[SampleId]) -> Self {
        self.map_rows(|row| row.named(samples))
    }

    /// The same error about samples after `n` others: row k of the error is row n + k.
    pub(crate) fn after_rows(self, n: usize) -> Self {
        self.map_rows(|row| Row { place: n + row.place, ..row })
    }

    fn map_rows(self, map: impl Fn(Row) -> Row) -> Self {
        match self {
            Self::NotFinite { row, column, value } => Self::NotFinite { row: map(Row::new(row)).place, column, value },
            Self::TimeZero { row } => Self::TimeZero { row: map(row) },
            Self::Predictor { row, value } => Self::Predictor { row: map(row), value },
            Self::UnknownStratum { row, stratum, known } => Self::UnknownStratum { row: map(row), stratum, known },
            Self::OfCause { cause, source } => Self::OfCause { cause, source: Box::new(source.map_rows(map)) },
            other => other,
        }
    }

    /// The same error about other columns: column k of the error is column `places[k]`.
    pub(crate) fn with_places(self, places: &[usize]) -> Self {
        let moved =
            |column: Column| Column { place: places.get(column.place).copied().unwrap_or(column.place), ..column };
        self.map_columns(moved)
    }

    fn map_columns(self, map: impl Fn(Column) -> Column) -> Self {
        match self {
            Self::NotFinite { row, column, value } => Self::NotFinite { row, column: map(column), value },
            Self::Constant { column, n } => Self::Constant { column: map(column), n },
            Self::TooLarge { column } => Self::TooLarge { column: map(column) },
            Self::Spread { column, deviation } => Self::Spread { column: map(column), deviation },
            Self::NotAtRisk { column } => Self::NotAtRisk { column: map(column) },
            Self::Collinear { column, others } => {
                Self::Collinear { column: map(column), others: others.into_iter().map(&map).collect() }
            }
            Self::OfCause { cause, source } => Self::OfCause { cause, source: Box::new(source.map_columns(map)) },
            Self::Separates { columns } => Self::Separates { columns: columns.into_iter().map(&map).collect() },
            other => other,
        }
    }
}

/// The columns, each once: two terms of a model may be of one column.
fn names(columns: &[Column]) -> Vec<String> {
    let mut names: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn listed(columns: &[Column]) -> String {
    names(columns).join(", ")
}

fn separating(columns: &[Column]) -> String {
    match &names(columns)[..] {
        [one] => format!(
            "covariate {one} separates the events from the other samples, so that the likelihood has no maximum: leave it out or \
             merge levels"
        ),
        several => format!(
            "covariates {} together separate the events from the other samples, or nearly repeat each other, so that the likelihood \
             has no maximum: leave one of them out or merge levels",
            several.join(", ")
        ),
    }
}
