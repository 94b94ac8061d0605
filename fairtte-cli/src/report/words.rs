//! The numbers in plain sentences with their caveats, derived from the report alone.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{
    AttributeReport, Estimate, EvaluatedCause, GroupDifference, GroupReport, MetricReport,
};

use super::differences;
use super::evidence::Evidence;
use super::format::{count, interval, known_ends, number, p_relation, percent};
use super::rows::{by_chance, reason};
use super::verdict::{some_of, ties_count};
use crate::plural::agreeing;

/// Number of events below which a metric of a group is hardly informative.
pub(super) const FEW_EVENTS: usize = 20;
/// Rule of thumb for judging a survival model at all: Collins, Ogundimu & Altman (2016), doi:10.1002/sim.6787.
const ENOUGH_EVENTS: usize = 100;
/// Share of censored samples at or above which C^td without weights is at least 0.01 too high where they are censored at random
/// (`docs/src/honesty.md`).
const MANY_CENSORED: f64 = 0.5;
/// Share of replicates without a value at or above which a sentence is added.
const MANY_UNDEFINED: f64 = 0.05;

/// Statements on one topic, one line per paragraph.
#[derive(Debug, PartialEq, serde::Serialize)]
pub(super) struct Statement {
    pub(super) topic: String,
    pub(super) lines: Vec<String>,
}

impl Statement {
    fn new(topic: impl Into<String>, line: String) -> Self {
        Self { topic: topic.into(), lines: vec![line] }
    }
}

/// The main statements for the reader.
pub(super) fn statements(report: &EvaluationReport) -> Vec<Statement> {
    let mut statements = vec![Statement::new("Overall", overall(report))];
    let Some(main) = report.metrics.first() else { return statements };
    for attribute in &main.attributes {
        let mut sentences = vec![differences(attribute, main, report)];
        let ibs = report
            .metric("ibs")
            .or_else(|| report.metric("cause-ibs"))
            .and_then(|ibs| attribute_of(ibs, &attribute.attribute).map(|a| (ibs, a)));
        sentences.extend(ibs.and_then(|(ibs, attribute)| short_gap(attribute, ibs)));
        let without = attribute.gap.undefined_replicates;
        if known_ends(&attribute.gap).is_some() && without as f64 > MANY_UNDEFINED * report.settings.replicates as f64 {
            sentences.push(format!(
                "In {without} of {} bootstrap replicates a group had no value; the interval of the gap is based on \
                 the others and may be too narrow.",
                report.settings.replicates
            ));
        }
        if attribute.n_missing > 0 {
            sentences.push(format!("{}.", in_no_group(attribute.n_missing)));
        }
        statements.push(Statement::new(format!("By {}", attribute.attribute), sentences.join(" ")));
    }
    statements.extend(about_gaps(main));
    statements.extend(few_events(report));
    statements.extend(not_computed(report));
    statements
}

/// Samples without a group; which of both reasons holds is not known any more.
pub(super) fn in_no_group(n: usize) -> String {
    let are = agreeing(n, "is", "are");
    format!(
        "{} {are} in no group (no value, or one that the training part or the list of levels lacks)",
        count(n, "sample")
    )
}

fn overall(report: &EvaluationReport) -> String {
    if report.class.is_some() {
        return of_class(report);
    }
    if report.masks.is_some() {
        return of_masks(report);
    }
    let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
    let mut sentences = vec![match report.cause {
        None => format!("{samples} of {subjects}, with {}.", count(report.n_events, "observed event")),
        Some(EvaluatedCause { cause, n_competing, .. }) => format!(
            "{samples} of {subjects}, with {} of cause {cause} and {n_competing} of other causes, which are not taken for \
             censorings.",
            count(report.n_events, "observed event")
        ),
    }];
    sentences.extend(report.metrics.iter().filter_map(|metric| match metric.name.as_str() {
        "c_td_antolini_strict" => Some(concordance(metric, report)),
        "ibs" | "cause-ibs" => Some(brier(metric, report)),
        _ => None,
    }));
    sentences.extend(small_sample(report, "[8]"));
    sentences.join(" ")
}

