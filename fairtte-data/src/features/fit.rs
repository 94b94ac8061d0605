//! Choosing the columns and fitting their encodings on the training rows.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::config::{FeatureChoice, FeatureConfig, MissingPolicy};
use super::table::{FeatureColumn, FeatureTable};
use crate::nearest::nearest;
use crate::table::decimal::{DECIMAL_POINT, has_decimal_comma};
use crate::{DataError, SettingsOf};

/// Fitted encodings of the columns of a table, in the order of the features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TabularFeatures {
    /// Number of training samples they were fitted on.
    pub n_train: usize,
    /// What replaces a missing value.
    pub missing: MissingPolicy,
    /// Texts that count as missing in addition to the empty cell.
    pub missing_values: Vec<String>,
    /// The encoded columns.
    pub columns: Vec<FittedColumn>,
    /// Requested columns that give no feature.
    pub left_out: Vec<LeftOutColumn>,
}

/// The fitted encoding of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FittedColumn {
    /// Name of the column.
    pub column: String,
    /// How its values become features.
    pub encoding: Encoding,
    /// Training samples without a value.
    pub n_missing: usize,
    /// Whether a further feature indicates that the value is missing.
    pub indicator: bool,
}

/// How the values of one column become features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Encoding {
    /// `(x - mean) / standard_deviation`, one feature.
    #[serde(rename_all = "kebab-case")]
    Numeric {
        /// Mean of the training values.
        mean: f64,
        /// Population standard deviation of the training values, > 0.
        standard_deviation: f64,
    },
    /// One-hot: one feature per category, 1 for the category of the sample and 0 for the others.
    Categorical {
        /// The categories of the training samples, ascending.
        levels: Vec<String>,
    },
    /// The value is the same in all training samples that have one; only its presence is informative.
    Presence,
}

/// A column that gives no feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LeftOutColumn {
    /// Name of the column.
    pub column: String,
    /// The reason, as the end of a sentence that begins with the name.
    pub reason: String,
}

impl fmt::Display for LeftOutColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column \"{}\" {}: it gives no feature", self.column, self.reason)
    }
}

/// The kind of values of a column, and whether the settings name it.
struct Chosen<'a> {
    column: &'a FeatureColumn,
    is_numeric: bool,
    is_named: bool,
}

impl TabularFeatures {
    /// Chooses the columns of `table` that `config` asks for and fits their encodings on the samples at `train_rows`.
    ///
    /// `attributes` are the names of the sensitive attributes, which `features = "all"` leaves out. The features are in
    /// the order of the columns of the table. A row named twice counts once.
    ///
    /// Cost: one pass over the chosen cells.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] for contradicting settings or no feature at all, [`DataError::MissingColumn`],
    /// [`DataError::InvalidFeature`] (the outcome as a feature, too many categories), [`DataError::InvalidCell`] for a
    /// training cell that is not a number in a numeric column, or a missing one that is not allowed,
    /// [`DataError::ShapeMismatch`] for no training row.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    pub fn fit(
        table: &FeatureTable,
        train_rows: &[usize],
        config: &FeatureConfig,
        attributes: &[&str],
    ) -> Result<Self, DataError> {
        config.check()?;
        if train_rows.is_empty() {
            return Err(DataError::ShapeMismatch { what: "training part", found: 0, expected: 1 });
        }
        let mut train_rows = train_rows.to_vec();
        train_rows.sort_unstable();
        train_rows.dedup();
        let mut fitted = Self {
            n_train: train_rows.len(),
            missing: config.missing,
            missing_values: config.missing_values.clone(),
            columns: Vec::new(),
            left_out: Vec::new(),
        };
        for chosen in choose(table, config, attributes)? {
            match fit_column(table, &chosen, &train_rows, config)? {
                Ok(column) => fitted.columns.push(column),
                Err(reason) => fitted.left_out.push(LeftOutColumn { column: chosen.column.name.clone(), reason }),
            }
        }
        fitted.refuse_no_or_repeated_names()?;
        Ok(fitted)
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.columns.iter().map(FittedColumn::n_features).sum()
    }

    /// Names of the features: `age`, `sex=F`, `age:missing`.
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().flat_map(FittedColumn::names).collect()
    }

    fn refuse_no_or_repeated_names(&self) -> Result<(), DataError> {
        let mut names = self.names();
        if names.is_empty() {
            let reasons: Vec<String> = self.left_out.iter().map(ToString::to_string).collect();
            let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) };
            let value = format!("a choice that leaves no feature{reasons}");
            let expected = "at least one column that differs between training samples";
            return Err(DataError::setting(SettingsOf::Features, "features", value, expected));
        }
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                let value = format!("a choice with two features named \"{}\"", pair[0]);
                let expected = "different names: rename or exclude a column";
                Err(DataError::setting(SettingsOf::Features, "features", value, expected))
            }
            None => Ok(()),
        }
    }
}

