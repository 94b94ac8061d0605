//! Tables with columns and values of other names: what is read, the notes on it, and which option helps.

use std::collections::BTreeSet;

use fairtte_data::predictions::{
    ColumnNames, DoubtfulLevels, OutsideTable as _, ReadOptions, Rising, ScoredTable, doubtful_levels,
};
use fairtte_data::{AttributeConfig, Cohort, DataError};
use fairtte_metrics::Groups;

use crate::CliError;
use crate::args::{OwnTable, join_thresholds};
use crate::shell::quoted;

/// The attributes to compare by.
pub(super) fn attributes(list: &[AttributeConfig]) -> Result<Vec<AttributeConfig>, CliError> {
    join_thresholds(list).map_err(|message| CliError::setting("--attributes", message, None))
}

/// How the table is read.
///
/// # Errors
/// [`CliError::Config`] if two options name one column.
pub(in super::super) fn options(own: &OwnTable, rising: Rising) -> Result<ReadOptions, CliError> {
    require_different(columns(own).into_iter().map(|(option, _, named)| (option, named)))?;
    let columns = ColumnNames {
        sample: own.sample.clone(),
        subject: own.subject.clone(),
        time: own.time.clone(),
        event: own.event.clone(),
        event_value: own.event_value.clone(),
        cause: None,
    };
    Ok(ReadOptions { columns, missing: own.missing.clone(), rising })
}

/// Checks that no two options name one column.
///
/// # Errors
/// [`CliError::Config`] with both.
pub(super) fn require_different<'a>(
    named: impl IntoIterator<Item = (&'static str, Option<&'a String>)>,
) -> Result<(), CliError> {
    let named: Vec<(&str, &String)> = named.into_iter().filter_map(|(option, named)| Some((option, named?))).collect();
    for (k, (option, name)) in named.iter().enumerate() {
        if let Some((other, _)) = named[..k].iter().find(|(_, other)| other == name) {
            let message = format!("\"{name}\" is also the column of {other}, expected another one");
            return Err(CliError::setting(option, message, None));
        }
    }
    Ok(())
}

/// The options that name a column, each with the usual name and the one that was given.
pub(super) fn columns(own: &OwnTable) -> [(&'static str, &'static str, Option<&String>); 4] {
    [
        ("--sample", "sample", own.sample.as_ref()),
        ("--subject", "subject", own.subject.as_ref()),
        ("--time", "time", own.time.as_ref()),
        ("--event", "event", own.event.as_ref()),
    ]
}

/// The columns with other names, for the page.
pub(in super::super) fn fact(own: &OwnTable) -> Option<(String, String)> {
    let named = columns(own).into_iter().filter_map(|(_, usual, named)| Some(format!("{usual} is \"{}\"", named?)));
    let value = own.event_value.iter().map(|value| format!("an event is \"{value}\""));
    let missing = own.missing.iter().map(|value| format!("\"{value}\" is missing"));
    let all: Vec<String> = named.chain(value).chain(missing).collect();
    (!all.is_empty()).then(|| ("columns and values".to_owned(), all.join(", ")))
}

/// Adds the option that names the right column or value to an error about a table.
pub(in super::super) fn with_help(error: DataError, own: &OwnTable) -> CliError {
    let help = match &error {
        DataError::MissingColumn { column, nearest, .. } => {
            let option = columns(own).into_iter().find(|(_, usual, named)| usual == column && named.is_none());
            let nearest = nearest.as_deref().map_or_else(|| "COLUMN".to_owned(), quoted);
            option.map(|(option, ..)| format!("name it with {option} {nearest}"))
        }
        DataError::InvalidCell { column, value, expected, .. }
            if column == own.event.as_deref().unwrap_or("event")
                && value != "empty"
                && expected.starts_with("1 (observed)") =>
        {
            let one_value = format!("name the value of an event, as in --event-value {}", quoted(value));
            // Numbers above 1 are usually kinds of events, of which naming one would censor the others without a word.
            match value.parse::<u32>() {
                Ok(2..) => Some(format!(
                    "if the numbers are causes, name that of the event, as in --cause 1; otherwise {one_value}"
                )),
                _ => Some(one_value),
            }
        }
        _ => None,
    };
    match help {
        Some(help) => CliError::Curves { source: Box::new(error), help },
        None => super::outside::with_help(error),
    }
}

