//! Decisions at thresholds in words, for the terminal and the page, and the section of the page.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{AttributeDecisions, ThresholdReport};
use serde::Serialize;

use super::ReportError;
use super::format::{interval, number, percent, short};
use super::plots::decision_figures;
use super::rows::{self, reason};
use super::verdict::percent_of;

/// The section of the page: in words, and the decision curves, of one model or of several.
#[derive(Serialize)]
pub(super) struct DecisionsSection<'a> {
    horizon: Option<String>,
    models: Vec<OfModel<'a>>,
    figures: Vec<String>,
    /// Those of groups with few events.
    folded: Vec<String>,
}

#[derive(Serialize)]
struct OfModel<'a> {
    name: &'a str,
    lines: Vec<String>,
}

impl<'a> DecisionsSection<'a> {
    /// `None` without a threshold. A single model is called as `models` say.
    pub(super) fn new(models: &[(&'a str, &EvaluationReport)]) -> Result<Option<Self>, ReportError> {
        let Some((_, report)) = models.first().filter(|(_, report)| report.decisions.is_some()) else {
            return Ok(None);
        };
        let [figures, folded] = decision_figures(models)?;
        let of_model = |(name, report): &(&'a str, &EvaluationReport)| OfModel { name, lines: of_thresholds(report) };
        Ok(Some(Self { horizon: horizon(report), models: models.iter().map(of_model).collect(), figures, folded }))
    }
}

/// Decisions in sentences: their horizon, and of every threshold who is called positive, what treating
/// everybody would bring, and the equalised-odds difference of every attribute. The metrics of the decisions have their
/// tables among the others. Empty without a threshold.
pub(super) fn decision_lines(report: &EvaluationReport) -> Vec<String> {
    let horizon = horizon(report).filter(|_| report.decisions.is_some());
    horizon.into_iter().chain(of_thresholds(report)).collect()
}

/// The same without the horizon, which is that of all models.
pub(super) fn of_thresholds(report: &EvaluationReport) -> Vec<String> {
    report.decisions.iter().flat_map(|decisions| &decisions.thresholds).flat_map(of_threshold).collect()
}

/// The time that the decisions are about, and where it comes from.
pub(super) fn horizon(report: &EvaluationReport) -> Option<String> {
    Some(format!("Horizon: {}.", rows::with_rule(short(report.horizon?), report)))
}

fn of_threshold(at: &ThresholdReport) -> Vec<String> {
    let threshold = percent(at.threshold);
    let overall = &at.overall;
    let first = match (&overall.undefined, overall.n_positive, overall.event_rate, overall.net_benefit_of_all) {
        (None, Some(positive), Some(events), Some(all)) => format!(
            "Threshold {threshold}: {positive} of {} samples are called positive; {} have the event by the horizon, and \
             treating all has a net benefit of {}.",
            overall.n,
            percent_of(events),
            number(all)
        ),
        (why, ..) => {
            let why = why.as_deref().unwrap_or("no reason was recorded");
            format!("Threshold {threshold}: nothing can be said about decisions: {why}.")
        }
    };
    std::iter::once(first).chain(at.attributes.iter().map(|attribute| odds(attribute, &threshold))).collect()
}

fn odds(attribute: &AttributeDecisions, threshold: &str) -> String {
    let (name, estimate) = (&attribute.attribute, &attribute.equalized_odds_difference);
    let Some(value) = estimate.value else {
        return format!("No equalised-odds difference of {name} at {threshold}: {}.", reason(estimate));
    };
    let range = interval(estimate).map_or_else(|| "no interval".to_owned(), |range| format!("interval {range}"));
    format!("Equalised-odds difference of {name} at {threshold}: {} ({range}); 0 = equal.", number(value))
}