impl FittedColumn {
    /// Number of features of this column.
    pub fn n_features(&self) -> usize {
        let of_values = match &self.encoding {
            Encoding::Numeric { .. } => 1,
            Encoding::Categorical { levels } => levels.len(),
            Encoding::Presence => 0,
        };
        of_values + usize::from(self.indicator)
    }

    /// Names of the features of this column.
    pub fn names(&self) -> Vec<String> {
        let mut names = match &self.encoding {
            Encoding::Numeric { .. } => vec![self.column.clone()],
            Encoding::Categorical { levels } => levels.iter().map(|level| format!("{}={level}", self.column)).collect(),
            Encoding::Presence => Vec::new(),
        };
        if self.indicator {
            names.push(format!("{}:missing", self.column));
        }
        names
    }
}

/// The columns that `config` asks for, in the order of the table.
fn choose<'a>(
    table: &'a FeatureTable,
    config: &FeatureConfig,
    attributes: &[&str],
) -> Result<Vec<Chosen<'a>>, DataError> {
    for name in config.numeric.iter().chain(&config.categorical) {
        table.column(name)?;
    }
    for name in &config.exclude {
        let is_mapped = table.mapped.iter().any(|(mapped, _)| mapped == name);
        if !is_mapped && !table.columns.iter().any(|column| column.name == *name) {
            return Err(DataError::MissingColumn {
                column: name.clone(),
                path: table.source.clone(),
                nearest: nearest(name, table.columns.iter().map(|column| column.name.as_str())),
            });
        }
    }
    let takes_all = config.features == Some(FeatureChoice::All);
    let choice = |column: &'a FeatureColumn| {
        let named = |list: &[String]| list.contains(&column.name);
        if named(&config.numeric) || named(&config.categorical) {
            return Some(Chosen { column, is_numeric: named(&config.numeric), is_named: true });
        }
        let is_taken = takes_all && !named(&config.exclude) && !attributes.contains(&column.name.as_str());
        is_taken.then(|| Chosen { column, is_numeric: holds_numbers(column, config), is_named: false })
    };
    Ok(table.columns.iter().filter_map(choice).collect())
}

/// Whether every cell that is not missing is a number.
fn holds_numbers(column: &FeatureColumn, config: &FeatureConfig) -> bool {
    let mut present = column.cells.iter().flatten().filter(|cell| !config.is_missing(cell));
    present.all(|cell| number(cell).is_some())
}

/// A finite number, or 0 and 1 for `false` and `true`.
pub(super) fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    if cell.eq_ignore_ascii_case("true") {
        return Some(1.0);
    }
    if cell.eq_ignore_ascii_case("false") {
        return Some(0.0);
    }
    cell.parse::<f64>().ok().filter(|value| value.is_finite())
}

pub(super) const EXPECTED_NUMBER: &str = "a finite number, because the column is numeric";
const EXPECTED_LIKE_OTHERS: &str = "a number like the other cells of the column, or its text in missing-values, or the column in \
                                    categorical or exclude";
pub(super) const EXPECTED_VALUE: &str = "a value, because missing ones are refused";

/// The fitted column, or why it gives no feature.
fn fit_column(
    table: &FeatureTable,
    chosen: &Chosen<'_>,
    train_rows: &[usize],
    config: &FeatureConfig,
) -> Result<Result<FittedColumn, String>, DataError> {
    let column = chosen.column;
    let mut present: Vec<(usize, &str)> = Vec::with_capacity(train_rows.len());
    for &row in train_rows {
        match column.cells[row].as_deref().filter(|cell| !config.is_missing(cell)) {
            Some(cell) => present.push((row, cell)),
            None if config.missing == MissingPolicy::Refuse => {
                return Err(table.invalid_cell(column, row, EXPECTED_VALUE));
            }
            None => {}
        }
    }
    if let Some(row) = decimal_comma(&present).filter(|_| !chosen.is_named) {
        return Err(table.invalid_cell(column, row, DECIMAL_POINT));
    }
    if let Some(row) = text_among_numbers(column, config).filter(|_| !chosen.is_named) {
        return Err(table.invalid_cell(column, row, EXPECTED_LIKE_OTHERS));
    }
    let n_missing = train_rows.len() - present.len();
    if present.is_empty() {
        return Ok(Err("has no value in the training part".to_owned()));
    }
    let encoding = if chosen.is_numeric {
        let numbers = present
            .iter()
            .map(|&(row, cell)| number(cell).ok_or_else(|| table.invalid_cell(column, row, EXPECTED_NUMBER)));
        let mut numbers = numbers.collect::<Result<Vec<f64>, _>>()?;
        numbers.sort_by(f64::total_cmp);
        let moments = moments(&numbers);
        if let Some(problem) = moments.and_then(|moments| lost_in_single_precision(numbers, moments)) {
            return Err(DataError::InvalidFeature { column: column.name.clone(), path: table.source.clone(), problem });
        }
        moments.map(|(mean, standard_deviation)| Encoding::Numeric { mean, standard_deviation })
    } else {
        let levels = levels(present.iter().map(|(_, cell)| *cell));
        if levels.len() > config.max_levels {
            let (n, most) = (levels.len(), config.max_levels);
            let problem = format!("has {n} different values in the training part, more than max-levels = {most}");
            if chosen.is_named {
                let path = table.source.clone();
                return Err(DataError::InvalidFeature {
                    column: column.name.clone(),
                    path,
                    problem: format!("it {problem}"),
                });
            }
            return Ok(Err(problem));
        }
        (levels.len() > 1).then_some(Encoding::Categorical { levels })
    };
    let indicator = n_missing > 0 && config.missing == MissingPolicy::MeanAndIndicator;
    let fitted = |encoding| FittedColumn { column: column.name.clone(), encoding, n_missing, indicator };
    Ok(match encoding {
        Some(encoding) => Ok(fitted(encoding)),
        None if indicator => Ok(fitted(Encoding::Presence)),
        None => Err("has one value in the whole training part".to_owned()),
    })
}

