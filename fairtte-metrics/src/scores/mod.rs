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

pub use brier::{BrierScore, PreparedBrier, brier_score, integrated_brier_score};
pub use brier_convention::{BrierConvention, brier_score_by, integrated_brier_score_by};
pub use explained_variation::{ExplainedVariation, explained_residual_variation, kaplan_meier_curves};
pub use integrated_scores::{IntegratedScore, IntegratedScoreRule, ScoreWeights, TimeLoss, unique_times};
pub use integration_rule::IntegrationRule;
pub use log_scores::{EventDensity, LogScore, SnlForm, negative_log_likelihood, rcll, snl};
pub use nbll::{Nbll, integrated_nbll, nbll};
pub use survival_evaluator::survival_evaluator_curves;
