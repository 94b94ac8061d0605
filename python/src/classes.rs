//! `fairtte.evaluate_binary`: the audit of predicted probabilities of a class.

use std::sync::Arc;

use fairtte_cli::library::{About, ThresholdChoice, class_page, class_warnings, training_warnings};
use fairtte_metrics::classification::{ClassPredictions, HorizonClasses, best_f1_threshold, binary_at_horizon};
use fairtte_metrics::evaluation::{
    CLASS_METRICS, ClassGroups, ClassReport, ClassSettings, HorizonReport, ModelComparison, compare_classes,
    describe_classes, evaluate_at_horizon, evaluate_classes,
};
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, MetricError, Outcomes, SubjectId,
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arrays::{Flags, Numbers, outcomes, subject_ids};
use crate::errors::{Names, metric_error, of_metric};
use crate::evaluate::{Attribute, Train, all_groups, html, require_same};
use crate::pool::{Threads, compute, compute_showing, detached};
use crate::settings::read;

/// Times, events and the horizon at which the class is made from them.
type Timed<'py> = (Numbers<'py>, Flags<'py>, f64);
/// Probabilities of other samples, their times where the class is made from times, and their classes or events.
type Validation<'py> = (Numbers<'py>, Option<Numbers<'py>>, Flags<'py>);

/// What an evaluation was made from, of the samples with a class; comparisons need it again.
pub(crate) struct Input {
    pub(crate) predictions: ClassPredictions,
    pub(crate) subjects: Vec<SubjectId>,
    pub(crate) groups: Vec<Groups>,
    pub(crate) class: ClassSettings,
    pub(crate) settings: EvaluationSettings,
    pub(crate) metrics: Option<Vec<String>>,
}

/// What was found.
#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    report: ClassReport,
    groups: ClassGroups,
    horizon: Option<HorizonReport>,
    #[serde(rename = "threshold")]
    choice: ThresholdChoice,
    /// Warnings about the training sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    training: Vec<String>,
}

impl Found {
    fn warnings(&self) -> Vec<String> {
        [self.training.clone(), class_warnings(&self.report, &self.groups)].concat()
    }

    pub(crate) fn to_json(&self) -> Result<String, serde_json::Error> {
        // By way of a value, whose keys are sorted.
        Ok(serde_json::to_value(self)?.to_string())
    }
}

/// Probabilities of one model that were evaluated.
#[pyclass(frozen)]
pub(crate) struct EvaluatedClasses {
    pub(crate) input: Arc<Input>,
    pub(crate) found: Arc<Found>,
}

#[pymethods]
impl EvaluatedClasses {
    /// `report`, by group `groups`, `horizon` (null without times) and `threshold`, where it comes from, as JSON.
    ///
    /// # Errors
    /// Those of [`detached`].
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || self.found.to_json())?.map_err(|error| metric_error(error.to_string()))
    }

    /// What must be read before the numbers.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.found.warnings()
    }

    /// Whether another evaluation is of the same classes, and of the same groups of `attribute`.
    #[pyo3(signature = (other, attribute=None))]
    fn is_of_same_samples(&self, other: &Self, attribute: Option<&str>) -> bool {
        let of = |input: &Input| input.groups.iter().find(|groups| Some(groups.attribute()) == attribute).cloned();
        let (own, other) = (&self.input, &other.input);
        own.predictions.positive() == other.predictions.positive() && of(own) == of(other)
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
        let (warnings, Found { report, groups, horizon, choice, .. }) = (self.found.warnings(), &*self.found);
        let about = About { title, time_unit, censoring, facts, warnings, notes };
        html(py, || class_page(report, groups, horizon.as_ref(), *choice, &about).map_err(|error| error.to_string()))
    }

    /// This model minus another one on the same samples, as JSON; `show(done, total)` is called meanwhile.
    ///
    /// # Errors
    /// `MetricError` if the two have other samples, groups, threshold or settings.
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
        require_same("classes", own.predictions.positive() == other.predictions.positive())?;
        require_same("subjects or groups", own.subjects == other.subjects && own.groups == other.groups)?;
        require_same("thresholds or settings", own.class == other.class && own.settings == other.settings)?;
        let found = compute_showing(py, threads, show.as_ref(), move |stop, _| -> Result<String, MetricError> {
            let settings = EvaluationSettings { stop: stop.clone(), ..own.settings.clone() };
            let models = [(names.0.as_str(), &own.predictions), (names.1.as_str(), &other.predictions)];
            let found = compare_classes(&models, &own.subjects, &own.groups, &own.class, &settings)?;
            let ModelComparison { models, mut pairs } = found;
            if let Some(wanted) = &own.metrics {
                pairs.retain(|pair| wanted.contains(&pair.metric));
            }
            Ok(json!({ "models": models, "pairs": pairs }).to_string())
        })?;
        found.map_err(refused)
    }
}

