//! Metrics of one of several causes: the table of them, and what prepares each.
//!
//! They take the predicted cumulative incidence of the cause and count an event of another cause as what it is: known to have
//! come first. See [`crate::competing`] for definitions and sources.

use super::scores::CheckedBrier;
use super::{Metric, PreparedMetric, ScoredSample, WeightBlock};
use crate::calibration::calibration_index::{PreparedCalibrationIndex, PreparedCalibrationSlope};
use crate::competing::auc::{Controls, PreparedCauseAuc};
use crate::competing::brier;
use crate::competing::calibration::PreparedCauseObserved;
use crate::competing::concordance::PreparedCauseConcordance;
use crate::{Direction, MetricError, Risk};

type Prepared = Result<Box<dyn PreparedMetric>, MetricError>;

/// All metrics of one of several causes, in the order in which they are listed to users.
pub fn cause_metrics() -> impl Iterator<Item = &'static dyn Metric> {
    CAUSE_METRICS.iter().map(|metric| metric as &'static dyn Metric)
}

/// A metric of one of several causes: everything about it but its function.
#[derive(Clone, Copy, Debug)]
struct CauseMetric {
    name: &'static str,
    summary: &'static str,
    label: &'static str,
    convention: &'static str,
    goal: Goal,
    has_horizon: bool,
    prepare: fn(&ScoredSample<'_>, &[bool]) -> Prepared,
}

#[derive(Clone, Copy, Debug)]
enum Goal {
    Higher,
    Lower,
    /// A distance, which is best at 0 and never below.
    NoDistance,
    One,
}

impl Metric for CauseMetric {
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
        match self.goal {
            Goal::Higher => Direction::HigherIsBetter,
            Goal::Lower | Goal::NoDistance | Goal::One => Direction::LowerIsBetter,
        }
    }

    fn target(&self) -> Option<f64> {
        matches!(self.goal, Goal::One).then_some(1.0)
    }

    fn is_distance(&self) -> bool {
        matches!(self.goal, Goal::NoDistance)
    }

    fn has_horizon(&self) -> bool {
        self.has_horizon
    }

    fn needs_causes(&self) -> bool {
        true
    }

    fn prepare(&self, sample: &ScoredSample<'_>) -> Prepared {
        let needs = || MetricError::NeedsCauses { name: self.name.to_owned() };
        let prepared = (self.prepare)(sample, sample.competing.ok_or_else(needs)?);
        Ok(Box::new(OfCause(prepared.map_err(MetricError::of_cause)?)))
    }
}

/// A metric whose reasons speak of events of the cause.
struct OfCause(Box<dyn PreparedMetric>);

impl PreparedMetric for OfCause {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        self.0.value(weights).map_err(MetricError::of_cause)
    }

    fn values(&self, draws: &WeightBlock<'_>) -> Vec<Option<f64>> {
        self.0.values(draws)
    }
}

