//! Columns of a table as inputs of a model: numbers standardised, categories one-hot encoded, fitted on training rows.
//!
//! A number becomes `(x - mean) / standard deviation` with the mean and the population standard deviation (divisor n)
//! of the training values that are not missing. A category is one-hot encoded: one feature per category of the training
//! part; none is left out as a reference, because a network needs none. Categories are compared ignoring case and
//! repeated blanks; each is shown in its most frequent training spelling. A category that is not in the training part
//! is 0 everywhere and is counted. Missing values follow [`MissingPolicy`].
//!
//! Uninformative columns (no training value, or always the same one) are left out, with a note. Steps: [`FeatureTable`]
//! (raw cells) -> [`TabularFeatures::fit`] on the training rows -> [`TabularFeatures::encode`] -> [`FeatureMatrix`].
//! The fitted encodings can be saved and applied to another table later. [`leak_warnings`] searches for columns that
//! reveal the outcome.
//!
//! Mean and standard deviation agree with scikit-learn's `StandardScaler` (recorded values, version in the tests).

mod config;
mod encode;
mod fit;
mod leak;
mod numeric;
mod table;
#[cfg(test)]
mod tests;

pub use config::{FeatureChoice, FeatureConfig, MissingPolicy};
pub(crate) use config::{default_max_levels, default_missing_values};
pub use encode::{FeatureMatrix, NewlyMissing, UnknownCategory};
pub use fit::{Encoding, FittedColumn, LeftOutColumn, TabularFeatures};
pub use leak::{LeakSign, LeakWarning, leak_warnings};
pub use numeric::{NumericFeatures, read_numeric_features};
pub use table::{FeatureColumn, FeatureTable};
