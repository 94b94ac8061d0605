//! The sources of bias as a section: of the page about them, and of the report of a run.

use serde::{Deserialize, Serialize};

use super::super::ReportError;
use super::super::format::{number, p_value, percent};
use super::super::plots::bias_figure;
use super::{AttributeBias, BiasReport, Line};

/// What a section shows, every number as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) struct BiasSection {
    /// Where the features are from.
    features: String,
    /// The samples that are compared.
    samples: String,
    level: String,
    has_intervals: bool,
    /// Attribute and sentence.
    statements: Vec<(String, String)>,
    figures: Vec<Figure>,
    attributes: Vec<Attribute>,
    n_permutations: usize,
    n_replicates: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    title: String,
    svg: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Attribute {
    name: String,
    lines: Vec<Shown>,
    groups: Vec<(String, usize, usize, usize)>,
    n_missing: usize,
}

/// A line of a table, every number as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    name: String,
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

impl BiasSection {
    /// The section of a report.
    ///
    /// # Errors
    /// [`ReportError`] if a figure cannot be drawn.
    pub(crate) fn new(report: &BiasReport) -> Result<Self, ReportError> {
        let settings = &report.settings;
        let figure = |(k, attribute): (usize, &AttributeBias)| {
            Ok(Figure { title: attribute.name().to_owned(), svg: bias_figure(attribute, &format!("bias-{k}"))? })
        };
        Ok(Self {
            features: report.features.clone(),
            samples: report.cohort.clone(),
            level: percent(settings.level),
            has_intervals: settings.n_replicates > 0,
            statements: report.attributes.iter().map(|a| (a.name().to_owned(), a.sentence())).collect(),
            figures: report.attributes.iter().enumerate().map(figure).collect::<Result<_, ReportError>>()?,
            attributes: report.attributes.iter().map(Attribute::new).collect(),
            n_permutations: settings.n_permutations,
            n_replicates: settings.n_replicates,
        })
    }
}

impl Attribute {
    fn new(attribute: &AttributeBias) -> Self {
        let group = |group: &super::GroupCounts| (group.level.clone(), group.n, group.n_events, group.n_subjects);
        Self {
            name: attribute.name().to_owned(),
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
            name: line.name.to_owned(),
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
