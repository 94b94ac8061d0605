//! The result of an evaluation, ready to be written as JSON and read back.
//!
//! Every number is finite: a value that does not exist is `null`, with the reason in words.

mod curves;

use serde::{Deserialize, Serialize};

use crate::evaluation::decisions::DecisionsReport;
use crate::evaluation::{
    CalibrationCurve, CensoringByGroup, ClassGroups, ClassModels, ClassReport, ClassSettings, GroupSummary, MaskReport,
    ModelReports, OverTime, RiskTertiles, TimeWindow,
};
use crate::masks::MaskSettings;
use crate::{Direction, EvaluationSettings};

pub use curves::{BandedCurve, Curve, GroupCurves};

/// The complete result of [`evaluate`](crate::evaluate) for one set of predictions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct EvaluationReport {
    /// Evaluated samples.
    pub n: usize,
    /// Observed events among them.
    pub n_events: usize,
    /// Distinct subjects among them.
    pub n_subjects: usize,
    /// The cause that is evaluated, if it is one of several: then events are those of this cause, risks are cumulative
    /// incidences, and curves are 1 minus them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<EvaluatedCause>,
    /// What a class is evaluated with, where predictions are its probabilities: then events are positive samples, and there are
    /// neither times nor curves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassSettings>,
    /// How masks were compared, where predictions are masks: then every sample is an event, and those of an estimate are its samples
    /// with a value; there are neither times nor curves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks: Option<MaskSettings>,
    /// How curves were read between grid points, for example `refined x10`; empty of a class and of masks.
    pub reading: String,
    /// The settings, with all defaults written out.
    pub settings: EvaluationSettings,
    /// Evaluation times of AUC and Brier score; `None` if no time could be chosen.
    pub times: Option<TimeWindow>,
    /// Why no time could be chosen.
    pub times_undefined: Option<String>,
    /// The horizon of metrics about one time, unless they name another; `None` if none could be chosen.
    #[serde(default)]
    pub horizon: Option<f64>,
    /// Why no horizon could be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon_undefined: Option<String>,
    /// One entry per metric, in the order of the settings.
    pub metrics: Vec<MetricReport>,
    /// Observed and predicted survival, first of the whole sample, then of every group.
    pub curves: Vec<GroupCurves>,
    /// Counts, follow-up and risks at the horizon, first of the whole sample, then of every group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups_summary: Vec<GroupSummary>,
    /// Whether the groups of each attribute are censored differently, which one censoring curve does not correct.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub censoring_by_group: Vec<CensoringByGroup>,
    /// Predicted against observed risk at the horizon, in the same order; empty without a horizon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration: Vec<CalibrationCurve>,
    /// AUC and Brier score over time; empty without evaluation times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<OverTime>,
    /// Survival by third of the predicted risk at the horizon; empty without a horizon or without thirds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risk_tertiles: Vec<RiskTertiles>,
    /// Decisions at the thresholds of the settings; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionsReport>,
}

impl EvaluationReport {
    /// A setting that was given and could not be used, with the reason: evaluation times, or the horizon.
    pub fn refused_setting(&self) -> Option<(&'static str, &str)> {
        let given_times = self.settings.times.as_ref().and(self.times_undefined.as_deref());
        let given_horizon = self.settings.horizon.and(self.horizon_undefined.as_deref());
        given_times.map(|reason| ("times", reason)).or_else(|| given_horizon.map(|reason| ("horizon", reason)))
    }

    /// The report of a class in the form of all reports, so that they are shown by the same code; what is about times and curves
    /// is empty.
    pub fn of_class(report: &ClassReport, groups: &ClassGroups) -> Self {
        Self {
            n: report.n,
            n_events: report.n_positive,
            n_subjects: report.n_subjects,
            cause: None,
            class: Some(report.class),
            masks: None,
            reading: String::new(),
            settings: report.settings.clone(),
            times: None,
            times_undefined: None,
            horizon: None,
            horizon_undefined: None,
            metrics: report.metrics.clone(),
            curves: Vec::new(),
            groups_summary: Vec::new(),
            censoring_by_group: Vec::new(),
            calibration: groups.calibration.clone(),
            over_time: Vec::new(),
            risk_tertiles: Vec::new(),
            decisions: None,
        }
    }

