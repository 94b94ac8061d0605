//! What only a class has, as tables of texts: who was evaluated, who was left out, decisions by group, and criteria of fairness.

use fairtte_metrics::evaluation::{
    AttributeParity, ClassModels, ClassReport, ClassSummary, Difference, Estimate, HorizonReport, LeftOut, MetricReport,
};
use serde::Serialize;

use super::super::format::{interval, number, percent, short, value};
use super::super::models::signed;
use super::super::tables::{Line, Table};
use super::super::verdict::percent_of;
use super::{ClassNumbers, ClassPage};

/// A table of texts, filled in by the filter `class_table`; also of masks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ClassTable {
    /// Stem of its files.
    pub(in super::super) name: &'static str,
    pub(in super::super) caption: String,
    pub(in super::super) header: Vec<String>,
    pub(in super::super) rows: Vec<ClassRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in super::super) struct ClassRow {
    /// `all`, `attribute`, `group` or `summary`.
    pub(in super::super) kind: &'static str,
    pub(in super::super) name: String,
    pub(in super::super) cells: Vec<String>,
    pub(in super::super) remark: Option<String>,
}

impl ClassTable {
    /// The same for papers.
    pub(in super::super) fn sheet(self) -> Table {
        let line = |row: ClassRow| match row.kind {
            "attribute" => Line::Heading(row.name),
            kind => Line::Cells {
                cells: std::iter::once(row.name).chain(row.cells).collect(),
                indented: kind == "group" || kind == "summary",
                remarks: row.remark.into_iter().collect(),
            },
        };
        Table {
            name: self.name.to_owned(),
            caption: format!("{}.", self.caption),
            header: self.header,
            lines: self.rows.into_iter().map(line).collect(),
        }
    }
}

pub(in super::super) fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

/// All tables of a page, in its order.
pub(super) fn all(numbers: &ClassNumbers<'_>) -> Vec<ClassTable> {
    let mut tables = vec![who(numbers)];
    tables.extend(numbers.horizon.map(|found| horizon(found, numbers.time_unit)));
    tables.push(decisions(numbers));
    tables.extend(criteria(numbers.report));
    tables
}

/// Rows below the name of their attribute; `of` is an attribute and a level, both `None` for the whole sample.
fn by_attribute<T>(
    all: &[T],
    of: impl Fn(&T) -> (Option<&str>, Option<&str>),
    row: impl Fn(&T) -> (Vec<String>, Option<String>),
) -> Vec<ClassRow> {
    let mut rows: Vec<ClassRow> = Vec::new();
    let mut heading = None;
    for one in all {
        let (attribute, level) = of(one);
        if attribute != heading {
            heading = attribute;
            let name = attribute.unwrap_or_default().to_owned();
            rows.push(ClassRow { kind: "attribute", name, cells: Vec::new(), remark: None });
        }
        let (cells, remark) = row(one);
        let kind = if attribute.is_some() { "group" } else { "all" };
        rows.push(ClassRow { kind, name: level.unwrap_or("all").to_owned(), cells, remark });
    }
    rows
}

/// Samples, classes, observed shares and predicted probabilities.
pub(super) fn who(numbers: &ClassNumbers<'_>) -> ClassTable {
    table_of_groups(&[numbers], &[None])
}

