//! The HTML page of the probabilities of a class.

use serde::Serialize;

use super::super::ReportError;
use super::super::download::Download;
use super::super::flat as flat_rows;
use super::super::format::{count, percent};
use super::super::metric_sections::{Numbers, Tiles};
use super::super::page::{Panels, panels_of};
use super::super::plots::{GroupFigure, calibration_figures, roc_figures};
use super::super::rows;
use super::super::template::{environment, fill_in};
use super::super::words::{Statement, statements};
use super::sections::{ClassTable, criteria, decisions, horizon, who};
use super::{ClassNumbers, ClassPage, flat, words};

const TEMPLATE: &str = include_str!("classes.html");
/// Metrics at a glance; all of them have a figure and a table.
const AT_A_GLANCE: [&str; 8] =
    ["auc", "average-precision", "brier", "ece", "calibration-slope", "balanced-accuracy", "fpr", "fnr"];

pub(super) fn render(page: &ClassPage<'_>) -> Result<String, ReportError> {
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
    who: ClassTable,
    tiles: Tiles<'a>,
    statements: Vec<Statement>,
    /// Where the class is made from times.
    horizon: Option<ClassTable>,
    censoring: &'a str,
    numbers: Numbers<'a>,
    threshold: &'a str,
    tnr: String,
    ece: String,
    decisions: ClassTable,
    criteria: Option<ClassTable>,
    roc: Vec<Panels>,
    calibration: Vec<Panels>,
    level: String,
    has_intervals: bool,
    bootstrap: String,
    csv: Download<'a>,
}

fn panels(figures: Vec<GroupFigure>) -> Vec<Panels> {
    panels_of(figures).into_iter().map(Panels::of_class).collect()
}

impl<'a> Context<'a> {
    fn new(page: &ClassPage<'a>) -> Result<Self, ReportError> {
        let numbers = page.numbers;
        let ClassNumbers { report, evaluation, groups, time_unit, .. } = numbers;
        let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
        let rows_of = flat::rows(report, evaluation, groups, numbers.horizon);
        let has_glance = evaluation.metrics.iter().any(|metric| AT_A_GLANCE.contains(&metric.name.as_str()));
        Ok(Self {
            title: page.title,
            subtitle: page.subtitle,
            facts: page.facts,
            samples: format!("{samples} of {subjects}, {}", rows::events(evaluation)),
            warnings: page.warnings.iter().map(|warning| warning.text.as_str()).collect(),
            notes: page.notes,
            verdict: words::verdict(&numbers),
            who: who(&numbers),
            tiles: Tiles::new(evaluation, |metric| !has_glance || AT_A_GLANCE.contains(&metric.name.as_str())),
            statements: statements(evaluation),
            horizon: numbers.horizon.map(|found| horizon(found, time_unit)),
            censoring: page.censoring,
            numbers: Numbers::new(evaluation, time_unit, page.censoring)?,
            threshold: page.threshold,
            tnr: percent(report.class.tnr),
            ece: words::bins(&report.class),
            decisions: decisions(&numbers),
            criteria: criteria(report),
            roc: panels(roc_figures(&groups.roc)?),
            calibration: panels(calibration_figures(evaluation)?),
            level: percent(report.settings.level),
            has_intervals: report.settings.replicates > 0,
            bootstrap: rows::bootstrap(&report.settings),
            csv: Download::new(page.csv, &flat_rows::text(&rows_of)?),
        })
    }
}
