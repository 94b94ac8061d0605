//! One table with the complete input of an evaluation of a class: probabilities of any model, classes and sensitive attributes.
//!
//! Columns as in a table of curves (`scored_table.rs`), with `probability` in place of the curves and, unless the class is made
//! from times, `label` in place of `time` and `event`: 1 or true for a positive sample, 0 or false for a negative one, or any values
//! of which [`ClassOptions::label_value`] names the positive one. A probability is that of the positive class, in \[0, 1\]; noise of
//! up to [`SURVIVAL_TOLERANCE`] beyond is removed and counted. Numbers of another scale are refused as a whole
//! ([`OtherScale`]).

use std::path::Path;

use fairtte_metrics::{SURVIVAL_TOLERANCE, SampleId, SubjectId};

use crate::DataError;
use crate::cohort::label_rule::parse_event;
use crate::cohort::unnamed_unit;
use crate::cohort::{Cohort, Sample};
use crate::nearest::nearest;
use crate::predictions::file::{SAMPLE, read_samples};
use crate::predictions::other_scale::OtherScale;
use crate::predictions::outcomes::{ColumnNames, invalid, is_same};
use crate::predictions::sample_table::{OutsideTable, SUBJECT, named_or_either, read_subjects, refuse_roles, samples};
use crate::predictions::values::{MISSING, read_attributes};
use crate::table::Table;
use crate::table::cells::refuse_unused;
use crate::table::decimal::{DECIMAL_POINT, has_decimal_comma};

pub(crate) const PROBABILITY: &str = "probability";
const LABEL: &str = "label";
/// Where more than one of so many numbers is outside [0, 1], they are on another scale; fewer are errors of their cells.
const ONE_IN: usize = 20;

/// Probabilities with their classes and attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTable {
    /// The samples in the order of the file, with the raw values of the requested attributes; no images. Unless the class is made
    /// from times, a positive sample is an event and every time is 1.
    pub cohort: Cohort,
    /// Predicted probability of the positive class, `[n]`, in \[0, 1\].
    pub probability: Vec<f64>,
    /// Probabilities that were outside \[0, 1\] by numerical noise.
    pub n_noisy: usize,
    /// Whether the file names subjects; without them every sample is its own subject.
    pub has_subjects: bool,
    /// Columns that are not requested.
    pub ignored: Vec<String>,
}

/// How a table of a class is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassOptions {
    /// Columns that do not have their usual names.
    pub columns: ColumnNames,
    /// Probabilities, instead of `probability`.
    pub probability: Option<String>,
    /// Classes, instead of `label`.
    pub label: Option<String>,
    /// The value of a positive sample; every other value is negative. Without it 1 is positive and 0 negative.
    pub label_value: Option<String>,
    /// Whether times and events are read in place of labels.
    pub from_times: bool,
    /// Values of attributes that stand for a missing one, whatever their case.
    pub missing: Vec<String>,
}

impl ClassOptions {
    fn probability(&self) -> &str {
        self.probability.as_deref().unwrap_or(PROBABILITY)
    }

    fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(LABEL)
    }
}

/// Reads a table of probabilities, classes (or times and events) and the `attributes` named.
///
/// # Errors
/// As [`read_scored_table`](super::read_scored_table), without those about curves; [`DataError::NotProbability`] for numbers of another
/// scale, [`DataError::InvalidCell`] for a single one outside \[0, 1\], and for a label that is neither class.
pub fn read_class_table(path: &Path, attributes: &[&str], options: &ClassOptions) -> Result<ClassTable, DataError> {
    let table = Table::read(path)?;
    let columns = &options.columns;
    let sample_column = named_or_either(&table, columns.sample.as_deref(), SAMPLE)?;
    let subject_column = named_or_either(&table, columns.subject.as_deref(), SUBJECT)?;
    let outcome =
        if options.from_times { [Some(columns.time()), Some(columns.event())] } else { [Some(options.label()), None] };
    let roles = [sample_column, subject_column, Some(options.probability()), outcome[0], outcome[1]];
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
    let (probability, n_noisy) = probabilities(&table, options.probability(), &ids)?;
    let samples = if options.from_times {
        samples(&table, columns, &ids, subjects.as_deref())?
    } else {
        labelled(&table, options, &ids, subjects.as_deref())?
    };
    let cohort = Cohort {
        cause: None,
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        time_unit: unnamed_unit(),
        source: path.to_owned(),
        samples,
        attributes: read_attributes(&table, attributes, &options.missing, &ids)?,
        provenance: None,
    };
    Ok(ClassTable { cohort, probability, n_noisy, has_subjects: subjects.is_some(), ignored })
}

