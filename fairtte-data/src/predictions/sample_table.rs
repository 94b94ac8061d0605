//! One table with outcomes and sensitive attributes of samples, without curves.
//!
//! Columns as in a table of curves (`scored_table.rs`): `sample` (or `sample_id`), `subject` (or `subject_id`; without it
//! every sample is its own subject), `time`, `event` and the requested attributes; all other columns are ignored. The
//! record of a cohort that this program wrote as Parquet is read with the names of its levels (`F`, not `0`).

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use fairtte_metrics::{SampleId, SubjectId};

use crate::DataError;
use crate::cohort::attributes::{MOST_LEVELS, same_ignoring_case};
use crate::cohort::{AttributeColumn, AttributeConfig, Cohort, FittedAttributes, Sample, is_record, read_cohort};
use crate::cohort::{HAS_A_ROLE, unnamed_unit};
use crate::nearest::{nearest, synonym};
use crate::predictions::file::{SAMPLE, either_column, read_samples};
use crate::predictions::levels::{DoubtfulLevels, doubtful_levels};
use crate::predictions::outcomes::{ColumnNames, RowOutcome, invalid, outcomes};
use crate::predictions::values::read_attributes;
use crate::table::Table;

pub(super) const SUBJECT: [&str; 2] = ["subject_id", "subject"];

/// Samples with their outcomes and attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleTable {
    /// The samples in the order of the file, with the raw values of the requested attributes; no images.
    pub cohort: Cohort,
    /// Whether the file names subjects; without them every sample is its own subject.
    pub has_subjects: bool,
}

/// Subjects whose samples differ in an attribute, to be shown to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangingAttribute {
    /// The attribute.
    pub attribute: String,
    /// The first such subject in the file.
    pub subject: SubjectId,
    /// The values of that subject.
    pub values: Vec<String>,
    /// Number of such subjects.
    pub n_subjects: usize,
}

impl fmt::Display for ChangingAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attribute, subject, values, n_subjects } = self;
        let (noun, values) = (if *n_subjects == 1 { "subject has" } else { "subjects have" }, values.join(", "));
        write!(
            f,
            "{n_subjects} {noun} more than one value of {attribute} (the first: \"{subject}\" with {values}): each \
             sample counts in the group of its own value"
        )
    }
}

/// Reads a table of outcomes and the `attributes` named; `columns` and `missing` as in
/// [`ReadOptions`](super::ReadOptions).
///
/// # Errors
/// [`DataError::MissingColumn`], [`DataError::AmbiguousColumn`], [`DataError::EmptyTable`],
/// [`DataError::DuplicateSample`], [`DataError::InvalidCell`], [`DataError::NoSuchValue`],
/// [`DataError::UnknownMissing`], [`DataError::InvalidAttribute`] for an attribute that is an outcome or an identity,
/// [`DataError::EmptyColumn`], what [`read_cohort`] returns for a record, and what [`Table::read`] returns.
pub fn read_sample_table(
    path: &Path,
    attributes: &[&str],
    columns: &ColumnNames,
    missing: &[String],
) -> Result<SampleTable, DataError> {
    let table = Table::read(path)?;
    if *columns == ColumnNames::default() && missing.is_empty() && is_record(&table) {
        return of_record(path, attributes);
    }
    let sample_column = named_or_either(&table, columns.sample.as_deref(), SAMPLE)?;
    let subject_column = named_or_either(&table, columns.subject.as_deref(), SUBJECT)?;
    let roles = [sample_column, subject_column, Some(columns.time()), Some(columns.event())];
    let absent = |column: &str| {
        let candidates = table.names().into_iter().filter(|name| !roles.contains(&Some(name)));
        DataError::MissingColumn {
            column: column.to_owned(),
            path: path.to_owned(),
            nearest: nearest(column, candidates),
        }
    };
    let sample_column = sample_column.ok_or_else(|| absent("sample"))?;
    if let Some(column) = roles.into_iter().flatten().chain(attributes.iter().copied()).find(|name| !table.has(name)) {
        return Err(absent(column));
    }
    refuse_roles(attributes, &roles)?;
    let sample_ids = read_samples(&table, sample_column)?;
    if sample_ids.is_empty() {
        return Err(DataError::EmptyTable { path: path.to_owned() });
    }
    let subjects = subject_column.map(|column| read_subjects(&table, column, &sample_ids)).transpose()?;
    let cohort = Cohort {
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        time_unit: unnamed_unit(),
        source: path.to_owned(),
        samples: samples(&table, columns, &sample_ids, subjects.as_deref())?,
        attributes: read_attributes(&table, attributes, missing, &sample_ids)?,
        provenance: None,
        cause: columns.cause,
    };
    Ok(SampleTable { cohort, has_subjects: subjects.is_some() })
}

