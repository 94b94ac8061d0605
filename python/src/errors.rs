//! Errors of the crates as Python exceptions, in terms of the caller's arguments.

use fairtte_metrics::MetricError;
use pyo3::PyErr;

use crate::settings::argument;

mod classes {
    pyo3::import_exception!(fairtte._errors, MetricError);
    pyo3::import_exception!(fairtte._errors, DataError);
    pyo3::import_exception!(fairtte._errors, InternalError);
}

/// What the caller calls the arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    /// The matrix of curves.
    pub(crate) survival: &'static str,
    /// The times of its columns.
    pub(crate) times: &'static str,
    /// The observed times.
    pub(crate) time: &'static str,
    /// One risk per sample.
    pub(crate) risk: &'static str,
}

impl Default for Names {
    fn default() -> Self {
        Self { survival: "survival", times: "times", time: "time", risk: "estimate" }
    }
}

/// An exception with a sentence of its own.
pub(crate) fn metric_error(message: impl Into<String>) -> PyErr {
    classes::MetricError::new_err(message.into())
}

/// An exception about files and cohorts.
pub(crate) fn data_error(message: impl Into<String>) -> PyErr {
    classes::DataError::new_err(message.into())
}

/// A panic of a computation: an error of the package, whatever the input.
pub(crate) fn internal_error(message: &str) -> PyErr {
    classes::InternalError::new_err(format!(
        "fairtte stopped where it never should: {message}; please report this, with the call, at \
         https://github.com/fairtte/fairtte/issues"
    ))
}

/// An error of the metrics, in which rows and columns become indices of the arguments.
pub(crate) fn of_metric(error: &MetricError, names: Names) -> PyErr {
    metric_error(sentence(error, names))
}

fn sentence(error: &MetricError, names: Names) -> String {
    let Names { survival, times, time, risk } = names;
    match error {
        MetricError::InvalidSurvival { row, column, value } => {
            format!("{survival}[{row}, {column}] is {value}, expected a number in [0, 1]")
        }
        MetricError::RisingSurvival { row, column, before, value } => {
            format!("{survival}[{row}, {column}] is {value}, above {before} before it, expected curves that never rise")
        }
        MetricError::GridMismatch { columns, n_times } => {
            format!("{survival} has {columns} columns, expected {n_times}, one for each of {times}")
        }
        MetricError::InvalidGrid { index, time } => {
            format!("{times}[{index}] is {time}, expected finite times >= 0 in strictly increasing order")
        }
        MetricError::EmptyGrid => format!("{times} is empty, expected at least one time"),
        MetricError::InvalidTime { row, time: value } => {
            format!("{time}[{row}] is {value}, expected a finite number >= 0")
        }
        MetricError::InvalidRisk { row, risk: value } => format!("{risk}[{row}] is {value}, expected a finite number"),
        MetricError::InvalidSetting { setting, value, expected } => {
            format!("{} is {value}, expected {expected}", argument(setting))
        }
        other => other.to_string(),
    }
}
