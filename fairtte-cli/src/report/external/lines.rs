//! The numbers of both cohorts as lines of a table.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{CohortMetric, CohortReports, Estimate, GroupDifference, InBoth, MetricReport};
use serde::Serialize;

use super::super::differences::{ends, name, remarks_on};
use super::super::format::{interval, number, p_value, short, value};
use super::super::models::signed;
use super::super::rows;
use super::super::verdict::percent_of;
use crate::case_mix::{CaseMix, CaseMixCell, CaseMixKind, CaseMixLine};

/// One metric with its lines.
#[derive(Debug, PartialEq, Serialize)]
pub(in super::super) struct MetricLines<'a> {
    pub(in super::super) label: &'a str,
    pub(in super::super) name: &'a str,
    pub(in super::super) direction: String,
    pub(in super::super) convention: &'a str,
    /// The metric with the same numbers in both cohorts, which is named instead of lines.
    pub(in super::super) same_as: Option<&'a str>,
    pub(in super::super) lines: Vec<Line>,
    /// Differences of the changes of two groups.
    pub(in super::super) changes: Vec<ChangeLine>,
}

/// The whole sample, a group or a gap.
#[derive(Debug, PartialEq, Serialize)]
pub(in super::super) struct Line {
    /// `all`, `group` or `summary` (a gap).
    pub(in super::super) kind: &'static str,
    pub(in super::super) name: String,
    pub(in super::super) internal: Side,
    pub(in super::super) external: Side,
    pub(in super::super) difference: String,
    pub(in super::super) interval: String,
    pub(in super::super) p: String,
    pub(in super::super) holm: String,
    pub(in super::super) remarks: Vec<String>,
}

/// One cohort.
#[derive(Debug, PartialEq, Serialize)]
pub(in super::super) struct Side {
    pub(in super::super) value: String,
    pub(in super::super) interval: Option<String>,
    pub(in super::super) n: usize,
    pub(in super::super) events: usize,
    pub(in super::super) subjects: usize,
}

/// The change of one group minus that of another.
#[derive(Debug, PartialEq, Serialize)]
pub(in super::super) struct ChangeLine {
    pub(in super::super) name: String,
    pub(in super::super) difference: String,
    pub(in super::super) interval: String,
    pub(in super::super) p: String,
    pub(in super::super) holm: String,
    pub(in super::super) remarks: Vec<String>,
}

/// Every metric in the order of the settings.
pub(in super::super) fn metric_lines(reports: &CohortReports) -> Vec<MetricLines<'_>> {
    let of_metric = |(place, found): (usize, &'_ CohortMetric)| {
        let metric = &reports.internal.metrics[place];
        MetricLines {
            label: &metric.label,
            name: &metric.name,
            direction: rows::direction(metric),
            convention: &metric.convention,
            same_as: same_as(reports, place).map(|other| other.label.as_str()),
            lines: lines(found, metric, &reports.external),
            changes: changes(found, &reports.external),
        }
    };
    reports.metrics.iter().enumerate().map(of_metric).collect()
}

/// The earlier metric whose numbers are the same in both cohorts.
fn same_as(reports: &CohortReports, place: usize) -> Option<&MetricReport> {
    let own = rows::same_as(&reports.internal, &reports.internal.metrics[place])?;
    let other = rows::same_as(&reports.external, &reports.external.metrics[place])?;
    (own.name == other.name).then_some(own)
}

fn lines(metric: &CohortMetric, own: &MetricReport, report: &EvaluationReport) -> Vec<Line> {
    let mut lines = vec![Line::of("all", "all".to_owned(), &metric.overall, report)];
    for by in &metric.attributes {
        let group =
            |(level, both): &(String, InBoth)| Line::of("group", format!("{}: {level}", by.attribute), both, report);
        lines.extend(by.groups.iter().map(group));
        let mut gap = Line::of("summary", format!("gap by {}", by.attribute), &by.gap, report);
        let left_out = by.groups.len() - by.compared.len();
        if left_out > 0 && by.gap.internal.value.is_some() {
            let of = by.compared.join(", ");
            gap.remarks.insert(0, format!("of the groups with {} in both cohorts: {of}", rows::enough(own)));
        }
        lines.push(gap);
    }
    lines
}

impl Line {
    fn of(kind: &'static str, name: String, both: &InBoth, report: &EvaluationReport) -> Self {
        let InBoth { internal, external, difference } = both;
        Self {
            kind,
            name,
            internal: Side::of(internal),
            external: Side::of(external),
            difference: difference.value.map_or_else(|| "undefined".to_owned(), signed),
            interval: ends(difference).unwrap_or_else(|| "none".to_owned()),
            p: difference.p_value.map_or_else(String::new, p_value),
            holm: difference.p_holm.map_or_else(String::new, p_value),
            remarks: remarks_on(difference, report),
        }
    }
}

