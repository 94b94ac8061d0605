//! Times and events of a table, in columns of the usual or of other names.

use std::path::Path;

use fairtte_metrics::{Outcomes, SampleId};

use crate::cohort::AttributeColumn;
use crate::cohort::attributes::same_ignoring_case;
use crate::cohort::label_rule::{CAUSE, ZERO_OR_ONE, parse_cause, parse_event};
use crate::predictions::values::{MISSING, read_attributes};
use crate::table::Table;
use crate::table::cells::refuse_unused;
use crate::table::decimal::{DECIMAL_POINT, has_decimal_comma};
use crate::{DataError, Place};

/// The columns with a role in a table of curves, where they do not have the usual names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnNames {
    /// Names of the samples, instead of `sample_id` or `sample`.
    pub sample: Option<String>,
    /// Names of the subjects, instead of `subject_id` or `subject`.
    pub subject: Option<String>,
    /// Times, instead of `time`.
    pub time: Option<String>,
    /// Events, instead of `event`.
    pub event: Option<String>,
    /// The value of an event; every other value is censored. Without it 1 is an event and 0 is censored.
    pub event_value: Option<String>,
    /// The cause that is evaluated, where the column of events holds causes: 0 = censored, this number = the event, any other
    /// whole number an event of another cause.
    pub cause: Option<u32>,
}

impl ColumnNames {
    pub(crate) fn time(&self) -> &str {
        self.time.as_deref().unwrap_or("time")
    }

    pub(crate) fn event(&self) -> &str {
        self.event.as_deref().unwrap_or("event")
    }

    /// The names for another table, which may have the usual columns instead.
    fn in_other(&self, table: &Table) -> Self {
        let usual =
            |name: &Option<String>, usual: &str| name.clone().filter(|name| table.has(name) || !table.has(usual));
        let event = usual(&self.event, "event");
        let event_value = self.event_value.clone().filter(|_| event == self.event);
        Self { time: usual(&self.time, "time"), event, event_value, cause: self.cause, ..Self::default() }
    }
}

/// Reads the outcomes that a censoring curve is fitted on: an event of any cause is one. Other columns are ignored. A column that `names` has and the
/// table has not may have its usual name, `time` or `event`, with 1 for an event.
///
/// # Errors
/// [`DataError::MissingColumn`], [`DataError::InvalidCell`], [`DataError::NoSuchValue`], [`DataError::EmptyTable`], and
/// what [`Table::read`] returns.
pub fn read_outcomes(path: &Path, names: &ColumnNames) -> Result<Outcomes, DataError> {
    let table = Table::read(path)?;
    let samples: Vec<SampleId> = (0..table.n_rows()).map(|row| format!("row {}", table.row(row)).into()).collect();
    let outcomes = outcomes(&table, &names.in_other(&table), &samples)?;
    if outcomes.is_empty() {
        return Err(DataError::EmptyTable { path: path.to_owned() });
    }
    let (time, event) = outcomes.into_iter().map(|outcome| (outcome.time, outcome.is_end())).unzip();
    Ok(Outcomes::new(time, event)?)
}

/// The columns `names` of a table of outcomes, in its order of rows; `None` if it lacks one of them. The texts in `missing` stand for a
/// missing value, whatever their case; unlike those of the table of curves, this one need not have them.
///
/// # Errors
/// [`DataError::EmptyColumn`], [`DataError::InvalidCell`] for a column that mixes numbers and text, and what [`Table::read`]
/// returns.
pub fn read_columns(
    path: &Path,
    names: &[&str],
    missing: &[String],
) -> Result<Option<Vec<AttributeColumn>>, DataError> {
    let table = Table::read(path)?;
    if !names.iter().all(|name| table.has(name)) {
        return Ok(None);
    }
    let cells = names.iter().map(|name| table.text(name)).collect::<Result<Vec<_>, _>>()?;
    let is_there = |text: &&String| cells.iter().flatten().flatten().any(|cell| same_ignoring_case(cell, text));
    let missing: Vec<String> = missing.iter().filter(is_there).cloned().collect();
    let samples: Vec<SampleId> = (0..table.n_rows()).map(|row| format!("row {}", table.row(row)).into()).collect();
    read_attributes(&table, names, &missing, &samples).map(Some)
}

/// The outcome of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowOutcome {
    pub(crate) time: f64,
    pub(crate) event: bool,
    /// The other cause of an event of another kind.
    pub(crate) competing: Option<u32>,
}

impl RowOutcome {
    /// Whether an event of any cause ended the observation.
    fn is_end(self) -> bool {
        self.event || self.competing.is_some()
    }
}

