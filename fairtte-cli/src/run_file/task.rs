//! What is predicted, the table `[task]`: times to an event, or a class.

use fairtte_data::cohort::{Classes, HorizonConfig};
use fairtte_data::{Cohort, DataConfig, DataError};
use fairtte_metrics::EvaluationSettings;
use serde::{Deserialize, Serialize};

use super::RunFile;
use crate::CliError;

/// What is predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TaskConfig {
    /// `time-to-event` (default): a survival curve; `binary`: the probability of a class.
    pub kind: TaskKind,
    /// Makes the class from times, as `{ horizon = 365 }`; who is censored by then is left out of training, and counted. Default:
    /// the class is in the column `label` of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<HorizonConfig>,
}

/// The kind of what is predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TaskKind {
    /// A survival curve.
    #[default]
    TimeToEvent,
    /// The probability of a class.
    Binary,
}

impl TaskConfig {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl RunFile {
    /// Whether the probability of a class is predicted.
    pub(crate) fn is_of_class(&self) -> bool {
        self.task.kind == TaskKind::Binary
    }

    /// The class of every sample; `None` where times are predicted.
    ///
    /// # Errors
    /// [`DataError`] if the cohort has no class.
    pub(crate) fn classes(&self, cohort: &Cohort) -> Result<Option<Classes>, DataError> {
        let horizon = self.task.binary.map(|binary| binary.horizon);
        self.is_of_class().then(|| cohort.classes(horizon)).transpose()
    }

    /// Refuses a run that predicts a class, for what needs survival curves.
    ///
    /// # Errors
    /// [`CliError::Config`] naming `what`.
    pub(crate) fn require_curves(&self, what: &str) -> Result<(), CliError> {
        if !self.is_of_class() {
            return Ok(());
        }
        let message = format!(
            "\"{}\" predicts a class ([task] kind = \"binary\"), {what} is of survival curves only so far",
            self.name
        );
        Err(CliError::setting("task", message, Some("fairtte train and fairtte evaluate RUN know classes")))
    }

    /// The column of labels of the data.
    fn label(&self) -> Option<&str> {
        match &self.data {
            DataConfig::Generic(config) => config.label.as_deref(),
            DataConfig::Tabular(config) => config.label.as_deref(),
            _ => None,
        }
    }

    fn label_value(&self) -> Option<&str> {
        match &self.data {
            DataConfig::Generic(config) => config.label_value.as_deref(),
            DataConfig::Tabular(config) => config.label_value.as_deref(),
            _ => None,
        }
    }

    /// What is predicted, and whether everything else in the run file is about it.
    ///
    /// # Errors
    /// [`CliError`] naming the key.
    pub(super) fn check_task(&self) -> Result<(), CliError> {
        let refused = |key: &str, message: &str| Err(CliError::setting(key, message.to_owned(), None));
        let of_label = |key: &str| format!("data.{}.{key}", self.data.name());
        if self.label_value().is_some() && self.label().is_none() {
            return refused(&of_label("label-value"), "it has no effect without label");
        }
        if !self.is_of_class() {
            if self.task.binary.is_some() {
                return refused("task.binary", "it makes a class from times, expected kind = \"binary\" beside it");
            }
            if self.label().is_some() {
                return refused(&of_label("label"), "it names a class, expected [task] kind = \"binary\"");
            }
            return Ok(());
        }
        match (&self.task.binary, self.label()) {
            (Some(_), Some(_)) => {
                let message = "the class is made from times, expected no label of the data beside it";
                return refused("task.binary", message);
            }
            (None, None) => {
                let message = "there is no class, expected binary = { horizon = TIME }, which makes it from times, or label = COLUMN in \
                               [data.generic] or [data.tabular]";
                return refused("task", message);
            }
            (Some(binary), None) => binary.check()?,
            (None, Some(_)) => {}
        }
        let of_curves = "a class has no survival curves, expected [task] kind = \"time-to-event\"";
        let refusals = [
            ("outcome", self.outcome.is_some(), "a class is of events of one kind, expected no [outcome]"),
            ("shift", self.shift.is_some(), "it changes times and events, expected no [task] kind = \"binary\""),
            ("estimator", self.estimator.is_some(), of_curves),
            ("baseline", !self.baseline.covariates.is_empty(), of_curves),
        ];
        if let Some((key, _, why)) = refusals.into_iter().find(|(_, is_given, _)| *is_given) {
            return refused(key, why);
        }
        if let Some(key) = of_curves_alone(&self.evaluation) {
            return refused(
                &format!("evaluation.{key}"),
                "it has no effect on a class, whose evaluation is of probabilities",
            );
        }
        Ok(())
    }
}

/// A setting of the evaluation of curves that has no effect on a class and is not the default.
fn of_curves_alone(settings: &EvaluationSettings) -> Option<String> {
    let of = |settings: &EvaluationSettings| serde_json::to_value(settings).unwrap_or_default();
    let (found, usual) = (of(settings), of(&EvaluationSettings::default()));
    let is_shared = |key: &str| crate::commands::SETTINGS_OF_CLASSES.contains(&key);
    let other = found.as_object()?.iter().find(|(key, value)| !is_shared(key) && usual.get(*key) != Some(value));
    other.map(|(key, _)| key.clone())
}
