//! Classical survival estimators in `f64`, without a deep-learning framework.
//!
//! | estimator | what it is |
//! |---|---|
//! | [`RandomSurvivalForest`] | trees split by the log-rank statistic, with Nelson-Aalen curves in their leaves |

mod error;
mod forest;

pub use error::ClassicalError;
pub use forest::{ForestSettings, OutOfBag, RandomSurvivalForest, Sampling};
