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
use super::evidence::{Evidence, Finding, p_of_pair};
use super::format::{interval, list, number, p_relation, percent, short};
use super::rows::reason;
use super::words::FEW_EVENTS;

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
    let named = known.iter().filter_map(|name| report.metric(name));
    let numbers: Vec<String> = named.map(|metric| format!("{} {}", metric.label, with_ends(&metric.overall))).collect();
    let main = report.metrics.first()?;
    if numbers.is_empty() {
        return Some(format!("Overall, {} is {}.", main.label, with_ends(&main.overall)));
    }
    let ranking = report.metric(known[0]).map_or("The model was scored", |metric| ranking(&metric.overall));
    let level = if report.settings.replicates > 0 {
        format!(" (in brackets: {} intervals)", percent(report.settings.level))
    } else {
        String::new()
    };
    Some(format!("{ranking}: {}{level}.", list(&numbers)))
}

pub(super) fn ranking(estimate: &Estimate) -> &'static str {
    match (estimate.value, estimate.lower) {
        (None, _) => "How well the model ranks cannot be said",
        (Some(_), Some(lower)) if lower <= 0.5 => "These data do not show that the model ranks better than guessing",
        (Some(value), _) if value >= 0.8 => "The model ranks excellently",
        (Some(value), _) if value >= 0.7 => "The model ranks acceptably",
        (Some(value), _) if value > 0.5 => "The model ranks poorly, though better than guessing",
        _ => "The model ranks no better than guessing",
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
        None => "Which of its groups differ cannot be said: no two do so by themselves.".to_owned(),
    };
    let names = |of: Vec<&Tested<'_>>| list(&of.iter().map(|of| of.attribute.attribute.clone()).collect::<Vec<_>>());
    let others: Vec<&Tested<'_>> = differing.collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!(" It does not explain those by {} either.", names(others))
    };
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
    let shown = format!("No difference between groups in {label} can be told from chance; the largest is {largest}.");
    match found(Finding::OnlyUnadjusted) {
        Some(other) => format!(
            "{shown} That by {} would be rare by chance if no other attribute had been tested (p {}).",
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
        let clear = self.attribute.differences.iter().filter(|pair| p_of_pair(pair).is_some_and(|p| p <= error + 1e-9));
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
    text.push_str(match ratio.and_then(Ratio::side) {
        Some(Side::Under) => ": the model underestimates.",
        Some(Side::Over) => ": the model overestimates.",
        None => ": no miscalibration on average is shown.",
    });
    let enough = |group: &&GroupSummary| group.at_horizon.as_ref().is_some_and(|risk| risk.n_events >= FEW_EVENTS);
    let named = |wanted: Side| -> Vec<String> {
        let with_side = |group: &GroupSummary| {
            let ratio = Ratio::of(group, report)?;
            (ratio.side() == Some(wanted)).then(|| format!("{} (O/E {ratio})", name(group)))
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
    let few: Vec<String> = groups.iter().filter(|group| group.n > 0 && !enough(group)).map(name).collect();
    if !few.is_empty() {
        sentences.push(format!("Too few events (under {FEW_EVENTS} by then) to judge {}.", some_of(&few)));
    }
    Some(sentences.join(" "))
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
        Some(match bootstrapped(group, report) {
            Some(estimate) => Self { value: estimate.value.unwrap_or(value), ends: estimate.lower.zip(estimate.upper) },
            None => Self { value, ends: risk.ratio_interval },
        })
    }

    /// Value and interval as texts.
    pub(super) fn texts(self) -> (String, Option<String>) {
        (number(self.value), self.ends.map(|(lower, upper)| format!("{} to {}", number(lower), number(upper))))
    }

    /// Whether its interval excludes 1.
    pub(super) fn side(self) -> Option<Side> {
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
    group.attribute.as_ref().map_or_else(|| level.to_owned(), |attribute| format!("{attribute} = {level}"))
}

pub(super) fn some_of(names: &[String]) -> String {
    if names.len() <= MOST_NAMED {
        return list(names);
    }
    format!("{} and {} other groups", names[..MOST_NAMED].join(", "), names.len() - MOST_NAMED)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::super::test_reports::report;
    use super::*;

    #[test]
    fn three_sentences_answer_the_three_questions() {
        let said = verdict(&report(), "years");
        assert_eq!(said.len(), 3);
        assert_eq!(
            said[0],
            "The model ranks acceptably: C^td 0.720 (0.670 to 0.780), AUC^td 0.730 (0.680 to 0.790) and IBS 0.220 (0.170 \
             to 0.280) (in brackets: 95 % intervals)."
        );
        assert_eq!(
            said[1],
            "No difference between groups in C^td can be told from chance; the largest is by age (gap 0.160; p = 0.500)."
        );
        assert_eq!(
            said[2],
            "The predicted risk by 4 years is 40.0 % on average, the observed one 50.0 %, O/E 1.250 (1.050 to 1.450): the \
             model underestimates. The risk is underestimated for age = young (O/E 1.250 (1.050 to 1.450)). Too few events \
             (under 20 by then) to judge sex = female, sex = male, age = <b>old & \"frail\"</b> and age = unknown."
        );
    }

    /// The verdict on a report whose groups of `sex` have this p value of the gap (raw and adjusted), this interval of the gap
    /// and this p value of the two groups; `age` differs by neither test.
    fn said(of_gap: Option<[f64; 2]>, lower: f64, of_pair: f64) -> String {
        let mut report = report();
        let sex = &mut report.metrics[0].attributes[0];
        match (of_gap, &mut sex.gap_by_chance) {
            (Some([p, holm]), Some(by_chance)) => (by_chance.p_value, by_chance.p_holm) = (p, Some(holm)),
            (_, by_chance) => *by_chance = None,
        }
        sex.gap.lower = Some(lower);
        sex.differences[0].difference.p_value = Some(of_pair);
        largest_difference(&report.metrics[0], &report)
    }

    #[test]
    fn groups_differ_if_both_tests_say_so_and_two_are_named_if_they_differ_by_themselves() {
        let none = "No difference between groups in C^td can be told from chance; the largest is by age (gap 0.160; p = 0.500).";
        assert_eq!(said(Some([0.07, 0.14]), 0.0, 0.06), none);
        assert_eq!(
            said(Some([0.02, 0.04]), 0.01, 0.03),
            "Chance does not explain the differences in C^td by sex (gap 0.050, 0.062 by chance; p = 0.040). Most of all female \
             minus male: 0.050 (interval -0.140 to 0.130; p = 0.030)."
        );
        assert!(
            said(Some([0.02, 0.04]), 0.01, 0.06)
                .ends_with("Which of its groups differ cannot be said: no two do so by themselves.")
        );
        let alone = "That by sex would be rare by chance if no other attribute had been tested (p = 0.030).";
        assert_eq!(said(Some([0.03, 0.06]), 0.01, 0.03), format!("{none} {alone}"));
        assert_eq!(said(None, 0.01, 0.03), format!("{none} {alone}"), "0.03 for each of two attributes is 0.06");
        assert!(said(None, 0.01, 0.02).contains("by sex (gap 0.050; p = 0.040). Most of all female minus male"));
    }

    #[test]
    fn where_exchanged_labels_and_the_interval_disagree_nothing_is_said_about_a_difference() {
        assert_eq!(
            said(Some([0.02, 0.04]), 0.0, 0.06),
            "Whether groups differ in C^td cannot be said: by sex (gap 0.050, 0.062 by chance; p = 0.020), interval 0.000 to \
             0.173. Groups whose labels are exchanged rarely have a gap as large (p = 0.020): the two tests disagree, so nothing \
             can be said about a difference."
        );
        let often = said(Some([0.06, 0.12]), 0.01, 0.04);
        assert!(
            often.contains("Groups whose labels are exchanged often have a gap as large (p = 0.060): the two"),
            "{often}"
        );
    }

    #[test]
    fn the_largest_of_the_clear_differences_is_named_and_other_attributes_that_differ() {
        let mut report = report();
        let sex = &mut report.metrics[0].attributes[0];
        sex.gap.lower = Some(0.01);
        (sex.gap_by_chance.as_mut().unwrap().p_value, sex.gap_by_chance.as_mut().unwrap().p_holm) = (0.01, Some(0.01));
        let age = &mut report.metrics[0].attributes[1];
        age.gap.lower = Some(0.01);
        let mut pair = |value: f64, p: f64| {
            let mut pair = age.differences[0].clone();
            (pair.first, pair.difference.value, pair.difference.p_value) = (value.to_string(), Some(value), Some(p));
            age.differences.push(pair);
        };
        pair(-0.1, 0.001);
        pair(0.05, 0.001);
        let said = largest_difference(&report.metrics[0], &report);
        assert!(said.contains("by age (gap 0.160; p = 0.002). Most of all -0.1 minus"), "{said}");
        assert!(said.ends_with("It does not explain those by sex either."), "{said}");
        report.metrics[0].attributes[0].gap.lower = Some(0.0);
        let said = largest_difference(&report.metrics[0], &report);
        assert!(said.ends_with("Nothing can be said about those by sex: the two tests disagree."), "{said}");
    }

    #[test]
    fn a_poor_ranking_and_absent_intervals_are_called_by_their_names() {
        let mut report = report();
        report.metrics[0].overall.lower = Some(0.49);
        assert!(
            verdict(&report, "")[0].starts_with("These data do not show that the model ranks better than guessing")
        );
        for attribute in &mut report.metrics[0].attributes {
            attribute.differences.clear();
            attribute.gap_by_chance = None;
        }
        assert!(verdict(&report, "")[1].starts_with("Whether groups differ in C^td cannot be said"));
        report.groups_summary[0].at_horizon = None;
        report.groups_summary[0].at_horizon_undefined = Some("no follow-up".to_owned());
        let last = verdict(&report, "").pop().unwrap();
        assert_eq!(last, "Whether the predicted risks by 4 are right cannot be said: no follow-up.");
    }

    #[test]
    fn the_interval_of_the_bootstrap_is_preferred_at_the_same_horizon() {
        let mut report = report();
        let mut metric = report.metrics[0].clone();
        (metric.name, metric.horizon) = ("observed-expected".to_owned(), Some(4.0));
        report.metrics.push(metric);
        let of = |report: &EvaluationReport, group: usize| {
            Ratio::of(&report.groups_summary[group], report).map(|ratio| ratio.to_string())
        };
        assert_eq!(of(&report, 0).unwrap(), "0.720 (0.670 to 0.780)");
        assert_eq!(of(&report, 1).unwrap(), "0.740 (0.690 to 0.800)");
        report.metrics.last_mut().unwrap().horizon = Some(5.0);
        assert_eq!(of(&report, 1).unwrap(), "1.250 (0.750 to 1.750)");
        assert_eq!(of(&report, 5), None);
    }
}
