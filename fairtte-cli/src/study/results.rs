//! The results of a study as one long table: a row per place of the manifest, epoch, part, metric and group.
//!
//! It is a function of the manifest and of the scores alone: no times, no machines, no order of arrival.

use std::path::Path;

use fairtte_data::DataError;
use fairtte_data::table::{ColumnValues, write_parquet_batches};

use super::cells::AXES;
use super::plan::{Plan, Planned};
use super::scores::{MetricScores, Number, Scores};
use crate::CliError;
use crate::run_folder::read_json;

/// Places of the manifest whose rows are in memory at a time.
const PLACES_AT_ONCE: usize = 256;

/// Writes the scores of all finished trials as Parquet; returns the number of rows. A training that several places share has
/// rows for each of them.
///
/// # Errors
/// [`CliError::RunFolder`] if scores cannot be read, [`CliError::Data`] if the file cannot be written.
pub(crate) fn write_results(plan: &Plan, planned: &[Planned], path: &Path) -> Result<usize, CliError> {
    let (mut n, mut failed) = (0, None);
    let batches = (0..planned.len()).step_by(PLACES_AT_ONCE).map_while(|first| {
        let places = first..planned.len().min(first + PLACES_AT_ONCE);
        match Rows::gather(plan, planned, places) {
            Ok(rows) => {
                n += rows.place.len();
                Some(Ok::<_, DataError>(rows.into_columns(plan, planned)))
            }
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    });
    // Written beside the file first: scores that cannot be read leave no half table.
    let unfinished = path.with_extension("part");
    write_parquet_batches(&unfinished, batches, &[])?;
    let moved = |error: std::io::Error| CliError::RunFolder { path: path.to_owned(), problem: error.to_string() };
    if let Some(error) = failed {
        std::fs::remove_file(&unfinished).map_err(moved)?;
        return Err(error);
    }
    std::fs::rename(&unfinished, path).map_err(moved)?;
    Ok(n)
}

/// Rows, by column.
#[derive(Debug, Default)]
struct Rows {
    /// Place in the manifest of every row.
    place: Vec<usize>,
    epoch: Vec<i64>,
    rules: Vec<String>,
    part: Vec<String>,
    metric: Vec<String>,
    of: Vec<String>,
    group: Vec<String>,
    value: Vec<Option<f64>>,
    n: Vec<Option<i64>>,
    n_events: Vec<Option<i64>>,
    reason: Vec<String>,
}

impl Rows {
    fn gather(plan: &Plan, planned: &[Planned], places: std::ops::Range<usize>) -> Result<Self, CliError> {
        let mut rows = Self::default();
        for place in places {
            let path = plan.folder().trial(&planned[place].id).scores();
            if path.exists() {
                let attribute = &plan.cells()[plan.place(place).0].attribute;
                rows.add(place, attribute, &read_json(&path)?);
            }
        }
        Ok(rows)
    }

    /// The rows of a trial: everybody, and the groups of the cell's attribute.
    fn add(&mut self, place: usize, attribute: &str, scores: &Scores) {
        for kept in &scores.kept {
            for part in &kept.parts {
                for metric in &part.metrics {
                    let at =
                        |of: &'static str, group: &str| Row { place, epoch: kept.epoch, of, group: group.to_owned() };
                    let context = (kept.rules.join(" "), part.part.as_str(), metric);
                    self.push(
                        at("all", ""),
                        &context,
                        &metric.overall,
                        metric.counts.or(Some((part.n, part.n_events))),
                    );
                    let Some(of) = metric.attributes.iter().find(|of| of.attribute == attribute) else { continue };
                    for group in &of.groups {
                        self.push(at("group", &group.level), &context, &group.value, Some((group.n, group.n_events)));
                    }
                    self.push(at("gap", ""), &context, &of.gap, None);
                    self.push(at("worst", ""), &context, &of.worst, None);
                    self.push(at("equity-scaling", ""), &context, &of.equity_scaling, None);
                }
            }
        }
    }

    fn push(
        &mut self,
        row: Row,
        (rules, part, metric): &(String, &str, &MetricScores),
        number: &Number,
        counts: Option<(usize, usize)>,
    ) {
        self.place.push(row.place);
        self.epoch.push(whole(row.epoch));
        self.rules.push(rules.clone());
        self.part.push((*part).to_owned());
        self.metric.push(metric.metric.clone());
        self.of.push(row.of.to_owned());
        self.group.push(row.group);
        self.value.push(number.value);
        self.n.push(counts.map(|(n, _)| whole(n)));
        self.n_events.push(counts.map(|(_, n_events)| whole(n_events)));
        self.reason.push(number.undefined.clone().unwrap_or_default());
    }

    /// The columns of the table: place, trial, axes and searched keys, then what was found.
    fn into_columns(self, plan: &Plan, planned: &[Planned]) -> Vec<(String, ColumnValues<'static>)> {
        let words = |all: Vec<String>| ColumnValues::Text(all.into_iter().map(Some).collect());
        let of_rows = |of: &dyn Fn(usize) -> Option<String>| {
            ColumnValues::Text(self.place.iter().map(|place| of(*place)).collect())
        };
        let whole_of = |of: &dyn Fn(usize) -> usize| {
            ColumnValues::Integer(self.place.iter().map(|place| whole(of(*place))).collect())
        };
        let mut columns = vec![
            ("index".to_owned(), whole_of(&|place| place)),
            ("id".to_owned(), of_rows(&|place| Some(planned[place].id.clone()))),
            ("trial".to_owned(), whole_of(&|place| plan.place(place).1 + 1)),
        ];
        if plan.study().folds > 1 {
            columns.push(("fold".to_owned(), whole_of(&|place| plan.fold(place) + 1)));
        }
        if plan.study().repeats > 1 {
            columns.push(("repeat".to_owned(), whole_of(&|place| plan.repeat(place) + 1)));
        }
        for axis in AXES {
            let word = |place: usize| plan.cells()[plan.place(place).0].word(axis, plan.study());
            columns.push((axis.to_owned(), of_rows(&word)));
        }
        for key in plan.study().searched() {
            let drawn =
                |place: usize| planned[place].draws.iter().find(|(name, _)| name == key).map(|(_, v)| v.to_string());
            columns.push((key.clone(), of_rows(&drawn)));
        }
        columns.extend([
            ("epoch".to_owned(), ColumnValues::Integer(self.epoch)),
            ("kept-by".to_owned(), words(self.rules)),
            ("part".to_owned(), words(self.part)),
            ("metric".to_owned(), words(self.metric)),
            ("of".to_owned(), words(self.of)),
            ("group".to_owned(), words(self.group)),
            ("value".to_owned(), ColumnValues::OptionalNumber(self.value)),
            ("n".to_owned(), ColumnValues::OptionalInteger(self.n)),
            ("n-events".to_owned(), ColumnValues::OptionalInteger(self.n_events)),
            ("reason".to_owned(), words(self.reason)),
        ]);
        columns
    }
}

struct Row {
    place: usize,
    epoch: usize,
    of: &'static str,
    group: String,
}

#[expect(clippy::cast_possible_wrap, reason = "counts are far smaller")]
fn whole(n: usize) -> i64 {
    n as i64
}
