//! The output of an adapter: one row per image, without labels, and the rule that labels the rows.
//!
//! A row holds its identities and file (sample, subject, unit, image); the raw attribute values are kept beside the
//! rows, one column per attribute. No row is dropped here, so the rows read can be counted. The evidence from which
//! time and event are derived (dates, visits, diagnoses) is typed and held by the rule.

use std::path::PathBuf;

use fairtte_metrics::SubjectId;

use crate::cohort::AttributeColumn;
use crate::cohort::LabelRule;
use crate::cohort::Provenance;
use crate::error::Place;

/// One data set as its adapter read it: the rows, the rule that labels them, and their provenance.
pub struct Unlabelled {
    /// The rows.
    pub manifest: Manifest,
    /// Labels a row of the manifest by its index.
    pub rule: Box<dyn LabelRule>,
    /// Rule, options and content hash, for the record of the cohort.
    pub provenance: Provenance,
}

/// All rows of one data set as in its files.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Name of the data set, for reports.
    pub name: String,
    /// The table (or folder) that the rows came from.
    pub source: PathBuf,
    /// Unit of the times, for axis labels: `days`, `years`, ..
    pub time_unit: String,
    /// One entry per row of the source.
    pub rows: Vec<ManifestRow>,
    /// The columns that may serve as attributes, each with one value per row.
    pub attributes: Vec<AttributeColumn>,
    /// Names of the columns with identities, files and outcomes, which are no attributes, where the source is one table of one's own.
    pub roles: Vec<String>,
}

/// One row of a [`Manifest`].
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestRow {
    /// Identity of the sample as the source gives it; `None` if its cell is empty.
    pub sample_id: Option<String>,
    /// The person; `None` if the cell is empty.
    pub subject_id: Option<SubjectId>,
    /// The unit that is followed if it is a part of the person: `9001-RE` for one eye. `None` if it is the person.
    pub unit: Option<String>,
    /// Absolute path of the image file; `None` if it is not known.
    pub image: Option<PathBuf>,
    /// Row in the source as a spreadsheet counts it.
    pub source_row: usize,
}

impl Manifest {
    /// The place (file and row) of row `index`, for error messages.
    ///
    /// # Panics
    /// If `index` is not below the number of rows.
    pub fn place(&self, index: usize) -> Place {
        Place { file: self.source.clone(), row: self.rows[index].source_row }
    }

    /// Names of the attribute columns.
    pub fn attribute_names(&self) -> Vec<&str> {
        self.attributes.iter().map(|column| column.name.as_str()).collect()
    }
}

impl ManifestRow {
    /// The sample identity, or `row 17` for a row without one.
    pub fn display_id(&self) -> String {
        self.sample_id.clone().unwrap_or_else(|| format!("row {}", self.source_row))
    }

    /// The same text of a row that is not needed any more.
    pub(crate) fn into_display_id(self) -> String {
        self.sample_id.unwrap_or_else(|| format!("row {}", self.source_row))
    }
}
