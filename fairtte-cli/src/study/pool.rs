//! Trials as child processes: a crash, a kill because of insufficient memory or a leak costs one trial.

use std::collections::{HashSet, VecDeque};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::folder::{StudyFolder, TrialFolder};
use super::lease::{Holder, Timing, time_of_server};
use super::state::{Failure, FailureClass, TrialState};
use crate::{CliError, exit::Exit, interrupt};

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
        let running = Mutex::new(HashSet::new());
        let over = AtomicBool::new(false);
        let program = std::env::current_exe()
            .map_err(|error| CliError::RunFolder { path: PathBuf::from("fairtte"), problem: error.to_string() })?;
        let (send, ended) = channel::<Result<Ended, CliError>>();
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(trials.len()).max(1) {
                let (send, queue, program, running) = (send.clone(), &queue, &program, &running);
                scope.spawn(move || self.work(program, queue, running, &send));
            }
            drop(send);
            scope.spawn(|| forward_stops(&running, &over));
            let _over = Over(&over);
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
        running: &Mutex<HashSet<u32>>,
        send: &Sender<Result<Ended, CliError>>,
    ) {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((index, id)) = next.filter(|_| !interrupt::is_wanted()) else { return };
            if send.send(self.child(program, running, index, id)).is_err() {
                return;
            }
        }
    }

    /// Starts a child and waits for it.
    fn child(
        &self,
        program: &PathBuf,
        running: &Mutex<HashSet<u32>>,
        index: usize,
        id: String,
    ) -> Result<Ended, CliError> {
        let locked = || running.lock().unwrap_or_else(PoisonError::into_inner);
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
        locked().insert(child.id());
        let said = child.stderr.take().map(|mut stderr| {
            let mut kept = VecDeque::new();
            let mut block = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut block) {
                kept.extend(&block[..n]);
                kept.drain(..kept.len().saturating_sub(MOST_SAID));
            }
            String::from_utf8_lossy(&kept.into_iter().collect::<Vec<u8>>()).into_owned()
        });
        // It has closed its standard error, so it ends; not yet waited for, its number is no other process's.
        locked().remove(&child.id());
        let status = child.wait().map_err(failed)?;
        let said = said.unwrap_or_default();
        Ok(Ended { index, id, process: child.id(), status, said, took: began.elapsed() })
    }

    /// Reads what a trial came to; records a failure of which its process could say nothing itself.
    fn record(&self, ended: Ended) -> Result<Progress, CliError> {
        let folder = self.folder.trial(&ended.id);
        if ended.is_failure() && !has_result(&folder) && !ended.has_recorded(&folder)? {
            record_failure(&folder, &ended, self.timing)?;
        }
        // Only now, so that no other process takes the trial over and counts this attempt again.
        super::lease::give_back(&folder, ended.process)?;
        let state = TrialState::of(&folder, time_of_server(self.folder.path())?, self.timing.stale)?;
        Ok(Progress { id: ended.id, state, took: ended.took })
    }
}

