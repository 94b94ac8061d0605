//! The folder of a study.
//!
//! ```text
//! S/ study.toml plan.json manifest.csv        the study as it was planned
//!    cache/                                   decoded images and simulated cohorts, shared by all trials
//!    trials/ab/ab12..ef/                      a trial, named by its content
//!    sex/erm-seed1/                           a trial of a comparison
//!    chosen/ab12..ef/                         chosen trials as run folders, if intervals were requested
//!    rungs/                                   what successive halving decided
//!    todo/ log/                               what was submitted to SLURM, and what its tasks said
//!    results.parquet choice.json ..           what `collect` and `report` write
//! ```

use std::path::{Path, PathBuf};

/// Where the files of a study are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StudyFolder {
    path: PathBuf,
}

impl StudyFolder {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The study file with absolute paths, for people.
    pub(crate) fn study(&self) -> PathBuf {
        self.path.join("study.toml")
    }

    /// Study, resolved run files and content of the data: what a trial is resolved from.
    pub(crate) fn plan(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    /// One line per cell and trial.
    pub(crate) fn manifest(&self) -> PathBuf {
        self.path.join("manifest.csv")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.path.join("cache")
    }

    /// The folder of a trial. 256 folders in between, because some file systems are slow with 20,000 entries in one. A trial of
    /// a comparison, which is named by words (`sex/erm-seed1`), is below the folder itself.
    pub(crate) fn trial(&self, id: &str) -> TrialFolder {
        if id.contains('/') {
            return TrialFolder { path: self.path.join(id) };
        }
        TrialFolder { path: self.path.join("trials").join(id.get(..2).unwrap_or_default()).join(id) }
    }

    /// The lists of what was submitted to SLURM, and the script of a task.
    pub(crate) fn todo(&self) -> PathBuf {
        self.path.join("todo")
    }

    /// The record of what was submitted.
    pub(crate) fn submitted(&self) -> PathBuf {
        self.todo().join("submitted.json")
    }

    /// The run folder of a chosen model, which predicts again for intervals.
    pub(crate) fn chosen(&self, id: &str) -> PathBuf {
        self.path.join("chosen").join(id)
    }

    /// What successive halving decided.
    pub(crate) fn rungs(&self) -> PathBuf {
        self.path.join("rungs")
    }

    /// What the tasks said.
    pub(crate) fn logs(&self) -> PathBuf {
        self.path.join("log")
    }

    /// One row per trial, rule, epoch, part, metric and group.
    pub(crate) fn results(&self) -> PathBuf {
        self.path.join("results.parquet")
    }
}

/// Where the files of a trial are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrialFolder {
    path: PathBuf,
}

impl TrialFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What a finished trial found; written last.
    pub(crate) fn scores(&self) -> PathBuf {
        self.path.join("scores.json")
    }

    /// Why the method cannot be trained on these data: a result.
    pub(crate) fn refused(&self) -> PathBuf {
        self.path.join("refused.json")
    }

    /// Why the trial failed.
    pub(crate) fn failed(&self) -> PathBuf {
        self.path.join("failed.json")
    }

    /// That the training has stopped at a rung of successive halving.
    pub(crate) fn rung(&self) -> PathBuf {
        self.path.join("rung.json")
    }

    /// The trained model in one file.
    pub(crate) fn model(&self) -> PathBuf {
        self.path.join("model.tar")
    }

    /// The lease of an attempt, counted from 0.
    pub(crate) fn lease(&self, attempt: usize) -> PathBuf {
        self.path.join(format!("lease.{attempt}"))
    }
}