/// The counts of both classes, and what the metrics are about.
fn of_class(report: &EvaluationReport) -> String {
    let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
    let (n_positive, n_negative) = (report.n_events, report.n - report.n_events);
    let mut sentences = vec![format!("{samples} of {subjects}: {n_positive} positive and {n_negative} negative.")];
    if let Some(auc) = report.metric("auc") {
        sentences.push(match auc.overall.value {
            None => undefined(auc),
            Some(value) => format!(
                "AUC is {}: of two samples of different classes, the positive one was given the higher probability in {} % of the pairs. \
                 Guessing gives 0.5.",
                with_interval(&auc.overall, report),
                (value * 100.0).round()
            ),
        });
    }
    sentences.extend(small_sample_of_class(report, "[5]"));
    sentences.join(" ")
}

/// The mean of the main metric, and how many samples it is about.
fn of_masks(report: &EvaluationReport) -> String {
    let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
    let main = report.metrics.first().map(|metric| match metric.overall.value {
        None => undefined(metric),
        Some(_) => format!("{} is {}.", metric.label, with_interval(&metric.overall, report)),
    });
    std::iter::once(format!("{samples} of {subjects}.")).chain(main).collect::<Vec<_>>().join(" ")
}

/// What a sample with few events can show; `source` is that of the rule of thumb.
pub(super) fn small_sample(report: &EvaluationReport, source: &str) -> Option<String> {
    (report.n_events < ENOUGH_EVENTS).then(|| {
        format!(
            "This is a small sample: a common rule of thumb asks for at least {ENOUGH_EVENTS} events to judge a \
             survival model {source}, so every number here is provisional."
        )
    })
}

/// The same of a class.
pub(super) fn small_sample_of_class(report: &EvaluationReport, source: &str) -> Option<String> {
    (report.n_events.min(report.n - report.n_events) < ENOUGH_EVENTS).then(|| {
        format!(
            "This is a small sample: a common rule of thumb asks for at least {ENOUGH_EVENTS} samples of each class to judge a model \
             {source}, so every number here is provisional."
        )
    })
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
    // Pairs with equal predictions count 0 here, so a low value need not be a wrong order.
    let half = report.metric("c_td_half").map(|half| &half.overall);
    let tied = half.filter(|_| ties_count(report));
    let verdict = match known_ends(estimate) {
        None => ".",
        Some((lower, _)) if lower > 0.5 => ", below the whole interval.",
        Some((_, upper)) if upper < 0.5 && tied.is_some() => ", above the whole interval.",
        Some((_, upper)) if upper < 0.5 => ", above the whole interval: the model ranks worse than guessing.",
        // With the other count the next sentence shows what it is.
        Some(_) if tied.is_some() => ", which lies inside the interval.",
        Some(_) => {
            ", which lies inside the interval: these data do not show that the model ranks better than guessing."
        }
    };
    let counted_half = tied.map_or_else(String::new, |half| {
        let half = with_interval(half, report);
        format!(" Pairs with equal predictions count 0 in it; counting them 1/2 gives {half}.")
    });
    meaning + verdict + &counted_half + &many_censored(report)
}

/// What censoring does to a concordance that does not weigh pairs.
fn many_censored(report: &EvaluationReport) -> String {
    let censored = 1.0 - report.n_events as f64 / report.n as f64;
    if censored < MANY_CENSORED {
        return String::new();
    }
    format!(
        " {} % of the samples are censored, so that pairs with late events are missing. In simulations this raises C^td by 0.01 when \
         half of the samples are censored and by 0.03 when 90 % are. Compare C^td only between data with similar censoring, or use \
         c-td-ipcw.",
        (100.0 * censored).round()
    )
}