/// Gives the times of `cohort` the unit of `--time-unit`.
///
/// # Errors
/// [`CliError::Config`] if its file records another one.
pub(super) fn name_unit(cohort: &mut Cohort, own: &OwnTable) -> Result<(), CliError> {
    let Some(unit) = &own.time_unit else { return Ok(()) };
    if cohort.has_time_unit() && cohort.time_unit != *unit {
        let message =
            format!("\"{unit}\" is not the unit of {}, which is \"{}\"", cohort.source.display(), cohort.time_unit);
        return Err(CliError::setting("--time-unit", message, None));
    }
    cohort.time_unit.clone_from(unit);
    Ok(())
}

/// Requires that an event has the cause of `--cause`, if events have causes at all.
///
/// # Errors
/// [`CliError::Config`] with the causes that there are.
pub(super) fn require_cause(cohort: &Cohort, cause: Option<u32>) -> Result<(), CliError> {
    let Some(cause) = cause.filter(|_| cohort.samples.iter().all(|sample| !sample.event)) else { return Ok(()) };
    let known: BTreeSet<u32> = cohort.samples.iter().filter_map(|sample| sample.competing).collect();
    let known: Vec<String> = known.iter().map(u32::to_string).collect();
    let expected = match &known[..] {
        [] => return Ok(()),
        [one] => one.clone(),
        several => format!("one of {}", several.join(", ")),
    };
    let message = format!("no event of {} has cause {cause}, expected {expected}", cohort.source.display());
    Err(CliError::setting("--cause", message, None))
}

/// Notes on the meaning of columns and values.
pub(super) fn notes(table: &ScoredTable) -> Vec<String> {
    notes_on_columns(table.likely_subjects(), &table.doubtful_levels())
}

/// The same of a column that may name the subjects, and of values that may not be groups.
pub(super) fn notes_on_columns(subjects: Option<&str>, doubts: &[DoubtfulLevels]) -> Vec<String> {
    let subjects = subjects
        .map(|column| format!("Column \"{column}\" may name the subjects; if it does: --subject {}.", quoted(column)));
    subjects.into_iter().chain(notes_on_levels(doubts)).collect()
}

/// Notes on the values of attributes that `--missing` may name.
pub(in super::super) fn notes_on_levels(doubts: &[DoubtfulLevels]) -> Vec<String> {
    doubts.iter().map(|doubt| note(doubt, "--missing leaves its samples out of the comparison")).collect()
}

/// Notes on the names of the groups of a cohort.
pub(super) fn notes_on_groups(groups: &[Groups]) -> Vec<String> {
    let doubts = groups
        .iter()
        .flat_map(|groups| doubtful_levels(groups.attribute(), groups.levels().iter().map(String::as_str)));
    doubts.map(|doubt| note(&doubt, "a sample with an empty cell is in no group")).collect()
}

/// The sentence on values that may not be groups of their own; `remedy` is for those that may be missing ones.
fn note(doubt: &DoubtfulLevels, remedy: &str) -> String {
    match doubt {
        DoubtfulLevels::NoValue { .. } => format!("{doubt}: {remedy}."),
        DoubtfulLevels::OneMeaning { .. } => format!("{doubt}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(time_unit: &str) -> OwnTable {
        let time_unit = Some(time_unit.to_owned());
        OwnTable { time_unit, ..OwnTable::default() }
    }

    #[test]
    fn a_unit_that_the_cohort_records_is_not_replaced() {
        let mut cohort = Cohort {
            name: "made-up".to_owned(),
            time_unit: "years".to_owned(),
            source: "cohort.parquet".into(),
            samples: Vec::new(),
            attributes: Vec::new(),
            provenance: None,
            cause: None,
        };
        assert!(name_unit(&mut cohort, &own("years")).is_ok());
        let message = name_unit(&mut cohort, &own("days")).map_err(|error| error.to_string());
        let expected = "--time-unit: \"days\" is not the unit of cohort.parquet, which is \"years\"";
        assert_eq!(message, Err(expected.to_owned()));
        cohort.time_unit = "time units".to_owned();
        assert!(name_unit(&mut cohort, &own("days")).is_ok());
        assert_eq!(cohort.time_unit, "days");
    }
}
