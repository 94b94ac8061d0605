//! The raw cells from which features are computed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fairtte_metrics::SampleId;

use crate::DataError;
use crate::cohort::Cohort;
use crate::error::Place;
use crate::nearest::nearest;

/// Columns of text, one cell per sample; never the time, the event or the identities.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureTable {
    pub(super) source: PathBuf,
    pub(super) sample_ids: Vec<SampleId>,
    /// Rows of the source as a spreadsheet counts them.
    pub(super) source_rows: Vec<usize>,
    pub(super) columns: Vec<FeatureColumn>,
    /// Columns that hold the outcome or an identity, with a description of their content.
    pub(super) mapped: Vec<(String, &'static str)>,
}

/// One column of a [`FeatureTable`].
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureColumn {
    /// Name in the source.
    pub name: String,
    /// Trimmed cells, one per sample; `None` if empty.
    pub cells: Vec<Option<String>>,
}

impl FeatureTable {
    /// The columns of the table at `source`, of the samples `sample_ids`, which are in the rows `source_rows`.
    ///
    /// # Errors
    /// [`DataError::ShapeMismatch`] if a column or the rows are not one per sample.
    pub fn new(
        source: impl Into<PathBuf>,
        sample_ids: Vec<SampleId>,
        source_rows: Vec<usize>,
        columns: Vec<FeatureColumn>,
    ) -> Result<Self, DataError> {
        let expected = sample_ids.len();
        let lengths = columns.iter().map(|column| ("column of features", column.cells.len()));
        for (what, found) in lengths.chain([("list of rows", source_rows.len())]) {
            if found != expected {
                return Err(DataError::ShapeMismatch { what, found, expected });
            }
        }
        Ok(Self { source: source.into(), sample_ids, source_rows, columns, mapped: Vec::new() })
    }

    /// Registers columns that are not included because they hold the outcome or an identity, for the error if one of
    /// them is requested: pairs of the name and its content (`the event`).
    #[must_use]
    pub fn with_mapped(mut self, mapped: Vec<(String, &'static str)>) -> Self {
        self.mapped = mapped;
        self
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.sample_ids.len()
    }

    /// Identities of the samples.
    pub fn sample_ids(&self) -> &[SampleId] {
        &self.sample_ids
    }

    /// The file the cells came from.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// The columns, in the order of the source.
    pub fn columns(&self) -> &[FeatureColumn] {
        &self.columns
    }

    /// The table with exactly the samples of `cohort`, in their order.
    ///
    /// # Errors
    /// [`DataError::UnmatchedSample`] for a sample of the cohort that the table lacks or has twice.
    pub fn aligned(&self, cohort: &Cohort) -> Result<Self, DataError> {
        let mut rows: HashMap<&SampleId, Option<usize>> = HashMap::with_capacity(self.n());
        for (row, sample) in self.sample_ids.iter().enumerate() {
            rows.entry(sample).and_modify(|row| *row = None).or_insert(Some(row));
        }
        let place = |sample: &SampleId| {
            let unmatched = |problem| DataError::UnmatchedSample { sample: sample.to_string(), problem };
            match rows.get(sample) {
                Some(Some(row)) => Ok(*row),
                Some(None) => Err(unmatched("has more than one row of features, expected one")),
                None => Err(unmatched("has no row of features")),
            }
        };
        let rows = cohort.samples.iter().map(|sample| place(&sample.sample_id)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.select(&rows))
    }

    /// The table with the samples at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let column = |column: &FeatureColumn| FeatureColumn {
            name: column.name.clone(),
            cells: rows.iter().map(|&row| column.cells[row].clone()).collect(),
        };
        Self {
            source: self.source.clone(),
            sample_ids: rows.iter().map(|&row| self.sample_ids[row].clone()).collect(),
            source_rows: rows.iter().map(|&row| self.source_rows[row]).collect(),
            columns: self.columns.iter().map(column).collect(),
            mapped: self.mapped.clone(),
        }
    }

    /// The column `name`.
    ///
    /// # Errors
    /// [`DataError::InvalidFeature`] for a column that holds the outcome or an identity, [`DataError::MissingColumn`]
    /// with the nearest existing name.
    pub(super) fn column(&self, name: &str) -> Result<&FeatureColumn, DataError> {
        if let Some((_, holds)) = self.mapped.iter().find(|(column, _)| column == name) {
            return Err(DataError::InvalidFeature {
                column: name.to_owned(),
                path: self.source.clone(),
                problem: format!("it holds {holds} and cannot be a feature"),
            });
        }
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| DataError::MissingColumn {
            column: name.to_owned(),
            path: self.source.clone(),
            nearest: nearest(name, self.columns.iter().map(|column| column.name.as_str())),
        })
    }

    /// The error for an invalid cell of `row` in `column`.
    pub(super) fn invalid_cell(&self, column: &FeatureColumn, row: usize, expected: &'static str) -> DataError {
        DataError::InvalidCell {
            column: column.name.clone(),
            sample: self.sample_ids[row].to_string(),
            value: column.cells[row].as_ref().map_or_else(|| "empty".to_owned(), |cell| format!("\"{cell}\"")),
            expected,
            place: Place { file: self.source.clone(), row: self.source_rows[row] },
        }
    }
}