    /// The report of masks in the form of all reports, as [`of_class`](Self::of_class).
    pub fn of_masks(report: &MaskReport) -> Self {
        Self {
            n: report.n,
            n_events: report.n,
            n_subjects: report.n_subjects,
            cause: None,
            class: None,
            masks: Some(report.masks),
            reading: String::new(),
            settings: report.settings.clone(),
            times: None,
            times_undefined: None,
            horizon: None,
            horizon_undefined: None,
            metrics: report.metrics.clone(),
            curves: Vec::new(),
            groups_summary: Vec::new(),
            censoring_by_group: Vec::new(),
            calibration: Vec::new(),
            over_time: Vec::new(),
            risk_tertiles: Vec::new(),
            decisions: None,
        }
    }

    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&MetricReport> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

impl ModelReports {
    /// The same of several models; `groups` are those of each.
    pub fn of_classes(models: &ClassModels, groups: &[ClassGroups]) -> Self {
        let report = |((name, report), groups): (&(String, ClassReport), &ClassGroups)| {
            (name.clone(), EvaluationReport::of_class(report, groups))
        };
        Self {
            reference: models.reference.clone(),
            models: models.models.iter().zip(groups).map(report).collect(),
            pairs: models.pairs.clone(),
            trade_offs: models.trade_offs.clone(),
        }
    }
}

/// One of several causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct EvaluatedCause {
    /// Its number, from 1 on.
    pub cause: u32,
    /// How many causes there are, this one among them.
    pub n_causes: usize,
    /// Samples with an event of another cause.
    pub n_competing: usize,
}

/// The fixed properties of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDescription<'a> {
    /// Stable name, for example `harrell_c`.
    pub name: &'a str,
    /// Short name for tables.
    pub label: &'a str,
    /// The convention in one sentence.
    pub convention: &'a str,
    /// Whether higher or lower is better.
    pub direction: Direction,
}

/// One metric: overall, in every group, and the differences between groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MetricReport {
    /// Stable name: `c_td_antolini_strict` (in settings `c-td`), `c_td_half`, `auc_td`, `ibs`, otherwise the name in the
    /// settings, or that given to [`evaluate_metric`](crate::evaluation::evaluate_metric).
    pub name: String,
    /// Short name for tables.
    pub label: String,
    /// The convention in one sentence.
    pub convention: String,
    /// Whether a higher value is better; without meaning if there is a target.
    pub higher_is_better: bool,
    /// The best value, of a metric that is better the nearer it is to this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// Whether no value is better than another: then `higher_is_better` has no meaning, and there is no worst group and no
    /// equity scaling.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_best: bool,
    /// The time that the metric is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<f64>,
    /// The predicted risk at or above which a sample is called positive, of a metric of decisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// What the gap of the metric is called in the literature on fairness, for example `equal opportunity difference`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_name: Option<String>,
    /// What its ratio is called there, for example `disparate impact`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_name: Option<String>,
    /// Value over all samples.
    pub overall: Estimate,
    /// One entry per sensitive attribute.
    pub attributes: Vec<AttributeReport>,
}

impl MetricReport {
    /// Whether a higher or a lower value of the metric is better.
    pub fn direction(&self) -> Direction {
        if self.higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter }
    }
}

/// One number with its bootstrap interval and the counts behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Estimate {
    /// The value; `None` if it does not exist.
    pub value: Option<f64>,
    /// Why it does not exist.
    pub undefined: Option<String>,
    /// Lower end of the interval; `None` without replicates or value.
    pub lower: Option<f64>,
    /// Upper end of the interval.
    pub upper: Option<f64>,
    /// Why a value with replicates has no interval, for example `BCa` with all replicates on one side of the value.
    pub interval_undefined: Option<String>,
    /// Why the interval may be too narrow, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// Samples behind the value.
    pub n: usize,
    /// Events among them.
    pub n_events: usize,
    /// Distinct subjects among them.
    pub n_subjects: usize,
    /// Comparable pairs behind the value, of metrics that count pairs.
    pub n_comparable: Option<u64>,
    /// Bootstrap replicates in which the value does not exist; the interval is computed from the others.
    pub undefined_replicates: usize,
    /// Replicates that average over fewer evaluation times than the value does (AUC^td); they enter the interval.
    pub partial_replicates: usize,
    /// Evaluation times at which the metric does not exist; the value is the average over the others. Of a comparison of
    /// groups, the largest such number of a group that is compared: above 0, the groups were not all averaged over the
    /// same times.
    pub undefined_times: usize,
}

