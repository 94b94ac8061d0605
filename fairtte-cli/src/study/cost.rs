//! How long trials take, from those that are finished.

use std::collections::BTreeMap;

use super::folder::TrialFolder;
use super::plan::Plan;
use crate::CliError;
use crate::run_folder::RunFolder;

/// Data set, head and backbone.
type Kind<'a> = (usize, &'a str, Option<&'a str>);

/// Seconds of finished trials by data set, head and backbone.
#[derive(Debug, Default)]
pub(crate) struct Seconds<'a> {
    of_kind: BTreeMap<Kind<'a>, Sum>,
    all: Sum,
}

/// A sum of seconds and the number of its terms.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    seconds: f64,
    n: usize,
}

impl Sum {
    fn add(&mut self, seconds: f64) {
        self.seconds += seconds;
        self.n += 1;
    }

    fn mean(self) -> Option<f64> {
        (self.n > 0).then(|| self.seconds / self.n as f64)
    }
}

fn kind(plan: &Plan, place: usize) -> Kind<'_> {
    let cell = &plan.cells()[plan.place(place).0];
    (cell.data, &cell.head, cell.backbone.as_deref())
}

impl<'a> Seconds<'a> {
    /// Adds a finished trial.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if the reports of its epochs cannot be read.
    pub(crate) fn add(&mut self, plan: &'a Plan, place: usize, folder: &TrialFolder) -> Result<(), CliError> {
        // Of the fit of an estimator no time is recorded.
        if plan.is_of_estimator(plan.place(place).0) {
            return Ok(());
        }
        let seconds = RunFolder::new(folder.path()).epochs()?.iter().map(|epoch| epoch.seconds).sum();
        self.of_kind.entry(kind(plan, place)).or_default().add(seconds);
        self.all.add(seconds);
        Ok(())
    }

    /// The mean of finished trials of the same kind, or of all; `None` before one has finished.
    pub(crate) fn expected(&self, plan: &Plan, place: usize) -> Option<f64> {
        self.of_kind.get(&kind(plan, place)).and_then(|of_kind| of_kind.mean()).or_else(|| self.all.mean())
    }
}
