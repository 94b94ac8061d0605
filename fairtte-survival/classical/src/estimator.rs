//! What every estimator offers: settings that fit a model, and a model that predicts.

use std::sync::LazyLock;

use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::{Outcomes, SampleId, SurvivalCurves};
use ndarray::Array2;

use crate::ClassicalError;

/// Most trees of a forest or a sum of trees: more are a mistake, and would fill the memory.
pub(crate) const MOST_TREES: usize = 1_000_000;
/// The range of a number of trees, in words.
pub(crate) const EXPECTED_TREES: &str = "a whole number from 1 to 1000000";

/// A flag that is never set.
pub(crate) static NEVER: LazyLock<Stop> = LazyLock::new(Stop::default);

/// Settings of an estimator.
pub trait SurvivalEstimator {
    /// What a fit returns.
    type Model: SurvivalModel;

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// [`ClassicalError::Setting`].
    fn check(&self) -> Result<(), ClassicalError>;

    /// Fits a model to covariates `[n, p]` and their outcomes.
    ///
    /// # Errors
    /// [`ClassicalError`] if a setting is outside its range or the estimator cannot be fitted to these samples.
    fn fit(&self, covariates: &Array2<f64>, outcomes: &Outcomes) -> Result<Self::Model, ClassicalError> {
        self.fit_until(covariates, outcomes, &NEVER)
    }

    /// As [`fit`](Self::fit), but ends before its next tree, strength of a penalty or step once another thread sets `stop`.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`MetricError::Stopped`](fairtte_metrics::MetricError) in [`ClassicalError::Metric`].
    fn fit_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        stop: &Stop,
    ) -> Result<Self::Model, ClassicalError>;
}

/// A fitted estimator.
pub trait SurvivalModel: Send + Sync {
    /// Covariates of the fit.
    fn n_covariates(&self) -> usize;

    /// Survival at the times of `grid` of samples with these covariates `[n, p]`, `[n, n_times]`.
    ///
    /// # Errors
    /// [`ClassicalError::Columns`] or [`ClassicalError::NotFinite`] for other covariates, [`ClassicalError::Metric`] if
    /// `grid` is no time grid.
    fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError>;

    /// One number per sample, `[n]`; higher = earlier events. Each estimator says what it is.
    ///
    /// # Errors
    /// [`ClassicalError::Columns`] or [`ClassicalError::NotFinite`] for other covariates.
    fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError>;
}

/// Checks covariates of a prediction: as many as in the fit, and finite.
///
/// # Errors
/// [`ClassicalError::Columns`], [`ClassicalError::NotFinite`].
pub(crate) fn check_covariates(covariates: &Array2<f64>, expected: usize) -> Result<(), ClassicalError> {
    let found = covariates.ncols();
    if found != expected {
        return Err(ClassicalError::Columns { found, expected });
    }
    check_finite(covariates)
}

/// Checks samples of a fit: covariates and outcomes of the same samples, at least one covariate and one event.
///
/// # Errors
/// [`ClassicalError::NoCovariates`], [`ClassicalError::Length`], [`ClassicalError::NoEvents`],
/// [`ClassicalError::NotFinite`].
pub(crate) fn check_samples(covariates: &Array2<f64>, outcomes: &Outcomes) -> Result<(), ClassicalError> {
    if covariates.ncols() == 0 {
        return Err(ClassicalError::NoCovariates);
    }
    let (found, expected) = (covariates.nrows(), outcomes.n());
    if found != expected {
        return Err(ClassicalError::Length { found, expected });
    }
    if outcomes.n_events() == 0 {
        return Err(ClassicalError::NoEvents);
    }
    check_finite(covariates)
}

/// `intercept` plus the products of `coefficients` and covariates, `[n]`.
///
/// # Errors
/// [`ClassicalError::Predictor`] where the sum is not finite.
pub(crate) fn linear_predictor(
    covariates: &Array2<f64>,
    intercept: f64,
    coefficients: &[f64],
) -> Result<Vec<f64>, ClassicalError> {
    let of_row = |(row, x): (usize, ndarray::ArrayView1<'_, f64>)| {
        let value = intercept + x.iter().zip(coefficients).map(|(x, b)| x * b).sum::<f64>();
        if value.is_finite() { Ok(value) } else { Err(ClassicalError::Predictor { row: Row::new(row), value }) }
    };
    covariates.rows().into_iter().enumerate().map(of_row).collect()
}

/// Checks that all values are finite.
///
/// # Errors
/// [`ClassicalError::NotFinite`].
pub(crate) fn check_finite(covariates: &Array2<f64>) -> Result<(), ClassicalError> {
    match covariates.indexed_iter().find(|(_, value)| !value.is_finite()) {
        Some(((row, column), value)) => {
            Err(ClassicalError::NotFinite { row, column: Column::new(column), value: *value })
        }
        None => Ok(()),
    }
}

/// A covariate in an error: its name if it is known, otherwise its place, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Place among the covariates, counted from 0.
    pub place: usize,
    /// Its name.
    pub name: Option<String>,
}

impl Column {
    /// A covariate without a name.
    pub(crate) fn new(place: usize) -> Self {
        Self { place, name: None }
    }

    /// The covariate with its name from `names`, `[p]`.
    pub(crate) fn named(self, names: &[String]) -> Self {
        let name = names.get(self.place).cloned().or(self.name);
        Self { name, ..self }
    }
}

impl std::fmt::Display for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "\"{name}\""),
            None => write!(f, "{}", self.place),
        }
    }
}

/// A sample in an error: its name if it is known, otherwise its row, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Row, counted from 0.
    pub place: usize,
    /// Name of the sample.
    pub sample: Option<String>,
}

impl Row {
    /// The sample of a row without a name.
    pub(crate) fn new(place: usize) -> Self {
        Self { place, sample: None }
    }

    /// The sample with its name from `samples`, `[n]`.
    pub(crate) fn named(self, samples: &[SampleId]) -> Self {
        let sample = samples.get(self.place).map(ToString::to_string).or(self.sample);
        Self { sample, ..self }
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.sample {
            Some(sample) => write!(f, "sample \"{sample}\""),
            None => write!(f, "row {}", self.place),
        }
    }
}
