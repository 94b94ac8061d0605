//! Steps 1 and 2 and the first half of step 5: from tables and images to labelled samples.

use std::collections::HashSet;

use fairtte_data::cohort::Exclusions;
use fairtte_data::image::{check_mask_shapes, classes_of_values};
use fairtte_data::split::check_identical_files;
use fairtte_data::{AttributeConfig, Cohort, DataConfig, Generic, ImageStore, Split, build_cohort};
use fairtte_metrics::SampleId;

use super::{Care, PreparedMasks};
use crate::progress::{Files, say};
use crate::{CliError, RunFile};

/// Steps 1 and 2. A gated data set is named with its terms first.
pub(crate) fn label(run: &RunFile) -> Result<(Cohort, Exclusions), CliError> {
    let adapter = run.data.adapter(run.seed, &run.cache());
    if let Some(terms) = adapter.data_use() {
        say(format!("data use: {terms}"));
    }
    let mut columns = run.attribute.clone();
    for name in run.split.columns() {
        if columns.iter().all(|column| column.name != name) {
            columns.push(AttributeConfig::new(name));
        }
    }
    let read = match &run.outcome {
        Some(outcome) => adapter.read_causes(outcome)?,
        None => adapter.read()?,
    };
    let (cohort, exclusions) = build_cohort(read, &columns)?;
    let notes = cohort.provenance.iter().flat_map(|provenance| &provenance.notes);
    notes.for_each(|note| say(format!("note: {note}")));
    Ok((cohort, exclusions))
}

/// Step 5, first half: every image into the store; samples whose images cannot be decoded leave the cohort.
pub(crate) fn decode(
    run: &RunFile,
    cohort: Cohort,
    exclusions: &mut Exclusions,
    care: Care,
) -> Result<(Cohort, ImageStore), CliError> {
    let estimate = ImageStore::estimate(&cohort, &run.image, &run.cache())?;
    if estimate.n_bytes_missing > 0 {
        say(format!("decoding {estimate}"));
    }
    let open = || {
        let files = Files::new("decoding images");
        ImageStore::open_or_build(&cohort, &run.image, &run.cache(), &|done, total| files.update(done, total))
    };
    let (mut store, mut undecodable) = open()?;
    if care == Care::Verify {
        let damaged = store.discard_damaged()?;
        for image in &damaged {
            say(format!("note: {image}"));
        }
        (store, undecodable) = open()?;
        let again = if damaged.is_empty() { "" } else { "; damaged shards were decoded again" };
        say(format!("verified: {} images have their checksums{again}", store.n()));
    }
    // Not copied where nothing leaves: a cohort of 100,000 images is large.
    let cohort = if undecodable.is_empty() { cohort } else { cohort.without(&undecodable) };
    exclusions.extend(undecodable);
    exclusions.check(cohort.n())?;
    cohort.require_samples("after decoding", exclusions)?;
    Ok((cohort, store))
}

/// The masks of the images, if the run predicts masks: decoded, of known values, and in the proportions of their images. Samples
/// whose masks cannot be decoded leave the cohort.
pub(super) fn decode_masks(
    run: &RunFile,
    cohort: Cohort,
    exclusions: &mut Exclusions,
    care: Care,
) -> Result<(Cohort, Option<PreparedMasks>), CliError> {
    let (DataConfig::Generic(config), Some(task)) = (&run.data, &run.task.segmentation) else {
        return Ok((cohort, None));
    };
    let files = Generic::new(config.clone()).masks_of(&cohort)?;
    let settings = run.image.of_masks();
    if ImageStore::estimate(&files, &settings, &run.cache())?.n_bytes_missing > 0 || care != Care::Usual {
        check_mask_shapes(&cohort, &files, &settings)?;
    }
    let of_masks = RunFile { image: settings, ..run.clone() };
    let (files, store) = decode(&of_masks, files, exclusions, care)?;
    let classes = classes_of_values(&store, &files, &task.values())?;
    let kept: HashSet<&SampleId> = files.samples.iter().map(|sample| &sample.sample_id).collect();
    let rows: Vec<usize> = (0..cohort.n()).filter(|row| kept.contains(&cohort.samples[*row].sample_id)).collect();
    Ok((cohort.select(&rows), Some(PreparedMasks { store, files, classes })))
}

/// The same picture in two parts is a leak: an error for a split made by the user, a note for a split made here.
pub(super) fn refuse_or_report_identical(run: &RunFile, cohort: &Cohort, split: &Split) -> Result<(), CliError> {
    let identical = check_identical_files(cohort, split);
    if let Some(path) = &run.split.file {
        identical.refuse_leaks(path)?;
    }
    if !identical.sets.is_empty() {
        say(format!("note: {identical}"));
    }
    Ok(())
}
