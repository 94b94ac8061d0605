//! Several models on one page, in one flat table and on the terminal.

mod flat;
mod lines;
mod page;
mod table;
#[cfg(test)]
mod tests;

use fairtte_metrics::evaluation::{MetricReport, ModelReports};

use super::ReportError;
use super::classes::ClassSections;
use super::rows;

pub(super) use flat::differences as flat_differences;
pub(crate) use flat::models_csv;
pub(super) use lines::{Line as DifferenceLine, OfPair, of_metric, signed};
pub(super) use page::{Cell, SummaryRow, summary};

/// Everything that the page of several models shows.
pub(crate) struct ModelsPage<'a> {
    /// Heading.
    pub(crate) title: &'a str,
    /// One line below it; may be empty.
    pub(crate) subtitle: &'a str,
    /// Name and value of what determines the numbers: files, grids, ..
    pub(crate) facts: &'a [(String, String)],
    /// The numbers.
    pub(crate) reports: &'a ModelReports,
    /// Unit of all times; may be empty.
    pub(crate) time_unit: &'a str,
    /// What the censoring curve was fitted on.
    pub(crate) censoring: &'a str,
    /// Warnings that must be read before the numbers, one paragraph each.
    pub(crate) warnings: &'a [String],
    /// Remarks for the reader, one paragraph each.
    pub(crate) notes: &'a [String],
    /// Name and text of the flat table beside the page.
    pub(crate) csv: (&'a str, &'a str),
    /// What only probabilities of a class have; `None` for curves.
    pub(crate) class: Option<&'a ClassSections>,
}

/// The HTML page of several models: one file without script or anything from elsewhere.
///
/// # Errors
/// [`ReportError`] if a plot or the template fails, which no input should cause.
pub(crate) fn render_models_page(page: &ModelsPage<'_>) -> Result<String, ReportError> {
    page::render(page)
}

/// The tables for a terminal of `width` columns: plain text, no colour.
pub(crate) fn render_models_table(reports: &ModelReports, width: usize) -> String {
    table::render(reports, width)
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(names: &[&str]) -> String {
    super::format::list(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

/// One metric of every model, with the names of the models.
pub(super) type OfModels<'a> = Vec<(&'a str, &'a MetricReport)>;

/// The metrics whose numbers are not those of an earlier one.
pub(super) fn shown_metrics(reports: &ModelReports) -> Vec<OfModels<'_>> {
    metrics(reports).into_iter().filter(|(_, same_as)| same_as.is_none()).map(|(models, _)| models).collect()
}

/// Every metric with its models, and the label of an earlier one that has the same numbers in all of them.
fn metrics(reports: &ModelReports) -> Vec<(OfModels<'_>, Option<&str>)> {
    let n_metrics = reports.models.first().map_or(0, |(_, report)| report.metrics.len());
    let of_metric = |place: usize| {
        let of_models: OfModels<'_> =
            reports.models.iter().map(|(name, report)| (name.as_str(), &report.metrics[place])).collect();
        let others: Vec<Option<&MetricReport>> =
            reports.models.iter().map(|(_, report)| rows::same_as(report, &report.metrics[place])).collect();
        let same = others[0].filter(|first| others.iter().all(|other| other.is_some_and(|o| o.name == first.name)));
        (of_models, same.map(|other| other.label.as_str()))
    };
    (0..n_metrics).map(of_metric).collect()
}
