//! `fairtte.evaluate_binary`: the audit of predicted probabilities of a class.

use fairtte_metrics::classification::ClassPredictions;
use fairtte_metrics::evaluation::{CLASS_METRICS, ClassSettings, describe_classes, evaluate_classes};
use fairtte_metrics::{EvaluationSettings, MetricError};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::arrays::{Flags, Numbers, subject_ids};
use crate::errors::{Names, metric_error, of_metric};
use crate::evaluate::{Attribute, all_groups, without_place};
use crate::pool::compute;

/// The report of the probabilities `[n]` of the positive class as JSON: `report` and, by group, `groups`; `of_class` and `settings`
/// are `ClassSettings` and `EvaluationSettings` as JSON.
///
/// # Errors
/// `MetricError` for whatever is wrong with an argument.
#[pyfunction]
#[pyo3(signature = (probability, positive, groups, pairs, subjects, of_class, settings, threads=None))]
#[expect(clippy::too_many_arguments, reason = "the package calls it with all of them")]
pub(crate) fn evaluate_binary(
    py: Python<'_>,
    probability: Numbers<'_>,
    positive: Flags<'_>,
    groups: Vec<Attribute<'_>>,
    pairs: bool,
    subjects: Option<Vec<String>>,
    of_class: &str,
    settings: &str,
    threads: Option<usize>,
) -> PyResult<String> {
    let refused = |error: MetricError| match error {
        MetricError::InvalidNumber { what, row, value, expected } => {
            metric_error(format!("{what}[{row}] is {value}, expected {expected}"))
        }
        error => of_metric(&error, Names { time: "label", ..Names::default() }),
    };
    let class: ClassSettings = read(of_class)?;
    let settings: EvaluationSettings = read(settings)?;
    settings.validate().map_err(refused)?;
    let (probability, positive) = (probability.as_array().to_vec(), positive.as_array().to_vec());
    if probability.len() != positive.len() {
        let message = format!("probability has {} values and label {}", probability.len(), positive.len());
        return Err(metric_error(format!("{message}, expected as many")));
    }
    let predictions = ClassPredictions::new(probability, positive).map_err(refused)?;
    let groups = all_groups(&groups, pairs, predictions.n())?;
    let subjects = subject_ids(subjects, predictions.n())?;
    let found = compute(py, threads, move |stop| -> Result<_, MetricError> {
        let running = EvaluationSettings { stop: stop.clone(), ..settings };
        let report = evaluate_classes(&predictions, &subjects, &groups, &class, &running)?;
        Ok((report, describe_classes(&predictions, &subjects, &groups, &class, running.level)?))
    })?;
    let (report, by_group) = found.map_err(refused)?;
    Ok(json!({ "report": report, "groups": by_group }).to_string())
}

/// Name and convention of every metric of a class.
#[pyfunction]
pub(crate) fn class_metric_names() -> Vec<(&'static str, &'static str)> {
    CLASS_METRICS.iter().map(|metric| (metric.name, metric.convention)).collect()
}

fn read<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| metric_error(without_place(&error.to_string())))
}
