//! The table of one metric: the whole sample, then every attribute with its groups and comparisons.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::MetricReport;
use serde::Serialize;

use super::format::{interval, value};
use super::rows::{self, Row, attribute_rows};
use super::words::in_no_group;

#[derive(Serialize)]
pub(super) struct TableRow {
    /// `all`, `attribute`, `group` or `summary`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) value: String,
    pub(super) interval: String,
    pub(super) n: usize,
    pub(super) events: usize,
    pub(super) subjects: usize,
    pub(super) pairs: String,
    pub(super) remarks: Vec<String>,
}

/// The lines of the table.
pub(super) fn table_rows(metric: &MetricReport, report: &EvaluationReport) -> Vec<TableRow> {
    let row = |kind, row: Row<'_>| TableRow {
        kind,
        value: value(row.estimate),
        interval: interval(row.estimate).unwrap_or_else(|| "none".to_owned()),
        n: row.estimate.n,
        events: row.estimate.n_events,
        subjects: row.estimate.n_subjects,
        pairs: rows::pairs_behind(row.estimate),
        remarks: row.remarks(report),
        name: row.name,
    };
    let mut table = vec![row("all", Row::of_samples("all".to_owned(), &metric.overall))];
    for attribute in &metric.attributes {
        let mut heading = row("attribute", Row::of_samples(attribute.attribute.clone(), &metric.overall));
        heading.remarks = match attribute.n_missing {
            0 => Vec::new(),
            n => vec![in_no_group(n)],
        };
        table.push(heading);
        let rows = attribute_rows(metric, attribute, report).into_iter();
        table.extend(rows.map(|r| row(if r.is_group { "group" } else { "summary" }, r)));
    }
    table
}
