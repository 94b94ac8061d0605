//! Requests to stop: Ctrl-C, and the signals of schedulers (SIGTERM; SIGUSR1, which SLURM can send some time before its
//! limit; SIGHUP). A training completes its step, saves its state and prints how to resume it; outside a training, and
//! on a second request other than SIGUSR1, the program exits at once; while it [holds](holding) a trial, it gives that back first, within
//! seconds. At any moment every result is complete or absent; at most a hidden temporary file, which nothing reads, is left behind.
//!
//! Ctrl-C ends with the usual exit code; the signals of a scheduler end with the code that requests a restart.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(feature = "train")]
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, LazyLock};
#[cfg(feature = "train")]
use std::time::Duration;

use crate::exit::Exit;

/// Set when a stop is requested.
static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether the next request ends the program at once.
static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));
/// Whether no training runs.
#[cfg(unix)]
static OUTSIDE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));
/// Exit code of the signal received; 0 = none.
static CODE: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Installs the handlers, once per program.
#[expect(clippy::exit, reason = "the user requested it; results are complete or absent at any moment")]
pub(crate) fn install() {
    // Fails only if a host program has already installed a handler, which then applies.
    let _ = ctrlc::set_handler(|| {
        if AT_ONCE.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
        CODE.store(usize::from(Exit::Interrupted as u8), Ordering::Relaxed);
        STOP.store(true, Ordering::Relaxed);
    });
    #[cfg(unix)]
    install_signals();
}

#[cfg(unix)]
fn install_signals() {
    use signal_hook::consts::signal::{SIGHUP, SIGTERM, SIGUSR1};
    use signal_hook::flag;
    let code = Exit::TryAgain as u8;
    let hang_up = (!outlives_terminal()).then_some(SIGHUP);
    // A warning before the end: it may come together with the SIGTERM of the scheduler, and is never the second request.
    let _ = flag::register_conditional_shutdown(SIGUSR1, i32::from(code), Arc::clone(&OUTSIDE));
    let _ = flag::register_usize(SIGUSR1, Arc::clone(&CODE), usize::from(code));
    let _ = flag::register(SIGUSR1, Arc::clone(&STOP));
    for signal in [SIGTERM].into_iter().chain(hang_up) {
        // Actions run in this order: the first signal in training sets the flag that the second one reads. Registering
        // fails only for signals that cannot be caught.
        let _ = flag::register_conditional_shutdown(signal, i32::from(code), Arc::clone(&AT_ONCE));
        let _ = flag::register_usize(signal, Arc::clone(&CODE), usize::from(code));
        let _ = flag::register(signal, Arc::clone(&STOP));
        let _ = flag::register(signal, Arc::clone(&AT_ONCE));
    }
}

/// Whether the program continues when its terminal is closed: `nohup` and `trap "" HUP` start it with SIGHUP ignored,
/// which a handler would undo. If this cannot be determined, no handler is installed for the signal.
#[cfg(unix)]
fn outlives_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status).is_none_or(|mask| mask >> (signal_hook::consts::signal::SIGHUP - 1) & 1 == 1)
}

