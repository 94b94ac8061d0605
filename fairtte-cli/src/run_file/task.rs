//! What is predicted, the table `[task]`: times to an event, a class, or the class of every pixel.

use std::collections::{BTreeMap, BTreeSet};

use fairtte_data::cohort::{Classes, HorizonConfig};
use fairtte_data::{Cohort, DataConfig, DataError};
use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::masks::MaskClass;
use fairtte_metrics::resampling::Stratify;
use fairtte_records::Predicted;
use serde::{Deserialize, Serialize};

use super::RunFile;
use crate::CliError;

/// What is predicted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TaskConfig {
    /// `time-to-event` (default): a survival curve; `binary`: the probability of a class; `segmentation`: the class of every pixel.
    pub kind: TaskKind,
    /// Makes the class from times, as `{ horizon = 365 }`; who is censored by then is left out of training, and counted. Default:
    /// the class is in the column `label` of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<HorizonConfig>,
    /// The classes of the masks, for `kind = "segmentation"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segmentation: Option<SegmentationTask>,
}

/// What the values of the pixels of masks mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SegmentationTask {
    /// Classes that are compared, with their values, as `{ disc = [1, 2], cup = [2] }`; classes may overlap. The network tells all
    /// these values and 0, the background, apart; a mask with another value is an error.
    pub classes: BTreeMap<String, Vec<u8>>,
    /// Class of the optic cup: adds the error of the vertical cup-to-disc ratio to the evaluation. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cup: Option<String>,
    /// Class of the optic disc, which contains the cup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disc: Option<String>,
}

impl SegmentationTask {
    /// The values of pixels, ascending from 0: the place of one is the number of its class for the network.
    pub fn values(&self) -> Vec<u8> {
        let all: BTreeSet<u8> = self.classes.values().flatten().copied().chain([0]).collect();
        all.into_iter().collect()
    }

    /// Classes with their values, as an evaluation of masks takes them.
    pub(crate) fn mask_classes(&self) -> Vec<MaskClass> {
        let class = |(name, values): (&String, &Vec<u8>)| MaskClass {
            name: name.clone(),
            values: values.iter().map(|value| i32::from(*value)).collect(),
        };
        self.classes.iter().map(class).collect()
    }

    fn check(&self) -> Result<(), CliError> {
        let refused =
            |key: &str, message: String| Err(CliError::setting(&format!("task.segmentation.{key}"), message, None));
        if self.classes.is_empty() {
            return refused("classes", "it is empty, expected { NAME = [VALUE, ..] }".to_owned());
        }
        for (name, values) in &self.classes {
            let distinct: BTreeSet<&u8> = values.iter().collect();
            if values.is_empty() || values.contains(&0) || distinct.len() < values.len() {
                let message =
                    format!("{name} = {values:?}, expected different values from 1 to 255 (0 is the background)");
                return refused("classes", message);
            }
        }
        let (cup, disc) = match (&self.cup, &self.disc) {
            (None, None) => return Ok(()),
            (Some(cup), Some(disc)) => (cup, disc),
            (Some(_), None) => return refused("cup", "expected disc beside it".to_owned()),
            (None, Some(_)) => return refused("disc", "expected cup beside it".to_owned()),
        };
        let find = |key: &str, name: &String| {
            self.classes.get(name).ok_or_else(|| {
                let names: Vec<&str> = self.classes.keys().map(String::as_str).collect();
                let message = format!("there is no class \"{name}\", expected one of {}", names.join(", "));
                CliError::setting(&format!("task.segmentation.{key}"), message, None)
            })
        };
        let (of_cup, of_disc) = (find("cup", cup)?, find("disc", disc)?);
        if of_cup.iter().all(|value| of_disc.contains(value)) {
            return Ok(());
        }
        refused(
            "disc",
            format!("\"{disc}\" does not contain the values of \"{cup}\", expected disc = [1, 2], cup = [2]"),
        )
    }
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
    /// The class of every pixel.
    Segmentation,
}