/// The record of a cohort, with the requested attributes alone.
fn of_record(path: &Path, attributes: &[&str]) -> Result<SampleTable, DataError> {
    let (mut cohort, _) = read_cohort(path)?;
    if cohort.samples.is_empty() {
        return Err(DataError::EmptyTable { path: path.to_owned() });
    }
    let find = |name: &&str| {
        let absent = || DataError::MissingColumn {
            column: (*name).to_owned(),
            path: path.to_owned(),
            nearest: nearest(name, cohort.attributes.iter().map(|column| column.name.as_str())),
        };
        cohort.attributes.iter().find(|column| column.name == *name).cloned().ok_or_else(absent)
    };
    cohort.attributes = attributes.iter().map(find).collect::<Result<_, _>>()?;
    Ok(SampleTable { cohort, has_subjects: true })
}

/// Refuses an attribute that is one of `roles`.
pub(super) fn refuse_roles(attributes: &[&str], roles: &[Option<&str>]) -> Result<(), DataError> {
    let Some(name) = attributes.iter().find(|name| roles.contains(&Some(**name))) else { return Ok(()) };
    Err(DataError::InvalidAttribute { attribute: (*name).to_owned(), problem: HAS_A_ROLE.to_owned() })
}

/// A table of samples from outside, with the requested attributes.
pub trait OutsideTable {
    /// The samples, with the raw values of the attributes.
    fn cohort(&self) -> &Cohort;

    /// Whether the file names subjects; without them every sample is its own subject.
    fn has_subjects(&self) -> bool;

    /// Names of the columns that nothing reads.
    fn ignored(&self) -> &[String];

    /// Groups of all samples. Thresholds and levels are fitted on the whole table, because there is no training part.
    /// An attribute without threshold, reference or levels has its values as levels, whole numbers in their order.
    ///
    /// # Errors
    /// [`DataError::TooManyLevels`], and what [`FittedAttributes::fit`] returns.
    fn fit_attributes(&self, configs: &[AttributeConfig]) -> Result<FittedAttributes, DataError> {
        let cohort = self.cohort();
        let configs = configs.iter().map(|config| with_levels(cohort, config)).collect::<Result<Vec<_>, _>>()?;
        FittedAttributes::fit(&configs, cohort, &cohort.all_rows())
    }

    /// Attributes of which the samples of one subject have different values. An attribute with a threshold is left out:
    /// a subject may grow older between two samples.
    fn changing_attributes(&self, configs: &[AttributeConfig]) -> Vec<ChangingAttribute> {
        changing_attributes(self.cohort(), configs)
    }

    /// Values of the attributes that may not be groups of their own.
    fn doubtful_levels(&self) -> Vec<DoubtfulLevels> {
        let values = |column: &AttributeColumn| {
            doubtful_levels(&column.name, column.values.iter().flatten().map(String::as_str))
        };
        self.cohort().attributes.iter().flat_map(values).collect()
    }

    /// Without a column of subjects, an ignored column that may hold them (`patient_id`).
    fn likely_subjects(&self) -> Option<&str> {
        let ignored: Vec<&str> = self.ignored().iter().map(String::as_str).collect();
        synonym(SUBJECT[1], &ignored).filter(|_| !self.has_subjects())
    }
}

impl OutsideTable for SampleTable {
    fn cohort(&self) -> &Cohort {
        &self.cohort
    }

    fn has_subjects(&self) -> bool {
        self.has_subjects
    }

    fn ignored(&self) -> &[String] {
        &[]
    }
}