/// The signals that a process ignores, bit 0 for signal 1, by its `/proc/PID/status`.
#[cfg(unix)]
fn ignored(status: &str) -> Option<u64> {
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

/// Whether a stop was requested while [`stoppable`] ran.
#[cfg(feature = "train")]
pub(crate) fn is_wanted() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Requests a stop from within the program; the exit code is that of a scheduler's signal.
#[cfg(feature = "train")]
pub(crate) fn request() {
    CODE.store(usize::from(Exit::TryAgain as u8), Ordering::Relaxed);
    STOP.store(true, Ordering::Relaxed);
}

/// Set when a training is to pause at an epoch.
#[cfg(feature = "train")]
static PAUSE: AtomicBool = AtomicBool::new(false);

/// Ends the training of this program as a request to stop does, but the program continues after [`take_pause`].
#[cfg(feature = "train")]
pub(crate) fn pause() {
    PAUSE.store(true, Ordering::Relaxed);
    STOP.store(true, Ordering::Relaxed);
}

/// Whether the last training ended by [`pause`]; a request to stop that came meanwhile stays.
#[cfg(feature = "train")]
pub(crate) fn take_pause() -> bool {
    let is_paused = PAUSE.swap(false, Ordering::Relaxed);
    if is_paused && CODE.load(Ordering::Relaxed) == 0 {
        STOP.store(false, Ordering::Relaxed);
    }
    is_paused
}

/// Runs `training` with a flag that is set when a stop is requested.
#[cfg(feature = "train")]
pub(crate) fn stoppable<T>(training: impl FnOnce(&AtomicBool) -> T) -> T {
    let _outside_after = Inside::new();
    training(&STOP)
}

/// Whether a training runs.
#[cfg(feature = "train")]
static TRAINS: AtomicBool = AtomicBool::new(false);
/// Whether [`holding`] decides what a request outside a training does.
#[cfg(feature = "train")]
static HOLDS: AtomicBool = AtomicBool::new(false);

/// For how long a request waits for the next training, which saves its state, or for the end of the work.
#[cfg(feature = "train")]
const GRACE: Duration = Duration::from_secs(5);

/// Runs `work`, parts of which are trainings, while the program holds something that others wait for. A request to stop that comes
/// while none of them runs ends the program as well, but only after [`GRACE`] and `give_back`.
#[cfg(feature = "train")]
pub(crate) fn holding<T>(give_back: impl FnOnce() + Send + 'static, work: impl FnOnce() -> T) -> T {
    let _released_after = Held::new();
    let (end, ended) = channel::<()>();
    std::thread::spawn(move || watch(&ended, give_back));
    let found = work();
    drop(end);
    found
}

/// Ends the program once a stop is requested and no training has run for a while.
#[cfg(feature = "train")]
#[expect(clippy::exit, reason = "the user requested it; results are complete or absent at any moment")]
fn watch(ended: &Receiver<()>, give_back: impl FnOnce()) {
    let step = Duration::from_millis(100);
    let mut waited = Duration::ZERO;
    while ended.recv_timeout(step) == Err(RecvTimeoutError::Timeout) {
        waited = if is_wanted() && !TRAINS.load(Ordering::Relaxed) { waited + step } else { Duration::ZERO };
        if waited >= GRACE {
            give_back();
            std::process::exit(i32::from(exit() as u8));
        }
    }
}

/// Asks another process of this program to stop: with SIGUSR1, which never ends a training at once.
#[cfg(all(feature = "train", unix))]
#[expect(unsafe_code, reason = "signals are sent by a function of C")]
pub(crate) fn ask_to_stop(process: u32) {
    if let Ok(process) = libc::pid_t::try_from(process) {
        // SAFETY: the function takes two numbers; it fails without effect where there is no such process.
        unsafe { libc::kill(process, libc::SIGUSR1) };
    }
}

/// Other systems have no signals.
#[cfg(all(feature = "train", not(unix)))]
pub(crate) fn ask_to_stop(_process: u32) {}

/// Exists while a training runs, which may end by a panic.
#[cfg(feature = "train")]
struct Inside;

#[cfg(feature = "train")]
impl Inside {
    fn new() -> Self {
        TRAINS.store(true, Ordering::Relaxed);
        set_outside(false);
        Self
    }
}

/// Whether a request ends the program at once.
#[cfg(feature = "train")]
fn set_outside(outside: bool) {
    AT_ONCE.store(outside, Ordering::Relaxed);
    #[cfg(unix)]
    OUTSIDE.store(outside, Ordering::Relaxed);
}

#[cfg(feature = "train")]
impl Drop for Inside {
    fn drop(&mut self) {
        TRAINS.store(false, Ordering::Relaxed);
        // A request that came during the training keeps what it set: the next one ends the program at once.
        if !HOLDS.load(Ordering::Relaxed) {
            set_outside(true);
        }
    }
}

/// Exists while [`holding`] runs its work, which may end by a panic.
#[cfg(feature = "train")]
struct Held;

#[cfg(feature = "train")]
impl Held {
    fn new() -> Self {
        HOLDS.store(true, Ordering::Relaxed);
        set_outside(false);
        Self
    }
}

#[cfg(feature = "train")]
impl Drop for Held {
    fn drop(&mut self) {
        HOLDS.store(false, Ordering::Relaxed);
        set_outside(true);
    }
}

/// The exit code of a training that was stopped.
#[cfg(feature = "train")]
pub(crate) fn exit() -> Exit {
    if CODE.load(Ordering::Relaxed) == usize::from(Exit::TryAgain as u8) { Exit::TryAgain } else { Exit::Interrupted }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status_of_a_process() {
        assert_eq!(ignored("Name:\tfairtte\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n"), Some(0x1001));
        assert_eq!(ignored("SigIgn:\tsome"), None);
        assert_eq!(ignored(""), None);
    }
}
