//! The measures of the experiment, appendix B of the paper, with the conventions of its software (`mlr3proba`).
//!
//! Everything that a measure needs beside the predictions, the censoring curve G and the Kaplan-Meier baseline of the explained
//! variation, is fitted to the training folds. Curves are steps on the event times of the training folds, 1 before the first.

use fairtte_metrics::calibration::{
    DCalibrationConvention, DEFAULT_HAZARD_REPLACEMENT, OwnTimeReading, calibration_alpha, d_calibration,
};
use fairtte_metrics::estimators::{BeyondLastTime, KaplanMeier};
use fairtte_metrics::rank::{TieTest, TiedPairs, UnoConvention, harrell_concordance, uno_concordance};
use fairtte_metrics::scores::{
    BrierConvention, EventDensity, IntegratedScoreRule, SnlForm, explained_residual_variation, kaplan_meier_curves,
    rcll, snl, unique_times,
};
use fairtte_metrics::{CensoringCurve, MetricError, Outcomes, Reading, Risk, SurvivalCurves};
use serde::{Deserialize, Serialize};

/// A measure L.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Reweighted survival Brier score, as explained variation (B.1, B.8).
    Rsbs,
    /// Reweighted integrated survival log loss, as explained variation (B.2, B.8).
    Risl,
    /// Survival negative log-likelihood, as explained variation (B.3, B.8). The density is the mass at the event's own time, so
    /// that an event at a time without an event in the training folds costs 34.5 whatever was predicted.
    Snl,
    /// Right-censored log loss, as explained variation (B.4, B.8), with that density.
    Rcll,
    /// Harrell's C of the estimator's risk (B.5).
    HarrellC,
    /// Uno's C of the estimator's risk (B.6); tau is the first time at which the censoring curve is 0.
    UnoC,
    /// Van Houwelingen's alpha: observed over expected events (B.7).
    CalibrationAlpha,
    /// Statistic of the D-calibration with 10 bins (Haider et al. 2020).
    DCalibration,
    /// As [`Snl`](Self::Snl) with the mass of the interval between the training folds' event times that has the event's time, and
    /// the weight outside the logarithm. Not in the paper.
    SnlInterval,
    /// As [`Rcll`](Self::Rcll) with that mass. Not in the paper.
    RcllInterval,
}

/// A fold's predictions and outcomes, and those of its training folds.
pub(super) struct Scored<'a> {
    pub(super) outcomes: &'a Outcomes,
    pub(super) curves: &'a SurvivalCurves,
    pub(super) risk: &'a Risk,
    /// The Kaplan-Meier curve of the training folds for every sample, on the grid of `curves`.
    pub(super) baseline: &'a SurvivalCurves,
    /// Of the training folds, `mlr3proba`'s ties.
    pub(super) censoring: &'a CensoringCurve,
}

/// Bins of the D-calibration.
const BINS: usize = 10;

impl Measure {
    /// Those of the paper, in the order of its Table 1.
    pub const PAPER: [Self; 8] = [
        Self::Rsbs,
        Self::Risl,
        Self::Snl,
        Self::Rcll,
        Self::HarrellC,
        Self::UnoC,
        Self::CalibrationAlpha,
        Self::DCalibration,
    ];

    /// All.
    pub const ALL: [Self; 10] = [
        Self::Rsbs,
        Self::Risl,
        Self::Snl,
        Self::Rcll,
        Self::HarrellC,
        Self::UnoC,
        Self::CalibrationAlpha,
        Self::DCalibration,
        Self::SnlInterval,
        Self::RcllInterval,
    ];

