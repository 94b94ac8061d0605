//! One table with the complete input of an evaluation of masks: the files of true and predicted masks, and sensitive attributes.
//!
//! Columns: `sample` (or `sample_id`), `subject` (or `subject_id`; without it every sample is its own subject), `truth` and
//! `predicted` with paths, relative to the folder of the table, and the requested attributes; all other columns are ignored.

use std::path::{Path, PathBuf};

use fairtte_metrics::SampleId;

use crate::DataError;
use crate::cohort::unnamed_unit;
use crate::cohort::{Cohort, Sample};
use crate::nearest::nearest;
use crate::predictions::file::{SAMPLE, read_samples};
use crate::predictions::outcomes::invalid;
use crate::predictions::sample_table::{OutsideTable, SUBJECT, named_or_either, read_subjects, refuse_roles};
use crate::predictions::values::{MISSING, read_attributes};
use crate::table::Table;

/// The files of masks with their samples and attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskTable {
    /// The samples in the order of the file, with the raw values of the requested attributes; every sample is an event at time 1.
    pub cohort: Cohort,
    /// The file of the true mask of every sample.
    pub truth: Vec<PathBuf>,
    /// The file of the predicted mask of every sample.
    pub predicted: Vec<PathBuf>,
    /// Whether the file names subjects; without them every sample is its own subject.
    pub has_subjects: bool,
    /// Columns that are not requested.
    pub ignored: Vec<String>,
}

/// Columns that do not have their usual names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaskColumns {
    /// Samples, instead of `sample` or `sample_id`.
    pub sample: Option<String>,
    /// Subjects, instead of `subject` or `subject_id`.
    pub subject: Option<String>,
    /// True masks, instead of `truth`.
    pub truth: Option<String>,
    /// Predicted masks, instead of `predicted`.
    pub predicted: Option<String>,
    /// Values of attributes that stand for a missing one, whatever their case.
    pub missing: Vec<String>,
}

impl MaskColumns {
    fn truth(&self) -> &str {
        self.truth.as_deref().unwrap_or("truth")
    }

    fn predicted(&self) -> &str {
        self.predicted.as_deref().unwrap_or("predicted")
    }
}

/// Reads a table of masks and the `attributes` named; no mask is opened.
///
/// # Errors
/// [`DataError::MissingColumn`], [`DataError::AmbiguousColumn`], [`DataError::EmptyTable`], [`DataError::DuplicateSample`],
/// [`DataError::InvalidCell`] for a path that is missing, [`DataError::Mask`] for a file that is both masks of a sample,
/// [`DataError::UnknownMissing`], [`DataError::InvalidAttribute`] for an attribute that is an identity or a mask,
/// [`DataError::EmptyColumn`], and what [`Table::read`] returns.
pub fn read_mask_table(path: &Path, attributes: &[&str], columns: &MaskColumns) -> Result<MaskTable, DataError> {
    let table = Table::read(path)?;
    let sample_column = named_or_either(&table, columns.sample.as_deref(), SAMPLE)?;
    let subject_column = named_or_either(&table, columns.subject.as_deref(), SUBJECT)?;
    let roles = [sample_column, subject_column, Some(columns.truth()), Some(columns.predicted())];
    let is_used = |name: &str| roles.contains(&Some(name)) || attributes.contains(&name);
    let ignored: Vec<String> = table.names().into_iter().filter(|name| !is_used(name)).map(str::to_owned).collect();
    let absent = |column: &str| DataError::MissingColumn {
        column: column.to_owned(),
        path: path.to_owned(),
        nearest: nearest(column, ignored.iter().map(String::as_str)),
    };
    let sample_column = sample_column.ok_or_else(|| absent("sample"))?;
    if let Some(column) = roles.into_iter().flatten().chain(attributes.iter().copied()).find(|name| !table.has(name)) {
        return Err(absent(column));
    }
    refuse_roles(attributes, &roles)?;
    let ids = read_samples(&table, sample_column)?;
    if ids.is_empty() {
        return Err(DataError::EmptyTable { path: path.to_owned() });
    }
    let subjects = subject_column.map(|column| read_subjects(&table, column, &ids)).transpose()?;
    let truth = read_paths(&table, columns.truth(), &ids)?;
    let predicted = read_paths(&table, columns.predicted(), &ids)?;
    if let Some(row) = (0..ids.len()).find(|row| truth[*row] == predicted[*row]) {
        let detail = "it is the file of the true mask, expected that of a prediction".to_owned();
        let (sample, path) = (ids[row].as_str().to_owned(), predicted[row].clone());
        return Err(DataError::Mask { which: "predicted", sample, detail, path });
    }
    let sample = |(row, id): (usize, &SampleId)| Sample {
        sample_id: id.clone(),
        subject_id: subjects.as_ref().map_or_else(|| id.as_str().into(), |subjects| subjects[row].clone()),
        unit: None,
        image: PathBuf::new(),
        time: 1.0,
        event: true,
        competing: None,
        source_row: table.row(row),
    };
    let cohort = Cohort {
        cause: None,
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        time_unit: unnamed_unit(),
        source: path.to_owned(),
        samples: ids.iter().enumerate().map(sample).collect(),
        attributes: read_attributes(&table, attributes, &columns.missing, &ids)?,
        provenance: None,
    };
    Ok(MaskTable { cohort, truth, predicted, has_subjects: subjects.is_some(), ignored })
}

