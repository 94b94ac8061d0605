//! `fairtte study plan --estimate`: hours of a study from the first steps of one training of every kind.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::CliError;
use crate::commands::compare::is_about_the_method;
use crate::commands::train::seconds_of;
use crate::progress::say;
use crate::run_file::RunFile;
use crate::study::{Plan, Planned};

/// Data set, head, backbone and strategy: what the length of a training depends on most.
type Kind<'a> = (usize, &'a str, Option<&'a str>, &'a str);

/// Hours of the trainings at `places` on this machine, one at a time with all of its threads, if none stops early. Trains four
/// steps of the first training of every kind, which also prepares the data. A kind that cannot be trained takes no time.
///
/// # Errors
/// The errors of training, but for those that are about the method.
pub(super) fn hours(plan: &Plan, planned: &[Planned], places: &[usize]) -> Result<f64, CliError> {
    let folder = plan.folder().path().join(".estimate");
    let mut seconds: BTreeMap<Kind<'_>, f64> = BTreeMap::new();
    let mut all = 0.0;
    for place in places {
        let cell = &plan.cells()[plan.place(*place).0];
        let kind = (cell.data, cell.head.as_str(), cell.backbone.as_deref(), cell.strategy.as_str());
        if let Entry::Vacant(new) = seconds.entry(kind) {
            let mut run = planned[*place].run.clone();
            run.output = folder.join(&planned[*place].id);
            let found = seconds_of_first(&run)?;
            say(format!("{}: {found:.1} s", run.name));
            new.insert(found);
            remove(&folder)?;
        }
        all += seconds[&kind];
    }
    Ok(all / 3600.0)
}

/// Seconds of a training, 0 if its method cannot be trained on the data.
fn seconds_of_first(run: &RunFile) -> Result<f64, CliError> {
    match seconds_of(run) {
        Err(CliError::Training(cause)) if is_about_the_method(&cause) => {
            say(format!("not trained: {cause}"));
            Ok(0.0)
        }
        found => found,
    }
}

/// Removes the folder of the timed trainings.
fn remove(folder: &std::path::Path) -> Result<(), CliError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CliError::RunFolder { path: folder.to_owned(), problem: error.to_string() })
        }
        _ => Ok(()),
    }
}
