//! The HTML page of several models.

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{
    AttributeReport, Estimate, GapByChance, MetricReport, ModelPair, ModelReports, TradeOff, TradeOffPoint,
};
use serde::Serialize;

use super::super::ReportError;
use super::super::classes::ClassTable;
use super::super::decisions::DecisionsSection;
use super::super::download::Download;
use super::super::evidence::{Evidence, Finding};
use super::super::format::{count, interval, list, number, p_relation, percent, value};
use super::super::groups_table::GroupsTable;
use super::super::names::{names, names_of_metrics};
use super::super::plots::{Labels, Place, model_forest, trade_off};
use super::super::rows;
use super::super::sides::{SideBySide, calibration_of};
use super::super::template::{environment, fill_in};
use super::super::verdict::verdict;
use super::lines::{OfPair, of_metric, signed};
use super::{ModelsPage, OfModels, metrics, shown_metrics};

const TEMPLATE: &str = include_str!("models.html");

pub(super) fn render(page: &ModelsPage<'_>) -> Result<String, ReportError> {
    fill_in(&environment(TEMPLATE)?, &Context::new(page)?)
}

#[derive(Serialize)]
struct Context<'a> {
    title: &'a str,
    subtitle: &'a str,
    samples: String,
    reference: &'a str,
    names: Vec<&'a str>,
    warnings: &'a [String],
    notes: &'a [String],
    facts: &'a [(String, String)],
    reading: &'a str,
    window: String,
    bootstrap: String,
    level: String,
    has_intervals: bool,
    censoring: &'a str,
    verdicts: Vec<Verdict<'a>>,
    who: Option<GroupsTable<'a>>,
    horizon: Option<String>,
    /// Empty without a horizon.
    calibration: Vec<SideBySide>,
    decisions: Option<DecisionsSection<'a>>,
    summary: Vec<SummaryRow>,
    statements: Vec<Statement>,
    metrics: Vec<Metric<'a>>,
    has_attributes: bool,
    csv: Download<'a>,
    class: Option<ClassPart<'a>>,
}

/// What the page of a single model says first.
#[derive(Serialize)]
struct Verdict<'a> {
    name: &'a str,
    sentences: Vec<String>,
}

/// What only probabilities of a class have.
#[derive(Serialize)]
struct ClassPart<'a> {
    who: &'a ClassTable,
    tables: &'a [ClassTable],
}

/// One number of every model.
#[derive(Serialize)]
pub(in super::super) struct SummaryRow {
    /// `all` or `summary` (a gap).
    pub(in super::super) kind: &'static str,
    pub(in super::super) name: String,
    pub(in super::super) about: String,
    pub(in super::super) cells: Vec<Cell>,
}

#[derive(Serialize)]
pub(in super::super) struct Cell {
    pub(in super::super) value: String,
    pub(in super::super) interval: Option<String>,
}

/// What one metric says of the models, one sentence each.
#[derive(Serialize)]
struct Statement {
    topic: String,
    lines: Vec<String>,
}

#[derive(Serialize)]
struct Metric<'a> {
    label: &'a str,
    direction: String,
    convention: &'a str,
    window: Option<String>,
    /// The metric with the same numbers, which is named instead of plots and a table.
    same_as: Option<&'a str>,
    forest: String,
    trade_offs: Vec<String>,
    differences: Vec<OfPair>,
}

impl<'a> Context<'a> {
    fn new(page: &ModelsPage<'a>) -> Result<Self, ReportError> {
        let reports = page.reports;
        let Some((_, report)) = reports.models.first() else {
            return Err(minijinja::Error::new(minijinja::ErrorKind::UndefinedError, "a page without models").into());
        };
        let all = metrics(reports);
        let ids = names_of_metrics(all.iter().map(|(models, _)| models[0].1));
        let shown = shown_metrics(reports);
        let models: Vec<(&str, &EvaluationReport)> =
            reports.models.iter().map(|(name, report)| (name.as_str(), report)).collect();
        let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
        Ok(Self {
            title: page.title,
            subtitle: page.subtitle,
            samples: format!("{samples} of {subjects}, {}", rows::events(report)),
            reference: &reports.reference,
            names: models.iter().map(|(name, _)| *name).collect(),
            warnings: page.warnings,
            notes: page.notes,
            facts: page.facts,
            reading: &report.reading,
            window: rows::window(report, page.time_unit),
            bootstrap: rows::bootstrap(&report.settings),
            level: percent(report.settings.level),
            has_intervals: report.settings.replicates > 0,
            censoring: page.censoring,
            verdicts: verdicts(page, &models),
            who: GroupsTable::of(&models, page.time_unit),
            horizon: rows::horizon(report, page.time_unit),
            calibration: calibration_of(&models)?,
            decisions: DecisionsSection::new(&models)?,
            summary: shown.iter().flat_map(summary).collect(),
            statements: shown.iter().map(|models| statement(models, reports)).collect(),
            metrics: all.iter().zip(ids).map(|(found, id)| metric(page, found, &id)).collect::<Result<_, _>>()?,
            has_attributes: !reports.trade_offs.is_empty(),
            csv: Download::new(page.csv.0, page.csv.1),
            class: page.class.map(|class| ClassPart { who: &class.who, tables: &class.tables }),
        })
    }
}

