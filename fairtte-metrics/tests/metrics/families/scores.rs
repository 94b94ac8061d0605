//! Integrated and log scores of `mlr3proba` and of Sonabend et al., recorded as formulas.

use fairtte_metrics::scores::{
    BrierConvention, EventDensity, IntegratedScoreRule, IntegrationRule, ScoreWeights, SnlForm, TimeLoss,
    negative_log_likelihood, rcll, snl, unique_times,
};
use fairtte_metrics::{MetricError, Reading};
use serde_json::Value;

use super::Item;
use super::brier::{censoring_sample, refused};
use crate::tally::{Tally, Verdict};

const TOLERANCE: f64 = 1e-12;

/// Claims the `formula:` records of scoring rules; calibration belongs to another family.
pub fn compare(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let found = match (item.record.peer, item.record.function) {
        (peer, "integrated") if peer.starts_with("formula:mlr3proba") => match integrated(item) {
            Some(found) => found,
            None => return Verdict::NotMine,
        },
        (peer, function) if peer.starts_with("formula:") => match log_score(item, peer, function) {
            Some(found) => found,
            None => return Verdict::NotMine,
        },
        _ => return Verdict::NotMine,
    };
    match (found, item.record.value.and_then(Value::as_f64)) {
        (found, None) => refused(item, &found),
        (Ok(found), Some(expected)) => {
            tally.close(found, expected, TOLERANCE);
            Verdict::Compared
        }
        (Err(MetricError::ZeroCensoringSurvival { .. }), Some(_)) if item.record.peer.contains("as documented") => {
            Verdict::Skipped("divides by a floor where G = 0 at an event; no weight exists there, ours says so".into())
        }
        (Err(error), Some(expected)) => {
            tally.mismatch(&format!("expected {expected}: {error}"));
            Verdict::Compared
        }
    }
}

/// `None` for a setting that this crate does not offer.
fn integrated(item: &Item<'_>) -> Option<Result<f64, MetricError>> {
    let args = item.record.args;
    let loss = match args["kind"].as_str()? {
        "graf" => TimeLoss::Brier,
        "logloss" => TimeLoss::Log,
        "schmid" => TimeLoss::Absolute,
        _ => return None,
    };
    let weights = if args["proper"].as_bool()? { ScoreWeights::PerSubject } else { ScoreWeights::PerTime };
    let average = match args["method"].as_u64()? {
        1 => IntegrationRule::PlainMean,
        2 => IntegrationRule::Trapezoid,
        _ => return None,
    };
    let times = match args["times"].as_str()? {
        "tau" => item.subset.tau.clone(),
        "unique test times" => unique_times(item.outcomes),
        _ => return None,
    };
    let censoring = BrierConvention::Mlr3proba.censoring_curve(censoring_sample(item)).unwrap();
    let rule = IntegratedScoreRule::new(loss, weights).averaged_by(average);
    let found = rule.score(item.outcomes, &item.subset.curves, &censoring, Reading::Step, &times);
    Some(found.map(|score| score.value))
}

/// `None` for a record of something else.
fn log_score(item: &Item<'_>, peer: &str, function: &str) -> Option<Result<f64, MetricError>> {
    let (outcomes, curves) = (item.outcomes, &item.subset.curves);
    let censoring = BrierConvention::Mlr3proba.censoring_curve(censoring_sample(item)).unwrap();
    let snl = |density, form| snl(outcomes, curves, &censoring, density, form);
    let found = match (peer, function) {
        ("formula:mlr3proba@0.8.9", "surv.rcll: linear interpolation density") => {
            rcll(outcomes, curves, EventDensity::LinearDensity)
        }
        ("formula:mlr3proba@0.8.9", "surv.logloss: linear interpolation density, all rows") => {
            negative_log_likelihood(outcomes, curves, EventDensity::LinearDensity)
        }
        ("formula:mlr3proba@0.8.0", "surv.rcll: pmf by exact time match else eps") => {
            rcll(outcomes, curves, EventDensity::ExactMass)
        }
        ("formula:discrete-time RCLL", _) => rcll(outcomes, curves, EventDensity::IntervalMass),
        ("formula:mlr3proba@0.8.0", function) if function.starts_with("surv.logloss(IPCW=TRUE)") => {
            snl(EventDensity::ExactMass, SnlForm::Mlr3proba)
        }
        ("formula:mlr3proba@0.8.0", function) if function.starts_with("same with f") => {
            snl(EventDensity::IntervalMass, SnlForm::Mlr3proba)
        }
        ("formula:Sonabend SNL/RNLL as documented", "same with interval pmf") => {
            snl(EventDensity::IntervalMass, SnlForm::Documented)
        }
        ("formula:Sonabend SNL/RNLL as documented", _) => snl(EventDensity::ExactMass, SnlForm::Documented),
        _ => return None,
    };
    Some(found.map(|score| score.value))
}
