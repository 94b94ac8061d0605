//! What a report says about decisions beside their metrics: how many are called positive, the net benefit of treating
//! everybody, the equalised-odds difference, and the decision curves.
//!
//! Equalised odds (Hardt, Price & Srebro 2016) asks that sensitivity and false-positive rate are the same in all groups. Its
//! difference is the larger of the gaps of the two, as `equalized_odds_difference` of `fairlearn` 0.15.0. Its interval lies
//! between the larger of their lower and the larger of their upper ends, each at half of the error level.

use serde::{Deserialize, Serialize};

use crate::decision::{PreparedDecisions, PreparedSelection, curve_thresholds};
use crate::evaluation::evaluated::{AtHorizon, Evaluated, Input, Predictions, Sampled, Slice};
use crate::evaluation::metrics::RequestedMetric;
use crate::evaluation::prepared::RequestedAt;
use crate::evaluation::report::{Estimate, MetricDescription};
use crate::evaluation::summary::Summary;
use crate::fairness::Comparison;
use crate::{Direction, EvaluationSettings, MetricError};

/// The two rates that equalised odds compares.
const ODDS: [&str; 2] = ["sensitivity", "false-positive-rate"];

/// Decisions at every threshold of the settings, all at the horizon of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DecisionsReport {
    /// One entry per threshold, in the order of the settings.
    pub thresholds: Vec<ThresholdReport>,
    /// Net benefit over thresholds: first of the whole sample, then of every group.
    pub curves: Vec<DecisionCurve>,
}

/// Decisions at one threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ThresholdReport {
    /// The predicted risk at or above which a sample is called positive.
    pub threshold: f64,
    /// The whole sample.
    pub overall: Decided,
    /// One entry per attribute.
    pub attributes: Vec<AttributeDecisions>,
}

/// Decisions in the groups of one attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AttributeDecisions {
    /// Name of the attribute.
    pub attribute: String,
    /// One entry per level.
    pub groups: Vec<GroupDecisions>,
    /// The larger of the gaps of sensitivity and false-positive rate, of the groups that are compared; 0 = equal.
    pub equalized_odds_difference: Estimate,
}

/// Decisions in one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupDecisions {
    /// Name of the level.
    pub level: String,
    /// Its decisions.
    #[serde(flatten)]
    pub decided: Decided,
}

/// How many are called positive, and what treating everybody would bring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Decided {
    /// Samples.
    pub n: usize,
    /// Samples called positive; `None` without a horizon.
    pub n_positive: Option<usize>,
    /// Samples that are censored by the horizon.
    pub n_unknown: Option<u64>,
    /// Sum of the censoring weights divided by `n`; the nearer to 1, the better the censoring curve fits these samples.
    pub weight: Option<f64>,
    /// Weighted share of samples with the event by the horizon.
    pub event_rate: Option<f64>,
    /// Net benefit of treating everybody.
    pub net_benefit_of_all: Option<f64>,
    /// Why the numbers above are missing.
    pub undefined: Option<String>,
}

/// Net benefit over thresholds in one group (or in the whole sample: no attribute, no level); treating none has 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DecisionCurve {
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// Name of the level.
    pub level: Option<String>,
    /// Whole percents that enclose the predicted risks of the whole sample; empty if there is no curve.
    pub thresholds: Vec<f64>,
    /// Net benefit of treating those whose predicted risk is at least the threshold.
    pub net_benefit: Vec<f64>,
    /// Net benefit of treating everybody.
    pub net_benefit_of_all: Vec<f64>,
    /// Why there is no curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// The decisions of a report; `None` if the settings have no threshold.
