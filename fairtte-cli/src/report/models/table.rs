//! The tables for a terminal: per metric the values of every model, then their differences from the reference.

use fairtte_metrics::evaluation::{Estimate, GapByChance, MetricReport, ModelReports};

use super::super::format::{clean, count, elide, interval, number, p_value, value, wrap};
use super::super::rows;
use super::lines::{Line, of_metric};
use super::{OfModels, metrics};

const INDENT: &str = "  ";
/// Columns right of the name: value, interval, p, Holm.
const NUMBERS_WIDTH: usize = 51;
const MIN_WIDTH: usize = 72;

pub(super) fn render(reports: &ModelReports, width: usize) -> String {
    let mut table = Table { reports, width: width.max(MIN_WIDTH), text: String::new() };
    table.header();
    for (models, same_as) in metrics(reports) {
        table.metric(&models, same_as);
    }
    table.text
}

struct Table<'a> {
    reports: &'a ModelReports,
    width: usize,
    text: String,
}

impl Table<'_> {
    fn header(&mut self) {
        let Some((_, report)) = self.reports.models.first() else { return };
        let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
        let names: Vec<&str> = self.reports.models.iter().map(|(name, _)| name.as_str()).collect();
        self.wrapped("", &format!("{samples} of {subjects}, {}", rows::events(report)));
        self.wrapped("", &format!("models: {}; differences are from {}", names.join(", "), self.reports.reference));
        self.wrapped("", &format!("intervals: {}", rows::bootstrap(&report.settings)));
        if report.class.is_none() {
            self.wrapped("", &format!("curves read: {}", report.reading));
            self.wrapped("", &format!("evaluation times: {}", rows::window(report, "")));
        }
    }

    fn metric(&mut self, models: &OfModels<'_>, same_as: Option<&str>) {
        let Some((_, metric)) = models.first() else { return };
        self.text.push('\n');
        self.wrapped("", &format!("{}: {}", metric.label, rows::direction(metric)));
        if let Some(caution) = rows::caution(metric) {
            self.wrapped(INDENT, &format!("caution: {caution}"));
        }
        if let Some(other) = same_as {
            self.wrapped(INDENT, &format!("every number is that of {other}"));
            return;
        }
        self.values(models);
        for of_pair in of_metric(self.reports, &metric.name) {
            self.text.push('\n');
            let head = self.row("", &of_pair.name, ["difference", "interval", "p", "Holm"]);
            self.line(&head);
            of_pair.lines.iter().for_each(|line| self.difference(line));
        }
    }

    /// The values over all samples, in every group, and the gaps: below each the models.
    fn values(&mut self, models: &OfModels<'_>) {
        let mut sections: Vec<(String, Vec<&Estimate>)> =
            vec![("all".to_owned(), models.iter().map(|(_, metric)| &metric.overall).collect())];
        for (place, attribute) in models[0].1.attributes.iter().enumerate() {
            let of = |of: fn(&MetricReport, usize, usize) -> &Estimate, level| {
                models.iter().map(|(_, metric)| of(metric, place, level)).collect()
            };
            for (level, group) in attribute.groups.iter().enumerate() {
                let name = format!("{}: {}", attribute.attribute, group.level);
                sections.push((name, of(|m, place, level| &m.attributes[place].groups[level].estimate, level)));
            }
            let name = format!("gap by {} (0 = equal)", attribute.attribute);
            sections.push((name, of(|metric, place, _| &metric.attributes[place].gap, 0)));
        }
        for (name, estimates) in sections {
            let (n, n_events) = (estimates[0].n.to_string(), estimates[0].n_events.to_string());
            let head = self.row("", &name, ["value", "interval", "n", self.events()]);
            self.line(&head);
            for ((model, _), estimate) in models.iter().zip(estimates) {
                let interval = interval(estimate).unwrap_or_else(|| "-".to_owned());
                let row = self.row(INDENT, model, [&value(estimate), &interval, &n, &n_events]);
                self.line(&row);
            }
        }
        (0..models[0].1.attributes.len()).for_each(|place| self.by_chance(models, place));
    }

    /// What chance makes of the gaps of one attribute, and the gaps less what noise adds.
    fn by_chance(&mut self, models: &OfModels<'_>, place: usize) {
        let of_models = || models.iter().map(|(name, metric)| (*name, &metric.attributes[place]));
        if of_models().all(|(_, of)| of.gap_by_chance.is_none() && of.gap_corrected.is_none()) {
            return;
        }
        let name = format!("gap by {} by chance", models[0].1.attributes[place].attribute);
        let head = self.row("", &name, ["on average", "rarely above", "p", "corrected"]);
        self.line(&head);
        for (model, of) in of_models() {
            let chance =
                |number: fn(&GapByChance) -> String| of.gap_by_chance.as_ref().map_or_else(|| "-".to_owned(), number);
            let corrected = of.gap_corrected.map_or_else(|| "-".to_owned(), number);
            let numbers = [
                &chance(|chance| number(chance.mean)),
                &chance(|chance| number(chance.upper)),
                &chance(|chance| p_value(chance.p_value)),
                &corrected,
            ];
            let row = self.row(INDENT, model, numbers.map(String::as_str));
            self.line(&row);
        }
    }

    fn events(&self) -> &'static str {
        self.reports.models.first().map_or("events", |(_, report)| rows::events_column(report))
    }

    fn difference(&mut self, line: &Line) {
        let interval = if line.interval == "none" { "-" } else { &line.interval };
        let row = self.row(INDENT, &line.name, [&line.value, interval, &line.p, &line.holm]);
        self.line(&row);
        for remark in &line.remarks {
            self.wrapped(&INDENT.repeat(2), &clean(remark));
        }
    }

    /// A name and four numbers.
    fn row(&self, indent: &str, name: &str, [value, interval, third, fourth]: [&str; 4]) -> String {
        let width = self.width - NUMBERS_WIDTH - 1;
        let name = elide(&clean(name), width - indent.len());
        let name = format!("{indent}{name}");
        format!("{name:<width$} {value:>11}  {interval:<18} {third:>8} {fourth:>9}")
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
