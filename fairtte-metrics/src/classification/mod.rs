//! Metrics of the predicted probability of a binary class, and criteria of fairness at a threshold of it.
//!
//! Every function takes [`ClassPredictions`], probabilities with the observed class. For groups, gaps, intervals and paired
//! differences see [`evaluate_classes`](crate::evaluation::evaluate_classes). A class that was made from times ("event within
//! a year") leaves out the samples censored before; [`binary_at_horizon`] counts them and puts the AUC of the class beside
//! that with weights for censoring.

mod auc;
mod calibration;
mod confusion;
pub(crate) mod horizon;
mod logistic;
mod parity;
mod predictions;
pub(crate) mod replicates;
mod scores;
pub(crate) mod smoothed;
#[cfg(test)]
mod tests;

pub use auc::{DeLong, DeLongTest, auc, delong, delong_test};
pub use calibration::{
    BinConfidence, Bins, CalibrationError, CalibrationLine, calibration_intercept, calibration_line,
    expected_calibration_error,
};
pub(crate) use confusion::check_threshold;
pub use confusion::{BestThreshold, Confusion, best_f1_threshold, confusion};
pub use horizon::{HorizonAuc, HorizonClasses, binary_at_horizon};
pub use parity::{GroupRates, Parity, Underdiagnosis};
pub use predictions::ClassPredictions;
pub(crate) use scores::check_tnr;
pub use scores::{RocReading, average_precision, brier_score, cross_entropy, tpr_at_tnr};