/// Time and event of every row.
pub(crate) fn outcomes(table: &Table, names: &ColumnNames, samples: &[SampleId]) -> Result<Vec<RowOutcome>, DataError> {
    let (times, events) = (table.numbers(names.time())?, table.text(names.event())?);
    let event_value = names.event_value.as_deref();
    if let Some(value) = event_value {
        refuse_unused(table.path(), names.event(), value, &events, |text| is_same(text, value))?;
    }
    let cells = times.into_iter().zip(events).enumerate();
    let outcome = |(row, (time, event)): (usize, (Result<f64, String>, Option<String>))| {
        let bad_time = |text, expected| invalid(table, row, samples, names.time(), Some(text), expected);
        let time = match time {
            Ok(time) if time.is_finite() && time >= 0.0 => time,
            Ok(time) => return Err(bad_time(time.to_string(), "a finite number >= 0")),
            Err(text) if has_decimal_comma(&text) => return Err(bad_time(text, DECIMAL_POINT)),
            Err(text) => return Err(bad_time(text, "a finite number >= 0")),
        };
        let (parsed, expected) = match (event_value, names.cause) {
            (None, None) => (event.as_deref().and_then(parse_event).map(|event| (event, None)), ZERO_OR_ONE),
            (None, Some(cause)) => (event.as_deref().and_then(|text| parse_cause(text, cause)), CAUSE),
            (Some(value), _) => {
                let present = event.as_deref().filter(|text| !MISSING.contains(text));
                (
                    present.map(|text| (is_same(text, value), None)),
                    "a value: that of an event, or any other for a censored sample",
                )
            }
        };
        let (event, competing) = parsed.ok_or_else(|| invalid(table, row, samples, names.event(), event, expected))?;
        Ok(RowOutcome { time, event, competing })
    };
    cells.map(outcome).collect()
}

/// The same text, or the same number (`2` and `2.0`).
pub(super) fn is_same(text: &str, value: &str) -> bool {
    text == value || text.parse::<f64>().is_ok_and(|number| value.parse() == Ok(number))
}

pub(crate) fn invalid(
    table: &Table,
    row: usize,
    samples: &[SampleId],
    column: &str,
    value: Option<String>,
    expected: &'static str,
) -> DataError {
    let place: Place = table.place(row);
    DataError::InvalidCell {
        column: column.to_owned(),
        sample: samples[row].to_string(),
        value: value.filter(|text| !text.is_empty()).unwrap_or_else(|| "empty".to_owned()),
        expected,
        place,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn read(
        text: &str,
        time: Option<&str>,
        event: Option<&str>,
        event_value: Option<&str>,
    ) -> Result<Outcomes, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        let owned = |name: Option<&str>| name.map(str::to_owned);
        let names = ColumnNames {
            time: owned(time),
            event: owned(event),
            event_value: owned(event_value),
            ..Default::default()
        };
        let shown = format!("{}/", folder.path().display());
        read_outcomes(&path, &names).map_err(|error| error.to_string().replace(&shown, ""))
    }

    #[test]
    fn columns_and_values_of_other_names_are_read() {
        let outcomes =
            read("days,status,time\n3,2,x\n4,1.0,x\n5,2.0,x\n", Some("days"), Some("status"), Some("2")).unwrap();
        assert_eq!((outcomes.time(), outcomes.event()), (&[3.0, 4.0, 5.0][..], &[true, false, true][..]));
        let outcomes = read("time,event\n1,dead\n2,alive\n3,lost\n", None, None, Some("dead")).unwrap();
        assert_eq!(outcomes.event(), [true, false, false]);
    }

    #[test]
    fn a_training_table_may_have_the_usual_names_and_values() {
        let outcomes = read("time,event\n1,0\n2,1\n", Some("days"), Some("status"), Some("dead")).unwrap();
        assert_eq!(outcomes.event(), [false, true]);
        let outcomes = read("time,event\n1,0\n2,1\n", Some("days"), None, Some("0")).unwrap();
        assert_eq!(outcomes.event(), [true, false], "the value is of the column that is read");
        let message = read("tiem,event\n1,0\n", Some("days"), None, None).unwrap_err();
        assert_eq!(message, "column \"days\" is not in t.csv");
    }

    #[test]
    fn texts_that_stand_for_a_missing_value_are_none_before_a_column_is_one_of_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, "time,event,age\n1,1,61\n2,0,Unknown\n3,1,70\n").unwrap();
        let read = |missing: &[&str]| {
            let missing: Vec<String> = missing.iter().map(|text| (*text).to_owned()).collect();
            read_columns(&path, &["age"], &missing)
        };
        let found = read(&["unknown", "not in this table"]).unwrap().unwrap();
        assert_eq!(found[0].values, [Some("61".to_owned()), None, Some("70".to_owned())]);
        let mixed = read(&[]).unwrap_err().to_string();
        assert!(mixed.contains("age of sample \"row 3\" is Unknown"), "{mixed}");
    }

    #[test]
    fn a_value_that_no_cell_has_and_an_empty_cell_are_refused() {
        let with = |cells: &str, value| read(&format!("time,event\n{cells}"), None, None, Some(value));
        let message = with("1,Dead\n2,alive\n", "dead").unwrap_err();
        assert_eq!(message, "no cell of column \"event\" of t.csv is \"dead\", nearest is \"Dead\"");
        for empty in ["", "NA"] {
            let shown = if empty.is_empty() { "empty" } else { empty };
            let message = with(&format!("1,dead\n2,{empty}\n"), "dead").unwrap_err();
            let expected = "expected a value: that of an event, or any other for a censored sample (t.csv, row 3)";
            assert_eq!(message, format!("event of sample \"row 3\" is {shown}, {expected}"));
        }
    }
}