/// The paths of a column, those that are relative from the folder of the table.
fn read_paths(table: &Table, column: &str, ids: &[SampleId]) -> Result<Vec<PathBuf>, DataError> {
    let folder = table.path().parent().unwrap_or_else(|| Path::new(""));
    let path = |(row, cell): (usize, Option<String>)| {
        let present = cell.filter(|text| !text.trim().is_empty() && !MISSING.contains(&text.as_str()));
        let missing =
            || invalid(table, row, ids, column, None, "the path of a mask (of nothing found: of an empty mask)");
        present.map(|text| folder.join(text)).ok_or_else(missing)
    };
    table.text(column)?.into_iter().enumerate().map(path).collect()
}

impl OutsideTable for MaskTable {
    fn cohort(&self) -> &Cohort {
        &self.cohort
    }

    fn has_subjects(&self) -> bool {
        self.has_subjects
    }

    fn ignored(&self) -> &[String] {
        &self.ignored
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn read(text: &str, attributes: &[&str], columns: &MaskColumns) -> Result<MaskTable, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pairs.csv");
        std::fs::write(&path, text).unwrap();
        let shown = format!("{}/", folder.path().display());
        let mut found =
            read_mask_table(&path, attributes, columns).map_err(|error| error.to_string().replace(&shown, ""))?;
        let relative = |path: &mut PathBuf| *path = path.strip_prefix(folder.path()).unwrap_or(path).to_owned();
        found.truth.iter_mut().chain(&mut found.predicted).for_each(relative);
        Ok(found)
    }

    #[test]
    fn paths_are_from_the_folder_of_the_table_unless_they_are_whole() {
        let text = "predicted,sample,sex,truth,patient_id\np/a.png,a,F,/t/a.png,1\np/b.png,b,,t/b.png,2\n";
        let found = read(text, &["sex"], &MaskColumns::default()).unwrap();
        assert_eq!(found.truth, [PathBuf::from("/t/a.png"), PathBuf::from("t/b.png")]);
        assert_eq!(found.predicted, [PathBuf::from("p/a.png"), PathBuf::from("p/b.png")]);
        assert_eq!((found.has_subjects, found.likely_subjects()), (false, Some("patient_id")));
        assert_eq!(found.cohort.attributes[0].values[1], None);
        let own = MaskColumns {
            truth: Some("mask".to_owned()),
            predicted: Some("model".to_owned()),
            subject: Some("who".to_owned()),
            sample: Some("image".to_owned()),
            missing: Vec::new(),
        };
        let found = read("image,who,mask,model\na,p1,x,y\n", &[], &own).unwrap();
        assert_eq!((found.has_subjects, found.cohort.samples[0].subject_id.as_str()), (true, "p1"));
    }

    #[test]
    fn what_is_missing_or_twice_the_same_is_named() {
        let usual = |text: &str| read(text, &[], &MaskColumns::default()).unwrap_err();
        assert_eq!(
            usual("sample,truth,prediction\na,x,y\n"),
            "column \"predicted\" is not in pairs.csv, nearest is \"prediction\""
        );
        assert_eq!(
            usual("sample,truth,predicted\na,x,y\nb,x,\n"),
            "predicted of sample \"b\" is empty, expected the path of a mask (of nothing found: of an empty mask) (pairs.csv, row 3)"
        );
        assert_eq!(
            usual("sample,truth,predicted\na,x,x\n"),
            "the predicted mask of sample \"a\" cannot be used: it is the file of the true mask, expected that of a prediction (x)"
        );
        assert!(usual("sample,truth,predicted\na,x,y\na,x,z\n").contains("\"a\""));
        let message = read("sample,truth,predicted\na,x,y\n", &["truth"], &MaskColumns::default()).unwrap_err();
        assert!(message.contains("identity or an outcome"), "{message}");
    }
}
