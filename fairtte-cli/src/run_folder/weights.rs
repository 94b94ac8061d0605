//! Which weights a run has, from `model/model.json` alone: also a build without training tells by them whose curves a prediction
//! has.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{RunFolder, read_json};
use crate::CliError;

pub(super) const RECORD: &str = "model.json";

/// The weights of one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct KeptEpoch {
    /// Description, for example `averaged over epochs 9 to 12`.
    pub(crate) weights: String,
    /// The selection rules that chose it.
    pub(crate) rules: Vec<String>,
    /// BLAKE3 of every file, by its path in the folder of the epoch.
    pub(crate) files: BTreeMap<String, String>,
}

impl KeptEpoch {
    /// One hash of all files.
    pub(crate) fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (name, hash) in &self.files {
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes()).update(hash.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// The weights of a run.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct KeptWeights {
    /// The epoch of `predictions.parquet`, counted from 1.
    pub(crate) epoch: usize,
    /// By epoch, counted from 1.
    epochs: BTreeMap<usize, KeptEpoch>,
}

impl KeptWeights {
    /// The epoch whose weights have this hash.
    pub(crate) fn epoch_of(&self, hash: &str) -> Option<usize> {
        self.epochs.iter().find(|(_, kept)| kept.hash() == hash).map(|(epoch, _)| *epoch)
    }
}

impl RunFolder {
    /// The trained model.
    pub(crate) fn model(&self) -> PathBuf {
        self.path().join("model")
    }

    /// Which weights the run has; `None` for a run of an earlier version, which kept none.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if the record cannot be read.
    pub(crate) fn kept_weights(&self) -> Result<Option<KeptWeights>, CliError> {
        let path = self.model().join(RECORD);
        if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
    }
}
