//! The tables of the page of several models.

use fairtte_metrics::EvaluationReport;

use super::super::models::{ModelsPage, OfPair, SummaryRow, of_metric, shown_metrics, summary};
use super::super::names::{names, names_of_metrics};
use super::evaluation::{groups, interval_name};
use super::{Line, Table};

/// "Table 1" by group, the summary of all models, then of every metric the differences of every model from the reference.
pub(crate) fn tables_of_models(page: &ModelsPage<'_>) -> Vec<Table> {
    let reports = page.reports;
    let Some((_, report)) = reports.models.first() else { return Vec::new() };
    let shown = shown_metrics(reports);
    let interval = interval_name(report);
    let models: Vec<String> = reports.models.iter().map(|(name, _)| name.clone()).collect();
    let with = if report.settings.replicates > 0 { format!(", with {interval}s") } else { String::new() };
    let rows = shown.iter().flat_map(summary).map(of_summary);
    let of_models: Vec<(&str, &EvaluationReport)> =
        reports.models.iter().map(|(name, report)| (name.as_str(), report)).collect();
    let mut tables: Vec<Table> = groups(&of_models, page.time_unit).into_iter().collect();
    tables.push(Table {
        name: "summary".to_owned(),
        caption: format!("Every metric over all samples and its gaps between groups{with}."),
        header: std::iter::once("metric".to_owned()).chain(models).collect(),
        lines: rows.collect(),
    });
    let metrics = shown.iter().map(|models| models[0].1);
    for (metric, id) in metrics.clone().zip(names_of_metrics(metrics)) {
        let pairs = of_metric(reports, &metric.name);
        let of_pairs = names(pairs.iter().map(|pair| pair.name.as_str()));
        for (pair, of_pair) in pairs.iter().zip(of_pairs) {
            tables.push(Table {
                name: format!("differences-{id}_{of_pair}"),
                caption: format!("{} in {}.", pair.name, metric.label),
                header: ["samples", "difference", &interval, "p", "Holm"].map(str::to_owned).to_vec(),
                lines: lines(pair),
            });
        }
    }
    tables
}

fn of_summary(row: SummaryRow) -> Line {
    let cell = |cell: super::super::models::Cell| match cell.interval {
        Some(interval) => format!("{} ({interval})", cell.value),
        None => cell.value,
    };
    let name = format!("{} ({})", row.name, row.about);
    let cells = std::iter::once(name).chain(row.cells.into_iter().map(cell)).collect();
    Line::Cells { cells, indented: row.kind != "all", remarks: Vec::new() }
}

fn lines(pair: &OfPair) -> Vec<Line> {
    let line = |line: &super::super::models::DifferenceLine| Line::Cells {
        cells: [&line.name, &line.value, &line.interval, &line.p, &line.holm].map(Clone::clone).to_vec(),
        indented: line.kind != "all",
        remarks: line.remarks.clone(),
    };
    pair.lines.iter().map(line).collect()
}
