//! One table with the complete input of an evaluation: curves of any model, outcomes and sensitive attributes.
//!
//! Columns, in any order: `sample` (or `sample_id`), `subject` (or `subject_id`; without it every sample is its own
//! subject), `time` (>= 0), `event` (1 or true, 0 or false), the requested attributes, and one column of survival per
//! grid time whose name is the time as a plain number. All other columns are ignored and reported. No row is left out:
//! a cell that cannot be read is an error, except that an attribute may be missing (an empty cell, `NA`, `<NA>`, `NaN`,
//! `nan` or `null`, as R and pandas write it, or a text named by [`ReadOptions::missing`]); such a sample belongs to no
//! group of that attribute. [`ColumnNames`] gives other names to the first four columns.

use std::path::Path;

use ndarray::{Array2, Axis};

use crate::DataError;
use crate::cohort::Cohort;
use crate::cohort::unnamed_unit;
use crate::nearest::nearest;
use crate::predictions::curve_columns::{Curves, check_grid, look_alike, read_survival, refuse_decimal_comma};
use crate::predictions::file::{SAMPLE, read_samples};
use crate::predictions::outcomes::ColumnNames;
use crate::predictions::repairs::{CurveRepairs, Rising};
use crate::predictions::sample_table::{OutsideTable, SUBJECT, named_or_either, read_subjects, refuse_roles, samples};
use crate::predictions::values::read_attributes;
use crate::table::Table;
use crate::table::decimal::time_of;

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

/// How a table of curves is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Columns that do not have their usual names.
    pub columns: ColumnNames,
    /// Values of attributes that stand for a missing one, whatever their case.
    pub missing: Vec<String>,
    /// The treatment of rising curves; without effect where a cause is evaluated ([`ColumnNames::cause`]): then cells are its
    /// cumulative incidence, which rises, and [`ScoredTable::survival`] is 1 minus it.
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
    refuse_roles(attributes, &roles)?;
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
        cause: columns.cause,
    };
    let curves = columns.cause.map_or(Curves::Survival(options.rising), |_| Curves::Incidence);
    let (survival, repairs) = read_survival(&table, &sample_ids, &names, &grid, curves)?;
    Ok(ScoredTable { cohort, grid, survival, repairs, has_subjects: subjects.is_some(), ignored })
}

impl ScoredTable {
    /// The samples at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            cohort: self.cohort.select(rows),
            survival: self.survival.select(Axis(0), rows),
            grid: self.grid.clone(),
            ignored: self.ignored.clone(),
            ..*self
        }
    }
}

impl OutsideTable for ScoredTable {
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
    use fairtte_metrics::{GroupId, SubjectId};
    use ndarray::array;

    use super::*;
    use crate::cohort::AttributeConfig;

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
