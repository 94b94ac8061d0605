//! Wishes to stop: Ctrl-C, and the signals by which schedulers ask (SIGTERM; SIGUSR1, which SLURM can send some time before
//! its limit; SIGHUP). Training ends its step, saves its state and says how to go on; at any other time, and the second time,
//! the program ends at once. Every result is complete or absent at any moment; at most a hidden temporary file, which nothing
//! reads, is left behind.
//!
//! Who pressed Ctrl-C wants an end, with the customary code; the signals of a scheduler end with the code that asks to be
//! started again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use crate::exit::Exit;

/// Set when somebody asks the program to stop.
static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether the next wish ends the program at once.
static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));
/// Exit code of the signal that came; 0 = none did.
static CODE: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Installs the handlers, once per program.
#[expect(clippy::exit, reason = "the user asked for it; results are complete or absent at any moment")]
pub(crate) fn install() {
    // Fails only if a handler is there already, of a host program that then decides itself.
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
    for signal in [SIGTERM, SIGUSR1, SIGHUP] {
        // Actions run in this order: the first signal in training sets what the second one finds. Registering fails only
        // for signals that cannot be caught.
        let _ = flag::register_conditional_shutdown(signal, i32::from(code), Arc::clone(&AT_ONCE));
        let _ = flag::register_usize(signal, Arc::clone(&CODE), usize::from(code));
        let _ = flag::register(signal, Arc::clone(&STOP));
        let _ = flag::register(signal, Arc::clone(&AT_ONCE));
    }
}

/// Runs `training` with a flag that is set when somebody asks the program to stop.
pub(crate) fn stoppable<T>(training: impl FnOnce(&AtomicBool) -> T) -> T {
    AT_ONCE.store(false, Ordering::Relaxed);
    let value = training(&STOP);
    AT_ONCE.store(true, Ordering::Relaxed);
    value
}

/// How a training ends that somebody stopped.
pub(crate) fn exit() -> Exit {
    if CODE.load(Ordering::Relaxed) == usize::from(Exit::TryAgain as u8) { Exit::TryAgain } else { Exit::Interrupted }
}