fn refused(error: MetricError) -> PyErr {
    match error {
        MetricError::InvalidSetting { setting: "true negative rate", value, expected } => {
            metric_error(format!("tnr is {value}, expected {expected}"))
        }
        error => of_metric(&error, Names::default()),
    }
}

/// Evaluates the probabilities `[n]` of the positive class: of `positive`, or of the event by the horizon of `timed`. The threshold is the
/// one with the highest F1 on `validation` if that is given, otherwise that of `of_class`. `of_class` and `settings` are `ClassSettings`
/// and `EvaluationSettings` as JSON; `show(done, total)` is called meanwhile.
///
/// # Errors
/// `MetricError` for whatever is wrong with an argument.
#[pyfunction]
#[pyo3(signature = (
    probability, positive, timed, train, validation, groups, pairs, subjects, of_class, is_given, settings, metrics=None, show=None,
    threads=None
))]
#[expect(clippy::too_many_arguments, reason = "the package calls it with all of them")]
pub(crate) fn evaluate_binary(
    py: Python<'_>,
    probability: Numbers<'_>,
    positive: Option<Flags<'_>>,
    timed: Option<Timed<'_>>,
    train: Option<Train<'_>>,
    validation: Option<Validation<'_>>,
    groups: Vec<Attribute<'_>>,
    pairs: bool,
    subjects: Option<Vec<String>>,
    of_class: &str,
    is_given: bool,
    settings: &str,
    metrics: Option<Vec<String>>,
    show: Option<Py<PyAny>>,
    threads: Option<Threads>,
) -> PyResult<EvaluatedClasses> {
    let names = Names::default();
    let class: ClassSettings = read(of_class)?;
    let settings: EvaluationSettings = read(settings)?;
    settings.validate().map_err(refused)?;
    let probability = probability.as_array().to_vec();
    let timed = timed.map(|(time, event, horizon)| Ok::<_, PyErr>((outcomes(&time, &event, names)?, horizon)));
    let timed = timed.transpose()?;
    let train = train.map(|(time, event)| outcomes(&time, &event, Names { time: "train", ..names })).transpose()?;
    let horizon = timed.as_ref().map(|(_, horizon)| *horizon);
    let validation = validation.map(|(probability, time, event)| {
        let (_, predictions) = of_validation(&probability.as_array().to_vec(), time.as_ref(), &event, horizon)?;
        with_best_f1(py, threads, class, predictions)
    });
    let without = if is_given { ThresholdChoice::Given } else { ThresholdChoice::Default };
    let (class, choice) = validation.transpose()?.unwrap_or((class, without));
    let n = probability.len();
    let (rows, predictions) = match (&positive, &timed) {
        (Some(positive), _) => of_labels(&probability, positive, ("probability", "label"))?,
        (None, Some((outcomes, horizon))) => at_horizon(outcomes, *horizon, &probability, ("probability", "time"))?,
        (None, None) => return Err(metric_error("label is None, expected classes, or time and event with a horizon")),
    };
    let groups = all_groups(&groups, pairs, n)?;
    let subjects = subject_ids(subjects, n)?;
    let found = compute_showing(py, threads, show.as_ref(), move |stop, _| -> Result<_, MetricError> {
        let of_rows: Vec<Groups> = groups.iter().map(|groups| restrict(groups, &rows)).collect::<Result<_, _>>()?;
        let own: Vec<SubjectId> = rows.iter().map(|row| subjects[*row].clone()).collect();
        let running = EvaluationSettings { stop: stop.clone(), ..settings.clone() };
        let training = match (&train, &timed) {
            (Some(train), Some((outcomes, _))) => training_warnings(train, outcomes)?,
            _ => Vec::new(),
        };
        let mut report = evaluate_classes(&predictions, &own, &of_rows, &class, &running)?;
        if let Some(wanted) = &metrics {
            report.metrics = wanted.iter().filter_map(|name| report.metric(name).cloned()).collect();
        }
        let described = describe_classes(&predictions, &own, &of_rows, &class, settings.level)?;
        let horizon = timed.map(|(outcomes, horizon)| {
            let censoring = CensoringCurve::fit(train.as_ref().unwrap_or(&outcomes), CensoringTies::EventsFirst)?;
            // The gaps by chance are those of the metrics of the class.
            let settings = EvaluationSettings { permutations: 0, ..running };
            evaluate_at_horizon(&probability, &outcomes, &censoring, horizon, &subjects, &groups, &settings)
        });
        let found = Found { report, groups: described, horizon: horizon.transpose()?, choice, training };
        Ok((Input { predictions, subjects: own, groups: of_rows, class, settings, metrics }, found))
    })?;
    let (input, found) = found.map_err(refused)?;
    Ok(EvaluatedClasses { input: Arc::new(input), found: Arc::new(found) })
}