fn brier(metric: &MetricReport, report: &EvaluationReport) -> String {
    if metric.overall.value.is_none() {
        return undefined(metric);
    }
    let value = with_interval(&metric.overall, report);
    format!("{} is {value}; 0 is perfect, predicting 0.5 for all samples gives about 0.25.", metric.label)
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

/// The gap of `metric`, the two groups that it is between, and whether the data show a difference.
fn differences(attribute: &AttributeReport, metric: &MetricReport, report: &EvaluationReport) -> String {
    let label = &metric.label;
    let Some(gap) = attribute.gap.value else {
        return format!("No difference in {label} can be given: {}.", reason(&attribute.gap));
    };
    let ordered = ordered(attribute, metric);
    let (Some(best), Some(worst)) = (ordered.first(), ordered.last()) else {
        return format!("No difference in {label} can be given: no group has a value.");
    };
    let range = interval(&attribute.gap).map_or_else(|| "no interval".to_owned(), |range| format!("interval {range}"));
    let (best_name, worst_name) = (with_value(best), with_value(worst));
    let gap = number(gap);
    let (last, first) = if has_order(metric) { ("worst", "best") } else { ("lowest", "highest") };
    let facts =
        format!("{label} differs by {gap} ({range}) between {worst_name}, the {last}, and {best_name}, the {first}");
    let left_out = left_out(attribute, report);
    let conclusion = Evidence::of(attribute, metric, report).map(|found| found.conclusion(attribute, report));
    let reading = reading_of_gap(attribute, metric, report);
    let sentences: Vec<String> = reading.into_iter().chain(conclusion).collect();
    let certain = if sentences.is_empty() {
        "Without an interval nothing can be said about how certain that is.".to_owned()
    } else {
        sentences.join(" ")
    };
    format!("{facts}.{left_out} {certain}")
}

/// `F (0.712)`.
fn with_value(group: &GroupReport) -> String {
    format!("{} ({})", group.level, super::format::value(&group.estimate))
}

/// How many groups have a value, and which of them the gap leaves out, each only where there is something to say.
fn left_out(attribute: &AttributeReport, report: &EvaluationReport) -> String {
    let n_levels = attribute.groups.len();
    let defined: Vec<&GroupReport> = attribute.groups.iter().filter(|group| group.estimate.value.is_some()).collect();
    let without =
        (defined.len() < n_levels).then(|| format!(" Only {} of {n_levels} groups have a value.", defined.len()));
    let few: Vec<String> =
        defined.into_iter().filter(|group| attribute.few_events.contains(&group.level)).map(with_value).collect();
    let few = (!few.is_empty()).then(|| {
        let (needed, (_, what)) = (report.settings.min_events, carried_by(report));
        format!(" Not compared, with fewer than {needed} {what}: {}.", some_of(&few))
    });
    without.into_iter().chain(few).collect()
}

/// Whether the interval contains 0, and what chance makes of the gap; `None` without either.
fn reading_of_gap(attribute: &AttributeReport, metric: &MetricReport, report: &EvaluationReport) -> Option<String> {
    if let Some(pair) = differences::only_pair(attribute) {
        return reading_of_difference(pair);
    }
    let reading = known_ends(&attribute.gap).map(|(lower, _)| {
        let contains = if lower <= 0.0 { "contains 0" } else { "does not contain 0" };
        format!("The interval, which covers all pairs of groups at once, {contains}.")
    });
    let chance = by_chance(metric, attribute, report)
        .map(|chance| format!("Gaps of groups of these sizes whose labels are exchanged: {chance}."));
    let sentences: Vec<String> = reading.into_iter().chain(chance).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// An interpretation of the paired difference of two groups; unlike their gap it has a sign, and its interval can
/// contain 0. `None` without an interval.
fn reading_of_difference(pair: &GroupDifference) -> Option<String> {
    let difference = &pair.difference;
    let (lower, upper) = difference.lower.zip(difference.upper)?;
    let range = differences::ends(difference).unwrap_or_default();
    let p = difference.p_value.map_or_else(String::new, |p| format!(" (p {})", p_relation(p)));
    let contains = if lower <= 0.0 && upper >= 0.0 { "contains 0" } else { "does not contain 0" };
    Some(format!("The interval of {}, {range}{p}, {contains}.", differences::name(pair)))
}

/// The limits of the interpretation of a gap.
fn about_gaps(metric: &MetricReport) -> Option<Statement> {
    metric.attributes.iter().find(|attribute| attribute.gap.lower.is_some())?;
    let text =
        "A gap is the largest difference between two groups. It is never negative, so even equal groups have a gap \
                above 0; its interval contains 0 if those of the differences between the groups, with their signs, do. \
                What chance alone makes of groups of these sizes stands beside each gap."
            .to_owned();
    Some(Statement::new("About gaps", text))
}

/// Whether the better of two values is the higher one, or the lower one, wherever they lie.
fn has_order(metric: &MetricReport) -> bool {
    metric.target.is_none() && !metric.no_best
}

/// The compared groups, best first, or the highest first where no direction is better: the gap is between the first and the last.
fn ordered<'a>(attribute: &'a AttributeReport, metric: &MetricReport) -> Vec<&'a GroupReport> {
    let sign = if metric.higher_is_better || !has_order(metric) { -1.0 } else { 1.0 };
    let groups = attribute.groups.iter().filter(|group| !attribute.few_events.contains(&group.level));
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

/// How many samples carry a value, and what they are called: events, of a class samples of the rarer one.
pub(super) fn carried_by(report: &EvaluationReport) -> (fn(&Estimate) -> usize, &'static str) {
    match report.class {
        None if report.masks.is_some() => (|of| of.n_events, "samples with a value"),
        None => (|of| of.n_events, "events"),
        Some(_) => (|of| of.n_events.min(of.n - of.n_events), "samples of one of the classes"),
    }
}

/// Groups whose values are based on few events, and the least certain value of the main metric.
fn few_events(report: &EvaluationReport) -> Option<Statement> {
    let main = report.metrics.first()?;
    let (n_of, what) = carried_by(report);
    let mut attributes = Vec::new();
    for (index, attribute) in main.attributes.iter().enumerate() {
        let values = |level: usize| {
            let attributes = report.metrics.iter().filter_map(move |metric| metric.attributes.get(index));
            attributes.filter_map(move |attribute| attribute.groups.get(level)?.estimate.value)
        };
        let groups = attribute.groups.iter().enumerate();
        let few = groups.filter(|(level, g)| n_of(&g.estimate) < FEW_EVENTS && values(*level).next().is_some());
        let few: Vec<String> = few.map(|(_, g)| format!("{} ({})", g.level, n_of(&g.estimate))).collect();
        if !few.is_empty() {
            attributes.push(format!("{}: {}", attribute.attribute, few.join(", ")));
        }
    }
    if attributes.is_empty() {
        return None;
    }
    let mut sentences = vec![format!(
        "The values of these groups are based on fewer than {FEW_EVENTS} {what} (number in brackets): {}. A single \
         person can change such a value: treat it as a hint, not as a finding.",
        attributes.join("; ")
    )];
    let groups = main.attributes.iter().flat_map(|attribute| &attribute.groups);
    let widths = groups.filter_map(|group| known_ends(&group.estimate).map(|(lower, upper)| (upper - lower, group)));
    if let Some((_, widest)) = widths.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let range = interval(&widest.estimate).unwrap_or_default();
        sentences.push(format!("The widest interval of {} is that of {}: {range}.", main.label, widest.level));
    }
    Some(Statement::new("Small groups", sentences.join(" ")))
}