/// The first row with a decimal comma where all values are numbers, some of them with one: categories they would be by mistake only.
fn decimal_comma(present: &[(usize, &str)]) -> Option<usize> {
    let (row, _) = present.iter().find(|(_, cell)| has_decimal_comma(cell))?;
    present.iter().all(|(_, cell)| number(cell).is_some() || has_decimal_comma(cell)).then_some(*row)
}

/// The first row with a text in a column of numbers: more than ten different ones in at least nine of ten cells. Each number would be a
/// category by mistake.
fn text_among_numbers(column: &FeatureColumn, config: &FeatureConfig) -> Option<usize> {
    let cells = column.cells.iter().enumerate().filter_map(|(row, cell)| Some((row, cell.as_deref()?)));
    let (numbers, texts): (Vec<_>, Vec<_>) =
        cells.filter(|(_, cell)| !config.is_missing(cell)).partition(|(_, cell)| number(cell).is_some());
    let (row, _) = texts.first()?;
    let different: HashSet<u64> = numbers.iter().filter_map(|(_, cell)| number(cell)).map(f64::to_bits).collect();
    (numbers.len() >= 9 * texts.len() && different.len() > 10).then_some(*row)
}

/// What is wrong with ascending `values` if fewer than half of the different ones are different in 32 bits, in which models read them
/// standardised.
fn lost_in_single_precision(mut values: Vec<f64>, (mean, deviation): (f64, f64)) -> Option<String> {
    values.dedup();
    #[expect(clippy::cast_possible_truncation, reason = "what becomes equal is counted")]
    let mut read: Vec<f32> = values.iter().map(|value| ((value - mean) / deviation) as f32).collect();
    read.dedup();
    let (n, n_read) = (values.len(), read.len());
    (2 * n_read < n).then(|| {
        let (least, most) = (values[0], values[n - 1]);
        format!(
            "standardised, its {n} different training values, from {least} to {most}, are {n_read} different numbers in 32 bits, \
             expected no value that far from the others (the code of a missing value belongs in missing-values)"
        )
    })
}

/// Mean and population standard deviation of ascending `values`; `None` if all are the same.
///
/// Computed in ascending order, so that the result does not depend on the order of the samples, and on values divided
/// by the largest magnitude, so that neither sums nor squares overflow.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let (least, most) = (*values.first()?, *values.last()?);
    if most <= least {
        return None;
    }
    let scale = least.abs().max(most.abs());
    let n = values.len() as f64;
    let mean = values.iter().map(|value| value / scale).sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value / scale - mean).powi(2)).sum();
    let deviation = (squares / n).sqrt() * scale;
    (deviation > 0.0).then_some((mean * scale, deviation))
}

/// The normalised form of a category for comparison: lower case, with single blanks.
pub(super) fn folded(cell: &str) -> String {
    cell.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The categories of `cells`, ascending by their normalised form, each in its most frequent spelling (ties: the first
/// in the order of the characters).
fn levels<'a>(cells: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    cells.for_each(|cell| *counts.entry(cell).or_insert(0) += 1);
    let mut spellings: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for (spelling, n) in counts {
        let best = spellings.entry(folded(spelling)).or_insert((n, spelling));
        if n > best.0 {
            *best = (n, spelling);
        }
    }
    spellings.into_values().map(|(_, spelling)| spelling.to_owned()).collect()
}
