//! Predicted masks as files: one PNG per sample in the size of its true mask, and a table per part, as `evaluate-masks` reads it.
//!
//! The network predicts in the size of the model. The classes of its pixels are brought to the size of the true mask by the nearest
//! neighbour, so that they are compared with that mask itself.

use fairtte_data::image::{Limits, read_label_map, resize_labels, write_mask};
use fairtte_data::table::{ColumnValues, write_csv};
use fairtte_data::{DataError, Part};
use fairtte_fairness::{FairnessError, Strategy, TrainingData, predict_in_batches};

use crate::CliError;
use crate::prepared::{Prepared, PreparedMasks};
use crate::run_folder::OpenRun;

/// Predicts validation and test part with the present weights of `strategy`, which are those of `epoch`, or of the epoch of the
/// monitor without one. Returns the name of the table of the test part.
///
/// # Errors
/// [`CliError`] for a true mask that cannot be read any more, and for files that cannot be written.
pub(super) fn write(
    open: &OpenRun,
    prepared: &Prepared,
    strategy: &dyn Strategy,
    data: &TrainingData<'_>,
    epoch: Option<usize>,
) -> Result<String, CliError> {
    let OpenRun { file: run, folder } = open;
    let missing = || CliError::Bug("masks are predicted without masks".to_owned());
    let (masks, head) = (prepared.masks.as_ref().ok_or_else(missing)?, data.outputs.head.of_masks());
    let (head, task) = (head.ok_or_else(missing)?, run.task.segmentation.as_ref().ok_or_else(missing)?);
    let (values, into) = (task.values(), folder.masks(epoch));
    std::fs::create_dir_all(&into).map_err(|source| DataError::Write { path: into.clone(), source })?;
    let rule = data.outputs.on(data.scoring.grid());
    let size = [data.loader.size()[0], data.loader.size()[1]];
    for part in [Part::Validation, Part::Test] {
        let rows = prepared.split.rows(part);
        predict_in_batches(strategy, data.loader, rows, &rule, data.device, |batch, probabilities| {
            for (row, of_sample) in batch.rows.iter().zip(probabilities.rows()) {
                let labels: Vec<u8> =
                    head.classes_of(&of_sample).into_iter().map(|class| values[usize::from(class)]).collect();
                let full = size_of_truth(masks, *row)?;
                write_mask(&into.join(file_name(prepared, *row)), &resize_labels(&labels, size, full), full)?;
            }
            Ok(())
        })?;
        let name = into.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        write_table(prepared, masks, rows, &name, &folder.mask_table(part, epoch))?;
    }
    let table = folder.mask_table(Part::Test, epoch);
    Ok(table.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
}

/// Height and width of the true mask in its file.
fn size_of_truth(masks: &PreparedMasks, row: usize) -> Result<[usize; 2], FairnessError> {
    let sample = &masks.files.samples[row];
    let refused = |detail: String| DataError::Mask {
        which: "true",
        sample: sample.sample_id.as_str().to_owned(),
        detail,
        path: sample.image.clone(),
    };
    let map = read_label_map(&sample.image, &Limits::default()).map_err(|error| refused(error.detail))?;
    match map.extents[..] {
        [height, width] => Ok([height, width]),
        _ => Err(refused("it is a volume, expected a picture".to_owned()).into()),
    }
}

/// The row of the cohort, which tells samples apart, and what of the name of the sample can be in a name of a file.
fn file_name(prepared: &Prepared, row: usize) -> String {
    let name = prepared.cohort.samples[row].sample_id.as_str();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "._".contains(letter) { letter } else { '-' };
    let name: String =
        name.trim_end_matches(".png").chars().rev().take(80).collect::<String>().chars().rev().map(plain).collect();
    format!("{row:06}-{name}.png")
}

/// The table of `rows` with the files of both masks and the attributes.
fn write_table(
    prepared: &Prepared,
    masks: &PreparedMasks,
    rows: &[usize],
    folder: &str,
    path: &std::path::Path,
) -> Result<(), CliError> {
    let samples = || rows.iter().map(|row| &prepared.cohort.samples[*row]);
    let text = |values: Vec<String>| ColumnValues::Text(values.into_iter().map(Some).collect());
    let truth = rows.iter().map(|row| masks.files.samples[*row].image.display().to_string()).collect();
    let mut columns = vec![
        ("sample".to_owned(), text(samples().map(|sample| sample.sample_id.as_str().to_owned()).collect())),
        ("subject".to_owned(), text(samples().map(|sample| sample.subject_id.as_str().to_owned()).collect())),
        ("truth".to_owned(), text(truth)),
        (
            "predicted".to_owned(),
            text(rows.iter().map(|row| format!("{folder}/{}", file_name(prepared, *row))).collect()),
        ),
    ];
    for attribute in &prepared.cohort.attributes {
        let values = rows.iter().map(|row| attribute.values[*row].clone()).collect();
        columns.push((attribute.name.clone(), ColumnValues::Text(values)));
    }
    Ok(write_csv(path, columns)?)
}
