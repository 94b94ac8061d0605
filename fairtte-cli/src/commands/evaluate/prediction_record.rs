//! `predict.json`, the record that `fairtte predict` writes beside curves for other data: the runs behind them and what it remarked.

use std::path::PathBuf;

use serde::Deserialize;

use crate::CliError;
use crate::plural::counted;
use crate::run_file::TaskConfig;
use crate::run_folder::{RunFolder, read_json};

/// Version of `predict.json` that is read.
const VERSION: u32 = 1;
/// How curves were made where each sample has that of the run whose test part it is in.
const OUT_OF_FOLD: &str = "out of fold";

/// What is read of `predict.json`; other fields are ignored.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::commands) struct PredictionRecord {
    version: u32,
    /// The runs behind the curves.
    pub(in crate::commands) runs: Vec<PredictedBy>,
    /// The run file of the other data.
    #[serde(default)]
    pub(super) data: Option<String>,
    pub(super) n_predicted: usize,
    /// How the curves of several runs became one.
    #[serde(default)]
    pub(in crate::commands) prediction: String,
    /// Remarks of `fairtte predict`.
    #[serde(default)]
    pub(super) notes: Vec<String>,
    /// How the class is made whose probability was predicted; absent of curves.
    #[serde(default)]
    pub(super) task: Option<TaskConfig>,
}

/// A run behind the curves.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::commands) struct PredictedBy {
    pub(in crate::commands) path: PathBuf,
    #[serde(default)]
    pub(super) epoch: Option<usize>,
    #[serde(default)]
    weights: Option<String>,
    /// One hash over the files of the weights; absent where finished predictions were pooled.
    #[serde(default)]
    pub(in crate::commands) weights_blake3: Option<String>,
    #[serde(default)]
    pub(super) time_unit: Option<String>,
}

impl PredictionRecord {
    /// The record of a prediction.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if it is of another version or names no run.
    pub(in crate::commands) fn read(folder: &RunFolder) -> Result<Self, CliError> {
        let file = folder.prediction_record();
        let refused = |path: PathBuf, problem: String| Err(CliError::RunFolder { path, problem });
        let record: Self = read_json(&file)?;
        if record.version != VERSION {
            return refused(file, format!("version is {}, expected {VERSION}", record.version));
        }
        if record.runs.is_empty() {
            return refused(file, "runs is empty, expected at least one run".to_owned());
        }
        Ok(record)
    }

    /// The same where the samples have outcomes.
    ///
    /// # Errors
    /// As [`read`](Self::read), and [`CliError::RunFolder`] if there are no outcomes.
    pub(super) fn with_outcomes(folder: &RunFolder) -> Result<Self, CliError> {
        let record = Self::read(folder)?;
        if folder.cohort().exists() {
            return Ok(record);
        }
        let problem = "there are no outcomes (no cohort.parquet): the other data have no labels, so that there is \
                       nothing to evaluate";
        Err(CliError::RunFolder { path: folder.path().to_owned(), problem: problem.to_owned() })
    }

    /// Whether these are the test parts of folds. Then the samples are those of the runs themselves, and the training part of a
    /// fold consists of samples that are evaluated.
    pub(super) fn is_pooled(&self) -> bool {
        self.prediction == OUT_OF_FOLD
    }

    /// The runs behind the predictions.
    pub(in crate::commands) fn by(&self) -> String {
        let first = &self.runs[0];
        let weights = first.weights.as_ref().map_or_else(String::new, |weights| format!(" ({weights})"));
        match self.runs.len() {
            1 => format!("{}{weights}", first.path.display()),
            n => format!("{} and {} ({})", first.path.display(), counted(n - 1, "other run"), self.prediction),
        }
    }
}
