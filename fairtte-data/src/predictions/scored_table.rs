//! One table with the complete input of an evaluation: curves of any model, outcomes and sensitive attributes.
//!
//! Columns, in any order: `sample` (or `sample_id`), `subject` (or `subject_id`; without it every sample is its own
//! subject), `time` (>= 0), `event` (1 or true, 0 or false), the requested attributes, and one column of survival per
//! grid time whose name is the time as a plain number. All other columns are ignored and reported. No row is left out:
//! a cell that cannot be read is an error, except that an attribute may be missing (an empty cell, `NA`, `<NA>`, `NaN`,
//! `nan` or `null`, as R and pandas write it, or a text named by [`ReadOptions::missing`]); such a sample belongs to no
//! group of that attribute. [`ColumnNames`] gives other names to the first four columns.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use fairtte_metrics::{SampleId, SubjectId};
use ndarray::{Array2, Axis};

use crate::DataError;
use crate::adapters::unnamed_unit;
use crate::cohort::attributes::same_ignoring_case;
use crate::cohort::{AttributeColumn, AttributeConfig, Cohort, FittedAttributes, Sample};
use crate::error::nearest;
use crate::nearest::synonym;
use crate::predictions::curve_columns::{
    CurveRepairs, Rising, check_grid, look_alike, read_survival, refuse_decimal_comma, time_of,
};
use crate::predictions::file::{SAMPLE, either_column, read_samples};
use crate::predictions::levels::{DoubtfulLevels, doubtful_levels};
use crate::predictions::outcomes::{ColumnNames, invalid, outcomes};
use crate::predictions::values::read_attributes;
use crate::table::Table;

const SUBJECT: [&str; 2] = ["subject_id", "subject"];
/// Maximum number of values of an attribute; with more it is a number or a name rather than a set of groups.
const MOST_LEVELS: usize = 20;

/// Curves with their outcomes and attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredTable {
    /// The samples in the order of the file, with the raw values of the requested attributes; no images.
    pub cohort: Cohort,
    /// Times of the columns of survival, ascending, >= 0.
    pub grid: Vec<f64>,
    /// Survival `[n_samples, n_times]`, in \[0, 1\], non-increasing along a row.
    pub survival: Array2<f64>,
    /// The changes to the curves while reading.
    pub repairs: CurveRepairs,
    /// Whether the file names subjects; without them every sample is its own subject.
    pub has_subjects: bool,
    /// Columns that are neither requested nor times.
    pub ignored: Vec<String>,
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

/// How a table of curves is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Columns that do not have their usual names.
    pub columns: ColumnNames,
    /// Values of attributes that stand for a missing one, whatever their case.
    pub missing: Vec<String>,
    /// The treatment of rising curves.
    pub rising: Rising,
}

