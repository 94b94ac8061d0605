//! The metrics of decisions at a threshold of the predicted risk, prepared for an evaluation.
//!
//! What their gaps and ratios are called: equal opportunity (Hardt, Price & Srebro 2016), demographic or statistical parity
//! (Dwork et al. 2012), disparate impact (Feldman et al. 2015), predictive parity (Chouldechova 2017), predictive equality
//! (Corbett-Davies et al. 2017). Gap and ratio are those of `fairlearn` 0.15.0 (largest minus smallest, smallest divided
//! by largest); AIF360 has the same names for the signed difference and the ratio of two groups.

use super::{Metric, PreparedMetric, ScoredSample};
use crate::decision::{DecisionTable, PreparedDecisions, PreparedSelection, risks};
use crate::{Direction, MetricError};

/// A metric of decisions at a threshold.
#[derive(Clone, Copy, Debug)]
struct DecisionMetric {
    name: &'static str,
    summary: &'static str,
    label: &'static str,
    convention: &'static str,
    /// `None` where no value is better than another.
    direction: Option<Direction>,
    gap_name: Option<&'static str>,
    ratio_name: Option<&'static str>,
    read: Read,
}

/// Where the value of a metric comes from.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// Who is called positive, without any outcome.
    Selection,
    Table(fn(&DecisionTable) -> Result<f64, MetricError>),
}

/// All metrics of decisions, in the order in which they are listed to users.
pub(super) fn decision_metrics() -> impl Iterator<Item = &'static dyn Metric> {
    DECISIONS.iter().map(|metric| metric as &'static dyn Metric)
}

const DECISIONS: [DecisionMetric; 7] = [
    DecisionMetric {
        name: "sensitivity",
        summary: "share of those with the event by the horizon who are called positive: true positive rate, recall",
        label: "Sensitivity",
        convention: "TP / (TP + FN): positive from a predicted risk at the horizon of the threshold on; cases (T <= t) \
                     weigh 1/G(T-), controls (T > t) 1/G(t), G the censoring curve (Uno et al. 2007; timeROC)",
        direction: Some(Direction::HigherIsBetter),
        gap_name: Some("equal opportunity difference"),
        ratio_name: None,
        read: Read::Table(DecisionTable::sensitivity),
    },
    DecisionMetric {
        name: "specificity",
        summary: "share of those without the event by the horizon who are called negative: true negative rate",
        label: "Specificity",
        convention: "TN / (TN + FP), positive and weighted as for the sensitivity (Uno et al. 2007; timeROC)",
        direction: Some(Direction::HigherIsBetter),
        gap_name: None,
        ratio_name: None,
        read: Read::Table(DecisionTable::specificity),
    },
    DecisionMetric {
        name: "false-positive-rate",
        summary: "share of those without the event by the horizon who are called positive: 1 - specificity",
        label: "False-positive rate",
        convention: "FP / (FP + TN) = 1 - specificity, positive and weighted as for the sensitivity (Uno et al. 2007; \
                     timeROC)",
        direction: Some(Direction::LowerIsBetter),
        gap_name: Some("false-positive-rate difference, predictive equality"),
        ratio_name: None,
        read: Read::Table(DecisionTable::false_positive_rate),
    },
    DecisionMetric {
        name: "ppv",
        summary: "probability of the event by the horizon among those called positive: precision",
        label: "PPV",
        convention: "positive predictive value TP / (TP + FP), positive and weighted as for the sensitivity (timeROC)",
        direction: Some(Direction::HigherIsBetter),
        gap_name: Some("predictive parity difference"),
        ratio_name: None,
        read: Read::Table(DecisionTable::positive_predictive_value),
    },
    DecisionMetric {
        name: "npv",
        summary: "probability of no event by the horizon among those called negative",
        label: "NPV",
        convention: "negative predictive value TN / (TN + FN), positive and weighted as for the sensitivity (timeROC)",
        direction: Some(Direction::HigherIsBetter),
        gap_name: None,
        ratio_name: None,
        read: Read::Table(DecisionTable::negative_predictive_value),
    },
    DecisionMetric {
        name: "selection-rate",
        summary: "share of samples called positive; no outcome enters, and no value is better than another",
        label: "Selection rate",
        convention: "share of samples, with known outcome or not, whose predicted risk at the horizon is at least the \
                     threshold; no censoring weights",
        direction: None,
        gap_name: Some("demographic parity difference, statistical parity difference"),
        ratio_name: Some("demographic parity ratio, disparate impact"),
        read: Read::Selection,
    },
    DecisionMetric {
        name: "net-benefit",
        summary: "true positives minus false positives at the odds of the threshold, per sample (Vickers & Elkin 2006)",
        label: "Net benefit",
        convention: "TP - FP * threshold / (1 - threshold), shares of all samples weighted as for the sensitivity (Vickers & \
                     Elkin 2006; Vickers et al. 2008); treating nobody has 0",
        direction: Some(Direction::HigherIsBetter),
        gap_name: None,
        ratio_name: None,
        read: Read::Table(|table| Ok(table.net_benefit())),
    },
];

impl Metric for DecisionMetric {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn label(&self) -> &'static str {
        self.label
    }

    fn convention(&self) -> &'static str {
        self.convention
    }

    fn direction(&self) -> Direction {
        self.direction.unwrap_or(Direction::HigherIsBetter)
    }

    fn has_best(&self) -> bool {
        self.direction.is_some()
    }

    fn has_horizon(&self) -> bool {
        true
    }

    fn has_threshold(&self) -> bool {
        true
    }

    fn gap_name(&self) -> Option<&'static str> {
        self.gap_name
    }

    fn ratio_name(&self) -> Option<&'static str> {
        self.ratio_name
    }

    fn prepare(&self, sample: &ScoredSample<'_>) -> Result<Box<dyn PreparedMetric>, MetricError> {
        let ScoredSample { outcomes, curves, censoring, reading, .. } = *sample;
        let (horizon, threshold) = (sample.horizon()?, sample.threshold()?);
        let risk = risks(curves, reading, horizon)?;
        Ok(match self.read {
            Read::Selection => Box::new(PreparedSelection::new(risk, threshold)?),
            Read::Table(value) => {
                let decisions = PreparedDecisions::new(outcomes, risk, censoring, horizon)?;
                Box::new(OfTable { decisions, threshold, value })
            }
        })
    }
}

/// A number of the table at one threshold.
struct OfTable {
    decisions: PreparedDecisions,
    threshold: f64,
    value: fn(&DecisionTable) -> Result<f64, MetricError>,
}

impl PreparedMetric for OfTable {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        (self.value)(&self.decisions.weighted(weights, self.threshold)?)
    }
}

impl PreparedMetric for PreparedSelection {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        self.weighted(weights)
    }
}
