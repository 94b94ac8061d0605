//! The trained model of a run, `model/`: with `run.toml` it is all that prediction on other data needs, without the data
//! that it was trained on.
//!
//! `model.json` has what was fitted on the training part; `epoch-00005/` the weights of an epoch that a selection rule
//! chose; `training-inputs.txt` hashes of the training images, by which they are recognised elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fairtte_classical::FittedEstimator;
use fairtte_data::cohort::FittedAttribute;
use fairtte_data::features::TabularFeatures;
use fairtte_data::loader::Intensity;
use fairtte_data::write_atomically;
use fairtte_fairness::{FittedModel, Strategy, write_weights};
use fairtte_survival::{CutPoints, PredictionGrid};
use serde::{Deserialize, Serialize};

use super::weights::{KeptEpoch, RECORD};
use super::{RunFolder, from_json, read_json, read_text, write_json, write_text};
use crate::CliError;
use crate::shell::quoted_path;

/// Incremented when the content of `model.json` changes its meaning.
const VERSION: u32 = 1;
/// The file of an estimator in the folder of its epoch.
const ESTIMATOR: &str = "estimator.json";
const INPUTS: &str = "training-inputs.txt";
/// Digits of a hash that are kept: 64 bits, so that two images of a million agree by chance in one of 10^7 runs.
const DIGITS: usize = 16;

/// The content of `model.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ModelRecord {
    version: u32,
    /// Version of the program that trained it.
    pub(crate) fairtte: String,
    /// Unit of the times of the curves.
    pub(crate) time_unit: String,
    /// The epoch of `predictions.parquet`, counted from 1.
    pub(crate) epoch: usize,
    /// By epoch, counted from 1.
    pub(crate) epochs: BTreeMap<usize, KeptEpoch>,
    /// Scale of the intensities; `None` for a table.
    pub(crate) intensity: Option<Intensity>,
    /// Encodings of the columns; `None` for images.
    pub(crate) features: Option<TabularFeatures>,
    /// Thresholds and levels of the attributes.
    pub(crate) attributes: Vec<FittedAttribute>,
    /// What was fitted besides weights.
    pub(crate) fitted: FittedKind,
}

/// What prediction needs of a fit besides its weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum FittedKind {
    /// Network, time grid and sizes of the training groups.
    Network(FittedModel),
    /// Columns and time grid of an estimator.
    Estimator(EstimatorModel),
}

impl FittedKind {
    /// Times of the curves.
    pub(crate) fn grid(&self) -> &PredictionGrid {
        match self {
            Self::Network(fitted) => &fitted.grid,
            Self::Estimator(fitted) => &fitted.grid,
        }
    }
}

/// What prediction needs of a fitted estimator besides its own file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct EstimatorModel {
    /// The features that it reads, in the order of its covariates.
    pub(crate) columns: Vec<String>,
    /// The time grid of the run.
    pub(crate) cut_points: CutPoints,
    /// Times of predicted curves, in the time unit of the data.
    pub(crate) grid: PredictionGrid,
}

impl ModelRecord {
    /// The network of `run`.
    ///
    /// # Errors
    /// [`CliError::Config`] if the run has an estimator in its place.
    pub(crate) fn network(&self, run: &Path) -> Result<&FittedModel, CliError> {
        match &self.fitted {
            FittedKind::Network(fitted) => Ok(fitted),
            FittedKind::Estimator(_) => Err(no_network(run)),
        }
    }

    /// The epoch that `wanted` names: a number, or a selection rule; the one of `training.monitor` if not given.
    ///
    /// # Errors
    /// [`CliError::Config`] with the epochs whose weights were kept.
    pub(crate) fn chosen_epoch(&self, wanted: Option<&str>) -> Result<usize, CliError> {
        let Some(wanted) = wanted else { return Ok(self.epoch) };
        let found = match wanted.parse::<usize>() {
            Ok(epoch) => self.epochs.contains_key(&epoch).then_some(epoch),
            Err(_) => {
                self.epochs.iter().find(|(_, kept)| kept.rules.iter().any(|rule| rule == wanted)).map(|(e, _)| *e)
            }
        };
        found.ok_or_else(|| {
            let kept = self.epochs.iter().map(|(epoch, kept)| format!("{epoch} ({})", kept.rules.join(", ")));
            let kept: Vec<String> = kept.collect();
            let message =
                format!("\"{wanted}\" is no epoch whose weights were kept, expected one of {}", kept.join("; "));
            CliError::setting("--epoch", message, None)
        })
    }
}

/// What [`ModelWriter::finish`] adds to the weights.
pub(crate) struct Fitted {
    pub(crate) time_unit: String,
    pub(crate) intensity: Option<Intensity>,
    pub(crate) features: Option<TabularFeatures>,
    pub(crate) attributes: Vec<FittedAttribute>,
    pub(crate) model: FittedKind,
    /// Hashes of the training images, in hexadecimal digits.
    pub(crate) inputs: BTreeSet<String>,
}

/// Writes `model/` under a temporary name, renamed when it is complete.
pub(crate) struct ModelWriter {
    temporary: PathBuf,
    complete: PathBuf,
    epochs: BTreeMap<usize, KeptEpoch>,
}

impl ModelWriter {
    /// Begins the model of a run; what an interrupted call left is removed.
    pub(crate) fn new(folder: &RunFolder) -> Result<Self, CliError> {
        let temporary = folder.path().join(".model.tmp");
        remove_folder(&temporary)?;
        Ok(Self { temporary, complete: folder.model(), epochs: BTreeMap::new() })
    }

