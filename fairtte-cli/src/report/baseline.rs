//! The covariates-only baseline on the page, on the terminal and in the flat table.

use fairtte_metrics::evaluation::{MetricReport, ModelReports};
use serde::Serialize;

use super::ReportError;
use super::format::{clean, interval, list, number, p_relation, value, wrap};
use super::models::{OfModels, OfPair, of_metric, shown_metrics, signed};
use super::names::names_of_metrics;
use super::plots::model_forest;
use super::rows;
use crate::baseline::{Baseline, is_shown};

const INDENT: &str = "  ";

/// What the page shows of the baselines.
#[derive(Serialize)]
pub(super) struct BaselineSection {
    covariates: String,
    name: String,
    fit: String,
    undefined: Option<String>,
    hazard_ratios: Option<String>,
    lines: Vec<String>,
    metrics: Vec<Metric>,
}

#[derive(Serialize)]
struct Metric {
    label: String,
    direction: String,
    forest: String,
    pair: Option<OfPair>,
}

impl BaselineSection {
    pub(super) fn new(baseline: &Baseline) -> Result<Self, ReportError> {
        let reports = baseline.reports.as_ref();
        let metrics = reports.map(|reports| {
            let shown = compared_metrics(reports);
            let ids = names_of_metrics(shown.iter().map(|models| models[0].1));
            shown.iter().zip(ids).map(|(models, id)| Metric::new(reports, models, &id)).collect::<Result<_, _>>()
        });
        Ok(Self {
            covariates: list(&baseline.covariates),
            name: baseline.name(),
            fit: baseline.fit(),
            undefined: baseline.undefined.clone(),
            hazard_ratios: hazard_ratios(baseline),
            lines: reports.map(differences).into_iter().flatten().chain(baseline.not_compared()).collect(),
            metrics: metrics.transpose()?.unwrap_or_default(),
        })
    }
}

impl Metric {
    fn new(reports: &ModelReports, models: &OfModels<'_>, id: &str) -> Result<Self, ReportError> {
        let shown: OfModels<'_> = models.iter().filter(|(name, metric)| is_shown(name, metric)).copied().collect();
        let first = models[0].1;
        Ok(Self {
            label: first.label.clone(),
            direction: rows::direction(first),
            forest: model_forest(&shown, &format!("baseline-{id}"))?,
            pair: of_metric(reports, &first.name).into_iter().next(),
        })
    }
}

/// `age 1.02 (1.01 to 1.03), sex=M 1.30 (1.10 to 1.52)`.
fn hazard_ratios(baseline: &Baseline) -> Option<String> {
    let level = baseline.reports.as_ref()?.models.first()?.1.settings.level;
    let ratio = |term: &fairtte_classical::CoxCoefficient| {
        let (ratio, lower, upper) = term.hazard_ratio(level)?;
        Some(format!("{} {} ({} to {})", term.name, number(ratio), number(lower), number(upper)))
    };
    let ratios: Vec<String> = baseline.cox.as_ref()?.coefficients.iter().filter_map(ratio).collect();
    (!ratios.is_empty()).then(|| ratios.join(", "))
}

/// One line per metric: both values and the difference over all samples.
fn differences(reports: &ModelReports) -> Vec<String> {
    let line = |models: &OfModels<'_>| {
        let [(_, own), (name, cox), ..] = models[..] else { return None };
        let pair = reports.pairs.iter().find(|pair| pair.metric == own.name)?;
        let of = &pair.overall;
        let (Some(found), Some((lower, upper))) = (of.value, of.lower.zip(of.upper)) else {
            let without = format!("{}: model {}, {name} {}", own.label, shown(own), shown(cox));
            return Some(format!("{without}."));
        };
        let p = of.p_value.map_or_else(String::new, |p| format!(", p {}", p_relation(p)));
        let ends = format!("{} to {}", number(lower), number(upper));
        let values = format!("model {}, {name} {}", value(&own.overall), value(&cox.overall));
        Some(format!("{}: {values}; difference {} ({ends}){p}.", own.label, signed(found)))
    };
    compared_metrics(reports).iter().filter_map(line).collect()
}

/// The metrics in which the model is compared with the covariates. Of the two readings of the concordance that which counts pairs
/// with equal predictions 1/2: a Cox model of few categories ties most pairs, and counting them 0 would be a gain of any model.
fn compared_metrics(reports: &ModelReports) -> Vec<OfModels<'_>> {
    let mut shown = shown_metrics(reports);
    if shown.iter().any(|models| models[0].1.name == "c_td_half") {
        shown.retain(|models| models[0].1.name != "c_td_antolini_strict");
    }
    shown
}

fn shown(metric: &MetricReport) -> String {
    let ends = interval(&metric.overall).map_or_else(String::new, |range| format!(" ({range})"));
    format!("{}{ends}", value(&metric.overall))
}

/// The same for a terminal of `width` columns.
pub(crate) fn render_baseline(baseline: &Baseline, width: usize) -> String {
    let mut text = format!("\nwhat the model adds to {}\n", clean(&list(&baseline.covariates)));
    for line in lines(baseline) {
        for part in wrap(&clean(&line), width - INDENT.len()) {
            text.push_str(INDENT);
            text.push_str(&part);
            text.push('\n');
        }
    }
    text
}

fn lines(baseline: &Baseline) -> Vec<String> {
    if let Some(reason) = &baseline.undefined {
        return vec![format!("no {}: {reason}", baseline.name())];
    }
    let ratios = hazard_ratios(baseline).map(|ratios| format!("hazard ratios: {ratios}"));
    let differences = baseline.reports.iter().flat_map(differences);
    std::iter::once(baseline.fit()).chain(ratios).chain(differences).chain(baseline.not_compared()).collect()
}
