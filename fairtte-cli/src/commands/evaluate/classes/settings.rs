//! What a class is evaluated with, and what has no meaning for it.

use std::path::PathBuf;

use fairtte_metrics::evaluation::{CLASS_METRICS, ClassSettings};
use fairtte_metrics::{EvaluationSettings, MetricError};
use serde::{Serialize, Serializer};

use crate::CliError;
use crate::args::Evaluate;
use crate::merged::Merged;

/// Settings of an evaluation that have an effect on a class.
pub(crate) const SHARED: [&str; 9] =
    ["replicates", "permutations", "level", "seed", "resample", "interval", "stratify", "min-events", "reference"];
/// Settings of a class itself; the threshold has options of its own.
const OWN: [&str; 3] = ["tnr", "calibration-error", "underdiagnosis"];

/// What a class is evaluated with.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Settings {
    /// Names of the metrics, in the order in which they are shown.
    pub(super) metrics: Vec<String>,
    /// The time that the class is made at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) horizon: Option<f64>,
    pub(super) threshold: Threshold,
    #[serde(serialize_with = "without_threshold")]
    pub(super) class: ClassSettings,
    #[serde(serialize_with = "shared")]
    pub(super) evaluation: EvaluationSettings,
}

/// Where the threshold comes from.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Threshold {
    pub(super) value: f64,
    /// `default`, `given` or `f1-on-validation`.
    pub(super) chosen: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) validation: Option<Validation>,
}

/// The samples on which a threshold was chosen.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Validation {
    pub(super) file: PathBuf,
    pub(super) n: usize,
    pub(super) n_positive: usize,
    /// Censored by the horizon, without a class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) n_left_out: Option<usize>,
    /// The F1 that the threshold has there.
    pub(super) f1: f64,
    /// Samples, or samples of subjects, that are evaluated too.
    pub(super) n_shared: usize,
}

impl Settings {
    /// Those of the arguments.
    ///
    /// # Errors
    /// [`CliError::Config`] for one that has no effect on a class, or is outside its range.
    pub(super) fn new(arguments: &Evaluate) -> Result<Self, CliError> {
        Self::from_base(arguments, &EvaluationSettings::default())
    }

    /// Those of a run, with its settings of the evaluation; the horizon is its own.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn of_run(
        arguments: &Evaluate,
        base: &EvaluationSettings,
        horizon: Option<f64>,
    ) -> Result<Self, CliError> {
        let given = [
            ("--horizon", arguments.scores.horizon.is_some(), "the class of a run is that of its [task]"),
            ("--baseline", !arguments.scores.baseline.is_empty(), "a Cox model has no classes"),
            (
                "--sensitivity",
                arguments.scores.sensitivity.sensitivity,
                "informative censoring is analysed with curves",
            ),
        ];
        if let Some((option, _, why)) = given.into_iter().find(|(_, is_given, _)| *is_given) {
            return Err(CliError::setting(option, format!("{why}, expected it to be left out"), None));
        }
        Ok(Self { horizon, ..Self::from_base(arguments, base)? })
    }

    /// Those of a run after its training.
    ///
    /// # Errors
    /// [`CliError::Config`] for a setting outside its range.
    pub(super) fn after_training(base: &EvaluationSettings, horizon: Option<f64>) -> Result<Self, CliError> {
        let class = ClassSettings::default();
        let threshold = Threshold { value: class.threshold, chosen: "default", validation: None };
        base.validate()?;
        Ok(Self { metrics: metrics(&[])?, horizon, threshold, class, evaluation: base.clone() })
    }

    fn from_base(arguments: &Evaluate, base: &EvaluationSettings) -> Result<Self, CliError> {
        let scores = &arguments.scores;
        let (mut own, mut shared) = (Merged::default(), Merged::default());
        let of_base = toml::to_string(base).map_err(|error| CliError::Bug(error.to_string()))?;
        shared.add_text(&of_base, "run.toml")?;
        for set in &arguments.set {
            let key = set.split(['.', '=']).next().unwrap_or_default();
            let merged = match key {
                key if OWN.contains(&key) => &mut own,
                key if SHARED.contains(&key) => &mut shared,
                key => {
                    let message = format!(
                        "it has no effect on a class, expected one of {}, {}",
                        OWN.join(", "),
                        SHARED.join(", ")
                    );
                    return Err(CliError::setting(&format!("--set {key}"), message, None));
                }
            };
            merged.set_all(std::slice::from_ref(set))?;
        }
        let mut class: ClassSettings = own.into_config()?;
        let (value, chosen) = match scores.threshold[..] {
            [] => (class.threshold, "default"),
            [value] => (value, "given"),
            _ => {
                let message = format!("number of thresholds: {}, expected one", scores.threshold.len());
                return Err(CliError::setting("--threshold", message, None));
            }
        };
        class.threshold = value;
        class.validate().map_err(of_option)?;
        let mut evaluation: EvaluationSettings = shared.into_config()?;
        evaluation.min_events = scores.min_events.unwrap_or(evaluation.min_events);
        evaluation.permutations = scores.permutations.unwrap_or(evaluation.permutations);
        evaluation.reference.extend(scores.reference.iter().cloned());
        evaluation.validate()?;
        if let Some(horizon) = scores.horizon.filter(|horizon| !(horizon.is_finite() && *horizon > 0.0)) {
            return Err(CliError::setting("--horizon", format!("{horizon} is not a finite number > 0"), None));
        }
        let threshold = Threshold { value, chosen, validation: None };
        Ok(Self { metrics: metrics(&scores.metrics)?, horizon: scores.horizon, threshold, class, evaluation })
    }
}

