//! The presentation of an evaluation: a plain table for the terminal and a self-contained HTML page.
//!
//! `flat` is every number as a table. All are made from the same [`EvaluationReport`], so they cannot disagree. The page needs no network and no script:
//! plots are inline SVG. Every text that comes from a data set or a run file (group names, labels, reasons) is escaped.

mod baseline;
pub(crate) mod bias;
pub(crate) mod card;
mod choice;
mod classes;
mod decisions;
mod differences;
mod download;
mod evidence;
pub(crate) mod experiment;
#[cfg(feature = "train")]
pub(crate) mod explain;
mod external;
mod figure_files;
pub(crate) mod flat;
mod format;
mod groups_table;
mod masks;
pub(crate) mod method_tests;
mod metric_sections;
mod metric_table;
mod models;
mod names;
mod p_matrix;
mod page;
mod plots;
mod rows;
pub(crate) mod samples;
mod sensitivity;
pub(crate) mod sheet;
mod shown_table;
mod sides;
#[cfg(feature = "train")]
pub(crate) mod study;
mod table;
mod tables;
mod template;
#[cfg(test)]
pub(crate) mod test_reports;
#[cfg(test)]
mod tests;
mod verdict;
mod words;

pub(crate) use baseline::render_baseline;
pub(crate) use choice::{ChoiceBlock, ChoicePage, ChoiceRow, render_choice, tables_of_choice};
pub(crate) use classes::{
    ClassNumbers, ClassPage, ClassSections, class_models_csv, render_class_models, render_class_page,
    render_class_table, tables_of_class, threshold_sentence, write_class,
};
pub(crate) use external::{
    ExternalClass, ExternalPage, external_csv, external_verdict, render_external_page, render_external_table,
};
pub(crate) use figure_files::figures_of;
pub(crate) use format::{list, number, of_level, p_relation, short, wrap};
pub(crate) use masks::{MaskPage, SampleRow, render_mask_page, render_mask_table, tables_of_masks, write_masks};
pub(crate) use models::{ModelsPage, listed, models_csv, render_models_page, render_models_table};
pub(crate) use plots::{Chart, Dot, Panels, Place, PlanePanel, RowPanel, chart};
pub(crate) use sensitivity::render_sensitivity;
pub(crate) use tables::{Table, tables_of_external, tables_of_models, tables_of_page};

use fairtte_metrics::EvaluationReport;
use fairtte_records::Warning;

use crate::baseline::Baseline;
use crate::sensitivity::Sensitivity;

/// Everything that the HTML page shows.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Heading, for example the name of the run.
    pub title: &'a str,
    /// One line below the heading; may be empty.
    pub subtitle: &'a str,
    /// Name and value of what determines the run: data set, backbone, head, strategy, device, seed, versions, ..
    pub facts: &'a [(String, String)],
    /// The numbers.
    pub evaluation: &'a EvaluationReport,
    /// What covariates alone predict; `None` where there are none.
    pub baseline: Option<&'a Baseline>,
    /// What informative censoring would change; `None` where it was not requested.
    pub sensitivity: Option<&'a Sensitivity>,
    /// Sources of bias of the data of a run, where they were computed.
    pub bias: Option<&'a bias::BiasSection>,
    /// Unit of all times, for example `years`; may be empty if it is unknown.
    pub time_unit: &'a str,
    /// What the censoring curve was fitted on, for example `the training part`.
    pub censoring: &'a str,
    /// Training history in order of epochs; empty for predictions of an outside model.
    pub epochs: &'a [EpochPoint],
    /// The criterion by which the best epoch was chosen, for example `validation NLL`.
    pub monitor: &'a str,
    /// From the rows read to the samples evaluated, one step after another; may be empty.
    pub flow: &'a [FlowRow],
    /// Warnings that must be read before the numbers, one paragraph each.
    pub warnings: &'a [Warning],
    /// Remarks for the reader, one paragraph each.
    pub notes: &'a [String],
    /// Name of the file with the flat table, under which the page offers it.
    pub csv: &'a str,
}

/// What training reported after one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochPoint {
    /// Number of the epoch.
    pub epoch: usize,
    /// Mean training loss of the head, before the strategy weights it.
    pub train_loss: f64,
    /// Negative log-likelihood on the validation part.
    pub validation_nll: f64,
    /// C^td on the validation part, where it exists.
    pub validation_c_td: Option<f64>,
    /// Whether the final model is that of this epoch.
    pub best: bool,
}

/// One step from the rows read to the samples evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// What is left after the step, for example `cohort` or `test part`.
    pub label: String,
    /// Number of samples or rows left.
    pub n_kept: usize,
    /// Number that the step removed.
    pub n_excluded: usize,
    /// The reasons, with their numbers.
    pub reasons: Vec<(String, usize)>,
}

/// Why no page could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A plot could not be drawn.
    #[error("cannot draw the figure \"{figure}\" of the report")]
    Plot {
        /// Title of the figure.
        figure: String,
        /// Error of the plotting library.
        #[source]
        source: plots::DrawError,
    },
    /// The table of all numbers could not be made.
    #[error("cannot make the table of all numbers of the report")]
    Table(#[from] fairtte_data::DataError),
    /// The page could not be filled in.
    #[error("cannot fill in the page of the report")]
    Template(#[from] minijinja::Error),
}

/// The HTML page: one file without script, style sheet, image or font from elsewhere.
///
/// # Errors
/// [`ReportError`] if a plot or the template fails, which no input should cause.
pub fn render_page(page: &Page<'_>) -> Result<String, ReportError> {
    page::render(page)
}

/// The table for a terminal of `width` columns (at least 72 are used): plain text, with `colour` the worst groups in red.
pub fn render_table(report: &EvaluationReport, width: usize, colour: bool) -> String {
    table::render(report, width, colour)
}
