//! Numbered leases, which keep two processes off one trial also where `flock` is local to a node (GPFS).
//!
//! A process that wants a trial creates `lease.N` with `create_new`, which one creator wins. It shows that it lives by setting
//! the time of the file now and then. If that time is too old, another process creates `lease.N+1`; nothing is renamed or
//! removed, because taking a lease over by renaming it is a race. The holder looks for a higher lease at every heartbeat
//! and gives up if there is one.
//!
//! The age of a lease is the difference of two times that the file server gave: those of the lease and of a probe file that
//! is written beside it, so that clocks of nodes do not matter.

use std::collections::HashSet;
use std::fs::{File, FileTimes};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::folder::TrialFolder;
use crate::CliError;

/// When leases count as abandoned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timing {
    /// Between two heartbeats.
    pub(crate) heartbeat: Duration,
    /// Without a heartbeat after which a lease is abandoned.
    pub(crate) stale: Duration,
}

/// Who holds a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Holder {
    pub(crate) host: String,
    pub(crate) process: u32,
    /// Job and task of SLURM, if it runs there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    /// How often SLURM had started this task again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) restart: Option<u32>,
    /// The name that SLURM has for the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
}

impl Holder {
    /// This process.
    pub(crate) fn this() -> Self {
        let word = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let task =
            word("SLURM_ARRAY_JOB_ID").zip(word("SLURM_ARRAY_TASK_ID")).map(|(job, task)| format!("{job}_{task}"));
        let task = task.or_else(|| word("SLURM_JOB_ID"));
        let restart = task.as_ref().map(|_| word("SLURM_RESTART_COUNT").and_then(|n| n.parse().ok()).unwrap_or(0));
        let node = word("SLURMD_NODENAME");
        Self { host: host_name(), process: std::process::id(), task, restart, node }
    }

    /// The machine, for people.
    pub(crate) fn machine(&self) -> &str {
        self.node.as_deref().unwrap_or(&self.host)
    }

    /// Whether SLURM started the task of this holder again: then its machine failed, or it was preempted, and the trial is not
    /// to blame.
    pub(crate) fn was_restarted(&self) -> bool {
        self.is_before_restart(&Self::this())
    }

    /// Whether this is a holder of an earlier start of the task of `now`. Several processes of one start are all alive: `srun -n 4`.
    fn is_before_restart(&self, now: &Self) -> bool {
        self.task.is_some() && self.task == now.task && self.restart < now.restart
    }

    /// Whether the process is known to be gone, as seen by `now`: it was one of this machine, or of an earlier start of this task of
    /// SLURM. Of other machines nothing is known.
    fn is_dead(&self, now: &Self) -> bool {
        let is_gone = || Path::new("/proc/self").exists() && !is_alive(self.process);
        self.is_before_restart(now)
            || (self.process != now.process && self.host == now.host && self.process > 0 && is_gone())
    }
}

/// Whether a process of this machine runs. One that has ended stays in the list of processes until its parent asks for its end,
/// for ever otherwise.
fn is_alive(process: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // The name of the program, in brackets, may contain anything; the state follows.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X' | 'x'))
}

/// The name of this machine, for people.
fn host_name() -> String {
    let of_kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = of_kernel().or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
}

/// The outcome of an attempt to take a trial.
pub(crate) enum Claim {
    /// It is ours.
    Ours(Lease),
    /// Another process works on it.
    Held(Holder),
}

/// A trial that this process holds. Dropped, it ends its heartbeats; [`release`](Lease::release) also lets others take it at
/// once.
pub(crate) struct Lease {
    path: PathBuf,
    /// Attempts at this trial so far, this one included.
    pub(crate) attempt: usize,
    /// The earlier holder, if it vanished without giving the trial back: it was killed, or its machine died.
    pub(crate) took_over: Option<Holder>,
    beats: Option<(Sender<()>, JoinHandle<()>)>,
}