/// Reads a table of curves, outcomes and the `attributes` named.
///
/// # Errors
/// [`DataError::MissingColumn`], [`DataError::AmbiguousColumn`], [`DataError::EmptyTable`],
/// [`DataError::DuplicateSample`], [`DataError::InvalidCell`] (time, event, or an attribute that mixes numbers and
/// text), [`DataError::NoSuchValue`], [`DataError::UnknownMissing`], [`DataError::InvalidAttribute`] for an attribute
/// that is an outcome or an identity, [`DataError::EmptyColumn`], [`DataError::NoGrid`], [`DataError::InvalidGrid`],
/// [`DataError::RepeatedTime`], [`DataError::UnsortedGrid`], [`DataError::NotSurvival`], [`DataError::TooManyRepairs`],
/// [`DataError::InvalidSurvival`], [`DataError::RisingSurvival`], and what [`Table::read`] returns.
pub fn read_scored_table(path: &Path, attributes: &[&str], options: &ReadOptions) -> Result<ScoredTable, DataError> {
    let table = Table::read(path)?;
    let columns = &options.columns;
    let (time, event) = (columns.time(), columns.event());
    let sample_column = named_or_either(&table, columns.sample.as_deref(), SAMPLE)?;
    let subject_column = named_or_either(&table, columns.subject.as_deref(), SUBJECT)?;
    let roles = [sample_column, subject_column, Some(time), Some(event)];
    let (mut names, mut grid, mut ignored) = (Vec::new(), Vec::new(), Vec::new());
    for name in table.names() {
        if roles.contains(&Some(name)) || attributes.contains(&name) {
            continue;
        }
        match time_of(name) {
            Some(time) => {
                names.push(name.to_owned());
                grid.push(time);
            }
            None => ignored.push(name.to_owned()),
        }
    }
    let missing = |column: &str, candidates: Vec<&str>| DataError::MissingColumn {
        column: column.to_owned(),
        path: path.to_owned(),
        nearest: nearest(column, candidates),
    };
    let candidates = || ignored.iter().map(String::as_str).collect::<Vec<_>>();
    for column in roles.into_iter().flatten().chain(attributes.iter().copied()) {
        if !table.has(column) {
            return Err(missing(column, candidates()));
        }
    }
    if let Some(name) = attributes.iter().find(|name| roles.contains(&Some(**name))) {
        let problem = "it is an identity or an outcome, expected a property of the subjects".to_owned();
        return Err(DataError::InvalidAttribute { attribute: (*name).to_owned(), problem });
    }
    refuse_decimal_comma(path, candidates())?;
    if grid.is_empty() {
        return Err(DataError::NoGrid { path: path.to_owned(), look_alike: look_alike(&candidates()) });
    }
    check_grid(path, &names, &grid)?;
    let sample_ids = read_samples(&table, sample_column.ok_or_else(|| missing("sample", candidates()))?)?;
    if sample_ids.is_empty() {
        return Err(DataError::EmptyTable { path: path.to_owned() });
    }
    let subjects = subject_column.map(|column| read_subjects(&table, column, &sample_ids)).transpose()?;
    let cohort = Cohort {
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        time_unit: unnamed_unit(),
        source: path.to_owned(),
        samples: samples(&table, columns, &sample_ids, subjects.as_deref())?,
        attributes: read_attributes(&table, attributes, &options.missing, &sample_ids)?,
        provenance: None,
    };
    let (survival, repairs) = read_survival(&table, &sample_ids, &names, &grid, options.rising)?;
    Ok(ScoredTable { cohort, grid, survival, repairs, has_subjects: subjects.is_some(), ignored })
}

