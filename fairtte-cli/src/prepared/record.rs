//! The first files of a run folder: cohort, exclusions, split, and samples without a class.

use fairtte_data::cohort::{Classes, CohortSummary, Exclusions};
use fairtte_data::split::SplitRecord;
use fairtte_data::{Cohort, FittedAttributes, Split, write_cohort};

use crate::CliError;
use crate::run_folder::{RunFolder, remove_file, write_json};

/// Writes the cohort with its summary, and the exclusions.
pub(super) fn write_record(
    folder: &RunFolder,
    cohort: &Cohort,
    exclusions: &Exclusions,
    attributes: &FittedAttributes,
) -> Result<CohortSummary, CliError> {
    // In parallel, because most of the time is spent waiting until the files are on the disk.
    let (of_samples, of_others) = rayon::join(
        || write_cohort(&folder.cohort(), cohort, attributes),
        || exclusions.write_csv(&folder.exclusions()),
    );
    of_samples.and(of_others)?;
    // A table that `prepare --csv` wrote here is replaced by that of this cohort.
    if folder.cohort_csv().exists() {
        write_cohort(&folder.cohort_csv(), cohort, attributes)?;
    }
    let summary = CohortSummary::new(cohort, exclusions, attributes);
    write_json(&folder.summary(), &summary)?;
    Ok(summary)
}

/// Writes how the split was made, and the part of every subject.
pub(super) fn write_split(folder: &RunFolder, split: &Split, record: &SplitRecord) -> Result<(), CliError> {
    write_json(&folder.split_record(), record)?;
    Ok(split.write_csv(&folder.split())?)
}

/// Writes the samples without a class, or removes the file of an earlier call.
pub(super) fn write_left_out(folder: &RunFolder, classes: Option<&Classes>, cohort: &Cohort) -> Result<(), CliError> {
    let path = folder.without_class();
    let Some(classes) = classes.filter(|classes| classes.horizon.is_some()) else { return remove_file(&path) };
    let mut left_out = Exclusions::new(cohort.n());
    left_out.extend(classes.exclusions(cohort));
    Ok(left_out.write_csv(&path)?)
}