/// Says that a pool is over, also where it ends by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Passes a request to stop on to the running children, once, until the pool is `over`: `kill PID`, `timeout` and `docker stop` reach
/// this process alone. Ctrl-C and SLURM reach the children as well, which a second SIGTERM would end at once; SIGUSR1 never does.
fn forward_stops(running: &Mutex<HashSet<u32>>, over: &AtomicBool) {
    let mut asked = HashSet::new();
    while !over.load(Ordering::Relaxed) {
        if interrupt::is_wanted() {
            let running = running.lock().unwrap_or_else(PoisonError::into_inner);
            running
                .iter()
                .filter(|process| asked.insert(**process))
                .for_each(|process| interrupt::ask_to_stop(*process));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

impl Ended {
    /// Whether the process was killed or failed, and did not only stop because it was asked to.
    fn is_failure(&self) -> bool {
        // Asked to stop before it could listen.
        #[cfg(unix)]
        if std::os::unix::process::ExitStatusExt::signal(&self.status) == Some(libc::SIGUSR1) {
            return false;
        }
        let stopped = [Exit::Ok, Exit::TryAgain, Exit::Interrupted].map(|exit| i32::from(exit as u8));
        self.status.code().is_none_or(|code| !stopped.contains(&code))
    }

    /// Whether the process itself recorded how it failed.
    fn has_recorded(&self, folder: &TrialFolder) -> Result<bool, CliError> {
        let is_ours = |failure: Failure| failure.process == self.process && failure.host == Holder::this().machine();
        Ok(Failure::of(folder)?.is_some_and(is_ours))
    }
}

/// Whether a trial has scores, or cannot be trained.
fn has_result(folder: &TrialFolder) -> bool {
    folder.scores().exists() || folder.refused().exists()
}

/// Records how a child ended that left no record: by a signal, by a panic outside the training, or before it had the trial. Nothing
/// where another process has taken the trial over, which counts for itself.
fn record_failure(folder: &TrialFolder, ended: &Ended, timing: Timing) -> Result<(), CliError> {
    if folder.path().exists() && super::lease::is_held_by_another(folder, ended.process, timing)? {
        return Ok(());
    }
    let class = if ended.status.code().is_none() { FailureClass::Killed } else { FailureClass::Unknown };
    let message = format!("place {} of the manifest, {}: {}", ended.index, ended.status, ended.said.trim());
    Failure::record(folder, class, message, &Holder { process: ended.process, ..Holder::this() })?;
    Ok(())
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;
    use crate::run_folder::{read_json, write_json};

    #[test]
    fn a_process_that_left_no_record_counts_as_an_attempt_unless_it_was_asked_to_stop() {
        let root = tempfile::tempdir().unwrap();
        let folder = StudyFolder::new(root.path());
        let timing = Timing { heartbeat: Duration::from_secs(1), stale: Duration::from_mins(1) };
        let pool = Pool { folder: &folder, jobs: 1, threads: 1, timing };
        let trial = folder.trial("abcd");
        std::fs::create_dir_all(trial.path()).unwrap();
        let (exit, signal) = (|code: i32| ExitStatus::from_raw(code << 8), ExitStatus::from_raw);
        let record = |status, process| {
            let (id, said, took) = ("abcd".to_owned(), "a sentence".to_owned(), Duration::ZERO);
            pool.record(Ended { index: 7, id, process, status, said, took }).unwrap().state
        };
        let attempts = |state| match state {
            TrialState::Failed(failure) => (failure.class, failure.attempts),
            other => panic!("{other:?}"),
        };
        for code in [0, 75, 130] {
            assert_eq!(record(exit(code), 1), TrialState::ToDo, "{code}");
        }
        assert_eq!(attempts(record(exit(1), 1)), (FailureClass::Unknown, 1));
        let failure: Failure = read_json(&trial.failed()).unwrap();
        assert!(failure.message.starts_with("place 7 of the manifest, ") && failure.message.ends_with(": a sentence"));

        // It took the trial over from a process that vanished, counted that, and was killed itself; its lease is given back.
        let holder = |process: u32| Holder { process, ..Holder::this() };
        let lease = |n: usize, process| {
            std::fs::write(trial.lease(n), serde_json::to_string(&holder(process)).unwrap() + "\n").unwrap();
        };
        lease(0, u32::MAX);
        let of_other = Failure { class: FailureClass::Killed, process: 5, attempts: 2, ..failure };
        write_json(&trial.failed(), &of_other).unwrap();
        assert_eq!(attempts(record(signal(9), u32::MAX)), (FailureClass::Killed, 3));

        // It wrote its own record.
        let own = Failure { class: FailureClass::Device, process: 6, attempts: 4, ..of_other };
        write_json(&trial.failed(), &own).unwrap();
        assert_eq!(record(exit(5), 6), TrialState::Failed(own.clone()));
        // Another process, this one, took the trial over.
        lease(1, std::process::id());
        assert_eq!(record(exit(4), 8), TrialState::Running);
        assert_eq!(read_json::<Failure>(&trial.failed()).unwrap(), own);
        std::fs::write(trial.scores(), "{}").unwrap();
        assert_eq!(record(exit(1), 8), TrialState::Done);
    }
}
