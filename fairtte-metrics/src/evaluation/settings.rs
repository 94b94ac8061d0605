//! How an evaluation is done: replicates, intervals, reading, evaluation times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::curves::check_grid;
use crate::estimators::kaplan_meier::check_level;
use crate::evaluation::Stop;
use crate::evaluation::evaluate::check_causes;
use crate::evaluation::metrics::{RequestedMetric, RiskOfCurve, known_metrics};
use crate::resampling::bootstrap::MAX_REPLICATES;
use crate::resampling::{IntervalMethod, Resample, Stratify};
use crate::sensitivity::SensitivitySettings;
use crate::{MetricError, Reading};

const MAX_TIMES: usize = 100_000;
const MOST_OVER_TIME: usize = 1000;
/// What is requested where one of several causes is evaluated.
const CAUSE_METRICS: [&str; 6] =
    ["cause-c", "cause-c-td", "cause-auc-td", "cause-ibs", "cause-ici", "cause-observed-expected"];
const DEFAULT_METRICS: [&str; 7] = ["c-td", "c-td-half", "auc-td", "ibs", "d-calibration", "ici", "observed-expected"];

/// How predictions are evaluated. Keys in a file are written in kebab-case; unknown keys are errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EvaluationSettings {
    /// Bootstrap replicates, at most 1,000,000; 0 = no intervals. Default 1000.
    pub replicates: usize,
    /// Random exchanges of the group labels between subjects, at most 1,000,000, that show which gaps chance alone makes;
    /// 0 = none. Default 199: p values are multiples of 1/200.
    pub permutations: usize,
    /// Level of all intervals, between 0 and 1. Default 0.95.
    pub level: f64,
    /// Seed of the bootstrap. Default 0.
    pub seed: u64,
    /// What the bootstrap draws: `subject` (default) or `sample`.
    pub resample: Resample,
    /// How replicates become intervals: `percentile` (default), `basic`, `bca` or `studentised`. `bca` also evaluates the metrics
    /// with one subject left out at a time (with more than 200 subjects, one of 200 blocks of subjects), `studentised` every replicate
    /// with each of 20 parts of its draws left out.
    pub interval: IntervalMethod,
    /// The strata whose sizes every replicate keeps: `none` (default), `event` (events and censored) or an attribute's
    /// levels.
    pub stratify: Stratify,
    /// How curves are read between grid points. Default: refined by a factor of 10.
    pub reading: Reading,
    /// Number of evaluation times for AUC and Brier score, from 2 to 100,000. Default 100.
    pub n_times: usize,
    /// The evaluation times start at this quantile of the evaluated event times, in [0, 1). Default 0.1.
    pub lower_quantile: f64,
    /// The evaluation times end at this quantile of the evaluated event times, in (0, 1]. Default 0.9.
    pub upper_quantile: f64,
    /// The metrics, by name (`fairtte list metrics`); those about one time as `name@365` or, at the horizon, as `name`.
    /// Default: `c-td`, `c-td-half`, `auc-td`, `ibs`, `d-calibration`, `ici`, `observed-expected`; of one of several causes
    /// `cause-c`, `cause-c-td`, `cause-auc-td`, `cause-ibs`, `cause-ici`, `cause-observed-expected`.
    pub metrics: Vec<String>,
    /// The time of metrics about one time, > 0. Default: the median of the evaluated event times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<f64>,
    /// Thresholds of the predicted risk at the horizon, each between 0 and 1, at or above which a sample is called positive: they
    /// add the metrics of these decisions, such as `sensitivity` and `net-benefit`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<f64>,
    /// The risk that `harrell-c` and `uno-c` take from a curve. Default: `negative-restricted-mean`.
    pub risk: RiskOfCurve,
    /// Number of times at which the report gives AUC and Brier score over time, at most 1,000; 0 = none. Their intervals
    /// have at most 200 replicates. Default 12.
    pub over_time: usize,
    /// Groups with fewer events keep their values, but are in no comparison: gap, worst group, equity scaling, differences.
    /// Default 10.
    pub min_events: usize,
    /// Reference levels by attribute: the groups of such an attribute are compared with this one, each minus the reference,
    /// and not every two with each other. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reference: BTreeMap<String, String>,
    /// Evaluation times, ascending, in place of the three settings above. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Vec<f64>>,
    /// How sensitive metrics and gaps are to informative censoring, by
    /// [`sensitivity`](crate::sensitivity::sensitivity) beside the evaluation. Default: not analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<SensitivitySettings>,
    /// Ends the evaluation from another thread; in no file.
    #[serde(skip)]
    pub stop: Stop,
}

