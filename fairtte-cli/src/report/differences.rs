//! The table "Differences between groups" of the page: every two groups, and further comparisons.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{
    AttributeReport, CAUTION_OF_DISTANCES, Difference, Estimate, GroupDifference, MetricReport,
};
use serde::Serialize;

use super::format::{interval, number, p_value, value};
use super::p_matrix::p_matrix;
use super::rows::remarks;

/// Maximum number of pairs that are shown, those with the largest differences; all are in the JSON.
const MOST_PAIRS: usize = 12;
/// The same beside a table of the p values of all pairs.
const MOST_BESIDE_MATRIX: usize = 3;

/// One line of the table.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Line {
    /// `attribute`, `group` (a pair of groups), `summary` or `note`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) value: String,
    pub(super) interval: String,
    pub(super) p: String,
    pub(super) remarks: Vec<String>,
}

/// All lines of `metric`, attribute by attribute; none without attributes.
pub(super) fn lines(metric: &MetricReport, report: &EvaluationReport) -> Vec<Line> {
    let mut lines = Vec::new();
    for attribute in &metric.attributes {
        lines.push(Line::text("attribute", attribute.attribute.clone()));
        let has_matrix = p_matrix(metric, attribute).is_some();
        let (pairs, note) = pairs(attribute, has_matrix);
        lines.extend(pairs.into_iter().map(|pair| Line::of_pair(pair, report)));
        lines.extend(note.map(|note| Line::text("note", note)));
        lines.extend(summaries(attribute, metric, report));
    }
    lines
}

/// What the table shows.
pub(super) fn caption(metric: &MetricReport) -> String {
    format!("{}: differences between groups", metric.label)
}

/// `F minus M`.
pub(super) fn name(pair: &GroupDifference) -> String {
    format!("{} minus {}", pair.first, pair.second)
}

/// The interval as `-0.201 to -0.017`, where there is one.
pub(super) fn ends(difference: &Difference) -> Option<String> {
    let (lower, upper) = difference.lower.zip(difference.upper)?;
    Some(format!("{} to {}", number(lower), number(upper)))
}

/// Why there is no value or interval, or what the interval leaves out.
pub(super) fn remarks_on(difference: &Difference, report: &EvaluationReport) -> Vec<String> {
    if let Some(reason) = &difference.undefined {
        let what = if difference.value.is_some() { "no interval: " } else { "" };
        return vec![format!("{what}{reason}")];
    }
    let few = difference.caution.clone().filter(|caution| caution != CAUTION_OF_DISTANCES);
    let (without, replicates) = (difference.undefined_replicates, report.settings.replicates);
    let without = (without > 0)
        .then(|| format!("no value in {without} of {replicates} bootstrap replicates; interval from the others"));
    few.into_iter().chain(without).collect()
}

/// The pairs to show, and a note on the others.
fn pairs(attribute: &AttributeReport, has_matrix: bool) -> (Vec<&GroupDifference>, Option<String>) {
    let mut pairs: Vec<&GroupDifference> =
        attribute.differences.iter().filter(|pair| pair.difference.value.is_some()).collect();
    // A pair with a group of few events has no p value.
    let is_shown = |pair: &&GroupDifference| !has_matrix || pair.difference.p_value.is_some();
    pairs.retain(is_shown);
    let n = pairs.len();
    let most = if has_matrix { MOST_BESIDE_MATRIX } else { MOST_PAIRS };
    if n <= most {
        return (pairs, None);
    }
    let size = |pair: &GroupDifference| pair.difference.value.map_or(0.0, f64::abs);
    pairs.sort_by(|a, b| size(b).total_cmp(&size(a)));
    pairs.truncate(most);
    let matrix = if has_matrix { "their p values are in the table of all pairs, " } else { "" };
    let what = if has_matrix { "tested differences" } else { "differences" };
    let by = &attribute.attribute;
    let note =
        format!("the {most} largest of {n} {what} by {by}; {matrix}all of them are in the JSON file of the evaluation");
    (pairs, Some(note))
}

