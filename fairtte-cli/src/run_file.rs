//! The settings of a run file; only `[data]` is required. Unknown keys are errors. Files and `--set` are merged in
//! `merged.rs`.

use std::path::{Path, PathBuf};

use fairtte_data::loader::{Augmentation, AugmentationConfig};
use fairtte_data::shift::ShiftConfig;
use fairtte_data::{AttributeConfig, DataConfig, ImageConfig, IntensityConfig, SplitConfig};
use fairtte_fairness::strategies::ExpectedBatch;
use fairtte_fairness::{Monitor, OptimiserConfig, PretrainedConfig, StrategyConfig, TrainingConfig};
use fairtte_metrics::EvaluationSettings;
use fairtte_models::EncoderConfig;
use fairtte_survival::{CutPoints, GridKind, HeadConfig, Interpolation, PredictionGrid};
use serde::{Deserialize, Serialize};

use crate::error::InTable as _;
use crate::merged::Merged;
use crate::{CliError, device};

/// All settings of a run. Paths of the data are relative to the file that names them, `output` and `cache` to
/// the current folder. Only `[data]` is required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunFile {
    /// Title of the run. Default: the name of the run file without its extension.
    pub name: String,
    /// One seed for split, weights, order and noise, each from a stream of its own. Default 1.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Seed of weights, order, augmentation and noise alone, so that trainings differ on the same data and split. Default: `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_seed: Option<u64>,
    /// Run folder. Default: `runs/` and the name of the run file without its extension.
    pub output: PathBuf,
    /// Folder for decoded images and simulated cohorts, shared by runs. Default: `cache` next to the run folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// Where to compute (`fairtte list devices`). Default `flex`.
    #[serde(default = "default_device")]
    pub device: String,
    /// Threads; 0 = one per core.
    #[serde(default)]
    pub threads: usize,
    /// The data set.
    pub data: DataConfig,
    /// Sensitive attributes and how they become groups; at least one for an evaluation by group. Default: those of the
    /// paper for its three data sets, none for others.
    #[serde(default)]
    pub attribute: Vec<AttributeConfig>,
    /// Which groups training and reports use.
    #[serde(default)]
    pub groups: GroupsConfig,
    /// Shares of the three parts.
    #[serde(default)]
    pub split: SplitConfig,
    /// Size and channels of the decoded images. Default: 224 x 224 with 3 channels for MIMIC-CXR and AREDS, 96 x 128 x 128
    /// for ADNI (the paper's), 32 x 32 x 32 for simulated volumes, 64 x 64 for other data.
    #[serde(default)]
    pub image: ImageConfig,
    /// Scaling of the intensities, fitted on the training part.
    #[serde(default)]
    pub intensity: IntensityConfig,
    /// Random changes to the training images; none if not given.
    #[serde(default)]
    pub augmentation: AugmentationConfig,
    /// Degrades the training samples of one group, to study a distribution shift; none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<ShiftConfig>,
    /// Discretisation of time.
    #[serde(default)]
    pub time: TimeConfig,
    /// The network up to the representation. Default: the paper's for the kind of input, `efficientnet-b0` for pictures
    /// and `resnet18-3d` for volumes, and `mlp` for tables.
    pub model: EncoderConfig,
    /// Weights of a file that the backbone starts from; random ones if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretrained: Option<PretrainedConfig>,
    /// Loss and prediction rule. Default `nnet-survival`.
    #[serde(default)]
    pub head: HeadConfig,
    /// Training strategy. Default `erm`.
    #[serde(default)]
    pub strategy: StrategyConfig,
    /// Settings of `AdamW`.
    #[serde(default)]
    pub optimiser: OptimiserConfig,
    /// Settings of the training loop.
    #[serde(default)]
    pub training: TrainingConfig,
    /// Settings of the evaluation.
    #[serde(default)]
    pub evaluation: EvaluationSettings,
}

/// Which groups training and reports use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GroupsConfig {
    /// Attributes whose groups (or intersections, if more than one) the strategy works on. Default: the first attribute.
    pub train: Vec<String>,
    /// Intersections to report in addition to the single attributes, for example `[["sex", "age"]]`.
    pub intersections: Vec<Vec<String>>,
}

