//! Sensitivity to informative censoring on the page, on the terminal, in the flat table and as tables for papers.

mod flat;
mod section;
#[cfg(test)]
mod tests;
mod words;

use fairtte_metrics::evaluation::Estimate;
use fairtte_metrics::sensitivity::{AttributeSensitivity, MetricSensitivity, SensitivityPoint, SensitivityReport};

use super::format::{clean, interval, percent, wrap};
use super::names::names;
use super::tables::{Line as TableLine, Table};
use crate::sensitivity::Sensitivity;

pub(super) use flat::flat_rows;
pub(super) use section::SensitivitySection;

const INDENT: &str = "  ";

/// Metrics with numbers of their own: not the second reading of the concordance, which hardly differs from the first.
fn shown(attribute: &AttributeSensitivity) -> impl Iterator<Item = &MetricSensitivity> {
    attribute.metrics.iter().filter(|metric| metric.name != "c_td_half")
}

/// One line of a table: a hazard ratio, the value of all samples, and of the groups their gap and the worst.
struct Line {
    ratio: String,
    overall: [String; 2],
    gap: Option<[String; 2]>,
    worst: Option<String>,
}

impl Line {
    fn new(point: &SensitivityPoint) -> Self {
        let numbers = |of: &Estimate| [super::format::value(of), interval(of).unwrap_or_else(|| "none".to_owned())];
        Self {
            ratio: words::ratio(point.hazard_ratio),
            overall: numbers(&point.overall),
            gap: point.gap.as_ref().map(numbers),
            worst: point.worst_group.clone(),
        }
    }
}

/// The same for a terminal of `width` columns.
pub(crate) fn render_sensitivity(sensitivity: &Sensitivity, width: usize) -> String {
    let mut text = "\nif censoring is informative\n".to_owned();
    let report = match sensitivity {
        Sensitivity::Report(report) => report,
        Sensitivity::Undefined(reason) => {
            push_wrapped(&mut text, INDENT, &format!("no analysis: {reason}"), width);
            return text;
        }
    };
    push_wrapped(&mut text, INDENT, &words::method(report), width);
    for attribute in &report.attributes {
        push_wrapped(&mut text, "", attribute.attribute.as_deref().unwrap_or("all samples"), width);
        for line in &words::follow_up(attribute, "") {
            push_wrapped(&mut text, INDENT, line, width);
        }
        for metric in shown(attribute) {
            push_wrapped(&mut text, INDENT, &metric.label, width);
            push_wrapped(&mut text, &INDENT.repeat(2), &words::verdict(attribute, metric), width);
            for line in terminal_lines(attribute, metric) {
                text.extend(line.chars().take(width));
                text.push('\n');
            }
        }
    }
    text
}

/// The lines of the table of one metric, with its head.
fn terminal_lines(attribute: &AttributeSensitivity, metric: &MetricSensitivity) -> Vec<String> {
    let row = |[ratio, all, ends, gap, ends_of_gap]: [&str; 5], worst: &str| {
        let line = format!("{ratio:>14} {all:>9}  {ends:<15} {gap:>7}  {ends_of_gap:<15}  {worst}");
        line.trim_end().to_owned()
    };
    let (gap, ends_of_gap, worst) = match attribute.attribute {
        Some(_) => ("gap", "interval", "worst"),
        None => ("", "", ""),
    };
    let head = row(["hazard ratio", "all", "interval", gap, ends_of_gap], worst);
    let lines = metric.points.iter().map(Line::new).map(|line| {
        let gap = line.gap.unwrap_or_default();
        let worst = clean(line.worst.as_deref().unwrap_or_default());
        row([&line.ratio, &line.overall[0], &line.overall[1], &gap[0], &gap[1]], &worst)
    });
    std::iter::once(head).chain(lines).collect()
}

fn push_wrapped(text: &mut String, indent: &str, line: &str, width: usize) {
    for part in wrap(&clean(line), width - indent.len()) {
        text.push_str(indent);
        text.push_str(&part);
        text.push('\n');
    }
}

/// The tables of a page: one per attribute and metric.
pub(super) fn tables(report: &SensitivityReport) -> Vec<Table> {
    let metrics =
        report.attributes.iter().flat_map(|attribute| shown(attribute).map(move |metric| (attribute, metric)));
    let metrics: Vec<_> = metrics.collect();
    let texts: Vec<String> = metrics.iter().map(|(attribute, metric)| section::name_of(attribute, metric)).collect();
    let ids = names(texts.iter().map(String::as_str));
    metrics.into_iter().zip(ids).map(|((attribute, metric), id)| table(report, attribute, metric, &id)).collect()
}

fn table(report: &SensitivityReport, attribute: &AttributeSensitivity, metric: &MetricSensitivity, id: &str) -> Table {
    let interval = if report.settings.replicates == 0 {
        "interval".to_owned()
    } else {
        format!("{} interval", percent(report.level))
    };
    let mut header = vec!["hazard ratio of the censored".to_owned(), "all".to_owned(), interval.clone()];
    if attribute.attribute.is_some() {
        header.extend(["gap".to_owned(), interval, "worst group".to_owned()]);
    }
    let line = |line: Line| {
        let has_gap = line.gap.is_some();
        let of_groups = line.gap.into_iter().flatten();
        let cells = std::iter::once(line.ratio).chain(line.overall).chain(of_groups);
        let worst = has_gap.then(|| line.worst.unwrap_or_else(|| "none".to_owned()));
        TableLine::Cells { cells: cells.chain(worst).collect(), indented: false, remarks: vec![] }
    };
    let mut lines: Vec<TableLine> = metric.points.iter().map(Line::new).map(line).collect();
    lines.push(TableLine::Note(words::verdict(attribute, metric)));
    let by = attribute.attribute.as_ref().map_or_else(String::new, |name| format!(" by {name}"));
    let caption = format!("{}{by} if censoring is informative. {}", metric.label, words::method(report));
    Table { name: format!("sensitivity-{id}"), caption, header, lines }
}
