//! The files of a run folder, in the order in which they are written; `done` comes last.

mod kept;
#[cfg(feature = "train")]
mod model;
mod open_run;
#[cfg(feature = "train")]
mod same_data;
#[cfg(feature = "train")]
mod training;
mod weights;

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairtte_data::{DataError, Part, write_atomically};
use fairtte_records::{EpochReport, Warning};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use self::kept::{Kept, Methods};
#[cfg(feature = "train")]
pub(crate) use self::model::{
    EstimatorModel, Fitted, FittedKind, ModelRecord, ModelWriter, is_training_input, no_network,
};
pub(crate) use self::open_run::OpenRun;
#[cfg(feature = "train")]
pub(crate) use self::same_data::changed;
#[cfg(feature = "train")]
pub(crate) use self::training::essence;
#[cfg(feature = "train")]
pub(crate) use self::weights::KeptEpoch;
pub(crate) use self::weights::KeptWeights;
use crate::CliError;
use crate::args::{FeatureLayer, FeaturePart};
use crate::progress::say;
use crate::shell::quoted_path;

/// A run folder.
#[derive(Clone, Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    /// A lock held by the process that writes to the folder.
    #[expect(dead_code, reason = "it is held, and released when the last copy is dropped")]
    lock: Option<Arc<File>>,
}

