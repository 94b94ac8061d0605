//! The settings of a run file; only `[data]` is required. Unknown keys are errors. Files and `--set` are merged in
//! `merged/mod.rs`.

mod check;
#[cfg(feature = "train")]
mod check_training;
mod task;
pub(crate) mod training;
mod written;

use std::path::{Path, PathBuf};

use fairtte_classical::Estimator;
use fairtte_data::cohort::OutcomeConfig;
use fairtte_data::loader::AugmentationConfig;
use fairtte_data::shift::ShiftConfig;
use fairtte_data::{AttributeConfig, DataConfig, ImageConfig, IntensityConfig, SplitConfig};
use fairtte_metrics::EvaluationSettings;
use serde::{Deserialize, Serialize};

pub use self::task::{SegmentationTask, TaskConfig, TaskKind};
use self::training::{
    EncoderConfig, HeadConfig, OptimiserConfig, PretrainedConfig, StrategyConfig, TimeConfig, TrainingConfig,
    path_of_weights, reads_groups,
};
pub(crate) use self::written::Written;
use crate::CliError;
use crate::merged::{Merged, OF_NETWORKS};

/// All settings of a run. Paths of the data are relative to the file that names them, `output` and `cache` to
/// the current folder. Only `[data]` is required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunFile {
    /// Title of the run. Default: the name of the run file without its extension.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub name: String,
    /// One seed for split, weights, order and noise, each from a stream of its own. Default 1.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Seed of weights, order, augmentation and noise alone, so that trainings differ on the same data and split. Default: `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_seed: Option<u64>,
    /// Run folder. Default: `runs/` and the name of the run file without its extension.
    #[cfg_attr(feature = "schema", schemars(with = "Option<PathBuf>"))]
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
    /// What is predicted: times to an event, a class, or masks.
    #[serde(default, skip_serializing_if = "TaskConfig::is_default")]
    pub task: TaskConfig,
    /// The data set.
    pub data: DataConfig,
    /// Which numbers in the column of events are what, where events have several causes. Default: 0 and 1, one kind of event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeConfig>,
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
    #[cfg_attr(feature = "schema", schemars(with = "Option<EncoderConfig>"))]
    pub model: EncoderConfig,
    /// Fits an estimator on columns in place of a network: the columns of a table, or the covariates of an image data set
    /// (`[baseline]`). A run file with it has no tables about networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimator: Option<Estimator>,
    /// What is shown beside the model in every report.
    #[serde(default, skip_serializing_if = "BaselineConfig::is_default")]
    pub baseline: BaselineConfig,
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GroupsConfig {
    /// Attributes whose groups (or intersections, if more than one) the strategy works on. Default: the first attribute.
    pub train: Vec<String>,
    /// Intersections to report in addition to the single attributes, for example `[["sex", "age"]]`.
    pub intersections: Vec<Vec<String>>,
}

/// The baseline of covariates in reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BaselineConfig {
    /// Attributes that a Cox model beside the model is fitted on, and that `[estimator]` reads where the data are images.
    /// Default: all of the run file.
    pub covariates: Vec<String>,
}

impl BaselineConfig {
    fn is_default(&self) -> bool {
        *self == Self::default()
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
        if let Some(path) = run.pretrained.as_mut().map(path_of_weights) {
            *path = base.join(&path);
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

    /// Reads a run file from merged tables whose paths are absolute.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[cfg(feature = "train")]
    pub(crate) fn from_merged(merged: Merged) -> Result<Self, CliError> {
        Self::resolve(merged)
    }

    /// Reads a run file from a table whose paths are absolute.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[cfg(feature = "train")]
    pub(crate) fn from_table(table: toml::Table, origin: &str) -> Result<Self, CliError> {
        let mut merged = Merged::default();
        merged.add_table(table, origin);
        Self::resolve(merged)
    }

    /// Fills in settings that depend on others, and checks names and types of all keys.
    fn resolve(mut merged: Merged) -> Result<Self, CliError> {
        merged.check_estimator()?;
        merged.name_after_file();
        merged.choose_by_task();
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
        let failed = |error| CliError::Bug(format!("the run file cannot be written: {error}"));
        toml::to_string(&self.table().map_err(failed)?).map_err(failed)
    }

    /// The settings as a table; without those of networks if an estimator is fitted.
    pub(crate) fn table(&self) -> Result<toml::Table, toml::ser::Error> {
        let mut table = toml::Table::try_from(self)?;
        if self.estimator.is_some() {
            table.retain(|key, _| !OF_NETWORKS.contains(&key));
        }
        Ok(table)
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

    /// Whether the training reads no groups, so that it is the same for every attribute and serves all of them.
    pub(crate) fn serves_all_attributes(&self) -> bool {
        let monitor = self.written().word("training.monitor");
        self.groups.train.is_empty()
            && !self.strategy_reads_groups()
            && !["worst-group-c-td", "worst-group-auc", "worst-group-dice"].contains(&monitor.as_str())
    }

    /// Whether epochs are kept by rules that name this attribute, `gap-c-td@sex`: if one training serves several.
    #[cfg(feature = "train")]
    pub(crate) fn keeps_epochs_for(&self, attribute: &str) -> bool {
        let is_known = self.attribute.iter().any(|known| known.name == attribute);
        self.attribute.len() > 1 && is_known && self.serves_all_attributes()
    }

    /// Whether the strategy reads groups in training.
    pub(crate) fn strategy_reads_groups(&self) -> bool {
        self.estimator.is_none() && reads_groups(&self.strategy)
    }

    /// Whether the model reads columns: of a table, or the covariates of images.
    pub(crate) fn reads_columns(&self) -> bool {
        self.is_tabular() || self.estimator.is_some()
    }

    /// Attributes that the baseline of reports, and an estimator beside images, is fitted on.
    pub(crate) fn covariates(&self) -> Vec<&str> {
        let all = || self.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
        match self.baseline.covariates.as_slice() {
            [] => all(),
            names => names.iter().map(String::as_str).collect(),
        }
    }

    /// Whether the inputs are columns of a table.
    pub fn is_tabular(&self) -> bool {
        matches!(self.data, DataConfig::Tabular(_))
    }
}
