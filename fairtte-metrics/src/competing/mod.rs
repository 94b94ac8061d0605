//! Competing risks: outcomes of which the event has one of several causes, and metrics of the predicted risk of one of them.
//!
//! A death from another cause is no censoring: a subject who died will not have the event that is predicted, whereas a censored
//! sample still may. Counted as a censoring, it makes observed risks too high (1 - Kaplan-Meier in place of
//! [`AalenJohansen`]) and, where groups die at different rates, moves the gap between them.
//!
//! With one cause, every measure here is that of a single event; a test beside each says so. For groups, gaps and
//! intervals see [`evaluate_cause`](crate::evaluation::evaluate_cause).

mod aalen_johansen;
pub(crate) mod auc;
pub(crate) mod brier;
pub(crate) mod calibration;
pub(crate) mod concordance;
mod curves;
mod outcomes;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use aalen_johansen::observed_without;
pub use aalen_johansen::{AalenJohansen, IncidenceVariance};
pub use auc::{Controls, cause_auc};
pub use brier::{cause_brier_score, integrated_cause_brier_score};
pub use calibration::{
    cause_calibration_bins, cause_calibration_index, cause_calibration_slope, cause_observed_expected,
};
pub use concordance::{CauseConcordance, cause_concordance, cause_concordance_td};
pub use curves::IncidenceCurves;
pub use outcomes::CompetingOutcomes;
