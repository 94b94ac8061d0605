//! `fairtte.evaluate`: one evaluation with everything that its report, its page and comparisons need.

use std::sync::Arc;

use fairtte_cli::library::{About, Baseline, Columns, coverage_notes, page, training_warnings, warnings};
use fairtte_metrics::evaluation::{ScoredCohort, built_in_metrics, evaluate_models};
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, GroupId, Groups, MetricError, Outcomes,
    SubjectId,
};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::{Flags, Matrix, Numbers, outcomes, subject_ids};
use crate::errors::{Names, metric_error, of_metric};
use crate::lent::{Curves, Rows};
use crate::pool::{Threads, compute_showing, detached};
use crate::settings::read;

/// One attribute: name, levels, and the level of every sample, below 0 where it is missing.
pub(crate) type Attribute<'py> = (String, Vec<String>, PyReadonlyArray1<'py, i64>);
/// Times and events of the training sample.
pub(crate) type Train<'py> = (Numbers<'py>, Flags<'py>);
/// Covariates of the evaluated samples, and those of the training samples.
type Covariates = (Columns, Option<Columns>);

/// What an evaluation was made from; comparisons need it again.
pub(crate) struct Input {
    pub(crate) subjects: Vec<SubjectId>,
    pub(crate) outcomes: Outcomes,
    pub(crate) curves: Curves,
    /// The sample that the censoring curve is fitted on, if it is another one.
    pub(crate) train: Option<Outcomes>,
    pub(crate) censoring: CensoringCurve,
    pub(crate) groups: Vec<Groups>,
    pub(crate) settings: EvaluationSettings,
}

impl Input {
    fn scored(&self) -> ScoredCohort<'_> {
        let Self { subjects, outcomes, curves, censoring, groups, .. } = self;
        ScoredCohort { subjects, outcomes, curves: curves.get(), censoring, groups }
    }
}

/// One evaluated model.
#[pyclass(frozen)]
pub(crate) struct Evaluated {
    pub(crate) input: Arc<Input>,
    pub(crate) found: Arc<Found>,
}

/// What was found, without what it was made from.
pub(crate) struct Found {
    pub(crate) report: EvaluationReport,
    pub(crate) baseline: Option<Baseline>,
    pub(crate) warnings: Vec<String>,
    pub(crate) notes: Vec<String>,
}

impl Found {
    pub(crate) fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut value = serde_json::to_value(&self.report)?;
        if let (Some(baseline), Some(fields)) = (&self.baseline, value.as_object_mut()) {
            fields.insert("baseline".to_owned(), serde_json::to_value(baseline)?);
        }
        serde_json::to_string_pretty(&value)
    }
}

