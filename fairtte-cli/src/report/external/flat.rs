//! The numbers of an external validation as one flat table: that of one evaluation with the column `cohort`, which is
//! `internal`, `external` or `external minus internal`. Kinds `case-mix-..` are who the samples are.

use fairtte_data::DataError;
use fairtte_data::table::{ColumnValues, csv_text};
use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{CohortMetric, Difference};

use super::super::classes::flat_rows;
use super::super::flat::{FlatRow, columns, of_difference, of_number, rows};
use super::ExternalPage;
use crate::case_mix::{CaseMixCell, CaseMixLine};

const COHORTS: [&str; 3] = ["internal", "external", "external minus internal"];

/// The text of `external.csv`; an absent number is an empty cell.
///
/// # Errors
/// [`DataError`] if it cannot be made.
pub(crate) fn external_csv(page: &ExternalPage<'_>) -> Result<String, DataError> {
    let (mut cohort, mut all) = (Vec::new(), Vec::new());
    let mut add = |name: &'static str, rows: Vec<FlatRow>| {
        cohort.extend(rows.iter().map(|_| Some(name)));
        all.extend(rows);
    };
    let reports = page.reports;
    for (name, report, cell) in [
        (COHORTS[0], &reports.internal, (|line| &line.internal) as fn(&CaseMixLine) -> &CaseMixCell),
        (COHORTS[1], &reports.external, |line| &line.external),
    ] {
        add(name, of_cohort(page, name, report));
        add(name, page.case_mix.lines.iter().flat_map(|line| of_cell(line, cell(line))).collect());
    }
    add(COHORTS[2], reports.metrics.iter().flat_map(differences).collect());
    add(COHORTS[2], page.case_mix.lines.iter().filter_map(of_smd).collect());
    let own = ("cohort".to_owned(), ColumnValues::Borrowed(cohort));
    csv_text(std::iter::once(own).chain(columns(&all)).collect())
}

/// The rows of one cohort.
fn of_cohort(page: &ExternalPage<'_>, name: &str, report: &EvaluationReport) -> Vec<FlatRow> {
    let Some(class) = &page.class else { return rows(report) };
    let side = usize::from(name != COHORTS[0]);
    flat_rows(class.reports[side], report, class.groups[side], class.horizon.map(|of| of[side]))
}

fn differences(metric: &CohortMetric) -> Vec<FlatRow> {
    let row =
        |attribute: &str, kind, level: String, of: &Difference| of_difference(&metric.name, attribute, kind, level, of);
    let all = row("", "all", String::new(), &metric.overall.difference);
    let of_attributes = metric.attributes.iter().flat_map(|by| {
        let groups = by.groups.iter().map(|(level, both)| row(&by.attribute, "group", level.clone(), &both.difference));
        let gap = row(&by.attribute, "gap", String::new(), &by.gap.difference);
        let changes = by.changes.iter().map(|change| {
            let level = format!("{} minus {}", change.first, change.second);
            row(&by.attribute, "change", level, &change.difference)
        });
        groups.chain([gap]).chain(changes).collect::<Vec<_>>()
    });
    std::iter::once(all).chain(of_attributes).collect()
}

fn of_cell(line: &CaseMixLine, cell: &CaseMixCell) -> Vec<FlatRow> {
    let numbers = [
        ("case-mix-n", cell.n.map(|n| n as f64)),
        ("case-mix-share", cell.share),
        ("case-mix-value", cell.value),
        ("case-mix-deviation", cell.deviation),
    ];
    let known = numbers.into_iter().filter(|(_, value)| value.is_some());
    known.map(|(kind, value)| of_line(line, kind, value)).collect()
}

fn of_smd(line: &CaseMixLine) -> Option<FlatRow> {
    (line.smd.is_some() || line.undefined.is_some()).then(|| of_line(line, "case-mix-smd", line.smd))
}

/// The level of an attribute is the level of the row, any other name its metric.
fn of_line(line: &CaseMixLine, kind: &'static str, value: Option<f64>) -> FlatRow {
    let attribute = line.attribute.as_deref().unwrap_or_default();
    let (metric, level) = if attribute.is_empty() || line.name == attribute {
        (line.name.as_str(), "")
    } else {
        (attribute, line.name.as_str())
    };
    of_number(metric, (attribute, level), kind, value, line.undefined.as_deref())
}
