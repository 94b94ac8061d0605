//! Brier score and negative binomial log-likelihood over time, by the convention of each package.

use fairtte_metrics::estimators::BeyondLastTime;
use fairtte_metrics::scores::{
    BrierConvention, IntegrationRule, brier_score_by, integrated_brier_score_by, integrated_nbll, nbll,
    survival_evaluator_curves,
};
use fairtte_metrics::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};
use serde_json::Value;

use super::Item;
use super::definitions::Brier;
use crate::records::optional_numbers;
use crate::tally::{Tally, Verdict};

const TOLERANCE: f64 = 1e-12;
/// torchsurv computes in float32.
const FLOAT32_TOLERANCE: f64 = 2e-5;

/// Claims every record of a Brier score or an nbll.
pub fn compare(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    use BrierConvention as B;
    let tau = &item.subset.tau;
    match (item.record.peer, item.record.function) {
        ("scikit-survival", "brier_score") => Call::new(item, B::ScikitSurvival).curve(tally),
        ("scikit-survival", "integrated_brier_score") => {
            Call::new(item, B::ScikitSurvival).integral(tally, IntegrationRule::Trapezoid, tau)
        }
        ("pycox", "EvalSurv.brier_score") => Call::new(item, B::Pycox).curve(tally),
        ("pycox", "EvalSurv.integrated_brier_score") => {
            Call::new(item, B::Pycox).integral(tally, IntegrationRule::Simpson, &pycox_times(item))
        }
        ("pycox", "EvalSurv.nbll") => Call::new(item, B::Pycox).log_loss().curve(tally),
        ("pycox", "EvalSurv.integrated_nbll") => {
            Call::new(item, B::Pycox).log_loss().integral(tally, IntegrationRule::Simpson, &pycox_times(item))
        }
        ("SurvivalEVAL", "brier_multiple_points") => Call::new(item, B::SurvivalEval).curve(tally),
        ("SurvivalEVAL", "brier_multiple_points(ipcw=False)") => {
            Call::new(item, B::SurvivalEvalUnweighted).curve(tally)
        }
        ("SurvivalEVAL", "_integrate_brier_scores(trapz)") => {
            Call::new(item, B::SurvivalEval).integral(tally, IntegrationRule::Trapezoid, tau)
        }
        ("SurvivalEVAL", "SurvivalEvaluator.integrated_brier_score") => survival_evaluator(item, tally),
        ("torchsurv", function) if function.starts_with("BrierScore") => torchsurv(item, tally),
        ("R", function) if function.starts_with("riskRegression::Score") => risk_regression(item, tally),
        _ => Verdict::NotMine,
    }
}

/// What to compute for a record, with everything but the times.
struct Call<'a> {
    item: &'a Item<'a>,
    convention: BrierConvention,
    log_loss: bool,
    curves: &'a SurvivalCurves,
    censoring: CensoringCurve,
    /// G keeps its last value.
    hold: bool,
}

impl<'a> Call<'a> {
    fn new(item: &'a Item<'a>, convention: BrierConvention) -> Self {
        let sample = if item.record.censoring == "train" { &item.case.train } else { item.outcomes };
        let censoring = convention.censoring_curve(sample).unwrap();
        Self { item, convention, log_loss: false, curves: &item.subset.curves, censoring, hold: false }
    }

    fn log_loss(self) -> Self {
        Self { log_loss: true, ..self }
    }

    fn at(&self, times: &[f64]) -> Result<Vec<f64>, MetricError> {
        let (outcomes, curves, censoring) = (self.item.outcomes, self.curves, &self.censoring);
        if self.log_loss {
            return Ok(nbll(outcomes, curves, censoring, Reading::Step, times)?.values);
        }
        Ok(brier_score_by(self.convention, outcomes, curves, censoring, Reading::Step, times)?.values)
    }

    fn over(&self, rule: IntegrationRule, times: &[f64]) -> Result<f64, MetricError> {
        let (outcomes, curves, censoring) = (self.item.outcomes, self.curves, &self.censoring);
        if self.log_loss {
            return integrated_nbll(outcomes, curves, censoring, Reading::Step, rule, times);
        }
        integrated_brier_score_by(self.convention, rule, outcomes, curves, censoring, Reading::Step, times)
    }

