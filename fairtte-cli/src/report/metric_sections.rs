//! The sections of a page about metrics: tiles with their gaps, forest plots, and the tables of all numbers.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{AttributeReport, MetricReport};
use serde::Serialize;

use super::ReportError;
use super::differences;
use super::format::{interval, number, percent, value};
use super::metric_table::{TableRow, table_rows};
use super::names::names_of_metrics;
use super::p_matrix::{self, PMatrix, p_matrices};
use super::plots::{forest, gap_figure};
use super::rows;

/// Metrics at a glance, filled in by the filter `tiles`.
#[derive(Serialize)]
pub(super) struct Tiles<'a> {
    #[serde(rename = "tiles")]
    metrics: Vec<Tile<'a>>,
    level: String,
    /// Whether gaps were compared with those by chance.
    has_chance: bool,
}

impl<'a> Tiles<'a> {
    /// Those of the metrics that `is_shown` keeps.
    pub(super) fn new(report: &'a EvaluationReport, is_shown: impl Fn(&MetricReport) -> bool) -> Self {
        let mut of_attributes = report.metrics.iter().flat_map(|metric| &metric.attributes);
        Self {
            metrics: report.metrics.iter().filter(|metric| is_shown(metric)).map(tile).collect(),
            level: percent(report.settings.level),
            has_chance: of_attributes.any(|attribute| attribute.gap_by_chance.is_some()),
        }
    }
}

/// All metrics with their figures and tables; the filter `numbers` fills in the tables.
#[derive(Serialize)]
pub(super) struct Numbers<'a> {
    metrics: Vec<Metric<'a>>,
    level: String,
    has_intervals: bool,
    reading: &'a str,
    censoring: &'a str,
    /// What the column of events is about.
    events: &'static str,
    about_matrices: &'static str,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(report: &'a EvaluationReport, time_unit: &str, censoring: &'a str) -> Result<Self, ReportError> {
        let metrics = report.metrics.iter().zip(names_of_metrics(&report.metrics));
        Ok(Self {
            metrics: metrics
                .map(|(metric, id)| metric_section(report, time_unit, metric, &id))
                .collect::<Result<_, _>>()?,
            level: percent(report.settings.level),
            has_intervals: report.settings.replicates > 0,
            reading: &report.reading,
            censoring,
            events: rows::events_column(report),
            about_matrices: p_matrix::ABOUT,
        })
    }
}

/// The value of one metric over all samples, with its gaps.
#[derive(Serialize)]
struct Tile<'a> {
    label: &'a str,
    direction: String,
    value: String,
    interval: Option<String>,
    reason: Option<&'a str>,
    gaps: Vec<Gap<'a>>,
}

#[derive(Serialize)]
struct Gap<'a> {
    attribute: &'a str,
    value: String,
    interval: Option<String>,
    bar: Option<Bar>,
}

/// The gap beside the gaps by chance, with places in per cent of the width.
#[derive(Serialize)]
struct Bar {
    gap: String,
    mean: String,
    upper: String,
    /// The same in words.
    about: String,
}

impl Bar {
    fn new(attribute: &AttributeReport) -> Option<Self> {
        let (value, by_chance) = attribute.gap.value.zip(attribute.gap_by_chance.as_ref())?;
        let end = 1.1 * value.max(by_chance.upper).max(f64::MIN_POSITIVE);
        let place = |gap: f64| format!("{:.1}", 100.0 * gap / end);
        let (mean, upper) = (by_chance.mean, by_chance.upper);
        let about = format!("by chance {}, rarely above {}", number(mean), number(upper));
        Some(Self { gap: place(value), mean: place(mean), upper: place(upper), about })
    }
}

#[derive(Serialize)]
struct Metric<'a> {
    label: &'a str,
    name: &'a str,
    direction: String,
    convention: &'a str,
    /// Why its intervals may be too narrow.
    caution: Option<&'static str>,
    window: Option<String>,
    /// The metric with the same numbers, which is named instead of a plot and a table.
    same_as: Option<&'a str>,
    forest: Option<String>,
    /// The figure of the gaps; empty without any.
    gaps: String,
    /// Whether the metric counts comparable pairs.
    has_pairs: bool,
    caption: String,
    rows: Vec<TableRow>,
    differences: Vec<differences::Line>,
    differences_caption: String,
    /// The p values of all pairs of attributes with many groups.
    matrices: Vec<PMatrix>,
}

fn tile(metric: &MetricReport) -> Tile<'_> {
    let gaps = metric.attributes.iter().map(|attribute| Gap {
        attribute: &attribute.attribute,
        value: value(&attribute.gap),
        interval: interval(&attribute.gap),
        bar: Bar::new(attribute),
    });
    Tile {
        label: &metric.label,
        direction: rows::direction(metric),
        value: value(&metric.overall),
        interval: interval(&metric.overall),
        reason: metric.overall.undefined.as_deref(),
        gaps: gaps.collect(),
    }
}

fn metric_section<'a>(
    report: &'a EvaluationReport,
    time_unit: &str,
    metric: &'a MetricReport,
    id: &str,
) -> Result<Metric<'a>, ReportError> {
    let same_as = rows::same_as(report, metric).map(|other| other.label.as_str());
    let forest = if same_as.is_none() { Some(forest(metric, &format!("forest-{id}"))?) } else { None };
    let gaps = if same_as.is_none() { gap_figure(metric, report.settings.level, &format!("gap-{id}"))? } else { None };
    Ok(Metric {
        label: &metric.label,
        name: &metric.name,
        direction: rows::direction(metric),
        convention: &metric.convention,
        caution: rows::caution(metric),
        window: rows::uses_window(metric).then(|| rows::window(report, time_unit)),
        same_as,
        forest,
        gaps: gaps.unwrap_or_default(),
        has_pairs: metric.overall.n_comparable.is_some(),
        caption: rows::caption(metric),
        rows: table_rows(metric, report),
        differences: differences::lines(metric, report),
        differences_caption: differences::caption(metric),
        matrices: p_matrices(metric),
    })
}