impl Default for EvaluationSettings {
    fn default() -> Self {
        Self {
            replicates: 1000,
            permutations: 199,
            level: 0.95,
            seed: 0,
            resample: Resample::default(),
            interval: IntervalMethod::default(),
            stratify: Stratify::default(),
            reading: Reading::default(),
            n_times: 100,
            lower_quantile: 0.1,
            upper_quantile: 0.9,
            metrics: DEFAULT_METRICS.map(str::to_owned).to_vec(),
            horizon: None,
            thresholds: Vec::new(),
            risk: RiskOfCurve::default(),
            over_time: 12,
            min_events: 10,
            reference: BTreeMap::new(),
            times: None,
            sensitivity: None,
            stop: Stop::default(),
        }
    }
}

impl EvaluationSettings {
    /// The same settings for metrics with their intervals alone: no exchanges of labels, and no curves over time.
    #[must_use]
    pub fn metrics_only(&self) -> Self {
        Self { permutations: 0, over_time: 0, ..self.clone() }
    }

    /// The same settings for values alone: as [`metrics_only`](Self::metrics_only), and no replicates.
    #[must_use]
    pub fn values_only(&self) -> Self {
        Self { replicates: 0, ..self.metrics_only() }
    }

    /// Checks all settings.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] with the first bad setting; [`MetricError::EmptyGrid`] or
    /// [`MetricError::InvalidGrid`] for `times`.
    pub fn validate(&self) -> Result<(), MetricError> {
        let invalid = |setting, value: String, expected| Err(MetricError::InvalidSetting { setting, value, expected });
        check_level(self.level)?;
        self.reading.validate()?;
        if self.replicates > MAX_REPLICATES {
            return invalid("replicates", self.replicates.to_string(), "a whole number from 0 to 1000000");
        }
        if self.permutations > MAX_REPLICATES {
            return invalid("permutations", self.permutations.to_string(), "a whole number from 0 to 1000000");
        }
        if self.over_time > MOST_OVER_TIME {
            return invalid("over-time", self.over_time.to_string(), "a whole number from 0 to 1000");
        }
        if !(2..=MAX_TIMES).contains(&self.n_times) {
            return invalid("n-times", self.n_times.to_string(), "a whole number from 2 to 100000");
        }
        if !(0.0..1.0).contains(&self.lower_quantile) {
            return invalid("lower-quantile", self.lower_quantile.to_string(), "a number in [0, 1)");
        }
        if !(self.upper_quantile > self.lower_quantile && self.upper_quantile <= 1.0) {
            return invalid("upper-quantile", self.upper_quantile.to_string(), "a number in (lower-quantile, 1]");
        }
        if let Some(horizon) = self.horizon.filter(|horizon| !(horizon.is_finite() && *horizon > 0.0)) {
            return invalid("horizon", horizon.to_string(), "a finite number > 0");
        }
        if let Some(threshold) = self.thresholds.iter().find(|threshold| !(**threshold > 0.0 && **threshold < 1.0)) {
            return invalid("thresholds", threshold.to_string(), "predicted risks above 0 and below 1");
        }
        if let Some(k) = (1..self.thresholds.len()).find(|&k| self.thresholds[..k].contains(&self.thresholds[k])) {
            return invalid("thresholds", self.thresholds[k].to_string(), "each threshold once");
        }
        self.requested_metrics()?;
        self.sensitivity.as_ref().map_or(Ok(()), SensitivitySettings::validate)?;
        self.times.as_ref().map_or(Ok(()), |times| check_grid(times))
    }

