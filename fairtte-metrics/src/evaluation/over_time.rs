//! AUC and Brier score over time, for the whole sample and for every group, with pointwise intervals.
//!
//! The numbers at one time are those of the metrics `auc@t` and `brier@t`, of one of several causes `cause-auc@t` and
//! `cause-brier@t`. Their intervals are percentile intervals of the
//! first replicates of the bootstrap, since a figure shows no third digit of them.

use serde::{Deserialize, Serialize};

use crate::evaluation::evaluated::{Evaluated, Input, Predictions};
use crate::evaluation::metrics::RequestedMetric;
use crate::evaluation::prepared::RequestedAt;
use crate::evaluation::report::{Estimate, MetricDescription};
use crate::evaluation::summary::Summary;
use crate::evaluation::time_window::{TimeWindow, equally_spaced};
use crate::resampling::IntervalMethod;
use crate::{Direction, EvaluationSettings, Groups, MetricError};

/// The metrics that are shown over time.
const METRICS: [&str; 2] = ["auc", "brier"];
/// The same of one of several causes.
const CAUSE_METRICS: [&str; 2] = ["cause-auc", "cause-brier"];

/// Times that are prepared together: each takes some 50 bytes per sample and attribute, and draws its replicates anew.
const TIMES_AT_ONCE: usize = 4;

/// Most replicates behind a pointwise interval.
const MOST_REPLICATES: usize = 200;

/// One metric at several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OverTime {
    /// Name of the metric as in the settings: `auc` or `brier`, of one of several causes `cause-auc` or `cause-brier`.
    pub metric: String,
    /// Short name for figures.
    pub label: String,
    /// Whether a higher value is better.
    pub higher_is_better: bool,
    /// Times, ascending, within the evaluation times.
    pub times: Vec<f64>,
    /// Replicates behind the intervals; 0 = there are none.
    pub replicates: usize,
    /// First the whole sample, then every group.
    pub curves: Vec<OverTimeCurve>,
}

/// The values in one group (or in the whole sample: no attribute, no level), one per time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OverTimeCurve {
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// Name of the level.
    pub level: Option<String>,
    /// Samples.
    pub n: usize,
    /// Events.
    pub n_events: usize,
    /// `None` where the metric does not exist, for example an AUC before the first event of the group.
    pub value: Vec<Option<f64>>,
    /// Lower ends of the pointwise intervals.
    pub lower: Vec<Option<f64>>,
    /// Upper ends of the pointwise intervals.
    pub upper: Vec<Option<f64>>,
}

/// AUC and Brier score at as many times as the settings say; empty without evaluation times.
///
/// # Errors
/// Those of the bootstrap.
pub(crate) fn over_time(
    input: &Input<'_>,
    predictions: &Predictions<'_>,
    window: Option<&TimeWindow>,
) -> Result<Vec<OverTime>, MetricError> {
    let Some(window) = window.filter(|_| input.settings.over_time > 0) else { return Ok(Vec::new()) };
    let times = equally_spaced(window.lower, window.upper, input.settings.over_time);
    let settings = EvaluationSettings {
        replicates: input.settings.replicates.min(MOST_REPLICATES),
        interval: IntervalMethod::Percentile,
        ..input.settings.clone()
    };
    let input = Input { settings: &settings, ..*input };
    let names = if input.competing.is_some() { CAUSE_METRICS } else { METRICS };
    let metrics = names.map(RequestedMetric::parse).into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut found: Vec<OverTime> = metrics.iter().map(|metric| OverTime::without_times(metric, &input)).collect();
    for times in times.chunks(TIMES_AT_ONCE) {
        let requested = metrics.iter().flat_map(|RequestedMetric { metric, .. }| {
            let at = |time: &f64| RequestedMetric { metric: *metric, at: Some(*time), threshold: None };
            times.iter().map(move |time| RequestedAt::new(&at(time), &Ok(*time)))
        });
        let requested: Vec<RequestedAt> = requested.collect();
        let description = |at: &RequestedAt| {
            let (name, label, convention) = (at.metric.name(), at.metric.label(), at.metric.convention());
            MetricDescription { name, label, convention, direction: at.metric.direction() }
        };
        let descriptions: Vec<MetricDescription<'_>> = requested.iter().map(description).collect();
        let evaluated = Evaluated::of_requested(&input, predictions, &requested, &descriptions, false)?;
        let summary = Summary { input: &input, evaluated: &evaluated };
        for (place, metric) in found.iter_mut().enumerate() {
            metric.append(&summary, place * times.len(), times);
        }
    }
    Ok(found)
}

impl OverTime {
    fn without_times(RequestedMetric { metric, .. }: &RequestedMetric, input: &Input<'_>) -> Self {
        let levels = |groups: &Groups| {
            let named = |level: &String| OverTimeCurve::new(Some((groups.attribute(), level)));
            groups.levels().iter().map(named).collect::<Vec<_>>()
        };
        Self {
            metric: metric.name().to_owned(),
            label: metric.label().to_owned(),
            higher_is_better: metric.direction() == Direction::HigherIsBetter,
            times: Vec::new(),
            replicates: input.settings.replicates,
            curves: std::iter::once(OverTimeCurve::new(None)).chain(input.groups.iter().flat_map(levels)).collect(),
        }
    }

    /// Adds the values at `times`, which are the metrics of the summary from place `first` on.
    fn append(&mut self, summary: &Summary<'_>, first: usize, times: &[f64]) {
        self.times.extend(times);
        for place in first..first + times.len() {
            let of_groups = summary.input.groups.iter().enumerate().flat_map(|(attribute, groups)| {
                (0..groups.levels().len()).map(move |level| summary.group_estimate(place, attribute, level))
            });
            let estimates = std::iter::once(summary.overall_estimate(place)).chain(of_groups);
            self.curves.iter_mut().zip(estimates).for_each(|(curve, estimate)| curve.append(&estimate));
        }
    }
}

impl OverTimeCurve {
    fn new(name: Option<(&str, &str)>) -> Self {
        Self {
            attribute: name.map(|(attribute, _)| attribute.to_owned()),
            level: name.map(|(_, level)| level.to_owned()),
            n: 0,
            n_events: 0,
            value: Vec::new(),
            lower: Vec::new(),
            upper: Vec::new(),
        }
    }

    /// Adds the value at the next time.
    fn append(&mut self, estimate: &Estimate) {
        (self.n, self.n_events) = (estimate.n, estimate.n_events);
        self.value.push(estimate.value);
        self.lower.push(estimate.lower);
        self.upper.push(estimate.upper);
    }
}
