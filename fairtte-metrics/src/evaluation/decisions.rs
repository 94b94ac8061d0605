//! What a report says about decisions beside their metrics: how many are called positive, the net benefit of treating
//! everybody, the equalised-odds difference, and the decision curves.
//!
//! Equalised odds (Hardt, Price & Srebro 2016) asks that sensitivity and false-positive rate are the same in all groups. Its
//! difference is the larger of the gaps of the two, as `equalized_odds_difference` of `fairlearn` 0.15.0. Its interval lies
//! between the larger of their lower and the larger of their upper ends, each at half of the error level.

use serde::{Deserialize, Serialize};

use crate::decision::{PreparedDecisions, PreparedSelection, curve_thresholds};
use crate::evaluation::evaluated::{Evaluated, Input, Predictions, Sampled, Slice};
use crate::evaluation::metrics::RequestedMetric;
use crate::evaluation::prepared::RequestedAt;
use crate::evaluation::report::{Estimate, MetricDescription};
use crate::evaluation::summary::Summary;
use crate::fairness::Comparison;
use crate::{Direction, EvaluationSettings, MetricError};

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
    /// The predicted risk from which on a sample is called positive.
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

/// Net benefit over thresholds in one group (or in the whole sample: no attribute, no level); treating nobody has 0.
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
    horizon: &Result<f64, MetricError>,
) -> Result<Option<DecisionsReport>, MetricError> {
    if input.settings.thresholds.is_empty() {
        return Ok(None);
    }
    let scored = Scored { input, predictions, horizon };
    let thresholds = input.settings.thresholds.iter().map(|&threshold| scored.at(threshold));
    Ok(Some(DecisionsReport { thresholds: thresholds.collect::<Result<_, _>>()?, curves: scored.curves() }))
}

struct Scored<'a> {
    input: &'a Input<'a>,
    predictions: &'a Predictions<'a>,
    horizon: &'a Result<f64, MetricError>,
}