/// The names that were requested, all if none was.
fn metrics(asked: &[String]) -> Result<Vec<String>, CliError> {
    let known = || CLASS_METRICS.iter().map(|metric| metric.name);
    if asked.is_empty() {
        return Ok(known().map(str::to_owned).collect());
    }
    let refused = |message: String| Err(CliError::setting("--metrics", message, None));
    for (place, name) in asked.iter().enumerate() {
        if !known().any(|known| known == name) {
            let known: Vec<&str> = known().collect();
            return refused(format!("\"{name}\" is no metric of a class, expected one of {}", known.join(", ")));
        }
        if asked[..place].contains(name) {
            return refused(format!("\"{name}\" is named twice, expected once"));
        }
    }
    Ok(asked.to_vec())
}

/// Names the option of a threshold out of its range.
fn of_option(error: MetricError) -> CliError {
    match error {
        MetricError::InvalidSetting { setting: "threshold", value, expected } => {
            CliError::setting("--threshold", format!("{value} is not {expected}"), None)
        }
        error => error.into(),
    }
}

/// Refuses every option that has no meaning for a class.
///
/// # Errors
/// [`CliError::Config`] with the first of them.
pub(super) fn refuse_what_is_of_curves(arguments: &Evaluate) -> Result<(), CliError> {
    let (own, scores, classes) = (&arguments.own, &arguments.scores, &arguments.classes);
    let no_times = "there are no times, expected --horizon, which makes the class from them";
    let from_times = "the class is made from times, expected no --horizon";
    let one_table = "probabilities, classes and attributes are read from one table, expected no other file of samples";
    let (is_timed, several) = (scores.horizon.is_some(), arguments.predictions.len() > 1);
    let refusals = [
        ("--cohort", arguments.cohort.is_some(), one_table),
        ("--split", arguments.split.is_some(), one_table),
        ("--part", arguments.part.is_some(), "there are no parts of a table, expected the samples to evaluate in it"),
        ("--cause", arguments.cause.is_some(), "a class has no causes, expected curves (no --task binary)"),
        ("--repair", arguments.repair.is_some(), "there are no curves that could rise, expected no --task binary"),
        ("--baseline", !scores.baseline.is_empty(), "a Cox model has no classes, expected curves (no --task binary)"),
        (
            "--sensitivity",
            scores.sensitivity.sensitivity,
            "informative censoring is analysed with curves (no --task binary); --horizon shows what leaving out the censored does",
        ),
        ("--train", arguments.train.is_some() && !is_timed, no_times),
        ("--time", own.time.is_some() && !is_timed, no_times),
        ("--event", own.event.is_some() && !is_timed, no_times),
        ("--event-value", own.event_value.is_some() && !is_timed, no_times),
        ("--time-unit", own.time_unit.is_some() && !is_timed, no_times),
        ("--label", classes.label.is_some() && is_timed, from_times),
        ("--label-value", classes.label_value.is_some() && is_timed, from_times),
        (
            "--validation",
            classes.validation.is_some() && several,
            "a threshold by F1 belongs to one model, expected one --predictions",
        ),
    ];
    match refusals.into_iter().find(|(_, is_given, _)| *is_given) {
        Some((option, _, why)) => Err(CliError::setting(option, why.to_owned(), None)),
        None => Ok(()),
    }
}

/// The settings that have an effect.
fn without_threshold<S: Serializer>(class: &ClassSettings, serializer: S) -> Result<S::Ok, S::Error> {
    some_of(class, &OWN, serializer)
}

/// The settings that have an effect.
pub(super) fn shared<S: Serializer>(settings: &EvaluationSettings, serializer: S) -> Result<S::Ok, S::Error> {
    some_of(settings, &SHARED, serializer)
}

/// The entries of `settings` with these keys.
pub(in super::super) fn some_of<S: Serializer>(
    settings: &impl Serialize,
    keys: &[&str],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let all = serde_json::to_value(settings).map_err(serde::ser::Error::custom)?;
    let found: serde_json::Map<String, serde_json::Value> = match all {
        serde_json::Value::Object(all) => all.into_iter().filter(|(key, _)| keys.contains(&key.as_str())).collect(),
        _ => serde_json::Map::new(),
    };
    found.serialize(serializer)
}