/// The settings of an attribute whose values are its levels, with these: whole numbers in their order.
///
/// # Errors
/// [`DataError::TooManyLevels`] for a number that is not cut; [`DataError::InvalidAttribute`] for a reference that no sample has.
pub fn with_levels(cohort: &Cohort, config: &AttributeConfig) -> Result<AttributeConfig, DataError> {
    let mut config = config.clone();
    let column = cohort.attributes.iter().find(|column| column.name == config.name);
    let values: BTreeSet<&str> =
        column.iter().flat_map(|column| column.values.iter().flatten()).map(String::as_str).collect();
    if let Some(reference) = &config.reference
        && !values.iter().any(|value| same_ignoring_case(value, reference))
    {
        let some = values.iter().take(MOST_LEVELS).copied().collect::<Vec<_>>().join(", ");
        let hint = nearest(reference, values)
            .map_or_else(|| format!(", expected one of {some}"), |name| format!(", nearest is \"{name}\""));
        let problem = format!("no sample has the value \"{reference}\"{hint}");
        return Err(DataError::InvalidAttribute { attribute: config.name, problem });
    }
    config.require_few_levels(values.len())?;
    let is_plain = config.is_plain();
    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.parse().ok()).collect();
    if let Some(numbers) = numbers.filter(|numbers| is_plain && !numbers.is_empty()) {
        let mut levels: Vec<(f64, &str)> = numbers.into_iter().zip(values).collect();
        levels.sort_by(|a, b| a.0.total_cmp(&b.0));
        config.levels = Some(levels.into_iter().map(|(_, level)| level.to_owned()).collect());
    }
    Ok(config)
}

/// Attributes of which the samples of one subject have different values, but for those with a threshold.
pub fn changing_attributes(cohort: &Cohort, configs: &[AttributeConfig]) -> Vec<ChangingAttribute> {
    let levelled = configs.iter().filter(|config| config.threshold.is_none());
    let columns = levelled.filter_map(|config| cohort.attributes.iter().find(|c| c.name == config.name));
    columns.filter_map(|column| changing_attribute(cohort, column)).collect()
}

fn changing_attribute(cohort: &Cohort, column: &AttributeColumn) -> Option<ChangingAttribute> {
    let mut values: HashMap<&SubjectId, BTreeSet<&str>> = HashMap::new();
    for (sample, value) in cohort.samples.iter().zip(&column.values) {
        values.entry(&sample.subject_id).or_default().extend(value.as_deref());
    }
    let n_subjects = values.values().filter(|values| values.len() > 1).count();
    let first = cohort.samples.iter().map(|sample| &sample.subject_id).find(|id| values[id].len() > 1)?;
    Some(ChangingAttribute {
        attribute: column.name.clone(),
        subject: first.clone(),
        values: values[first].iter().map(|value| (*value).to_owned()).collect(),
        n_subjects,
    })
}

/// The column `named`, or the one of two usual names that `table` has.
pub(crate) fn named_or_either<'a>(
    table: &Table,
    named: Option<&'a str>,
    usual: [&'static str; 2],
) -> Result<Option<&'a str>, DataError> {
    named.map_or_else(|| either_column(table, usual), |name| Ok(Some(name)))
}

pub(super) fn read_subjects(table: &Table, column: &str, samples: &[SampleId]) -> Result<Vec<SubjectId>, DataError> {
    let cells = table.text(column)?.into_iter().enumerate();
    let subject = |(row, cell): (usize, Option<String>)| {
        let missing = || invalid(table, row, samples, column, None, "the name of a subject");
        cell.map(SubjectId::from).ok_or_else(missing)
    };
    cells.map(subject).collect()
}

pub(super) fn samples(
    table: &Table,
    columns: &ColumnNames,
    ids: &[SampleId],
    subjects: Option<&[SubjectId]>,
) -> Result<Vec<Sample>, DataError> {
    let outcomes = outcomes(table, columns, ids)?.into_iter().enumerate();
    let sample = |(row, RowOutcome { time, event, competing }): (usize, RowOutcome)| Sample {
        sample_id: ids[row].clone(),
        subject_id: subjects.map_or_else(|| ids[row].as_str().into(), |subjects| subjects[row].clone()),
        unit: None,
        image: PathBuf::new(),
        time,
        event,
        competing,
        source_row: table.row(row),
    };
    Ok(outcomes.map(sample).collect())
}
