//! Sources of bias of features, before any model.

use fairtte_metrics::bias::{self, BiasSettings, principal_components};
use fairtte_metrics::{MetricError, Outcomes, SubjectId};
use ndarray::Array2;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::arrays::{Flags, Matrix, Numbers, outcomes, subject_ids};
use crate::errors::{Names, metric_error, of_metric};
use crate::evaluate::{Attribute, all_groups};
use crate::pool::{Threads, compute};
use crate::settings::read;

/// The sources of bias of every attribute, and how well its levels can be distinguished, from features `[n, d]`, of which
/// `components` principal components are kept; `settings` is `BiasSettings` as JSON, and so is the result.
///
/// # Errors
/// `MetricError` for whatever is wrong with an argument.
#[pyfunction]
#[pyo3(signature = (features, time, event, groups, pairs, subjects, components, settings, threads=None))]
#[expect(clippy::too_many_arguments, reason = "the package calls it with all of them")]
pub(crate) fn bias_sources(
    py: Python<'_>,
    features: Matrix<'_>,
    time: Numbers<'_>,
    event: Flags<'_>,
    groups: Vec<Attribute<'_>>,
    pairs: bool,
    subjects: Option<Vec<String>>,
    components: usize,
    settings: &str,
    threads: Option<Threads>,
) -> PyResult<String> {
    let names = Names { survival: "features", ..Names::default() };
    let refused = |error: MetricError| of_metric(&error, names);
    let settings: BiasSettings = read(settings)?;
    settings.validate().map_err(refused)?;
    let outcomes = outcomes(&time, &event, names)?;
    let n = outcomes.n();
    let groups = all_groups(&groups, pairs, n)?;
    let subjects = subject_ids(subjects, n)?;
    let features = features.to_rows(py)?;
    if features.nrows() != n {
        let message = format!("features has {} rows, expected {n}, one for each of time", features.nrows());
        return Err(metric_error(message));
    }
    if let Some(((row, column), value)) = features.indexed_iter().find(|(_, value)| !value.is_finite()) {
        return Err(metric_error(format!("features[{row}, {column}] is {value}, expected a finite number")));
    }
    let found = compute(py, threads, move |stop| {
        let settings = BiasSettings { stop: stop.clone(), ..settings };
        measure(&features, &outcomes, &groups, &subjects, components, &settings)
    })?;
    Ok(found.map_err(refused)?.to_string())
}

fn measure(
    features: &Array2<f64>,
    outcomes: &Outcomes,
    groups: &[fairtte_metrics::Groups],
    subjects: &[SubjectId],
    components: usize,
    settings: &BiasSettings,
) -> Result<Value, MetricError> {
    let kept = principal_components(features, components)?;
    let of_attribute = |groups: &fairtte_metrics::Groups| -> Result<Value, MetricError> {
        Ok(json!({
            "sources": bias::bias_sources(subjects, &kept.scores, outcomes, groups, settings)?,
            "separability": bias::separability(subjects, &kept.scores, groups, settings)?,
        }))
    };
    let attributes = groups.iter().map(of_attribute).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({
        "n": outcomes.n(),
        "n-events": outcomes.n_events(),
        "reduction": kept.reduction,
        "attributes": attributes,
        "settings": settings,
    }))
}