impl ScoredTable {
    /// The samples at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let of_column = |column: &AttributeColumn| AttributeColumn {
            values: rows.iter().map(|row| column.values[*row].clone()).collect(),
            ..column.clone()
        };
        let cohort = Cohort {
            samples: rows.iter().map(|row| self.cohort.samples[*row].clone()).collect(),
            attributes: self.cohort.attributes.iter().map(of_column).collect(),
            ..self.cohort.clone()
        };
        Self {
            cohort,
            survival: self.survival.select(Axis(0), rows),
            grid: self.grid.clone(),
            ignored: self.ignored.clone(),
            ..*self
        }
    }

    /// Groups of all samples. Thresholds and levels are fitted on the whole table, because there is no training part.
    /// An attribute without threshold, reference or levels has its values as levels, whole numbers in their order.
    ///
    /// # Errors
    /// [`DataError::TooManyLevels`], and what [`FittedAttributes::fit`] returns.
    pub fn fit_attributes(&self, configs: &[AttributeConfig]) -> Result<FittedAttributes, DataError> {
        let configs = configs.iter().map(|config| self.with_levels(config)).collect::<Result<Vec<_>, _>>()?;
        FittedAttributes::fit(&configs, &self.cohort, &self.cohort.all_rows())
    }

    fn with_levels(&self, config: &AttributeConfig) -> Result<AttributeConfig, DataError> {
        let mut config = config.clone();
        let column = self.cohort.attributes.iter().find(|column| column.name == config.name);
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
        let is_plain = config.threshold.is_none() && config.reference.is_none() && config.levels.is_none();
        if is_plain && values.len() > MOST_LEVELS {
            let (attribute, n_levels) = (config.name, values.len());
            return Err(DataError::TooManyLevels { attribute, n_levels, most: MOST_LEVELS });
        }
        let numbers: Option<Vec<f64>> = values.iter().map(|value| value.parse().ok()).collect();
        if let Some(numbers) = numbers.filter(|numbers| is_plain && !numbers.is_empty()) {
            let mut levels: Vec<(f64, &str)> = numbers.into_iter().zip(values).collect();
            levels.sort_by(|a, b| a.0.total_cmp(&b.0));
            config.levels = Some(levels.into_iter().map(|(_, level)| level.to_owned()).collect());
        }
        Ok(config)
    }

    /// Attributes of which the samples of one subject have different values. An attribute with a threshold is left out:
    /// a subject may grow older between two samples.
    pub fn changing_attributes(&self, configs: &[AttributeConfig]) -> Vec<ChangingAttribute> {
        let levelled = configs.iter().filter(|config| config.threshold.is_none());
        let columns = levelled.filter_map(|config| self.cohort.attributes.iter().find(|c| c.name == config.name));
        columns.filter_map(|column| self.changing_attribute(column)).collect()
    }

    /// Values of the attributes that may not be groups of their own.
    pub fn doubtful_levels(&self) -> Vec<DoubtfulLevels> {
        let doubts = |column: &AttributeColumn| {
            doubtful_levels(&column.name, column.values.iter().flatten().map(String::as_str))
        };
        self.cohort.attributes.iter().flat_map(doubts).collect()
    }

    /// Without a column of subjects, an ignored column that may hold them (`patient_id`).
    pub fn likely_subjects(&self) -> Option<&str> {
        let ignored: Vec<&str> = self.ignored.iter().map(String::as_str).collect();
        synonym(SUBJECT[1], &ignored).filter(|_| !self.has_subjects)
    }

    fn changing_attribute(&self, column: &AttributeColumn) -> Option<ChangingAttribute> {
        let mut values: HashMap<&SubjectId, BTreeSet<&str>> = HashMap::new();
        for (sample, value) in self.cohort.samples.iter().zip(&column.values) {
            values.entry(&sample.subject_id).or_default().extend(value.as_deref());
        }
        let n_subjects = values.values().filter(|values| values.len() > 1).count();
        let first = self.cohort.samples.iter().map(|sample| &sample.subject_id).find(|id| values[id].len() > 1)?;
        Some(ChangingAttribute {
            attribute: column.name.clone(),
            subject: first.clone(),
            values: values[first].iter().map(|value| (*value).to_owned()).collect(),
            n_subjects,
        })
    }
}

/// The column `named`, or the one of two usual names that `table` has.
fn named_or_either<'a>(
    table: &Table,
    named: Option<&'a str>,
    usual: [&'static str; 2],
) -> Result<Option<&'a str>, DataError> {
    named.map_or_else(|| either_column(table, usual), |name| Ok(Some(name)))
}

fn read_subjects(table: &Table, column: &str, samples: &[SampleId]) -> Result<Vec<SubjectId>, DataError> {
    let cells = table.text(column)?.into_iter().enumerate();
    let subject = |(row, cell): (usize, Option<String>)| {
        let missing = || invalid(table, row, samples, column, None, "the name of a subject");
        cell.map(SubjectId::from).ok_or_else(missing)
    };
    cells.map(subject).collect()
}

