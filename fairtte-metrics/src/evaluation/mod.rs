//! The whole evaluation of one model, or of several, and its report.

pub(crate) mod any_metric;
pub(crate) mod at_risk;
pub(crate) mod calibration_curve;
pub(crate) mod causes;
mod censoring_by_group;
pub(crate) mod chance;
pub(crate) mod class_groups;
pub(crate) mod classes;
pub(crate) mod cohorts;
pub(crate) mod coverage;
pub(crate) mod decisions;
pub(crate) mod disagreement;
pub(crate) mod evaluate;
pub(crate) mod evaluated;
pub(crate) mod goal;
pub(crate) mod groups_summary;
pub(crate) mod horizon_classes;
pub(crate) mod joint;
pub(crate) mod masks;
pub(crate) mod metrics;
pub(crate) mod model_comparison;
pub(crate) mod models;
pub(crate) mod over_time;
mod power;
pub(crate) mod prepared;
pub(crate) mod replicates;
pub(crate) mod report;
pub(crate) mod resampled;
mod risk_tertiles;
pub(crate) mod sampled_metrics;
pub(crate) mod settings;
pub(crate) mod simultaneous;
pub(crate) mod stop;
pub(crate) mod summary;
pub(crate) mod time_window;
mod training_times;

pub use any_metric::{RowMetric, compare_metric, evaluate_metric};
pub use at_risk::NumbersAtRisk;
pub use calibration_curve::{CalibrationCurve, CalibrationPoint};
pub use causes::evaluate_cause;
pub use censoring_by_group::{CensoringByGroup, GroupCensoring};
pub use class_groups::{ClassGroups, ClassSummary, RocCurve, describe_classes};
pub use classes::{
    AttributeParity, CLASS_METRICS, ClassModels, ClassReport, ClassSettings, compare_classes, evaluate_class_models,
    evaluate_classes,
};
pub use cohorts::{
    ClassCohort, ClassCohorts, CohortAttribute, CohortMetric, CohortReports, InBoth, ScoredCohort,
    evaluate_class_cohorts, evaluate_cohorts,
};
pub use coverage::{Coverage, check_units, unit_factor};
pub use decisions::{AttributeDecisions, Decided, DecisionCurve, DecisionsReport, GroupDecisions, ThresholdReport};
pub use disagreement::{Disagreement, UnitFactor};
pub use evaluate::{evaluate, times_read};
pub use groups_summary::{GroupSummary, HorizonRisk, describe_groups, describe_groups_of_cause};
pub use horizon_classes::{HorizonReport, LeftOut, evaluate_at_horizon};
pub use masks::{EmptyMasks, MaskMetric, MaskReport, MaskSamples, evaluate_masks};
pub use metrics::{
    Metric, PreparedMetric, RequestedMetric, RiskOfCurve, ScoredSample, WeightBlock, built_in_metrics, cause_metrics,
    known_metrics, register_metric, rows_metric,
};
pub use model_comparison::{AttributeDifferences, ModelComparison, ModelPair, compare_models};
pub use models::{ModelReports, TradeOff, TradeOffPoint, evaluate_models, evaluate_models_of_cause, on_front};
pub use over_time::{OverTime, OverTimeCurve};
pub use power::{MetricPower, Power, PowerAt, PowerSettings, Rate};
pub use report::{
    AttributeReport, BandedCurve, Curve, Difference, Estimate, EvaluatedCause, EvaluationReport, GapByChance,
    GroupComparisons, GroupCurves, GroupDifference, GroupReport, MetricDescription, MetricReport,
};
pub use risk_tertiles::{RiskTertile, RiskTertiles};
pub use sampled_metrics::{
    SampledAttribute, SampledGroup, SampledMetric, SampledMetrics, SampledValue, sample_classes, sample_metrics,
    sample_metrics_of_cause,
};
pub use settings::EvaluationSettings;
pub use stop::Stop;
pub use summary::{CAUTION_OF_DISTANCES, FEW_FOR_INTERVALS};
pub use time_window::TimeWindow;
pub use training_times::check_training_times;
