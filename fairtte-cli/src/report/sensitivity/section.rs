//! The section of the page.

use fairtte_metrics::sensitivity::{AttributeSensitivity, MetricSensitivity, SensitivityReport};
use serde::Serialize;

use super::super::ReportError;
use super::super::format::percent;
use super::super::names::names;
use super::super::plots::sensitivity_figure;
use super::{Line, shown, words};
use crate::sensitivity::Sensitivity;

/// What the page shows.
#[derive(Serialize)]
pub(in super::super) struct SensitivitySection {
    undefined: Option<String>,
    method: String,
    level: String,
    has_intervals: bool,
    attributes: Vec<Attribute>,
}

#[derive(Serialize)]
struct Attribute {
    name: Option<String>,
    follow_up: Vec<String>,
    metrics: Vec<Metric>,
}

#[derive(Serialize)]
struct Metric {
    label: String,
    verdict: String,
    figure: Option<String>,
    lines: Vec<Row>,
    /// Names of the levels, and their values at every hazard ratio.
    levels: Vec<String>,
    groups: Vec<Vec<String>>,
}

#[derive(Serialize)]
struct Row {
    ratio: String,
    overall: [String; 2],
    gap: Option<[String; 2]>,
    worst: String,
}

impl SensitivitySection {
    pub(in super::super) fn new(sensitivity: &Sensitivity, time_unit: &str) -> Result<Self, ReportError> {
        match sensitivity {
            Sensitivity::Undefined(reason) => Ok(Self {
                undefined: Some(reason.clone()),
                method: String::new(),
                level: String::new(),
                has_intervals: false,
                attributes: vec![],
            }),
            Sensitivity::Report(report) => Self::of_report(report, time_unit),
        }
    }

    fn of_report(report: &SensitivityReport, time_unit: &str) -> Result<Self, ReportError> {
        let texts = report.attributes.iter().flat_map(|of| shown(of).map(move |metric| name_of(of, metric)));
        let texts: Vec<String> = texts.collect();
        let mut ids = names(texts.iter().map(String::as_str)).into_iter();
        let mut metric = |attribute: &AttributeSensitivity, metric: &MetricSensitivity| {
            let id = ids.next().unwrap_or_default(); // one name per metric
            let figure = sensitivity_figure(metric, attribute.attribute.as_deref(), &format!("sensitivity-{id}"))?;
            let levels = metric.points.first().map_or(&[][..], |point| &point.groups);
            let values = |point: &fairtte_metrics::sensitivity::SensitivityPoint| {
                point.groups.iter().map(|group| super::super::format::value(&group.estimate)).collect()
            };
            Ok(Metric {
                label: metric.label.clone(),
                verdict: words::verdict(attribute, metric),
                figure,
                lines: metric.points.iter().map(Line::new).map(Row::of).collect(),
                levels: levels.iter().map(|group| group.level.clone()).collect(),
                groups: metric.points.iter().map(values).collect(),
            })
        };
        let mut attributes = Vec::with_capacity(report.attributes.len());
        for attribute in &report.attributes {
            attributes.push(Attribute {
                name: attribute.attribute.clone(),
                follow_up: words::follow_up(attribute, time_unit),
                metrics: shown(attribute).map(|of| metric(attribute, of)).collect::<Result<_, ReportError>>()?,
            });
        }
        Ok(Self {
            undefined: None,
            method: words::method(report),
            level: percent(report.level),
            has_intervals: report.settings.replicates > 0,
            attributes,
        })
    }
}

impl Row {
    fn of(line: Line) -> Self {
        let Line { ratio, overall, gap, worst } = line;
        Self { ratio, overall, gap, worst: worst.unwrap_or_else(|| "none".to_owned()) }
    }
}

/// The text that names of figures and tables are made of: `c-td: race`.
pub(super) fn name_of(attribute: &AttributeSensitivity, metric: &MetricSensitivity) -> String {
    let name = if metric.name == "c_td_antolini_strict" { "c-td" } else { &metric.name };
    format!("{name}: {}", attribute.attribute.as_deref().unwrap_or("all"))
}
