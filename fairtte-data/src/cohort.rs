//! Samples with a time and an event, ready to be split.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use fairtte_metrics::{Outcomes, SampleId, SubjectId};

use crate::DataError;
use crate::attributes::AttributeConfig;
use crate::error::nearest;
use crate::exclusions::{Exclusion, Exclusions, Reason};
use crate::label_rule::{Label, LabelRule};
use crate::manifest::{Manifest, ManifestRow};

/// One image with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Identity, unique in the cohort.
    pub sample_id: SampleId,
    /// The person.
    pub subject_id: SubjectId,
    /// Absolute path of the image file.
    pub image: PathBuf,
    /// Time to event or censoring, finite, in [`Cohort::time_unit`]; > 0 in a data set, >= 0 beside saved curves.
    pub time: f64,
    /// `true` = event observed, `false` = censored.
    pub event: bool,
    /// Row in the source table as a spreadsheet counts it.
    pub source_row: usize,
}

/// The raw values of one attribute, one per sample.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeColumn {
    /// Name of the attribute.
    pub name: String,
    /// Value of every sample as the source gives it; `None` where it is missing.
    pub values: Vec<Option<String>>,
}

/// All samples of a data set that have a label, in the order of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Cohort {
    /// Name of the data set, for reports.
    pub name: String,
    /// Unit of the times: `days`, `years`, ..
    pub time_unit: String,
    /// The table the samples came from.
    pub source: PathBuf,
    /// The samples.
    pub samples: Vec<Sample>,
    /// The attributes, each with one value per sample.
    pub attributes: Vec<AttributeColumn>,
}

impl Cohort {
    /// Number of samples.
    pub fn n(&self) -> usize {
        self.samples.len()
    }

    /// Number of observed events.
    pub fn n_events(&self) -> usize {
        self.samples.iter().filter(|sample| sample.event).count()
    }

    /// Number of different subjects.
    pub fn n_subjects(&self) -> usize {
        self.samples.iter().map(|sample| &sample.subject_id).collect::<HashSet<_>>().len()
    }

    /// Times and events of the samples at `rows`, in that order.
    ///
    /// # Errors
    /// [`DataError::Metric`] if a time is not finite and >= 0.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    pub fn outcomes(&self, rows: &[usize]) -> Result<Outcomes, DataError> {
        let time = rows.iter().map(|&row| self.samples[row].time).collect();
        let event = rows.iter().map(|&row| self.samples[row].event).collect();
        Ok(Outcomes::new(time, event)?)
    }

    /// Subjects of the samples at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    pub fn subjects(&self, rows: &[usize]) -> Vec<SubjectId> {
        rows.iter().map(|&row| self.samples[row].subject_id.clone()).collect()
    }

    /// Identities of the samples at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    pub fn sample_ids(&self, rows: &[usize]) -> Vec<SampleId> {
        rows.iter().map(|&row| self.samples[row].sample_id.clone()).collect()
    }

    /// All rows, ascending.
    pub fn all_rows(&self) -> Vec<usize> {
        (0..self.n()).collect()
    }

    /// The cohort without the samples that `exclusions` names; the order of the others stays.
    #[must_use]
    pub fn without(&self, exclusions: &[Exclusion]) -> Self {
        let excluded: HashSet<&SampleId> = exclusions.iter().map(|exclusion| &exclusion.sample_id).collect();
        let kept = (0..self.n()).filter(|&row| !excluded.contains(&self.samples[row].sample_id));
        let kept: Vec<usize> = kept.collect();
        let attributes = self.attributes.iter().map(|attribute| AttributeColumn {
            name: attribute.name.clone(),
            values: kept.iter().map(|&row| attribute.values[row].clone()).collect(),
        });
        Self {
            name: self.name.clone(),
            time_unit: self.time_unit.clone(),
            source: self.source.clone(),
            samples: kept.iter().map(|&row| self.samples[row].clone()).collect(),
            attributes: attributes.collect(),
        }
    }

    /// Checks that something is left.
    ///
    /// # Errors
    /// [`DataError::NoSamples`] with the counts of `exclusions`.
    pub fn require_samples(&self, stage: &'static str, exclusions: &Exclusions) -> Result<(), DataError> {
        if self.n() > 0 {
            return Ok(());
        }
        Err(DataError::NoSamples {
            stage,
            n_read: exclusions.n_read(),
            n_excluded: exclusions.n(),
            reasons: exclusions.summary(),
            source_file: self.source.clone(),
        })
    }
}

