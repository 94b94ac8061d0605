//! Masks: the page, the flat table and the terminal.
//!
//! Metrics, their figures and their tables are those of every page (`metric_sections.rs`, `table.rs`, `flat.rs`), made from the
//! report in its common form; here is what only masks have: empty masks, the spread of Dice over samples, the forms of equity
//! scaling of `FairSeg`, and the samples with the lowest overlap.

mod page;
mod sections;
mod words;

use std::path::Path;

use fairtte_data::DataError;
use fairtte_metrics::evaluation::{EmptyMasks, MaskMetric, MaskReport};
use fairtte_metrics::masks::PairScore;
use fairtte_metrics::{EvaluationReport, Groups};
use fairtte_records::Warning;

use super::ReportError;
use super::classes::{ClassTable, push};
use super::flat::{self, FlatRow, of_named, of_number};

/// Everything that the page shows.
pub(crate) struct MaskPage<'a> {
    /// Heading.
    pub(crate) title: &'a str,
    /// One line below it; may be empty.
    pub(crate) subtitle: &'a str,
    /// Name and value of what determines the numbers.
    pub(crate) facts: &'a [(String, String)],
    /// The numbers.
    pub(crate) report: &'a MaskReport,
    /// The same in the form of every report.
    pub(crate) evaluation: &'a EvaluationReport,
    /// By class and sample.
    pub(crate) scores: &'a [Vec<PairScore>],
    /// Of the samples.
    pub(crate) groups: &'a [Groups],
    /// The samples with the lowest Dice, lowest first.
    pub(crate) lowest: &'a [SampleRow],
    /// Warnings that must be read before the numbers.
    pub(crate) warnings: &'a [Warning],
    /// Remarks for the reader.
    pub(crate) notes: &'a [String],
    /// Name of the file with the flat table, under which the page offers it.
    pub(crate) csv: &'a str,
}

/// One class of one sample.
#[derive(Clone, Debug)]
pub(crate) struct SampleRow {
    pub(crate) sample: String,
    pub(crate) subject: String,
    pub(crate) class: String,
    pub(crate) score: PairScore,
}

/// The HTML page: one file without script or anything from elsewhere.
///
/// # Errors
/// [`ReportError`] if a plot or the template fails, which no input should cause.
pub(crate) fn render_mask_page(page: &MaskPage<'_>) -> Result<String, ReportError> {
    page::render(page)
}

/// The tables for a terminal of `width` columns, with `colour` the worst groups in red.
pub(crate) fn render_mask_table(page: &MaskPage<'_>, width: usize, colour: bool) -> String {
    let mut text = super::render_table(page.evaluation, width, colour);
    for table in sections::all(page) {
        text.push('\n');
        push(&mut text, &table, width);
    }
    text
}

/// The tables of the page as files of their own.
pub(crate) fn tables_of_masks(page: &MaskPage<'_>) -> Vec<super::Table> {
    let own = sections::all(page).into_iter().map(ClassTable::sheet);
    own.chain(super::tables::evaluation::tables_of_metrics(page.evaluation, "", "")).collect()
}

/// Writes `evaluation.csv`.
///
/// # Errors
/// [`DataError`] naming the file if it cannot be written.
pub(crate) fn write_masks(path: &Path, page: &MaskPage<'_>) -> Result<(), DataError> {
    flat::write(path, &rows(page))
}

/// All numbers: those of every report, the further forms of equity scaling, and the empty masks.
fn rows(page: &MaskPage<'_>) -> Vec<FlatRow> {
    let mut rows = flat::rows(page.evaluation);
    for metric in page.report.metrics.iter().filter(|metric| !is_distance(&metric.name)) {
        for attribute in &metric.attributes {
            let by = attribute.attribute.as_str();
            rows.push(of_named(&metric.name, by, "equity-scaling-fairseg", "", &attribute.equity_scaling_fair_seg));
            let deviation = attribute.equity_scaling_deviation.iter();
            rows.extend(deviation.map(|of| of_named(&metric.name, by, "equity-scaling-fairseg-deviation", "", of)));
        }
    }
    rows.extend(page.report.empty.iter().flat_map(of_empty));
    rows
}

fn of_empty(of: &EmptyMasks) -> Vec<FlatRow> {
    let place = (of.attribute.as_deref().unwrap_or_default(), of.level.as_deref().unwrap_or_default());
    let kind = if of.attribute.is_some() { "group" } else { "all" };
    let row = |name: &str, n: usize| of_number(&format!("{name}-{}", of.class), place, kind, Some(n as f64), None);
    vec![row("both-empty", of.n_both), row("true-empty", of.n_truth), row("predicted-empty", of.n_predicted)]
}

/// Whether a metric has no equity scaling.
fn is_distance(name: &str) -> bool {
    MaskMetric::ALL.iter().any(|metric| metric.is_distance() && metric.is_of(name))
}
