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
    /// Nothing can be learnt.
    #[error("no sample has an event, expected at least one")]
    NoEvents,
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
        match self {
            Self::NotFinite { row, column, value } => Self::NotFinite { row, column: column.named(names), value },
            other => other,
        }
    }
}