    /// The same settings for the evaluation of one of several causes: in place of the default metrics those of a cause.
    #[must_use]
    pub fn of_cause(&self) -> Self {
        let metrics = if self.metrics == DEFAULT_METRICS {
            CAUSE_METRICS.map(str::to_owned).to_vec()
        } else {
            self.metrics.clone()
        };
        Self { metrics, ..self.clone() }
    }

    /// Checks that the metrics are those of one of several causes, or the default ones, which become those of a cause.
    ///
    /// # Errors
    /// [`MetricError::IgnoresCauses`] for a metric or a threshold of decisions that would count other causes as censorings.
    pub fn check_metrics_of_cause(&self) -> Result<(), MetricError> {
        check_causes(&self.of_cause().requested_metrics()?, true)
    }

    /// The metrics that the settings name, each with its name. A metric of decisions without a threshold of its own comes
    /// once for each of [`thresholds`](Self::thresholds); if these are given and no such metric is named, all of them come.
    ///
    /// # Errors
    /// Those of [`RequestedMetric::parse`]; [`MetricError::InvalidSetting`] without any, for one that is named twice, or for
    /// one that needs a threshold and has none.
    pub(crate) fn requested_metrics(&self) -> Result<Vec<(String, RequestedMetric)>, MetricError> {
        let invalid = |value: &str, expected| {
            let (setting, value) = ("metrics", value.to_owned());
            MetricError::InvalidSetting { setting, value, expected }
        };
        if self.metrics.is_empty() {
            return Err(invalid("[]", "at least one name"));
        }
        let mut requested: Vec<(String, RequestedMetric)> = Vec::new();
        let mut names_decisions = false;
        for name in &self.metrics {
            let metric = RequestedMetric::parse(name)?;
            if metric.metric.has_threshold() && metric.threshold.is_none() {
                if self.thresholds.is_empty() {
                    return Err(invalid(
                        name,
                        "a threshold of the predicted risk, as in sensitivity:0.2, or thresholds",
                    ));
                }
                names_decisions = true;
                requested.extend(self.at_thresholds(name, metric));
            } else {
                requested.push((name.clone(), metric));
            }
        }
        if !names_decisions {
            let known = known_metrics().into_iter().filter(|metric| metric.has_threshold());
            let all = |metric| RequestedMetric { metric, at: None, threshold: None };
            let added = known.flat_map(|metric| self.at_thresholds(metric.name(), all(metric)));
            let added: Vec<_> = added.filter(|(name, _)| !self.metrics.contains(name)).collect();
            requested.extend(added);
        }
        let is_repeated = |&k: &usize| requested[..k].iter().any(|(name, _)| *name == requested[k].0);
        match (1..requested.len()).find(is_repeated) {
            Some(k) => Err(invalid(&requested[k].0, "each metric once")),
            None => Ok(requested),
        }
    }

    /// A metric of decisions at each of the thresholds.
    fn at_thresholds(&self, name: &str, metric: RequestedMetric) -> Vec<(String, RequestedMetric)> {
        let at = |&threshold: &f64| {
            (format!("{name}:{threshold}"), RequestedMetric { threshold: Some(threshold), ..metric })
        };
        self.thresholds.iter().map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_without_end_are_refused() {
        let valid = EvaluationSettings { replicates: MAX_REPLICATES, n_times: MAX_TIMES, ..Default::default() };
        assert_eq!(valid.validate(), Ok(()));
        let many_replicates = EvaluationSettings { replicates: usize::MAX, ..Default::default() };
        let many_times = EvaluationSettings { n_times: usize::MAX, ..Default::default() };
        let many_permutations = EvaluationSettings { permutations: MAX_REPLICATES + 1, ..Default::default() };
        let over_time = EvaluationSettings { over_time: MOST_OVER_TIME + 1, ..Default::default() };
        let refused = [
            (many_replicates, "replicates"),
            (many_permutations, "permutations"),
            (many_times, "n-times"),
            (over_time, "over-time"),
        ];
        for (settings, name) in refused {
            let error = settings.validate().unwrap_err();
            assert!(matches!(error, MetricError::InvalidSetting { setting, .. } if setting == name), "{error}");
        }
    }
}
