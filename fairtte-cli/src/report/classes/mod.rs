//! Probabilities of a class: the page, the flat table and the terminal.
//!
//! Metrics, their figures and their tables are those of every page (`metric_sections.rs`, `table.rs`, `flat.rs`), made from the
//! report in its common form; here is what only a class has: who was left out at a horizon, decisions, criteria, ROC curves.

mod flat;
mod page;
mod sections;
mod table;
mod words;

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{ClassGroups, ClassModels, ClassReport, HorizonReport};
use fairtte_records::Warning;

use super::ReportError;

pub(super) use flat::rows as flat_rows;
pub(crate) use flat::{class_models_csv, write_class};
pub(crate) use sections::ClassTable;
pub(super) use sections::{
    ClassRow, criteria, criteria_of_reports, decisions, horizon as horizon_table, rows_of, texts,
};
pub(super) use table::push;
pub(crate) use words::threshold_sentence;
pub(super) use words::{bins, verdict};

/// Everything that the page of one model shows.
pub(crate) struct ClassPage<'a> {
    /// Heading.
    pub(crate) title: &'a str,
    /// One line below it; may be empty.
    pub(crate) subtitle: &'a str,
    /// Name and value of what determines the numbers.
    pub(crate) facts: &'a [(String, String)],
    pub(crate) numbers: ClassNumbers<'a>,
    /// What the censoring curve was fitted on; empty without times.
    pub(crate) censoring: &'a str,
    /// Where the threshold comes from, in a sentence.
    pub(crate) threshold: &'a str,
    /// Warnings that must be read before the numbers.
    pub(crate) warnings: &'a [Warning],
    /// Remarks for the reader.
    pub(crate) notes: &'a [String],
    /// Name of the file with the flat table, under which the page offers it.
    pub(crate) csv: &'a str,
}

/// The numbers of one model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassNumbers<'a> {
    pub(crate) report: &'a ClassReport,
    /// The same in the form of every report.
    pub(crate) evaluation: &'a EvaluationReport,
    /// Counts and curves by group.
    pub(crate) groups: &'a ClassGroups,
    /// Where the class is made from times.
    pub(crate) horizon: Option<&'a HorizonReport>,
    /// Unit of the times; may be empty.
    pub(crate) time_unit: &'a str,
}

/// The HTML page: one file without script or anything from elsewhere.
///
/// # Errors
/// [`ReportError`] if a plot or the template fails, which no input should cause.
pub(crate) fn render_class_page(page: &ClassPage<'_>) -> Result<String, ReportError> {
    page::render(page)
}

/// The tables for a terminal of `width` columns, with `colour` the worst groups in red.
pub(crate) fn render_class_table(page: &ClassPage<'_>, width: usize, colour: bool) -> String {
    table::render(page, width, colour)
}

/// What only a class has, of several models, for a terminal of `width` columns.
pub(crate) fn render_class_models(models: &ClassModels, horizon: &[HorizonReport], width: usize) -> String {
    table::of_models(models, horizon, width)
}

/// The tables of the page as files of their own.
pub(crate) fn tables_of_class(page: &ClassPage<'_>) -> Vec<super::Table> {
    let ClassNumbers { evaluation, time_unit, .. } = page.numbers;
    let own = sections::all(&page.numbers).into_iter().map(sections::ClassTable::sheet);
    own.chain(super::tables::evaluation::tables_of_metrics(evaluation, time_unit, page.censoring)).collect()
}

/// What only a class has, of several models.
fn class_tables(models: &ClassModels, horizon: &[HorizonReport]) -> Vec<ClassTable> {
    [sections::horizon_of_models(models, horizon), sections::criteria_of_models(models)].into_iter().flatten().collect()
}

/// What the page of several models has of a class only.
pub(crate) struct ClassSections {
    /// What is said of every model, in their order.
    pub(super) said: Vec<Vec<String>>,
    /// Who was evaluated.
    pub(super) who: ClassTable,
    pub(super) tables: Vec<ClassTable>,
}

impl ClassSections {
    /// From what the pages of the single models would show, and the models together.
    pub(crate) fn of(pages: &[ClassPage<'_>], models: &ClassModels, horizon: &[HorizonReport]) -> Self {
        Self {
            said: pages.iter().map(|page| words::verdict(&page.numbers)).collect(),
            who: sections::who_of_models(pages, models),
            tables: class_tables(models, horizon),
        }
    }

    /// The tables as files of their own.
    pub(crate) fn sheets(&self) -> Vec<super::Table> {
        std::iter::once(&self.who).chain(&self.tables).cloned().map(ClassTable::sheet).collect()
    }
}
