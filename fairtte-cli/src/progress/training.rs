//! The progress of a training.

use std::io::IsTerminal as _;

use fairtte_fairness::strategies::StepReport;
use fairtte_fairness::{EpochReport, Monitor, Observer, Predicted};
use indicatif::ProgressBar;

use super::{bar, say};

/// Progress of a training.
pub(crate) struct Training {
    bar: Option<ProgressBar>,
    epochs: usize,
    has_said_times: bool,
}

impl Training {
    pub(crate) fn new() -> Self {
        Self { bar: None, epochs: 0, has_said_times: false }
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
        let (loss, ranking, label) = match validation.predicted() {
            Predicted::Curves => ("nll", Monitor::CTd, "C^td"),
            Predicted::Class => ("bce", Monitor::Auc, "AUC"),
            Predicted::Masks => ("loss", Monitor::Dice, "Dice"),
        };
        let ranked = validation.value(ranking).map_or_else(|| "undefined".to_owned(), |value| format!("{value:.3}"));
        let mark = if *best { "  best" } else { "" };
        self.line(&format!(
            "epoch {epoch:>3} of {}: loss {train_loss:.4}, validation {loss} {:.4}, {label} {ranked}, {:.1} s{mark}",
            self.epochs, validation.nll, report.seconds
        ));
        // Those of the other epochs are similar; all are in `steps.jsonl`.
        if !self.has_said_times {
            self.has_said_times = true;
            self.line(&format!("  {}", times(report)));
        }
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
    parts.join(", ")
}

impl Drop for Training {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
