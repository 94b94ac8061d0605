//! The data sets of a study as its trials see them, and the names of trainings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::Folders;
use crate::CliError;
use crate::prepared::label;
use crate::run_file::RunFile;
use crate::run_folder::essence;
use crate::study::file::StudyFile;

/// A data set of the study as its trials see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Base {
    pub(super) name: String,
    /// The run file with every default written out and absolute paths.
    pub(super) run: Table,
    /// Attributes of the study.
    pub(super) attributes: Vec<String>,
    /// Hash over everything that determines the labels; empty in a comparison.
    pub(super) content: String,
    /// Hash of the file of the split, if it is given.
    pub(super) split: Option<String>,
}

/// What the study takes from a run file.
///
/// # Errors
/// [`CliError`] for attributes that the run file does not have, settings that an axis of the study sets, and data that cannot be
/// read.
pub(super) fn base(study: &StudyFile, data: usize, mut run: RunFile, folders: Folders) -> Result<Base, CliError> {
    let of = &study.data[data];
    let path = of.run_file.display();
    if !run.groups.train.is_empty() {
        let message = format!("{path} sets it, but the study sets the attributes that strategies work on");
        return Err(CliError::setting("groups.train", message, Some("write attributes in [[data]] instead")));
    }
    let known: Vec<&str> = run.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
    if known.is_empty() {
        return Err(CliError::setting(
            "attribute",
            format!("{path} has no [[attribute]], so there are no groups"),
            None,
        ));
    }
    let key = format!("data.{data}.attributes");
    if let Some(unknown) = of.attributes.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(CliError::unknown_attribute(&key, unknown, &known));
    }
    let attributes =
        if of.attributes.is_empty() { known.into_iter().map(str::to_owned).collect() } else { of.attributes.clone() };
    if study.folds > 1 && (run.split.file.is_some() || run.split.leave_site_out.is_some()) {
        let message = format!("{path} has a [split] of its own that folds cannot be made of: file or leave-site-out");
        return Err(CliError::setting("folds", message, None));
    }
    let content = match folders {
        Folders::Content => {
            // A study has shifts as an axis.
            run.shift = None;
            content_hash(&run, &path.to_string())?
        }
        // A comparison has the shift of its run file, and its trials are not named by their content.
        Folders::Words => String::new(),
    };
    let split = run.split.file.as_ref().map(|file| file_hash(file)).transpose()?;
    let table = run.to_toml()?.parse().map_err(|error: toml::de::Error| CliError::Bug(error.to_string()))?;
    Ok(Base { name: of.name.clone(), run: table, attributes, content, split })
}

/// Hash over everything that determines the labels.
fn content_hash(run: &RunFile, path: &str) -> Result<String, CliError> {
    let (cohort, exclusions) = label(run)?;
    cohort.require_samples("after labelling", &exclusions)?;
    let content = cohort.provenance.as_ref().map(|provenance| provenance.content_hash.clone());
    content.ok_or_else(|| CliError::Bug(format!("the cohort of {path} has no content hash")))
}

/// The hashes of all files with weights, by path.
///
/// # Errors
/// [`CliError::ReadRunFile`] if a file cannot be read.
pub(super) fn weights(study: &StudyFile, data: &[Base]) -> Result<BTreeMap<PathBuf, String>, CliError> {
    let tables = study.starts.values().chain(study.backbones.values().map(|backbone| &backbone.settings));
    let path = |table: &Table| Some(PathBuf::from(table.get("pretrained")?.as_table()?.get("path")?.as_str()?));
    let mut found = BTreeMap::new();
    for path in tables.chain(data.iter().map(|data| &data.run)).filter_map(path) {
        if let std::collections::btree_map::Entry::Vacant(new) = found.entry(path) {
            let bytes =
                std::fs::read(new.key()).map_err(|source| CliError::ReadRunFile { path: new.key().clone(), source })?;
            new.insert(fairtte_models::weights::sha256(&bytes));
        }
    }
    Ok(found)
}

fn file_hash(path: &Path) -> Result<String, CliError> {
    let bytes = std::fs::read(path).map_err(|source| CliError::ReadRunFile { path: path.to_owned(), source })?;
    Ok(blake3::hash(&bytes).to_hex().to_string())
}

/// The name of a training: what determines it, without paths and machines.
///
/// # Errors
/// [`CliError::Bug`] if the settings have no text.
pub(super) fn id(run: &RunFile, data: &Base) -> Result<String, CliError> {
    let mut settings = essence(run)?;
    // What the data are is in the content; where they are changes nothing.
    settings.remove("data");
    if let Some(Value::Table(split)) = settings.get_mut("split") {
        split.remove("file");
    }
    let what = (super::ENGINE, run.data.name(), &data.content, &data.split, settings);
    let text = serde_json::to_string(&what).map_err(|error| CliError::Bug(error.to_string()))?;
    Ok(blake3::hash(text.as_bytes()).to_hex().to_string()[..16].to_owned())
}