#[pymethods]
impl Evaluated {
    /// The report as JSON, with `baseline` where there is one.
    ///
    /// # Errors
    /// Those of [`detached`].
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || self.found.to_json())?.map_err(|error| metric_error(error.to_string()))
    }

    /// The page of the report as HTML.
    ///
    /// # Errors
    /// Those of [`detached`].
    fn to_html(
        &self,
        py: Python<'_>,
        title: String,
        time_unit: String,
        censoring: String,
        facts: Vec<(String, String)>,
        notes: Vec<String>,
    ) -> PyResult<String> {
        let found = &self.found;
        let about = About { title, time_unit, censoring, facts, warnings: found.warnings.clone(), notes };
        html(py, || page(&found.report, &about, found.baseline.as_ref()).map_err(|error| error.to_string()))
    }

    /// What must be read before the numbers, and remarks.
    #[getter]
    fn said(&self) -> (Vec<String>, Vec<String>) {
        (self.found.warnings.clone(), self.found.notes.clone())
    }

    /// Whether another evaluation is of the same times and events, and of the same groups of `attribute`.
    #[pyo3(signature = (other, attribute=None))]
    fn is_of_same_samples(&self, other: &Self, attribute: Option<&str>) -> bool {
        let of = |input: &Input| input.groups.iter().find(|groups| Some(groups.attribute()) == attribute).cloned();
        self.input.outcomes == other.input.outcomes && of(&self.input) == of(&other.input)
    }

    /// This model and another one on the same samples: `ModelReports` as JSON; `show(done, total)` is called meanwhile.
    ///
    /// # Errors
    /// `MetricError` if the two have other samples, groups or settings.
    #[pyo3(signature = (other, names, show=None, threads=None))]
    fn compare(
        &self,
        py: Python<'_>,
        other: &Self,
        names: (String, String),
        show: Option<Py<PyAny>>,
        threads: Option<Threads>,
    ) -> PyResult<String> {
        let (own, other) = (Arc::clone(&self.input), Arc::clone(&other.input));
        require_same("times or events", own.outcomes == other.outcomes)?;
        require_same("subjects or groups", own.subjects == other.subjects && own.groups == other.groups)?;
        require_same("training samples (train)", own.censoring == other.censoring)?;
        require_same("settings", own.settings == other.settings)?;
        let found = compute_showing(py, threads, show.as_ref(), move |stop, _| {
            let settings = EvaluationSettings { stop: stop.clone(), ..own.settings.metrics_only() };
            let models = [(names.0.as_str(), own.curves.get()), (names.1.as_str(), other.curves.get())];
            let Input { subjects, outcomes, censoring, groups, .. } = &*own;
            let found = evaluate_models(&models, 1, subjects, outcomes, censoring, groups, &settings)?;
            own.curves.require_unchanged().map_err(Failed::Other)?;
            other.curves.require_unchanged().map_err(Failed::Other)?;
            Ok::<_, Failed>(serde_json::to_string(&found))
        })?;
        let reports = found.map_err(Failed::into_exception)?;
        reports.map_err(|error| metric_error(error.to_string()))
    }
}

/// Evaluates curves; `settings` is `EvaluationSettings` as JSON, `show(done, total)` is called meanwhile.
///
/// # Errors
/// `MetricError` for whatever is wrong with an argument.
#[pyfunction]
#[pyo3(signature = (survival, times, time, event, groups, pairs, subjects, train, settings, covariates=None, show=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "the package calls it with all of them")]
pub(crate) fn evaluate(
    py: Python<'_>,
    survival: Matrix<'_>,
    times: Numbers<'_>,
    time: Numbers<'_>,
    event: Flags<'_>,
    groups: Vec<Attribute<'_>>,
    pairs: bool,
    subjects: Option<Vec<String>>,
    train: Option<Train<'_>>,
    settings: &str,
    covariates: Option<Covariates>,
    show: Option<Py<PyAny>>,
    threads: Option<Threads>,
) -> PyResult<Evaluated> {
    let names = Names::default();
    let settings: EvaluationSettings = read(settings)?;
    settings.validate().map_err(|error| of_metric(&error, Names { times: "eval_times", ..names }))?;
    let outcomes = outcomes(&time, &event, names)?;
    let n = outcomes.n();
    let train = train.map(|(time, event)| self::outcomes(&time, &event, Names { time: "train", ..names }));
    let train = train.transpose()?;
    let groups = all_groups(&groups, pairs, n)?;
    let subjects = subject_ids(subjects, n)?;
    let (rows, grid) = (Rows::new(&survival, py)?, times.as_array().to_vec());
    if rows.n() != n {
        return Err(metric_error(format!("survival has {} rows, expected {n}, one for each of time", rows.n())));
    }
    let found = compute_showing(py, threads, show.as_ref(), move |stop, _| -> Result<Evaluated, Failed> {
        let curves = Curves::new(grid, rows)?;
        let censoring = CensoringCurve::fit(train.as_ref().unwrap_or(&outcomes), CensoringTies::EventsFirst)?;
        let input = Input { subjects, outcomes, curves, train, censoring, groups, settings };
        let notes = coverage_notes(&input.scored(), &input.settings)?;
        let of_train = input.train.as_ref().map(|train| training_warnings(train, &input.outcomes)).transpose()?;
        let running = EvaluationSettings { stop: stop.clone(), ..input.settings.clone() };
        let Input { subjects, outcomes, curves, censoring, groups, .. } = &input;
        let report = fairtte_metrics::evaluate(subjects, outcomes, curves.get(), censoring, groups, &running)?;
        let baseline = covariates.map(|(columns, of_train)| {
            let train = input.train.clone().zip(of_train);
            let found = Baseline::new(&input.scored(), columns, train, &running);
            found.map_err(|error| Failed::Other(error.to_string()))
        });
        let baseline = baseline.transpose()?;
        curves.require_unchanged().map_err(Failed::Other)?;
        let warnings = [of_train.unwrap_or_default(), warnings(&report, curves.get())].concat();
        let found = Found { report, baseline, warnings, notes };
        Ok(Evaluated { input: Arc::new(input), found: Arc::new(found) })
    })?;
    let evaluated = found.map_err(Failed::into_exception)?;
    match evaluated.found.report.refused_setting() {
        Some(("times", reason)) => Err(metric_error(format!("eval_times: {reason}"))),
        Some((setting, reason)) => Err(metric_error(format!("{setting}: {reason}"))),
        None => Ok(evaluated),
    }
}

