//! Estimators of `fairtte-classical` by name: settings as JSON, a fit, and predictions of arrays.

use std::sync::Arc;

use fairtte_classical::{ClassicalError, Estimator, FittedEstimator, SurvivalEstimator as _, SurvivalModel as _};
use fairtte_metrics::SurvivalCurves;
use fairtte_metrics::evaluation::Stop;
use numpy::{IntoPyArray as _, PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Map, Value};

use crate::arrays::{Flags, Matrix, Numbers, outcomes, subject_ids};
use crate::errors::{Names, metric_error, of_metric};
use crate::pool::{Threads, compute, detached};
use crate::settings::refusal;

/// A fitted estimator.
#[pyclass(frozen)]
pub(crate) struct Fitted {
    model: Arc<FittedEstimator>,
}

#[pymethods]
impl Fitted {
    /// The model as [`to_bytes`](Self::to_bytes) wrote it.
    ///
    /// # Errors
    /// `MetricError` if it is none.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let model = detached(py, || serde_json::from_slice(data))?;
        let model = model.map_err(|error| metric_error(format!("the state is no fitted estimator: {error}")))?;
        Ok(Self { model: Arc::new(model) })
    }

    /// The model as JSON, as in `estimator.json` of a run.
    ///
    /// # Errors
    /// `InternalError` for a panic.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let data = detached(py, || serde_json::to_vec(&*self.model))?;
        let data = data.map_err(|error| metric_error(error.to_string()))?;
        Ok(PyBytes::new(py, &data))
    }

    /// One risk per row of covariates `[n, p]`.
    ///
    /// # Errors
    /// `MetricError` for other covariates than those of the fit.
    #[pyo3(signature = (covariates, threads=None))]
    fn risk<'py>(
        &self,
        py: Python<'py>,
        covariates: Matrix<'_>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (model, covariates) = (Arc::clone(&self.model), covariates.to_rows(py)?);
        let found = compute(py, threads, move |_| model.risk(&covariates))?;
        Ok(found.map_err(|error| of_estimator(&error))?.into_pyarray(py))
    }

    /// Survival `[n, k]` at k times of every row of covariates `[n, p]`.
    ///
    /// # Errors
    /// `MetricError` for other covariates than those of the fit, or times that are no grid.
    #[pyo3(signature = (covariates, times, threads=None))]
    fn survival<'py>(
        &self,
        py: Python<'py>,
        covariates: Matrix<'_>,
        times: Numbers<'_>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (model, covariates) = (Arc::clone(&self.model), covariates.to_rows(py)?);
        let times = times.as_array().to_vec();
        let curves = move |_: &_| model.survival_curves(&covariates, &times).map(SurvivalCurves::into_survival);
        let found = compute(py, threads, curves)?;
        Ok(found.map_err(|error| of_estimator(&error))?.into_pyarray(py))
    }
}

/// Fits the estimator `name` with `settings` (JSON) to covariates `[n, p]`, whose `columns` `[p]` errors and settings name.
///
/// # Errors
/// `MetricError` for settings out of range, and where the estimator cannot be fitted to these samples.
#[pyfunction]
#[pyo3(signature = (name, settings, covariates, columns, time, event, subjects=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "the package calls it with all of them")]
pub(crate) fn fit_estimator(
    py: Python<'_>,
    name: &str,
    settings: &str,
    covariates: Matrix<'_>,
    columns: Vec<String>,
    time: Numbers<'_>,
    event: Flags<'_>,
    subjects: Option<Vec<String>>,
    threads: Option<Threads>,
) -> PyResult<Fitted> {
    let estimator = read(name, settings)?;
    let outcomes = outcomes(&time, &event, Names { time: "time of y", ..Names::default() })?;
    let covariates = covariates.to_rows(py)?;
    let subjects = subject_ids(subjects, outcomes.n())?;
    let fit = move |stop: &Stop| estimator.fit_named(&covariates, &outcomes, &columns, &subjects, stop);
    let found = compute(py, threads, fit)?;
    Ok(Fitted { model: Arc::new(found.map_err(|error| of_estimator(&error))?) })
}

/// The settings of the estimator `name` with every default written out, as JSON.
///
/// # Errors
/// `MetricError` for an unknown key or a value of another type or range.
#[pyfunction]
pub(crate) fn estimator_settings(name: &str, settings: &str) -> PyResult<String> {
    let estimator = read(name, settings)?;
    let failed = |error: serde_json::Error| metric_error(error.to_string());
    let value = serde_json::to_value(&estimator).map_err(failed)?;
    serde_json::to_string(value.get(name).unwrap_or(&value)).map_err(failed)
}

/// Names of all estimators of one kind of event, with one line each: the targets of the package know no causes.
#[pyfunction]
pub(crate) fn estimator_names() -> Vec<(String, String)> {
    let of_one_kind =
        Estimator::CATALOGUE.iter().filter(|(name, _)| Estimator::of_causes().all(|of_causes| of_causes != *name));
    of_one_kind.map(|(name, summary)| ((*name).to_owned(), (*summary).to_owned())).collect()
}

fn read(name: &str, settings: &str) -> PyResult<Estimator> {
    let settings: Map<String, Value> =
        serde_json::from_str(settings).map_err(|error| metric_error(error.to_string()))?;
    let with = |settings: Map<String, Value>| {
        serde_json::from_value::<Estimator>(Value::Object(Map::from_iter([(name.to_owned(), settings.into())])))
    };
    let estimator = with(settings.clone()).map_err(|error| {
        // Which of them it is: serde does not say.
        let alone = settings.iter().find_map(|(key, value)| {
            let error = with(Map::from_iter([(key.clone(), value.clone())])).err()?;
            Some(refusal(&argument(key), key, value, &error.to_string()))
        });
        metric_error(alone.unwrap_or_else(|| error.to_string()))
    })?;
    estimator.check().map_err(|error| of_estimator(&error))?;
    Ok(estimator)
}

/// The argument of Python behind a key of a run file.
fn argument(setting: &str) -> String {
    match setting {
        "trees" => "n_estimators".to_owned(),
        "columns-per-split" => "max_features".to_owned(),
        "seed" => "random_state".to_owned(),
        other => other.replace('-', "_"),
    }
}

fn of_estimator(error: &ClassicalError) -> PyErr {
    let names = Names { survival: "survival", times: "times", time: "time of y", risk: "risk" };
    match error {
        ClassicalError::Setting { setting, value, expected } => {
            metric_error(format!("{} is {value}, expected {expected}", argument(setting)))
        }
        ClassicalError::NotFinite { row, column, value } => {
            metric_error(format!("X[{row}, {column}] is {value}, expected a finite number"))
        }
        ClassicalError::Metric(error) => of_metric(error, names),
        other => metric_error(other.to_string()),
    }
}
