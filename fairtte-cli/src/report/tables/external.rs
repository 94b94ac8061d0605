//! The tables of the page of an external validation.

use super::super::classes::ClassTable;
use super::super::external::{
    CaseMixText, ExternalPage, Line as CohortLine, MetricLines, case_mix_lines, metric_lines,
};
use super::super::names::names_of_metrics;
use super::super::rows;
use super::evaluation::interval_name;
use super::{Line, Table};

/// The case mix, then of every metric both cohorts and their difference, and the differences of changes.
pub(crate) fn tables_of_external(page: &ExternalPage<'_>) -> Vec<Table> {
    let horizon = rows::horizon(&page.reports.internal, page.time_unit);
    let mix = case_mix_lines(page.case_mix, horizon.as_deref(), page.time_unit);
    let mut tables = vec![Table {
        name: "case-mix".to_owned(),
        caption: "Case mix of the internal test part and the external data; SMD: standardised difference.".to_owned(),
        header: ["variable", "internal", "external", "SMD"].map(str::to_owned).to_vec(),
        lines: mix.into_iter().map(of_case_mix).collect(),
    }];
    let (interval, events) = (interval_name(&page.reports.external), rows::events_column(&page.reports.external));
    if let Some(class) = &page.class {
        tables.extend(class.tables(page.time_unit).into_iter().map(ClassTable::sheet));
    }
    for (metric, id) in metric_lines(page.reports).into_iter().zip(names_of_metrics(&page.reports.internal.metrics)) {
        if metric.same_as.is_none() {
            tables.extend(of_metric(&metric, (&id, events), &interval));
        }
    }
    tables
}

fn of_case_mix(line: CaseMixText) -> Line {
    let CaseMixText { kind, name, internal, external, smd, remark, .. } = line;
    Line::Cells {
        cells: vec![name, internal, external, smd],
        indented: kind == "group",
        remarks: remark.into_iter().map(|reason| format!("no SMD: {reason}")).collect(),
    }
}

fn of_metric(metric: &MetricLines<'_>, (id, events): (&str, &str), interval: &str) -> Vec<Table> {
    let header = ["samples", "internal", events, "external", events, "change", interval, "p", "Holm"];
    let mut tables = vec![Table {
        name: format!("external-{id}"),
        caption: format!("{} of both cohorts; change: external minus internal.", metric.label),
        header: header.map(str::to_owned).to_vec(),
        lines: metric.lines.iter().map(of_line).collect(),
    }];
    if !metric.changes.is_empty() {
        let line = |line: &super::super::external::ChangeLine| Line::Cells {
            cells: [&line.name, &line.difference, &line.interval, &line.p, &line.holm].map(Clone::clone).to_vec(),
            indented: false,
            remarks: line.remarks.clone(),
        };
        tables.push(Table {
            name: format!("changes-{id}"),
            caption: format!("{}: the change of the first group minus that of the second.", metric.label),
            header: ["groups", "difference", interval, "p", "Holm"].map(str::to_owned).to_vec(),
            lines: metric.changes.iter().map(line).collect(),
        });
    }
    tables
}

fn of_line(line: &CohortLine) -> Line {
    let cell = |side: &super::super::external::Side| match &side.interval {
        Some(interval) => format!("{} ({interval})", side.value),
        None => side.value.clone(),
    };
    let events = |n: usize| n.to_string();
    Line::Cells {
        cells: vec![
            line.name.clone(),
            cell(&line.internal),
            events(line.internal.events),
            cell(&line.external),
            events(line.external.events),
            line.difference.clone(),
            line.interval.clone(),
            line.p.clone(),
            line.holm.clone(),
        ],
        indented: line.kind != "all",
        remarks: line.remarks.clone(),
    }
}
