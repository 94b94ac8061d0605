//! Evaluations as arrays and text, from which another process makes them again: pickles.

use std::sync::Arc;

use fairtte_metrics::classification::ClassPredictions;
use fairtte_metrics::{CensoringCurve, CensoringTies, Groups, Outcomes, SubjectId};
use numpy::{IntoPyArray as _, PyArray1, PyArray2, ToPyArray as _};
use pyo3::prelude::*;
use serde::Serialize;

use crate::arrays::{Flags, Matrix, Numbers, outcomes, subject_ids};
use crate::classes::{self, EvaluatedClasses};
use crate::errors::{Names, metric_error, of_metric};
use crate::evaluate::{Attribute, Evaluated, Found, Input, Train, all_groups};
use crate::lent::{Curves, Rows};
use crate::pool::detached;
use crate::settings::read;

type Vector<'py> = Bound<'py, PyArray1<f64>>;
type Marks<'py> = Bound<'py, PyArray1<bool>>;
/// Attribute, levels, and the level of every sample, -1 where it is missing.
type Codes<'py> = (String, Vec<String>, Bound<'py, PyArray1<i64>>);
/// Survival and its times, times and events, those of the training sample.
type Arrays<'py> =
    (Bound<'py, PyArray2<f64>>, Vector<'py>, (Vector<'py>, Marks<'py>), Option<(Vector<'py>, Marks<'py>)>);
/// Settings and report as JSON, and what is said.
type Texts = (String, String, Vec<String>, Vec<String>);
/// Settings of the class and of the evaluation, and the report, as JSON, and the metrics asked for.
type TextsOfClass = (String, String, String, Option<Vec<String>>);

/// All of an evaluation: arrays, groups, subjects, texts.
///
/// # Errors
/// `MetricError` of one with a baseline, and of curves that were written to since.
#[pyfunction]
pub(crate) fn state<'py>(
    py: Python<'py>,
    evaluated: &Evaluated,
) -> PyResult<(Arrays<'py>, Vec<Codes<'py>>, Vec<String>, Texts)> {
    let (input, found) = (&*evaluated.input, &*evaluated.found);
    if found.baseline.is_some() {
        return Err(metric_error(
            "an evaluation with a baseline cannot be pickled, expected its to_dict() or report(path)",
        ));
    }
    input.curves.require_unchanged().map_err(metric_error)?;
    let curves = input.curves.get();
    let of = |outcomes: &Outcomes| (outcomes.time().to_pyarray(py), outcomes.event().to_pyarray(py));
    let survival = curves.survival().to_pyarray(py);
    let arrays = (survival, curves.grid().to_pyarray(py), of(&input.outcomes), input.train.as_ref().map(of));
    let texts =
        (json(&input.settings)?, found.to_json().map_err(of_json)?, found.warnings.clone(), found.notes.clone());
    Ok((arrays, codes(py, &input.groups), names(&input.subjects), texts))
}

/// The evaluation of a [`state`].
///
/// # Errors
/// `MetricError` for another state.
#[pyfunction]
pub(crate) fn restored(
    py: Python<'_>,
    arrays: (Matrix<'_>, Numbers<'_>, (Numbers<'_>, Flags<'_>), Option<Train<'_>>),
    groups: Vec<Attribute<'_>>,
    subjects: Vec<String>,
    texts: Texts,
) -> PyResult<Evaluated> {
    let (survival, times, (time, event), train) = arrays;
    let (settings, report, warnings, notes) = texts;
    let of = |(time, event): (Numbers<'_>, Flags<'_>)| self::outcomes(&time, &event, Names::default());
    let (outcomes, train) = (of((time, event))?, train.map(of).transpose()?);
    let refused = |error: fairtte_metrics::MetricError| of_metric(&error, Names::default());
    let (rows, grid) = (Rows::new(&survival, py)?, times.as_array().to_vec());
    let curves = detached(py, move || Curves::new(grid, rows))?.map_err(refused)?;
    let censoring =
        CensoringCurve::fit(train.as_ref().unwrap_or(&outcomes), CensoringTies::EventsFirst).map_err(refused)?;
    let groups = all_groups(&groups, false, outcomes.n())?;
    let subjects = subject_ids(Some(subjects), outcomes.n())?;
    let input = Input { subjects, outcomes, curves, train, censoring, groups, settings: read(&settings)? };
    let found = Found { report: read(&report)?, baseline: None, warnings, notes };
    Ok(Evaluated { input: Arc::new(input), found: Arc::new(found) })
}

/// All of an evaluation of a class: probabilities and classes, groups, subjects, texts.
///
/// # Errors
/// `MetricError` if it cannot be written as JSON, which no input should cause.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "the package hands it to `restored_classes`")]
pub(crate) fn state_of_classes<'py>(
    py: Python<'py>,
    evaluated: &EvaluatedClasses,
) -> PyResult<((Vector<'py>, Marks<'py>), Vec<Codes<'py>>, Vec<String>, TextsOfClass)> {
    let input = &*evaluated.input;
    let arrays = (input.predictions.probability().to_pyarray(py), input.predictions.positive().to_pyarray(py));
    let report = evaluated.found.to_json().map_err(of_json)?;
    let texts = (json(&input.class)?, json(&input.settings)?, report, input.metrics.clone());
    Ok((arrays, codes(py, &input.groups), names(&input.subjects), texts))
}

/// The evaluation of a [`state_of_classes`].
///
/// # Errors
/// `MetricError` for another state.
#[pyfunction]
pub(crate) fn restored_classes(
    arrays: (Numbers<'_>, Flags<'_>),
    groups: Vec<Attribute<'_>>,
    subjects: Vec<String>,
    texts: TextsOfClass,
) -> PyResult<EvaluatedClasses> {
    let (probability, positive) = (arrays.0.as_array().to_vec(), arrays.1.as_array().to_vec());
    let predictions =
        ClassPredictions::new(probability, positive).map_err(|error| of_metric(&error, Names::default()))?;
    let (class, settings, report, metrics) = texts;
    let groups = all_groups(&groups, false, predictions.n())?;
    let subjects = subject_ids(Some(subjects), predictions.n())?;
    let (class, settings) = (read(&class)?, read(&settings)?);
    let input = classes::Input { predictions, subjects, groups, class, settings, metrics };
    Ok(EvaluatedClasses { input: Arc::new(input), found: Arc::new(read(&report)?) })
}

fn codes<'py>(py: Python<'py>, groups: &[Groups]) -> Vec<Codes<'py>> {
    let code = |group: &Option<fairtte_metrics::GroupId>| group.map_or(-1, |group| i64::from(group.0));
    let of = |groups: &Groups| {
        let codes: Vec<i64> = groups.membership().iter().map(code).collect();
        (groups.attribute().to_owned(), groups.levels().to_vec(), codes.into_pyarray(py))
    };
    groups.iter().map(of).collect()
}

fn names(subjects: &[SubjectId]) -> Vec<String> {
    subjects.iter().map(SubjectId::to_string).collect()
}

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(of_json)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn of_json(error: serde_json::Error) -> PyErr {
    metric_error(error.to_string())
}
