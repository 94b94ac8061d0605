//! Columns of a table as inputs of a model: numbers standardised, categories one-hot encoded, fitted on training rows.
//!
//! A number becomes `(x - mean) / standard deviation` with the mean and the population standard deviation (divisor n) of
//! the training values that are not missing. A category becomes one feature per category seen in training, 1 for its
//! own and 0 for the others; none is left out as a reference, because a network needs none. Categories are compared
//! without regard to case and to blanks; each is shown as training spells it most often. A category that training has
//! not seen is 0 everywhere and is counted. Missing values follow [`MissingPolicy`].
//!
//! Columns that cannot say anything (no training value, or always the same one) are left out, with a note.
//! Steps: [`FeatureTable`] (raw cells) -> [`TabularFeatures::fit`] on the training rows -> [`TabularFeatures::encode`]
//! -> [`FeatureMatrix`]. What was fitted can be saved and used on another table later. [`leak_warnings`] looks for
//! columns that give the outcome away.
//!
//! Mean and standard deviation agree with scikit-learn's `StandardScaler` (recorded values, version in the tests).

mod config;
mod encode;
mod fit;
mod leak;
mod table;
#[cfg(test)]
mod tests;

pub use config::{FeatureChoice, FeatureConfig, MissingPolicy};
pub(crate) use config::{default_max_levels, default_missing_values, is_missing};
pub use encode::{FeatureMatrix, UnknownCategory};
pub use fit::{Encoding, FittedColumn, LeftOutColumn, TabularFeatures};
pub use leak::{LeakSign, LeakWarning, leak_warnings};
pub use table::{FeatureColumn, FeatureTable};