/// What is said of every model: of curves what their own pages say.
fn verdicts<'a>(page: &ModelsPage<'a>, models: &[(&'a str, &EvaluationReport)]) -> Vec<Verdict<'a>> {
    let sentences = |(place, (_, report)): (usize, &(&str, &EvaluationReport))| match page.class {
        Some(class) => class.said[place].clone(),
        None => verdict(report, page.time_unit),
    };
    let names = models.iter().map(|(name, _)| *name);
    names.zip(models.iter().enumerate().map(sentences)).map(|(name, sentences)| Verdict { name, sentences }).collect()
}

/// The values over all samples, and the gaps.
pub(in super::super) fn summary(models: &OfModels<'_>) -> Vec<SummaryRow> {
    let cells = |of: &dyn Fn(&MetricReport) -> Cell| models.iter().map(|(_, metric)| of(metric)).collect();
    let first = models[0].1;
    let mut rows = vec![SummaryRow {
        kind: "all",
        name: first.label.clone(),
        about: rows::direction(first),
        cells: cells(&|metric| cell(&metric.overall)),
    }];
    for (place, attribute) in first.attributes.iter().enumerate() {
        let mut add = |name: String, about: &str, of: &dyn Fn(&AttributeReport) -> Cell| {
            let cells = cells(&|metric| of(&metric.attributes[place]));
            rows.push(SummaryRow { kind: "summary", name, about: about.to_owned(), cells });
        };
        let gap = format!("gap by {}", attribute.attribute);
        add(gap.clone(), "0 = equal", &|of| cell(&of.gap));
        let of_place =
            |of: fn(&AttributeReport) -> bool| models.iter().any(|(_, metric)| of(&metric.attributes[place]));
        if of_place(|of| of.gap_by_chance.is_some()) {
            add(format!("{gap}, by chance"), "equal groups of these sizes", &by_chance);
        }
        if of_place(|of| of.gap_corrected.is_some()) {
            add(format!("{gap}, corrected"), "less what noise adds", &corrected);
        }
    }
    rows
}

/// The mean gap of exchanged labels; below it what it rarely exceeds, and the p value.
fn by_chance(of: &AttributeReport) -> Cell {
    let Some(GapByChance { mean, upper, p_value, p_holm, .. }) = &of.gap_by_chance else { return Cell::none() };
    let holm = p_holm.map_or_else(String::new, |p| format!(", Holm {}", p_relation(p)));
    let about = format!("rarely above {}, p {}{holm}", number(*upper), p_relation(*p_value));
    Cell { value: number(*mean), interval: Some(about) }
}

fn corrected(of: &AttributeReport) -> Cell {
    of.gap_corrected.map_or_else(Cell::none, |gap| Cell { value: number(gap), interval: None })
}

impl Cell {
    fn none() -> Self {
        Self { value: "none".to_owned(), interval: None }
    }
}

fn cell(estimate: &Estimate) -> Cell {
    Cell { value: value(estimate), interval: interval(estimate) }
}

/// The differences over all samples, and the models on the front.
fn statement(models: &OfModels<'_>, reports: &ModelReports) -> Statement {
    let metric = models[0].1;
    let pairs = reports.pairs.iter().filter(|pair| pair.metric == metric.name);
    let mut lines: Vec<String> = pairs.map(difference).collect();
    let trade_offs = reports.trade_offs.iter().filter(|trade_off| trade_off.metric == metric.name);
    lines.extend(trade_offs.map(front));
    lines.extend(rows::caution(metric).map(|caution| format!("Caution: {caution}.")));
    lines.extend(disagreements(models, reports));
    Statement { topic: metric.label.clone(), lines }
}

/// The models whose gap is judged differently by exchanged labels and by its interval.
fn disagreements(models: &OfModels<'_>, reports: &ModelReports) -> Vec<String> {
    let mut lines = Vec::new();
    for ((name, metric), (_, report)) in models.iter().zip(&reports.models) {
        for attribute in &metric.attributes {
            let evidence = Evidence::of(attribute, metric, report).filter(|of| of.finding == Finding::Disagree);
            lines.extend(evidence.map(|evidence| {
                format!("{name}, gap by {}: {}", attribute.attribute, evidence.conclusion(attribute, report))
            }));
        }
    }
    lines
}

fn difference(pair: &ModelPair) -> String {
    let of = &pair.overall;
    let (Some(value), names) = (of.value, format!("{} minus {}", pair.first, pair.second)) else {
        return format!("{} minus {}: undefined.", pair.first, pair.second);
    };
    let ends = of.lower.zip(of.upper).map(|(lower, upper)| format!(" ({} to {})", number(lower), number(upper)));
    let p = of.p_value.map(|p| format!(", p {}", p_relation(p)));
    let holm = of.p_holm.map(|p| format!(", Holm p {}", p_relation(p)));
    let rest: String = [ends, p, holm].into_iter().flatten().collect();
    format!("{names}: {}{rest}.", signed(value))
}

fn front(trade_off: &TradeOff) -> String {
    let on: Vec<String> =
        trade_off.points.iter().filter(|point| point.on_front).map(|point| point.model.clone()).collect();
    match &on[..] {
        [] => format!("No model has both a value and a gap by {}.", trade_off.attribute),
        [only] => {
            let is_known = |point: &TradeOffPoint| point.value.is_some() && point.gap.is_some();
            let of = if trade_off.points.iter().all(is_known) { "" } else { ", of the models that have both" };
            format!("With the gap by {}: {only} is best in both the metric and its gap{of}.", trade_off.attribute)
        }
        several => format!("With the gap by {}, the Pareto front has {}.", trade_off.attribute, list(several)),
    }
}

fn metric<'a>(
    page: &ModelsPage<'a>,
    (models, same_as): &(OfModels<'a>, Option<&'a str>),
    id: &str,
) -> Result<Metric<'a>, ReportError> {
    let (reports, first) = (page.reports, models[0].1);
    let of_pair = || reports.trade_offs.iter().filter(|of| of.metric == first.name && same_as.is_none());
    let trade_offs = of_pair().zip(names(of_pair().map(|of| of.attribute.as_str())));
    let scatter = |(of, attribute): (&TradeOff, String)| {
        let direction = rows::direction(first);
        let labels = Labels { metric: &first.label, direction: &direction, attribute: &of.attribute };
        trade_off(&places(of), &labels, &format!("trade-off-{id}_{attribute}"))
    };
    Ok(Metric {
        label: &first.label,
        direction: rows::direction(first),
        convention: &first.convention,
        window: rows::uses_window(first).then(|| rows::window(&reports.models[0].1, page.time_unit)),
        same_as: *same_as,
        forest: if same_as.is_none() { model_forest(models, &format!("forest-{id}"))? } else { String::new() },
        trade_offs: trade_offs.map(scatter).collect::<Result<_, _>>()?,
        differences: if same_as.is_none() { of_metric(reports, &first.name) } else { Vec::new() },
    })
}

fn places(trade_off: &TradeOff) -> Vec<Place> {
    let place = |point: &TradeOffPoint| Place {
        name: point.model.clone(),
        at: point.value.zip(point.gap),
        across: point.interval,
        along: point.gap_interval,
        on_front: point.on_front,
        remark: String::new(),
        single: Vec::new(),
    };
    trade_off.points.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use fairtte_metrics::evaluation::TradeOffPoint;

    use super::*;

    #[test]
    fn a_single_model_on_the_front_is_best_in_both() {
        let point = |model: &str, on_front| TradeOffPoint {
            model: model.to_owned(),
            value: Some(0.7),
            interval: None,
            gap: Some(0.1),
            gap_interval: None,
            on_front,
        };
        let of = |points| TradeOff { metric: "c-td".to_owned(), attribute: "sex".to_owned(), points };
        let only = of(vec![point("cox", true), point("erm", false)]);
        assert_eq!(front(&only), "With the gap by sex: cox is best in both the metric and its gap.");
        let both = of(vec![point("cox", true), point("erm", true)]);
        assert_eq!(front(&both), "With the gap by sex, the Pareto front has cox and erm.");
    }
}
