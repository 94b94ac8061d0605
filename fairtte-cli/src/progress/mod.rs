//! Progress on standard error: bars with an estimate on a terminal, plain lines elsewhere.

#[cfg(feature = "train")]
mod training;

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

#[cfg(feature = "train")]
pub(crate) use training::Training;

/// Prints one line of progress; results go to standard output instead. A stream that is closed is not an error.
pub(crate) fn say(line: impl std::fmt::Display) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn bar(n: usize, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len}, {eta} left {msg}")
        .expect("a valid template")
        .progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(Some(n as u64), ProgressDrawTarget::stderr_with_hz(8));
    bar.with_style(style).with_prefix(what)
}

/// `50 s`, `12 min`, `3.5 h`.
fn words(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else if seconds < 7200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

/// Progress of a loop over files, or over trials.
pub(crate) struct Files {
    what: &'static str,
    state: Mutex<FilesState>,
}

struct FilesState {
    bar: Option<ProgressBar>,
    last_line: Instant,
    /// Time of the first call, and the number of files done by then, which an earlier run may have left.
    began: Option<(Instant, usize)>,
}

/// Interval between lines where the output is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

impl Files {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, state: Mutex::new(FilesState { bar: None, last_line: Instant::now(), began: None }) }
    }

    /// Prints a line above the bar, or as any other.
    #[cfg(feature = "train")]
    pub(crate) fn note(&self, line: &str) {
        match self.state.lock().ok().and_then(|state| state.bar.clone()) {
            Some(bar) => bar.suspend(|| say(line)),
            None => say(line),
        }
    }

    /// Reports that `done` of `total` files are done; may be called from any thread.
    pub(crate) fn update(&self, done: usize, total: usize) {
        let Ok(mut state) = self.state.lock() else { return };
        let (began, n_before) = *state.began.get_or_insert((Instant::now(), done));
        if std::io::stderr().is_terminal() {
            let bar = state.bar.get_or_insert_with(|| {
                let bar = bar(total, self.what);
                bar.set_position(done as u64);
                bar.reset_eta();
                bar
            });
            bar.set_position(done as u64);
            if done >= total {
                bar.finish_and_clear();
            }
        } else if state.last_line.elapsed() >= LINE_EVERY {
            state.last_line = Instant::now();
            let n_here = done.saturating_sub(n_before);
            let left = began.elapsed().as_secs_f64() / n_here.max(1) as f64 * total.saturating_sub(done) as f64;
            let left = if n_here == 0 { String::new() } else { format!(", about {} left", words(left)) };
            say(format!("{}: {done} of {total}{left}", self.what));
        }
    }
}
