//! The numbers of a class as one flat table: that of every report, with criteria, counts and the horizon.

use std::path::Path;

use fairtte_data::DataError;
use fairtte_data::table::{ColumnValues, csv_text};
use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{
    ClassGroups, ClassModels, ClassReport, ClassSummary, HorizonReport, LeftOut, ModelReports,
};

use super::super::flat::{self, FlatRow, of_difference, of_named, of_number};
use super::super::models::flat_differences;
use super::sections::criteria_of;

/// All rows of one model.
pub(in super::super) fn rows(
    report: &ClassReport,
    evaluation: &EvaluationReport,
    groups: &ClassGroups,
    horizon: Option<&HorizonReport>,
) -> Vec<FlatRow> {
    let mut rows = flat::rows(evaluation);
    for parity in &report.parity {
        let row = |(name, _, estimate)| of_named(name, &parity.attribute, "criterion", "", estimate);
        rows.extend(criteria_of(parity).map(row));
    }
    rows.extend(groups.summary.iter().flat_map(of_summary));
    rows.extend(horizon.into_iter().flat_map(of_horizon));
    rows
}

fn of_summary(of: &ClassSummary) -> Vec<FlatRow> {
    let (attribute, level) = (of.attribute.as_deref().unwrap_or_default(), of.level.as_deref().unwrap_or_default());
    let kind = if of.attribute.is_some() { "group" } else { "all" };
    let row = |name: &str, value: Option<f64>| of_number(name, (attribute, level), kind, value, None);
    let decisions = of.decisions;
    vec![
        row("observed-share", of.observed),
        row("mean-probability", of.predicted),
        row("certain-probabilities", Some(of.n_certain as f64)),
        row("true-positive", decisions.map(|counts| counts.true_positive)),
        row("false-positive", decisions.map(|counts| counts.false_positive)),
        row("false-negative", decisions.map(|counts| counts.false_negative)),
        row("true-negative", decisions.map(|counts| counts.true_negative)),
    ]
}

fn of_horizon(found: &HorizonReport) -> Vec<FlatRow> {
    let mut rows: Vec<FlatRow> = [&found.naive, &found.weighted].into_iter().flat_map(flat::of_metric).collect();
    for (of, between) in found.left_out.iter().zip(&found.differences) {
        let (attribute, level) = (of.attribute.as_deref().unwrap_or_default(), of.level.as_deref().unwrap_or_default());
        let kind = if of.attribute.is_some() { "group" } else { "all" };
        let LeftOut { n_positive, n_negative, n_left_out, .. } = *of;
        let count = |name: &str, n: usize| of_number(name, (attribute, level), kind, Some(n as f64), None);
        rows.push(count("event-by-horizon", n_positive));
        rows.push(count("followed-beyond-horizon", n_negative));
        rows.push(count("left-out", n_left_out));
        rows.push(of_difference("auc-naive-minus-weighted", attribute, kind, level.to_owned(), between));
    }
    rows
}

/// Writes `evaluation.csv`.
///
/// # Errors
/// [`DataError`] naming the file if it cannot be written.
pub(crate) fn write_class(path: &Path, page: &super::ClassPage<'_>) -> Result<(), DataError> {
    let super::ClassNumbers { report, evaluation, groups, horizon, .. } = page.numbers;
    flat::write(path, &rows(report, evaluation, groups, horizon))
}

/// The text of `evaluation.csv` of several models, with the columns `model` and `minus`.
///
/// # Errors
/// [`DataError`] if it cannot be made.
pub(crate) fn class_models_csv(
    models: &ClassModels,
    reports: &ModelReports,
    groups: &[ClassGroups],
    horizon: &[HorizonReport],
) -> Result<String, DataError> {
    let (mut model, mut minus, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let mut add = |name, other, rows: Vec<FlatRow>| {
        for row in rows {
            model.push(Some(name));
            minus.push(other);
            all.push(row);
        }
    };
    for (place, ((name, report), (_, evaluation))) in models.models.iter().zip(&reports.models).enumerate() {
        add(name.as_str(), None, rows(report, evaluation, &groups[place], horizon.get(place)));
    }
    for pair in &models.pairs {
        add(pair.first.as_str(), Some(pair.second.as_str()), flat_differences(pair));
    }
    let own = [("model", model), ("minus", minus)];
    let own = own.into_iter().map(|(name, cells)| (name.to_owned(), ColumnValues::Borrowed(cells)));
    csv_text(own.chain(flat::columns(&all)).collect())
}