fn samples(
    table: &Table,
    columns: &ColumnNames,
    ids: &[SampleId],
    subjects: Option<&[SubjectId]>,
) -> Result<Vec<Sample>, DataError> {
    let outcomes = outcomes(table, columns, ids)?.into_iter().enumerate();
    let sample = |(row, (time, event)): (usize, (f64, bool))| Sample {
        sample_id: ids[row].clone(),
        subject_id: subjects.map_or_else(|| ids[row].as_str().into(), |subjects| subjects[row].clone()),
        unit: None,
        image: PathBuf::new(),
        time,
        event,
        source_row: table.row(row),
    };
    Ok(outcomes.map(sample).collect())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use fairtte_metrics::GroupId;
    use ndarray::array;

    use super::*;

    fn read(text: &str, attributes: &[&str]) -> Result<ScoredTable, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("curves.csv");
        std::fs::write(&path, text).unwrap();
        let shown = format!("{}/", folder.path().display());
        read_scored_table(&path, attributes, &ReadOptions::default())
            .map_err(|error| error.to_string().replace(&shown, ""))
    }

    #[test]
    fn a_table_as_r_writes_it_is_read_in_any_order_of_columns() {
        let text = "\"0\",\"event\",\"sample\",\"0.5\",\"sex\",\"time\",\"note\"\n\
                    1,TRUE,\"a\",0.5,\"F\",2,\"x\"\n0.75,FALSE,\"b\",0.25,NA,0,\"y\"\n";
        let table = read(text, &["sex"]).unwrap();
        assert_eq!((table.grid, table.survival), (vec![0.0, 0.5], array![[1.0, 0.5], [0.75, 0.25]]));
        assert_eq!((table.has_subjects, table.ignored), (false, vec!["note".to_owned()]));
        let outcomes = table.cohort.outcomes(&[0, 1]).unwrap();
        assert_eq!((outcomes.time(), outcomes.event()), (&[2.0, 0.0][..], &[true, false][..]));
        assert_eq!(table.cohort.subjects(&[1]), [SubjectId::from("b")]);
        assert_eq!(table.cohort.attributes[0].values, [Some("F".to_owned()), None]);
    }

    #[test]
    fn whole_numbers_are_levels_in_their_order_however_they_are_written() {
        let rows: String = ["10.0", "9.0", "", "10.0"]
            .iter()
            .enumerate()
            .fold(String::new(), |text, (i, stage)| text + &format!("s{i},p{},1,1,{stage},1\n", i / 2));
        let table = read(&format!("sample,subject,time,event,stage,1\n{rows}"), &["stage"]).unwrap();
        let configs = [AttributeConfig::new("stage")];
        let groups = table.fit_attributes(&configs).unwrap().all()[0].clone();
        assert_eq!(groups.levels(), ["9", "10"]);
        assert_eq!(groups.membership(), [Some(GroupId(1)), Some(GroupId(0)), None, Some(GroupId(1))]);
        let changing = table.changing_attributes(&configs);
        assert_eq!((changing.len(), changing[0].n_subjects, changing[0].subject.as_str()), (1, 1, "p0"));
    }

    #[test]
    fn an_attribute_of_two_kinds_names_the_rarer_one() {
        let table = |values: [&str; 3]| {
            let [a, b, c] = values;
            read(&format!("sample,time,event,x,1\na,1,1,{a},1\nb,1,1,{b},1\nc,1,1,{c},1\n"), &["x"])
        };
        let message = "x of sample \"b\" is old, expected a number like most cells of the column (curves.csv, row 3)";
        assert_eq!(table(["1", "old", "3.5"]).unwrap_err(), message);
        let message = "x of sample \"c\" is 1, expected text like most cells of the column (curves.csv, row 4)";
        assert_eq!(table(["a", "b", "1"]).unwrap_err(), message);
        assert_eq!(table(["1", "nan", "3.5"]).unwrap().cohort.attributes[0].values[1], None);
    }

    #[test]
    fn an_attribute_with_a_value_for_everybody_is_no_grouping() {
        let rows = (0..21).fold(String::new(), |text, i| text + &format!("s{i},1,1,{i},1\n"));
        let table = read(&format!("sample,time,event,age,1\n{rows}"), &["age"]).unwrap();
        let message = table.fit_attributes(&[AttributeConfig::new("age")]).unwrap_err().to_string();
        let expected = "attribute \"age\" has 21 different values, expected at most 20 levels, or a number cut in two";
        assert_eq!(message, expected);
        let cut = AttributeConfig { threshold: Some(crate::cohort::Threshold::Median), ..AttributeConfig::new("age") };
        assert_eq!(table.fit_attributes(&[cut]).unwrap().all()[0].levels(), ["<= 10", "> 10"]);
    }
}
