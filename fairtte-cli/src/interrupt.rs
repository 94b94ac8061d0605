//! Ctrl-C and SIGTERM: training stops after its step and says how to go on; at any other time, and the second time, the
//! program ends at once. Every file is complete or absent at any moment, so neither leaves anything half-written.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;

static STOP: AtomicBool = AtomicBool::new(false);
static IN_TRAINING: AtomicBool = AtomicBool::new(false);

/// Runs `training` with a flag that is set when somebody asks the program to stop.
#[expect(clippy::exit, reason = "the user asked for it; files are complete or absent at any moment")]
pub(crate) fn stoppable<T>(training: impl FnOnce(&AtomicBool) -> T) -> T {
    static HANDLER: OnceLock<()> = OnceLock::new();
    HANDLER.get_or_init(|| {
        // Fails only if a handler is there already, of a host program that then decides itself.
        let _ = ctrlc::set_handler(|| {
            let asked_before = STOP.swap(true, Ordering::Relaxed);
            if asked_before || !IN_TRAINING.load(Ordering::Relaxed) {
                std::process::exit(i32::from(Exit::Interrupted as u8));
            }
        });
    });
    IN_TRAINING.store(true, Ordering::Relaxed);
    let value = training(&STOP);
    IN_TRAINING.store(false, Ordering::Relaxed);
    value
}
