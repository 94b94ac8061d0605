//! A run: its settings together with its folder.

use std::path::Path;

use super::{RunFolder, remove_file, write_text};
use crate::{CliError, RunFile};

/// The settings of a run and the folder that has its files. A folder that was opened to write is locked as long as this
/// value exists.
#[derive(Clone, Debug)]
pub(crate) struct OpenRun {
    /// The settings; [`begin`](Self::begin) writes them as `run.toml`.
    pub(crate) file: RunFile,
    pub(crate) folder: RunFolder,
}

impl OpenRun {
    /// The run in a folder, with the settings of its `run.toml`; the folder is only read.
    ///
    /// # Errors
    /// As [`RunFolder::require_run`] and [`RunFile::read`].
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let folder = RunFolder::new(path);
        folder.require_run()?;
        Ok(Self { file: RunFile::read(&[folder.run_file()], &[])?, folder })
    }

    /// Writes `run.toml` and removes the results of weights that are trained further, and the records of settings that an earlier
    /// run file of the folder had.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if a file cannot be removed, [`CliError::Data`] if one cannot be written.
    pub(crate) fn begin(&self) -> Result<(), CliError> {
        let Self { file, folder } = self;
        remove_file(&folder.done())?;
        folder.clear_results()?;
        folder.clear_records_without_setting(file)?;
        let resolved = RunFile { cache: Some(file.cache()), ..file.clone() };
        write_text(&folder.run_file(), &resolved.to_toml()?)
    }

    /// Opens the folder of `run` for its data. What was trained in it is not touched: a build without training cannot
    /// tell whether `run` has its settings.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if something was trained there, or another process uses the folder.
    #[cfg(not(feature = "train"))]
    pub(crate) fn for_preparation(run: RunFile) -> Result<Self, CliError> {
        let folder = RunFolder::new(&run.output).locked()?;
        if folder.is_trained()? {
            let problem = "a model was trained here, which this build of fairtte cannot compare with the run file \
                           (it has no feature train); choose another --output"
                .to_owned();
            return Err(CliError::RunFolder { path: folder.path, problem });
        }
        let open = Self { file: run, folder };
        open.begin()?;
        Ok(open)
    }
}

impl RunFolder {
    /// Requires that the path is a folder.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if it is a file, or there is none.
    pub(crate) fn require_folder(&self) -> Result<(), CliError> {
        self.require_one("a folder")
    }

    /// Removes the records of settings that `run` does not have: a report shows every record that it finds.
    fn clear_records_without_setting(&self, run: &RunFile) -> Result<(), CliError> {
        if run.shift.is_none() {
            remove_file(&self.shift())?;
            remove_file(&self.shift_table())?;
        }
        if run.estimator.is_none() {
            remove_file(&self.fit_checks())?;
        }
        if !run.reads_columns() {
            remove_file(&self.features())?;
        }
        Ok(())
    }

    fn require_one(&self, expected: &str) -> Result<(), CliError> {
        let problem = if self.path.is_file() {
            format!("this is a file, expected {expected}")
        } else if !self.path.exists() {
            "there is no such folder".to_owned()
        } else {
            return Ok(());
        };
        Err(CliError::RunFolder { path: self.path.clone(), problem })
    }

    /// Requires that the folder is that of a run.
    ///
    /// # Errors
    /// Those of [`require_folder`](Self::require_folder), and [`CliError::RunFolder`] if it has no `run.toml`.
    pub(crate) fn require_run(&self) -> Result<(), CliError> {
        self.require_one("the folder of a run")?;
        if self.run_file().exists() {
            return Ok(());
        }
        let problem = "this is not the folder of a run: it has no run.toml".to_owned();
        Err(CliError::RunFolder { path: self.path.clone(), problem })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    /// Which of some files are left where a run with these settings begins.
    fn left(names: &[&'static str], sets: &[&str]) -> Vec<&'static str> {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let file = RunFile::from_text(include_str!("../commands/demo.toml"), "demo.toml", &sets).unwrap();
        OpenRun { file, folder: RunFolder::new(folder.path()) }.begin().unwrap();
        names.iter().copied().filter(|name| folder.path().join(name).exists()).collect()
    }

    #[test]
    fn no_number_of_earlier_weights_is_left() {
        let names = [
            "evaluation.json",
            "evaluation.csv",
            "samples.csv",
            "report.html",
            "evaluation-validation.json",
            "evaluation-validation.csv",
            "evaluation-validation-samples.csv",
            "report-validation.html",
            "cohort.parquet",
        ];
        assert_eq!(left(&names, &[]), ["cohort.parquet"]);
    }

    #[test]
    fn the_record_of_a_setting_is_removed_with_the_setting() {
        let names = ["shift.json", "shift.csv", "fit.json", "features.json", "split.csv"];
        let shift = "shift={ attribute = \"sex\", group = \"F\", blur = 1.0 }";
        assert_eq!(left(&names, &[shift]), ["shift.json", "shift.csv", "split.csv"]);
        assert_eq!(left(&names, &[]), ["split.csv"]);
    }
}
