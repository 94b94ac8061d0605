//! Decisions at thresholds in words, for the terminal and the page.

use fairtte_metrics::evaluation::{AttributeDecisions, DecisionsReport, ThresholdReport};

use super::format::{interval, number, percent};
use super::rows::reason;

/// What is said of every threshold, in sentences: who is called positive, what treating everybody would bring, and the
/// equalised-odds difference of every attribute. The metrics of the decisions have their tables among the others.
pub(super) fn decision_lines(decisions: &DecisionsReport) -> Vec<String> {
    decisions.thresholds.iter().flat_map(of_threshold).collect()
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
