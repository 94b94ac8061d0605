//! The verdict at the top of the page: three sentences on how good the model is, whether groups differ, and whether the
//! predicted risks are right.
//!
//! Words for a concordance or AUC follow Hosmer, Lemeshow & Sturdivant (2013), section 5.2.4: from 0.7 acceptable, from
//! 0.8 excellent. The groups of an attribute differ if both tests of [`super::evidence`] say so, the p value of the gap
//! adjusted by Holm's method for the attributes. Two groups are named only if their own p value, adjusted for the pairs of
//! the attribute, rejects as well.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{AttributeReport, Estimate, GroupDifference, GroupSummary, MetricReport};

use super::differences;
use super::evidence::{Evidence, Finding, is_small, p_of_pair};
use super::format::{interval, known_ends, list, number, of_level, p_relation, percent, short, telling_ends};
use super::rows::reason;
use super::words::FEW_EVENTS;
use crate::plural::counted;

/// Concordances that are the first metric of some evaluations, beside those that every verdict names.
const FIRST: [&str; 5] = ["c_td_half", "c-td-ipcw", "harrell-c", "uno-c", "cause-c"];

/// Differences below this do not show in three decimals.
const VISIBLE: f64 = 0.001;

/// More groups than this are counted instead of named.
const MOST_NAMED: usize = 4;

/// One sentence (or a few that belong together) on each of the three questions.
pub(super) fn verdict(report: &EvaluationReport, time_unit: &str) -> Vec<String> {
    let mut verdict: Vec<String> = Vec::new();
    verdict.extend(overall(report));
    verdict.extend(report.metrics.first().map(|metric| largest_difference(metric, report)));
    verdict.extend(calibration(report, time_unit));
    verdict
}

fn overall(report: &EvaluationReport) -> Option<String> {
    let known = match report.cause {
        None => ["c_td_antolini_strict", "auc_td", "ibs"],
        Some(_) => ["cause-c-td", "cause-auc-td", "cause-ibs"],
    };
    let main = report.metrics.first()?;
    // The sentence on groups is about the first metric: where that is a concordance, so is this one. Where predictions tie, 0.5 is the
    // value of guessing only if tied pairs count 1/2.
    let first = FIRST.iter().find(|name| main.name == **name).or_else(|| ties_count(report).then_some(&FIRST[0]));
    let named = first.into_iter().chain(&known).filter_map(|name| report.metric(name));
    let numbers: Vec<String> = named.map(|metric| format!("{} {}", metric.label, with_ends(&metric.overall))).collect();
    if numbers.is_empty() {
        return Some(format!("Overall, {} is {}.", main.label, with_ends(&main.overall)));
    }
    let ranking =
        report.metric(first.unwrap_or(&known[0])).map_or("The model was scored", |metric| ranking(&metric.overall));
    let level = if report.settings.replicates > 0 {
        format!(" (in brackets: {} intervals)", percent(report.settings.level))
    } else {
        String::new()
    };
    Some(format!("{ranking}: {}{level}.", list(&numbers)))
}

/// Whether C^td changes if pairs with equal predictions count 1/2.
pub(super) fn ties_count(report: &EvaluationReport) -> bool {
    let value = |name: &str| report.metric(name)?.overall.value;
    value("c_td_half").zip(value("c_td_antolini_strict")).is_some_and(|(half, strict)| half - strict >= VISIBLE)
}

/// How well the model ranks: a word for the value only where an interval shows that it is not that of guessing.
pub(super) fn ranking(estimate: &Estimate) -> &'static str {
    match (estimate.value, known_ends(estimate)) {
        (None, _) => "How well the model ranks cannot be said",
        (Some(_), None) => "Whether the model ranks better than guessing was not tested",
        (Some(value), Some((lower, _))) if lower.min(value) <= 0.5 => {
            "These data do not show that the model ranks better than guessing"
        }
        (Some(value), _) if value >= 0.8 => "The model ranks excellently",
        (Some(value), _) if value >= 0.7 => "The model ranks acceptably",
        (Some(_), _) => "The model ranks poorly, though better than guessing",
    }
}