const CAUSE_METRICS: [CauseMetric; 11] = [
    CauseMetric {
        name: "cause-c",
        summary: "concordance of one cause's risk at the horizon, events by then (Wolbers et al. 2014)",
        label: "C of the cause",
        convention: "concordance of the predicted incidence at the horizon, cases by then, each compared with those who \
                     outlive it and those who had another cause before, weights of the censoring curve 1/G(T-)^2 and \
                     1/(G(T-)G(T'-)); equal predictions count 1/2 (Wolbers et al. 2014)",
        goal: Goal::Higher,
        has_horizon: true,
        prepare: c,
    },
    CauseMetric {
        name: "cause-c-td",
        summary: "time-dependent concordance of one cause; pairs with equal predictions count 0 (Lee et al. 2018)",
        label: "C^td of the cause",
        convention: "time-dependent concordance of the predicted incidence, cases compared with all who outlive them, those \
                     with a later event of another cause among them, and with those who are censored or have another cause at \
                     the same time; equal predictions count 0 (Lee et al. 2018)",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: c_td,
    },
    CauseMetric {
        name: "cause-auc-td",
        summary: "AUC of one cause against all without it, averaged over the evaluation times (Blanche et al. 2013)",
        label: "AUC^td of the cause",
        convention: "cumulative/dynamic AUC, cases weighted by 1/G(T-), controls all without the cause by t: followed beyond \
                     t by 1/G(t), after another cause by 1/G(T-); averaged over the evaluation times by trapezoids (Blanche \
                     et al. 2013, definition ii)",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: auc_td,
    },
    CauseMetric {
        name: "cause-auc",
        summary: "AUC of one cause against all without it, at the horizon (Blanche et al. 2013)",
        label: "AUC of the cause",
        convention: "cumulative/dynamic AUC at the horizon, cases weighted by 1/G(T-), controls all without the cause by \
                     then (Blanche et al. 2013, definition ii)",
        goal: Goal::Higher,
        has_horizon: true,
        prepare: auc,
    },
    CauseMetric {
        name: "cause-auc-td-event-free",
        summary: "AUC of one cause against those free of every event, averaged over the evaluation times",
        label: "AUC^td, event-free controls",
        convention: "cumulative/dynamic AUC, cases weighted by 1/G(T-), controls free of every event at t; averaged over the \
                     evaluation times by trapezoids (Blanche et al. 2013, definition i)",
        goal: Goal::Higher,
        has_horizon: false,
        prepare: auc_td_event_free,
    },
    CauseMetric {
        name: "cause-auc-event-free",
        summary: "AUC of one cause against those free of every event, at the horizon",
        label: "AUC, event-free controls",
        convention: "cumulative/dynamic AUC at the horizon, cases weighted by 1/G(T-), controls free of every event then \
                     (Blanche et al. 2013, definition i)",
        goal: Goal::Higher,
        has_horizon: true,
        prepare: auc_event_free,
    },
    CauseMetric {
        name: "cause-ibs",
        summary: "integrated Brier score of one cause's incidence (Schoop et al. 2011)",
        label: "IBS of the cause",
        convention: "Brier score of the predicted incidence, events of any cause weighted by 1/G(T-), survivors by 1/G(t), \
                     those after another cause with outcome 0, integrated over the evaluation times by trapezoids and \
                     divided by their range (Schoop et al. 2011)",
        goal: Goal::Lower,
        has_horizon: false,
        prepare: ibs,
    },
    CauseMetric {
        name: "cause-brier",
        summary: "Brier score of one cause's incidence at the horizon (Schoop et al. 2011)",
        label: "Brier of the cause",
        convention: "Brier score of the predicted incidence at the horizon, events of any cause weighted by 1/G(T-), \
                     survivors by 1/G(t), those after another cause with outcome 0 (Schoop et al. 2011)",
        goal: Goal::Lower,
        has_horizon: true,
        prepare: brier,
    },
    CauseMetric {
        name: "cause-ici",
        summary: "integrated calibration index of one cause's incidence at the horizon (Austin et al. 2022)",
        label: "ICI of the cause",
        convention: "mean distance of the predicted incidence at the horizon from the observed one, smoothed by a model of \
                     the subdistribution hazard on a restricted cubic spline with three knots (Austin et al. 2022)",
        goal: Goal::NoDistance,
        has_horizon: true,
        prepare: ici,
    },
    CauseMetric {
        name: "cause-observed-expected",
        summary: "Aalen-Johansen incidence divided by mean predicted incidence at the horizon",
        label: "O/E of the cause",
        convention: "Aalen-Johansen at the horizon divided by the mean predicted incidence; above 1: risk is underestimated",
        goal: Goal::One,
        has_horizon: true,
        prepare: observed_expected,
    },
    CauseMetric {
        name: "cause-calibration-slope",
        summary: "coefficient of log(-log(1 - F)) at the horizon in a model of the subdistribution hazard",
        label: "Calibration slope of the cause",
        convention: "coefficient of log(-log(1 - F)) at the horizon in a model of the subdistribution hazard; below 1: the \
                     predictions are too extreme (van Geloven et al. 2022)",
        goal: Goal::One,
        has_horizon: true,
        prepare: slope,
    },
];

