//! Why a Cox regression cannot be fitted or applied.

use thiserror::Error;

/// Each names the column, row or term, and what was expected.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CoxError {
    /// There are no columns.
    #[error("there are no covariates, expected at least one")]
    NoCovariates,
    /// A column occurs twice.
    #[error("covariate \"{column}\" is named twice, expected once")]
    Repeated {
        /// Name of the column.
        column: String,
    },
    /// A column does not have one value per sample.
    #[error("covariate \"{column}\" has {found} values, expected {expected}, one per sample")]
    Length {
        /// Name of the column.
        column: String,
        /// Values found.
        found: usize,
        /// Number of samples.
        expected: usize,
    },
    /// A number is missing or infinite.
    #[error("covariate \"{column}\" is {value} in row {row}, expected a finite number")]
    NotFinite {
        /// Name of the column.
        column: String,
        /// Row, counted from 0.
        row: usize,
        /// The value found.
        value: f64,
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
    /// A covariate is the same in all samples.
    #[error("covariate \"{term}\" is the same in all {n} samples, expected one that varies")]
    Constant {
        /// Name of the term, for a level `column=level`.
        term: String,
        /// Number of samples.
        n: usize,
    },
    /// A covariate says what others say.
    #[error(
        "covariate \"{term}\" is a linear combination of the covariates before it ({others}): leave one of them out"
    )]
    Collinear {
        /// Name of the term.
        term: String,
        /// Names of the terms before it.
        others: String,
    },
    /// Fewer events than coefficients.
    #[error("number of events: {n_events}, expected at least {n_coefficients}, the number of coefficients")]
    FewEvents {
        /// Observed events.
        n_events: usize,
        /// Coefficients.
        n_coefficients: usize,
    },
    /// The partial likelihood grows without end.
    #[error(
        "covariate \"{term}\" separates the events from the other samples, so that the partial likelihood has no maximum: \
         leave it out or merge its levels"
    )]
    NoMaximum {
        /// Name of the term with the largest coefficient.
        term: String,
    },
}