pub(super) fn with_ends(estimate: &Estimate) -> String {
    match (estimate.value, interval(estimate)) {
        (Some(value), Some(range)) => format!("{} ({range})", number(value)),
        (Some(value), None) => number(value),
        (None, _) => format!("undefined ({})", reason(estimate)),
    }
}

/// Whether the groups of an attribute differ by more than chance, and which two of them differ most.
pub(super) fn largest_difference(metric: &MetricReport, report: &EvaluationReport) -> String {
    let label = &metric.label;
    if metric.attributes.is_empty() {
        return "No groups were given, so nothing can be said about differences between them.".to_owned();
    }
    let of_attributes = metric.attributes.iter();
    let mut tested: Vec<Tested<'_>> = of_attributes
        .filter_map(|attribute| Some(Tested { attribute, evidence: Evidence::of(attribute, metric, report)? }))
        .collect();
    tested.sort_by(|a, b| b.gap().total_cmp(&a.gap()));
    let found = |finding: Finding| tested.iter().filter(move |tested| tested.evidence.finding == finding);
    let mut differing = found(Finding::Differ);
    if tested.is_empty() {
        return format!(
            "Whether groups differ in {label} cannot be said: no two groups have enough {} and an interval.",
            match (&report.class, &report.masks) {
                (Some(_), _) => "samples of both classes",
                (_, Some(_)) => "samples with a value",
                _ => "events",
            }
        );
    }
    let Some(first) = differing.next() else { return nothing_shown(&tested, label, report) };
    let pair = match first.clearest_pair(1.0 - report.settings.level) {
        Some(pair) => {
            let (range, p) = (differences::ends(&pair.difference).unwrap_or_default(), p_of_pair(pair).unwrap_or(1.0));
            let value = signed(pair.difference.value);
            format!("Most of all {}: {value} (interval {range}; p {}).", differences::name(pair), p_relation(p))
        }
        None => "Which of its groups differ cannot be said: no pair of them is shown to differ.".to_owned(),
    };
    let names = |of: Vec<&Tested<'_>>| list(&of.iter().map(|of| of.attribute.attribute.clone()).collect::<Vec<_>>());
    let others: Vec<&Tested<'_>> = differing.collect();
    let others =
        if others.is_empty() { String::new() } else { format!(" Nor does it explain those by {}.", names(others)) };
    let unclear: Vec<&Tested<'_>> = found(Finding::Disagree).collect();
    let unclear = if unclear.is_empty() {
        String::new()
    } else {
        format!(" Nothing can be said about those by {}: the two tests disagree.", names(unclear))
    };
    format!("Chance does not explain the differences in {label} {first}. {pair}{others}{unclear}")
}

/// No attribute differs by both tests; `tested` begins with the largest gap.
fn nothing_shown(tested: &[Tested<'_>], label: &str, report: &EvaluationReport) -> String {
    let found = |finding: Finding| tested.iter().find(|tested| tested.evidence.finding == finding);
    if let Some(unclear) = found(Finding::Disagree) {
        let range = interval(&unclear.attribute.gap).unwrap_or_default();
        let why = unclear.evidence.conclusion(unclear.attribute, report);
        return format!("Whether groups differ in {label} cannot be said: {unclear}, interval {range}. {why}");
    }
    let largest = &tested[0];
    let shown =
        format!("No difference between groups in {label} can be distinguished from chance; the largest is {largest}.");
    match found(Finding::OnlyUnadjusted) {
        Some(other) => format!(
            "{shown} The difference by {} would be significant if no other attribute had been tested (p {}).",
            other.attribute.attribute,
            p_relation(other.evidence.p)
        ),
        None => shown,
    }
}

/// An attribute with the tests of its groups.
struct Tested<'a> {
    attribute: &'a AttributeReport,
    evidence: Evidence,
}