/// The newest lease of a trial: its number and its time.
fn newest(folder: &TrialFolder) -> Result<Option<(usize, SystemTime)>, CliError> {
    let mut found = None;
    for n in 0.. {
        match std::fs::metadata(folder.lease(n)).and_then(|about| about.modified()) {
            Ok(modified) => found = Some((n, modified)),
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            Err(error) => return Err(failed(&folder.lease(n), &error)),
        }
    }
    Ok(found)
}

/// The time that the file server gives now.
pub(crate) fn time_of_server(folder: &Path) -> Result<SystemTime, CliError> {
    let probe = folder.join(format!(".now-{}-{}", host_name(), std::process::id()));
    let now = File::create(&probe).and_then(|mut file| {
        file.write_all(b".")?;
        file.sync_all()?;
        file.metadata()?.modified()
    });
    let now = now.map_err(|error| failed(&probe, &error));
    let _ = std::fs::remove_file(&probe); // nothing depends on it
    now
}

/// The number of the newest lease and, if a process holds it at the time `now` of the file server, who.
pub(crate) fn held(
    folder: &TrialFolder,
    now: SystemTime,
    stale: Duration,
) -> Result<Option<(usize, SystemTime, Option<Holder>)>, CliError> {
    let Some((n, modified)) = newest(folder)? else { return Ok(None) };
    let is_held = |holder: &Holder| !is_abandoned(modified, now, stale) && !holder.is_dead(&Holder::this());
    Ok(Some((n, modified, Some(holder(&folder.lease(n))).filter(is_held))))
}

/// The last heartbeat of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    pub(crate) holder: Holder,
    pub(crate) at: SystemTime,
}

/// The last heartbeat; `None` if no process ever took the trial.
///
/// # Errors
/// [`CliError::RunFolder`] if the folder cannot be read.
pub(crate) fn last_sign(folder: &TrialFolder) -> Result<Option<Sign>, CliError> {
    Ok(newest(folder)?.map(|(n, at)| Sign { holder: holder(&folder.lease(n)), at }))
}

/// Whether a lease of this time is abandoned, or given back.
fn is_abandoned(modified: SystemTime, now: SystemTime, stale: Duration) -> bool {
    now.duration_since(modified).is_ok_and(|age| age > stale)
}

