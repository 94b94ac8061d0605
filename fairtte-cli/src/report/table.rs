//! The table for the terminal: one block per metric, in it the whole sample and every group of every attribute.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{AttributeReport, GroupDifference, MetricReport};

use super::decisions::decision_lines;
use super::differences::{self, only_pair};
use super::format::{clean, count, interval, number, p_relation, percent, short, value, wrap};
use super::rows::{self, Row, attribute_rows};
use super::words::in_no_group;

/// Columns right of the name: value, interval, n, events, subjects.
const NUMBERS_WIDTH: usize = 51;
const MIN_WIDTH: usize = 72;
/// A further column, the comparable pairs, where there is room for it.
const PAIRS_WIDTH: usize = 13;
/// Maximum width to which names are padded, so that numbers stay close to them.
const MAX_NAME_WIDTH: usize = 42;
const INDENT: &str = "  ";

/// Bold red, and the end of it: ECMA-48, select graphic rendition.
const WORST: [&str; 2] = ["\u{1b}[1;31m", "\u{1b}[0m"];

pub(super) fn render(report: &EvaluationReport, width: usize, colour: bool) -> String {
    let width = width.max(MIN_WIDTH);
    let rows_of = |metric: &'_ MetricReport| {
        metric
            .attributes
            .iter()
            .flat_map(|attribute| attribute_rows(metric, attribute, report))
            .map(|row| row.name.chars().count())
            .max()
    };
    let longest = report.metrics.iter().filter_map(rows_of).max();
    let longest = longest.map_or(0, |longest| longest + 2 * INDENT.len());
    let name_width = longest.clamp(16, MAX_NAME_WIDTH.min(width - NUMBERS_WIDTH));
    let has_pairs = name_width + NUMBERS_WIDTH + PAIRS_WIDTH <= width;
    let mut table = Table { report, width, name_width, has_pairs, colour, text: String::new() };
    table.header();
    for metric in &report.metrics {
        table.metric(metric);
    }
    let decisions = decision_lines(report);
    if !decisions.is_empty() {
        table.text.push('\n');
        table.wrapped("", "decisions");
        for line in decisions {
            table.wrapped(INDENT, &clean(&line));
        }
    }
    table.text
}

struct Table<'a> {
    report: &'a EvaluationReport,
    width: usize,
    name_width: usize,
    has_pairs: bool,
    colour: bool,
    text: String,
}

