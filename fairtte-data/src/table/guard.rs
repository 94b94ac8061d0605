//! Calls of the readers of polars, which may panic on damaged bytes or on types that they do not know.
//!
//! A panic becomes an error. Its message is not printed: the hook that prints it is wrapped once, and the wrapper is silent
//! on a thread that reads a table, and on the threads of polars as long as any table is read.
//!
//! polars reads with one pool of threads for the whole life of a process, which cannot be replaced. A process that was forked
//! afterwards (Python's `multiprocessing`) has the pool without its threads, and a reader would wait for them forever: it is
//! refused.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use polars::prelude::PolarsResult;

use crate::DataError;

/// How many threads are reading a table.
static N_READING: AtomicUsize = AtomicUsize::new(0);
/// The process whose threads polars has; 0 before the first table. Not a lock, which could be held while a process forks.
static READER: AtomicU32 = AtomicU32::new(0);
static WRAP: Once = Once::new();

thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// Marks the current thread until it is dropped.
struct Reading {
    outer: bool,
}

impl Reading {
    fn begin() -> Self {
        N_READING.fetch_add(1, Ordering::SeqCst);
        Self { outer: IS_READING.replace(true) }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        IS_READING.set(self.outer);
        N_READING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The process `own` may read if it is the first that does, or the same one.
fn may_read(reader: &AtomicU32, own: u32) -> bool {
    match reader.compare_exchange(0, own, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => true,
        Err(first) => first == own,
    }
}

/// # Errors
/// [`DataError::ForkedReader`] in a process that was forked from one that has read tables.
pub(super) fn require_threads(path: &Path) -> Result<(), DataError> {
    if may_read(&READER, std::process::id()) { Ok(()) } else { Err(DataError::ForkedReader { path: path.to_owned() }) }
}

/// The result of `read`, or its error or panic as a text.
pub(super) fn guarded<T>(read: impl FnOnce() -> PolarsResult<T>) -> Result<T, String> {
    WRAP.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !is_silent() {
                print(panic);
            }
        }));
    });
    let reading = Reading::begin();
    let result = catch_unwind(AssertUnwindSafe(read));
    drop(reading);
    match result {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("the reader stopped on damaged or unknown content ({})", message(&*panic))),
    }
}

fn is_silent() -> bool {
    let is_of_polars = || std::thread::current().name().is_some_and(|name| name.starts_with("polars"));
    IS_READING.get() || (N_READING.load(Ordering::SeqCst) > 0 && is_of_polars())
}

/// The first line of the message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.and_then(|text| text.lines().next()).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_read_first_reads_again() {
        let reader = AtomicU32::new(0);
        assert!(may_read(&reader, 7), "nothing was read yet");
        assert!(may_read(&reader, 7), "the same process");
        assert!(!may_read(&reader, 8), "a child of it");
        assert!(may_read(&reader, 7), "the parent is not affected");
    }

    #[test]
    fn a_panic_becomes_its_first_line_and_the_thread_is_heard_again() {
        let failed = guarded::<()>(|| {
            assert!(is_silent());
            panic!("no page\nof {} bytes", 3)
        });
        assert_eq!(failed, Err("the reader stopped on damaged or unknown content (no page)".to_owned()));
        assert!(!is_silent(), "a panic after it is printed");
        assert_eq!(guarded(|| Ok(guarded(|| Ok(7)))), Ok(Ok(7)));
        assert!(!is_silent());
    }
}