fn summaries(attribute: &AttributeReport, metric: &MetricReport, report: &EvaluationReport) -> Vec<Line> {
    let mut lines = vec![
        Line::of_estimate("largest distance from the whole sample (0 = equal)", &attribute.gap_to_overall, report),
        Line::of_estimate("smallest divided by largest value (1 = equal)", &attribute.ratio, report),
        Line::of_estimate("ratio to the whole sample (1 = equal)", &attribute.ratio_to_overall, report),
    ];
    // If higher is better, both forms have the same value, which is in the table above; with a target there is none.
    if !metric.higher_is_better && metric.target.is_none() {
        let scaling = &attribute.equity_scaling_fair_seg;
        lines.push(Line::of_estimate("equity scaling, form of FairSeg", scaling, report));
    }
    // They often share their remark, which is then shown once, below the last.
    for k in 1..lines.len() {
        if lines[k - 1].remarks == lines[k].remarks {
            lines[k - 1].remarks.clear();
        }
    }
    lines
}

impl Line {
    fn text(kind: &'static str, name: String) -> Self {
        let empty = String::new;
        Self { kind, name, value: empty(), interval: empty(), p: empty(), remarks: Vec::new() }
    }

    fn of_pair(pair: &GroupDifference, report: &EvaluationReport) -> Self {
        let difference = &pair.difference;
        Self {
            value: difference.value.map_or_else(|| "undefined".to_owned(), number),
            interval: ends(difference).unwrap_or_else(|| "none".to_owned()),
            p: p_values(difference),
            remarks: remarks_on(difference, report),
            ..Self::text("group", name(pair))
        }
    }

    fn of_estimate(name: &str, estimate: &Estimate, report: &EvaluationReport) -> Self {
        Self {
            value: value(estimate),
            interval: interval(estimate).unwrap_or_else(|| "none".to_owned()),
            remarks: remarks(estimate, report),
            ..Self::text("summary", name.to_owned())
        }
    }
}

/// The p value and, with several pairs, the one adjusted for them.
fn p_values(difference: &Difference) -> String {
    match (difference.p_value, difference.p_holm) {
        (Some(p), Some(holm)) => format!("{} (Holm {})", p_value(p), p_value(holm)),
        (Some(p), None) => p_value(p),
        (None, _) => String::new(),
    }
}

/// The one difference of an attribute of which two groups have a value.
pub(super) fn only_pair(attribute: &AttributeReport) -> Option<&GroupDifference> {
    let mut defined = attribute.differences.iter().filter(|pair| pair.difference.value.is_some());
    defined.next().filter(|_| defined.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::super::test_reports::{difference, report};
    use super::*;

    #[test]
    fn of_many_pairs_the_largest_are_shown_and_the_others_counted() {
        let mut report = report();
        let attribute = &mut report.metrics[0].attributes[0];
        attribute.differences = (0..28)
            .map(|k: u8| {
                difference(&format!("g{k}"), "rest", f64::from(k) * if k.is_multiple_of(2) { 0.01 } else { -0.01 })
            })
            .collect();
        let lines = lines(&report.metrics[0], &report);
        let shown: Vec<&Line> = lines.iter().take_while(|line| line.kind != "note").skip(1).collect();
        assert_eq!(shown.len(), 12);
        assert_eq!((shown[0].name.as_str(), shown[0].value.as_str()), ("g27 minus rest", "-0.270"));
        assert_eq!((shown[11].name.as_str(), shown[11].value.as_str()), ("g16 minus rest", "0.160"));
        assert_eq!(
            lines[13].name,
            "the 12 largest of 28 differences by sex; all of them are in the JSON file of the evaluation"
        );
    }

    #[test]
    fn a_difference_without_a_value_is_not_shown_and_one_without_an_interval_says_why() {
        let mut report = report();
        let mut pairs = vec![difference("a", "b", 0.1), difference("a", "c", 0.2), difference("b", "c", 0.1)];
        pairs[1].difference.value = None;
        pairs[1].difference.undefined = Some("no event".to_owned());
        let without = &mut pairs[2].difference;
        (without.lower, without.upper, without.p_value) = (None, None, None);
        without.undefined = Some("0 of 1000 bootstrap replicates define the value".to_owned());
        report.metrics[0].attributes[0].differences = pairs;
        let lines = lines(&report.metrics[0], &report);
        assert_eq!([&lines[1].name, &lines[2].name], ["a minus b", "b minus c"]);
        assert_eq!(lines[2].remarks, ["no interval: 0 of 1000 bootstrap replicates define the value"]);
        assert_eq!((lines[2].interval.as_str(), lines[2].p.as_str()), ("none", ""));
        assert!(lines[3].kind == "summary" && lines[3].name.starts_with("largest distance"));
    }
}
