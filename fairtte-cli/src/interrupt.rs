//! Ctrl-C and SIGTERM: training stops after its step and says how to go on; at any other time, and the second time, the
//! program ends at once. Every result is complete or absent at any moment; at most a hidden temporary file, which nothing
//! reads, is left behind.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;

static STOP: AtomicBool = AtomicBool::new(false);
static IN_TRAINING: AtomicBool = AtomicBool::new(false);

/// Installs the handler, once per program.
#[expect(clippy::exit, reason = "the user asked for it; results are complete or absent at any moment")]
pub(crate) fn install() {
    // Fails only if a handler is there already, of a host program that then decides itself.
    let _ = ctrlc::set_handler(|| {
        let asked_before = STOP.swap(true, Ordering::Relaxed);
        if asked_before || !IN_TRAINING.load(Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
    });
}

/// Runs `training` with a flag that is set when somebody asks the program to stop.
pub(crate) fn stoppable<T>(training: impl FnOnce(&AtomicBool) -> T) -> T {
    IN_TRAINING.store(true, Ordering::Relaxed);
    let value = training(&STOP);
    IN_TRAINING.store(false, Ordering::Relaxed);
    value
}
