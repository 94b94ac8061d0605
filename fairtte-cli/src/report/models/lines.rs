//! The differences of the models in one metric as lines of a table.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{Difference, ModelPair, ModelReports};
use serde::Serialize;

use super::super::differences::{ends, remarks_on};
use super::super::format::{number, p_value};

/// One difference of a model and the reference.
#[derive(Debug, PartialEq, Serialize)]
pub(in super::super) struct Line {
    /// `all`, `group` or `summary` (a gap).
    pub(in super::super) kind: &'static str,
    pub(in super::super) name: String,
    pub(in super::super) value: String,
    pub(in super::super) interval: String,
    pub(in super::super) p: String,
    pub(in super::super) holm: String,
    pub(in super::super) remarks: Vec<String>,
}

/// The lines of one model.
#[derive(Debug, PartialEq, Serialize)]
pub(in super::super) struct OfPair {
    /// `Cox minus CNN`.
    pub(in super::super) name: String,
    pub(in super::super) lines: Vec<Line>,
}

/// The differences of every model from the reference in the metric of this name.
pub(in super::super) fn of_metric(reports: &ModelReports, metric: &str) -> Vec<OfPair> {
    let Some((_, report)) = reports.models.first() else { return Vec::new() };
    let pairs = reports.pairs.iter().filter(|pair| pair.metric == metric);
    pairs
        .map(|pair| OfPair { name: format!("{} minus {}", pair.first, pair.second), lines: lines(pair, report) })
        .collect()
}

fn lines(pair: &ModelPair, report: &EvaluationReport) -> Vec<Line> {
    let mut lines = vec![Line::of("all", "all".to_owned(), &pair.overall, report)];
    for of in &pair.attributes {
        let groups = of.groups.iter();
        lines.extend(groups.map(|(level, d)| Line::of("group", format!("{}: {level}", of.attribute), d, report)));
        lines.push(Line::of("summary", format!("gap by {}", of.attribute), &of.gap, report));
    }
    lines
}

impl Line {
    fn of(kind: &'static str, name: String, difference: &Difference, report: &EvaluationReport) -> Self {
        Self {
            kind,
            name,
            value: difference.value.map_or_else(|| "undefined".to_owned(), signed),
            interval: ends(difference).unwrap_or_else(|| "none".to_owned()),
            p: difference.p_value.map_or_else(String::new, p_value),
            holm: difference.p_holm.map_or_else(String::new, p_value),
            remarks: remarks_on(difference, report),
        }
    }
}

/// With its sign, except for 0.
pub(in super::super) fn signed(value: f64) -> String {
    let text = number(value);
    if value > 0.0 && text != "0.000" { format!("+{text}") } else { text }
}