impl TaskKind {
    /// As a run file names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TimeToEvent => "time-to-event",
            Self::Binary => "binary",
            Self::Segmentation => "segmentation",
        }
    }
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

    /// Whether masks are predicted.
    pub(crate) fn is_of_masks(&self) -> bool {
        self.task.kind == TaskKind::Segmentation
    }

    /// Whether what is predicted is about times.
    #[cfg(feature = "train")]
    pub(crate) fn has_times(&self) -> bool {
        self.task.kind == TaskKind::TimeToEvent
    }

    /// What is predicted.
    pub(crate) fn predicted(&self) -> Predicted {
        match self.task.kind {
            TaskKind::TimeToEvent => Predicted::Curves,
            TaskKind::Binary => Predicted::Class,
            TaskKind::Segmentation => Predicted::Masks,
        }
    }

    /// The class of every sample; `None` where times are predicted.
    ///
    /// # Errors
    /// [`DataError`] if the cohort has no class.
    pub(crate) fn classes(&self, cohort: &Cohort) -> Result<Option<Classes>, DataError> {
        let horizon = self.task.binary.map(|binary| binary.horizon);
        self.is_of_class().then(|| cohort.classes(horizon)).transpose()
    }

    /// Refuses a run that predicts a class or masks, for what needs survival curves.
    ///
    /// # Errors
    /// [`CliError::Config`] naming `what`.
    pub(crate) fn require_curves(&self, what: &str) -> Result<(), CliError> {
        if self.task.kind == TaskKind::TimeToEvent { Ok(()) } else { Err(self.unfit_task(what, "survival curves")) }
    }

    /// Refuses a run that predicts masks, for what needs one prediction per sample.
    ///
    /// # Errors
    /// [`CliError::Config`] naming `what`.
    pub(crate) fn require_no_masks(&self, what: &str) -> Result<(), CliError> {
        if self.is_of_masks() { Err(self.unfit_task(what, "survival curves and classes")) } else { Ok(()) }
    }

    /// Refuses a run that predicts one of several causes; `what` is what is about one kind of event.
    ///
    /// # Errors
    /// [`CliError::Config`] if the run has `[outcome]`.
    #[cfg(feature = "train")]
    pub(crate) fn require_one_kind(&self, what: &str) -> Result<(), CliError> {
        if self.outcome.is_none() {
            return Ok(());
        }
        let message = format!("{what} about one kind of event, expected a run without [outcome]");
        Err(CliError::setting("outcome", message, None))
    }

    /// The error of `what`, which works with `predictions` and not with those of this run.
    fn unfit_task(&self, what: &str, predictions: &str) -> CliError {
        let kind = self.task.kind.name();
        let known = match self.task.kind {
            TaskKind::TimeToEvent => "curves",
            TaskKind::Binary => "classes",
            TaskKind::Segmentation => "masks",
        };
        let message = format!(
            "\"{}\" predicts {} ([task] kind = \"{kind}\"), {what} works with {predictions} only so far",
            self.name,
            self.predicted().words()
        );
        CliError::setting("task", message, Some(&format!("fairtte train and fairtte evaluate RUN know {known}")))
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
        self.check_masks()?;
        if self.is_of_masks() {
            return Ok(());
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

impl RunFile {
    /// The column of masks of the data.
    fn mask(&self) -> Option<&str> {
        match &self.data {
            DataConfig::Generic(config) => config.mask.as_deref(),
            _ => None,
        }
    }

    /// Masks are predicted where the data have them, and everything else in the run file is about them.
    fn check_masks(&self) -> Result<(), CliError> {
        let refused = |key: &str, message: &str| Err(CliError::setting(key, message.to_owned(), None));
        if !self.is_of_masks() {
            if self.mask().is_some() {
                return refused("data.generic.mask", "it names masks, expected [task] kind = \"segmentation\"");
            }
            if self.task.segmentation.is_some() {
                return refused("task.segmentation", "it is about masks, expected kind = \"segmentation\" beside it");
            }
            return Ok(());
        }
        let Some(task) = &self.task.segmentation else {
            let message = "there are no classes, expected segmentation = { classes = { NAME = [VALUE, ..] } }";
            return refused("task", message);
        };
        task.check()?;
        if self.mask().is_none() {
            let message = "there are no masks, expected mask = COLUMN in [data.generic]";
            return refused("task", message);
        }
        let no_outcome = "masks have no times and events, expected [task] kind = \"time-to-event\"";
        let refusals = [
            (
                "task.binary",
                self.task.binary.is_some(),
                "it makes a class from times, expected kind = \"binary\" beside it",
            ),
            ("data.generic.label", self.label().is_some(), "it names a class, expected [task] kind = \"binary\""),
            ("outcome", self.outcome.is_some(), no_outcome),
            ("shift", self.shift.is_some(), no_outcome),
            ("estimator", self.estimator.is_some(), no_outcome),
            ("baseline", !self.baseline.covariates.is_empty(), no_outcome),
            (
                "augmentation.crop",
                self.augmentation.crop.is_some(),
                "masks are predicted for whole images, expected no crop",
            ),
            (
                "evaluation.stratify",
                self.evaluation.stratify == Stratify::Event,
                "masks have no events, expected none or an attribute",
            ),
        ];
        if let Some((key, _, why)) = refusals.into_iter().find(|(_, is_given, _)| *is_given) {
            return refused(key, why);
        }
        match of_curves_alone(&self.evaluation) {
            Some(key) => {
                refused(&format!("evaluation.{key}"), "it has no effect on masks, which are compared pixel by pixel")
            }
            None => Ok(()),
        }
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
