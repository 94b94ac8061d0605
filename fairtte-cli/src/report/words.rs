//! What the numbers say, in plain sentences with their caveats, derived from the report alone.

use fairtte_metrics::{AttributeReport, Estimate, EvaluationReport, GroupReport, MetricReport};

use super::format::{count, interval, list, number, percent};
use super::rows::reason;

/// Below this many events a metric of a group is little more than an anecdote.
const FEW_EVENTS: usize = 20;
/// Rule of thumb for judging a survival model at all: Collins, Ogundimu & Altman (2016), doi:10.1002/sim.6787.
const ENOUGH_EVENTS: usize = 100;
/// A gap of two groups whose interval starts below this share of its end is compatible with equal groups: for a normal
/// difference that is just significant at the level of the interval the share is 0.05, for equal groups 0.01.
const NEAR_ZERO: f64 = 0.05;

/// A sentence or two about one thing.
#[derive(Debug, PartialEq, serde::Serialize)]
pub(super) struct Statement {
    pub(super) topic: String,
    pub(super) text: String,
}

/// What a reader should take away.
pub(super) fn statements(report: &EvaluationReport) -> Vec<Statement> {
    let mut statements = vec![Statement { topic: "Overall".to_owned(), text: overall(report) }];
    let Some(main) = report.metrics.first() else { return statements };
    for attribute in &main.attributes {
        let mut text = differences(attribute, main);
        let ibs = report.metric("ibs").and_then(|ibs| attribute_of(ibs, &attribute.attribute).map(|a| (ibs, a)));
        if let Some(sentence) = ibs.and_then(|(ibs, attribute)| short_gap(attribute, ibs)) {
            text.push(' ');
            text.push_str(&sentence);
        }
        if attribute.n_missing > 0 {
            let missing = attribute.n_missing;
            text.push_str(&format!(" {missing} of {} samples have no value for it: they are in no group.", report.n));
        }
        statements.push(Statement { topic: format!("By {}", attribute.attribute), text });
    }
    statements.extend(few_events(main));
    statements.extend(not_computed(report));
    statements
}

fn overall(report: &EvaluationReport) -> String {
    let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
    let mut text = format!("{samples} of {subjects}, with {}.", count(report.n_events, "observed event"));
    for metric in &report.metrics {
        let sentence = match metric.name.as_str() {
            "c_td_antolini_strict" => concordance(metric, report),
            "ibs" => brier(metric, report),
            _ => continue,
        };
        text.push(' ');
        text.push_str(&sentence);
    }
    if report.n_events < ENOUGH_EVENTS {
        text.push_str(&format!(
            " This is a small sample: a common rule of thumb asks for at least {ENOUGH_EVENTS} events to judge a \
             survival model, so every number here is provisional."
        ));
    }
    text
}

fn concordance(metric: &MetricReport, report: &EvaluationReport) -> String {
    let estimate = &metric.overall;
    let Some(value) = estimate.value else { return undefined(metric) };
    let share = (value * 100.0).round();
    let meaning = format!(
        "{} is {}: where it is known which of two samples had the event first, the model gave that one the lower \
         survival in {share} % of the pairs. Guessing gives 0.5",
        metric.label,
        with_interval(estimate, report)
    );
    let verdict = match estimate.lower.zip(estimate.upper) {
        None => ".",
        Some((lower, _)) if lower > 0.5 => ", below the whole interval.",
        Some((_, upper)) if upper < 0.5 => ", above the whole interval: the model ranks worse than guessing.",
        Some(_) => {
            ", which lies inside the interval: these data do not show that the model ranks better than guessing."
        }
    };
    meaning + verdict
}

fn brier(metric: &MetricReport, report: &EvaluationReport) -> String {
    if metric.overall.value.is_none() {
        return undefined(metric);
    }
    let value = with_interval(&metric.overall, report);
    format!("{} is {value}; 0 is perfect, predicting 0.5 for everybody gives about 0.25.", metric.label)
}

fn undefined(metric: &MetricReport) -> String {
    format!("{} is undefined: {}.", metric.label, reason(&metric.overall))
}

fn with_interval(estimate: &Estimate, report: &EvaluationReport) -> String {
    let value = estimate.value.map_or_else(|| "undefined".to_owned(), number);
    match interval(estimate) {
        Some(interval) => format!("{value} ({} interval {interval})", percent(report.settings.level)),
        None => format!("{value} (no interval)"),
    }
}

/// The gap of `metric`, who is worst and best, and whether the data can tell the difference from none.
fn differences(attribute: &AttributeReport, metric: &MetricReport) -> String {
    let label = &metric.label;
    let Some(gap) = attribute.gap.value else {
        return format!("No difference in {label} can be given: {}.", reason(&attribute.gap));
    };
    let ordered = ordered(attribute, metric);
    let (Some(best), Some(worst)) = (ordered.first(), ordered.last()) else {
        return format!("No difference in {label} can be given: no group has a value.");
    };
    let name = |group: &GroupReport| format!("{} ({})", group.level, super::format::value(&group.estimate));
    let range = interval(&attribute.gap).map_or_else(|| "no interval".to_owned(), |range| format!("interval {range}"));
    let (best_name, worst_name) = (name(best), name(worst));
    let gap = number(gap);
    let facts =
        format!("{label} differs by {gap} ({range}) between {worst_name}, the worst, and {best_name}, the best");
    format!("{facts}. {}", reading_of_gap(attribute, worst, best, ordered.len()))
}

