//! Intervals of the models of a report: each is restored for a moment and predicts again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::restore::restore_curves;
use crate::CliError;
use crate::plural::counted;
use crate::progress::say;
use crate::study::{Intervals, Model, Plan, Points, Study, evaluate_epochs};

/// The intervals of the models whose groups the report shows; those of `replicates` that are known already are not computed
/// again, and models without kept weights have none.
///
/// # Errors
/// [`CliError`] for a study with folds, data that cannot be read, and files that cannot be written.
pub(super) fn compute(plan: &Plan, points: &Points, replicates: usize) -> Result<Intervals, CliError> {
    if plan.study().folds > 1 {
        let message = "the values of a study with folds are means over them, which have no such intervals".to_owned();
        return Err(CliError::setting("--intervals", message, None));
    }
    if replicates == 0 {
        return Err(CliError::setting("--intervals", "0 replicates, expected at least 1".to_owned(), None));
    }
    let mut known = Intervals::read(plan)?;
    if known.replicates != replicates {
        known = Intervals::of_replicates(replicates);
    }
    let mut open: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for model in Study::new(plan, points).shown_by_group()? {
        if !known.has(plan, &model) && plan.folder().trial(&plan.ids()[model.place]).model().exists() {
            open.entry(model.place).or_default().insert(model.epoch);
        }
    }
    let restored = plan.folder().path().join(".restored");
    for (i, (place, epochs)) in open.iter().enumerate() {
        say(format!("intervals: model {} of {}", i + 1, counted(open.len(), "training")));
        remove(&restored)?;
        restore_curves(plan, *place, &restored)?;
        for (epoch, report) in evaluate_epochs(&restored, epochs, replicates)? {
            known.add(plan, &Model { place: *place, epoch }, &report);
        }
        known.write(plan)?;
    }
    remove(&restored)?;
    Ok(known)
}

fn remove(folder: &Path) -> Result<(), CliError> {
    if !folder.exists() {
        return Ok(());
    }
    std::fs::remove_dir_all(folder)
        .map_err(|error| CliError::RunFolder { path: folder.to_owned(), problem: error.to_string() })
}