    /// Its name in files and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rsbs => "rsbs",
            Self::Risl => "risl",
            Self::Snl => "snl",
            Self::Rcll => "rcll",
            Self::HarrellC => "harrell-c",
            Self::UnoC => "uno-c",
            Self::CalibrationAlpha => "calibration-alpha",
            Self::DCalibration => "d-calibration",
            Self::SnlInterval => "snl-interval",
            Self::RcllInterval => "rcll-interval",
        }
    }

    /// Its name in tables and figures.
    pub fn label(self) -> &'static str {
        match self {
            Self::Rsbs => "RSBS (ERV)",
            Self::Risl => "RISL (ERV)",
            Self::Snl => "SNL (ERV)",
            Self::Rcll => "RCLL (ERV)",
            Self::HarrellC => "Harrell's C",
            Self::UnoC => "Uno's C",
            Self::CalibrationAlpha => "calibration alpha",
            Self::DCalibration => "D-calibration",
            Self::SnlInterval => "SNL (ERV, interval)",
            Self::RcllInterval => "RCLL (ERV, interval)",
        }
    }

    /// The measure of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.name() == name)
    }

    /// Its value in a fold.
    pub(super) fn of(self, scored: &Scored<'_>) -> Result<f64, MetricError> {
        let &Scored { outcomes, curves, risk, baseline, censoring } = scored;
        let step = OwnTimeReading::OneBefore(Reading::Step);
        let integrated = |rule: IntegratedScoreRule| {
            let times = unique_times(outcomes);
            let score =
                |curves: &SurvivalCurves| Ok(rule.score(outcomes, curves, censoring, Reading::Step, &times)?.value);
            explained(curves, baseline, score)
        };
        let negative_log = |density, form| {
            explained(curves, baseline, |curves| Ok(snl(outcomes, curves, censoring, density, form)?.value))
        };
        let right_censored = |density| explained(curves, baseline, |curves| Ok(rcll(outcomes, curves, density)?.value));
        match self {
            Self::Rsbs => integrated(IntegratedScoreRule::RSBS),
            Self::Risl => integrated(IntegratedScoreRule::RISL),
            Self::Snl => negative_log(EventDensity::ExactMass, SnlForm::Mlr3proba),
            Self::SnlInterval => negative_log(EventDensity::IntervalMass, SnlForm::Documented),
            Self::Rcll => right_censored(EventDensity::ExactMass),
            Self::RcllInterval => right_censored(EventDensity::IntervalMass),
            Self::HarrellC => Ok(harrell_concordance(outcomes, risk, TieTest::Exact, TiedPairs::Predictions)?.value),
            Self::UnoC => {
                let tau = first_zero(censoring);
                Ok(uno_concordance(outcomes, risk, censoring, tau, UnoConvention::ScikitSurvival)?.value)
            }
            Self::CalibrationAlpha => Ok(calibration_alpha(outcomes, curves, step, DEFAULT_HAZARD_REPLACEMENT)?.alpha),
            Self::DCalibration => {
                let convention = DCalibrationConvention::Mlr3proba;
                Ok(d_calibration(outcomes, curves, step, BINS, convention)?.statistic)
            }
        }
    }
}

fn explained(
    curves: &SurvivalCurves,
    baseline: &SurvivalCurves,
    score: impl Fn(&SurvivalCurves) -> Result<f64, MetricError>,
) -> Result<f64, MetricError> {
    Ok(explained_residual_variation(curves, baseline, score)?.value)
}

/// The first time at which the curve is 0.
fn first_zero(censoring: &CensoringCurve) -> Option<f64> {
    censoring.survival().iter().position(|survival| *survival <= 0.0).map(|place| censoring.times()[place])
}

/// The censoring curve of training folds; beyond its last time it keeps its value.
pub(super) fn censoring_of(training: &Outcomes) -> Result<CensoringCurve, MetricError> {
    Ok(BrierConvention::Mlr3proba.censoring_curve(training)?.with_beyond(BeyondLastTime::Hold))
}

/// The Kaplan-Meier prediction of training folds for `n` samples.
pub(super) fn baseline_of(training: &Outcomes, grid: &[f64], n: usize) -> Result<SurvivalCurves, MetricError> {
    kaplan_meier_curves(&KaplanMeier::fit(training)?, grid, n)
}

/// The different event times, ascending.
pub(super) fn event_times(outcomes: &Outcomes) -> Vec<f64> {
    let events = outcomes.time().iter().zip(outcomes.event()).filter(|(_, event)| **event);
    let mut times: Vec<f64> = events.map(|(time, _)| *time).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}