impl<'a> Tested<'a> {
    fn gap(&self) -> f64 {
        self.attribute.gap.value.unwrap_or(0.0)
    }

    /// The two groups with the largest of the differences that chance does not explain.
    fn clearest_pair(&self, error: f64) -> Option<&'a GroupDifference> {
        let size = |pair: &GroupDifference| pair.difference.value.map_or(0.0, f64::abs);
        let is_clear = |pair: &&GroupDifference| p_of_pair(pair).is_some_and(|p| is_small(p, error));
        let clear = self.attribute.differences.iter().filter(is_clear);
        clear.max_by(|a, b| size(a).total_cmp(&size(b)))
    }
}

/// `by sex (gap 0.080, 0.031 by chance; p = 0.005)`.
impl std::fmt::Display for Tested<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "by {} (gap {}", self.attribute.attribute, number(self.gap()))?;
        if let Some(by_chance) = &self.attribute.gap_by_chance {
            write!(f, ", {} by chance", number(by_chance.mean))?;
        }
        write!(f, "; p {})", p_relation(self.evidence.p_shown()))
    }
}

fn signed(value: Option<f64>) -> String {
    value.map_or_else(|| "undefined".to_owned(), number)
}

/// Observed against predicted risk at the horizon, of all samples and by group.
fn calibration(report: &EvaluationReport, time_unit: &str) -> Option<String> {
    let (all, groups) = report.groups_summary.split_first()?;
    let horizon = report.horizon?;
    let by = format!("by {} {time_unit}", short(horizon));
    let by = by.trim_end();
    let Some(risk) = &all.at_horizon else {
        let why = all.at_horizon_undefined.as_deref().unwrap_or("no reason was recorded");
        return Some(format!("Whether the predicted risks {by} are right cannot be said: {why}."));
    };
    let (observed, predicted) = (percent_of(risk.observed), percent_of(risk.predicted));
    let mut text = format!("The predicted risk {by} is {predicted} on average, the observed one {observed}");
    let ratio = Ratio::of(all, report);
    text.push_str(&ratio.map_or_else(String::new, |ratio| format!(", O/E {ratio}")));
    text.push_str(match (side(all, report), is_tested(all, report)) {
        (Some(Side::Under), _) => ": the model underestimates.",
        (Some(Side::Over), _) => ": the model overestimates.",
        (None, true) => ": no miscalibration on average is shown.",
        (None, false) => ", without an interval that says whether this is chance.",
    });
    let events = |group: &GroupSummary| group.at_horizon.as_ref().map(|risk| risk.n_events);
    let enough = |group: &&GroupSummary| events(group).is_some_and(|n_events| n_events >= FEW_EVENTS);
    let named = |wanted: Side| -> Vec<String> {
        let with_side = |group: &GroupSummary| {
            let ratio = Ratio::of(group, report).map_or_else(|| "undefined".to_owned(), |ratio| ratio.to_string());
            (side(group, report) == Some(wanted)).then(|| format!("{} (O/E {ratio})", name(group)))
        };
        groups.iter().filter(enough).filter_map(with_side).collect()
    };
    let mut sentences = vec![text];
    for (side, verb) in [(Side::Under, "underestimated"), (Side::Over, "overestimated")] {
        let found = named(side);
        if !found.is_empty() {
            sentences.push(format!("The risk is {verb} for {}.", some_of(&found)));
        }
    }
    let (known, unknown): (Vec<&GroupSummary>, Vec<_>) =
        groups.iter().filter(|group| group.n > 0).partition(|group| events(group).is_some());
    let few: Vec<String> = known.into_iter().filter(|group| !enough(group)).map(name).collect();
    if !few.is_empty() {
        sentences.push(format!("Too few events (under {FEW_EVENTS} by then) to judge {}.", some_of(&few)));
    }
    if !unknown.is_empty() {
        let unknown: Vec<String> = unknown.into_iter().map(name).collect();
        sentences.push(format!("No observed risk by then is known for {}.", some_of(&unknown)));
    }
    Some(sentences.join(" "))
}

