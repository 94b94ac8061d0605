//! The results of a card: every metric by group with its interval, and the gaps beside what chance makes of equal groups.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{AttributeReport, Estimate, GroupReport, MetricReport};

use super::super::classes::{criteria, decisions, horizon_table, verdict as verdict_of_class};
use super::super::format::{count, interval, number, p_relation, p_value, short, value};
use super::super::rows;
use super::super::tables::evaluation::interval_name;
use super::super::tables::markdown::escape;
use super::super::tables::{Line, Table};
use super::super::verdict::verdict;
use super::{Card, CardClass};

impl Card<'_> {
    pub(super) fn analyses(&self) -> String {
        let report = self.evaluation;
        let mut text = format!(
            "## Quantitative analyses\n\nIn the test part ({} of {}, {}):\n\n",
            count(report.n, "sample"),
            count(report.n_subjects, "subject"),
            rows::events(report)
        );
        let said = match &self.class {
            Some(class) => verdict_of_class(&class.numbers),
            None => verdict(report, self.time_unit),
        };
        for sentence in said {
            text.extend([format!("- {}\n", escape(&sentence))]);
        }
        text += &self.of_class();
        let is_crossed = |name: &str| self.attributes.iter().any(|found| found.name == name && found.is_intersection);
        text += "\n### Unitary results\n";
        text += &results(report, &|name| !is_crossed(name), "each group of one attribute");
        text += "\n### Intersectional results\n";
        let evaluated = report.metrics.iter().flat_map(|metric| &metric.attributes);
        text += &if evaluated.into_iter().any(|attribute| is_crossed(&attribute.attribute)) {
            results(report, &is_crossed, "each group of crossed attributes")
        } else {
            "\nNo intersections of attributes were evaluated. `groups.intersections` of the run file names them, and `fairtte \
             train` with it shows the finished run again, with them.\n"
                .to_owned()
        };
        if !self.externals.is_empty() {
            text += "\n### External results\n\n";
            text += &self.external_results().markdown();
        }
        text
    }

    /// What only a class has: who was left out, decisions and criteria of fairness.
    fn of_class(&self) -> String {
        let Some(CardClass { numbers, .. }) = &self.class else { return String::new() };
        let left_out = numbers.horizon.map(|found| horizon_table(found, self.time_unit));
        let tables = left_out.into_iter().chain([decisions(numbers)]).chain(criteria(numbers.report));
        tables.map(|table| format!("\n{}", table.sheet().markdown())).collect::<Vec<_>>().concat()
    }

    /// This run's test part and every external evaluation, in the metrics of this run.
    fn external_results(&self) -> Table {
        let report = self.evaluation;
        let metrics = shown(report);
        let mut lines = vec![Line::Heading("test part of this run".to_owned())];
        lines.extend(Values::of(report, &metrics).whole());
        for external in self.externals {
            let intervals = other_intervals(report, &external.report);
            lines.push(Line::Heading(format!("{}{intervals}", external.name)));
            lines.extend(Values::of(&external.report, &metrics).whole());
        }
        Table {
            name: "external".to_owned(),
            caption: format!("Internal and external validation, with {}s.", interval_name(report)),
            header: header(&metrics, report),
            lines,
        }
    }
}

/// The intervals of an external evaluation where they are not those of `report`, which the caption names; empty otherwise.
fn other_intervals(report: &EvaluationReport, external: &EvaluationReport) -> String {
    let (own, other) = (interval_name(report), interval_name(external));
    match external.settings.replicates {
        _ if own == other => String::new(),
        0 => " (no intervals)".to_owned(),
        _ => format!(" ({other}s)"),
    }
}

/// The metrics that do not repeat another.
fn shown(report: &EvaluationReport) -> Vec<&MetricReport> {
    report.metrics.iter().filter(|metric| rows::same_as(report, metric).is_none()).collect()
}

fn header(metrics: &[&MetricReport], report: &EvaluationReport) -> Vec<String> {
    let counts = ["group", "n", rows::events_column(report)].map(str::to_owned);
    counts.into_iter().chain(metrics.iter().map(|metric| metric.label.clone())).collect()
}

