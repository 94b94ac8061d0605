//! Features of samples by fitted encodings.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::config::MissingPolicy;
use super::fit::{EXPECTED_NUMBER, EXPECTED_VALUE, Encoding, FittedColumn, TabularFeatures, folded, number};
use super::table::{FeatureColumn, FeatureTable};
use crate::DataError;
use crate::table::is_missing;

/// Features of every sample of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureMatrix {
    names: Vec<String>,
    /// `[n, n_features]`
    values: Vec<f32>,
    n: usize,
    unknown: Vec<UnknownCategory>,
    newly_missing: Vec<NewlyMissing>,
}

/// Samples with a category that is not in the training part, to be shown to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UnknownCategory {
    /// The column.
    pub column: String,
    /// The category.
    pub value: String,
    /// Number of samples.
    pub n_samples: usize,
}

impl fmt::Display for UnknownCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, value, n_samples } = self;
        let samples = if *n_samples == 1 { "sample has" } else { "samples have" };
        write!(f, "{n_samples} {samples} {column} \"{value}\", which no training sample has: all its features are 0")
    }
}

/// Samples without a value in a column in which every training sample has one, to be shown to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NewlyMissing {
    /// The column.
    pub column: String,
    /// Number of samples.
    pub n_samples: usize,
    /// Whether its values are numbers.
    pub is_numeric: bool,
}

impl fmt::Display for NewlyMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, n_samples, is_numeric } = self;
        let samples = if *n_samples == 1 { "sample has" } else { "samples have" };
        let instead = if *is_numeric { "the training mean takes its place" } else { "all its features are 0" };
        write!(f, "{n_samples} {samples} no {column}, which every training sample has: {instead}")
    }
}

impl FeatureMatrix {
    /// Number of samples.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Number of features of a sample.
    pub fn n_features(&self) -> usize {
        self.names.len()
    }

    /// Names of the features.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// All values, `[n, n_features]`, finite.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The features of the sample at `row`.
    ///
    /// # Panics
    /// If `row` is not below [`n`](Self::n).
    pub fn row(&self, row: usize) -> &[f32] {
        let d = self.n_features();
        &self.values[row * d..(row + 1) * d]
    }

    /// Categories that are not in the training part, with the number of samples.
    pub fn unknown(&self) -> &[UnknownCategory] {
        &self.unknown
    }

    /// Columns without a value in samples, where all training samples have one.
    pub fn newly_missing(&self) -> &[NewlyMissing] {
        &self.newly_missing
    }

    /// What no training sample has, in sentences: unknown categories and missing values.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let missing = self.newly_missing.iter().map(ToString::to_string);
        self.unknown.iter().map(ToString::to_string).chain(missing)
    }
}

impl TabularFeatures {
    /// The features of all samples of `table`, which needs the columns these encodings were fitted on.
    ///
    /// # Errors
    /// [`DataError::MissingColumn`], [`DataError::InvalidCell`] for a cell that is not a number in a numeric column, a
    /// number too far from the training values for 32 bits, or a missing value that is not allowed.
    pub fn encode(&self, table: &FeatureTable) -> Result<FeatureMatrix, DataError> {
        let (n, names) = (table.n(), self.names());
        let mut values = vec![0.0_f32; n * names.len()];
        let mut unknown: BTreeMap<(usize, String), (String, usize)> = BTreeMap::new();
        let mut newly_missing = Vec::new();
        let mut first = 0;
        for (index, fitted) in self.columns.iter().enumerate() {
            let column = table.column(&fitted.column)?;
            let encoder = Encoder::new(fitted);
            let mut n_missing = 0;
            for row in 0..n {
                let begin = row * names.len() + first;
                let features = &mut values[begin..begin + fitted.n_features()];
                match column.cells[row].as_deref().filter(|cell| !is_missing(&self.missing_values, cell)) {
                    Some(cell) => {
                        if !encoder.encode(table, column, row, cell, features)? {
                            // The first spelling represents all.
                            unknown.entry((index, folded(cell))).or_insert_with(|| (cell.to_owned(), 0)).1 += 1;
                        }
                    }
                    None if self.missing == MissingPolicy::Refuse => {
                        return Err(table.invalid_cell(column, row, EXPECTED_VALUE));
                    }
                    None => {
                        n_missing += 1;
                        if fitted.indicator {
                            features[fitted.n_features() - 1] = 1.0;
                        }
                    }
                }
            }
            if n_missing > 0 && fitted.n_missing == 0 {
                let is_numeric = matches!(fitted.encoding, Encoding::Numeric { .. });
                newly_missing.push(NewlyMissing { column: fitted.column.clone(), n_samples: n_missing, is_numeric });
            }
            first += fitted.n_features();
        }
        let unknown = unknown.into_iter().map(|((index, _), (value, n_samples))| UnknownCategory {
            column: self.columns[index].column.clone(),
            value,
            n_samples,
        });
        Ok(FeatureMatrix { names, values, n, unknown: unknown.collect(), newly_missing })
    }
}

/// The encoding of one column, prepared for many cells.
enum Encoder {
    Numeric { mean: f64, standard_deviation: f64 },
    Categorical(HashMap<String, usize>),
    Presence,
}

impl Encoder {
    fn new(fitted: &FittedColumn) -> Self {
        match &fitted.encoding {
            Encoding::Numeric { mean, standard_deviation } => {
                Self::Numeric { mean: *mean, standard_deviation: *standard_deviation }
            }
            Encoding::Categorical { levels } => {
                Self::Categorical(levels.iter().enumerate().map(|(i, level)| (folded(level), i)).collect())
            }
            Encoding::Presence => Self::Presence,
        }
    }

    /// Fills `features` of the sample at `row`, which are initially 0; `false` for a category that is not in the
    /// training part.
    fn encode(
        &self,
        table: &FeatureTable,
        column: &FeatureColumn,
        row: usize,
        cell: &str,
        features: &mut [f32],
    ) -> Result<bool, DataError> {
        match self {
            Self::Numeric { mean, standard_deviation } => {
                let value = number(cell).ok_or_else(|| table.invalid_cell(column, row, EXPECTED_NUMBER))?;
                #[expect(clippy::cast_possible_truncation, reason = "models compute in f32; the result is checked")]
                let standardised = ((value - mean) / standard_deviation) as f32;
                if !standardised.is_finite() {
                    let expected = "a number that is not too far from the training values for 32 bits";
                    return Err(table.invalid_cell(column, row, expected));
                }
                features[0] = standardised;
            }
            Self::Categorical(levels) => match levels.get(&folded(cell)) {
                Some(&level) => features[level] = 1.0,
                None => return Ok(false),
            },
            Self::Presence => {}
        }
        Ok(true)
    }
}