/// Why there is no evaluation.
enum Failed {
    Metric(MetricError),
    Other(String),
}

impl Failed {
    fn into_exception(self) -> PyErr {
        match self {
            Self::Metric(error) => of_metric(&error, Names::default()),
            Self::Other(message) => metric_error(message),
        }
    }
}

impl From<MetricError> for Failed {
    fn from(error: MetricError) -> Self {
        Self::Metric(error)
    }
}

/// A page, made on this thread without the GIL.
///
/// # Errors
/// Those of `page` and of [`detached`].
pub(crate) fn html(py: Python<'_>, page: impl FnOnce() -> Result<String, String> + Send) -> PyResult<String> {
    detached(py, page)?.map_err(metric_error)
}

/// Two evaluations are compared only if they are of the same samples and settings.
///
/// # Errors
/// `MetricError` that names what is not the same.
pub(crate) fn require_same(what: &str, is_same: bool) -> PyResult<()> {
    if is_same {
        return Ok(());
    }
    Err(metric_error(format!("the two evaluations have other {what}, expected the same")))
}

/// The groups of all attributes of `n` samples, and with `pairs` of every two attributes crossed.
///
/// # Errors
/// `MetricError` if an attribute has another number of values.
pub(crate) fn all_groups(attributes: &[Attribute<'_>], pairs: bool, n: usize) -> PyResult<Vec<Groups>> {
    let mut groups = attributes.iter().map(|attribute| to_groups(attribute, n)).collect::<PyResult<Vec<_>>>()?;
    if pairs {
        let single: Vec<&Groups> = groups.iter().collect();
        let crossed = Groups::pairwise_intersections(&single);
        groups.extend(crossed.map_err(|error| of_metric(&error, Names::default()))?);
    }
    Ok(groups)
}

fn to_groups((name, levels, codes): &Attribute<'_>, n: usize) -> PyResult<Groups> {
    let codes = codes.as_array();
    if codes.len() != n {
        let message = format!("groups[\"{name}\"] has {} values, expected {n}, one for each of time", codes.len());
        return Err(metric_error(message));
    }
    let membership = codes.iter().map(|code| u32::try_from(*code).ok().map(GroupId)).collect();
    Groups::new(name.as_str(), levels.clone(), membership).map_err(|error| of_metric(&error, Names::default()))
}

/// Name and summary of every metric.
#[pyfunction]
pub(crate) fn metric_names() -> Vec<(String, String)> {
    built_in_metrics().map(|metric| (metric.name().to_owned(), metric.summary().to_owned())).collect()
}