    fn stops_in_silence(&self, error: &MetricError) -> bool {
        self.convention == BrierConvention::Pycox && matches!(error, MetricError::ZeroCensoringSurvival { .. })
    }

    fn curve(&self, tally: &mut Tally) -> Verdict {
        self.curve_against(tally, self.item.record.value, &self.item.subset.tau, TOLERANCE)
    }

    /// Compares time by time, because a package may have a number at some times only.
    fn curve_against(&self, tally: &mut Tally, value: Option<&Value>, tau: &[f64], tolerance: f64) -> Verdict {
        let Some(expected) = value.map(optional_numbers).filter(|_| !tau.is_empty()) else {
            return self.refused_at(tally, tau);
        };
        if expected.len() != tau.len() {
            tally.mismatch(&format!("{} values at {} times", expected.len(), tau.len()));
        }
        let mut verdict = Verdict::Compared;
        for (&t, expected) in tau.iter().zip(&expected) {
            match (self.at(&[t]), expected) {
                (Ok(found), Some(expected)) => tally.close(found[0], *expected, tolerance),
                (Err(error), Some(_)) if self.stops_in_silence(&error) => verdict = silent_stop(),
                (Err(error), Some(_)) => tally.mismatch(&format!("at {t}: {error}")),
                (_, None) => verdict = self.refused_at(tally, &[t]),
            }
        }
        if let (Ok(found), Verdict::Compared) = (self.at(tau), &verdict) {
            let expected: Vec<f64> = expected.into_iter().flatten().collect();
            tally.all_close("all times at once", &found, &expected, tolerance);
        }
        verdict
    }

    /// The same from the definition.
    fn defined(&self) -> Brier<'_> {
        Brier {
            convention: self.convention,
            log_loss: self.log_loss,
            outcomes: self.item.outcomes,
            curves: self.curves,
            sample: censoring_sample(self.item),
            hold: self.hold,
        }
    }

    /// Where the other package has no number, ours is none or that of the definition.
    fn refused_at(&self, tally: &mut Tally, times: &[f64]) -> Verdict {
        let mut all_defined = true;
        for &t in times {
            match self.at(&[t]) {
                Ok(found) => {
                    tally.at(&format!("definition at {t}"), found[0], defined(self.defined().at(t)), TOLERANCE);
                }
                Err(_) => all_defined = false,
            }
        }
        let ours = self.at(times);
        if ours.is_ok() && !all_defined {
            tally.mismatch("a value at all times at once, but not at each of them");
        }
        refused_as_defined(self.item, &ours)
    }

    fn integral(&self, tally: &mut Tally, rule: IntegrationRule, times: &[f64]) -> Verdict {
        let (expected, found) = (self.item.record.value.and_then(Value::as_f64), self.over(rule, times));
        match (expected, &found) {
            (None, Ok(value)) if rule == IntegrationRule::Trapezoid => {
                tally.at("definition", *value, defined(self.defined().mean(times)), TOLERANCE);
                refused_as_defined(self.item, &found)
            }
            _ => self.settle(tally, expected, &found, TOLERANCE),
        }
    }

    fn settle(
        &self,
        tally: &mut Tally,
        expected: Option<f64>,
        found: &Result<f64, MetricError>,
        tolerance: f64,
    ) -> Verdict {
        let Some(expected) = expected else {
            return refused(self.item, found);
        };
        match found {
            Ok(found) => tally.close(*found, expected, tolerance),
            Err(error) if self.stops_in_silence(error) => return silent_stop(),
            Err(error) => tally.mismatch(&format!("expected {expected}: {error}")),
        }
        Verdict::Compared
    }
}

fn silent_stop() -> Verdict {
    let why = "pycox divides by G = 0: its parallel loop stops at that sample and drops the error; ours is an error";
    Verdict::Skipped(why.into())
}

