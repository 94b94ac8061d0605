//! The page: collects everything into one context and fills in the template.

use serde::Serialize;

use super::super::ReportError;
use super::super::format::{count, number, p_value, percent};
use super::super::plots::bias_figure;
use super::super::template::{environment, fill_in};
use super::table::reduction;
use super::{AttributeBias, BiasReport, Line};

const TEMPLATE: &str = include_str!("page.html");

pub(super) fn render(report: &BiasReport) -> Result<String, ReportError> {
    fill_in(&environment(TEMPLATE)?, &Context::new(report)?)
}

#[derive(Serialize)]
struct Context<'a> {
    samples: String,
    level: String,
    has_intervals: bool,
    facts: Vec<(&'static str, String)>,
    notes: &'a [String],
    statements: Vec<(&'a str, String)>,
    figures: Vec<Figure<'a>>,
    attributes: Vec<Attribute<'a>>,
    n_permutations: usize,
    n_replicates: usize,
    n_projections: usize,
    n_clusters: usize,
    n_bins: usize,
    min_events: usize,
}

#[derive(Serialize)]
struct Figure<'a> {
    title: &'a str,
    svg: String,
}

#[derive(Serialize)]
struct Attribute<'a> {
    name: &'a str,
    lines: Vec<Shown>,
    groups: Vec<(&'a str, usize, usize, usize)>,
    n_missing: usize,
}

/// A line of a table, every number as text.
#[derive(Serialize)]
struct Shown {
    name: &'static str,
    /// Why there are no numbers.
    undefined: Option<String>,
    value: String,
    interval: String,
    chance: String,
    above: String,
    p: String,
    p_holm: String,
    between: String,
    remarks: Vec<String>,
}

impl<'a> Context<'a> {
    fn new(report: &'a BiasReport) -> Result<Self, ReportError> {
        let settings = &report.settings;
        let figure = |(k, attribute): (usize, &'a AttributeBias)| {
            Ok(Figure { title: attribute.name(), svg: bias_figure(attribute, &format!("bias-{k}"))? })
        };
        let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
        Ok(Self {
            samples: format!("{samples} of {subjects}, {}", count(report.n_events, "event")),
            level: percent(settings.level),
            has_intervals: settings.n_replicates > 0,
            facts: facts(report),
            notes: &report.notes,
            statements: report.attributes.iter().map(|a| (a.name(), a.sentence())).collect(),
            figures: report.attributes.iter().enumerate().map(figure).collect::<Result<_, ReportError>>()?,
            attributes: report.attributes.iter().map(Attribute::new).collect(),
            n_permutations: settings.n_permutations,
            n_replicates: settings.n_replicates,
            n_projections: settings.n_projections,
            n_clusters: settings.n_clusters,
            n_bins: settings.n_bins,
            min_events: settings.min_group_size,
        })
    }
}

fn facts(report: &BiasReport) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("features", report.features.clone()),
        ("cohort", report.cohort.clone()),
        ("representation", reduction(report)),
    ];
    facts.extend(report.columns.iter().map(|text| ("columns and values", text.clone())));
    facts.push(("seed", report.settings.seed.to_string()));
    facts.push(("fairtte", env!("CARGO_PKG_VERSION").to_owned()));
    facts
}

impl<'a> Attribute<'a> {
    fn new(attribute: &'a AttributeBias) -> Self {
        let group = |group: &'a super::GroupCounts| (group.level.as_str(), group.n, group.n_events, group.n_subjects);
        Self {
            name: attribute.name(),
            lines: attribute.lines().into_iter().map(Shown::new).collect(),
            groups: attribute.groups.iter().map(group).collect(),
            n_missing: attribute.sources.n_missing,
        }
    }
}

impl Shown {
    fn new(line: Line) -> Self {
        let found = line.found.as_ref().ok();
        let text = |of: fn(&super::Found) -> Option<String>| found.and_then(of).unwrap_or_default();
        let ends = |(low, high): (f64, f64)| format!("{} to {}", number(low), number(high));
        Self {
            name: line.name,
            undefined: line.found.as_ref().err().cloned(),
            value: text(|found| Some(number(found.value))),
            interval: found.and_then(|found| found.interval).map_or_else(|| "none".to_owned(), ends),
            chance: text(|found| Some(number(found.chance))),
            above: text(|found| Some(number(found.corrected))),
            p: text(|found| found.p.map(p_value)),
            p_holm: text(|found| found.p_holm.map(p_value)),
            between: text(|found| Some(found.between.clone())),
            remarks: line.remarks,
        }
    }
}