/// On which side the predicted risks are wrong, if more than by chance. Where every one is 0 there is no ratio, and an observed risk whose
/// interval excludes 0 is underestimated.
pub(super) fn side(group: &GroupSummary, report: &EvaluationReport) -> Option<Side> {
    let risk = group.at_horizon.as_ref()?;
    match Ratio::of(group, report) {
        Some(ratio) => ratio.side(),
        None => risk.observed_interval.filter(|(lower, _)| *lower > 0.0).map(|_| Side::Under),
    }
}

/// Whether there is an interval that says whether the predicted risks are wrong by more than chance.
pub(super) fn is_tested(group: &GroupSummary, report: &EvaluationReport) -> bool {
    let observed = group.at_horizon.as_ref().and_then(|risk| risk.observed_interval);
    Ratio::of(group, report).map_or(observed.is_some(), |ratio| ratio.ends.is_some())
}

/// Observed divided by predicted risk with its interval: that of the bootstrap where the report has the metric at the same
/// horizon, otherwise that of the Kaplan-Meier or Aalen-Johansen curve.
#[derive(Clone, Copy)]
pub(super) struct Ratio {
    value: f64,
    ends: Option<(f64, f64)>,
}

/// Whether the interval excludes 1, and on which side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Under,
    Over,
}

impl Ratio {
    /// `None` where there is no risk at the horizon.
    pub(super) fn of(group: &GroupSummary, report: &EvaluationReport) -> Option<Self> {
        let risk = group.at_horizon.as_ref()?;
        let value = risk.ratio?;
        let ratio = match bootstrapped(group, report) {
            Some(estimate) => Self { value: estimate.value.unwrap_or(value), ends: known_ends(estimate) },
            None => Self { value, ends: risk.ratio_interval },
        };
        let ends = ratio.ends.and_then(|ends| telling_ends(ends, group.n_subjects, risk.n_events));
        Some(Self { ends, ..ratio })
    }

    /// Value and interval as texts.
    pub(super) fn texts(self) -> (String, Option<String>) {
        (number(self.value), self.ends.map(|(lower, upper)| format!("{} to {}", number(lower), number(upper))))
    }

    /// Whether its interval excludes 1.
    fn side(self) -> Option<Side> {
        match self.ends? {
            (lower, _) if lower > 1.0 => Some(Side::Under),
            (_, upper) if upper < 1.0 => Some(Side::Over),
            _ => None,
        }
    }
}

/// `1.124 (0.981 to 1.272)`.
impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&number(self.value))?;
        self.ends.map_or(Ok(()), |(lower, upper)| write!(f, " ({} to {})", number(lower), number(upper)))
    }
}

fn bootstrapped<'a>(group: &GroupSummary, report: &'a EvaluationReport) -> Option<&'a Estimate> {
    let name = if report.cause.is_some() { "cause-observed-expected" } else { "observed-expected" };
    let metric = report.metric(name).filter(|metric| metric.horizon == report.horizon)?;
    let Some(attribute) = &group.attribute else { return Some(&metric.overall) };
    let attribute = metric.attributes.iter().find(|found| found.attribute == *attribute)?;
    let level = attribute.groups.iter().find(|found| Some(&found.level) == group.level.as_ref())?;
    Some(&level.estimate)
}

/// A share with one decimal.
pub(super) fn percent_of(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn name(group: &GroupSummary) -> String {
    let level = group.level.as_deref().unwrap_or("all");
    group.attribute.as_ref().map_or_else(|| level.to_owned(), |attribute| of_level(attribute, level))
}

pub(super) fn some_of(names: &[String]) -> String {
    if names.len() <= MOST_NAMED {
        return list(names);
    }
    let more = counted(names.len() - MOST_NAMED, "other group");
    format!("{} and {more}", names[..MOST_NAMED].join(", "))
}

#[cfg(test)]
mod tests;
