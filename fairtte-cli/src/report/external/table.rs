//! The tables for a terminal: the verdict, per metric both cohorts and their difference, and the case mix.

use super::super::classes::push;
use super::super::format::{clean, count, elide, wrap};
use super::super::rows;
use super::lines::{CaseMixText, Line, case_mix_lines, metric_lines};
use super::{ExternalPage, external_verdict};

const MIN_WIDTH: usize = 72;
/// Columns right of the name: internal, external, difference, interval, Holm, events of both.
const NUMBERS_WIDTH: usize = 60;
/// Columns right of the name in the case mix.
const CASE_MIX_WIDTH: usize = 43;
const INDENT: &str = "  ";

pub(super) fn render(page: &ExternalPage<'_>, width: usize) -> String {
    let mut table = Table { page, width: width.max(MIN_WIDTH), text: String::new() };
    table.header();
    for metric in metric_lines(page.reports) {
        table.text.push('\n');
        table.wrapped("", &format!("{}: {}", metric.label, metric.direction));
        if let Some(other) = metric.same_as {
            table.wrapped(INDENT, &format!("every number is that of {other}"));
            continue;
        }
        let events = rows::events_column(&page.reports.external);
        let head = table.row("", ["internal", "external", "change", "interval", "Holm p", events]);
        table.line(&head);
        metric.lines.iter().for_each(|line| table.metric_line(line));
    }
    if let Some(class) = &page.class {
        for of_class in class.tables(page.time_unit) {
            table.text.push('\n');
            push(&mut table.text, &of_class, table.width);
        }
    }
    table.case_mix();
    table.text
}

struct Table<'a> {
    page: &'a ExternalPage<'a>,
    width: usize,
    text: String,
}

impl Table<'_> {
    fn header(&mut self) {
        let page = self.page;
        for (name, who, report) in
            [("internal", page.internal, &page.reports.internal), ("external", page.external, &page.reports.external)]
        {
            let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
            self.wrapped("", &format!("{name}: {who}, {samples} of {subjects}, {}", rows::events(report)));
        }
        let report = &page.reports.external;
        if !page.censoring.is_empty() {
            self.wrapped("", &format!("censoring curve of the external data: {}", page.censoring));
        }
        let intervals = format!("intervals: {}; each cohort by itself", rows::bootstrap(&report.settings));
        if let Some(class) = &page.class {
            self.wrapped("", &intervals);
            self.wrapped("", class.threshold);
            for sentence in class.left_out(page.time_unit) {
                self.wrapped("", &sentence);
            }
        } else {
            self.wrapped("", &format!("curves read: {}", report.reading));
            self.wrapped("", &intervals);
            self.wrapped("", &format!("evaluation times of both: {}", rows::window(report, page.time_unit)));
            for sentence in page.cut() {
                self.wrapped(INDENT, &sentence);
            }
        }
        self.text.push('\n');
        for sentence in external_verdict(page) {
            self.wrapped("", &sentence);
        }
    }

    fn metric_line(&mut self, line: &Line) {
        let indent = if line.kind == "all" { "" } else { INDENT };
        let ends = if line.interval == "none" { "-" } else { &line.interval };
        let p = if line.holm.is_empty() { &line.p } else { &line.holm };
        let events = format!("{}/{}", line.internal.events, line.external.events);
        let value = |text: &str| if text == "undefined" { "-".to_owned() } else { text.to_owned() };
        let (internal, external) = (value(&line.internal.value), value(&line.external.value));
        let name = format!("{indent}{}", line.name);
        let row = self.row(&name, [&internal, &external, &value(&line.difference), ends, p, &events]);
        self.line(&row);
        for remark in &line.remarks {
            self.wrapped(&INDENT.repeat(2), remark);
        }
    }

    fn case_mix(&mut self) {
        let page = self.page;
        let horizon = rows::horizon(&page.reports.internal, page.time_unit);
        self.text.push('\n');
        self.wrapped("", "Case mix; numbers: mean (SD); SMD: standardised difference, small up to 0.1");
        self.case_mix_row("", "internal", "external", "SMD");
        for CaseMixText { kind, name, internal, external, smd, remark, .. } in
            case_mix_lines(page.case_mix, horizon.as_deref(), page.time_unit)
        {
            let name = format!("{}{name}", if kind == "group" { INDENT } else { "" });
            self.case_mix_row(&name, &internal, &external, &smd);
            if let Some(remark) = remark {
                self.wrapped(&INDENT.repeat(2), &format!("no SMD: {remark}"));
            }
        }
    }

    fn case_mix_row(&mut self, name: &str, internal: &str, external: &str, smd: &str) {
        let width = self.width - CASE_MIX_WIDTH - 1;
        let name = elide(&clean(name), width);
        self.line(&format!("{name:<width$} {internal:>16} {external:>16} {smd:>8}"));
    }

    fn row(&self, name: &str, [internal, external, difference, ends, p, events]: [&str; 6]) -> String {
        let width = self.width - NUMBERS_WIDTH - 1;
        let name = elide(&clean(name), width);
        format!("{name:<width$} {internal:>8} {external:>8} {difference:>7}  {ends:<16} {p:>7} {events:>8}")
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
