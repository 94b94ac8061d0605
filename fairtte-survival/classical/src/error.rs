//! What an estimator cannot be fitted to.

use fairtte_metrics::MetricError;

use crate::estimator::Column;

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
    /// There are no columns.
    #[error("no covariates, expected at least one")]
    NoCovariates,
    /// More samples than the estimator can count.
    #[error("{n} samples, expected fewer than 2^32")]
    TooMany {
        /// Samples.
        n: usize,
    },
    /// Nothing can be learnt.
    #[error("no sample has an event, expected at least one")]
    NoEvents,
    /// The model is of the logarithm of time.
    #[error("time of row {row} is 0, expected a time above 0: the model is of the logarithm of time")]
    TimeZero {
        /// Row, counted from 0.
        row: usize,
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
    #[error("the linear predictor of row {row} is {value}, expected a finite number: its covariates are too large")]
    Predictor {
        /// Row, counted from 0.
        row: usize,
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
    /// Another number of columns than in the fit.
    #[error("{found} covariates, expected the {expected} of the fit")]
    Columns {
        /// Columns found.
        found: usize,
        /// Columns of the fit.
        expected: usize,
    },
    /// A covariate is the same in all samples.
    #[error("covariate {column} is the same in all {n} samples, expected one that varies")]
    Constant {
        /// The covariate.
        column: Column,
        /// Number of samples.
        n: usize,
    },
    /// A covariate says what others say.
    #[error("covariate {column} is a linear combination of others ({}): leave one of them out", listed(.others))]
    Collinear {
        /// The covariate.
        column: Column,
        /// The others, in the order of the columns.
        others: Vec<Column>,
    },
    /// The likelihood grows without end.
    #[error(
        "{} the events from the other samples, so that the likelihood has no maximum: leave {} out or merge levels",
        separating(.columns),
        if .columns.len() == 1 { "it" } else { "one of them" }
    )]
    Separates {
        /// The covariates whose coefficients grow.
        columns: Vec<Column>,
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

    fn map_columns(self, map: impl Fn(Column) -> Column) -> Self {
        match self {
            Self::NotFinite { row, column, value } => Self::NotFinite { row, column: map(column), value },
            Self::Spread { column, deviation } => Self::Spread { column: map(column), deviation },
            Self::Constant { column, n } => Self::Constant { column: map(column), n },
            Self::Collinear { column, others } => {
                Self::Collinear { column: map(column), others: others.into_iter().map(map).collect() }
            }
            Self::Separates { columns } => Self::Separates { columns: columns.into_iter().map(map).collect() },
            other => other,
        }
    }
}

fn listed(columns: &[Column]) -> String {
    columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn separating(columns: &[Column]) -> String {
    match columns {
        [one] => format!("covariate {one} separates"),
        several => format!("covariates {} together separate", listed(several)),
    }
}
