//! The HTML page of an external validation.

use fairtte_metrics::evaluation::{CalibrationCurve, GroupSummary};
use serde::Serialize;

use super::super::ReportError;
use super::super::classes::{ClassTable, bins};
use super::super::download::Download;
use super::super::format::{count, number, percent};
use super::super::names::names_of_metrics;
use super::super::plots::cohort_forest;
use super::super::rows;
use super::super::sides::{SideBySide, calibration_of_cohorts};
use super::super::template::{environment, fill_in};
use super::super::verdict::{Ratio, percent_of};
use super::lines::{CaseMixText, Line, MetricLines, SMALL, case_mix_lines, metric_lines};
use super::{ExternalPage, external_csv, external_verdict};

const TEMPLATE: &str = include_str!("external.html");

pub(super) fn render(page: &ExternalPage<'_>) -> Result<String, ReportError> {
    fill_in(&environment(TEMPLATE)?, &Context::new(page)?)
}

#[derive(Serialize)]
struct Context<'a> {
    title: &'a str,
    cohorts: [Cohort<'a>; 2],
    warnings: &'a [String],
    notes: &'a [String],
    facts: &'a [(String, String)],
    verdict: Vec<String>,
    summary: Vec<SummaryLine>,
    /// Where a class is predicted.
    class: Option<Class<'a>>,
    /// The title of columns with numbers of events.
    events: &'static str,
    reading: &'a str,
    window: String,
    rule: Option<&'a str>,
    /// What the common times cut.
    cut: Vec<String>,
    horizon: Option<String>,
    bootstrap: String,
    level: String,
    has_intervals: bool,
    has_attributes: bool,
    censoring: &'a str,
    metrics: Vec<Metric<'a>>,
    calibration: Vec<SideBySide>,
    risks: Vec<RiskLine>,
    case_mix: Vec<CaseMixText>,
    small: String,
    csv: Download<'a>,
}

/// What the page has of a class.
#[derive(Serialize)]
struct Class<'a> {
    threshold: &'a str,
    /// What leaving out the censored does in each cohort; empty where the class is not made from times.
    left_out: Vec<String>,
    tables: Vec<ClassTable>,
    ece: String,
}

#[derive(Serialize)]
struct Cohort<'a> {
    name: &'static str,
    who: &'a str,
    samples: String,
}

/// A line of the table at the top, with the name of its metric.
#[derive(Serialize)]
struct SummaryLine {
    name: String,
    about: String,
    line: Line,
}

#[derive(Serialize)]
struct Metric<'a> {
    #[serde(flatten)]
    lines: MetricLines<'a>,
    window: Option<String>,
    forest: Option<String>,
}

/// The risks of one group in both cohorts.
#[derive(Serialize)]
pub(super) struct RiskLine {
    /// `all`, `attribute` or `group`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) sides: [RiskSide; 2],
}

/// Risks at the horizon, or probabilities of a class; an event is then a positive sample.
#[derive(Default, Serialize)]
pub(super) struct RiskSide {
    pub(super) events: String,
    pub(super) observed: String,
    pub(super) predicted: String,
    pub(super) ratio: String,
    pub(super) ratio_interval: Option<String>,
    pub(super) ici: String,
    pub(super) remark: Option<String>,
}

impl RiskSide {
    /// That of a cohort without the group.
    pub(super) fn absent() -> Self {
        let none = || "none".to_owned();
        Self {
            events: none(),
            observed: none(),
            predicted: none(),
            ratio: none(),
            ratio_interval: None,
            ici: none(),
            remark: Some("no such group".to_owned()),
        }
    }
}

impl<'a> Context<'a> {
    fn new(page: &ExternalPage<'a>) -> Result<Self, ReportError> {
        let reports = page.reports;
        let cohort = |name, who, report: &fairtte_metrics::EvaluationReport| {
            let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
            Cohort { name, who, samples: format!("{samples} of {subjects}, {}", rows::events(report)) }
        };
        let report = &reports.external;
        let horizon = rows::horizon(report, page.time_unit);
        Ok(Self {
            title: page.title,
            cohorts: [cohort("Internal", page.internal, &reports.internal), cohort("External", page.external, report)],
            warnings: page.warnings,
            notes: page.notes,
            facts: page.facts,
            verdict: external_verdict(page),
            summary: summary(page),
            class: page.class.as_ref().map(|class| Class {
                threshold: class.threshold,
                left_out: class.left_out(page.time_unit),
                tables: class.tables(page.time_unit),
                ece: bins(&class.reports[1].class),
            }),
            events: rows::events_column(report),
            reading: &report.reading,
            window: rows::window(report, page.time_unit),
            rule: report.times.as_ref().map(|window| window.rule.as_str()),
            cut: page.cut(),
            bootstrap: rows::bootstrap(&report.settings),
            level: percent(report.settings.level),
            has_intervals: report.settings.replicates > 0,
            has_attributes: reports.metrics.iter().any(|metric| !metric.attributes.is_empty()),
            censoring: page.censoring,
            metrics: metrics(page)?,
            calibration: calibration_of_cohorts(&[("internal", &reports.internal), ("external", report)])?,
            risks: match &page.class {
                Some(class) => class.shares([&reports.internal, report]),
                None => risks(page),
            },
            case_mix: case_mix_lines(page.case_mix, horizon.as_deref(), page.time_unit),
            horizon,
            small: number(SMALL).trim_end_matches('0').to_owned(),
            csv: Download::new(page.csv, &external_csv(page)?),
        })
    }
}