impl RunFolder {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), lock: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn run_file(&self) -> PathBuf {
        self.path.join("run.toml")
    }

    pub(crate) fn cohort(&self) -> PathBuf {
        self.path.join("cohort.parquet")
    }

    pub(crate) fn cohort_csv(&self) -> PathBuf {
        self.path.join("cohort.csv")
    }

    pub(crate) fn summary(&self) -> PathBuf {
        self.path.join("cohort.json")
    }

    pub(crate) fn exclusions(&self) -> PathBuf {
        self.path.join("exclusions.csv")
    }

    /// Samples that are censored by the horizon of a class.
    pub(crate) fn without_class(&self) -> PathBuf {
        self.path.join("without-class.csv")
    }

    pub(crate) fn split(&self) -> PathBuf {
        self.path.join("split.csv")
    }

    pub(crate) fn split_record(&self) -> PathBuf {
        self.path.join("split.json")
    }

    pub(crate) fn shift(&self) -> PathBuf {
        self.path.join("shift.json")
    }

    pub(crate) fn shift_table(&self) -> PathBuf {
        self.path.join("shift.csv")
    }

    /// How the cut points of the time grid were placed.
    pub(crate) fn time_grid(&self) -> PathBuf {
        self.path.join("time-grid.json")
    }

    pub(crate) fn features(&self) -> PathBuf {
        self.path.join("features.json")
    }

    /// The hash of the inputs of the model.
    pub(crate) fn inputs(&self) -> PathBuf {
        self.path.join("inputs.json")
    }

    pub(crate) fn steps(&self) -> PathBuf {
        self.path.join("steps.jsonl")
    }

    /// The fit of an estimator, whose only epoch is the first.
    pub(crate) fn only_estimator(&self) -> PathBuf {
        self.path.join("model/epoch-00001/estimator.json")
    }

    /// What the samples of the fit say about an estimator.
    pub(crate) fn fit_checks(&self) -> PathBuf {
        self.path.join("fit.json")
    }

    pub(crate) fn predictions(&self) -> PathBuf {
        self.path.join("predictions.parquet")
    }

    /// Curves of another cause than the predicted one, with the weights of [`predictions`](Self::predictions).
    pub(crate) fn predictions_of_cause(&self, cause: u32) -> PathBuf {
        self.path.join(format!("{OF_CAUSE}{cause}{PARQUET}"))
    }

    /// Curves with the weights of an epoch that selection rules chose, counted from 1, if it is not that of
    /// [`predictions`](Self::predictions).
    pub(crate) fn predictions_of(&self, epoch: usize) -> PathBuf {
        self.path.join(format!("{OF_EPOCH}{epoch:05}{PARQUET}"))
    }

    /// The table of the predicted masks of a part, as `evaluate-masks` reads it; `epoch` as in [`predictions_of`](Self::predictions_of).
    pub(crate) fn mask_table(&self, part: Part, epoch: Option<usize>) -> PathBuf {
        self.path.join(format!("{MASKS}{}{}.csv", suffix(part), of_epoch(epoch)))
    }

    /// The folder of the predicted masks.
    #[cfg(feature = "train")]
    pub(crate) fn masks(&self, epoch: Option<usize>) -> PathBuf {
        self.path.join(format!("{MASKS}{}", of_epoch(epoch)))
    }

    /// The warnings of the training.
    fn warnings_file(&self) -> PathBuf {
        self.path.join("warnings.json")
    }

    pub(crate) fn selection(&self) -> PathBuf {
        self.path.join("selection.json")
    }

    /// Features of the network at a layer, of a part of the samples.
    pub(crate) fn features_of(&self, layer: FeatureLayer, part: FeaturePart) -> PathBuf {
        let part = if part == FeaturePart::All { String::new() } else { format!("-{}", part.name()) };
        self.path.join(format!("{FEATURES}{}{part}{PARQUET}", layer.name()))
    }

    /// The sources of bias as a section of the report.
    pub(crate) fn bias_section(&self) -> PathBuf {
        self.path.join("bias-section.json")
    }

    pub(crate) fn evaluation(&self, part: Part) -> PathBuf {
        self.path.join(format!("evaluation{}.json", suffix(part)))
    }

    pub(crate) fn report(&self, part: Part) -> PathBuf {
        self.path.join(format!("report{}.html", suffix(part)))
    }

    /// All that an evaluation of a part writes; the numbers of every sample are those of masks.
    fn files_of_evaluation(&self, part: Part) -> [PathBuf; 4] {
        let evaluation = self.evaluation(part);
        let samples = match part {
            Part::Test => "samples.csv".to_owned(),
            other => format!("evaluation{}-samples.csv", suffix(other)),
        };
        [evaluation.with_extension("csv"), evaluation, self.report(part), self.path.join(samples)]
    }

    /// The pictures that enter the model, by group and part.
    pub(crate) fn samples(&self) -> PathBuf {
        self.path.join("samples.html")
    }

    /// The model card.
    pub(crate) fn card(&self) -> PathBuf {
        self.path.join("model-card.md")
    }

    /// The record of a prediction of other data, in a folder that `fairtte predict` wrote.
    pub(crate) fn prediction_record(&self) -> PathBuf {
        self.path.join("predict.json")
    }

    pub(crate) fn done(&self) -> PathBuf {
        self.path.join("done")
    }

    /// Requires a run folder with `file`, which the training writes; the error says how to finish the training.
    pub(crate) fn require_trained(&self, file: &Path) -> Result<(), CliError> {
        self.require_run()?;
        if file.exists() {
            return Ok(());
        }
        let (config, output) = (quoted_path(&self.run_file()), quoted_path(&self.path));
        let problem =
            format!("the training is not finished; `fairtte train --config {config} --output {output}` finishes it");
        Err(CliError::RunFolder { path: self.path.clone(), problem })
    }

    /// Locks the folder, because two processes in it would overwrite each other's states.
    fn locked(self) -> Result<Self, CliError> {
        let path = self.path.join(".lock");
        let failed = |source| DataError::Write { path: path.clone(), source };
        if self.path.is_file() {
            let problem = "it is a file, expected a folder or the name of a new one".to_owned();
            return Err(CliError::RunFolder { path: self.path, problem });
        }
        std::fs::create_dir_all(&self.path).map_err(failed)?;
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let problem = "another process trains here; wait until it ends, or choose another --output".to_owned();
                return Err(CliError::RunFolder { path: self.path, problem });
            }
            Err(TryLockError::Error(error)) => {
                let folder = self.path.display();
                say(format!("note: {folder} cannot be locked ({error}); no other process may train there meanwhile"));
            }
        }
        Ok(Self { lock: Some(Arc::new(file)), ..self })
    }

    #[cfg(feature = "train")]
    fn has_checkpoint(&self) -> Result<bool, CliError> {
        Ok(fairtte_fairness::has_checkpoint(&self.path)?)
    }

    #[cfg(not(feature = "train"))]
    #[expect(clippy::unnecessary_wraps, reason = "with the feature train it reads the state")]
    fn has_checkpoint(&self) -> Result<bool, CliError> {
        Ok(self.path.join("checkpoint").exists())
    }

    fn clear_results(&self) -> Result<(), CliError> {
        for path in Part::ALL.into_iter().flat_map(|part| self.files_of_evaluation(part)) {
            remove_file(&path)?;
        }
        remove_file(&self.card())?;
        remove_file(&self.selection())?;
        remove_file(&self.warnings_file())?;
        #[cfg(feature = "train")]
        for folder in [self.model(), self.explain()] {
            model::remove_folder(&folder)?;
        }
        let failed =
            |error: std::io::Error| CliError::RunFolder { path: self.path.clone(), problem: error.to_string() };
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_result = [OF_EPOCH, OF_CAUSE, FEATURES, "bias", MASKS].iter().any(|begin| name.starts_with(begin));
            if is_result && entry.path().is_file() {
                remove_file(&entry.path())?;
            }
            #[cfg(feature = "train")]
            if name == MASKS || name.starts_with(MASKS_OF_EPOCH) {
                model::remove_folder(&entry.path())?;
            }
        }
        remove_file(&self.predictions())
    }

    /// Maps of single predictions.
    pub(crate) fn explain(&self) -> PathBuf {
        self.path.join("explain")
    }

    /// Whether the folder has files that depend on the settings of the training.
    ///
    /// # Errors
    /// [`CliError::Training`] if the folder of the checkpoints cannot be read.
    pub(crate) fn is_trained(&self) -> Result<bool, CliError> {
        let is_predicted = self.predictions().exists() || self.mask_table(Part::Test, None).exists();
        Ok(is_predicted || self.done().exists() || self.has_checkpoint()?)
    }

    /// Writes the warnings of the training; an empty list means that there were none.
    pub(crate) fn write_warnings(&self, warnings: &[Warning]) -> Result<(), CliError> {
        write_json(&self.warnings_file(), warnings)
    }

    /// The warnings of the training; empty if there is no `warnings.json`.
    pub(crate) fn warnings(&self) -> Result<Vec<Warning>, CliError> {
        let path = self.warnings_file();
        if path.exists() { read_json(&path) } else { Ok(Vec::new()) }
    }

    /// The reports of all epochs; none if there is no `steps.jsonl`.
    pub(crate) fn epochs(&self) -> Result<Vec<EpochReport>, CliError> {
        let path = self.steps();
        if !path.exists() {
            return Ok(Vec::new());
        }
        read_text(&path)?.lines().map(|line| from_json(&path, line)).collect()
    }
}

