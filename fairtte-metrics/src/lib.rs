//! Exact, censoring-aware survival and fairness metrics for predictions of any model.
//!
//! Everything is a pure function in `f64` over a few checked types ([`Outcomes`], [`SurvivalCurves`],
//! [`CensoringCurve`], [`Groups`]). What cannot be computed is a [`MetricError`] that says why; no function returns
//! NaN. [`evaluate`] puts all of it together for one set of predictions.
#![cfg_attr(
    test,
    expect(clippy::unwrap_used, clippy::float_cmp, reason = "a test may panic, and its values are exact in binary")
)]

mod auc_convention;
mod auc_td;
mod bias;
mod bootstrap;
mod brier;
mod brier_convention;
mod calibration_alpha;
mod censoring;
mod chi_square;
mod comparable_pairs;
mod comparison;
mod concordance;
mod concordance_bins;
mod concordance_td;
mod concordance_td_variants;
mod curves;
mod d_calibration;
mod error;
mod evaluated;
mod evaluation;
mod explained_variation;
mod fenwick;
mod finite;
mod groups;
mod ids;
mod integrate;
mod integrated_calibration;
mod integrated_scores;
mod integration_rule;
mod intervals;
mod ipcw_losses;
mod jackknife;
mod kaplan_meier;
mod linear_density;
mod log_scores;
mod model_comparison;
mod nbll;
mod nelson_aalen;
mod normal;
mod one_calibration;
mod outcomes;
mod own_time_survival;
mod paired;
mod pairwise_sum;
mod per_group;
mod reading;
mod reading_td;
mod replicates;
mod report;
mod risk;
mod run_table;
pub mod seeds;
mod selection;
mod selection_values;
mod settings;
mod statistics;
mod stratify;
mod summary;
mod survival_evaluator;
mod tied_pairs;
mod time_window;
mod uno;

pub use auc_convention::AucConvention;
pub use auc_td::{AucTd, PreparedAucTd, TIE_TOLERANCE, auc_td, auc_td_with};
pub use bias::{
    BiasSettings, BiasSource, BiasSources, ContingencyTable, DEFAULT_NEIGHBOURS, DimensionInformation,
    DisparityEstimate, Distribution, GroupSummary, KMeans, KMeansSettings, LabelPermutations, Normalisation,
    NullCorrected, PairDisparity, PermutationTest, SlicedWasserstein, SourceDisparity, SourceGroup, bias_sources,
    energy_distance, equal_frequency_bins, equal_width_bins, k_means, ksg_mutual_information,
    ksg_mutual_information_discrete, ksg_per_dimension, ksg_per_dimension_discrete, permutation_test,
    seeded_projections, sliced_wasserstein, wasserstein_1, wasserstein_p, wasserstein_p_power,
};
pub use bootstrap::{Bootstrap, Resample, percentile_interval};
pub use brier::{BrierScore, PreparedBrier, brier_score, integrated_brier_score};
pub use brier_convention::{BrierConvention, brier_score_by, integrated_brier_score_by};
pub use calibration_alpha::{CalibrationAlpha, DEFAULT_HAZARD_REPLACEMENT, calibration_alpha};
pub use censoring::{AtZeroCensoring, BeyondLastTime, CensoringCurve, CensoringLookup, CensoringTies};
pub use comparison::{Comparison, EquityScaling};
pub use concordance::{HarrellC, harrell_concordance, harrell_variance};
pub use concordance_td::{ConcordanceTd, PreparedConcordanceTd, TiedPredictions, concordance_td};
pub use concordance_td_variants::{ConcordanceTdSums, ConventionTd, concordance_td_ipcw, concordance_td_with};
pub use curves::{SURVIVAL_TOLERANCE, SurvivalCurves};
pub use d_calibration::{DCalibration, DCalibrationConvention, d_calibration};
pub use error::MetricError;
pub use evaluation::evaluate;
pub use explained_variation::{ExplainedVariation, explained_residual_variation, kaplan_meier_curves};
pub use groups::Groups;
pub use ids::{GroupId, SampleId, SubjectId};
pub use integrated_calibration::{IntegratedCalibration, integrated_calibration, integrated_calibration_by_group};
pub use integrated_scores::{IntegratedScore, IntegratedScoreRule, ScoreWeights, TimeLoss, unique_times};
pub use integration_rule::IntegrationRule;
pub use intervals::{Interval, IntervalMethod, Replicated};
pub use jackknife::{Jackknife, JackknifeValues};
pub use kaplan_meier::KaplanMeier;
pub use log_scores::{EventDensity, LogScore, SnlForm, negative_log_likelihood, rcll, snl};
pub use model_comparison::{AttributeDifferences, ModelComparison, ModelPair, compare_models};
pub use nbll::{Nbll, integrated_nbll, nbll};
pub use nelson_aalen::{NelsonAalen, TiedEvents};
pub use one_calibration::{
    BinVariance, CalibrationBin, ObservedRisk, OneCalibration, OneCalibrationSettings, RiskBinning, one_calibration,
};
pub use outcomes::Outcomes;
pub use own_time_survival::{OwnTimeReading, survival_at_own_time};
pub use paired::{PairedDifference, paired_difference};
pub use per_group::{Direction, EquityScaled, GroupValue, PerGroup};
pub use reading::Reading;
pub use reading_td::ReadingTd;
pub use report::{
    AttributeReport, BandedCurve, Curve, Difference, Estimate, EvaluationReport, GroupCurves, GroupDifference,
    GroupReport, MetricReport,
};
pub use risk::Risk;
pub use run_table::{Measured, Run, RunTable};
pub use selection::{ExcludedRun, RunStanding, RunValue, Selection, SelectionCriterion, WorstGroup, select_run};
pub use settings::EvaluationSettings;
pub use statistics::{
    Adjustment, Alternative, CliqueRule, FriedmanTest, ImanDavenportTest, MAX_EXACT_DIFFERENCES, RangeQuantile,
    RankTable, RankTies, SignedRankMethod, SignedRankNull, SignedRankSettings, SignedRankTest, ZeroDifferences,
    adjust_p_values, adjust_pairwise, cliques, critical_difference, friedman, iman_davenport, nemenyi, p_value_cliques,
    pairwise_wilcoxon, wilcoxon_of_differences, wilcoxon_signed_rank,
};
pub use stratify::Stratify;
pub use survival_evaluator::survival_evaluator_curves;
pub use tied_pairs::{TieTest, TiedPairs};
pub use time_window::TimeWindow;
pub use uno::{UnoC, UnoConvention, uno_concordance};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
