//! Requests to stop: Ctrl-C, and the signals of schedulers (SIGTERM; SIGUSR1, which SLURM can send some time before its
//! limit; SIGHUP). A training completes its step, saves its state and prints how to resume it; outside a training, and
//! on a second request other than SIGUSR1, the program exits at once. At any moment every result is complete or absent; at most
//! a hidden temporary file, which nothing reads, is left behind.
//!
//! Ctrl-C ends with the usual exit code; the signals of a scheduler end with the code that requests a restart.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

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

/// Exists while a training runs, which may end by a panic.
#[cfg(feature = "train")]
struct Inside;

#[cfg(feature = "train")]
impl Inside {
    fn new() -> Self {
        Self::set(false);
        Self
    }

    fn set(outside: bool) {
        AT_ONCE.store(outside, Ordering::Relaxed);
        #[cfg(unix)]
        OUTSIDE.store(outside, Ordering::Relaxed);
    }
}

#[cfg(feature = "train")]
impl Drop for Inside {
    fn drop(&mut self) {
        Self::set(true);
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
