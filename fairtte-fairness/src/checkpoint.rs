//! Checkpoints that are complete or absent.
//!
//! One folder at a time, written under a temporary name and renamed: `epoch-00012/` after a complete epoch,
//! `epoch-00012-batch-0000034/` in the middle of the thirteenth. It holds `last/` (networks, optimisers, strategy state),
//! `kept/epoch-00007/` (networks of every epoch that a selection rule chooses or may still choose) and `trainer.json`, with a
//! hash of every file, because a changed byte in a tensor is not detectable otherwise. Older
//! folders are removed once the newer one is complete, so the newest complete state survives a kill at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::write_atomically;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::FairnessError;
use crate::strategies::{Saved, Strategy};
use crate::trainer::{EpochReport, LossScale, Partial, TrainingConfig};

/// The progress of a training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// One report per complete epoch.
    pub(crate) epochs: Vec<EpochReport>,
    /// The completed part of the next epoch.
    pub(crate) partial: Option<Partial>,
    /// Whether the strategy ended the training after the last one.
    #[serde(default)]
    pub(crate) stopped: bool,
    /// Of a training in f16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) loss_scale: Option<LossScale>,
}

/// The hashes in `trainer.json`, besides the progress.
#[derive(Default, Deserialize)]
struct Hashes {
    /// BLAKE3 in hexadecimal digits, by path in the folder; empty where none were kept.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// The content of `trainer.json`.
#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    progress: &'a Progress,
    files: BTreeMap<String, String>,
}

/// Whether this run folder contains a state from which training can resume.
///
/// # Errors
/// [`FairnessError::Checkpoint`] if the folder of the checkpoints cannot be read.
pub fn has_checkpoint(run_folder: &Path) -> Result<bool, FairnessError> {
    Ok(!Checkpoints::new(&run_folder.join(FOLDER)).complete()?.is_empty())
}

/// Whether the training in this run folder, made with the settings `kept`, can be resumed with the number of epochs and the
/// patience of `asked`: true if a new training with `asked` would begin with the same epochs.
///
/// # Errors
/// [`FairnessError::Checkpoint`] if the newest state cannot be read.
pub fn can_resume(run_folder: &Path, kept: &TrainingConfig, asked: &TrainingConfig) -> Result<bool, FairnessError> {
    let Some(Progress { epochs, partial, .. }) = newest_progress(run_folder)? else { return Ok(false) };
    let same_rates = kept.epochs == asked.epochs || !kept.schedule.needs_last_epoch();
    let n_gone_on_from = epochs.len() + usize::from(partial.is_some());
    Ok(same_rates && (1..n_gone_on_from).all(|n| !asked.is_over(&epochs[..n])))
}

/// Whether a training with these settings would continue beyond the newest state in this run folder.
///
/// # Errors
/// [`FairnessError::Checkpoint`] if the newest state cannot be read.
pub fn is_unfinished(run_folder: &Path, config: &TrainingConfig) -> Result<bool, FairnessError> {
    let Some(Progress { epochs, partial, stopped, .. }) = newest_progress(run_folder)? else { return Ok(false) };
    Ok(partial.is_some() || !(stopped || config.is_over(&epochs)))
}

/// Copies the newest state in one run folder to another one, which has none.
///
/// # Errors
/// [`FairnessError::Checkpoint`] if there is none, or it cannot be copied.
pub fn copy_checkpoint(from: &Path, to: &Path) -> Result<(), FairnessError> {
    let from = Checkpoints::new(&from.join(FOLDER));
    let newest = from.newest()?;
    let to = to.join(FOLDER);
    let name = newest.file_name().unwrap_or_default();
    let temporary = to.join(format!(".{}.tmp", name.to_string_lossy()));
    remove(&temporary)?;
    link_tree(&newest, &temporary)?;
    let complete = to.join(name);
    std::fs::rename(&temporary, &complete).map_err(|error| failed(&complete, &error))
}

fn newest_progress(run_folder: &Path) -> Result<Option<Progress>, FairnessError> {
    let newest = Checkpoints::new(&run_folder.join(FOLDER)).complete()?.pop();
    newest.map(|newest| read_progress(&newest)).transpose()
}

/// Name of the folder of the checkpoints in a run folder.
pub(crate) const FOLDER: &str = "checkpoint";