/// Every metric over all samples, and its gaps.
fn summary(page: &ExternalPage<'_>) -> Vec<SummaryLine> {
    let shown = metric_lines(page.reports).into_iter().filter(|metric| metric.same_as.is_none());
    let lines = shown.flat_map(|metric| {
        let (label, direction) = (metric.label.to_owned(), metric.direction.clone());
        metric.lines.into_iter().filter(|line| line.kind != "group").map(move |line| {
            if line.kind == "all" {
                SummaryLine { name: label.clone(), about: direction.clone(), line }
            } else {
                SummaryLine { name: line.name.clone(), about: "0 = equal".to_owned(), line }
            }
        })
    });
    lines.collect()
}

fn metrics<'a>(page: &ExternalPage<'a>) -> Result<Vec<Metric<'a>>, ReportError> {
    let reports = page.reports;
    let ids = names_of_metrics(&reports.internal.metrics);
    let metric = |((lines, id), place): ((MetricLines<'a>, String), usize)| {
        let both = [&reports.internal.metrics[place], &reports.external.metrics[place]];
        let forest = match lines.same_as {
            Some(_) => None,
            None => Some(cohort_forest(both, &reports.metrics[place], &format!("forest-{id}"))?),
        };
        let window = rows::uses_window(both[1]).then(|| rows::window(&reports.external, page.time_unit));
        Ok(Metric { lines, window, forest })
    };
    metric_lines(reports).into_iter().zip(ids).zip(0..).map(metric).collect()
}

/// All samples, then the groups of either cohort.
fn risks(page: &ExternalPage<'_>) -> Vec<RiskLine> {
    let [internal, external] = [&page.reports.internal, &page.reports.external];
    if internal.horizon.is_none() {
        return Vec::new();
    }
    let shared = |group: &&GroupSummary| {
        let is_shared =
            |name: &String| external.groups_summary.iter().any(|other| other.attribute.as_ref() == Some(name));
        group.attribute.as_ref().is_none_or(is_shared)
    };
    let own: Vec<&GroupSummary> = internal.groups_summary.iter().filter(shared).collect();
    let mut lines = Vec::new();
    for groups in own.chunk_by(|a, b| a.attribute == b.attribute) {
        let attribute = groups[0].attribute.as_ref();
        if let Some(name) = attribute {
            lines.push(RiskLine { kind: "attribute", name: name.clone(), sides: Default::default() });
        }
        let of_other = external.groups_summary.iter().filter(|other| other.attribute.as_ref() == attribute);
        let more = of_other.filter(|other| groups.iter().all(|own| own.level != other.level));
        let levels = groups.iter().copied().chain(more).map(|group| &group.level);
        lines.extend(levels.map(|level| RiskLine {
            kind: if attribute.is_some() { "group" } else { "all" },
            name: level.clone().unwrap_or_else(|| "all".to_owned()),
            sides: [internal, external].map(|report| risk_side(report, attribute, level.as_ref())),
        }));
    }
    lines
}

fn risk_side(
    report: &fairtte_metrics::EvaluationReport,
    attribute: Option<&String>,
    level: Option<&String>,
) -> RiskSide {
    let none = || "none".to_owned();
    let is_it = |a: &Option<String>, l: &Option<String>| a.as_ref() == attribute && l.as_ref() == level;
    let Some(group) = report.groups_summary.iter().find(|group| is_it(&group.attribute, &group.level)) else {
        return RiskSide::absent();
    };
    let risk = group.at_horizon.as_ref();
    let curve: Option<&CalibrationCurve> =
        report.calibration.iter().find(|curve| is_it(&curve.attribute, &curve.level));
    let (ratio, ratio_interval) = Ratio::of(group, report).map_or_else(|| (none(), None), Ratio::texts);
    RiskSide {
        events: risk.map_or_else(none, |risk| risk.n_events.to_string()),
        observed: risk.map_or_else(none, |risk| percent_of(risk.observed)),
        predicted: risk.map_or_else(none, |risk| percent_of(risk.predicted)),
        ratio,
        ratio_interval,
        ici: curve.and_then(|curve| curve.ici).map_or_else(none, number),
        remark: group.at_horizon_undefined.clone(),
    }
}