/// The same of several models on the same samples.
pub(super) fn who_of_models(pages: &[ClassPage<'_>], models: &ClassModels) -> ClassTable {
    let names: Vec<Option<&str>> = models.models.iter().map(|(name, _)| Some(name.as_str())).collect();
    let numbers: Vec<&ClassNumbers<'_>> = pages.iter().map(|page| &page.numbers).collect();
    table_of_groups(&numbers, &names)
}

/// The samples, then the predictions of every model, with the name of its model in the header if it has one.
fn table_of_groups(numbers: &[&ClassNumbers<'_>], names: &[Option<&str>]) -> ClassTable {
    let summary = numbers.first().map_or(&[][..], |first| &first.groups.summary);
    let row = |of: &ClassSummary| {
        let share = |share: Option<f64>| share.map_or_else(|| "none".to_owned(), percent_of);
        let ends = of.observed_interval;
        let ends = ends.map_or_else(|| "none".to_owned(), |(a, b)| format!("{:.1} to {:.1} %", a * 100.0, b * 100.0));
        let is_it = |other: &&ClassSummary| (&other.attribute, &other.level) == (&of.attribute, &of.level);
        let predicted = |numbers: &&ClassNumbers<'_>| {
            let predicted = numbers.groups.summary.iter().find(is_it).and_then(|found| found.predicted);
            let ratio = of.observed.zip(predicted).filter(|(_, predicted)| *predicted > 0.0);
            let ratio = ratio.map_or_else(|| "none".to_owned(), |(observed, predicted)| number(observed / predicted));
            [share(predicted), ratio]
        };
        let counts = [of.n, of.n_subjects, of.n_positive, of.n - of.n_positive].map(|n| n.to_string());
        let cells = counts.into_iter().chain([share(of.observed), ends]).chain(numbers.iter().flat_map(predicted));
        (cells.collect(), None)
    };
    let mut header = texts(["group", "n", "subjects", "positive", "negative", "observed share"]);
    let level = numbers.first().map(|first| format!("{} interval", percent(first.report.settings.level)));
    header.push(level.unwrap_or_default());
    for name in names {
        let of = name.map_or_else(String::new, |name| format!(", {name}"));
        header.extend(["mean probability", "observed / predicted"].map(|column| format!("{column}{of}")));
    }
    let of = |of: &ClassSummary| (of.attribute.clone(), of.level.clone());
    let rows = rows_of(summary, of, row);
    ClassTable { name: "groups", caption: "Who was evaluated".to_owned(), header, rows }
}

/// [`by_attribute`] of owned names.
pub(in super::super) fn rows_of<T>(
    all: &[T],
    of: impl Fn(&T) -> (Option<String>, Option<String>),
    row: impl Fn(&T) -> (Vec<String>, Option<String>),
) -> Vec<ClassRow> {
    let named: Vec<(Option<String>, Option<String>, &T)> = all
        .iter()
        .map(|one| {
            let (attribute, level) = of(one);
            (attribute, level, one)
        })
        .collect();
    by_attribute(&named, |(attribute, level, _)| (attribute.as_deref(), level.as_deref()), |(_, _, one)| row(one))
}

/// The estimates of all samples, then of every group, in the order of [`LeftOut`].
fn estimates(metric: &MetricReport) -> Vec<&Estimate> {
    let groups = metric.attributes.iter().flat_map(|attribute| attribute.groups.iter().map(|group| &group.estimate));
    std::iter::once(&metric.overall).chain(groups).collect()
}

/// With its interval in brackets.
fn with_ends(estimate: &Estimate) -> String {
    interval(estimate).map_or_else(|| value(estimate), |ends| format!("{} ({ends})", value(estimate)))
}

fn difference(of: &Difference) -> String {
    let Some(value) = of.value else { return "undefined".to_owned() };
    match of.lower.zip(of.upper) {
        Some((lower, upper)) => format!("{} ({} to {})", signed(value), number(lower), number(upper)),
        None => signed(value),
    }
}

/// Who was left out at the horizon, and what that does to the AUC.
pub(in super::super) fn horizon(found: &HorizonReport, time_unit: &str) -> ClassTable {
    let (naive, weighted) = (estimates(&found.naive), estimates(&found.weighted));
    let lines: Vec<(usize, &LeftOut)> = found.left_out.iter().enumerate().collect();
    let row = |(place, of): &(usize, &LeftOut)| {
        let counts = [of.n, of.n_positive, of.n_negative].map(|n| n.to_string());
        let share =
            if of.n > 0 { format!(" ({})", percent_of(of.n_left_out as f64 / of.n as f64)) } else { String::new() };
        let between = &found.differences[*place];
        let cells = counts.into_iter().chain([
            format!("{}{share}", of.n_left_out),
            with_ends(naive[*place]),
            with_ends(weighted[*place]),
            difference(between),
        ]);
        let why = [naive[*place], weighted[*place]].into_iter().find_map(|estimate| estimate.undefined.clone());
        (cells.collect(), why.or_else(|| between.undefined.clone()))
    };
    let of = |(_, of): &(usize, &LeftOut)| (of.attribute.clone(), of.level.clone());
    let header = [
        "group",
        "n",
        "event by then",
        "followed beyond",
        "left out",
        "AUC of the class",
        "AUC with weights",
        "difference",
    ];
    let by = format!("{} {time_unit}", short(found.horizon));
    let caption = format!("Who has a class at {}, and what leaving out the others does to the AUC", by.trim_end());
    ClassTable { name: "horizon", caption, header: texts(header), rows: rows_of(&lines, of, row) }
}

/// Who is called what at the threshold.
pub(in super::super) fn decisions(numbers: &ClassNumbers<'_>) -> ClassTable {
    let row = |of: &ClassSummary| {
        let Some(counts) = &of.decisions else { return (vec!["none".to_owned(); 8], None) };
        let rate =
            |rate: Result<f64, fairtte_metrics::MetricError>| rate.map_or_else(|_| "none".to_owned(), percent_of);
        let of_counts = [counts.true_positive, counts.false_positive, counts.false_negative, counts.true_negative];
        let of_counts = of_counts.map(|n| format!("{n:.0}"));
        let rates = [
            rate(counts.selection_rate()),
            rate(counts.false_positive_rate()),
            rate(counts.false_negative_rate()),
            rate(counts.balanced_accuracy()),
        ];
        (rates.into_iter().chain(of_counts).collect(), None)
    };
    let header = [
        "group",
        "called positive",
        "FPR",
        "FNR",
        "balanced accuracy",
        "true positive",
        "false positive",
        "false negative",
        "true negative",
    ];
    let of = |of: &ClassSummary| (of.attribute.clone(), of.level.clone());
    let rows = rows_of(&numbers.groups.summary, of, row);
    let caption = format!("Decisions at the threshold {}", short(numbers.report.class.threshold));
    ClassTable { name: "decisions", caption, header: texts(header), rows }
}

/// The names of the criteria with their values.
pub(super) fn criteria_of(parity: &AttributeParity) -> [(&'static str, &'static str, &Estimate); 6] {
    [
        ("equal-opportunity-negative", "equal opportunity, negatives (1 = equal)", &parity.equal_opportunity_negative),
        ("equal-opportunity-positive", "equal opportunity, positives (1 = equal)", &parity.equal_opportunity_positive),
        ("equalised-odds", "equalised odds (mean of both; 1 = equal)", &parity.equalised_odds),
        (
            "demographic-parity-difference",
            "demographic parity difference (0 = equal)",
            &parity.demographic_parity_difference,
        ),
        ("demographic-parity-ratio", "demographic parity ratio (1 = equal)", &parity.demographic_parity_ratio),
        ("underdiagnosis-difference", "underdiagnosis difference (0 = equal)", &parity.underdiagnosis_difference),
    ]
}

/// Criteria of fairness; `None` without attributes.
pub(in super::super) fn criteria(report: &ClassReport) -> Option<ClassTable> {
    let mut rows = Vec::new();
    for parity in &report.parity {
        let name = parity.attribute.clone();
        rows.push(ClassRow { kind: "attribute", name, cells: Vec::new(), remark: None });
        rows.extend(criteria_of(parity).map(|(_, name, estimate)| ClassRow {
            kind: "group",
            name: name.to_owned(),
            cells: vec![value(estimate), interval(estimate).unwrap_or_else(|| "none".to_owned())],
            remark: estimate.undefined.clone(),
        }));
    }
    let mut header = texts(["criterion", "value"]);
    header.push(format!("{} interval", percent(report.settings.level)));
    let caption = format!("Criteria of fairness at the threshold {}", short(report.class.threshold));
    (!rows.is_empty()).then_some(ClassTable { name: "criteria", caption, header, rows })
}

/// The AUC of the class and with weights of every model; `None` where the class is not made from times.
pub(super) fn horizon_of_models(models: &ClassModels, horizon: &[HorizonReport]) -> Option<ClassTable> {
    let first = horizon.first()?;
    let row = |((name, _), found): (&(String, ClassReport), &HorizonReport)| ClassRow {
        kind: "all",
        name: name.clone(),
        cells: vec![
            with_ends(&found.naive.overall),
            with_ends(&found.weighted.overall),
            difference(&found.differences[0]),
        ],
        remark: found.weighted.overall.undefined.clone(),
    };
    let LeftOut { n, n_left_out, .. } = first.left_out[0];
    let caption = format!(
        "AUC with and without those censored by {}: {n_left_out} of {n} samples have no class",
        short(first.horizon)
    );
    let header = texts(["model", "AUC of the class", "AUC with weights", "difference"]);
    let rows = models.models.iter().zip(horizon).map(row).collect();
    Some(ClassTable { name: "horizon", caption, header, rows })
}

/// The criteria of every model; `None` without attributes.
pub(super) fn criteria_of_models(models: &ClassModels) -> Option<ClassTable> {
    let named: Vec<(&str, &ClassReport)> = models.models.iter().map(|(name, report)| (name.as_str(), report)).collect();
    criteria_of_reports(&named, |_| true)
}

/// The criteria of every report, of the attributes of the first that are `wanted`; `None` without any. A report without an
/// attribute has no criteria of it.
pub(in super::super) fn criteria_of_reports(
    reports: &[(&str, &ClassReport)],
    wanted: impl Fn(&str) -> bool,
) -> Option<ClassTable> {
    let (_, first) = reports.first()?;
    let mut rows = Vec::new();
    for parity in first.parity.iter().filter(|parity| wanted(&parity.attribute)) {
        let name = parity.attribute.clone();
        rows.push(ClassRow { kind: "attribute", name, cells: Vec::new(), remark: None });
        for (k, (_, name, _)) in criteria_of(parity).into_iter().enumerate() {
            let cell = |(_, report): &(&str, &ClassReport)| {
                let own = report.parity.iter().find(|own| own.attribute == parity.attribute);
                own.map_or_else(|| "none".to_owned(), |own| with_ends(criteria_of(own)[k].2))
            };
            let cells = reports.iter().map(cell).collect();
            rows.push(ClassRow { kind: "group", name: name.to_owned(), cells, remark: None });
        }
    }
    let header = std::iter::once("criterion".to_owned()).chain(reports.iter().map(|(name, _)| (*name).to_owned()));
    let caption = format!("Criteria of fairness at the threshold {}", short(first.class.threshold));
    (!rows.is_empty()).then(|| ClassTable { name: "criteria", caption, header: header.collect(), rows })
}
