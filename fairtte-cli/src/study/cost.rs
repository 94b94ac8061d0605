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
    of_kind: BTreeMap<Kind<'a>, Vec<f64>>,
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
        let epochs = RunFolder::new(folder.path()).epochs()?;
        self.of_kind.entry(kind(plan, place)).or_default().push(epochs.iter().map(|epoch| epoch.seconds).sum());
        Ok(())
    }

    /// The mean of finished trials of the same kind, or of all; `None` before one has finished.
    pub(crate) fn expected(&self, plan: &Plan, place: usize) -> Option<f64> {
        let mean = |all: &[f64]| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
        let of_kind = self.of_kind.get(&kind(plan, place)).and_then(|seconds| mean(seconds));
        of_kind.or_else(|| mean(&self.of_kind.values().flatten().copied().collect::<Vec<_>>()))
    }
}