/// Discretisation of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TimeConfig {
    /// Number of cut points from 0 to the largest training time, at least 2; also the number of network outputs of the
    /// discrete heads. The paper: 14 for AREDS, 28 for ADNI, 128 for MIMIC-CXR. Default 20.
    pub intervals: usize,
    /// How cut points are placed: `equidistant`, or `quantile` of the Kaplan-Meier curve of the training part (which may
    /// give fewer). Default `equidistant`.
    pub grid: GridKind,
    /// Predicted points per interval, 1 to 1,000; 1 = the cut points only.
    pub points_per_interval: usize,
    /// Interpolation between cut points with more than one point: `linear` survival or `constant-hazard`. The heads
    /// `pc-hazard` (constant hazard) and `cox`, `cox-time` (steps at event times) have a rule of their own.
    pub interpolation: Interpolation,
}

impl Default for TimeConfig {
    fn default() -> Self {
        Self {
            intervals: 20,
            grid: GridKind::Equidistant,
            points_per_interval: 1,
            interpolation: Interpolation::Linear,
        }
    }
}

fn default_seed() -> u64 {
    1
}

fn default_device() -> String {
    "flex".to_owned()
}

impl RunFile {
    /// Reads and merges `files` and `sets`, in that order.
    ///
    /// # Errors
    /// [`CliError`] naming file, key and what was expected.
    pub fn read(files: &[PathBuf], sets: &[String]) -> Result<Self, CliError> {
        Self::read_without(files, sets, &[])
    }

    /// As [`read`](Self::read), without the tables `taken`, which are read elsewhere.
    pub(crate) fn read_without(files: &[PathBuf], sets: &[String], taken: &[&str]) -> Result<Self, CliError> {
        let mut merged = Merged::default();
        let mut folder = PathBuf::new();
        for file in files {
            if merged.add_file(file)? {
                folder = file.parent().map(Path::to_owned).unwrap_or_default();
            }
        }
        merged.set_all(sets)?;
        let mut run = Self::resolve(taken.iter().fold(merged, |merged, key| merged.without(key)))?;
        // A canonical name of the folder, so that the resolved file means the same wherever it is read from.
        let base = Path::new(".").join(&folder).canonicalize();
        let base = base.map_err(|source| CliError::ReadRunFile { path: folder, source })?;
        run.data.resolve_paths(&base);
        run.split.resolve_paths(&base);
        if let Some(pretrained) = &mut run.pretrained {
            pretrained.path = base.join(&pretrained.path);
        }
        Ok(run)
    }

    /// Reads a run file from text, for runs whose settings are part of the program.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_text(text: &str, origin: &str, sets: &[String]) -> Result<Self, CliError> {
        let mut merged = Merged::default();
        merged.add_text(text, origin)?;
        merged.set_all(sets)?;
        Self::resolve(merged)
    }

    /// Fills in settings that depend on others, and checks names and types of all keys.
    fn resolve(mut merged: Merged) -> Result<Self, CliError> {
        merged.name_after_file();
        merged.choose_by_data();
        let mut run: Self = merged.into_config()?;
        if run.attribute.is_empty() {
            run.attribute = run.data.default_attributes();
        }
        Ok(run)
    }

    /// The resolved run file, every default written out.
    ///
    /// # Errors
    /// [`CliError::Bug`] if a setting has no form in TOML.
    pub fn to_toml(&self) -> Result<String, CliError> {
        toml::to_string(self).map_err(|error| CliError::Bug(format!("the run file cannot be written: {error}")))
    }

    /// Where decoded images and simulated cohorts are kept.
    pub fn cache(&self) -> PathBuf {
        let beside = || self.output.parent().map_or_else(|| PathBuf::from("cache"), |parent| parent.join("cache"));
        self.cache.clone().unwrap_or_else(beside)
    }

    /// Seed of everything random in the training itself.
    pub fn training_seed(&self) -> u64 {
        self.training_seed.unwrap_or(self.seed)
    }

    /// Attributes whose groups the strategy works on.
    pub fn training_attributes(&self) -> Vec<&str> {
        match self.groups.train.as_slice() {
            [] => self.attribute.first().map(|attribute| attribute.name.as_str()).into_iter().collect(),
            names => names.iter().map(String::as_str).collect(),
        }
    }
}

