//! The verdict at the top of the page: three sentences on how good the model is, whether groups differ, and whether the
//! predicted risks are right.
//!
//! Words for a concordance or AUC follow Hosmer, Lemeshow & Sturdivant (2013), section 5.2.4: from 0.7 acceptable, from
//! 0.8 excellent. A difference counts as believable if its p value, adjusted by Holm's method for the pairs of the
//! attribute and multiplied by the number of attributes, is below the error level of the intervals.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{Estimate, GroupSummary, MetricReport};

use super::differences;
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
    let known = ["c_td_antolini_strict", "auc_td", "ibs"];
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

fn ranking(estimate: &Estimate) -> &'static str {
    match (estimate.value, estimate.lower) {
        (None, _) => "How well the model ranks cannot be said",
        (Some(_), Some(lower)) if lower <= 0.5 => "These data do not show that the model ranks better than guessing",
        (Some(value), _) if value >= 0.8 => "The model ranks excellently",
        (Some(value), _) if value >= 0.7 => "The model ranks acceptably",
        (Some(value), _) if value > 0.5 => "The model ranks poorly, though better than guessing",
        _ => "The model ranks no better than guessing",
    }
}

fn with_ends(estimate: &Estimate) -> String {
    match (estimate.value, interval(estimate)) {
        (Some(value), Some(range)) => format!("{} ({range})", number(value)),
        (Some(value), None) => number(value),
        (None, _) => format!("undefined ({})", reason(estimate)),
    }
}

/// The largest difference between two groups that chance does not explain, or that there is none.
fn largest_difference(metric: &MetricReport, report: &EvaluationReport) -> String {
    let label = &metric.label;
    if metric.attributes.is_empty() {
        return "No groups were given, so nothing can be said about differences between them.".to_owned();
    }
    let n_attributes = metric.attributes.len() as f64;
    let pairs = metric.attributes.iter().flat_map(|a| a.differences.iter().map(move |pair| (&a.attribute, pair)));
    let mut tested: Vec<_> = pairs
        .filter_map(|(attribute, pair)| {
            let (value, p) = (pair.difference.value?, pair.difference.p_holm.or(pair.difference.p_value)?);
            Some((attribute, pair, value.abs(), (p * n_attributes).min(1.0)))
        })
        .collect();
    tested.sort_by(|a, b| b.2.total_cmp(&a.2));
    let believable = tested.iter().find(|(.., p)| *p < 1.0 - report.settings.level);
    let Some((attribute, pair, size, p)) = believable.or(tested.first()) else {
        return format!(
            "Whether groups differ in {label} cannot be said: no two groups have enough events and an interval."
        );
    };
    let range = differences::ends(&pair.difference).unwrap_or_default();
    let difference = format!("{}, {} (interval {range}", differences::name(pair), signed(pair.difference.value));
    let adjusted = "adjusted for all pairs and attributes";
    if believable.is_some() {
        let n_others = tested.iter().filter(|other| other.2 > *size).count();
        let others = if n_others == 0 { "" } else { " Larger differences can be chance." };
        return format!(
            "The largest difference in {label} that is hardly chance is by {attribute}: {difference}; p {}, {adjusted}).\
             {others}",
            p_relation(*p)
        );
    }
    format!(
        "No difference between groups in {label} can be told from chance; the largest is by {attribute}: {difference}; \
         p {}, {adjusted}).",
        p_relation(*p)
    )
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
/// horizon, otherwise that of the Kaplan-Meier curve.
#[derive(Clone, Copy)]
pub(super) struct Ratio {
    value: f64,
    ends: Option<(f64, f64)>,
}

/// Whether the interval excludes 1, and on which side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
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
    let metric = report.metric("observed-expected").filter(|metric| metric.horizon == report.horizon)?;
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

fn some_of(names: &[String]) -> String {
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
            "No difference between groups in C^td can be told from chance; the largest is by age: young minus <b>old & \
             \"frail\"</b>, 0.160 (interval 0.070 to 0.240; p = 0.500, adjusted for all pairs and attributes)."
        );
        assert_eq!(
            said[2],
            "The predicted risk by 4 years is 40.0 % on average, the observed one 50.0 %, O/E 1.250 (1.050 to 1.450): the \
             model underestimates. The risk is underestimated for age = young (O/E 1.250 (1.050 to 1.450)). Too few events \
             (under 20 by then) to judge sex = female, sex = male, age = <b>old & \"frail\"</b> and age = unknown."
        );
    }

    #[test]
    fn a_difference_is_believed_only_after_adjustment_for_the_attributes() {
        let mut report = report();
        let p = |report: &mut EvaluationReport, p: f64| {
            report.metrics[0].attributes[0].differences[0].difference.p_value = Some(p);
            largest_difference(&report.metrics[0], report)
        };
        assert!(p(&mut report, 0.03).starts_with("No difference"), "0.03 for each of two attributes is 0.06");
        let clear = p(&mut report, 0.02);
        assert!(clear.starts_with("The largest difference in C^td that is hardly chance is by sex: female minus male"));
        assert!(clear.contains("p = 0.040") && clear.ends_with("Larger differences can be chance."), "{clear}");
    }

    #[test]
    fn a_poor_ranking_and_absent_intervals_are_called_by_their_names() {
        let mut report = report();
        report.metrics[0].overall.lower = Some(0.49);
        assert!(
            verdict(&report, "")[0].starts_with("These data do not show that the model ranks better than guessing")
        );
        report.metrics[0].attributes.iter_mut().for_each(|attribute| attribute.differences.clear());
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
