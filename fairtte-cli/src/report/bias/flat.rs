//! Every number as one flat table, for spreadsheets, R and pandas: `bias.csv`.

use std::path::Path;

use fairtte_data::DataError;
use fairtte_data::table::{ColumnValues, write_csv};

use super::{BiasReport, Found, Line};

/// Writes one row per attribute and source, and one per attribute and group; an absent number is an empty cell.
///
/// # Errors
/// [`DataError`] naming the file if it cannot be written.
pub(crate) fn write(path: &Path, report: &BiasReport) -> Result<(), DataError> {
    let rows: Vec<Row> = report.attributes.iter().flat_map(rows).collect();
    let text = |of: fn(&Row) -> &str| {
        ColumnValues::Borrowed(rows.iter().map(|row| Some(of(row)).filter(|text| !text.is_empty())).collect())
    };
    let number = |of: fn(&Found) -> Option<f64>| {
        ColumnValues::Text(rows.iter().map(|row| Some(of(row.found.as_ref()?)?.to_string())).collect())
    };
    let count = |place: usize| {
        ColumnValues::Text(rows.iter().map(|row| row.counts.map(|counts| counts[place].to_string())).collect())
    };
    let columns = [
        ("attribute", text(|row| &row.attribute)),
        ("kind", text(|row| row.kind)),
        ("name", text(|row| &row.name)),
        ("between", text(|row| &row.between)),
        ("value", number(|found| Some(found.value))),
        ("lower", number(|found| found.interval.map(|ends| ends.0))),
        ("upper", number(|found| found.interval.map(|ends| ends.1))),
        ("chance", number(|found| Some(found.chance))),
        ("above-chance", number(|found| Some(found.corrected))),
        ("p", number(|found| found.p)),
        ("p-holm", number(|found| found.p_holm)),
        ("n", count(0)),
        ("events", count(1)),
        ("subjects", count(2)),
        ("reason", text(|row| &row.reason)),
    ];
    write_csv(path, columns.map(|(name, values)| (name.to_owned(), values)).into())
}

struct Row {
    attribute: String,
    /// `source`, `separability` or `group`.
    kind: &'static str,
    name: String,
    between: String,
    found: Option<Found>,
    /// Samples, events, subjects.
    counts: Option<[usize; 3]>,
    reason: String,
}

fn rows(attribute: &super::AttributeBias) -> Vec<Row> {
    let name = || attribute.name().to_owned();
    let of_line = |line: Line| {
        let undefined = line.found.as_ref().err().cloned();
        let found = line.found.ok();
        Row {
            attribute: name(),
            kind: if line.key == "separability" { "separability" } else { "source" },
            name: line.key.to_owned(),
            between: found.as_ref().map(|found| found.between.clone()).unwrap_or_default(),
            found,
            counts: None,
            reason: undefined.into_iter().chain(line.remarks).collect::<Vec<_>>().join("; "),
        }
    };
    let of_group = |group: &super::GroupCounts| Row {
        attribute: name(),
        kind: "group",
        name: group.level.clone(),
        between: String::new(),
        found: None,
        counts: Some([group.n, group.n_events, group.n_subjects]),
        reason: String::new(),
    };
    attribute.lines().into_iter().map(of_line).chain(attribute.groups.iter().map(of_group)).collect()
}
