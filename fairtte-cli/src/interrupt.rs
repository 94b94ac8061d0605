//! Ctrl-C and SIGTERM: the first one asks training to stop after its step, the second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;

/// A flag that is set when somebody asks the program to stop.
#[expect(clippy::exit, reason = "a second Ctrl-C means now; files are complete or absent at any moment")]
pub(crate) fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&flag);
    // Fails only if a handler is installed already, by a host program that then decides itself.
    let _ = ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
    });
    flag
}