/// One metric in the groups of one attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AttributeReport {
    /// Name of the attribute.
    pub attribute: String,
    /// Samples whose attribute is missing: part of the overall value, in no group.
    pub n_missing: usize,
    /// Levels with fewer events than `min-events` of the settings: they are in `groups`, but not in gap, worst group, ratios,
    /// equity scaling and differences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub few_events: Vec<String>,
    /// One entry per level.
    pub groups: Vec<GroupReport>,
    /// Largest difference between two groups. A maximum of noisy differences is biased upwards: even equal groups
    /// have a gap above 0, so read it with its interval and with `gap_by_chance`. The interval contains 0 exactly if the
    /// simultaneous intervals of all pairs do.
    pub gap: Estimate,
    /// The gap less what noise adds to it (Lum, Zhang & Bower 2022): an estimate of the gap of the true values; `None`
    /// without replicates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_corrected: Option<f64>,
    /// The gaps that groups of these sizes show if their labels are exchanged between subjects at random; `None` without
    /// permutations or without two groups to compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_by_chance: Option<GapByChance>,
    /// The level with the worst value.
    pub worst_group: Option<String>,
    /// The worst value over groups. Its interval is that of the minimum (or maximum) over groups, from simultaneous
    /// intervals of all of them.
    pub worst: Estimate,
    /// Largest distance of a group from the overall value.
    pub gap_to_overall: Estimate,
    /// Smallest divided by largest value; 1 = equal.
    pub ratio: Estimate,
    /// Smallest over groups of value / overall or overall / value, whichever is below 1; 1 = equal.
    pub ratio_to_overall: Estimate,
    /// Equity scaling: utility divided by 1 + the sum of the groups' distances from the overall value (`FairTTE`, E.3).
    pub equity_scaling: Estimate,
    /// The form of `FairSeg`: the metric itself, also where lower is better, divided by the same.
    pub equity_scaling_fair_seg: Estimate,
    /// Equity scaling with the standard deviation of the group values (`FairSeg`, Equation 7).
    #[serde(default)]
    pub equity_scaling_deviation: Option<Estimate>,
    /// The comparisons again with the levels of `few_events`; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_all_groups: Option<Box<GroupComparisons>>,
    /// The difference of every two groups that have a value; the others are in `groups` with their reason.
    pub differences: Vec<GroupDifference>,
}

/// The gaps of relabelled groups: what a gap is if groups differ by chance alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GapByChance {
    /// Mean gap of relabelled groups.
    pub mean: f64,
    /// The quantile of their gaps at the level of the intervals, for example 0.95: a larger gap is rare by chance.
    pub upper: f64,
    /// (1 + permutations with a gap at least as large as the observed one) / (1 + permutations).
    pub p_value: f64,
    /// The p value adjusted by Holm's method for all attributes of the metric; `None` for a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_holm: Option<f64>,
    /// Permutations.
    pub n_permutations: usize,
    /// Permutations in which a group has no value; they count as if they reached the observed gap.
    pub undefined_permutations: usize,
}

/// The numbers that compare all groups of one attribute with each other, as in [`AttributeReport`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupComparisons {
    /// Largest difference between two groups.
    pub gap: Estimate,
    /// The level with the worst value.
    pub worst_group: Option<String>,
    /// The worst value over groups.
    pub worst: Estimate,
    /// Largest distance of a group from the overall value.
    pub gap_to_overall: Estimate,
    /// Smallest divided by largest value.
    pub ratio: Estimate,
    /// Smallest ratio to the overall value, turned so that it is at most 1.
    pub ratio_to_overall: Estimate,
    /// Equity scaling (`FairTTE`, E.3).
    pub equity_scaling: Estimate,
    /// Equity scaling in the form of `FairSeg`.
    pub equity_scaling_fair_seg: Estimate,
    /// Equity scaling with the standard deviation of the group values.
    pub equity_scaling_deviation: Estimate,
}

/// The paired difference of one metric between two groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupDifference {
    /// Level of the first group.
    pub first: String,
    /// Level of the second group, whose value is subtracted.
    pub second: String,
    /// Value of the first minus that of the second.
    pub difference: Difference,
}

/// The difference of two numbers that were computed from the same replicates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Difference {
    /// First value minus second; `None` if one of them does not exist.
    pub value: Option<f64>,
    /// Why there is no value, or no interval.
    pub undefined: Option<String>,
    /// Lower end of the interval; `None` without replicates or value.
    pub lower: Option<f64>,
    /// Upper end of the interval.
    pub upper: Option<f64>,
    /// Two-sided bootstrap p value of no difference; see [`paired_difference`](crate::resampling::paired_difference).
    pub p_value: Option<f64>,
    /// The p value adjusted by Holm's method for all pairs of groups of the attribute in this metric; `None` for a single
    /// pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_holm: Option<f64>,
    /// Why the interval may be too narrow, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// Replicates in which either value does not exist; the interval is computed from the others.
    pub undefined_replicates: usize,
}

impl Difference {
    /// One without a value.
    pub(crate) fn none() -> Self {
        Self {
            value: None,
            undefined: None,
            lower: None,
            upper: None,
            p_value: None,
            p_holm: None,
            caution: None,
            undefined_replicates: 0,
        }
    }
}

/// One metric in one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupReport {
    /// Name of the level.
    pub level: String,
    /// Its value.
    pub estimate: Estimate,
}
