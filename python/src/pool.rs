//! Where computations run: a pool of threads per process and number of threads, waited for without the GIL.
//!
//! The threads of a pool do not exist in a child after `fork`, where rayon's global pool would wait for them forever;
//! a pool is therefore looked up by the id of the process. Pools are kept: there is one per number of threads asked for.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fairtte_metrics::evaluation::Stop;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{internal_error, metric_error};

/// How often a waiting call looks for signals such as Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// As the program's `--threads`.
const MOST_THREADS: usize = 4096;

/// The pools of this process and of those that it was forked from, as a list: a lock could be held while a process forks.
static POOLS: OnceLock<Box<Node>> = OnceLock::new();

struct Node {
    process: u32,
    threads: usize,
    pool: ThreadPool,
    next: OnceLock<Box<Node>>,
}

/// The number of threads that a caller asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads(usize);

impl<'py> FromPyObject<'_, 'py> for Threads {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let found = value.extract::<usize>().ok().filter(|threads| (1..=MOST_THREADS).contains(threads));
        found.map(Self).ok_or_else(|| {
            let shown = value.repr().map_or_else(|_| "no number".to_owned(), |text| text.to_string());
            metric_error(format!("threads is {shown}, expected a whole number from 1 to {MOST_THREADS}"))
        })
    }
}

/// `threads`, otherwise `RAYON_NUM_THREADS`, otherwise the number of processors that the process may use.
fn number_of_threads(threads: Option<Threads>) -> usize {
    threads.map_or_else(
        || {
            let set = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
            let available = || std::thread::available_parallelism().map_or(1, usize::from);
            set.filter(|threads| *threads > 0).unwrap_or_else(available)
        },
        |Threads(threads)| threads,
    )
}

fn pool(threads: usize) -> PyResult<&'static ThreadPool> {
    let process = std::process::id();
    let mut place = &POOLS;
    let mut made: Option<Box<Node>> = None;
    loop {
        if let Some(node) = place.get() {
            if node.process == process && node.threads == threads {
                return Ok(&node.pool);
            }
            place = &node.next;
            continue;
        }
        let node = if let Some(node) = made.take() {
            node
        } else {
            let builder = ThreadPoolBuilder::new().num_threads(threads).thread_name(|k| format!("fairtte-{k}"));
            let pool = builder.build().map_err(|error| internal_error(&error.to_string()))?;
            Box::new(Node { process, threads, pool, next: OnceLock::new() })
        };
        // Another thread may have put its pool here meanwhile; then the search continues behind it.
        made = place.set(node).err();
    }
}

/// Computes on the pool while this thread waits without the GIL; Ctrl-C ends the wait and sets the flag that
/// `compute` is given. A panic becomes an exception.
///
/// # Errors
/// The exception of a signal handler, or `InternalError` for a panic.
pub(crate) fn compute<T: Send + 'static>(
    py: Python<'_>,
    threads: Option<Threads>,
    compute: impl FnOnce(&Stop) -> T + Send + 'static,
) -> PyResult<T> {
    compute_showing(py, threads, None, move |stop, _| compute(stop))
}

/// What `work` makes of the memory that it borrows, on this thread and without the GIL; for what needs no pool. A panic
/// becomes an exception.
///
/// # Errors
/// `InternalError` for a panic.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic)))
        .map_err(|message| internal_error(&message))
}

/// How far a computation is, for the thread that waits for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<(AtomicUsize, AtomicUsize)>);

impl Progress {
    /// `done` of `total` parts are ready.
    pub(crate) fn set(&self, done: usize, total: usize) {
        self.0.1.store(total, Ordering::Relaxed);
        // Several threads report, not always in order.
        self.0.0.fetch_max(done, Ordering::Relaxed);
    }

    fn read(&self) -> (usize, usize) {
        (self.0.0.load(Ordering::Relaxed), self.0.1.load(Ordering::Relaxed))
    }
}

/// As [`compute`]; while it waits, and at the end, `show(done, total)` is called with what the computation has reported, or with
/// the blocks of replicates that an evaluation has begun.
///
/// # Errors
/// Those of [`compute`], and the exception of `show`, which ends the computation as Ctrl-C does.
pub(crate) fn compute_showing<T: Send + 'static>(
    py: Python<'_>,
    threads: Option<Threads>,
    show: Option<&Py<PyAny>>,
    compute: impl FnOnce(&Stop, &Progress) -> T + Send + 'static,
) -> PyResult<T> {
    let pool = pool(number_of_threads(threads))?;
    let stop = Stop::default();
    let (sender, receiver) = channel();
    // Only this thread uses it; a reference to it may cross into the part without the GIL.
    let receiver = Mutex::new(receiver);
    let (flag, watched, progress) = (stop.clone(), stop.clone(), Progress::default());
    let reported = progress.clone();
    let look = || {
        py.check_signals()?;
        // What counts blocks of replicates is the flag itself.
        let (done, total) = progress.read();
        let counted = if total > 0 { (done, total) } else { watched.progress() };
        match (show, counted) {
            (Some(show), (done, total)) if total > 0 => show.call1(py, (done, total)).map(drop),
            _ => Ok(()),
        }
    };
    pool.spawn(move || {
        let found = catch_unwind(AssertUnwindSafe(|| compute(&flag, &reported)));
        // No receiver is left after Ctrl-C.
        let _ = sender.send(found.map_err(|panic| message(&*panic)));
    });
    loop {
        let found = py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE));
        match found {
            Ok(found) => {
                look()?;
                return found.map_err(|message| internal_error(&message));
            }
            Err(RecvTimeoutError::Timeout) => look().inspect_err(|_| stop.set())?,
            Err(RecvTimeoutError::Disconnected) => return Err(internal_error("a computation ended without a result")),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Waits for `seconds` on the pool as a computation would, or panics, `here` on this thread; for the tests of this package.
///
/// # Errors
/// Those of [`compute`].
#[pyfunction]
#[pyo3(signature = (seconds, *, panics=false, here=false, threads=None))]
pub(crate) fn self_test(
    py: Python<'_>,
    seconds: f64,
    panics: bool,
    here: bool,
    threads: Option<Threads>,
) -> PyResult<usize> {
    if here {
        return detached(py, || {
            assert!(!panics, "asked to panic");
            0
        });
    }
    compute(py, threads, move |stop| {
        assert!(!panics, "asked to panic");
        let end = std::time::Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
        while std::time::Instant::now() < end && !stop.is_set() {
            std::thread::sleep(Duration::from_millis(5));
        }
        rayon::current_num_threads()
    })
}