/// The reason why a value is missing, and the metrics without it.
type Reason<'a> = (&'a str, Vec<&'a str>);

/// Groups without a value, each with its reasons; metrics that share a reason are named together.
fn not_computed(report: &EvaluationReport) -> Option<Statement> {
    let mut groups: Vec<(String, Vec<Reason<'_>>)> = Vec::new();
    for metric in &report.metrics {
        for attribute in &metric.attributes {
            for group in attribute.groups.iter().filter(|group| group.estimate.value.is_none()) {
                let name = format!("{}: {}", attribute.attribute, group.level);
                let place = groups.iter().position(|known| known.0 == name).unwrap_or_else(|| {
                    groups.push((name, Vec::new()));
                    groups.len() - 1
                });
                let (reasons, why) = (&mut groups[place].1, reason(&group.estimate));
                match reasons.iter_mut().find(|known| known.0 == why) {
                    Some(known) => known.1.push(&metric.label),
                    None => reasons.push((why, vec![&metric.label])),
                }
            }
        }
    }
    let line = |(name, reasons): &(String, Vec<Reason<'_>>)| {
        let reasons = reasons.iter().map(|(why, labels)| format!("no {}: {why}", labels.join(", ")));
        format!("{name} has {}.", reasons.collect::<Vec<_>>().join("; "))
    };
    let lines: Vec<String> = groups.iter().map(line).collect();
    (!lines.is_empty()).then(|| Statement { topic: "Not computed".to_owned(), lines })
}

#[cfg(test)]
mod tests;