impl Table<'_> {
    fn header(&mut self) {
        let report = self.report;
        let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
        match &report.masks {
            Some(_) => self.line(&format!("{samples} of {subjects}")),
            None => self.line(&format!("{samples} of {subjects}, {}", rows::events(report))),
        }
        if report.class.is_some() || report.masks.is_some() {
            self.fact("intervals", &rows::bootstrap(&report.settings));
            return;
        }
        self.fact("curves read", &report.reading);
        self.fact("intervals", &rows::bootstrap(&report.settings));
        self.fact("evaluation times", &rows::window(report, ""));
        if let Some(window) = &report.times {
            self.fact("", &window.rule);
        }
        // Decisions name their horizon themselves.
        let is_at_it = |metric: &MetricReport| metric.threshold.is_none() && metric.horizon == report.horizon;
        if let Some(horizon) = report.horizon.filter(|_| report.metrics.iter().any(is_at_it)) {
            self.fact("horizon", &rows::with_rule(short(horizon), report));
        }
    }

    fn fact(&mut self, name: &str, text: &str) {
        for (k, line) in wrap(&clean(text), self.width - 18).iter().enumerate() {
            self.line(&format!("{:<18}{line}", if k == 0 { name } else { "" }));
        }
    }

    fn metric(&mut self, metric: &MetricReport) {
        let report = self.report;
        let times = if rows::uses_window(metric) { format!(", {}", rows::window(report, "")) } else { String::new() };
        let direction = rows::direction(metric);
        self.text.push('\n');
        let read = match (&report.class, &report.masks) {
            (Some(_), _) | (_, Some(_)) => String::new(),
            _ => format!(" (curves read {}{times})", report.reading),
        };
        self.wrapped("", &format!("{}: {direction}{read}", metric.label));
        if let Some(other) = rows::same_as(report, metric) {
            self.wrapped(INDENT, &format!("every number is that of {}", other.label));
            return;
        }
        if let Some(caution) = rows::caution(metric) {
            self.wrapped(INDENT, &format!("caution: {caution}"));
        }
        let interval = if report.settings.replicates == 0 {
            String::new()
        } else {
            format!("{} interval", percent(report.settings.level))
        };
        let pairs = if metric.overall.n_comparable.is_some() { "pairs" } else { "" };
        let numbers = self.numbers_of("value", &interval, ["n", rows::events_column(report), "subjects", pairs]);
        self.named("", "", &numbers);
        self.row(&Row::of_samples("all".to_owned(), &metric.overall), "");
        for attribute in &metric.attributes {
            let missing = match attribute.n_missing {
                0 => String::new(),
                n => format!("; {}", in_no_group(n)),
            };
            self.wrapped("", &format!("{}{missing}", clean(&attribute.attribute)));
            let rows = attribute_rows(metric, attribute, report);
            for (k, row) in rows.iter().enumerate() {
                // Gap, worst group and equity scaling often share their remark, which is then shown once, below the
                // last.
                let said_below = rows.get(k + 1).is_some_and(|next| !row.is_group && same_remarks(row, next, report));
                self.numbers(row, INDENT);
                if !said_below {
                    self.remarks(row, INDENT);
                }
            }
            self.differences(attribute);
        }
    }

    /// The signed differences of two groups, or of all groups from a reference; of more pairs the page has a matrix.
    fn differences(&mut self, attribute: &AttributeReport) {
        if self.report.settings.reference.contains_key(&attribute.attribute) {
            let pairs = attribute.differences.iter();
            pairs.filter(|pair| pair.difference.value.is_some()).for_each(|pair| self.difference(pair));
        } else if let Some(pair) = only_pair(attribute) {
            self.difference(pair);
        }
    }

    fn difference(&mut self, pair: &GroupDifference) {
        let (difference, name) = (&pair.difference, differences::name(pair));
        let interval = differences::ends(difference).unwrap_or_else(|| "-".to_owned());
        let p = difference.p_value.map_or_else(String::new, |p| format!("p {}", p_relation(p)));
        let value = difference.value.map_or_else(String::new, number);
        self.named(INDENT, &name, &format!("{value:>9}  {interval:<16}  {p}"));
        for remark in differences::remarks_on(difference, self.report) {
            self.wrapped(&INDENT.repeat(2), &clean(&remark));
        }
    }

    fn row(&mut self, row: &Row<'_>, indent: &str) {
        self.numbers(row, indent);
        self.remarks(row, indent);
    }

    fn numbers(&mut self, row: &Row<'_>, indent: &str) {
        let estimate = row.estimate;
        let interval = interval(estimate).unwrap_or_else(|| "-".to_owned());
        let [n, events, subjects] = [estimate.n, estimate.n_events, estimate.n_subjects].map(|n| n.to_string());
        let pairs = rows::pairs_behind(estimate);
        let numbers = self.numbers_of(&value(estimate), &interval, [&n, &events, &subjects, &pairs]);
        let begin = self.text.len();
        self.named(indent, &row.name, &numbers);
        if self.colour && row.is_worst {
            let end = self.text.trim_end().len();
            self.text.insert_str(end, WORST[1]);
            self.text.insert_str(begin, WORST[0]);
        }
    }

    /// A long name needs several lines; the numbers are on the first.
    fn named(&mut self, indent: &str, name: &str, numbers: &str) {
        let width = self.name_width;
        let name = wrap(&clean(name), width - 2 * INDENT.len());
        let (first, rest) = name.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let first = format!("{indent}{first}");
        self.line(&format!("{first:<width$} {numbers}"));
        for line in rest {
            self.line(&format!("{indent}{INDENT}{line}"));
        }
    }

    fn remarks(&mut self, row: &Row<'_>, indent: &str) {
        for remark in row.remarks(self.report) {
            self.wrapped(&format!("{indent}{INDENT}"), &clean(&remark));
        }
    }

    /// The columns right of the name; `counts` are samples, events, subjects and, where there is room, comparable pairs.
    fn numbers_of(&self, value: &str, interval: &str, [n, events, subjects, pairs]: [&str; 4]) -> String {
        let pairs = if self.has_pairs { format!(" {pairs:>12}") } else { String::new() };
        format!("{value:>9}  {interval:<14} {n:>7} {events:>7} {subjects:>8}{pairs}")
    }

    fn wrapped(&mut self, indent: &str, text: &str) {
        for line in wrap(text, self.width - indent.len()) {
            self.line(&format!("{indent}{line}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

fn same_remarks(row: &Row<'_>, next: &Row<'_>, report: &EvaluationReport) -> bool {
    row.remarks(report) == next.remarks(report)
}