/// The probabilities, and how many were outside [0, 1] by noise.
pub(crate) fn probabilities(table: &Table, column: &str, ids: &[SampleId]) -> Result<(Vec<f64>, usize), DataError> {
    let mut values = Vec::with_capacity(ids.len());
    for (row, cell) in table.numbers(column)?.into_iter().enumerate() {
        let expected = "a number in [0, 1]";
        match cell {
            Ok(value) if value.is_finite() => values.push(value),
            Ok(value) => return Err(invalid(table, row, ids, column, Some(value.to_string()), expected)),
            Err(text) if has_decimal_comma(&text) => {
                return Err(invalid(table, row, ids, column, Some(text), DECIMAL_POINT));
            }
            Err(text) => return Err(invalid(table, row, ids, column, Some(text), expected)),
        }
    }
    let is_outside = |value: f64| !(-SURVIVAL_TOLERANCE..=1.0 + SURVIVAL_TOLERANCE).contains(&value);
    let outside: Vec<usize> = (0..values.len()).filter(|row| is_outside(values[*row])).collect();
    if let Some(first) = outside.first() {
        if outside.len() * ONE_IN <= values.len() {
            let value = Some(values[*first].to_string());
            return Err(invalid(table, *first, ids, column, value, "a number in [0, 1]"));
        }
        let (lowest, highest) =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
        let (column, path) = (column.to_owned(), table.path().to_owned());
        return Err(DataError::NotProbability {
            column,
            path,
            scale: OtherScale::of(lowest, highest),
            lowest,
            highest,
        });
    }
    let n_noisy = values.iter().filter(|value| !(0.0..=1.0).contains(*value)).count();
    Ok((values.into_iter().map(|value| value.clamp(0.0, 1.0)).collect(), n_noisy))
}

/// Every sample with its class as an event at time 1.
fn labelled(
    table: &Table,
    options: &ClassOptions,
    ids: &[SampleId],
    subjects: Option<&[SubjectId]>,
) -> Result<Vec<Sample>, DataError> {
    let column = options.label();
    let cells = table.text(column)?;
    if let Some(value) = &options.label_value {
        refuse_unused(table.path(), column, value, &cells, |text| is_same(text, value))?;
    }
    let sample = |(row, cell): (usize, Option<String>)| {
        let (class, expected) = match &options.label_value {
            None => (cell.as_deref().and_then(parse_event), "1 (positive) or 0 (negative)"),
            Some(value) => {
                let present = cell.as_deref().filter(|text| !MISSING.contains(text));
                (
                    present.map(|text| is_same(text, value)),
                    "a value: that of a positive sample, or any other for a negative one",
                )
            }
        };
        let event = class.ok_or_else(|| invalid(table, row, ids, column, cell, expected))?;
        Ok(Sample {
            sample_id: ids[row].clone(),
            subject_id: subjects.map_or_else(|| ids[row].as_str().into(), |subjects| subjects[row].clone()),
            unit: None,
            image: std::path::PathBuf::new(),
            time: 1.0,
            event,
            competing: None,
            source_row: table.row(row),
        })
    };
    cells.into_iter().enumerate().map(sample).collect()
}

impl ClassTable {
    /// The samples at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let probability = rows.iter().map(|row| self.probability[*row]).collect();
        Self { cohort: self.cohort.select(rows), probability, ignored: self.ignored.clone(), ..*self }
    }
}

impl OutsideTable for ClassTable {
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