pub(crate) fn decisions(
    input: &Input<'_>,
    predictions: &Predictions<'_>,
    at: Result<&AtHorizon, &MetricError>,
) -> Result<Option<DecisionsReport>, MetricError> {
    let thresholds = &input.settings.thresholds;
    if thresholds.is_empty() {
        return Ok(None);
    }
    let slice = |(name, rows): (Option<(&str, &str)>, Vec<usize>)| OfSlice::new(name, &rows, input, predictions, at);
    let slices: Vec<OfSlice> = input.slices().map(slice).collect();
    let of_curve = at.map(|at| curve_thresholds(at.range())).unwrap_or_default();
    let odds = equalized_odds(input, predictions, &at.map(|at| at.time).map_err(MetricError::clone))?;
    let of_threshold = |(&threshold, odds): (&f64, Vec<Estimate>)| ThresholdReport {
        threshold,
        overall: slices[0].decided(threshold),
        attributes: of_attributes(input, &slices[1..], threshold, odds),
    };
    Ok(Some(DecisionsReport {
        thresholds: thresholds.iter().zip(odds).map(of_threshold).collect(),
        curves: slices.iter().map(|slice| slice.curve(&of_curve)).collect(),
    }))
}

/// The groups of every attribute, which `slices` contains in this order, with the equalised odds of the attribute.
fn of_attributes(
    input: &Input<'_>,
    slices: &[OfSlice],
    threshold: f64,
    odds: Vec<Estimate>,
) -> Vec<AttributeDecisions> {
    let mut slices = slices.iter();
    let attributes = input.groups.iter().zip(odds).map(|(groups, equalized_odds_difference)| {
        let of_levels = groups.levels().iter().zip(slices.by_ref());
        let group = |(level, slice): (&String, &OfSlice)| GroupDecisions {
            level: level.clone(),
            decided: slice.decided(threshold),
        };
        let attribute = groups.attribute().to_owned();
        AttributeDecisions { attribute, groups: of_levels.map(group).collect(), equalized_odds_difference }
    });
    attributes.collect()
}

/// The equalised-odds difference by threshold and attribute.
fn equalized_odds(
    input: &Input<'_>,
    predictions: &Predictions<'_>,
    horizon: &Result<f64, MetricError>,
) -> Result<Vec<Vec<Estimate>>, MetricError> {
    let thresholds = &input.settings.thresholds;
    let description = |name| MetricDescription {
        name,
        label: name,
        convention: "of an equalised-odds difference",
        direction: Direction::HigherIsBetter,
    };
    let names = || thresholds.iter().flat_map(|threshold| ODDS.map(|name| (name, *threshold)));
    let requested = names().map(|(name, threshold)| {
        let requested = RequestedMetric { threshold: Some(threshold), ..RequestedMetric::parse(name)? };
        Ok(RequestedAt::new(&requested, horizon))
    });
    let requested = requested.collect::<Result<Vec<_>, MetricError>>()?;
    let descriptions: Vec<MetricDescription<'_>> = names().map(|(name, _)| description(name)).collect();
    let evaluated = Evaluated::of_requested(input, predictions, &requested, &descriptions, false)?;
    let of_threshold =
        |place| (0..input.groups.len()).map(|of| larger_gap(input, &evaluated, ODDS.len() * place, of)).collect();
    Ok((0..thresholds.len()).map(of_threshold).collect())
}

/// The larger of the gaps of the metrics `first` and `first + 1`.
fn larger_gap(input: &Input<'_>, evaluated: &Evaluated<'_>, first: usize, attribute: usize) -> Estimate {
    let min_events = input.settings.min_events;
    let gap = |metric| evaluated.comparison(metric, attribute, Comparison::Gap, min_events);
    let compared: Vec<&Slice> = evaluated.defined(first, attribute, min_events).collect();
    let rows: Vec<usize> = compared.iter().flat_map(|slice| slice.rows.iter().copied()).collect();
    let summary = Summary { input, evaluated };
    let estimate = summary.estimate(&gap(first).larger(&gap(first + 1)), &rows);
    // Both gaps lie in their intervals at once if each does with half of the error (Bonferroni).
    let level = 1.0 - (1.0 - input.settings.level) / 2.0;
    let settings = EvaluationSettings { level, ..input.settings.clone() };
    let interval = |metric| evaluated.simultaneous_interval(metric, attribute, Comparison::Gap, min_events, &settings);
    let estimate = match interval(first).zip(interval(first + 1)).filter(|_| estimate.value.is_some()) {
        Some((first, second)) => {
            let (lower, upper) = (first.0.max(second.0), first.1.max(second.1));
            Estimate { lower: Some(lower), upper: Some(upper), interval_undefined: None, ..estimate }
        }
        None => estimate,
    };
    summary.cautioned(first, estimate, &compared)
}

