//! What masks are compared with, checked before any file is opened.

use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::evaluation::MaskMetric;
use fairtte_metrics::masks::{MaskClass, MaskSettings};
use fairtte_metrics::resampling::Stratify;
use serde::{Serialize, Serializer};

use super::super::classes::some_of;
use crate::CliError;
use crate::args::EvaluateMasks;
use crate::merged::Merged;
use crate::run_file::SegmentationTask;

/// Settings of an evaluation that have an effect on masks and no option of their own.
pub(super) const SHARED: [&str; 7] =
    ["replicates", "permutations", "level", "seed", "resample", "interval", "stratify"];
/// The same with those that have one.
const WRITTEN: [&str; 9] =
    ["replicates", "permutations", "level", "seed", "resample", "interval", "stratify", "min-events", "reference"];

/// What masks are compared with.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Settings {
    /// As given; empty: every value but 0 is a class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) classes: Vec<MaskClass>,
    /// As given; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<MaskMetric>,
    /// The classes of cup and disc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cup_and_disc: Option<[MaskClass; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) spacing: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unit: Option<String>,
    pub(super) masks: MaskSettings,
    #[serde(serialize_with = "written")]
    pub(super) evaluation: EvaluationSettings,
    /// Whether a class that no mask has is refused. A part of a run may lack a rare class that its training part has, and the training
    /// is not lost for it; in a table it is a wrong value.
    #[serde(skip)]
    pub(super) needs_pixels: bool,
}

impl Settings {
    /// Those of the arguments.
    ///
    /// # Errors
    /// [`CliError::Config`] naming the option.
    pub(super) fn new(arguments: &EvaluateMasks) -> Result<Self, CliError> {
        let refused = |option: &str, message: String| Err(CliError::setting(option, message, None));
        let classes = &arguments.classes;
        if let Some(k) = (1..classes.len()).find(|k| classes[..*k].iter().any(|class| class.name == classes[*k].name)) {
            return refused("--classes", format!("\"{}\" is named twice, expected once", classes[k].name));
        }
        let metrics: Vec<MaskMetric> = arguments.metrics.iter().map(|name| name.metric()).collect();
        if let Some(k) = (1..metrics.len()).find(|k| metrics[..*k].contains(&metrics[*k])) {
            return refused("--metrics", format!("\"{}\" is named twice, expected once", metrics[k].name()));
        }
        let cup_and_disc = cup_and_disc(arguments)?;
        let asks_ratio = metrics.contains(&MaskMetric::CupToDisc);
        if asks_ratio && cup_and_disc.is_none() {
            return refused("--metrics", "cup-to-disc-error needs --cup and --disc".to_owned());
        }
        if !metrics.is_empty() && !asks_ratio && cup_and_disc.is_some() {
            let message = "it has no effect, expected cup-to-disc-error among --metrics".to_owned();
            return refused("--cup", message);
        }
        if let Some(wrong) = arguments.spacing.iter().find(|spacing| !(spacing.is_finite() && **spacing > 0.0)) {
            return refused("--spacing", format!("{wrong} is not a finite number > 0"));
        }
        let masks = MaskSettings { hausdorff: arguments.hausdorff.convention(), tolerance: arguments.tolerance };
        if masks.validate().is_err() {
            return refused("--tolerance", format!("{} is not a finite number >= 0", arguments.tolerance));
        }
        Ok(Self {
            classes: classes.clone(),
            metrics,
            cup_and_disc,
            spacing: arguments.spacing.clone(),
            unit: arguments.unit.clone(),
            masks,
            evaluation: evaluation(arguments)?,
            needs_pixels: true,
        })
    }

    /// Those of a run that predicts masks, with its settings of the evaluation.
    ///
    /// # Errors
    /// [`CliError::Config`] for a setting outside its range.
    pub(super) fn of_run(task: &SegmentationTask, evaluation: EvaluationSettings) -> Result<Self, CliError> {
        evaluation.validate()?;
        let classes = task.mask_classes();
        let find = |name: &String| classes.iter().find(|class| class.name == *name).cloned();
        let cup_and_disc =
            task.cup.as_ref().zip(task.disc.as_ref()).and_then(|(cup, disc)| Some([find(cup)?, find(disc)?]));
        Ok(Self {
            cup_and_disc,
            classes,
            metrics: Vec::new(),
            spacing: Vec::new(),
            unit: None,
            masks: MaskSettings::default(),
            evaluation,
            needs_pixels: false,
        })
    }

    /// The metrics in the order in which they are shown.
    pub(super) fn metrics(&self) -> Vec<MaskMetric> {
        if !self.metrics.is_empty() {
            return self.metrics.clone();
        }
        let has_ratio = self.cup_and_disc.is_some();
        MaskMetric::ALL.into_iter().filter(|metric| *metric != MaskMetric::CupToDisc || has_ratio).collect()
    }
}

fn evaluation(arguments: &EvaluateMasks) -> Result<EvaluationSettings, CliError> {
    for set in &arguments.set {
        let key = set.split(['.', '=']).next().unwrap_or_default();
        if !SHARED.contains(&key) {
            let message = format!("it has no effect on masks, expected one of {}", SHARED.join(", "));
            return Err(CliError::setting(&format!("--set {key}"), message, None));
        }
    }
    let mut merged = Merged::default();
    merged.set_all(&arguments.set)?;
    let mut evaluation: EvaluationSettings = merged.into_config()?;
    if evaluation.stratify == Stratify::Event {
        let message = "masks have no events, expected none or an attribute".to_owned();
        return Err(CliError::setting("--set stratify", message, None));
    }
    evaluation.min_events = arguments.min_samples;
    evaluation.reference.extend(arguments.reference.iter().cloned());
    evaluation.validate()?;
    Ok(evaluation)
}

/// The classes that `--cup` and `--disc` name.
fn cup_and_disc(arguments: &EvaluateMasks) -> Result<Option<[MaskClass; 2]>, CliError> {
    let (Some(cup), Some(disc)) = (&arguments.cup, &arguments.disc) else { return Ok(None) };
    let find = |option: &str, name: &String| {
        let found = arguments.classes.iter().find(|class| class.name == *name).cloned();
        found.ok_or_else(|| {
            let names: Vec<&str> = arguments.classes.iter().map(|class| class.name.as_str()).collect();
            let expected =
                if names.is_empty() { "--classes with it".to_owned() } else { format!("one of {}", names.join(", ")) };
            CliError::setting(option, format!("there is no class \"{name}\", expected {expected}"), None)
        })
    };
    let [cup, disc] = [find("--cup", cup)?, find("--disc", disc)?];
    if !cup.values.iter().all(|value| disc.values.contains(value)) {
        let message = format!(
            "the disc \"{}\" does not contain the values of the cup \"{}\", expected --classes disc=1+2,cup=2",
            disc.name, cup.name
        );
        return Err(CliError::setting("--disc", message, None));
    }
    Ok(Some([cup, disc]))
}

/// The settings that have an effect.
pub(super) fn written<S: Serializer>(settings: &EvaluationSettings, serializer: S) -> Result<S::Ok, S::Error> {
    some_of(settings, &WRITTEN, serializer)
}
