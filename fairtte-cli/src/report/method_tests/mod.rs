//! The presentation of the tests of methods over settings: on the terminal, as a page or as sections of another one, as
//! figures and as tables. All are made from the same [`MethodTests`], so they cannot disagree.

mod page;
mod section;
mod sheets;
mod table;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::ReportError;
use super::figure_files::figures_of;
use crate::args::TestColumns;
use crate::method_tests::{MethodTests, MetricTests};

use super::sheet::Sheet;
pub(crate) use section::MetricSection;

/// The content of `test.json`: where the values are from, and the tests.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct TestReport<'a> {
    /// The table of the values.
    pub(crate) table: String,
    pub(crate) n_values: usize,
    /// Columns with names of their own.
    pub(crate) columns: &'a TestColumns,
    /// Remarks on how the table was read.
    pub(crate) notes: Vec<String>,
    #[serde(flatten)]
    pub(crate) tests: &'a MethodTests,
}

/// The page, one file.
///
/// # Errors
/// [`ReportError`] if a figure or the template fails, which no input should cause.
pub(crate) fn render_page(report: &TestReport<'_>) -> Result<String, ReportError> {
    page::render(report)
}

/// The table for a terminal of `width` columns (at least 72 are used).
pub(crate) fn render_table(tests: &MethodTests, width: usize) -> String {
    table::render(tests, width)
}

/// Every table: the tests of all metrics, then of every metric ranks, Nemenyi's p values, signed-rank tests and values.
pub(crate) fn sheets(tests: &MethodTests) -> Vec<Sheet> {
    sheets::sheets(tests)
}

/// The critical-difference diagrams as SVG files, each with the stem of its file.
///
/// # Errors
/// [`ReportError`] if a figure fails, which no input should cause.
pub(crate) fn figures(tests: &MethodTests) -> Result<Vec<(String, String)>, ReportError> {
    let drawn: Vec<Option<String>> = section::figures(tests)?;
    Ok(drawn.into_iter().flatten().flat_map(|svg| figures_of(&svg)).collect())
}

/// Names of the metrics in names of files.
fn ids(tests: &MethodTests) -> Vec<String> {
    super::names::names(tests.metrics.iter().map(|metric| metric.metric.as_str()))
}

/// `left out: adni/age (no SR)` for every setting that is not ranked; empty if there is none.
fn left_out(metric: &MetricTests) -> Vec<String> {
    metric
        .left_out
        .iter()
        .map(|out| format!("{} (no value of {})", out.setting, super::format::list(&out.lacks)))
        .collect()
}

/// The trials behind the values, in words; empty without trials.
fn trials(metric: &MetricTests) -> String {
    match metric.trials {
        None => String::new(),
        Some((fewest, most)) if fewest == most => super::format::count(most, "trial"),
        Some((fewest, most)) => format!("{fewest} to {most} trials"),
    }
}
