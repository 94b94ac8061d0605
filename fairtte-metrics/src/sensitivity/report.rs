//! The result of a sensitivity analysis, ready to be written as JSON and read back.

use serde::{Deserialize, Serialize};

use crate::evaluation::{Estimate, GroupDifference, GroupReport};
use crate::sensitivity::{SensitivitySettings, TippingPoint};

/// Every metric as a function of delta, for each attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SensitivityReport {
    /// The settings, with all defaults written out.
    pub settings: SensitivitySettings,
    /// Level of the intervals.
    pub level: f64,
    /// Evaluated samples.
    pub n: usize,
    /// One entry per attribute, or one without a name if there is none.
    pub attributes: Vec<AttributeSensitivity>,
}

/// The analysis with imputation models by the levels of one attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AttributeSensitivity {
    /// Name of the attribute; `None` if the samples have no groups.
    pub attribute: Option<String>,
    /// The administrative end of follow-up, after which nothing is imputed.
    pub end: f64,
    /// Evaluation times: the first, the last and their number; `None` if none could be chosen.
    pub times: Option<(f64, f64, usize)>,
    /// The horizon of metrics about one time.
    pub horizon: Option<f64>,
    /// Bootstrap draws without an imputation model, in small samples, that others took the place of.
    #[serde(default)]
    pub n_redrawn: usize,
    /// How the samples left, first of all samples, then of every level.
    pub follow_up: Vec<FollowUp>,
    /// One entry per metric, in the order of the report.
    pub metrics: Vec<MetricSensitivity>,
}

/// How the samples of the whole or of one level left the follow-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FollowUp {
    /// Name of the level; `None` of all samples.
    pub level: Option<String>,
    /// Samples.
    pub n: usize,
    /// Events up to the end.
    pub n_events: usize,
    /// Drop-outs: censored before the end, so that their time is imputed.
    pub n_dropouts: usize,
    /// Drop-outs whose hazard is tilted; the others are imputed with delta = 0.
    pub n_tilted: usize,
    /// Observed without an event up to the end.
    pub n_administrative: usize,
    /// Whether the level has too few events for an imputation model of its own, so that that of all samples is used.
    pub pooled: bool,
}

/// One metric as a function of delta.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MetricSensitivity {
    /// Name as in the report.
    pub name: String,
    /// Short name for tables.
    pub label: String,
    /// Whether a higher value is better; without meaning if there is a target or no best value.
    pub higher_is_better: bool,
    /// The best value, of a metric that is better the nearer it is to this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// Whether no value is better than another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_best: bool,
    /// The values without imputation: from the observed outcomes up to the same end, with censoring weights where the metric
    /// has them.
    pub observed: ObservedValues,
    /// One entry per delta, ascending.
    pub points: Vec<SensitivityPoint>,
    /// Where verdicts turn; at most one per number and direction, none if it does not turn within the deltas.
    pub tipping: Vec<TippingPoint>,
}

/// A metric of the observed outcomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ObservedValues {
    /// Value over all samples; `None` where undefined.
    pub overall: Option<f64>,
    /// One per level.
    pub groups: Vec<Option<f64>>,
    /// Largest difference of two groups that are compared.
    pub gap: Option<f64>,
}

/// A metric at one delta.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SensitivityPoint {
    /// Logarithm of the hazard ratio of the tilted.
    pub delta: f64,
    /// exp(delta).
    pub hazard_ratio: f64,
    /// Value over all samples. Counts of an estimate are those of the observed outcomes up to the end.
    pub overall: Estimate,
    /// One per level.
    pub groups: Vec<GroupReport>,
    /// Largest difference of two groups; `None` without an attribute.
    pub gap: Option<Estimate>,
    /// How far the gap's interval excludes 0: above 0 it does. With signed intervals `[l, u]` of the differences of the pairs
    /// behind the gap's interval, the largest of l and -u.
    pub gap_margin: Option<f64>,
    /// The level with the worst value.
    pub worst_group: Option<String>,
    /// The worst value over groups; `None` without an attribute.
    pub worst: Option<Estimate>,
    /// The difference of every two groups, or of every group from the reference.
    pub differences: Vec<GroupDifference>,
    /// Variance between imputations as a share of the variance of the value over all samples: how much of the uncertainty
    /// comes from censoring. `None` without replicates or where a value does not exist.
    pub imputation_share: Option<f64>,
}