impl Scored<'_> {
    fn at(&self, threshold: f64) -> Result<ThresholdReport, MetricError> {
        let all_rows: Vec<usize> = (0..self.input.outcomes.n()).collect();
        let odds = self.equalized_odds(threshold)?;
        let attributes = self.input.groups.iter().zip(odds).map(|(groups, equalized_odds_difference)| {
            let group = |group: crate::GroupId| GroupDecisions {
                level: groups.levels()[group.index()].clone(),
                decided: self.decided(&groups.rows(group), threshold),
            };
            let attribute = groups.attribute().to_owned();
            AttributeDecisions { attribute, groups: groups.ids().map(group).collect(), equalized_odds_difference }
        });
        Ok(ThresholdReport { threshold, overall: self.decided(&all_rows, threshold), attributes: attributes.collect() })
    }

    /// The equalised-odds difference of every attribute.
    fn equalized_odds(&self, threshold: f64) -> Result<Vec<Estimate>, MetricError> {
        let Self { input, predictions, horizon } = *self;
        let description = |name| MetricDescription {
            name,
            label: name,
            convention: "of an equalised-odds difference",
            direction: Direction::HigherIsBetter,
        };
        let [first, second] = ["sensitivity", "false-positive-rate"].map(description);
        let requested = |name: &str| {
            let requested = RequestedMetric { threshold: Some(threshold), ..RequestedMetric::parse(name)? };
            Ok(RequestedAt::new(&requested, horizon))
        };
        let requested = [requested(first.name)?, requested(second.name)?];
        let descriptions = [first, second];
        let evaluated = Evaluated::of_requested(input, predictions, &requested, &descriptions, false)?;
        let of_attribute = |attribute| {
            let min_events = input.settings.min_events;
            let gap = |metric| evaluated.comparison(metric, attribute, Comparison::Gap, min_events);
            let compared: Vec<&Slice> = evaluated.defined(0, attribute, min_events).collect();
            let rows: Vec<usize> = compared.iter().flat_map(|slice| slice.rows.iter().copied()).collect();
            let estimate = Summary { input, evaluated: &evaluated }.estimate(&gap(0).larger(&gap(1)), &rows);
            // Both gaps lie in their intervals at once if each does with half of the error (Bonferroni).
            let level = 1.0 - (1.0 - input.settings.level) / 2.0;
            let settings = EvaluationSettings { level, ..input.settings.clone() };
            let interval =
                |metric| evaluated.simultaneous_interval(metric, attribute, Comparison::Gap, min_events, &settings);
            match interval(0).zip(interval(1)).filter(|_| estimate.value.is_some()) {
                Some((first, second)) => {
                    let (lower, upper) = (first.0.max(second.0), first.1.max(second.1));
                    Estimate { lower: Some(lower), upper: Some(upper), interval_undefined: None, ..estimate }
                }
                None => estimate,
            }
        };
        Ok((0..input.groups.len()).map(of_attribute).collect())
    }

    fn decided(&self, rows: &[usize], threshold: f64) -> Decided {
        let none = Decided {
            n: rows.len(),
            n_positive: None,
            n_unknown: None,
            weight: None,
            event_rate: None,
            net_benefit_of_all: None,
            undefined: None,
        };
        let selected = self.horizon.clone().and_then(|horizon| {
            let curves = self.predictions.curves.select(rows);
            PreparedSelection::new(&curves, self.input.settings.reading, horizon, threshold)
        });
        let n_positive = selected.ok().map(|selected| selected.n_positive());
        let table = self.prepared(rows).and_then(|decisions| decisions.weighted(&vec![1; rows.len()], threshold));
        match table {
            Ok(table) => Decided {
                n_positive,
                n_unknown: Some(table.n_unknown),
                weight: Some(table.weight),
                event_rate: Some(table.event_rate()),
                net_benefit_of_all: Some(table.net_benefit_of_all()),
                ..none
            },
            Err(reason) => Decided { n_positive, undefined: Some(reason.to_string()), ..none },
        }
    }

    fn prepared(&self, rows: &[usize]) -> Result<PreparedDecisions, MetricError> {
        if rows.is_empty() {
            return Err(MetricError::NoSamples);
        }
        let (outcomes, curves) = (self.input.outcomes.select(rows), self.predictions.curves.select(rows));
        let (censoring, reading) = (self.predictions.censoring, self.input.settings.reading);
        PreparedDecisions::new(&outcomes, &curves, censoring, reading, self.horizon.clone()?)
    }

    fn curves(&self) -> Vec<DecisionCurve> {
        let all_rows: Vec<usize> = (0..self.input.outcomes.n()).collect();
        let thresholds = self.prepared(&all_rows).map(|decisions| curve_thresholds(decisions.range()));
        let thresholds = thresholds.unwrap_or_default();
        let curve = |name: Option<(&str, &str)>, rows: &[usize]| {
            let found = self.prepared(rows).and_then(|decisions| decisions.curve(&thresholds));
            let points = found.as_deref().unwrap_or_default();
            DecisionCurve {
                attribute: name.map(|(attribute, _)| attribute.to_owned()),
                level: name.map(|(_, level)| level.to_owned()),
                thresholds: points.iter().map(|point| point.threshold).collect(),
                net_benefit: points.iter().map(|point| point.model).collect(),
                net_benefit_of_all: points.iter().map(|point| point.treat_all).collect(),
                undefined: found.as_ref().err().map(ToString::to_string),
            }
        };
        let of_groups = self.input.groups.iter().flat_map(|groups| {
            let name = |group: crate::GroupId| Some((groups.attribute(), groups.levels()[group.index()].as_str()));
            groups.ids().map(move |group| (name(group), groups.rows(group)))
        });
        std::iter::once((None, all_rows.clone())).chain(of_groups).map(|(name, rows)| curve(name, &rows)).collect()
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
            n_partial: self.n_partial.max(other.n_partial),
            is_distance: false,
        }
    }
}