/// Values by group, then gaps, of the attributes that are `wanted`.
fn results(report: &EvaluationReport, wanted: &dyn Fn(&str) -> bool, who: &str) -> String {
    let metrics = shown(report);
    let values = Values::of(report, &metrics);
    let mut lines = vec![values.all(false)];
    for name in values.attributes().into_iter().filter(|name| wanted(name)) {
        lines.push(Line::Heading(name.to_owned()));
        lines.extend(values.groups(name, &|level| level.to_owned()));
    }
    let by_group = Table {
        name: "values".to_owned(),
        caption: format!(
            "Every metric over all samples of the test part and in {who}, with {}s.",
            interval_name(report)
        ),
        header: header(&metrics, report),
        lines,
    };
    let gaps = gaps(report, &metrics, wanted);
    format!("\n{}\n{}", by_group.markdown(), gaps.map_or_else(String::new, |table| table.markdown()))
}

fn attribute_of<'a>(metric: &'a MetricReport, name: &str) -> Option<&'a AttributeReport> {
    metric.attributes.iter().find(|attribute| attribute.attribute == name)
}

/// The numbers of an evaluation, one column for each of some metrics.
struct Values<'a> {
    report: &'a EvaluationReport,
    /// The metric as it is requested, and as the report has it.
    columns: Vec<(&'a MetricReport, Option<&'a MetricReport>)>,
}

impl<'a> Values<'a> {
    /// The columns of `metrics`, which may be those of another report.
    fn of(report: &'a EvaluationReport, metrics: &[&'a MetricReport]) -> Self {
        let columns = metrics.iter().map(|metric| (*metric, report.metric(&metric.name))).collect();
        Self { report, columns }
    }

    fn present(&self) -> impl Iterator<Item = &'a MetricReport> {
        self.columns.iter().filter_map(|(_, own)| *own)
    }

    /// All attributes of the metrics, each once.
    fn attributes(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for attribute in self.present().flat_map(|metric| &metric.attributes) {
            if !names.contains(&attribute.attribute.as_str()) {
                names.push(&attribute.attribute);
            }
        }
        names
    }

    /// All samples, every group, and the gap of every attribute.
    fn whole(&self) -> Vec<Line> {
        let mut lines = vec![self.all(true)];
        for attribute in self.attributes() {
            lines.extend(self.groups(attribute, &|level| format!("{attribute}: {level}")));
            lines.push(self.gap(attribute));
        }
        lines
    }

    fn all(&self, indented: bool) -> Line {
        let counts = [self.report.n, self.report.n_events].map(|n| n.to_string());
        let other_times = self.columns.iter().filter_map(|(asked, own)| other_time(asked, (*own)?)).collect();
        let mut all = self.row("all".to_owned(), counts, &|metric| Some(&metric.overall), other_times);
        if let Line::Cells { indented: found, .. } = &mut all {
            *found = indented;
        }
        all
    }

    /// The groups of an attribute, each with a name made of its level.
    fn groups(&self, attribute: &str, name: &dyn Fn(&str) -> String) -> Vec<Line> {
        let Some(first) = self.present().find_map(|metric| attribute_of(metric, attribute)) else { return Vec::new() };
        let line = |group: &GroupReport| {
            let of_class = self.report.class.is_some();
            let few = if of_class { " (few of a class)" } else { " (few events)" };
            let few = if first.few_events.contains(&group.level) { few } else { "" };
            let counts = [group.estimate.n, group.estimate.n_events].map(|n| n.to_string());
            let of_group = |metric: &'a MetricReport| {
                let groups = &attribute_of(metric, attribute)?.groups;
                groups.iter().find(|found| found.level == group.level).map(|found| &found.estimate)
            };
            self.row(format!("{}{few}", name(&group.level)), counts, &of_group, Vec::new())
        };
        first.groups.iter().map(line).collect()
    }

    fn gap(&self, attribute: &str) -> Line {
        let of_chance = |metric: &MetricReport| {
            let chance = attribute_of(metric, attribute)?.gap_by_chance.as_ref()?;
            Some(format!("{} p {}", metric.label, p_relation(chance.p_value)))
        };
        let chances: Vec<String> = self.present().filter_map(of_chance).collect();
        let chances = (!chances.is_empty()).then(|| format!("gaps by chance: {}", chances.join(", ")));
        let of_gap = |metric: &'a MetricReport| attribute_of(metric, attribute).map(|attribute| &attribute.gap);
        let (name, no_counts) = (format!("gap by {attribute}"), [String::new(), String::new()]);
        self.row(name, no_counts, &of_gap, chances.into_iter().collect())
    }

    /// A row of values with intervals; what is to be said of numbers becomes a remark that names their metrics.
    fn row(
        &self,
        name: String,
        counts: [String; 2],
        number: &dyn Fn(&'a MetricReport) -> Option<&'a Estimate>,
        mut remarks: Vec<String>,
    ) -> Line {
        let mut cells: Vec<String> = std::iter::once(name).chain(counts).collect();
        // A remark on several metrics is made once.
        let mut of_metrics: Vec<(String, Vec<&str>)> = Vec::new();
        for (metric, own) in &self.columns {
            let Some(estimate) = own.and_then(number) else {
                cells.push("not evaluated".to_owned());
                continue;
            };
            let range = interval(estimate).map_or_else(String::new, |range| format!(" ({range})"));
            cells.push(format!("{}{range}", value(estimate)));
            let about = rows::remarks(estimate, self.report).into_iter();
            for remark in about {
                match of_metrics.iter_mut().find(|(found, _)| *found == remark) {
                    Some((_, labels)) => labels.push(&metric.label),
                    None => of_metrics.push((remark, vec![&metric.label])),
                }
            }
        }
        remarks.extend(of_metrics.into_iter().map(|(remark, labels)| format!("{}: {remark}", labels.join(", "))));
        Line::Cells { cells, indented: true, remarks }
    }
}