impl RunFile {
    /// Checks what can be checked before any file is read: ranges, names of attributes, and combinations of settings.
    ///
    /// # Errors
    /// [`CliError`] naming the key, its value and what was expected.
    pub fn check(&self) -> Result<(), CliError> {
        device::open(&self.device)?;
        self.split.check()?;
        self.image.check()?;
        self.check_inputs()?;
        self.training.validate().in_table("training")?;
        self.optimiser.validate().in_table("optimiser")?;
        self.model.validate().in_table("model")?;
        self.pretrained.as_ref().map_or(Ok(()), PretrainedConfig::validate).in_table("pretrained")?;
        let head = self.head.build().in_table(&self.head_table())?;
        head.check_hidden(self.model.hidden).in_table("model")?;
        self.strategy.validate().in_table(&self.strategy_table())?;
        let batch = ExpectedBatch::of_any_data(self.training.batch_size, head.as_ref());
        self.strategy.check_batches(&batch).in_table(&self.strategy_table())?;
        self.evaluation.validate()?;
        CutPoints::check(self.time.intervals)?;
        PredictionGrid::check(self.time.points_per_interval).in_table("time")?;
        if let DataConfig::Simulated(config) = &self.data {
            config.validate()?;
        }
        self.check_axes()?;
        self.check_groups()?;
        self.check_shift()
    }

    /// Where the settings of the strategy are in a run file.
    pub(crate) fn strategy_table(&self) -> String {
        format!("strategy.{}", self.strategy.name())
    }

    fn head_table(&self) -> String {
        format!("head.{}", self.head.name())
    }

    /// Whether the inputs are columns of a table.
    pub fn is_tabular(&self) -> bool {
        matches!(self.data, DataConfig::Tabular(_))
    }

    /// The augmentation of training images in the run file; `None` for tables.
    ///
    /// # Errors
    /// [`CliError::Data`] for settings out of range.
    pub fn augmentation(&self) -> Result<Option<Augmentation>, CliError> {
        if self.is_tabular() {
            return Ok(None);
        }
        Ok(Some(Augmentation::new(&self.augmentation, &self.image, self.data.name())?))
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
        if self.is_tabular() {
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

    fn check_axes(&self) -> Result<(), CliError> {
        let (size, backbone) = (&self.image.size, self.model.backbone);
        let n_axes = if self.is_tabular() { 0 } else { size.len() };
        if n_axes == backbone.n_axes() {
            return self.check_sides();
        }
        if n_axes == 0 || backbone.n_axes() == 0 {
            let inputs = if n_axes == 0 { "columns of a table" } else { "images" };
            let message = format!("{} does not read {inputs}", backbone.name());
            let help = if n_axes == 0 { "write backbone = \"mlp\"" } else { "see `fairtte list backbones`" };
            return Err(CliError::setting("model.backbone", message, Some(help)));
        }
        let (found, expected) = (size.len(), backbone.n_axes());
        let message = format!("{size:?} has {found} axes, but backbone {} reads {expected}", backbone.name());
        let help = if expected == 2 { "write size = [height, width]" } else { "write size = [depth, height, width]" };
        Err(CliError::setting("image.size", message, Some(help)))
    }

    fn check_sides(&self) -> Result<(), CliError> {
        let (size, backbone) = (&self.image.size, self.model.backbone);
        let multiple = backbone.side_multiple();
        if multiple == 1 || size.iter().all(|side| side % multiple == 0) {
            return Ok(());
        }
        let message =
            format!("{size:?} cannot be cut into the patches of {multiple} x {multiple} of {}", backbone.name());
        let help = format!("write multiples of {multiple}, as size = [224, 224]");
        Err(CliError::setting("image.size", message, Some(&help)))
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
        if known.is_empty() && self.strategy.needs_groups() {
            let message = "it works on groups, but the run file has no [[attribute]]".to_owned();
            return Err(CliError::setting("strategy", message, None));
        }
        if known.is_empty() && self.training.monitor == Monitor::WorstGroupCTd {
            let message = "worst-group-c-td needs groups, but the run file has no [[attribute]]".to_owned();
            return Err(CliError::setting("training.monitor", message, None));
        }
        Ok(())
    }
}
