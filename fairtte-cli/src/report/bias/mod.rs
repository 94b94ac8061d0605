//! The presentation of the sources of bias: a plain table, a page with a figure, and a flat table of every number.

mod flat;
mod page;
mod section;
mod table;
#[cfg(test)]
mod tests;

use fairtte_metrics::MetricError;
use fairtte_metrics::bias::{BiasSettings, BiasSource, BiasSources, Reduction, Separability, SourceDisparity};
use fairtte_metrics::statistics::{Adjustment, adjust_p_values};
use serde::{Deserialize, Serialize};

use super::ReportError;
use super::format::{list, number, p_relation};

pub(crate) use flat::write as write_flat;
pub(crate) use section::BiasSection;

/// The AUC of a model that knows nothing.
const CHANCE_AUC: f64 = 0.5;
/// The level at which a sentence calls a difference more than chance.
const LEVEL: f64 = 0.05;

/// Sources of bias of several attributes: `bias.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct BiasReport {
    /// The file of the features.
    pub(crate) features: String,
    /// The file of the cohort.
    pub(crate) cohort: String,
    pub(crate) n: usize,
    pub(crate) n_events: usize,
    pub(crate) n_subjects: usize,
    pub(crate) reduction: Reduction,
    /// Columns and values with other names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) columns: Option<String>,
    pub(crate) settings: BiasSettings,
    pub(crate) attributes: Vec<AttributeBias>,
    pub(crate) notes: Vec<String>,
}

/// The sources of bias of one attribute. Numbers of groups in `sources` are places in `groups`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct AttributeBias {
    pub(crate) groups: Vec<GroupCounts>,
    #[serde(flatten)]
    pub(crate) sources: BiasSources,
    pub(crate) separability: Separability,
}

/// The sources of one attribute, for tables over several reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct SourceSummary {
    pub(crate) attribute: String,
    /// What was found, in one sentence.
    pub(crate) sentence: String,
    /// The five sources, then the separability.
    pub(crate) lines: Vec<SummaryLine>,
}

/// One source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct SummaryLine {
    pub(crate) key: String,
    pub(crate) name: String,
    /// Its numbers, or why there are none.
    pub(crate) found: Result<Found, String>,
}

impl BiasReport {
    /// The sources of every attribute.
    pub(crate) fn summaries(&self) -> Vec<SourceSummary> {
        let line = |line: Line| SummaryLine { key: line.key.to_owned(), name: line.name.to_owned(), found: line.found };
        let summary = |of: &AttributeBias| SourceSummary {
            attribute: of.name().to_owned(),
            sentence: of.sentence(),
            lines: of.lines().into_iter().map(line).collect(),
        };
        self.attributes.iter().map(summary).collect()
    }
}

/// The size of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct GroupCounts {
    pub(crate) level: String,
    pub(crate) n: usize,
    pub(crate) n_events: usize,
    pub(crate) n_subjects: usize,
}

/// The page, one file.
///
/// # Errors
/// [`ReportError`] if the figure or the template fails, which no input should cause.
pub(crate) fn render_page(report: &BiasReport) -> Result<String, ReportError> {
    page::render(report)
}

/// The table for a terminal of `width` columns (at least 80 are used).
pub(crate) fn render_table(report: &BiasReport, width: usize) -> String {
    table::render(report, width)
}

/// One line about an attribute: a source, or how well the groups can be distinguished.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// Name for machines.
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) found: Result<Found, String>,
    /// Remarks on groups that are not compared, and on replicates without a value.
    pub(super) remarks: Vec<String>,
}

/// The numbers of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Found {
    pub(crate) value: f64,
    /// The value expected by chance.
    pub(crate) chance: f64,
    pub(crate) corrected: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) p: Option<f64>,
    /// p adjusted for the sources of the attribute.
    pub(crate) p_holm: Option<f64>,
    /// The groups that differ by `value`: `F and M`.
    pub(crate) between: String,
}

/// The short name of a source.
fn name_of(source: BiasSource) -> &'static str {
    match source {
        BiasSource::ImageFeatures => "features",
        BiasSource::MiTime => "features and time",
        BiasSource::MiCensoring => "features and event",
        BiasSource::TimeDistribution => "event times",
        BiasSource::CensoringRate => "censoring rate",
    }
}

/// The name of a source in the JSON.
fn key_of(source: BiasSource) -> &'static str {
    match source {
        BiasSource::ImageFeatures => "image-features",
        BiasSource::MiTime => "mi-time",
        BiasSource::MiCensoring => "mi-censoring",
        BiasSource::TimeDistribution => "time-distribution",
        BiasSource::CensoringRate => "censoring-rate",
    }
}

