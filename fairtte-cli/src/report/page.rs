//! The HTML page: collects everything into one context and fills in the template.

use fairtte_metrics::resampling::IntervalMethod;
use serde::Serialize;

use super::baseline::BaselineSection;
use super::bias::BiasSection;
use super::decisions::DecisionsSection;
use super::download::Download;
use super::flat;
use super::format::{count, percent};
use super::groups_table::GroupsTable;
use super::metric_sections::{Numbers, Tiles};
use super::plots::{
    GroupFigure, LossCurve, calibration_figures, loss_curve, over_time_figures, survival_figures, tertile_figures,
};
use super::rows;
use super::sensitivity::SensitivitySection;
use super::template::{environment, fill_in};
use super::verdict::verdict;
use super::words::{Statement, statements};
use super::{EpochPoint, FlowRow, Page, ReportError};

const TEMPLATE: &str = include_str!("page.html");
/// What groups are called whose panels are folded.
pub(super) const FEW_EVENTS: &str = "Groups with few events";
/// The same of a class.
pub(super) const FEW_OF_A_CLASS: &str = "Groups with few samples of a class";

pub(super) fn render(page: &Page<'_>) -> Result<String, ReportError> {
    let environment = environment(TEMPLATE)?;
    fill_in(&environment, &Context::new(page)?)
}

#[derive(Serialize)]
struct Context<'a> {
    title: &'a str,
    subtitle: &'a str,
    facts: &'a [(String, String)],
    samples: String,
    /// The cause that is evaluated, of several.
    cause: Option<u32>,
    reading: &'a str,
    window: String,
    rule: Option<&'a str>,
    bootstrap: String,
    level: String,
    has_intervals: bool,
    is_bca: bool,
    censoring: &'a str,
    tiles: Tiles<'a>,
    verdict: Vec<String>,
    who: Option<GroupsTable<'a>>,
    /// The horizon with its unit, where there is one.
    horizon: Option<String>,
    /// The same with how it was chosen.
    chosen_horizon: Option<String>,
    statements: Vec<Statement>,
    numbers: Numbers<'a>,
    survival: Vec<Panels>,
    /// Empty without thirds of the predicted risk.
    tertiles: Vec<Panels>,
    /// Empty without evaluation times.
    over_time: Vec<Panels>,
    baseline: Option<BaselineSection>,
    sensitivity: Option<SensitivitySection>,
    bias: Option<&'a BiasSection>,
    n_over_time: usize,
    /// Empty without a horizon.
    calibration: Vec<Panels>,
    csv: Download<'a>,
    decisions: Option<DecisionsSection<'a>>,
    losses: Vec<String>,
    n_epochs: String,
    monitor: &'a str,
    kept_epoch: Option<usize>,
    flow: Vec<Step<'a>>,
    warnings: Vec<&'a str>,
    notes: &'a [String],
}

#[derive(Serialize)]
pub(super) struct Panels {
    title: String,
    small: bool,
    shown: Vec<String>,
    /// Panels of groups with few events, which the reader opens, and what they are called.
    folded: Vec<String>,
    few: &'static str,
}

#[derive(Serialize)]
struct Step<'a> {
    label: &'a str,
    n_kept: usize,
    n_excluded: usize,
    reasons: &'a [(String, usize)],
    /// Exclusions that no reason accounts for.
    unexplained: usize,
    /// The number before the first step, if that step removed something.
    n_before: Option<usize>,
}

impl<'a> Context<'a> {
    fn new(page: &Page<'a>) -> Result<Self, ReportError> {
        let report = page.evaluation;
        let are_all_decisions = report.metrics.iter().all(|metric| metric.threshold.is_some());
        let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
        Ok(Self {
            title: page.title,
            subtitle: page.subtitle,
            facts: page.facts,
            samples: format!("{samples} of {subjects}, {}", rows::events(report)),
            cause: report.cause.map(|evaluated| evaluated.cause),
            reading: &report.reading,
            window: rows::window(report, page.time_unit),
            rule: report.times.as_ref().map(|window| window.rule.as_str()),
            bootstrap: rows::bootstrap(&report.settings),
            level: percent(report.settings.level),
            has_intervals: report.settings.replicates > 0,
            is_bca: report.settings.interval == IntervalMethod::Bca,
            censoring: page.censoring,
            // Decisions have their section, with an own metric per threshold.
            tiles: Tiles::new(report, |metric| {
                metric.name != "c_td_half" && (metric.threshold.is_none() || are_all_decisions)
            }),
            verdict: verdict(report, page.time_unit),
            who: GroupsTable::of(&[("model", report)], page.time_unit),
            horizon: rows::horizon(report, page.time_unit),
            chosen_horizon: rows::horizon(report, page.time_unit).map(|horizon| rows::with_rule(horizon, report)),
            statements: statements(report),
            numbers: Numbers::new(report, page.time_unit, page.censoring)?,
            survival: panels_of(survival_figures(report, page.time_unit)?),
            tertiles: panels_of(tertile_figures(report, page.time_unit)?),
            over_time: panels_of(over_time_figures(report, page.time_unit)?),
            baseline: page.baseline.map(BaselineSection::new).transpose()?,
            sensitivity: page.sensitivity.map(|found| SensitivitySection::new(found, page.time_unit)).transpose()?,
            bias: page.bias,
            n_over_time: report.over_time.first().map_or(0, |found| found.times.len()),
            calibration: panels_of(calibration_figures(report)?),
            csv: Download::new(page.csv, &flat::text(&flat::rows_of(page))?),
            decisions: DecisionsSection::new(&[("model", report)])?,
            losses: losses(page.epochs)?,
            n_epochs: count(page.epochs.len(), "epoch"),
            monitor: page.monitor,
            kept_epoch: page.epochs.iter().find(|epoch| epoch.best).map(|epoch| epoch.epoch),
            flow: page.flow.iter().enumerate().map(step).collect(),
            warnings: page.warnings.iter().map(|warning| warning.text.as_str()).collect(),
            notes: page.notes,
        })
    }
}

pub(super) fn panels_of(figures: Vec<GroupFigure>) -> Vec<Panels> {
    figures.into_iter().map(Panels::of).collect()
}

impl Panels {
    fn of(figure: GroupFigure) -> Self {
        let GroupFigure { attribute, small, panels: shown, folded } = figure;
        let title = attribute.map_or_else(|| "All samples".to_owned(), |attribute| format!("By {attribute}"));
        Self { title, small, shown, folded, few: FEW_EVENTS }
    }

    /// The same of a class.
    pub(super) fn of_class(self) -> Self {
        Self { few: FEW_OF_A_CLASS, ..self }
    }
}

fn losses(epochs: &[EpochPoint]) -> Result<Vec<String>, ReportError> {
    let curves = [
        (LossCurve::Train, "loss-train"),
        (LossCurve::ValidationNll, "loss-nll"),
        (LossCurve::ValidationConcordance, "loss-c-td"),
    ];
    let figures: Vec<Option<String>> =
        curves.into_iter().map(|(curve, id)| loss_curve(epochs, curve, id)).collect::<Result<_, _>>()?;
    Ok(figures.into_iter().flatten().collect())
}

fn step((index, row): (usize, &FlowRow)) -> Step<'_> {
    let explained: usize = row.reasons.iter().map(|(_, n)| n).sum();
    Step {
        label: &row.label,
        n_kept: row.n_kept,
        n_excluded: row.n_excluded,
        reasons: &row.reasons,
        unexplained: row.n_excluded.saturating_sub(explained),
        n_before: (index == 0 && row.n_excluded > 0).then_some(row.n_kept + row.n_excluded),
    }
}
