//! The state of a trial, from files alone.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::folder::TrialFolder;
use super::halving::AtRung;
use super::lease::{self, Holder};
use crate::CliError;
use crate::run_folder::{read_json, write_json};

/// Attempts after which a trial that was killed, or failed for an unknown reason, is not tried again.
pub(crate) const MOST_ATTEMPTS: usize = 3;

/// Why a trial did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FailureClass {
    /// The run file or a setting is wrong; it would fail again.
    Config,
    /// The data, or the pre-trained weights, cannot be read; it would fail again.
    Data,
    /// A file of the trial could not be written or read: a full disk, a quota, a mount that is missing.
    Files,
    /// The process was killed, for example because it needed too much memory.
    Killed,
    /// The device had no memory left, was lost, or could not be used.
    Device,
    /// Anything else.
    Unknown,
}

impl FailureClass {
    /// Name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Config => "wrong setting",
            Self::Data => "unreadable data",
            Self::Files => "files of the trial",
            Self::Killed => "killed",
            Self::Device => "device failed",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the same would happen again.
    fn is_final(self) -> bool {
        matches!(self, Self::Config | Self::Data)
    }
}

/// A trial that did not finish, `failed.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Failure {
    pub(crate) class: FailureClass,
    /// The end of what the process said.
    pub(crate) message: String,
    pub(crate) host: String,
    /// The process that failed there; 0 in files of older versions.
    #[serde(default)]
    pub(crate) process: u32,
    /// Attempts so far.
    pub(crate) attempts: usize,
}

impl Failure {
    /// The last failure of a trial, if there is one.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if the record cannot be read.
    pub(crate) fn of(folder: &TrialFolder) -> Result<Option<Self>, CliError> {
        folder.failed().exists().then(|| read_json(&folder.failed())).transpose()
    }

    /// Records a failure of a process, after the earlier ones of the trial.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if the record cannot be read or written.
    pub(crate) fn record(
        folder: &TrialFolder,
        class: FailureClass,
        message: String,
        holder: &Holder,
    ) -> Result<Self, CliError> {
        let attempts = Self::of(folder)?.map_or(1, |earlier| earlier.attempts + 1);
        let (host, process) = (holder.machine().to_owned(), holder.process);
        let failure = Self { class, message, host, process, attempts };
        write_json(&folder.failed(), &failure)?;
        Ok(failure)
    }

    /// Whether the trial is left alone until a person asks for it again.
    pub(crate) fn is_final(&self) -> bool {
        self.class.is_final() || self.attempts >= MOST_ATTEMPTS
    }
}

/// A method that cannot be trained on the data, `refused.json`: a result, not a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Refusal {
    /// Whether the loss or an output left the range of numbers.
    pub(crate) diverged: bool,
    pub(crate) because: String,
}

/// The state of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrialState {
    /// Nothing was done, or it was stopped and can be resumed.
    ToDo,
    /// A process works on it.
    Running,
    /// Its scores are there.
    Done,
    /// The method cannot be trained on the data.
    Refused(Refusal),
    /// It has stopped at a rung of successive halving.
    AtRung(AtRung),
    /// It failed; `is_final` says whether it is tried again.
    Failed(Failure),
}

impl TrialState {
    /// The state of a trial at the time `now` of the file server.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if a record cannot be read.
    pub(crate) fn of(folder: &TrialFolder, now: SystemTime, stale: Duration) -> Result<Self, CliError> {
        if folder.scores().exists() {
            return Ok(Self::Done);
        }
        if folder.refused().exists() {
            return Ok(Self::Refused(read_json(&folder.refused())?));
        }
        if let Some((_, _, Some(_))) = lease::held(folder, now, stale)? {
            return Ok(Self::Running);
        }
        if let Some(failure) = Failure::of(folder)? {
            return Ok(Self::Failed(failure));
        }
        if folder.rung().exists() {
            return Ok(Self::AtRung(read_json(&folder.rung())?));
        }
        Ok(Self::ToDo)
    }

    /// Whether a process may take the trial.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            // Whether a trial at a rung continues is decided for its whole cell.
            Self::ToDo | Self::AtRung(_) => true,
            Self::Failed(failure) => !failure.is_final(),
            Self::Running | Self::Done | Self::Refused(_) => false,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;
    use crate::study::StudyFolder;

    #[test]
    fn a_trial_is_what_its_files_say() {
        let folder = tempfile::tempdir().unwrap();
        let trial = StudyFolder::new(folder.path()).trial("abcd");
        let now = || SystemTime::now() + Duration::from_secs(1);
        let state = || TrialState::of(&trial, now(), Duration::from_mins(1)).unwrap();
        assert_eq!(state(), TrialState::ToDo, "no folder");
        std::fs::create_dir_all(trial.path()).unwrap();
        let (message, host) = ("x".to_owned(), "n1".to_owned());
        let failure = |class, attempts| {
            let (message, host) = (message.clone(), host.clone());
            Failure { class, message, host, process: 7, attempts }
        };
        for (class, attempts, is_open) in [
            (FailureClass::Killed, 1, true),
            (FailureClass::Killed, 3, false),
            (FailureClass::Unknown, 2, true),
            (FailureClass::Device, 1, true),
            (FailureClass::Device, 3, false),
            (FailureClass::Config, 1, false),
            (FailureClass::Data, 1, false),
        ] {
            write_json(&trial.failed(), &failure(class, attempts)).unwrap();
            assert_eq!(state(), TrialState::Failed(failure(class, attempts)));
            assert_eq!(state().is_open(), is_open, "{class:?} after {attempts}");
        }
        std::fs::write(trial.lease(0), "{}").unwrap();
        assert_eq!(state(), TrialState::Running, "a fresh lease counts more than an earlier failure");
        let old = TrialState::of(&trial, now() + Duration::from_mins(1), Duration::from_mins(1)).unwrap();
        assert!(matches!(old, TrialState::Failed(_)), "{old:?}");
        let refusal = Refusal { diverged: false, because: "a cell is too small".to_owned() };
        write_json(&trial.refused(), &refusal).unwrap();
        assert_eq!(state(), TrialState::Refused(refusal));
        std::fs::write(trial.scores(), "{}").unwrap();
        assert_eq!(state(), TrialState::Done);
    }
}
