//! What `selection.json` says of the weights that a run kept.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{RunFolder, read_json};
use crate::CliError;

/// The record of the epochs that a run kept, `selection.json`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Kept {
    /// Name of the rule whose epoch made `predictions.parquet`.
    pub(crate) monitor: String,
    /// That epoch, counted from 1.
    pub(crate) epoch: usize,
    /// Description of its weights; runs of earlier versions do not record it.
    pub(crate) weights: Option<String>,
    /// Whether the strategy reads groups; runs of earlier versions do not record it.
    pub(crate) reads_groups: Option<bool>,
    /// By name of the rule.
    pub(crate) rules: BTreeMap<String, KeptEpoch>,
    /// The version of fairtte that trained; runs of earlier versions do not record it.
    pub(crate) fairtte: Option<String>,
    /// What was trained; runs of earlier versions do not record it.
    pub(crate) methods: Option<Methods>,
}

/// The choice of one rule.
#[derive(Deserialize)]
pub(crate) struct KeptEpoch {
    /// Epoch, counted from 1.
    pub(crate) epoch: usize,
    /// Description of its weights.
    pub(crate) weights: Option<String>,
    /// File of its predictions.
    pub(crate) file: String,
}

/// What was trained, as the registries of the program that trained it describe it: a build without training, or without the
/// strategies of another crate, has no such registries.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Methods {
    /// Summary of the estimator; `None` of a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) estimator: Option<String>,
    /// Summary of the backbone; empty for an estimator.
    pub(crate) backbone: String,
    /// Summary of the head, with its source; empty for an estimator.
    pub(crate) head: String,
    /// Summary of the strategy, with its source; empty for an estimator.
    pub(crate) strategy: String,
}

impl RunFolder {
    /// The record of the epochs that the run kept.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if the file is missing or has other content.
    pub(crate) fn kept(&self) -> Result<Kept, CliError> {
        read_json(&self.selection())
    }

    /// The files with the curves of every kept epoch, in the order of the epochs.
    pub(crate) fn files_of(&self, kept: &Kept) -> BTreeMap<usize, PathBuf> {
        let mut files = BTreeMap::from([(kept.epoch, self.predictions())]);
        for chosen in kept.rules.values() {
            files.entry(chosen.epoch).or_insert_with(|| self.path().join(&chosen.file));
        }
        files
    }
}