/// NaN, which is never equal to a number of ours, where the definition gives none.
fn defined(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

/// The other package's reason, and the error that ours is in its place. If ours is a number it is unchecked, so it is
/// not counted as refused.
pub fn refused<T>(item: &Item<'_>, ours: &Result<T, MetricError>) -> Verdict {
    match ours {
        Ok(_) => super::unchecked(item),
        Err(_) => refused_as_defined(item, ours),
    }
}

/// As [`refused`]; a number of ours was compared with the definition.
fn refused_as_defined<T>(item: &Item<'_>, ours: &Result<T, MetricError>) -> Verdict {
    let theirs = their_reason(item);
    Verdict::Refused(match ours {
        Ok(_) => format!("the number of the definition ({theirs})"),
        Err(error) => {
            let name = format!("{error:?}");
            let name = name.split([' ', '{', '(']).next().unwrap_or_default();
            format!("error {name} ({theirs})")
        }
    })
}

fn their_reason(item: &Item<'_>) -> String {
    let theirs = item.record.error.unwrap_or("NaN, infinity or no number");
    theirs.lines().next().unwrap_or_default().chars().take(60).collect()
}

/// Evaluation times of a pycox record: tau, or 100 times as `numpy.linspace` spaces them.
fn pycox_times(item: &Item<'_>) -> Vec<f64> {
    if !item.record.args["time_grid"].as_str().is_some_and(|grid| grid.starts_with("linspace")) {
        return item.subset.tau.clone();
    }
    let fold = |start: f64, pick: fn(f64, f64) -> f64| item.outcomes.time().iter().copied().fold(start, pick);
    let (first, last) = (fold(f64::INFINITY, f64::min), fold(0.0, f64::max));
    let step = (last - first) / 99.0;
    let mut times: Vec<f64> = (0..100).map(|k| f64::from(k) * step + first).collect();
    times[99] = last;
    times
}

fn survival_evaluator(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let tau = &item.subset.tau;
    let curves = match survival_evaluator_curves(&item.subset.curves, tau) {
        Ok(curves) => curves,
        Err(error) => return refused(item, &Err::<f64, _>(error)),
    };
    let convention = BrierConvention::survival_evaluator(item.outcomes);
    Call { curves: &curves, ..Call::new(item, convention) }.integral(tally, IntegrationRule::Trapezoid, tau)
}

fn torchsurv(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let tau = &item.subset.tau;
    let call = Call::new(item, BrierConvention::ScikitSurvival);
    let call = Call { censoring: call.censoring.clone().with_beyond(BeyondLastTime::Hold), hold: true, ..call };
    let Some(value) = item.record.value else {
        return call.refused_at(tally, tau);
    };
    let verdict = call.curve_against(tally, Some(&value["bs"]), tau, FLOAT32_TOLERANCE);
    let integral = call.over(IntegrationRule::Trapezoid, tau);
    match call.settle(tally, value["ibs"].as_f64(), &integral, FLOAT32_TOLERANCE) {
        Verdict::Compared => verdict,
        other => other,
    }
}

/// Its curve, and its `IBS` at every time: the steps from 0 up to that time.
fn risk_regression(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let call = Call::new(item, BrierConvention::RiskRegression);
    let Some(value) = item.record.value else {
        return call.refused_at(tally, &item.subset.tau);
    };
    let tau: Vec<f64> = optional_numbers(&value["tau_brier"]).into_iter().flatten().collect();
    let verdict = call.curve_against(tally, Some(&value["brier"]), &tau, TOLERANCE);
    for (k, expected) in optional_numbers(&value["ibs"]).into_iter().enumerate().take(tau.len()) {
        // Up to time 0 there is nothing to average: R says 0, ours is an error.
        if let (Some(expected), true) = (expected, tau[k] > 0.0) {
            let found = call.over(IntegrationRule::LeftStepsFromZero, &tau[..=k]);
            call.settle(tally, Some(expected), &found, TOLERANCE);
        }
    }
    verdict
}

/// The sample a record's censoring curve is fitted on.
pub fn censoring_sample<'a>(item: &'a Item<'_>) -> &'a Outcomes {
    if item.record.censoring == "train" { &item.case.train } else { item.outcomes }
}
