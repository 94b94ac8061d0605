//! Checkpoints that are complete or absent.
//!
//! One folder per epoch, written under a temporary name and renamed: `epoch-00012/` holds `last/` (networks, optimisers,
//! strategy state), `best/` (networks of the best epoch so far) and `trainer.json`. Older folders are removed once the
//! newer one stands, so a kill at any moment leaves the newest complete epoch.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::write_atomically;
use serde::{Deserialize, Serialize};

use crate::FairnessError;
use crate::strategies::{Saved, Strategy};
use crate::trainer::EpochReport;

/// Where a training stands after a complete epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// One report per complete epoch.
    pub(crate) epochs: Vec<EpochReport>,
    /// The best epoch so far, counted from 0, and its monitored value.
    pub(crate) best: Option<(usize, f64)>,
}

/// Whether training in this run folder has completed an epoch, so that there is something to go on from.
pub fn has_complete_epoch(run_folder: &Path) -> bool {
    Checkpoints::new(&run_folder.join(FOLDER)).complete().is_ok_and(|epochs| !epochs.is_empty())
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

    /// Goes back to the newest complete epoch, if there is one.
    pub(crate) fn restore(&self, strategy: &mut dyn Strategy) -> Result<Progress, FairnessError> {
        let Some(newest) = self.complete()?.pop() else { return Ok(Progress::default()) };
        let path = newest.join("trainer.json");
        let unusable = |reason: String| FairnessError::Checkpoint { path: path.clone(), reason };
        let text = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
        let progress = serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
        strategy.load(&newest.join("last"), Saved::Everything)?;
        Ok(progress)
    }

    /// Keeps a complete epoch; `improved` says whether it is the best so far.
    pub(crate) fn keep(
        &self,
        strategy: &dyn Strategy,
        progress: &Progress,
        improved: bool,
    ) -> Result<(), FairnessError> {
        let older = self.complete()?;
        let name = format!("epoch-{:05}", progress.epochs.len());
        let temporary = self.folder.join(format!(".{name}.tmp"));
        let (last, best) = (temporary.join("last"), temporary.join("best"));
        // Left over by a kill; its content is of no use.
        remove(&temporary)?;
        create(&last)?;
        create(&best)?;
        strategy.save(&last, Saved::Everything)?;
        match older.last() {
            Some(previous) if !improved => link_files(&previous.join("best"), &best)?,
            _ => strategy.save(&best, Saved::Weights)?,
        }
        let text = serde_json::to_vec(progress).expect("a report is plain data");
        write_atomically(&temporary.join("trainer.json"), |file| file.write_all(&text))?;
        let complete = self.folder.join(&name);
        std::fs::rename(&temporary, &complete).map_err(|error| failed(&complete, &error))?;
        older.iter().try_for_each(|folder| remove(folder))
    }

    /// Loads the networks of the best epoch.
    pub(crate) fn load_best(&self, strategy: &mut dyn Strategy) -> Result<(), FairnessError> {
        let missing =
            || FairnessError::Checkpoint { path: self.folder.clone(), reason: "no complete epoch is there".to_owned() };
        let newest = self.complete()?.pop().ok_or_else(missing)?;
        strategy.load(&newest.join("best"), Saved::Weights)
    }

    /// Folders of complete epochs, oldest first.
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
        folders.sort(); // five digits: by name is by epoch
        Ok(folders)
    }
}

/// The best weights do not change until a better epoch comes: a link costs nothing, and a copy serves where links do not
/// exist.
fn link_files(from: &Path, to: &Path) -> Result<(), FairnessError> {
    for entry in std::fs::read_dir(from).map_err(|error| failed(from, &error))? {
        let source = entry.map_err(|error| failed(from, &error))?.path();
        let target = to.join(source.file_name().unwrap_or_default());
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
