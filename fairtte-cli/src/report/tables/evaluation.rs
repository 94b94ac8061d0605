//! The tables of the page of one evaluation.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::MetricReport;

use super::super::format::percent;
use super::super::groups_table::{GroupsTable, LineOfModels, Predicted};
use super::super::metric_table::{TableRow, table_rows};
use super::super::names::{names, names_of_metrics};
use super::super::p_matrix::{ABOUT, MatrixRow, PMatrix, p_matrices};
use super::super::{Page, differences, rows};
use super::{Line, Table};
use crate::sensitivity::Sensitivity;

/// "Table 1" by group, then of every metric its values and the differences between groups.
pub(crate) fn tables_of_page(page: &Page<'_>) -> Vec<Table> {
    let report = page.evaluation;
    let mut tables: Vec<Table> = groups(&[("model", report)], page.time_unit).into_iter().collect();
    tables.extend(tables_of_metrics(report, page.time_unit, page.censoring));
    if let Some(Sensitivity::Report(sensitivity)) = page.sensitivity {
        tables.extend(super::super::sensitivity::tables(sensitivity));
    }
    tables
}

/// Of every metric its values and the differences between groups.
pub(in super::super) fn tables_of_metrics(report: &EvaluationReport, time_unit: &str, censoring: &str) -> Vec<Table> {
    let mut tables = Vec::new();
    for (metric, id) in report.metrics.iter().zip(names_of_metrics(&report.metrics)) {
        if rows::same_as(report, metric).is_some() {
            continue;
        }
        tables.push(of_metric(report, (time_unit, censoring), metric, &id));
        tables.extend(differences_of(report, metric, &id));
        let matrices = p_matrices(metric);
        let attributes = names(matrices.iter().map(|matrix| matrix.attribute.as_str()));
        tables.extend(matrices.into_iter().zip(attributes).map(|(matrix, by)| p_values(matrix, &format!("{id}_{by}"))));
    }
    tables
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

/// The head of the column of intervals.
pub(in super::super) fn interval_name(report: &EvaluationReport) -> String {
    match report.settings.replicates {
        0 => "interval".to_owned(),
        _ => format!("{} interval", percent(report.settings.level)),
    }
}

/// "Table 1" by group, with the predictions of one model or of several.
pub(super) fn groups(models: &[(&str, &EvaluationReport)], time_unit: &str) -> Option<Table> {
    let (_, report) = models.first()?;
    let table = GroupsTable::of(models, time_unit)?;
    let by = rows::horizon(report, time_unit).map_or_else(String::new, |time| format!(", and the risk by {time}"));
    let mut header = texts(["group", "n", "subjects", "events", "censored", "median follow-up", "observed risk"]);
    if !time_unit.is_empty() {
        header[5] = format!("{} ({time_unit})", header[5]);
    }
    // The interval of Kaplan-Meier does not come from the bootstrap.
    header.push(format!("{} interval", percent(report.settings.level)));
    for name in &table.models {
        let of = if table.models.len() > 1 { format!(", {name}") } else { String::new() };
        header.extend(["predicted risk", "observed / predicted"].map(|column| format!("{column}{of}")));
    }
    let texts_of = |of: &Predicted| [of.risk.clone(), of.observed_by_predicted()];
    let line = |LineOfModels { line, predictions }: LineOfModels| match line.kind {
        "attribute" => Line::Heading(line.name),
        kind => {
            let counts = [line.n, line.subjects, line.events].map(|n| n.to_string());
            let risks = [line.censored, line.follow_up, line.observed, line.observed_ends];
            let cells = std::iter::once(line.name).chain(counts).chain(risks);
            Line::Cells {
                cells: cells.chain(predictions.iter().flat_map(texts_of)).collect(),
                indented: kind == "group",
                remarks: line.remark.map(|why| format!("no risk: {why}")).into_iter().collect(),
            }
        }
    };
    let (name, caption) = ("groups".to_owned(), format!("Who was evaluated{by}."));
    Some(Table { name, caption, header, lines: table.lines.into_iter().map(line).collect() })
}

fn of_metric(
    report: &EvaluationReport,
    (time_unit, censoring): (&str, &str),
    metric: &MetricReport,
    id: &str,
) -> Table {
    let has_pairs = metric.overall.n_comparable.is_some();
    let mut header = texts(["group", "value"]);
    header.push(interval_name(report));
    header.extend(texts(["n", rows::events_column(report), "subjects"]));
    header.extend(has_pairs.then(|| "comparable pairs".to_owned()));
    let line = |row: TableRow| match row.kind {
        "attribute" if row.remarks.is_empty() => Line::Heading(row.name),
        "attribute" => Line::Heading(format!("{} ({})", row.name, row.remarks.join("; "))),
        kind => {
            let numbers = [row.n, row.events, row.subjects].map(|n| n.to_string());
            let cells = [row.name, row.value, row.interval].into_iter().chain(numbers);
            Line::Cells {
                cells: cells.chain(has_pairs.then_some(row.pairs)).collect(),
                indented: kind != "all",
                remarks: row.remarks,
            }
        }
    };
    let mut caption = format!("{} ({})", rows::caption(metric), rows::direction(metric));
    if report.class.is_none() && report.masks.is_none() {
        caption = format!("{caption}. Curves read: {}", report.reading);
    }
    if rows::uses_window(metric) {
        let window = rows::window(report, time_unit);
        caption = format!("{caption}; {window}; censoring curve of {censoring}");
    }
    caption = format!("{caption}. Intervals: {}.", rows::bootstrap(&report.settings));
    if let Some(about) = rows::caution(metric) {
        caption = format!("{caption} Caution: {about}.");
    }
    Table {
        name: format!("metric-{id}"),
        caption,
        header,
        lines: table_rows(metric, report).into_iter().map(line).collect(),
    }
}

fn differences_of(report: &EvaluationReport, metric: &MetricReport, id: &str) -> Option<Table> {
    let line = |line: differences::Line| match line.kind {
        "attribute" => Line::Heading(line.name),
        "note" => Line::Note(line.name),
        _ => Line::Cells {
            cells: vec![line.name, line.value, line.interval, line.p],
            indented: true,
            remarks: line.remarks,
        },
    };
    let lines: Vec<Line> = differences::lines(metric, report).into_iter().map(line).collect();
    let mut header = texts(["compared", "value"]);
    header.extend([interval_name(report), "p".to_owned()]);
    let caption = format!("{}.", differences::caption(metric));
    (!lines.is_empty()).then(|| Table { name: format!("differences-{id}"), caption, header, lines })
}

fn p_values(matrix: PMatrix, id: &str) -> Table {
    let line = |row: MatrixRow| Line::Cells {
        cells: std::iter::once(row.name).chain(row.cells.into_iter().map(|cell| cell.text)).collect(),
        indented: false,
        remarks: Vec::new(),
    };
    Table {
        name: format!("p-values-{id}"),
        caption: format!("{}, {ABOUT}.", matrix.caption),
        header: std::iter::once("group".to_owned()).chain(matrix.groups).collect(),
        lines: matrix.rows.into_iter().map(line).collect(),
    }
}
