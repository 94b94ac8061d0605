//! The active mutation, whose number is in `FAIRTTE_MUTANT`. With `FAIRTTE_MUTANT_TRACE` every mutation that is reached
//! adds its number to that file, once per process, and none is active.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};

const TRACING: u32 = u32::MAX;
static ACTIVE: LazyLock<u32> = LazyLock::new(|| match std::env::var_os("FAIRTTE_MUTANT_TRACE") {
    Some(_) => TRACING,
    None => std::env::var("FAIRTTE_MUTANT").ok().and_then(|number| number.parse().ok()).unwrap_or(0),
});
static SEEN: [AtomicBool; N_MUTANTS] = [const { AtomicBool::new(false) }; N_MUTANTS];
static TRACE: LazyLock<Mutex<File>> = LazyLock::new(|| {
    let path = std::env::var_os("FAIRTTE_MUTANT_TRACE").expect("a trace was requested");
    Mutex::new(OpenOptions::new().create(true).append(true).open(path).expect("the trace can be written"))
});

/// Whether the mutation with this number is active.
#[inline]
pub(crate) fn on(number: u32) -> bool {
    let active = *ACTIVE;
    if active == TRACING {
        trace(number);
    }
    active == number
}

#[cold]
fn trace(number: u32) {
    if !SEEN[number as usize].swap(true, Ordering::Relaxed) {
        let mut file = TRACE.lock().expect("no panic while the trace is written");
        writeln!(file, "{number}").expect("the trace can be written");
    }
}
