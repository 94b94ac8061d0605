//! Parts of a method that had no effect.

use serde::{Deserialize, Serialize};

/// The result of a watch in one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// Name of the watch.
    pub name: String,
    /// The largest mean of its terms over the batches, or their largest distance from the center; absent if no batch had
    /// them.
    pub value: Option<f64>,
    /// The limit with which it is compared.
    pub limit: f64,
    /// Whether the part was idle: the value is below the limit, or absent.
    pub idle: bool,
}

/// A warning for the readers of the results, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Warning {
    /// Name, for programs.
    pub name: String,
    /// A sentence or two.
    pub text: String,
}

/// Name of the watch on the predictions of every strategy: whether all are equal.
pub const EQUAL_PREDICTIONS: &str = "equal-predictions";

/// Name of the warning that the first epoch of several was the best.
pub const FIRST_EPOCH: &str = "first-epoch";

/// Name of the warning that the concordance of a run is not distinguishable from 0.5.
pub const NO_RANKING: &str = "no-ranking";

/// Name of the warning that the groups of an attribute are censored differently.
pub const UNEQUAL_CENSORING: &str = "unequal-censoring";

/// Name of the warning that the sample of the censoring curve has no events, or no censored samples.
pub const TRAINING_SAMPLE: &str = "training-sample";
