//! "Table 1" of the page: who the samples of every group are, and the risks at the horizon.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::GroupSummary;
use serde::Serialize;

use super::format::{number, short};
use super::verdict::{Ratio, percent_of};

/// One line of the table.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct GroupLine {
    /// `all`, `attribute` or `group`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) n: usize,
    pub(super) subjects: usize,
    pub(super) events: usize,
    /// Events of other causes, where one of several causes is evaluated.
    pub(super) competing: Option<usize>,
    pub(super) censored: String,
    pub(super) follow_up: String,
    pub(super) observed: String,
    pub(super) observed_ends: String,
    pub(super) predicted: String,
    pub(super) ratio: String,
    /// Why there are no risks.
    pub(super) remark: Option<String>,
}

/// The whole sample, then every attribute with its groups.
pub(super) fn group_lines(report: &EvaluationReport) -> Vec<GroupLine> {
    lines_of(&report.groups_summary, report)
}

/// The same for groups of other samples than those of the report, which then have no risks.
pub(super) fn lines_of(groups: &[GroupSummary], report: &EvaluationReport) -> Vec<GroupLine> {
    let mut lines = Vec::new();
    for groups in groups.chunk_by(|a, b| a.attribute == b.attribute) {
        if let Some(attribute) = &groups[0].attribute {
            let heading = GroupLine { kind: "attribute", name: attribute.clone(), ..line(&groups[0], report) };
            lines.push(heading);
        }
        lines.extend(groups.iter().map(|group| line(group, report)));
    }
    lines
}

fn line(group: &GroupSummary, report: &EvaluationReport) -> GroupLine {
    let risk = group.at_horizon.as_ref();
    let none = || "none".to_owned();
    let ends = |(lower, upper): (f64, f64)| format!("{:.1} to {:.1} %", lower * 100.0, upper * 100.0);
    // Without samples there is no follow-up that could be reached.
    let not_reached = if group.n == 0 { "none" } else { "not reached" };
    GroupLine {
        kind: if group.attribute.is_some() { "group" } else { "all" },
        name: group.level.clone().unwrap_or_else(|| "all".to_owned()),
        n: group.n,
        subjects: group.n_subjects,
        events: group.n_events,
        competing: group.n_competing,
        censored: group.censored.map_or_else(none, percent_of),
        follow_up: group.median_follow_up.map_or_else(|| not_reached.to_owned(), short_or_number),
        observed: risk.map_or_else(none, |risk| percent_of(risk.observed)),
        observed_ends: risk.and_then(|risk| risk.observed_interval).map_or_else(none, ends),
        predicted: risk.map_or_else(none, |risk| percent_of(risk.predicted)),
        ratio: Ratio::of(group, report).map_or_else(none, |ratio| ratio.to_string()),
        remark: group.at_horizon_undefined.clone(),
    }
}

/// Times in at most four digits; those that are shorter than a thousandth in three decimals.
fn short_or_number(time: f64) -> String {
    if time.abs() < 1e-3 { number(time) } else { short(time) }
}

#[cfg(test)]
mod tests {
    use super::super::test_reports::report;
    use super::*;

    #[test]
    fn every_group_has_a_line_below_its_attribute() {
        let lines = group_lines(&report());
        let names: Vec<(&str, &str)> = lines.iter().map(|line| (line.kind, line.name.as_str())).collect();
        assert_eq!(names[..4], [("all", "all"), ("attribute", "sex"), ("group", "female"), ("group", "male")]);
        let all = &lines[0];
        assert_eq!((all.n, all.subjects, all.events, all.censored.as_str()), (120, 118, 61, "49.2 %"));
        assert_eq!((all.observed.as_str(), all.observed_ends.as_str()), ("50.0 %", "42.0 to 58.0 %"));
        assert_eq!((all.predicted.as_str(), all.ratio.as_str()), ("40.0 %", "1.250 (1.050 to 1.450)"));
        assert_eq!((all.follow_up.as_str(), lines[7].follow_up.as_str()), ("6.5", "not reached"));
        assert_eq!(lines[7].remark.as_deref(), Some("no sample is followed to time 4"));
        assert_eq!(lines[7].observed, "none");
    }
}
