//! The files of a run folder, in the order in which they are written; `done` comes last.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::{Part, write_atomically};
use fairtte_fairness::{EpochReport, PretrainedConfig, has_checkpoint};
use fairtte_metrics::EvaluationSettings;

use crate::run_file::GroupsConfig;
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

    pub(crate) fn cohort_csv(&self) -> PathBuf {
        self.path.join("cohort.csv")
    }

    pub(crate) fn summary(&self) -> PathBuf {
        self.path.join("cohort.json")
    }

    pub(crate) fn exclusions(&self) -> PathBuf {
        self.path.join("exclusions.csv")
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

    pub(crate) fn features(&self) -> PathBuf {
        self.path.join("features.json")
    }

    pub(crate) fn steps(&self) -> PathBuf {
        self.path.join("steps.jsonl")
    }

    pub(crate) fn predictions(&self) -> PathBuf {
        self.path.join("predictions.parquet")
    }

    /// Curves by the weights of a selection rule, where they are not those of [`predictions`](Self::predictions).
    pub(crate) fn predictions_best(&self, rule: &str) -> PathBuf {
        self.path.join(format!("predictions-best-{rule}.parquet"))
    }

    pub(crate) fn selection(&self) -> PathBuf {
        self.path.join("selection.json")
    }

    pub(crate) fn evaluation(&self, part: Part) -> PathBuf {
        self.path.join(format!("evaluation{}.json", suffix(part)))
    }

    pub(crate) fn report(&self, part: Part) -> PathBuf {
        self.path.join(format!("report{}.html", suffix(part)))
    }

    pub(crate) fn done(&self) -> PathBuf {
        self.path.join("done")
    }

    /// Takes the folder for `run`: one in which nothing was trained yet gets its `run.toml`, one of the same run is gone
    /// on with. Returns the folder and the settings that its `run.toml` now holds.
    ///
    /// # Errors
    /// [`CliError::OtherRun`] if it holds a run with other settings, [`CliError::Data`] if it cannot be written.
    pub(crate) fn open(run: &RunFile) -> Result<(Self, RunFile), CliError> {
        let folder = Self::new(&run.output);
        if folder.is_trained() {
            folder.require_same(run)?;
        }
        let mut resolved = RunFile { cache: Some(run.cache()), ..run.clone() };
        if folder.done().exists() {
            // Showing a finished run again computes nothing: its record keeps the device it was trained on.
            resolved.device = RunFile::read(&[folder.run_file()], &[])?.device;
        }
        write_text(&folder.run_file(), &resolved.to_toml()?)?;
        Ok((folder, resolved))
    }

    /// Whether there is anything that depends on the settings of the training.
    pub(crate) fn is_trained(&self) -> bool {
        has_checkpoint(&self.path) || self.predictions().exists() || self.done().exists()
    }

    fn require_same(&self, run: &RunFile) -> Result<(), CliError> {
        // Device, threads, places and what is reported do not change what was trained.
        let essence = |run: &RunFile| RunFile {
            evaluation: EvaluationSettings::default(),
            groups: GroupsConfig { intersections: Vec::new(), ..run.groups.clone() },
            output: PathBuf::new(),
            cache: None,
            device: String::new(),
            threads: 0,
            // The same weights elsewhere: their hash is compared.
            pretrained: run.pretrained.clone().map(|config| PretrainedConfig { path: PathBuf::new(), ..config }),
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

/// The test part has the plain names: its numbers are the result.
fn suffix(part: Part) -> String {
    if part == Part::Test { String::new() } else { format!("-{}", part.name()) }
}

/// Writes a text file, atomically.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    Ok(write_atomically(path, |file| file.write_all(text.as_bytes()))?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn run(folder: &Path, device: &str) -> RunFile {
        let text = include_str!("../../configs/demo.toml");
        let run = RunFile::from_text(text, "demo.toml", &[format!("device={device}")]).unwrap();
        RunFile { output: folder.join("run"), ..run }
    }

    #[test]
    fn a_finished_run_keeps_the_device_it_was_trained_on() {
        let folder = tempfile::tempdir().unwrap();
        let (opened, _) = RunFolder::open(&run(folder.path(), "flex")).unwrap();
        let (_, other) = RunFolder::open(&run(folder.path(), "tch")).unwrap();
        assert_eq!(other.device, "tch", "nothing was computed yet");
        write_text(&opened.done(), "").unwrap();
        let (_, shown) = RunFolder::open(&run(folder.path(), "flex")).unwrap();
        let kept = RunFile::read(&[opened.run_file()], &[]).unwrap();
        assert_eq!((shown.device.as_str(), kept.device.as_str()), ("tch", "tch"));
    }

    #[test]
    fn a_checkpoint_folder_without_a_complete_epoch_is_no_training() {
        let folder = tempfile::tempdir().unwrap();
        let run_folder = RunFolder::new(folder.path());
        let make = |name: &str| std::fs::create_dir_all(folder.path().join("checkpoint").join(name)).unwrap();
        make(".epoch-00001.tmp");
        assert!(!run_folder.is_trained());
        make("epoch-00001");
        assert!(run_folder.is_trained());
    }
}