/// Rows with a class, and their probabilities.
type WithClass = (Vec<usize>, ClassPredictions);

/// Those of the validation sample; the class is the event by `horizon` if times are given.
fn of_validation(
    probability: &[f64],
    time: Option<&Numbers<'_>>,
    event: &Flags<'_>,
    horizon: Option<f64>,
) -> PyResult<WithClass> {
    let names = ("probability of validation", "its classes or times");
    match (time, horizon) {
        (Some(time), Some(horizon)) => {
            let outcomes = outcomes(time, event, Names { time: "time of validation", ..Names::default() })?;
            at_horizon(&outcomes, horizon, probability, names)
        }
        _ => of_labels(probability, event, names),
    }
}

/// Those of samples that all have a class; `names` are those of the two arguments.
fn of_labels(probability: &[f64], positive: &Flags<'_>, names: (&str, &str)) -> PyResult<WithClass> {
    let positive = positive.as_array().to_vec();
    require_as_many(probability.len(), positive.len(), names)?;
    let rows = (0..positive.len()).collect();
    Ok((rows, predictions(probability, positive, names.0)?))
}

/// Those with an event by `horizon`, and those that were followed beyond it.
fn at_horizon(outcomes: &Outcomes, horizon: f64, probability: &[f64], names: (&str, &str)) -> PyResult<WithClass> {
    require_as_many(probability.len(), outcomes.n(), names)?;
    // Of all rows first, because an error names the row of the argument.
    predictions(probability, vec![false; outcomes.n()], names.0)?;
    let classes = binary_at_horizon(outcomes, horizon).map_err(refused)?;
    let found = classes.predictions(probability).map_err(refused)?;
    let HorizonClasses { rows, .. } = classes;
    Ok((rows, found))
}

fn require_as_many(found: usize, expected: usize, (first, second): (&str, &str)) -> PyResult<()> {
    if found == expected {
        return Ok(());
    }
    Err(metric_error(format!("{first} has {found} values and {second} {expected}, expected as many")))
}

fn predictions(probability: &[f64], positive: Vec<bool>, name: &str) -> PyResult<ClassPredictions> {
    ClassPredictions::new(probability.to_vec(), positive).map_err(|error| match error {
        MetricError::InvalidNumber { row, value, expected, .. } => {
            metric_error(format!("{name}[{row}] is {value}, expected {expected}"))
        }
        error => refused(error),
    })
}

/// The settings with the threshold of the highest F1 on other samples.
fn with_best_f1(
    py: Python<'_>,
    threads: Option<Threads>,
    class: ClassSettings,
    validation: ClassPredictions,
) -> PyResult<(ClassSettings, ThresholdChoice)> {
    let (n, n_positive) = (validation.n(), validation.n_positive());
    let best = compute(py, threads, move |_| best_f1_threshold(&validation))?;
    let best = best.map_err(|error| metric_error(format!("validation: {error}")))?;
    let choice = ThresholdChoice::F1OnValidation { n, n_positive, f1: best.f1 };
    Ok((ClassSettings { threshold: best.threshold, ..class }, choice))
}

fn restrict(groups: &Groups, rows: &[usize]) -> Result<Groups, MetricError> {
    let membership: Vec<Option<GroupId>> = rows.iter().map(|row| groups.membership()[*row]).collect();
    Groups::new(groups.attribute(), groups.levels().to_vec(), membership)
}

/// Name and convention of every metric of a class.
#[pyfunction]
pub(crate) fn class_metric_names() -> Vec<(&'static str, &'static str)> {
    CLASS_METRICS.iter().map(|metric| (metric.name, metric.convention)).collect()
}