/// Labels every row of `manifest` by `rule` and keeps the columns that `attributes` names.
///
/// A row with an empty cell where one is needed is excluded with its reason and counted. A row whose attribute is
/// missing is kept: it belongs to no group of that attribute.
///
/// # Errors
/// [`DataError::UnknownAttribute`], [`DataError::InvalidCell`] (unparsable number, time <= 0, event other than 0/1),
/// [`DataError::DuplicateSample`], [`DataError::NoSamples`] if no row is left.
pub fn build_cohort(
    manifest: &Manifest,
    rule: &dyn LabelRule,
    attributes: &[AttributeConfig],
) -> Result<(Cohort, Exclusions), DataError> {
    let columns = attributes.iter().map(|attribute| attribute_position(manifest, &attribute.name));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    refuse_duplicates(manifest)?;
    let mut cohort = Cohort {
        name: manifest.name.clone(),
        time_unit: manifest.time_unit.clone(),
        source: manifest.source.clone(),
        samples: Vec::new(),
        attributes: attributes
            .iter()
            .map(|attribute| AttributeColumn { name: attribute.name.clone(), values: Vec::new() })
            .collect(),
    };
    let mut exclusions = Exclusions::new(manifest.rows.len());
    for row in &manifest.rows {
        match sample(manifest, rule, row)? {
            Ok(sample) => {
                cohort.samples.push(sample);
                for (attribute, &position) in cohort.attributes.iter_mut().zip(&columns) {
                    attribute.values.push(row.attributes[position].clone());
                }
            }
            Err(exclusion) => exclusions.push(exclusion),
        }
    }
    exclusions.check(cohort.n())?;
    cohort.require_samples("after labelling", &exclusions)?;
    Ok((cohort, exclusions))
}

fn attribute_position(manifest: &Manifest, name: &str) -> Result<usize, DataError> {
    let names = &manifest.attribute_names;
    names.iter().position(|column| column == name).ok_or_else(|| DataError::UnknownAttribute {
        attribute: name.to_owned(),
        data: manifest.source.display().to_string(),
        nearest: nearest(name, names.iter().map(String::as_str)),
    })
}

fn refuse_duplicates(manifest: &Manifest) -> Result<(), DataError> {
    let mut first_rows: HashMap<&str, usize> = HashMap::with_capacity(manifest.rows.len());
    for row in &manifest.rows {
        let Some(sample) = row.sample_id.as_deref() else { continue };
        if let Some(first_row) = first_rows.insert(sample, row.source_row) {
            return Err(DataError::DuplicateSample {
                sample: sample.to_owned(),
                place: manifest.place(row),
                first_row,
            });
        }
    }
    Ok(())
}