/// A metric at another time than in the evaluation of the run.
fn other_time(asked: &MetricReport, own: &MetricReport) -> Option<String> {
    let (here, there) = (asked.horizon?, own.horizon?);
    let differs = here.to_bits() != there.to_bits();
    differs.then(|| format!("{}: at time {}, in the test part of this run at {}", own.label, short(there), short(here)))
}

/// The gaps of the attributes that are `wanted`, metric by metric; `None` without attributes.
fn gaps(report: &EvaluationReport, metrics: &[&MetricReport], wanted: &dyn Fn(&str) -> bool) -> Option<Table> {
    let mut lines = Vec::new();
    for metric in metrics {
        let attributes = metric.attributes.iter().filter(|attribute| wanted(&attribute.attribute));
        let rows: Vec<Line> = attributes.map(|attribute| gap(metric, attribute, report)).collect();
        if !rows.is_empty() {
            lines.push(Line::Heading(format!("{} ({})", metric.label, rows::direction(metric))));
            lines.extend(rows);
        }
    }
    let mut header = vec!["attribute".to_owned(), "gap".to_owned(), interval_name(report)];
    header
        .extend(["by chance on average", "by chance rarely above", "p", "p (Holm)", "worst group"].map(str::to_owned));
    let chance = match report.settings.permutations {
        0 => "What chance makes of equal groups was not computed.".to_owned(),
        n => format!(
            "By chance: the gaps of groups of the same sizes whose labels are exchanged between subjects, {n} times; p: how often \
             they are at least as large, adjusted for the attributes by Holm's method."
        ),
    };
    let caption = format!("Gaps: the largest difference between two groups. {chance}");
    (!lines.is_empty()).then(|| Table { name: "gaps".to_owned(), caption, header, lines })
}

fn gap(metric: &MetricReport, attribute: &AttributeReport, report: &EvaluationReport) -> Line {
    let none = || "none".to_owned();
    let chance = attribute.gap_by_chance.as_ref();
    let of_chance = |number: Option<f64>, text: fn(f64) -> String| number.map_or_else(none, text);
    let cells = vec![
        attribute.attribute.clone(),
        value(&attribute.gap),
        interval(&attribute.gap).unwrap_or_else(none),
        of_chance(chance.map(|chance| chance.mean), number),
        of_chance(chance.map(|chance| chance.upper), number),
        of_chance(chance.map(|chance| chance.p_value), p_value),
        of_chance(chance.and_then(|chance| chance.p_holm), p_value),
        attribute.worst_group.clone().unwrap_or_else(none),
    ];
    let mut remarks = rows::remarks(&attribute.gap, report);
    remarks.extend(rows::disagreement(metric, attribute, report).map(|said| format!("p and interval: {said}")));
    if !attribute.few_events.is_empty() {
        let few = if report.class.is_some() { "samples of a class" } else { "events" };
        remarks.push(format!("not compared, too few {few}: {}", attribute.few_events.join(", ")));
    }
    Line::Cells { cells, indented: true, remarks }
}