    /// Writes the weights with which `strategy` predicts at present: those of `epoch`, counted from 1.
    pub(crate) fn add(&mut self, strategy: &mut dyn Strategy, epoch: usize) -> Result<(), CliError> {
        let files = write_weights(strategy, &self.temporary.join(of_epoch(epoch)))?;
        let kept = KeptEpoch { weights: strategy.describe_weights(epoch), rules: Vec::new(), files };
        self.epochs.insert(epoch, kept);
        Ok(())
    }

    /// Writes a fitted estimator in place of weights.
    pub(crate) fn add_estimator(
        &mut self,
        fitted: &FittedEstimator,
        epoch: usize,
        weights: &str,
    ) -> Result<(), CliError> {
        let text = serde_json::to_string(fitted).map_err(|error| CliError::Bug(error.to_string()))?;
        write_text(&self.temporary.join(of_epoch(epoch)).join(ESTIMATOR), &text)?;
        let files = BTreeMap::from([(ESTIMATOR.to_owned(), blake3::hash(text.as_bytes()).to_hex().to_string())]);
        self.epochs.insert(epoch, KeptEpoch { weights: weights.to_owned(), rules: Vec::new(), files });
        Ok(())
    }

    /// Adds what was fitted, and puts the folder in its place; `epoch` is that of `predictions.parquet`, `rules` give the
    /// epoch that each selection rule chose.
    pub(crate) fn finish(
        mut self,
        fitted: Fitted,
        epoch: usize,
        rules: impl Iterator<Item = (String, usize)>,
    ) -> Result<(), CliError> {
        for (rule, epoch) in rules {
            if let Some(kept) = self.epochs.get_mut(&epoch) {
                kept.rules.push(rule);
            }
        }
        let record = ModelRecord {
            version: VERSION,
            fairtte: env!("CARGO_PKG_VERSION").to_owned(),
            time_unit: fitted.time_unit,
            epoch,
            epochs: self.epochs,
            intensity: fitted.intensity,
            features: fitted.features,
            attributes: fitted.attributes,
            fitted: fitted.model,
        };
        let hashes: BTreeSet<&str> = fitted.inputs.iter().map(|hash| short(hash)).collect();
        write_atomically(&self.temporary.join(INPUTS), |file| {
            use std::io::Write as _;
            hashes.iter().try_for_each(|hash| writeln!(file, "{hash}"))
        })?;
        write_json(&self.temporary.join(RECORD), &record)?;
        remove_folder(&self.complete)?;
        std::fs::rename(&self.temporary, &self.complete).map_err(|error| failed(&self.complete, &error))
    }
}

/// The error of a command that needs a network.
pub(crate) fn no_network(run: &Path) -> CliError {
    let message = format!("{} fitted an estimator, expected a run that trained a network", run.display());
    CliError::setting("RUN", message, None)
}

fn short(hash: &str) -> &str {
    hash.get(..DIGITS).unwrap_or(hash)
}

/// Name of the folder of the weights of an epoch, counted from 1.
fn of_epoch(epoch: usize) -> String {
    format!("epoch-{epoch:05}")
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::RunFolder { path: path.to_owned(), problem: error.to_string() }
}

pub(super) fn remove_folder(path: &Path) -> Result<(), CliError> {
    if path.exists() { std::fs::remove_dir_all(path).map_err(|error| failed(path, &error)) } else { Ok(()) }
}

impl RunFolder {
    /// The record of the trained model.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if the run was not trained to its end, or by an earlier version that kept no model.
    pub(crate) fn model_record(&self) -> Result<ModelRecord, CliError> {
        let path = self.model().join(RECORD);
        if !path.exists() {
            let run = quoted_path(self.path());
            let problem = format!(
                "there is no trained model here; `fairtte train --resume-from {run}` completes the run, if it was interrupted"
            );
            return Err(CliError::RunFolder { path, problem });
        }
        let record: ModelRecord = read_json(&path)?;
        if record.version == VERSION {
            return Ok(record);
        }
        let problem =
            format!("it has version {}, expected {VERSION}: it was written by another fairtte", record.version);
        Err(CliError::RunFolder { path, problem })
    }

    /// The folder of the weights of an epoch, counted from 1.
    pub(crate) fn weights_of(&self, epoch: usize) -> PathBuf {
        self.model().join(of_epoch(epoch))
    }

    /// The fitted estimator of an epoch, counted from 1.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if the file is missing or is not the one that was written.
    pub(crate) fn estimator_of(&self, epoch: usize, kept: &KeptEpoch) -> Result<FittedEstimator, CliError> {
        let path = self.weights_of(epoch).join(ESTIMATOR);
        let text = read_text(&path)?;
        let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
        if kept.files.get(ESTIMATOR) != Some(&hash) {
            let problem = "it has changed since it was written".to_owned();
            return Err(CliError::RunFolder { path, problem });
        }
        from_json(&path, &text)
    }

    /// The beginnings of the hashes of the training images.
    pub(crate) fn training_inputs(&self) -> Result<BTreeSet<String>, CliError> {
        Ok(read_text(&self.model().join(INPUTS))?.lines().map(str::to_owned).collect())
    }
}

/// Whether the image with this hash is among the `inputs` of a training.
pub(crate) fn is_training_input(inputs: &BTreeSet<String>, hash: &str) -> bool {
    inputs.contains(short(hash))
}
