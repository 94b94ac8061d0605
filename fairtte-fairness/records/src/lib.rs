// In the documentation the names of the README lead to the items; the README itself has links to the source.
//! [`EpochReport`]: EpochReport
//! [`Validation`]: Validation
//! [`GroupValidation`]: GroupValidation
//! [`AttributeValidation`]: AttributeValidation
//! [`Monitor`]: Monitor
//! [`Predicted`]: Predicted
//! [`Metrics`]: Metrics
//! [`metrics_of`]: metrics_of
//! [`Watched`]: Watched
//! [`Warning`]: Warning
#![doc = include_str!("../README.md")]

mod epoch;
mod monitor;
mod warning;

pub use epoch::EpochReport;
pub use monitor::{AttributeValidation, GroupValidation, Metrics, Monitor, Predicted, Validation, metrics_of};
pub use warning::{EQUAL_PREDICTIONS, FIRST_EPOCH, NO_RANKING, TRAINING_SAMPLE, UNEQUAL_CENSORING, Warning, Watched};

/// Relative loss of utility that the smallest gap may cost (the paper's 5 %).
pub const TOLERATED_LOSS: f64 = 0.05;
