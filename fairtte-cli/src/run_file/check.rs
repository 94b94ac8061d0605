//! What can be refused before any file is read.

use fairtte_classical::{Estimator, SurvivalEstimator as _};
use fairtte_data::loader::{Augmentation, AugmentationConfig};
use fairtte_data::{DataConfig, DataError};
use fairtte_metrics::MetricError;

use super::RunFile;
use crate::CliError;
use crate::error::InTable as _;

/// An error of the settings of the evaluation, with the names of a run file where the metrics have others.
fn of_evaluation(error: MetricError) -> CliError {
    match error {
        MetricError::InvalidSetting { setting, value, expected } => {
            let setting = match setting {
                "confidence level" => "level",
                "refinement factor of the reading" => "reading.refined.factor",
                same => same,
            };
            MetricError::InvalidSetting { setting, value, expected }.into()
        }
        MetricError::EmptyGrid | MetricError::InvalidGrid { .. } => {
            CliError::setting("evaluation.times", error.to_string(), None)
        }
        MetricError::UnknownMetric { .. } => CliError::setting("evaluation.metrics", error.to_string(), None),
        other => other.into(),
    }
}

impl RunFile {
    /// Checks what can be checked before any file is read: ranges, names of attributes, and combinations of settings.
    ///
    /// # Errors
    /// [`CliError`] naming the key, its value and what was expected.
    pub fn check(&self) -> Result<(), CliError> {
        self.split.check()?;
        self.image.check().map_err(DataError::from)?;
        self.check_inputs()?;
        self.evaluation.validate().map_err(of_evaluation).in_table("evaluation")?;
        self.check_outcome()?;
        self.check_task()?;
        if let DataConfig::Simulated(config) = &self.data {
            config.validate().in_table("data.simulated")?;
        }
        self.check_groups()?;
        self.check_shift()?;
        self.check_baseline()?;
        self.check_training()
    }

    /// The augmentation of training images in the run file; `None` for tables.
    ///
    /// # Errors
    /// [`CliError::Data`] for settings out of range.
    pub fn augmentation(&self) -> Result<Option<Augmentation>, CliError> {
        if self.is_tabular() {
            return Ok(None);
        }
        let augmentation = Augmentation::new(&self.augmentation, &self.image, self.data.name());
        Ok(Some(augmentation.map_err(DataError::from)?))
    }

    /// What is there for one of several causes, and what is only there for one.
    fn check_outcome(&self) -> Result<(), CliError> {
        let of_causes = || {
            let names: Vec<String> = Estimator::of_causes().map(|name| format!("[estimator.{name}]")).collect();
            names.join(" or ")
        };
        let estimator = self.estimator.as_ref();
        let Some(outcome) = &self.outcome else {
            let Some(alone) = estimator.filter(|estimator| estimator.models_causes()) else { return Ok(()) };
            let message =
                "it models the incidence of one of several causes, expected [outcome] with cause and competing";
            return Err(CliError::setting(&format!("estimator.{}", alone.name()), message.to_owned(), None));
        };
        outcome.check()?;
        if !matches!(self.data, DataConfig::Tabular(_) | DataConfig::Generic(_)) {
            return Err(DataError::NoCauses { data: self.data.name() }.into());
        }
        let refused = |key: &str, message: String| Err(CliError::setting(key, message, None));
        match estimator {
            Some(estimator) if estimator.models_causes() => {}
            Some(other) => {
                let message = format!("{} models one kind of event, expected {}", other.name(), of_causes());
                return refused("outcome", message);
            }
            None => {}
        }
        if self.shift.is_some() {
            return refused("shift", "it changes events of one kind, expected no [outcome]".to_owned());
        }
        if self.evaluation.sensitivity.is_some() {
            let message = "the time to one kind of event is imputed after a drop-out, expected no [outcome]".to_owned();
            return refused("evaluation.sensitivity", message);
        }
        if self.is_tabular() && !self.baseline.covariates.is_empty() {
            let message = "the baseline beside a model is of one kind of event, expected no [outcome]".to_owned();
            return refused("baseline.covariates", message);
        }
        Ok(self.evaluation.check_metrics_of_cause()?)
    }

    fn check_baseline(&self) -> Result<(), CliError> {
        let known: Vec<&str> = self.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
        let key = "baseline.covariates";
        for (place, name) in self.baseline.covariates.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return Err(CliError::unknown_attribute(key, name, &known));
            }
            if self.baseline.covariates[..place].contains(name) {
                return Err(CliError::setting(key, format!("\"{name}\" is named twice, expected once"), None));
            }
        }
        let Some(estimator) = &self.estimator else { return Ok(()) };
        estimator.check().map_err(|error| CliError::of_estimator(estimator, error))?;
        if !self.groups.train.is_empty() {
            let message = format!("it has no effect: {} reads no groups", estimator.name());
            return Err(CliError::setting("groups.train", message, None));
        }
        if !self.is_tabular() && known.is_empty() {
            let message = "it reads the attributes of images as covariates, but the run file has no [[attribute]]";
            return Err(CliError::setting(&format!("estimator.{}", estimator.name()), message.to_owned(), None));
        }
        Ok(())
    }

    fn check_inputs(&self) -> Result<(), CliError> {
        if let DataConfig::Tabular(config) = &self.data {
            config.feature_config().check()?;
            if self.pretrained.is_some() {
                let message = "no layout of pre-trained weights is known for columns of a table".to_owned();
                return Err(CliError::setting("pretrained", message, None));
            }
            if self.augmentation == AugmentationConfig::default() {
                return Ok(());
            }
            let message = "it changes images, but the inputs are columns of a table".to_owned();
            return Err(CliError::setting("augmentation", message, None));
        }
        self.intensity.check(&self.image)?;
        self.augmentation().map(|_| ())
    }

    fn check_shift(&self) -> Result<(), CliError> {
        let Some(shift) = &self.shift else { return Ok(()) };
        if self.reads_columns() {
            shift.check_for_features()?;
        } else {
            shift.check()?;
        }
        let known: Vec<&str> = self.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
        if known.contains(&shift.attribute.as_str()) {
            return Ok(());
        }
        Err(CliError::unknown_attribute("shift.attribute", &shift.attribute, &known))
    }

    fn check_groups(&self) -> Result<(), CliError> {
        let known: Vec<&str> = self.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
        let intersections = self.groups.intersections.iter().map(|names| ("groups.intersections", names));
        for (key, names) in intersections.chain([("groups.train", &self.groups.train)]) {
            if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
                return Err(CliError::unknown_attribute(key, unknown, &known));
            }
            let distinct = names.iter().collect::<std::collections::BTreeSet<_>>().len();
            if distinct < names.len() || (key == "groups.intersections" && distinct < 2) {
                let message = format!("{names:?} is not an intersection, expected two or more different attributes");
                return Err(CliError::setting(key, message, None));
            }
        }
        Ok(())
    }

    /// Without the feature `train` the tables of the training are not read.
    #[cfg(not(feature = "train"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "with the feature train it checks")]
    fn check_training(&self) -> Result<(), CliError> {
        Ok(())
    }
}