/// The folder that holds the checkpoints of one training.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
}

impl Checkpoints {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Restores the newest state, if there is one.
    pub(crate) fn restore(&self, strategy: &mut dyn Strategy) -> Result<Progress, FairnessError> {
        let Some(newest) = self.complete()?.pop() else { return Ok(Progress::default()) };
        let progress = read_progress(&newest)?;
        verify(&newest, LAST)?;
        strategy.load(&newest.join(LAST), Saved::Everything)?;
        Ok(progress)
    }

    /// Saves the current state and the weights of the epochs `kept` (counted from 1), of which the last complete one is
    /// that of `strategy` and all others are in the checkpoint before.
    pub(crate) fn keep(
        &self,
        strategy: &mut dyn Strategy,
        progress: &Progress,
        kept: &BTreeSet<usize>,
    ) -> Result<(), FairnessError> {
        let older = self.complete()?;
        let n_epochs = progress.epochs.len();
        let name = name_of((n_epochs, progress.partial.as_ref().map(|partial| partial.step)));
        let complete = self.folder.join(&name);
        if older.last() == Some(&complete) {
            return Ok(()); // no progress since the last checkpoint
        }
        let temporary = self.folder.join(format!(".{name}.tmp"));
        // Left over from a killed process; its content may be incomplete.
        remove(&temporary)?;
        let last = temporary.join(LAST);
        create(&last)?;
        strategy.save(&last, Saved::Everything)?;
        let mut files = BTreeMap::new();
        add_hashes(&temporary, LAST, &mut files)?;
        for epoch in kept {
            let inside = format!("{KEPT}/{}", of_epoch(*epoch));
            let weights = temporary.join(&inside);
            create(&weights)?;
            match older.last() {
                Some(previous) if *epoch < n_epochs || progress.partial.is_some() => {
                    link_tree(&previous.join(&inside), &weights)?;
                    // The hashes computed when they were written.
                    files.extend(read_hashes(previous)?.into_iter().filter(|(file, _)| is_below(file, &inside)));
                }
                _ => {
                    strategy.save(&weights, Saved::Weights)?;
                    add_hashes(&temporary, &inside, &mut files)?;
                }
            }
        }
        let text = serde_json::to_vec(&Record { progress, files }).expect("a report is plain data");
        write_atomically(&temporary.join(PROGRESS), |file| file.write_all(&text))?;
        std::fs::rename(&temporary, &complete).map_err(|error| failed(&complete, &error))?;
        older.iter().try_for_each(|folder| remove(folder))
    }

    /// Loads the newest state with the networks of `epoch`, counted from 1, which must be one that was kept.
    pub(crate) fn load_epoch(&self, strategy: &mut dyn Strategy, epoch: usize) -> Result<(), FairnessError> {
        let newest = self.newest()?;
        let weights = format!("{KEPT}/{}", of_epoch(epoch));
        verify(&newest, LAST)?;
        verify(&newest, &weights)?;
        strategy.load(&newest.join(LAST), Saved::Everything)?;
        strategy.load(&newest.join(weights), Saved::Weights)
    }

    fn newest(&self) -> Result<PathBuf, FairnessError> {
        let missing =
            || FairnessError::Checkpoint { path: self.folder.clone(), reason: "no complete state found".to_owned() };
        self.complete()?.pop().ok_or_else(missing)
    }

    /// Folders of complete states, oldest first.
    fn complete(&self) -> Result<Vec<PathBuf>, FairnessError> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let entries = std::fs::read_dir(&self.folder).map_err(|error| failed(&self.folder, &error))?;
        let mut folders = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| failed(&self.folder, &error))?;
            if let Some(place) = place(&entry.file_name().to_string_lossy())
                && entry.path().is_dir()
            {
                folders.push((place, entry.path()));
            }
        }
        folders.sort();
        Ok(folders.into_iter().map(|(_, folder)| folder).collect())
    }
}

const LAST: &str = "last";
const KEPT: &str = "kept";
const PROGRESS: &str = "trainer.json";

fn of_epoch(epoch: usize) -> String {
    format!("epoch-{epoch:05}")
}

/// Complete epochs, and batches of the next one.
type Place = (usize, Option<usize>);

fn name_of((epoch, batch): Place) -> String {
    let middle = batch.map(|batch| format!("-batch-{batch:07}"));
    format!("{}{}", of_epoch(epoch), middle.unwrap_or_default())
}

