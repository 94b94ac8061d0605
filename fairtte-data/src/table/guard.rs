//! Calls of the readers of polars, which may panic on damaged bytes or on types that they do not know.
//!
//! A panic becomes an error. Its message is not printed: the hook that prints it is wrapped once, and the wrapper is silent
//! on a thread that reads a table, and on the threads of polars as long as any table is read.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use polars::prelude::PolarsResult;

/// How many threads are reading a table.
static N_READING: AtomicUsize = AtomicUsize::new(0);
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
