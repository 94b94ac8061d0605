//! Which columns become features and how.

use serde::{Deserialize, Serialize};

use crate::table::is_missing;
use crate::{DataError, SettingsOf};

/// Default of the maximum number of levels of a one-hot encoded column.
const MOST_LEVELS: usize = 100;

/// How the columns of a table become features.
///
/// | key | default | meaning |
/// |---|---|---|
/// | `features` | none | `"all"`: every column that is not mapped, excluded, or a sensitive attribute |
/// | `numeric` | none | columns of numbers, standardised |
/// | `categorical` | none | columns of categories, one-hot encoded |
/// | `exclude` | none | columns that `features = "all"` leaves out |
/// | `missing` | `"mean-and-indicator"` | what replaces a missing value: see [`MissingPolicy`] |
/// | `missing-values` | `NA`, `N/A`, `NaN`, `null`, `.` | texts that count as missing in addition to the empty cell, ignoring case |
/// | `max-levels` | 100 | most categories of a column, >= 1 |
///
/// A sensitive attribute becomes a feature only if `numeric` or `categorical` names it. A column selected by `"all"`
/// that is in neither list is numeric if every cell of the table that is not missing is a number (or `true` and
/// `false`), and categorical otherwise: the kind of a column depends on the whole file, not on the split.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FeatureConfig {
    /// Columns used in addition to the listed ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<FeatureChoice>,
    /// Columns of numbers.
    pub numeric: Vec<String>,
    /// Columns of categories.
    pub categorical: Vec<String>,
    /// Columns that are never features.
    pub exclude: Vec<String>,
    /// What replaces a missing value.
    pub missing: MissingPolicy,
    /// Texts that count as missing.
    pub missing_values: Vec<String>,
    /// Most categories of a column, >= 1.
    pub max_levels: usize,
}

impl Default for FeatureConfig {
    fn default() -> Self {
        Self {
            features: None,
            numeric: Vec::new(),
            categorical: Vec::new(),
            exclude: Vec::new(),
            missing: MissingPolicy::default(),
            missing_values: default_missing_values(),
            max_levels: MOST_LEVELS,
        }
    }
}

/// Texts that count as missing if the settings name none.
pub(crate) fn default_missing_values() -> Vec<String> {
    ["NA", "N/A", "NaN", "null", "."].map(str::to_owned).to_vec()
}

/// The default of `max-levels`.
pub(crate) fn default_max_levels() -> usize {
    MOST_LEVELS
}

/// Columns used in addition to the listed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FeatureChoice {
    /// Every column that is not mapped, excluded, or a sensitive attribute.
    All,
}

/// What replaces a missing value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MissingPolicy {
    /// The training mean of a number (0 after standardisation), no category, and a further feature that is 1 where the
    /// value is missing, for columns with missing values in the training part.
    #[default]
    MeanAndIndicator,
    /// The same without the further feature.
    Mean,
    /// An error.
    Refuse,
}

impl FeatureConfig {
    /// Checks the settings as far as possible without a table.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] naming the key.
    pub fn check(&self) -> Result<(), DataError> {
        let invalid =
            |field, value: String, expected| Err(DataError::setting(SettingsOf::Features, field, value, expected));
        if self.features.is_none() && self.numeric.is_empty() && self.categorical.is_empty() {
            let expected = "features = \"all\", or columns under numeric or categorical";
            return invalid("features", "not given".to_owned(), expected);
        }
        if self.max_levels == 0 {
            return invalid("max-levels", "0".to_owned(), "a whole number >= 1");
        }
        let lists = [("numeric", &self.numeric), ("categorical", &self.categorical), ("exclude", &self.exclude)];
        let mut named: Vec<&str> = Vec::new();
        for (field, columns) in lists {
            for column in columns {
                if named.contains(&column.as_str()) {
                    let expected = "each column once in numeric, categorical and exclude together";
                    return invalid(field, format!("\"{column}\" again"), expected);
                }
                named.push(column);
            }
        }
        Ok(())
    }

    /// Whether `cell` denotes a missing value.
    pub(super) fn is_missing(&self, cell: &str) -> bool {
        is_missing(&self.missing_values, cell)
    }
}
