//! The files of a run folder, in the order in which they are written; `done` comes last.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::write_atomically;
use fairtte_fairness::EpochReport;

use crate::{CliError, RunFile};

/// A run folder.
#[derive(Clone, Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
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

    pub(crate) fn exclusions(&self) -> PathBuf {
        self.path.join("exclusions.csv")
    }

    pub(crate) fn split(&self) -> PathBuf {
        self.path.join("split.csv")
    }

    pub(crate) fn steps(&self) -> PathBuf {
        self.path.join("steps.jsonl")
    }

    pub(crate) fn predictions(&self) -> PathBuf {
        self.path.join("predictions.parquet")
    }

    pub(crate) fn evaluation(&self) -> PathBuf {
        self.path.join("evaluation.json")
    }

    pub(crate) fn report(&self) -> PathBuf {
        self.path.join("report.html")
    }

    pub(crate) fn done(&self) -> PathBuf {
        self.path.join("done")
    }

    /// Takes the folder for `run`: a new one gets `run.toml`, one of the same run is gone on with.
    ///
    /// # Errors
    /// [`CliError::OtherRun`] if it holds a run with other settings, [`CliError::Data`] if it cannot be written.
    pub(crate) fn open(run: &RunFile) -> Result<Self, CliError> {
        let folder = Self::new(&run.output);
        let path = folder.run_file();
        if path.exists() {
            folder.require_same(run)?;
        } else {
            write_text(&path, &run.to_toml()?)?;
        }
        Ok(folder)
    }

    fn require_same(&self, run: &RunFile) -> Result<(), CliError> {
        // Device, threads and places do not change what a run is.
        let essence = |run: &RunFile| RunFile {
            output: PathBuf::new(),
            cache: None,
            device: String::new(),
            threads: 0,
            ..run.clone()
        };
        let kept = RunFile::read(&[self.run_file()], &[])?;
        let (kept, asked) = (essence(&kept).to_toml()?, essence(run).to_toml()?);
        let differing = kept.lines().zip(asked.lines()).find(|(kept, asked)| kept != asked);
        let difference = match differing {
            Some((kept, asked)) => format!("`{kept}` there, `{asked}` here"),
            None if kept == asked => return Ok(()),
            None => "one of them has more settings".to_owned(),
        };
        let help = "choose another --output, or remove the folder to start anew".to_owned();
        Err(CliError::OtherRun { folder: self.path.clone(), difference, help })
    }

    /// The reports of all epochs; none if there is no `steps.jsonl`.
    pub(crate) fn epochs(&self) -> Result<Vec<EpochReport>, CliError> {
        let path = self.steps();
        if !path.exists() {
            return Ok(Vec::new());
        }
        let damaged = |problem: String| CliError::RunFolder { path: path.clone(), problem };
        let text = std::fs::read_to_string(&path).map_err(|error| damaged(error.to_string()))?;
        text.lines().map(|line| serde_json::from_str(line).map_err(|error| damaged(error.to_string()))).collect()
    }
}

/// Writes a text file, atomically.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    Ok(write_atomically(path, |file| file.write_all(text.as_bytes()))?)
}
