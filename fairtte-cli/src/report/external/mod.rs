//! One model in the test part of its run and in other data: the page of an external validation, its flat table and the
//! tables of a terminal.

mod classes;
mod flat;
mod lines;
mod page;
mod table;
#[cfg(test)]
mod tests;
mod verdict;

use fairtte_metrics::evaluation::CohortReports;

use super::ReportError;
use crate::case_mix::CaseMix;

pub(crate) use classes::ExternalClass;
pub(crate) use flat::external_csv;
pub(super) use lines::{CaseMixText, ChangeLine, Line, MetricLines, Side, case_mix_lines, metric_lines};
pub(crate) use verdict::external_verdict;

/// Everything that the page of an external validation shows.
pub(crate) struct ExternalPage<'a> {
    /// Heading.
    pub(crate) title: &'a str,
    /// The internal cohort: `test part of films`.
    pub(crate) internal: &'a str,
    /// Name of the external data.
    pub(crate) external: &'a str,
    /// Name and value of what determines the numbers: folders, weights, grids, ..
    pub(crate) facts: &'a [(String, String)],
    /// The numbers.
    pub(crate) reports: &'a CohortReports,
    /// Who the samples are.
    pub(crate) case_mix: &'a CaseMix,
    /// Unit of all times; may be empty.
    pub(crate) time_unit: &'a str,
    /// What the censoring curve of the external data was fitted on; that of the internal ones is always the training part. Empty
    /// where no sample is censored.
    pub(crate) censoring: &'a str,
    /// Warnings that must be read before the numbers, one paragraph each.
    pub(crate) warnings: &'a [String],
    /// Remarks for the reader, one paragraph each.
    pub(crate) notes: &'a [String],
    /// Where a class is predicted; then times are those of its horizon only.
    pub(crate) class: Option<ExternalClass<'a>>,
    /// Name of the file with the flat table, under which the page offers it.
    pub(crate) csv: &'a str,
}

impl ExternalPage<'_> {
    /// What the common evaluation times leave out of those of each cohort, one sentence each; none where nothing is cut.
    fn cut(&self) -> Vec<String> {
        let CohortReports { internal, internal_times, external_times, .. } = self.reports;
        let Some(common) = &internal.times else { return Vec::new() };
        let sentence = |(name, own): (&str, &Option<fairtte_metrics::evaluation::TimeWindow>)| {
            let own = own.as_ref()?;
            let is_cut = own.lower < common.lower || own.upper > common.upper;
            let unit = self.time_unit;
            let [from, to] = [own.lower, own.upper].map(super::format::short);
            let sentence = format!("By itself, the {name} cohort would be evaluated from {from} to {to} {unit}");
            is_cut.then(|| sentence.trim_end().to_owned())
        };
        [("internal", internal_times), ("external", external_times)].into_iter().filter_map(sentence).collect()
    }
}

/// The HTML page: one file without script or anything from elsewhere.
///
/// # Errors
/// [`ReportError`] if a plot or the template fails, which no input should cause.
pub(crate) fn render_external_page(page: &ExternalPage<'_>) -> Result<String, ReportError> {
    page::render(page)
}

/// The tables for a terminal of `width` columns: plain text, no colour.
pub(crate) fn render_external_table(page: &ExternalPage<'_>, width: usize) -> String {
    table::render(page, width)
}
