//! Decisions at thresholds in words, for the terminal and the page.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{AttributeDecisions, ThresholdReport};

use super::format::{interval, number, percent, short};
use super::rows::reason;

/// Decisions in sentences: their horizon, and of every threshold who is called positive, what treating
/// everybody would bring, and the equalised-odds difference of every attribute. The metrics of the decisions have their
/// tables among the others. Empty without a threshold.
pub(super) fn decision_lines(report: &EvaluationReport) -> Vec<String> {
    let Some(decisions) = &report.decisions else { return Vec::new() };
    horizon(report).into_iter().chain(decisions.thresholds.iter().flat_map(of_threshold)).collect()
}

/// The time that the decisions are about, and where it comes from.
fn horizon(report: &EvaluationReport) -> Option<String> {
    let time = short(report.horizon?);
    Some(match report.settings.horizon {
        Some(_) => format!("Horizon: {time}."),
        None => format!("Horizon: {time}, the default (the median of the event times, within the evaluation times)."),
    })
}

fn of_threshold(at: &ThresholdReport) -> Vec<String> {
    let threshold = percent(at.threshold);
    let overall = &at.overall;
    let first = match (&overall.undefined, overall.n_positive, overall.event_rate, overall.net_benefit_of_all) {
        (None, Some(positive), Some(events), Some(all)) => format!(
            "Threshold {threshold}: {positive} of {} samples are called positive; {} have the event by the horizon, and \
             treating everybody has a net benefit of {}.",
            overall.n,
            percent(events),
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
