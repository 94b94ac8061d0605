//! The table for the terminal: one block per attribute.

use super::super::format::{clean, count, number, p_value, percent, wrap};
use super::{AttributeBias, BiasReport, Found, Line};

const MIN_WIDTH: usize = 80;
/// Columns of the names of the sources, with their indent.
const NAME: usize = 22;

pub(super) fn render(report: &BiasReport, width: usize) -> String {
    let mut table = Table { width: width.max(MIN_WIDTH), text: String::new() };
    let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
    table.wrapped("", &format!("{samples} of {subjects}, {}", count(report.n_events, "event")));
    table.wrapped("", &reduction(report));
    for attribute in &report.attributes {
        table.attribute(attribute, report);
    }
    table.text.push('\n');
    table.wrapped("", LEGEND);
    table.text.trim_end().to_owned()
}

const LEGEND: &str = "value: largest difference between two groups, 0 (none) to 1; chance: its mean when labels are \
                      permuted between subjects; above: value minus chance, at least 0; the interval is that of the \
                      value. separability: cross-validated AUC, chance 0.5.";

/// What became of the features.
pub(super) fn reduction(report: &BiasReport) -> String {
    let reduction = report.reduction;
    let constant = match reduction.n_constant {
        0 => String::new(),
        n => format!(", {n} without variance left out"),
    };
    let features = count(reduction.n_dimensions, "feature");
    if reduction.n_components + reduction.n_constant == reduction.n_dimensions {
        return format!("{features}, standardised{constant}");
    }
    let share = percent((reduction.explained_variance * 1000.0).round() / 1000.0);
    format!(
        "{features}, standardised{constant}; {}: {share} of variance",
        count(reduction.n_components, "principal component")
    )
}

struct Table {
    width: usize,
    text: String,
}

impl Table {
    fn attribute(&mut self, attribute: &AttributeBias, report: &BiasReport) {
        self.text.push('\n');
        let group =
            |group: &super::GroupCounts| format!("{} {} ({})", group.level, group.n, count(group.n_events, "event"));
        let mut groups: Vec<String> = attribute.groups.iter().map(group).collect();
        if attribute.sources.n_missing > 0 {
            groups.push(format!("in no group {}", attribute.sources.n_missing));
        }
        self.wrapped("", &format!("{}: {}", attribute.name(), groups.join(", ")));
        let interval = format!("{} interval", percent(report.settings.level));
        self.line(&format!("{:<NAME$}{:>7}{:>8}{:>8}{:>9}  {interval}", "", "value", "chance", "above", "p"));
        let several = attribute.groups.len() > 2;
        for line in attribute.lines() {
            self.source(&line, several);
        }
        self.wrapped("  ", &attribute.sentence());
    }

    fn source(&mut self, line: &Line, several: bool) {
        match &line.found {
            Ok(found) => {
                self.line(&format!("  {:<width$}{}", line.name, numbers(found), width = NAME - 2));
                if several {
                    self.wrapped("    ", &format!("between {}", found.between));
                }
            }
            Err(reason) => self.wrapped("  ", &format!("{}: undefined: {reason}", line.name)),
        }
        line.remarks.iter().for_each(|remark| self.wrapped("    ", remark));
    }

    fn wrapped(&mut self, indent: &str, text: &str) {
        for line in wrap(&clean(text), self.width - indent.len()) {
            self.line(&format!("{indent}{line}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

fn numbers(found: &Found) -> String {
    let p = found.p.map_or_else(|| "-".to_owned(), p_value);
    let interval =
        found.interval.map_or_else(|| "none".to_owned(), |(low, high)| format!("{} to {}", number(low), number(high)));
    format!("{:>7}{:>8}{:>8}{p:>9}  {interval}", number(found.value), number(found.chance), number(found.corrected))
}