fn reading_of_gap(attribute: &AttributeReport, worst: &GroupReport, best: &GroupReport, n_groups: usize) -> String {
    let Some((lower, upper)) = attribute.gap.lower.zip(attribute.gap.upper) else {
        return "Without an interval nothing can be said about how certain that is.".to_owned();
    };
    if n_groups == 2 {
        return if lower <= NEAR_ZERO * upper {
            "A gap is a largest difference and never negative, so its interval cannot fall below 0; this one starts \
             so close to 0 that equal groups could have given it: these data do not show a difference."
                .to_owned()
        } else {
            "A gap is a largest difference and never negative; this interval starts clear of 0, which equal groups \
             would rarely give."
                .to_owned()
        };
    }
    let start = format!(
        "The largest difference among {n_groups} groups is above 0 even when all are equal, so its interval is no test."
    );
    let overlap = match (ends(&worst.estimate), ends(&best.estimate)) {
        (Some(worst), Some(best)) if worst.0.max(best.0) <= worst.1.min(best.1) => {
            "The intervals of the worst and the best group overlap: these data do not settle whether they differ."
        }
        (Some(_), Some(_)) => {
            "The intervals of the worst and the best group do not overlap, which speaks for a real difference, though \
             these two were picked after seeing the numbers."
        }
        _ => "At least one of these two groups has no interval.",
    };
    format!("{start} {overlap}")
}

fn ends(estimate: &Estimate) -> Option<(f64, f64)> {
    estimate.lower.zip(estimate.upper)
}

/// The groups with a value, best first.
fn ordered<'a>(attribute: &'a AttributeReport, metric: &MetricReport) -> Vec<&'a GroupReport> {
    let sign = if metric.higher_is_better { -1.0 } else { 1.0 };
    let groups = attribute.groups.iter();
    let mut groups: Vec<_> =
        groups.filter_map(|group| group.estimate.value.map(|value| (sign * value, group))).collect();
    groups.sort_by(|a, b| a.0.total_cmp(&b.0));
    groups.into_iter().map(|(_, group)| group).collect()
}

fn short_gap(attribute: &AttributeReport, metric: &MetricReport) -> Option<String> {
    let gap = number(attribute.gap.value?);
    let range = interval(&attribute.gap).map_or_else(|| "no interval".to_owned(), |range| format!("interval {range}"));
    let worst = attribute.worst_group.as_deref()?;
    Some(format!("{} differs by {gap} ({range}); worst: {worst}.", metric.label))
}

fn attribute_of<'a>(metric: &'a MetricReport, name: &str) -> Option<&'a AttributeReport> {
    metric.attributes.iter().find(|attribute| attribute.attribute == name)
}

/// Groups whose value rests on few events, and the least certain value of all.
fn few_events(metric: &MetricReport) -> Option<Statement> {
    let groups: Vec<(&AttributeReport, &GroupReport)> = metric
        .attributes
        .iter()
        .flat_map(|attribute| attribute.groups.iter().map(move |group| (attribute, group)))
        .filter(|(_, group)| group.estimate.value.is_some())
        .collect();
    let few = groups.iter().filter(|(_, group)| group.estimate.n_events < FEW_EVENTS);
    let few: Vec<String> = few
        .map(|(attribute, group)| {
            format!("{}: {} ({})", attribute.attribute, group.level, count(group.estimate.n_events, "event"))
        })
        .collect();
    if few.is_empty() {
        return None;
    }
    let mut text = format!(
        "Fewer than {FEW_EVENTS} events stand behind {}. There a single person can move the value: take it as a hint, \
         not as a finding.",
        list(&few)
    );
    let width = |group: &GroupReport| ends(&group.estimate).map(|(lower, upper)| upper - lower);
    let widths = groups.iter().filter_map(|(_, group)| Some((width(group)?, group)));
    if let Some((_, widest)) = widths.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let range = interval(&widest.estimate).unwrap_or_default();
        let (label, level) = (&metric.label, &widest.level);
        text.push_str(&format!(" The widest interval of {label} is that of {level}: {range}."));
    }
    Some(Statement { topic: "Small groups".to_owned(), text })
}

/// Groups without a value, each with its reason; metrics that share a reason are named together.
fn not_computed(report: &EvaluationReport) -> Option<Statement> {
    let mut reasons: Vec<(String, String, Vec<String>)> = Vec::new();
    for metric in &report.metrics {
        for attribute in &metric.attributes {
            for group in &attribute.groups {
                let Some(reason) = &group.estimate.undefined else { continue };
                let group = format!("{}: {}", attribute.attribute, group.level);
                match reasons.iter_mut().find(|known| known.0 == group && known.1 == *reason) {
                    Some(known) => known.2.push(metric.label.clone()),
                    None => reasons.push((group, reason.clone(), vec![metric.label.clone()])),
                }
            }
        }
    }
    if reasons.is_empty() {
        return None;
    }
    let sentence = |(group, reason, labels): &(String, String, Vec<String>)| {
        format!("{group} has no {} ({reason}).", labels.join(", "))
    };
    let text = reasons.iter().map(sentence).collect::<Vec<_>>().join(" ");
    Some(Statement { topic: "Not computed".to_owned(), text })
}
