//! The HTML page of masks.

use serde::Serialize;

use super::super::ReportError;
use super::super::classes::ClassTable;
use super::super::download::Download;
use super::super::flat as flat_rows;
use super::super::format::{count, percent};
use super::super::metric_sections::{Numbers, Tiles};
use super::super::rows;
use super::super::template::{environment, fill_in};
use super::super::words::{Statement, statements};
use super::sections::{empty, equity, lowest, spread};
use super::{MaskPage, words};

const TEMPLATE: &str = include_str!("masks.html");

pub(super) fn render(page: &MaskPage<'_>) -> Result<String, ReportError> {
    fill_in(&environment(TEMPLATE)?, &Context::new(page)?)
}

#[derive(Serialize)]
struct Context<'a> {
    title: &'a str,
    subtitle: &'a str,
    facts: &'a [(String, String)],
    samples: String,
    warnings: Vec<&'a str>,
    notes: &'a [String],
    verdict: Vec<String>,
    tiles: Tiles<'a>,
    statements: Vec<Statement>,
    spread: ClassTable,
    empty: ClassTable,
    equity: Option<ClassTable>,
    lowest: ClassTable,
    numbers: Numbers<'a>,
    unit: &'a str,
    tolerance: String,
    hausdorff: &'static str,
    level: String,
    has_intervals: bool,
    bootstrap: String,
    csv: Download<'a>,
}

impl<'a> Context<'a> {
    fn new(page: &MaskPage<'a>) -> Result<Self, ReportError> {
        let (report, evaluation) = (page.report, page.evaluation);
        let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
        let classes: Vec<String> = report.classes.iter().map(|class| class.name.clone()).collect();
        Ok(Self {
            title: page.title,
            subtitle: page.subtitle,
            facts: page.facts,
            samples: format!("{samples} of {subjects}; classes: {}", classes.join(", ")),
            warnings: page.warnings.iter().map(|warning| warning.text.as_str()).collect(),
            notes: page.notes,
            verdict: words::verdict(page),
            tiles: Tiles::new(evaluation, |_| true),
            statements: statements(evaluation),
            spread: spread(page),
            empty: empty(page),
            equity: equity(page),
            lowest: lowest(page),
            numbers: Numbers::new(evaluation, "", "")?,
            unit: &report.unit,
            tolerance: report.masks.tolerance.to_string(),
            hausdorff: report.masks.hausdorff.name(),
            level: percent(report.settings.level),
            has_intervals: report.settings.replicates > 0,
            bootstrap: rows::bootstrap(&report.settings),
            csv: Download::new(page.csv, &flat_rows::text(&super::rows(page))?),
        })
    }
}
