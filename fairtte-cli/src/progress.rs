//! Progress on standard error: bars with an estimate on a terminal, plain lines elsewhere.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fairtte_fairness::strategies::StepReport;
use fairtte_fairness::{EpochReport, Observer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Prints one line of progress; results go to standard output instead.
#[expect(clippy::print_stderr, reason = "the only place where progress is printed")]
pub(crate) fn say(line: impl std::fmt::Display) {
    eprintln!("{line}");
}

fn bar(n: usize, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len}, {eta} left {msg}")
        .expect("a valid template")
        .progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(Some(n as u64), ProgressDrawTarget::stderr_with_hz(8));
    bar.with_style(style).with_prefix(what)
}

/// Progress of a loop over files.
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
            if done == total {
                bar.finish_and_clear();
            }
        } else if state.last_line.elapsed() >= LINE_EVERY {
            state.last_line = Instant::now();
            let n_here = done.saturating_sub(n_before);
            let left = began.elapsed().as_secs_f64() / n_here.max(1) as f64 * total.saturating_sub(done) as f64;
            let left = if n_here == 0 { String::new() } else { format!(", about {left:.0} s left") };
            say(format!("{}: {done} of {total}{left}", self.what));
        }
    }
}

/// Progress of a training.
pub(crate) struct Training {
    bar: Option<ProgressBar>,
    epochs: usize,
}

impl Training {
    pub(crate) fn new() -> Self {
        Self { bar: None, epochs: 0 }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => say(text),
        }
    }
}

impl Observer for Training {
    fn started(&mut self, first: usize, epochs: usize, n_steps: usize) {
        self.epochs = epochs;
        if first > 0 {
            say(format!("resuming after epoch {first}"));
        }
        if std::io::stderr().is_terminal() {
            let bar = bar(epochs * n_steps, "training");
            bar.set_position((first * n_steps) as u64);
            bar.reset_eta();
            self.bar = Some(bar);
        }
    }

    fn resumed_after(&mut self, n_done: usize) {
        self.line(&format!("resuming after batch {n_done} of the unfinished epoch"));
        if let Some(bar) = &self.bar {
            bar.inc(n_done as u64);
            bar.reset_eta();
        }
    }

    fn step_done(&mut self, epoch: usize, report: &StepReport) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
            bar.set_message(format!("(epoch {}, loss {:.3})", epoch + 1, report.task_loss));
        }
    }

    fn batch_skipped(&mut self, _epoch: usize) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn epoch_done(&mut self, report: &EpochReport) {
        let EpochReport { epoch, train_loss, validation, best, .. } = report;
        let c_td = validation.c_td.map_or_else(|| "undefined".to_owned(), |c| format!("{c:.3}"));
        let mark = if *best { "  best so far" } else { "" };
        self.line(&format!(
            "epoch {epoch:>3} of {}: train loss {train_loss:.4}, validation nll {:.4}, C^td {c_td}, {}{mark}",
            self.epochs,
            validation.nll,
            times(report)
        ));
    }
}

/// The shares of the time of an epoch.
fn times(report: &EpochReport) -> String {
    let EpochReport { seconds, data_seconds, forward_seconds, backward_seconds, update_seconds, .. } = report;
    let parts = [
        ("data", data_seconds),
        ("forward", forward_seconds),
        ("backward", backward_seconds),
        ("update", update_seconds),
        ("validation", &report.validation_seconds),
    ];
    let share = |part: &f64| 100.0 * part / seconds.max(f64::MIN_POSITIVE);
    let parts: Vec<String> = parts.iter().map(|(name, part)| format!("{name} {:.0} %", share(part))).collect();
    format!("{seconds:.1} s ({})", parts.join(", "))
}

impl Drop for Training {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
