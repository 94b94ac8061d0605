//! Whether the tables of a finished run are still those that it was trained on.

use std::collections::{HashMap, HashSet};

use fairtte_data::adapters::Tabular;
use fairtte_data::cohort::Exclusions;
use fairtte_data::{Cohort, DataConfig, DataError, Part, make_split, read_cohort};
use fairtte_metrics::SampleId;

use super::features::encoded;
use super::groups::fit_groups;
use super::samples::label;
use crate::progress::say;
use crate::run_folder::{OpenRun, changed, read_json};
use crate::{CliError, design};

/// Requires that the tables of a finished run give the samples, outcomes, parts, groups and columns that it has; images are not opened.
/// Where the tables cannot be read any more, for example because they were moved, a note says that nothing was compared.
///
/// # Errors
/// [`CliError::RunFolder`] naming what changed.
pub(crate) fn require_unchanged_tables(open: &OpenRun) -> Result<(), CliError> {
    let OpenRun { file: run, folder } = open;
    // What is simulated depends on the settings alone.
    if matches!(run.data, DataConfig::Simulated(_)) || !folder.cohort().exists() || !folder.split().exists() {
        return Ok(());
    }
    let labelled = match label(run) {
        Ok((cohort, _)) => cohort,
        Err(problem @ CliError::Data(DataError::Read { .. } | DataError::FileNotFound { .. })) => {
            say(format!("note: whether the data have changed since the training was not checked: {problem}"));
            return Ok(());
        }
        Err(problem) => return Err(problem),
    };
    let cohort = samples_of_run(open, &labelled)?;
    let (split, _) = make_split(&cohort, &run.split, &run.attribute, run.seed)?;
    let attributes = fit_groups(run, &cohort, split.rows(Part::Train))?;
    folder.require_same_tables(&cohort, &split, &attributes)?;
    let columns = match &run.data {
        DataConfig::Tabular(config) => Tabular::new(config.clone()).features()?.aligned(&cohort)?,
        _ if run.estimator.is_some() => design::covariates(&run.covariates(), &cohort, &attributes)?,
        _ => return Ok(()),
    };
    let inputs = encoded(&columns, read_json(&folder.features())?)?;
    folder.require_same_inputs(&inputs.fingerprint())
}

/// The labelled samples that the run has, in its order; those whose images it could not use may be among the others, nothing else.
fn samples_of_run(open: &OpenRun, labelled: &Cohort) -> Result<Cohort, CliError> {
    let folder = &open.folder;
    let (kept, _) = read_cohort(&folder.cohort())?;
    let rows: HashMap<&SampleId, usize> =
        labelled.samples.iter().zip(0..).map(|(sample, row)| (&sample.sample_id, row)).collect();
    let ids = || kept.samples.iter().map(|sample| &sample.sample_id);
    let refused = |n: usize, first: &SampleId, what: &str| {
        Err(changed(folder.cohort(), &format!("samples that {what}: {n}, first \"{first}\"")))
    };
    let gone: Vec<&SampleId> = ids().filter(|id| !rows.contains_key(id)).collect();
    if let Some(first) = gone.first() {
        return refused(gone.len(), first, "the run was trained with and the data no longer have");
    }
    let excluded = Exclusions::read_csv(&folder.exclusions(), kept.n(), &[])?;
    let of_images = excluded.list().iter().filter(|exclusion| exclusion.reason.is_of_image());
    let known: HashSet<&SampleId> = ids().chain(of_images.map(|exclusion| &exclusion.sample_id)).collect();
    let new: Vec<&SampleId> =
        labelled.samples.iter().map(|sample| &sample.sample_id).filter(|id| !known.contains(id)).collect();
    if let Some(first) = new.first() {
        return refused(new.len(), first, "the data now have and the run was trained without");
    }
    let rows: Vec<usize> = ids().map(|id| rows[id]).collect();
    Ok(labelled.select(&rows))
}
