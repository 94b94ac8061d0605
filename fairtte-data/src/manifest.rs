//! What an adapter reads: one row per image, still without labels.
//!
//! A row keeps who and what it is about (sample, subject, image file), the raw cells from which a label rule makes time
//! and event, and the raw attribute values. Nothing is dropped here, so rows read can be counted.

use std::path::PathBuf;

use fairtte_metrics::SubjectId;

use crate::error::Place;

/// All rows of one data set as its files hold them.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Name of the data set, for reports.
    pub name: String,
    /// The table the rows came from.
    pub source: PathBuf,
    /// Unit of the times, for axis labels: `days`, `years`, ..
    pub time_unit: String,
    /// Names of the raw label columns, in the order of [`ManifestRow::labels`].
    pub label_names: Vec<String>,
    /// Names of the columns that may serve as attributes, in the order of [`ManifestRow::attributes`].
    pub attribute_names: Vec<String>,
    /// One entry per row of the source.
    pub rows: Vec<ManifestRow>,
}

/// One row of a [`Manifest`].
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestRow {
    /// Identity of the sample as the source gives it; `None` if its cell is empty.
    pub sample_id: Option<String>,
    /// The person; `None` if the cell is empty.
    pub subject_id: Option<SubjectId>,
    /// Absolute path of the image file; `None` if the cell is empty.
    pub image: Option<PathBuf>,
    /// Row in the source as a spreadsheet counts it.
    pub source_row: usize,
    /// Raw label cells, in the order of [`Manifest::label_names`].
    pub labels: Vec<Option<String>>,
    /// Raw attribute values, in the order of [`Manifest::attribute_names`].
    pub attributes: Vec<Option<String>>,
}

impl Manifest {
    /// Where `row` stands, for error messages.
    pub fn place(&self, row: &ManifestRow) -> Place {
        Place { file: self.source.clone(), row: row.source_row }
    }

    /// The raw label cell of `row` in the column `name`; `None` if the cell is empty or there is no such column.
    pub fn label<'a>(&self, row: &'a ManifestRow, name: &str) -> Option<&'a str> {
        let position = self.label_names.iter().position(|column| column == name)?;
        row.labels[position].as_deref()
    }
}

impl ManifestRow {
    /// The sample identity, or `row 17` for a row without one.
    pub fn display_id(&self) -> String {
        self.sample_id.clone().unwrap_or_else(|| format!("row {}", self.source_row))
    }
}