impl Side {
    fn of(estimate: &Estimate) -> Self {
        let Estimate { n, n_events: events, n_subjects: subjects, .. } = *estimate;
        Self { value: value(estimate), interval: interval(estimate), n, events, subjects }
    }
}

fn changes(metric: &CohortMetric, report: &EvaluationReport) -> Vec<ChangeLine> {
    let line = |(attribute, change): (&str, &GroupDifference)| {
        let difference = &change.difference;
        ChangeLine {
            name: format!("{attribute}: {}", name(change)),
            difference: difference.value.map_or_else(|| "undefined".to_owned(), signed),
            interval: ends(difference).unwrap_or_else(|| "none".to_owned()),
            p: difference.p_value.map_or_else(String::new, p_value),
            holm: difference.p_holm.map_or_else(String::new, p_value),
            remarks: remarks_on(difference, report),
        }
    };
    let of = metric.attributes.iter().flat_map(|by| by.changes.iter().map(|change| (by.attribute.as_str(), change)));
    of.map(line).collect()
}

/// One line of the case mix in words.
#[derive(Debug, PartialEq, Serialize)]
pub(in super::super) struct CaseMixText {
    /// `all`, `attribute` or `group`.
    pub(in super::super) kind: &'static str,
    pub(in super::super) name: String,
    pub(in super::super) internal: String,
    pub(in super::super) external: String,
    pub(in super::super) smd: String,
    /// Whether the difference is above [`SMALL`].
    pub(in super::super) is_large: bool,
    pub(in super::super) remark: Option<String>,
}

/// A standardised difference above this is not small (Austin 2009).
pub(in super::super) const SMALL: f64 = 0.1;

/// The case mix line by line; times have `unit`.
pub(in super::super) fn case_mix_lines(mix: &CaseMix, horizon: Option<&str>, unit: &str) -> Vec<CaseMixText> {
    mix.lines.iter().map(|line| case_mix_line(line, horizon, unit)).collect()
}

fn case_mix_line(line: &CaseMixLine, horizon: Option<&str>, unit: &str) -> CaseMixText {
    let is_risk = line.name.ends_with("at the horizon");
    let mut name = match horizon {
        Some(horizon) => line.name.replace("at the horizon", &format!("by {horizon}")),
        None => line.name.clone(),
    };
    // Its groups have the name of the attribute alone.
    if line.kind == CaseMixKind::Number && line.attribute.is_some() {
        name.push_str(", mean (SD)");
    }
    if !unit.is_empty() && (line.kind == CaseMixKind::Time || line.name == CaseMix::OBSERVED_TIME) {
        name = format!("{name}, {unit}");
    }
    let text = |cell: &CaseMixCell| cell_text(cell, line.kind, is_risk);
    let (internal, external) = (text(&line.internal), text(&line.external));
    CaseMixText {
        kind: match line.kind {
            CaseMixKind::Attribute => "attribute",
            CaseMixKind::Level => "group",
            _ => "all",
        },
        name,
        internal,
        external,
        smd: line.smd.map_or_else(String::new, number),
        is_large: line.smd.is_some_and(|smd| smd.abs() > SMALL),
        remark: line.undefined.clone(),
    }
}

fn cell_text(cell: &CaseMixCell, kind: CaseMixKind, is_risk: bool) -> String {
    let none = || "none".to_owned();
    let number = |value: f64| if is_risk { percent_of(value) } else { short(value) };
    match kind {
        CaseMixKind::Count => cell.n.map_or_else(none, |n| n.to_string()),
        CaseMixKind::Share => cell.share.map_or_else(none, percent_of),
        CaseMixKind::Time => cell.value.map_or_else(|| "not reached".to_owned(), short),
        CaseMixKind::Number => match (cell.value, cell.deviation) {
            (Some(mean), Some(deviation)) => format!("{} ({})", number(mean), number(deviation)),
            (Some(mean), None) => number(mean),
            (None, _) => none(),
        },
        CaseMixKind::Attribute => cell.n.map_or_else(none, |n| format!("n = {n}")),
        CaseMixKind::Level => match (cell.n, cell.share) {
            (Some(n), Some(share)) => format!("{n} ({})", percent_of(share)),
            (n, _) => n.map_or_else(none, |n| n.to_string()),
        },
    }
}
