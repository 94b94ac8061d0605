//! "Table 1" of the page: who the samples of every group are, and the risks at the horizon.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::GroupSummary;
use serde::Serialize;

use super::format::{column_of, percent};
use super::rows;
use super::verdict::{Ratio, percent_of};

/// The table of one model, or of several on the same samples: the samples once, then the predictions of every model.
#[derive(Debug, Serialize)]
pub(super) struct GroupsTable<'a> {
    /// The horizon with its unit, where there is one.
    horizon: Option<String>,
    time_unit: &'a str,
    level: String,
    /// The cause that is evaluated, of several.
    cause: Option<u32>,
    /// Names of the models; a single one is not named.
    pub(super) models: Vec<&'a str>,
    pub(super) lines: Vec<LineOfModels>,
}

/// A line of the first model, and what every model predicts.
#[derive(Debug, Serialize)]
pub(super) struct LineOfModels {
    #[serde(flatten)]
    pub(super) line: GroupLine,
    pub(super) predictions: Vec<Predicted>,
}

/// What one model predicts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Predicted {
    pub(super) risk: String,
    /// Observed divided by predicted, and the ends of its interval.
    ratio: String,
    ends: Option<String>,
}

impl Predicted {
    fn of(group: &GroupSummary, report: &EvaluationReport) -> Self {
        let none = || "none".to_owned();
        let risk = group.at_horizon.as_ref().map_or_else(none, |risk| percent_of(risk.predicted));
        let (ratio, ends) = Ratio::of(group, report).map_or_else(|| (none(), None), Ratio::texts);
        Self { risk, ratio, ends }
    }

    /// The ratio with its interval, on one line.
    pub(super) fn observed_by_predicted(&self) -> String {
        match &self.ends {
            Some(ends) => format!("{} ({ends})", self.ratio),
            None => self.ratio.clone(),
        }
    }
}

impl<'a> GroupsTable<'a> {
    /// `None` without groups or a whole sample, which a report of curves has.
    pub(super) fn of(models: &[(&'a str, &EvaluationReport)], time_unit: &'a str) -> Option<Self> {
        let (_, report) = models.first()?;
        // All reports have the same groups in the same order.
        let predictions = |place: usize| {
            let of_model = |(_, report): &(&str, &EvaluationReport)| {
                report.groups_summary.get(place).map(|group| Predicted::of(group, report))
            };
            models.iter().filter_map(of_model).collect::<Vec<_>>()
        };
        let mut place = 0..;
        let with_predictions = |line: GroupLine| {
            // The name of an attribute is no group.
            let predictions = if line.kind == "attribute" { None } else { place.next().map(predictions) };
            LineOfModels { line, predictions: predictions.unwrap_or_default() }
        };
        let lines: Vec<LineOfModels> = group_lines(report).into_iter().map(with_predictions).collect();
        (!lines.is_empty()).then(|| Self {
            horizon: rows::horizon(report, time_unit),
            time_unit,
            level: percent(report.settings.level),
            cause: report.cause.map(|evaluated| evaluated.cause),
            models: models.iter().map(|(name, _)| *name).collect(),
            lines,
        })
    }
}

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
    /// Why there are no risks.
    pub(super) remark: Option<String>,
}

/// The whole sample, then every attribute with its groups.
pub(super) fn group_lines(report: &EvaluationReport) -> Vec<GroupLine> {
    lines_of(&report.groups_summary)
}

/// The same for groups of other samples than those of a report.
pub(super) fn lines_of(groups: &[GroupSummary]) -> Vec<GroupLine> {
    let mut medians = column_of(groups.iter().map(|group| group.median_follow_up)).into_iter();
    let mut with_median = |group: &GroupSummary| {
        let line = line(group);
        GroupLine { follow_up: medians.next().flatten().unwrap_or(line.follow_up), ..line }
    };
    let mut lines = Vec::new();
    for groups in groups.chunk_by(|a, b| a.attribute == b.attribute) {
        if let Some(attribute) = &groups[0].attribute {
            let heading = GroupLine { kind: "attribute", name: attribute.clone(), ..line(&groups[0]) };
            lines.push(heading);
        }
        lines.extend(groups.iter().map(&mut with_median));
    }
    lines
}

fn line(group: &GroupSummary) -> GroupLine {
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
        follow_up: not_reached.to_owned(),
        observed: risk.map_or_else(none, |risk| percent_of(risk.observed)),
        observed_ends: risk.and_then(|risk| risk.observed_interval).map_or_else(none, ends),
        remark: group.at_horizon_undefined.clone(),
    }
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
        assert_eq!((all.follow_up.as_str(), lines[7].follow_up.as_str()), ("6.5", "not reached"));
        assert_eq!(lines[7].remark.as_deref(), Some("no sample is followed to time 4"));
        assert_eq!(lines[7].observed, "none");
    }

    #[test]
    fn follow_ups_have_one_number_of_decimals() {
        let mut report = report();
        (report.groups_summary[0].median_follow_up, report.groups_summary[1].median_follow_up) =
            (Some(4.583), Some(4.62));
        let lines = group_lines(&report);
        let shown: Vec<&str> = [0, 2, 3].iter().map(|k| lines[*k].follow_up.as_str()).collect();
        assert_eq!(shown, ["4.583", "4.620", "6.500"]);
    }

    #[test]
    fn several_models_have_one_line_per_group_with_the_predictions_of_each() {
        let (own, mut other) = (report(), report());
        for group in &mut other.groups_summary {
            group.at_horizon.iter_mut().for_each(|risk| (risk.predicted, risk.ratio) = (0.25, Some(2.0)));
        }
        let table = GroupsTable::of(&[("Cox", &own), ("CNN", &other)], "years").expect("there are groups");
        assert_eq!(table.lines.len(), group_lines(&own).len());
        let (all, sex, female) = (&table.lines[0], &table.lines[1], &table.lines[2]);
        assert_eq!((all.line.n, all.line.observed.as_str()), (120, "50.0 %"));
        let texts = |line: &LineOfModels| -> Vec<(String, String)> {
            line.predictions.iter().map(|of| (of.risk.clone(), of.observed_by_predicted())).collect()
        };
        let pair = |risk: &str, ratio: &str| (risk.to_owned(), ratio.to_owned());
        let of_all = [pair("40.0 %", "1.250 (1.050 to 1.450)"), pair("25.0 %", "2.000 (1.050 to 1.450)")];
        assert_eq!(texts(all), of_all);
        assert!(sex.line.kind == "attribute" && sex.predictions.is_empty());
        let of_few = [pair("40.0 %", "1.250 (0.750 to 1.750)"), pair("25.0 %", "2.000 (0.750 to 1.750)")];
        assert_eq!((female.line.name.as_str(), texts(female)), ("female", of_few.to_vec()));
    }
}