/// The inputs of the model, `inputs.json`.
#[derive(Serialize, Deserialize)]
pub(crate) struct InputRecord {
    /// Hash of the pixels, or of the encoded columns, of all samples.
    pub(crate) fingerprint: String,
}

/// Beginning and end of the names of files with curves of single epochs.
const OF_EPOCH: &str = "predictions-epoch-";
const OF_CAUSE: &str = "predictions-of-cause-";
const PARQUET: &str = ".parquet";
/// Beginning of the names of files with features of the network.
const FEATURES: &str = "features-";

/// Beginning of the names of predicted masks: their folder, and the tables that name them.
const MASKS: &str = "masks";
#[cfg(feature = "train")]
const MASKS_OF_EPOCH: &str = "masks-epoch-";

/// Empty for the epoch of the monitor.
fn of_epoch(epoch: Option<usize>) -> String {
    epoch.map(|epoch| format!("-epoch-{epoch:05}")).unwrap_or_default()
}

/// Removes a file, if there is one.
///
/// # Errors
/// [`CliError::RunFolder`] if it cannot be removed.
pub(crate) fn remove_file(path: &Path) -> Result<(), CliError> {
    if !path.exists() {
        return Ok(());
    }
    let problem = |error: std::io::Error| CliError::RunFolder { path: path.to_owned(), problem: error.to_string() };
    std::fs::remove_file(path).map_err(problem)
}

/// Empty for the test part, whose numbers are the result.
fn suffix(part: Part) -> String {
    if part == Part::Test { String::new() } else { format!("-{}", part.name()) }
}

/// Writes a text file, atomically.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    Ok(write_atomically(path, |file| file.write_all(text.as_bytes()))?)
}

/// Writes a value as JSON with a line per entry, atomically.
pub(crate) fn write_json<T: Serialize + ?Sized>(path: &Path, value: &T) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CliError::Bug(error.to_string()))?;
    write_text(path, &format!("{text}\n"))
}

/// Reads what [`write_json`] wrote.
///
/// # Errors
/// [`CliError::RunFolder`] if the file is missing or has other content.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, CliError> {
    from_json(path, &read_text(path)?)
}

fn read_text(path: &Path) -> Result<String, CliError> {
    let failed = |error: std::io::Error| CliError::RunFolder { path: path.to_owned(), problem: error.to_string() };
    std::fs::read_to_string(path).map_err(failed)
}

fn from_json<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, CliError> {
    let failed = |error: serde_json::Error| CliError::RunFolder { path: path.to_owned(), problem: error.to_string() };
    serde_json::from_str(text).map_err(failed)
}
