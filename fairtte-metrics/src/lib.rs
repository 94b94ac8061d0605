#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    expect(clippy::unwrap_used, clippy::float_cmp, reason = "a test may panic, and its values are exact in binary")
)]

mod bias;
mod calibration;
mod chi_square;
mod curves;
mod error;
mod estimators;
mod evaluation;
mod fairness;
mod finite;
mod ids;
mod names;
mod normal;
mod outcomes;
mod pairwise_sum;
mod rank;
mod reading;
mod resampling;
mod risk;
mod scores;
pub mod seeds;
mod selection;
mod statistics;
mod value_or_reason;

pub use bias::{
    BiasSettings, BiasSource, BiasSources, ContingencyTable, DEFAULT_NEIGHBOURS, DimensionInformation,
    DisparityEstimate, Distribution, GroupSummary, KMeans, KMeansSettings, LabelPermutations, Normalisation,
    NullCorrected, PairDisparity, PermutationTest, Quantisation, SlicedWasserstein, SourceDisparity, SourceGroup,
    bias_sources, energy_distance, equal_frequency_bins, equal_width_bins, k_means, ksg_mutual_information,
    ksg_mutual_information_discrete, ksg_per_dimension, ksg_per_dimension_discrete, permutation_test,
    seeded_projections, sliced_wasserstein, wasserstein_1, wasserstein_p, wasserstein_p_power,
};
pub use calibration::calibration_alpha::{CalibrationAlpha, DEFAULT_HAZARD_REPLACEMENT, calibration_alpha};
pub use calibration::d_calibration::{DCalibration, DCalibrationConvention, d_calibration};
pub use calibration::integrated_calibration::{
    IntegratedCalibration, integrated_calibration, integrated_calibration_by_group,
};
pub use calibration::one_calibration::{
    BinVariance, CalibrationBin, ObservedRisk, OneCalibration, OneCalibrationSettings, RiskBinning, one_calibration,
};
pub use calibration::own_time_survival::{OwnTimeReading, survival_at_own_time};
pub use curves::{SURVIVAL_TOLERANCE, SurvivalCurves};
pub use error::MetricError;
pub use estimators::censoring::{AtZeroCensoring, BeyondLastTime, CensoringCurve, CensoringLookup, CensoringTies};
pub use estimators::kaplan_meier::KaplanMeier;
pub use estimators::nelson_aalen::{NelsonAalen, TiedEvents};
pub use evaluation::any_metric::{RowMetric, compare_metric, evaluate_metric};
pub use evaluation::evaluate::evaluate;
pub use evaluation::model_comparison::{AttributeDifferences, ModelComparison, ModelPair, compare_models};
pub use evaluation::report::{
    AttributeReport, BandedCurve, Curve, Difference, Estimate, EvaluationReport, GroupCurves, GroupDifference,
    GroupReport, MetricDescription, MetricReport,
};
pub use evaluation::sampled_metrics::{
    SampledAttribute, SampledGroup, SampledMetric, SampledMetrics, SampledValue, sample_metrics,
};
pub use evaluation::settings::EvaluationSettings;
pub use evaluation::time_window::TimeWindow;
pub use fairness::comparison::{Comparison, EquityScaling};
pub use fairness::groups::Groups;
pub use fairness::per_group::{Direction, EquityScaled, GroupValue, PerGroup};
pub use ids::{GroupId, SampleId, SubjectId};
pub use outcomes::Outcomes;
pub use rank::auc_convention::AucConvention;
pub use rank::auc_td::{AucTd, PreparedAucTd, TIE_TOLERANCE, auc_td, auc_td_with};
pub use rank::concordance::{HarrellC, harrell_concordance, harrell_variance};
pub use rank::concordance_td::{ConcordanceTd, PreparedConcordanceTd, TiedPredictions, concordance_td};
pub use rank::concordance_td_variants::{ConcordanceTdSums, concordance_td_ipcw, concordance_td_with};
pub use rank::convention_td::ConventionTd;
pub use rank::reading_td::ReadingTd;
pub use rank::tied_pairs::{TieTest, TiedPairs};
pub use rank::uno::{UnoC, UnoConvention, uno_concordance};
pub use reading::Reading;
pub use resampling::bootstrap::{Bootstrap, Resample, percentile_interval};
pub use resampling::intervals::{Interval, IntervalMethod, Replicated};
pub use resampling::jackknife::{Jackknife, JackknifeValues};
pub use resampling::paired::{PairedDifference, paired_difference, relative_change};
pub use resampling::stratify::Stratify;
pub use resampling::training_draws::draw_trainings;
pub use risk::Risk;
pub use scores::brier::{BrierScore, PreparedBrier, brier_score, integrated_brier_score};
pub use scores::brier_convention::{BrierConvention, brier_score_by, integrated_brier_score_by};
pub use scores::explained_variation::{ExplainedVariation, explained_residual_variation, kaplan_meier_curves};
pub use scores::integrated_scores::{IntegratedScore, IntegratedScoreRule, ScoreWeights, TimeLoss, unique_times};
pub use scores::integration_rule::IntegrationRule;
pub use scores::log_scores::{EventDensity, LogScore, SnlForm, negative_log_likelihood, rcll, snl};
pub use scores::nbll::{Nbll, integrated_nbll, nbll};
pub use scores::survival_evaluator::survival_evaluator_curves;
pub use selection::run_table::{Measured, Run, RunTable};
pub use selection::select_run::{
    ExcludedRun, RunStanding, RunValue, Selection, SelectionCriterion, WorstGroup, select_run,
};
pub use statistics::{
    Adjustment, Alternative, CliqueRule, FriedmanTest, ImanDavenportTest, MAX_EXACT_DIFFERENCES, RangeQuantile,
    RankTable, RankTies, SignedRankMethod, SignedRankNull, SignedRankSettings, SignedRankTest, ZeroDifferences,
    adjust_p_values, adjust_pairwise, cliques, critical_difference, friedman, iman_davenport, nemenyi, p_value_cliques,
    pairwise_wilcoxon, wilcoxon_of_differences, wilcoxon_signed_rank,
};
