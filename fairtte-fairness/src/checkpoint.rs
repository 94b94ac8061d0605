//! Checkpoints that are complete or absent.
//!
//! One folder at a time, written under a temporary name and renamed: `epoch-00012/` after a complete epoch,
//! `epoch-00012-batch-0000034/` in the middle of the thirteenth. It holds `last/` (networks, optimisers, strategy state),
//! `kept/epoch-00007/` (networks of every epoch that a selection rule chooses or may still choose) and `trainer.json`. Older
//! folders are removed once the newer one stands, so a kill at any moment leaves the newest complete state.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::write_atomically;
use serde::{Deserialize, Serialize};

use crate::FairnessError;
use crate::strategies::{Saved, Strategy};
use crate::trainer::{EpochReport, Partial, TrainingConfig};

/// Where a training stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// One report per complete epoch.
    pub(crate) epochs: Vec<EpochReport>,
    /// What is done of the next one.
    pub(crate) partial: Option<Partial>,
}

/// Whether training in this run folder has left a state to go on from.
pub fn has_checkpoint(run_folder: &Path) -> bool {
    Checkpoints::new(&run_folder.join(FOLDER)).complete().is_ok_and(|states| !states.is_empty())
}

/// Whether a training of `kept` settings that left its state in this run folder can go on with another number of epochs and
/// another patience: what was trained is then the beginning of what would be trained anew.
pub fn can_go_on(run_folder: &Path, kept: &TrainingConfig, asked: &TrainingConfig) -> bool {
    let Some(Progress { epochs, partial }) = newest_progress(run_folder) else { return false };
    let same_rates = kept.epochs == asked.epochs || !kept.schedule.needs_last_epoch();
    let n_gone_on_from = epochs.len() + usize::from(partial.is_some());
    same_rates && (1..n_gone_on_from).all(|n| !asked.is_over(&epochs[..n]))
}

/// Whether a training with these settings has more to do than what it left in this run folder.
pub fn is_unfinished(run_folder: &Path, config: &TrainingConfig) -> bool {
    newest_progress(run_folder).is_some_and(|progress| progress.partial.is_some() || !config.is_over(&progress.epochs))
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

fn newest_progress(run_folder: &Path) -> Option<Progress> {
    let newest = Checkpoints::new(&run_folder.join(FOLDER)).newest().ok()?;
    read_progress(&newest).ok()
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

    /// Goes back to the newest state, if there is one.
    pub(crate) fn restore(&self, strategy: &mut dyn Strategy) -> Result<Progress, FairnessError> {
        let Some(newest) = self.complete()?.pop() else { return Ok(Progress::default()) };
        let progress = read_progress(&newest)?;
        strategy.load(&newest.join("last"), Saved::Everything)?;
        Ok(progress)
    }

    /// Keeps the present state and the weights of the epochs `kept` (counted from 1), of which the last complete one is
    /// that of `strategy` and all others are in the checkpoint before.
    pub(crate) fn keep(
        &self,
        strategy: &dyn Strategy,
        progress: &Progress,
        kept: &BTreeSet<usize>,
    ) -> Result<(), FairnessError> {
        let older = self.complete()?;
        let n_epochs = progress.epochs.len();
        let middle = progress.partial.as_ref().map(|partial| format!("-batch-{:07}", partial.step));
        let name = format!("{}{}", of_epoch(n_epochs), middle.unwrap_or_default());
        let complete = self.folder.join(&name);
        if older.last() == Some(&complete) {
            return Ok(()); // nothing was done since
        }
        let temporary = self.folder.join(format!(".{name}.tmp"));
        // Left over by a kill; its content is of no use.
        remove(&temporary)?;
        let last = temporary.join("last");
        create(&last)?;
        strategy.save(&last, Saved::Everything)?;
        for epoch in kept {
            let weights = temporary.join(KEPT).join(of_epoch(*epoch));
            create(&weights)?;
            match older.last() {
                Some(previous) if *epoch < n_epochs || progress.partial.is_some() => {
                    link_tree(&previous.join(KEPT).join(of_epoch(*epoch)), &weights)?;
                }
                _ => strategy.save(&weights, Saved::Weights)?,
            }
        }
        let text = serde_json::to_vec(progress).expect("a report is plain data");
        write_atomically(&temporary.join(PROGRESS), |file| file.write_all(&text))?;
        std::fs::rename(&temporary, &complete).map_err(|error| failed(&complete, &error))?;
        older.iter().try_for_each(|folder| remove(folder))
    }

    /// Loads the newest state with the networks of `epoch`, counted from 1, which must be one that was kept.
    pub(crate) fn load_epoch(&self, strategy: &mut dyn Strategy, epoch: usize) -> Result<(), FairnessError> {
        let newest = self.newest()?;
        strategy.load(&newest.join("last"), Saved::Everything)?;
        strategy.load(&newest.join(KEPT).join(of_epoch(epoch)), Saved::Weights)
    }

    fn newest(&self) -> Result<PathBuf, FairnessError> {
        let missing =
            || FairnessError::Checkpoint { path: self.folder.clone(), reason: "no complete state is there".to_owned() };
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
            if entry.file_name().to_string_lossy().starts_with("epoch-") {
                folders.push(entry.path());
            }
        }
        folders.sort(); // a fixed number of digits: by name is by time
        Ok(folders)
    }
}

const KEPT: &str = "kept";
const PROGRESS: &str = "trainer.json";

fn of_epoch(epoch: usize) -> String {
    format!("epoch-{epoch:05}")
}

fn read_progress(folder: &Path) -> Result<Progress, FairnessError> {
    let path = folder.join(PROGRESS);
    let unusable = |reason: String| FairnessError::Checkpoint { path: path.clone(), reason };
    let text = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))
}

/// Files of a checkpoint do not change: a link costs nothing, and a copy serves where links do not exist.
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

fn failed(path: &Path, error: &std::io::Error) -> FairnessError {
    FairnessError::Checkpoint { path: path.to_owned(), reason: error.to_string() }
}