impl Lease {
    /// Takes a trial that no process holds. `on_loss` is called, from another thread, if another process takes it over.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if a file cannot be written or read.
    pub(crate) fn claim(
        folder: &TrialFolder,
        timing: Timing,
        on_loss: impl FnOnce() + Send + 'static,
    ) -> Result<Claim, CliError> {
        std::fs::create_dir_all(folder.path()).map_err(|error| failed(folder.path(), &error))?;
        let mut seen = None;
        let (next, took_over) = loop {
            let now = time_of_server(folder.path())?;
            match held(folder, now, timing.stale)? {
                None => break (0, None),
                Some((n, modified, None)) => {
                    break (n + 1, (modified != UNIX_EPOCH).then(|| holder(&folder.lease(n))));
                }
                // A process of another container may look the same: it gives a heartbeat before two of them are due.
                Some((n, modified, Some(holder)))
                    if is_of_predecessor(&holder, &folder.lease(n)) && *seen.get_or_insert(modified) == modified =>
                {
                    if is_abandoned(modified, now, 2 * timing.heartbeat) {
                        break (n + 1, Some(holder));
                    }
                    std::thread::sleep(timing.heartbeat.min(Duration::from_secs(1)));
                }
                Some((_, _, Some(holder))) => return Ok(Claim::Held(holder)),
            }
        };
        let path = folder.lease(next);
        let mut file = match File::create_new(&path) {
            Ok(file) => file,
            // Another process was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Claim::Held(holder(&path))),
            Err(error) => return Err(failed(&path, &error)),
        };
        let text = serde_json::to_string(&Holder::this()).map_err(|error| CliError::Bug(error.to_string()))?;
        taken().insert(path.clone());
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| failed(&path, &error))?;
        let (higher, every) = (folder.lease(next + 1), timing.heartbeat);
        let (end, ended) = channel::<()>();
        let beat = std::thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                if higher.exists() {
                    return on_loss();
                }
                touch(&file);
            }
        });
        Ok(Claim::Ours(Self { path, attempt: next + 1, took_over, beats: Some((end, beat)) }))
    }

    /// Whether the trial is still ours; looks at the folder.
    pub(crate) fn is_ours(&self, folder: &TrialFolder) -> bool {
        !folder.lease(self.attempt).exists()
    }

    /// What [`release`](Self::release) does to the file, for a program that is asked to stop.
    pub(crate) fn give_back_later(&self) -> impl FnOnce() + Send + use<> {
        let path = self.path.clone();
        move || {
            let _ = make_old(&path); // at worst the others wait
        }
    }

    /// Gives the trial back: the next process need not wait until the lease is old.
    pub(crate) fn release(mut self) {
        self.stop();
        taken().remove(&self.path);
        self.give_back_later()();
    }

    fn stop(&mut self) {
        if let Some((end, beat)) = self.beats.take() {
            drop(end);
            let _ = beat.join(); // the thread cannot panic: it touches a file
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether another process than `process` of this machine, which has ended, holds a trial.
///
/// # Errors
/// [`CliError::RunFolder`] if the folder cannot be read.
pub(crate) fn is_held_by_another(folder: &TrialFolder, process: u32, timing: Timing) -> Result<bool, CliError> {
    let holder = held(folder, time_of_server(folder.path())?, timing.stale)?.and_then(|(_, _, holder)| holder);
    Ok(holder.is_some_and(|holder| holder.process != process || holder.host != host_name()))
}

/// Gives back the newest lease of a trial if its holder is `process` of this machine, which has ended.
///
/// # Errors
/// [`CliError::RunFolder`] if the lease cannot be changed.
pub(crate) fn give_back(folder: &TrialFolder, process: u32) -> Result<(), CliError> {
    let Some((n, _)) = newest(folder)? else { return Ok(()) };
    let path = folder.lease(n);
    let holder = holder(&path);
    if holder.process != process || holder.host != host_name() {
        return Ok(());
    }
    make_old(&path).map_err(|error| failed(&path, &error))
}

/// The leases that this process has taken and not given back.
fn taken() -> MutexGuard<'static, HashSet<PathBuf>> {
    static TAKEN: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a lease may be that of an earlier process with the machine and the number of this one: a container that was started again.
fn is_of_predecessor(holder: &Holder, lease: &Path) -> bool {
    holder.process == std::process::id() && holder.host == host_name() && !taken().contains(lease)
}

/// A lease of 1970 is abandoned at any limit.
fn make_old(path: &Path) -> std::io::Result<()> {
    File::options().write(true).open(path)?.set_times(FileTimes::new().set_modified(UNIX_EPOCH))
}

/// Sets the time of the file by a write, so that it is the file server's.
fn touch(mut file: &File) {
    let _ = file.write_all(b"\n").and_then(|()| file.sync_all()); // a missed beat is not the end of the lease
}

fn holder(path: &Path) -> Holder {
    // A lease that was created a moment ago may still be empty.
    let unknown = || Holder { host: "another process".to_owned(), process: 0, task: None, restart: None, node: None };
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_else(unknown)
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::RunFolder { path: path.to_owned(), problem: error.to_string() }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;
    use crate::study::StudyFolder;

    const TIMING: Timing = Timing { heartbeat: Duration::from_millis(20), stale: Duration::from_secs(30) };

    fn age(path: &Path, seconds: u64) {
        let file = File::options().write(true).open(path).unwrap();
        file.set_times(FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(seconds))).unwrap();
    }

    fn ours(claim: Claim) -> Lease {
        match claim {
            Claim::Ours(lease) => lease,
            Claim::Held(holder) => panic!("held by {holder:?}"),
        }
    }

    #[test]
    fn a_trial_is_held_until_it_is_given_back_or_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let trial = StudyFolder::new(folder.path()).trial("abcd");
        let first = ours(Lease::claim(&trial, TIMING, || ()).unwrap());
        assert_eq!(first.attempt, 1);
        match Lease::claim(&trial, TIMING, || ()).unwrap() {
            Claim::Held(holder) => assert_eq!(holder, Holder::this()),
            Claim::Ours(_) => panic!("taken twice"),
        }
        first.release();
        assert_eq!(std::fs::metadata(trial.lease(0)).unwrap().modified().unwrap(), UNIX_EPOCH);
        let second = ours(Lease::claim(&trial, TIMING, || ()).unwrap());
        assert_eq!((second.attempt, second.took_over.is_some()), (2, false), "it was given back");
        assert!(second.is_ours(&trial));
        // Abandoned: no beat for longer than the limit.
        drop(second);
        age(&trial.lease(1), 29);
        assert!(matches!(Lease::claim(&trial, TIMING, || ()).unwrap(), Claim::Held(_)), "29 of 30 s");
        age(&trial.lease(1), 31);
        let third = ours(Lease::claim(&trial, TIMING, || ()).unwrap());
        assert_eq!((third.attempt, third.took_over.is_some()), (3, true));
        // Its process is gone: no need to wait. (No process has this number: the highest is below 2^22.)
        let dead = Holder { process: 1 << 30, ..Holder::this() };
        std::fs::write(trial.lease(2), serde_json::to_string(&dead).unwrap()).unwrap();
        let fourth = Lease::claim(&trial, TIMING, || ()).unwrap();
        if Path::new("/proc/self").exists() {
            assert!(ours(fourth).took_over.is_some());
        }
        let elsewhere = Holder { host: "another".to_owned(), ..dead };
        std::fs::write(trial.lease(4), serde_json::to_string(&elsewhere).unwrap()).unwrap();
        assert!(matches!(Lease::claim(&trial, TIMING, || ()).unwrap(), Claim::Held(holder) if holder == elsewhere));
    }

    // A container that is killed and started again may have the same name and the same numbers of processes.
    #[test]
    fn a_lease_of_this_number_that_this_process_did_not_take_is_of_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let trial = StudyFolder::new(folder.path()).trial("abcd");
        std::fs::create_dir_all(trial.path()).unwrap();
        std::fs::write(trial.lease(0), serde_json::to_string(&Holder::this()).unwrap()).unwrap();
        let lease = ours(Lease::claim(&trial, TIMING, || ()).unwrap());
        assert_eq!((lease.attempt, lease.took_over.clone()), (2, Some(Holder::this())));
        // One that gives heartbeats is another process.
        let other = StudyFolder::new(folder.path()).trial("efgh");
        std::fs::create_dir_all(other.path()).unwrap();
        std::fs::write(other.lease(0), serde_json::to_string(&Holder::this()).unwrap()).unwrap();
        let slow = Timing { heartbeat: Duration::from_millis(500), ..TIMING };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..8 {
                    std::thread::sleep(Duration::from_millis(100));
                    age(&other.lease(0), 0);
                }
            });
            assert!(matches!(Lease::claim(&other, slow, || ()).unwrap(), Claim::Held(_)), "it lives");
        });
        assert!(matches!(Lease::claim(&trial, TIMING, || ()).unwrap(), Claim::Held(_)), "it is taken now");
    }

    // `srun -n 4 fairtte study run` has four processes of one task; a requeued task has none of its earlier start.
    #[test]
    fn processes_of_one_start_of_a_task_are_alive_and_those_of_an_earlier_start_are_not() {
        let holder = |process: u32, task: Option<&str>, restart: Option<u32>| Holder {
            host: "n1".to_owned(),
            process,
            task: task.map(str::to_owned),
            restart,
            node: None,
        };
        let own = std::process::id();
        let now = holder(1 << 30, Some("7"), Some(1));
        let is_dead = |holder: Holder| holder.is_dead(&now);
        assert!(!is_dead(Holder { host: "n2".to_owned(), ..holder(9, Some("7"), Some(1)) }), "another node of the job");
        assert!(!is_dead(holder(own, Some("7"), Some(1))), "another process of the job on this node");
        assert!(is_dead(Holder { host: "n2".to_owned(), ..holder(9, Some("7"), Some(0)) }), "requeued");
        assert!(is_dead(holder(1 << 30, Some("7"), Some(0))), "requeued, with the same number of the process");
        assert!(!is_dead(Holder { host: "n2".to_owned(), ..holder(9, Some("8"), Some(0)) }), "another job");
        assert!(!is_dead(Holder { host: "n2".to_owned(), ..holder(9, None, None) }));
        if Path::new("/proc/self").exists() {
            assert!(is_dead(holder((1 << 30) + 1, None, None)) && !is_dead(holder(own, None, None)));
        }
    }

    #[test]
    fn a_holder_beats_and_sees_that_it_lost_the_trial() {
        let folder = tempfile::tempdir().unwrap();
        let trial = StudyFolder::new(folder.path()).trial("abcd");
        let (lost, is_lost) = channel();
        let tell = move || lost.send(()).unwrap();
        let lease = ours(Lease::claim(&trial, TIMING, tell).unwrap());
        age(&trial.lease(0), 1000);
        std::thread::sleep(Duration::from_millis(200));
        assert!(matches!(Lease::claim(&trial, TIMING, || ()).unwrap(), Claim::Held(_)), "a beat made it young again");
        assert!(lease.is_ours(&trial) && is_lost.try_recv().is_err());
        std::fs::write(trial.lease(1), "{}").unwrap();
        assert_eq!(is_lost.recv_timeout(Duration::from_secs(20)), Ok(()));
        assert!(!lease.is_ours(&trial));
    }

    // Six threads stand for six processes: a lease is won by create_new alone.
    #[test]
    fn abandoned_trials_are_taken_over_once() {
        let folder = tempfile::tempdir().unwrap();
        let study = StudyFolder::new(folder.path());
        let trials: Vec<TrialFolder> = (0..300).map(|i| study.trial(&format!("{i:04x}"))).collect();
        for trial in &trials {
            std::fs::create_dir_all(trial.path()).unwrap();
            std::fs::write(trial.lease(0), "{}").unwrap();
            age(&trial.lease(0), 1000);
        }
        let timing = Timing { heartbeat: Duration::from_mins(1), stale: Duration::from_secs(30) };
        let taken: Vec<Vec<usize>> = std::thread::scope(|scope| {
            let race = || {
                let claims =
                    trials.iter().enumerate().map(|(i, trial)| (i, Lease::claim(trial, timing, || ()).unwrap()));
                // All are kept until the end of the race.
                let ours: Vec<(usize, Claim)> = claims.filter(|(_, claim)| matches!(claim, Claim::Ours(_))).collect();
                ours.iter().map(|(i, _)| *i).collect::<Vec<_>>()
            };
            let racers: Vec<_> = (0..6).map(|_| scope.spawn(race)).collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        let mut all = taken.concat();
        all.sort_unstable();
        assert_eq!(all, (0..trials.len()).collect::<Vec<_>>(), "taken {} times in all", taken.concat().len());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_ended_unseen_is_not_alive() {
        assert!(is_alive(std::process::id()));
        let mut child = std::process::Command::new("sh").args(["-c", "exit 0"]).spawn().unwrap();
        for _ in 0..500 {
            if !is_alive(child.id()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(Path::new(&format!("/proc/{}", child.id())).exists(), "it was not asked to end");
        assert!(!is_alive(child.id()));
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }
}
