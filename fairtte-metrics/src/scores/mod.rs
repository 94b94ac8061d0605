//! Scoring rules: Brier score and its integral in every named convention, log scores, explained variation.

pub(crate) mod brier;
pub(crate) mod brier_convention;
pub(crate) mod explained_variation;
pub(crate) mod integrate;
pub(crate) mod integrated_scores;
pub(crate) mod integration_rule;
pub(crate) mod ipcw_losses;
pub(crate) mod linear_density;
pub(crate) mod log_scores;
pub(crate) mod nbll;
pub(crate) mod survival_evaluator;