impl AttributeBias {
    pub(super) fn name(&self) -> &str {
        &self.sources.attribute
    }

    /// The five sources, then the separability.
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.sources.sources.iter().map(line_of).collect();
        adjust(&mut lines);
        lines.push(self.line_of_separability());
        lines
    }

    fn line_of_separability(&self) -> Line {
        let first_reason = || self.separability.levels.iter().find_map(|level| level.auc.as_ref().err());
        let none = || first_reason().map_or_else(|| "there are no groups".to_owned(), ToString::to_string);
        let found = self.separability.largest().ok_or_else(none).and_then(|level| {
            let value = level.auc.as_ref().copied().map_err(ToString::to_string)?;
            Ok(Found {
                value,
                chance: CHANCE_AUC,
                corrected: (value - CHANCE_AUC).max(0.0),
                interval: level.interval,
                p: None,
                p_holm: None,
                between: format!("{} and the others", level.level),
            })
        });
        Line { key: "separability", name: "separability (AUC)", found, remarks: Vec::new() }
    }

    /// What the lines say, in one sentence.
    pub(super) fn sentence(&self) -> String {
        let lines = self.lines();
        let of_source =
            |line: &Line| line.found.as_ref().ok().and_then(|found| Some((line.name, found.clone(), found.p_holm?)));
        let mut sources: Vec<(&str, Found, f64)> = lines.iter().filter_map(of_source).collect();
        if sources.is_empty() {
            return "No source could be compared.".to_owned();
        }
        sources.retain(|(_, _, p)| *p <= LEVEL);
        sources.sort_by(|a, b| b.1.corrected.total_cmp(&a.1.corrected));
        let Some((name, found, _)) = sources.first() else {
            return "No source differs between groups by more than chance (all p above 0.05 after Holm's adjustment for \
                    the sources of the attribute)."
                .to_owned();
        };
        let others: Vec<String> = sources[1..].iter().map(|(name, ..)| (*name).to_owned()).collect();
        let others =
            if others.is_empty() { String::new() } else { format!(" More than chance too: {}.", list(&others)) };
        let p = p_relation(found.p.unwrap_or(1.0));
        format!(
            "Largest after correction for chance: {name}, {} between {} (p {p}).{others}",
            number(found.corrected),
            found.between
        )
    }
}

/// The line of one source.
fn line_of(source: &SourceDisparity) -> Line {
    let level = |group: fairtte_metrics::GroupId| source.groups[group.index()].level.clone();
    let found = source.estimate.as_ref().map_err(ToString::to_string).map(|estimate| Found {
        value: estimate.value,
        chance: estimate.permutation.null_mean,
        corrected: estimate.null_corrected,
        interval: estimate.interval,
        p: Some(estimate.permutation.p_value),
        p_holm: None,
        between: list(&[level(estimate.pair.0), level(estimate.pair.1)]),
    });
    let small = source.groups.iter().filter_map(|group| Some(excluded(source.source, group.summary.as_ref().err()?)));
    let undefined = source.estimate.as_ref().map_or(0, |estimate| estimate.n_undefined_replicates);
    let replicates = (undefined > 0).then(|| format!("no value in {undefined} bootstrap replicates"));
    let (key, name) = (key_of(source.source), name_of(source.source));
    Line { key, name, found, remarks: small.chain(replicates).collect() }
}

/// Adjusts the p values of the sources of one attribute.
fn adjust(lines: &mut [Line]) {
    let p_values: Vec<f64> = lines.iter().filter_map(|line| line.found.as_ref().ok()?.p).collect();
    // Permutation tests give numbers in (0, 1].
    let adjusted = adjust_p_values(&p_values, Adjustment::Holm).unwrap_or_default();
    let defined = lines.iter_mut().filter_map(|line| line.found.as_mut().ok()).filter(|found| found.p.is_some());
    defined.zip(adjusted).for_each(|(found, p)| found.p_holm = Some(p));
}

/// Why a group is not compared, in events where only they enter.
fn excluded(source: BiasSource, error: &MetricError) -> String {
    match error {
        MetricError::GroupTooSmall { level, n, expected } => {
            let what = if source.only_events() { "events" } else { "samples" };
            format!("not compared: {level} ({n} {what}, expected at least {expected})")
        }
        other => other.to_string(),
    }
}
