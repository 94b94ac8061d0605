//! Trials as child processes: a crash, a kill for want of memory or a leak costs one trial.

use std::collections::{HashSet, VecDeque};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::folder::{StudyFolder, TrialFolder};
use super::lease::{Timing, time_of_server};
use super::state::{Failure, FailureClass, TrialState};
use crate::run_folder::{read_json, write_json};
use crate::{CliError, interrupt};

/// Bytes of what a failed child said that are kept.
const MOST_SAID: usize = 8_000;

/// Runs trials of a study on this machine.
pub(crate) struct Pool<'a> {
    pub(crate) folder: &'a StudyFolder,
    /// Child processes at a time.
    pub(crate) jobs: usize,
    /// Threads of each.
    pub(crate) threads: usize,
    pub(crate) timing: Timing,
}

/// A trial that ended.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) id: String,
    pub(crate) state: TrialState,
    pub(crate) took: Duration,
}

/// A child that ended.
struct Ended {
    index: usize,
    id: String,
    process: u32,
    status: ExitStatus,
    said: String,
    took: Duration,
}

impl Pool<'_> {
    /// Runs the trials (place in the manifest, and name) once each, in their order; calls `on` after each. Ends early if a stop
    /// was requested, once all children have saved their state.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if a child cannot be started or a record cannot be written.
    pub(crate) fn run(&self, trials: &[(usize, String)], on: &mut dyn FnMut(&Progress)) -> Result<(), CliError> {
        let mut seen = HashSet::new();
        let queue: VecDeque<_> = trials.iter().filter(|(_, id)| seen.insert(id.clone())).cloned().collect();
        let queue = Mutex::new(queue);
        let program = std::env::current_exe()
            .map_err(|error| CliError::RunFolder { path: PathBuf::from("fairtte"), problem: error.to_string() })?;
        let (send, ended) = channel::<Result<Ended, CliError>>();
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(trials.len()).max(1) {
                let (send, queue, program) = (send.clone(), &queue, &program);
                scope.spawn(move || self.work(program, queue, &send));
            }
            drop(send);
            let mut first = Ok(());
            for ended in ended {
                let progress = ended.and_then(|ended| self.record(ended));
                match progress {
                    Ok(progress) => on(&progress),
                    Err(error) if first.is_ok() => {
                        // No further trial is begun; those that run are waited for.
                        queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
                        first = Err(error);
                    }
                    Err(_) => {}
                }
            }
            first
        })
    }

    fn work(
        &self,
        program: &PathBuf,
        queue: &Mutex<VecDeque<(usize, String)>>,
        send: &Sender<Result<Ended, CliError>>,
    ) {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((index, id)) = next.filter(|_| !interrupt::is_wanted()) else { return };
            if send.send(self.child(program, index, id)).is_err() {
                return;
            }
        }
    }

    /// Starts a child and waits for it.
    fn child(&self, program: &PathBuf, index: usize, id: String) -> Result<Ended, CliError> {
        let failed = |error: std::io::Error| CliError::RunFolder {
            path: program.clone(),
            problem: format!("trial {id} cannot be run: {error}"),
        };
        let began = Instant::now();
        let mut child = Command::new(program)
            .args(["study", "trial"])
            .arg(self.folder.path())
            .arg(index.to_string())
            .args(["--threads", &self.threads.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let said = child.stderr.take().map(|mut stderr| {
            let mut kept = VecDeque::new();
            let mut block = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut block) {
                kept.extend(&block[..n]);
                kept.drain(..kept.len().saturating_sub(MOST_SAID));
            }
            String::from_utf8_lossy(&kept.into_iter().collect::<Vec<u8>>()).into_owned()
        });
        let status = child.wait().map_err(failed)?;
        Ok(Ended { index, id, process: child.id(), status, said: said.unwrap_or_default(), took: began.elapsed() })
    }

    /// Reads what a trial came to; records that its process was killed.
    fn record(&self, ended: Ended) -> Result<Progress, CliError> {
        let folder = self.folder.trial(&ended.id);
        if ended.status.code().is_none() || ended.status.code() == Some(101) {
            record_kill(&folder, &ended)?;
        }
        super::lease::give_back(&folder, ended.process)?;
        let now = time_of_server(self.folder.path())?;
        let state = TrialState::of(&folder, now, self.timing.stale)?;
        Ok(Progress { id: ended.id, state, took: ended.took })
    }
}

/// Records that a child was ended by a signal or a panic, of which it could say nothing itself.
fn record_kill(folder: &TrialFolder, ended: &Ended) -> Result<(), CliError> {
    if folder.scores().exists() || folder.refused().exists() {
        return Ok(());
    }
    let earlier: Option<Failure> = if folder.failed().exists() { Some(read_json(&folder.failed())?) } else { None };
    let class = if ended.status.code().is_none() { FailureClass::Killed } else { FailureClass::Unknown };
    let message = format!("place {} of the manifest, {}: {}", ended.index, ended.status, ended.said.trim());
    let attempts = earlier.map_or(1, |earlier| earlier.attempts + 1);
    let failure = Failure { class, message, host: super::lease::Holder::this().machine().to_owned(), attempts };
    write_json(&folder.failed(), &failure)
}