    fn read(text: &str, attributes: &[&str], options: &ClassOptions) -> Result<ClassTable, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.csv");
        std::fs::write(&path, text).unwrap();
        let shown = format!("{}/", folder.path().display());
        read_class_table(&path, attributes, options).map_err(|error| error.to_string().replace(&shown, ""))
    }

    fn usual(text: &str) -> Result<ClassTable, String> {
        read(text, &[], &ClassOptions::default())
    }

    #[test]
    fn labels_and_probabilities_are_read_in_any_order_and_noise_is_removed() {
        let text = "label,note,sample,sex,probability\nTRUE,x,a,F,1.0000004\n0,y,b,,-0.0000001\n0.0,z,c,M,0.25\n";
        let table = read(text, &["sex"], &ClassOptions::default()).unwrap();
        assert_eq!((table.probability, table.n_noisy), (vec![1.0, 0.0, 0.25], 2));
        let outcomes = table.cohort.outcomes(&[0, 1, 2]).unwrap();
        assert_eq!((outcomes.event(), outcomes.time()), (&[true, false, false][..], &[1.0, 1.0, 1.0][..]));
        assert_eq!((table.has_subjects, table.ignored), (false, vec!["note".to_owned()]));
        assert_eq!(table.cohort.attributes[0].values[1], None);
    }

    #[test]
    fn a_named_value_is_the_positive_class_and_times_take_the_place_of_labels() {
        let named = ClassOptions {
            label: Some("dx".to_owned()),
            label_value: Some("melanoma".to_owned()),
            probability: Some("p".to_owned()),
            ..ClassOptions::default()
        };
        let text = "sample,p,dx,patient_id\na,0.5,melanoma,1\nb,0.5,nevus,2\n";
        let table = read(text, &[], &named).unwrap();
        assert_eq!(table.cohort.outcomes(&[0, 1]).unwrap().event(), [true, false]);
        assert_eq!(table.likely_subjects(), Some("patient_id"));
        let from_times = ClassOptions { from_times: true, ..ClassOptions::default() };
        let text = "sample,subject,probability,time,event,label\na,s,0.5,3,1,x\nb,s,0.5,4,0,y\n";
        let table = read(text, &[], &from_times).unwrap();
        assert_eq!(table.cohort.outcomes(&[0, 1]).unwrap().time(), [3.0, 4.0]);
        assert_eq!((table.has_subjects, table.ignored.len()), (true, 1));
        let again = table.select(&[1]);
        assert_eq!((again.cohort.samples[0].sample_id.as_str(), again.probability.len()), ("b", 1));
    }

    #[test]
    fn numbers_of_another_scale_are_refused_as_a_whole_and_single_ones_by_their_cell() {
        let of = |values: &[&str]| {
            let rows = values.iter().enumerate().map(|(k, value)| format!("s{k},{},{value}\n", k % 2));
            usual(&format!("sample,label,probability\n{}", rows.collect::<String>())).unwrap_err()
        };
        assert_eq!(
            of(&["12", "87.5", "0.4"]),
            "the numbers of \"probability\" of p.csv look like percent (0.4 to 87.5), expected probabilities in [0, 1]: divide them by 100"
        );
        assert!(of(&["-2.5", "0.1", "1.5"]).contains("look like logits or scores (-2.5 to 1.5)"));
        assert!(of(&["120", "310"]).contains("look like scores (120 to 310)"));
        let mut mostly = vec!["0.5"; 39];
        mostly.push("1.5");
        assert_eq!(of(&mostly), "probability of sample \"s39\" is 1.5, expected a number in [0, 1] (p.csv, row 41)");
        assert!(of(&["0.5", "NaN"]).starts_with("probability of sample \"s1\" is NaN, expected a number in [0, 1]"));
        assert!(of(&["0.5", ""]).starts_with("probability of sample \"s1\" is empty"));
    }

    #[test]
    fn missing_columns_and_labels_of_other_values_are_named() {
        let message = usual("sample,label,prob\na,1,0.5\n").unwrap_err();
        assert_eq!(message, "column \"probability\" is not in p.csv, nearest is \"prob\"");
        assert_eq!(
            usual("sample,y,probability\na,1,0.5\n").unwrap_err(),
            "column \"label\" is not in p.csv, nearest is \"y\""
        );
        let message = usual("sample,label,probability\na,1,0.5\nb,2,0.5\n").unwrap_err();
        assert_eq!(message, "label of sample \"b\" is 2, expected 1 (positive) or 0 (negative) (p.csv, row 3)");
        let message = read("sample,label,probability\na,1,0.5\n", &["label"], &ClassOptions::default()).unwrap_err();
        assert!(message.contains("identity or an outcome"), "{message}");
        assert!(usual("sample,label,probability\n").unwrap_err().contains("p.csv"));
        let value = ClassOptions { label_value: Some("yes".to_owned()), ..ClassOptions::default() };
        let message = read("sample,label,probability\na,Yes,0.5\nb,no,0.5\n", &[], &value).unwrap_err();
        assert_eq!(message, "no cell of column \"label\" of p.csv is \"yes\", nearest is \"Yes\"");
    }
}