/// The progress (epochs, batches) that a folder name encodes; `None` for any other name.
fn place(name: &str) -> Option<Place> {
    let numbers = name.strip_prefix("epoch-")?;
    let (epoch, batch) = match numbers.split_once("-batch-") {
        Some((epoch, batch)) => (epoch, Some(batch.parse().ok()?)),
        None => (numbers, None),
    };
    Some((epoch.parse().ok()?, batch)).filter(|place| name_of(*place) == name)
}

fn is_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Adds the hash of every file below `inside`, a folder of the checkpoint `root`.
fn add_hashes(root: &Path, inside: &str, files: &mut BTreeMap<String, String>) -> Result<(), FairnessError> {
    let folder = root.join(inside);
    for entry in std::fs::read_dir(&folder).map_err(|error| failed(&folder, &error))? {
        let entry = entry.map_err(|error| failed(&folder, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = if inside.is_empty() { name } else { format!("{inside}/{name}") };
        if entry.path().is_dir() {
            add_hashes(root, &name, files)?;
            continue;
        }
        let bytes = std::fs::read(entry.path()).map_err(|error| failed(&entry.path(), &error))?;
        files.insert(name, blake3::hash(&bytes).to_hex().to_string());
    }
    Ok(())
}

/// The hash of every file below `folder`, by its path in it.
pub(crate) fn hashes_below(folder: &Path) -> Result<BTreeMap<String, String>, FairnessError> {
    let mut files = BTreeMap::new();
    add_hashes(folder, "", &mut files)?;
    Ok(files)
}

/// Returns an error unless `folder` has these files with these hashes.
pub(crate) fn require_hashes(folder: &Path, hashes: &BTreeMap<String, String>) -> Result<(), FairnessError> {
    hashes.iter().try_for_each(|(file, kept)| require_hash(folder.join(file), kept))
}

fn require_hash(path: PathBuf, kept: &str) -> Result<(), FairnessError> {
    let bytes = std::fs::read(&path).map_err(|error| failed(&path, &error))?;
    if blake3::hash(&bytes).to_hex().as_str() == kept {
        return Ok(());
    }
    let reason = "its content has changed since it was written (BLAKE3)".to_owned();
    Err(FairnessError::Checkpoint { path, reason })
}

fn read_hashes(root: &Path) -> Result<BTreeMap<String, String>, FairnessError> {
    read_record(root).map(|hashes: Hashes| hashes.files)
}

/// Returns an error if a file below `inside`, a folder of the checkpoint `root`, has changed since it was written.
fn verify(root: &Path, inside: &str) -> Result<(), FairnessError> {
    let mut below = read_hashes(root)?.into_iter().filter(|(file, _)| is_below(file, inside));
    below.try_for_each(|(file, kept)| require_hash(root.join(file), &kept))
}

fn read_progress(folder: &Path) -> Result<Progress, FairnessError> {
    read_record(folder)
}

/// A part of `trainer.json`.
fn read_record<T: DeserializeOwned>(folder: &Path) -> Result<T, FairnessError> {
    let path = folder.join(PROGRESS);
    let unusable = |reason: String| FairnessError::Checkpoint { path: path.clone(), reason };
    let text = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))
}

/// Hard-links all files of a folder, or copies them where links are not supported; files of a checkpoint do not change.
fn link_tree(from: &Path, to: &Path) -> Result<(), FairnessError> {
    create(to)?;
    for entry in std::fs::read_dir(from).map_err(|error| failed(from, &error))? {
        let source = entry.map_err(|error| failed(from, &error))?.path();
        let target = to.join(source.file_name().unwrap_or_default());
        if source.is_dir() {
            link_tree(&source, &target)?;
            continue;
        }
        let linked = std::fs::hard_link(&source, &target).or_else(|_| std::fs::copy(&source, &target).map(drop));
        linked.map_err(|error| failed(&target, &error))?;
    }
    Ok(())
}

fn create(folder: &Path) -> Result<(), FairnessError> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

fn remove(folder: &Path) -> Result<(), FairnessError> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    Ok(())
}

pub(crate) fn failed(path: &Path, error: &std::io::Error) -> FairnessError {
    FairnessError::Checkpoint { path: path.to_owned(), reason: error.to_string() }
}