/// The whole sample or one group, with its risks and weights.
struct OfSlice {
    attribute: Option<String>,
    level: Option<String>,
    n: usize,
    risk: Option<Vec<f64>>,
    prepared: Result<PreparedDecisions, MetricError>,
}

impl OfSlice {
    fn new(
        name: Option<(&str, &str)>,
        rows: &[usize],
        input: &Input<'_>,
        predictions: &Predictions<'_>,
        at: Result<&AtHorizon, &MetricError>,
    ) -> Self {
        let prepared = |at: &AtHorizon| match rows {
            [] => Err(MetricError::NoSamples),
            _ => PreparedDecisions::new(&input.outcomes.select(rows), at.risk_of(rows), predictions.censoring, at.time),
        };
        Self {
            attribute: name.map(|(attribute, _)| attribute.to_owned()),
            level: name.map(|(_, level)| level.to_owned()),
            n: rows.len(),
            risk: at.ok().map(|at| at.risk_of(rows)),
            prepared: at.map_err(MetricError::clone).and_then(prepared),
        }
    }

    fn decided(&self, threshold: f64) -> Decided {
        let selected = self.risk.clone().and_then(|risk| PreparedSelection::new(risk, threshold).ok());
        let none = Decided {
            n: self.n,
            n_positive: selected.map(|selected| selected.n_positive()),
            n_unknown: None,
            weight: None,
            event_rate: None,
            net_benefit_of_all: None,
            undefined: None,
        };
        let of_all = |decisions: &PreparedDecisions| decisions.weighted(&vec![1; self.n], threshold);
        match self.prepared.as_ref().map_err(MetricError::clone).and_then(of_all) {
            Ok(table) => Decided {
                n_unknown: Some(table.n_unknown),
                weight: Some(table.weight),
                event_rate: Some(table.event_rate()),
                net_benefit_of_all: Some(table.net_benefit_of_all()),
                ..none
            },
            Err(reason) => Decided { undefined: Some(reason.to_string()), ..none },
        }
    }

    fn curve(&self, thresholds: &[f64]) -> DecisionCurve {
        let found = self.prepared.as_ref().map_err(MetricError::clone).and_then(|found| found.curve(thresholds));
        let points = found.as_deref().unwrap_or_default();
        DecisionCurve {
            attribute: self.attribute.clone(),
            level: self.level.clone(),
            thresholds: points.iter().map(|point| point.threshold).collect(),
            net_benefit: points.iter().map(|point| point.model).collect(),
            net_benefit_of_all: points.iter().map(|point| point.treat_all).collect(),
            undefined: found.as_ref().err().map(ToString::to_string),
        }
    }
}

impl Sampled {
    /// The larger of two numbers from the same draws; `None` in a replicate in which either does not exist.
    fn larger(&self, other: &Self) -> Self {
        let pairs = self.replicates.iter().zip(&other.replicates);
        let jackknife = self.jackknife.as_ref().zip(other.jackknife.as_ref());
        Self {
            value: self.value.clone().and_then(|first| Ok(first.max(other.value.clone()?))),
            replicates: pairs.map(|(first, second)| Some((*first)?.max((*second)?))).collect(),
            jackknife: jackknife.map(|(first, second)| match (first, second) {
                (Ok(first), Ok(second)) => Ok(first.with(second, f64::max)),
                (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
            }),
            nested: self.nested_with(other, f64::max),
            n_partial: self.n_partial.max(other.n_partial),
            is_distance: false,
        }
    }
}