/// The sample that `row` becomes, or why it becomes none.
fn sample(
    manifest: &Manifest,
    rule: &dyn LabelRule,
    row: &ManifestRow,
) -> Result<Result<Sample, Exclusion>, DataError> {
    let excluded = |reason, source| Exclusion { sample_id: SampleId::new(row.display_id()), reason, source };
    let empty = |reason, what| Ok(Err(excluded(reason, format!("the {what} is empty ({})", manifest.place(row)))));
    let Some(subject_id) = &row.subject_id else { return empty(Reason::MissingSubject, "subject") };
    let Some(image) = &row.image else { return empty(Reason::MissingImage, "image path") };
    let Some(sample_id) = &row.sample_id else { return empty(Reason::MissingSample, "sample identity") };
    let labelled = match rule.label(manifest, row)? {
        Label::Excluded { reason, detail } => Err(excluded(reason, detail)),
        Label::Kept { time, event } => Ok(Sample {
            sample_id: SampleId::new(sample_id),
            subject_id: subject_id.clone(),
            image: image.clone(),
            time,
            event,
            source_row: row.source_row,
        }),
    };
    Ok(labelled)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;
    use crate::{Adapter as _, Generic, GenericConfig};

    const HEADER: &str = "image,subject_id,time,event,sex\n";

    fn cohort_of(rows: &str, attributes: &[AttributeConfig]) -> Result<(Cohort, Exclusions), DataError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cohort.csv");
        std::fs::write(&path, format!("{HEADER}{rows}")).unwrap();
        let adapter = Generic::new(GenericConfig::new(&path));
        build_cohort(&adapter.read()?, adapter.label_rule(), attributes)
    }

    fn message(rows: &str) -> String {
        let message = cohort_of(rows, &[]).unwrap_err().to_string();
        let (before, after) = message.rsplit_once('(').unwrap();
        let file = after.split("cohort.csv").next().unwrap();
        format!("{before}({}", after.replacen(file, "", 1))
    }

    #[test]
    fn every_spelling_of_an_event_is_read() {
        let rows = "a,1,1,1,F\nb,1,2,0,F\nc,2,3,1.0,M\nd,2,4,0.0,\ne,3,5e-1,true,M\nf,3,6,False,M\n";
        let (cohort, exclusions) = cohort_of(rows, &[AttributeConfig::new("sex")]).unwrap();
        let events: Vec<bool> = cohort.samples.iter().map(|sample| sample.event).collect();
        assert_eq!(events, [true, false, true, false, true, false]);
        assert_eq!(cohort.outcomes(&[4]).unwrap().time(), [0.5]);
        assert_eq!((cohort.n(), cohort.n_subjects(), cohort.n_events(), exclusions.n()), (6, 3, 3, 0));
        assert_eq!(cohort.attributes[0].values[3], None, "a missing attribute excludes nobody");
    }

    #[test]
    fn empty_cells_are_counted_exclusions() {
        let rows = "a,1,1,1,F\nb,,1,1,F\n,2,1,1,F\nc,3,,1,F\nd,4,1,,F\ne,5,,,\n";
        let (cohort, exclusions) = cohort_of(rows, &[]).unwrap();
        assert_eq!(cohort.n(), 1);
        assert_eq!(exclusions.summary(), "missing_subject 1, missing_image 1, missing_time 2, missing_event 1");
        assert_eq!(exclusions.list()[1].sample_id.as_str(), "row 4");
        assert!(exclusions.list()[2].source.contains("column \"time\" is empty"));
        exclusions.check(1).unwrap();
    }

    #[test]
    fn a_cell_that_is_no_time_names_sample_value_file_and_row() {
        let expected =
            |value| format!("time of sample \"b\" is {value}, expected a finite number > 0 (cohort.csv, row 3)");
        for value in ["-3", "0", "inf", "NaN", "two", "1;5"] {
            assert_eq!(message(&format!("a,1,1,1,F\nb,1,{value},1,F\n")), expected(value));
        }
    }

    #[test]
    fn an_event_other_than_0_or_1_is_refused() {
        for value in ["2", "-1", "yes", "0.5"] {
            let rows = format!("a,1,1,{value},F\n");
            let expected = "expected 1 (observed) or 0 (censored) (cohort.csv, row 2)";
            assert_eq!(message(&rows), format!("event of sample \"a\" is {value}, {expected}"));
        }
    }

    #[test]
    fn a_duplicate_sample_names_both_rows() {
        let expected = "sample \"a\" appears twice, expected each sample once (cohort.csv, row 4; first in row 2)";
        assert_eq!(message("a,1,1,1,F\nb,1,1,1,F\na,2,1,0,F\n"), expected);
    }

    #[test]
    fn an_unknown_attribute_names_the_nearest_column() {
        let error = cohort_of("a,1,1,1,F\n", &[AttributeConfig::new("Sx")]).unwrap_err().to_string();
        assert!(error.starts_with("attribute \"Sx\"") && error.ends_with("nearest is \"sex\""), "{error}");
    }

    #[test]
    fn a_cohort_without_samples_says_where_they_went() {
        let error = cohort_of("a,1,,1,F\nb,1,,1,F\n", &[]).unwrap_err().to_string();
        assert!(error.contains("2 read from") && error.contains("missing_time 2"), "{error}");
        let error = cohort_of("", &[]).unwrap_err().to_string();
        assert!(error.contains("0 read from"), "{error}");
    }

    #[test]
    fn samples_left_out_later_leave_with_their_attributes() {
        let (cohort, _) = cohort_of("a,1,1,1,F\nb,1,2,1,M\nc,2,3,0,F\n", &[AttributeConfig::new("sex")]).unwrap();
        let gone = Exclusion { sample_id: "b".into(), reason: Reason::ImageEmpty, source: String::new() };
        let rest = cohort.without(&[gone]);
        let ids: Vec<_> = rest.samples.iter().map(|sample| sample.sample_id.as_str()).collect();
        assert_eq!(ids, ["a", "c"]);
        assert_eq!(rest.attributes[0].values, [Some("F".to_owned()), Some("F".to_owned())]);
        assert_eq!(rest.outcomes(&[1, 0]).unwrap().time(), [3.0, 1.0]);
    }
}