impl PreparedMetric for PreparedCauseConcordance {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        Ok(self.weighted(weights)?.value)
    }
}

fn c(sample: &ScoredSample<'_>, competing: &[bool]) -> Prepared {
    let horizon = sample.horizon()?;
    let (risk, of_cause) = (Risk::new(sample.risk_at(horizon))?, (sample.outcomes, competing));
    Ok(Box::new(PreparedCauseConcordance::new(of_cause, &risk, sample.censoring, Some(horizon))?))
}

fn c_td(sample: &ScoredSample<'_>, _: &[bool]) -> Prepared {
    super::scores::c_td(sample)
}

impl PreparedMetric for PreparedCauseAuc {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        self.weighted(weights)?.time_average
    }
}

fn auc_at(sample: &ScoredSample<'_>, competing: &[bool], times: &[f64], controls: Controls) -> Prepared {
    let ScoredSample { outcomes, curves, censoring, reading, .. } = *sample;
    Ok(Box::new(PreparedCauseAuc::new((outcomes, competing), curves, censoring, reading, (times, controls))?))
}

fn auc_td(sample: &ScoredSample<'_>, competing: &[bool]) -> Prepared {
    auc_at(sample, competing, sample.times()?, Controls::WithoutTheCause)
}

fn auc(sample: &ScoredSample<'_>, competing: &[bool]) -> Prepared {
    auc_at(sample, competing, &[sample.horizon()?], Controls::WithoutTheCause)
}

fn auc_td_event_free(sample: &ScoredSample<'_>, competing: &[bool]) -> Prepared {
    auc_at(sample, competing, sample.times()?, Controls::EventFree)
}

fn auc_event_free(sample: &ScoredSample<'_>, competing: &[bool]) -> Prepared {
    auc_at(sample, competing, &[sample.horizon()?], Controls::EventFree)
}

fn ibs(sample: &ScoredSample<'_>, competing: &[bool]) -> Prepared {
    let ScoredSample { outcomes, curves, censoring, reading, .. } = *sample;
    Ok(CheckedBrier::boxed(
        brier::prepared((outcomes, competing), curves, censoring, reading, sample.times()?)?,
        sample,
    ))
}

fn brier(sample: &ScoredSample<'_>, competing: &[bool]) -> Prepared {
    let ScoredSample { outcomes, curves, censoring, reading, .. } = *sample;
    let at = brier::prepared_at((outcomes, competing), curves, censoring, reading, sample.horizon()?)?;
    Ok(CheckedBrier::boxed(at, sample))
}

fn ici(sample: &ScoredSample<'_>, competing: &[bool]) -> Prepared {
    let horizon = sample.horizon()?;
    let risk = sample.risk_at(horizon);
    Ok(Box::new(PreparedCalibrationIndex::new(sample.outcomes, competing, &risk, horizon)?))
}

fn slope(sample: &ScoredSample<'_>, competing: &[bool]) -> Prepared {
    let horizon = sample.horizon()?;
    let risk = sample.risk_at(horizon);
    Ok(Box::new(PreparedCalibrationSlope::new(sample.outcomes, competing, &risk, horizon)?))
}

impl PreparedMetric for PreparedCauseObserved {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        Ok(self.weighted(weights)?.ratio)
    }
}

fn observed_expected(sample: &ScoredSample<'_>, competing: &[bool]) -> Prepared {
    let horizon = sample.horizon()?;
    Ok(Box::new(PreparedCauseObserved::new((sample.outcomes, competing), sample.risk_at(horizon), horizon)))
}
