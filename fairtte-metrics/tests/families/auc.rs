//! AUC^td by every convention: the curve, and its mean where the package has one.

use fairtte_metrics::{
    AucConvention, AucTd, BeyondLastTime, CensoringCurve, CensoringTies, KaplanMeier, MetricError, Outcomes, Reading,
    SurvivalCurves, auc_td_with,
};
use serde_json::Value;

use super::Item;
use crate::records::{numbers, optional_numbers};
use crate::tally::{Tally, Verdict};

const TOLERANCE: f64 = 1e-12;
/// torchsurv computes in float32.
const FLOAT32_TOLERANCE: f64 = 2e-5;

pub fn compare(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let tau = &item.subset.tau;
    let own = || item.case.censoring(item.record.censoring, item.outcomes);
    match (item.record.peer, item.record.function) {
        ("scikit-survival", "cumulative_dynamic_auc") => {
            let found = auc(item, &own(), tau, AucConvention::ScikitSurvival);
            with_mean(item, tally, (&found, item.outcomes), "mean", TOLERANCE)
        }
        ("torchsurv", "Auc(cumulative, IPCW self) + integral") => {
            let (outcomes, curves) = as_float32(item);
            let censoring = item.case.censoring(item.record.censoring, &outcomes).with_beyond(BeyondLastTime::Hold);
            let convention = AucConvention::ScikitSurvival;
            let found = auc_td_with(&outcomes, &curves, &censoring, Reading::Step, &cast_all(tau), convention);
            with_mean(item, tally, (&found, &outcomes), "integral", FLOAT32_TOLERANCE)
        }
        ("SurvivalEVAL", "auc(method=Uno) per tau") => {
            let found = auc(item, &own().with_beyond(BeyondLastTime::LinearToZero), tau, AucConvention::SurvivalEval);
            curve(item, tally, &found, item.record.value, TOLERANCE)
        }
        ("SurvivalEVAL", "auc(method=Naive) per tau") => {
            // No weights are used, so any curve will do.
            let censoring = CensoringCurve::fit(item.outcomes, CensoringTies::EventsFirst).unwrap();
            let found = auc(item, &censoring, tau, AucConvention::SurvivalEvalNaive);
            curve(item, tally, &found, item.record.value, TOLERANCE)
        }
        ("R", "riskRegression::Score(cens.model='km')") => {
            let Some(value) = item.record.value else {
                return refused(&auc(item, &own(), tau, AucConvention::RiskRegression));
            };
            let found = auc(item, &own(), &numbers(&value["tau_auc"]), AucConvention::RiskRegression);
            curve(item, tally, &found, Some(&value["auc"]), TOLERANCE)
        }
        _ => Verdict::NotMine,
    }
}

fn auc(
    item: &Item<'_>,
    censoring: &CensoringCurve,
    times: &[f64],
    convention: AucConvention,
) -> Result<AucTd, MetricError> {
    auc_td_with(item.outcomes, &item.subset.curves, censoring, Reading::Step, times, convention)
}

/// Compares the values time by time. Where the package has none, we must have none either.
fn curve(
    item: &Item<'_>,
    tally: &mut Tally,
    found: &Result<AucTd, MetricError>,
    expected: Option<&Value>,
    tolerance: f64,
) -> Verdict {
    let Some(expected) = expected.filter(|_| item.record.error.is_none()) else { return refused(found) };
    let expected = optional_numbers(expected);
    let found = match found {
        Ok(found) => found,
        // The package was asked at no time and gave no value.
        Err(error @ MetricError::EmptyGrid) if expected.is_empty() => return Verdict::Refused(error.to_string()),
        Err(error) => {
            tally.mismatch(&error.to_string());
            return Verdict::Compared;
        }
    };
    if found.values.len() != expected.len() {
        tally.mismatch(&format!("{} values, expected {}", found.values.len(), expected.len()));
    }
    let mut n_compared = 0;
    for ((time, found), expected) in found.times.iter().zip(&found.values).zip(expected) {
        match (found, expected) {
            (Ok(found), Some(expected)) => {
                tally.at(&format!("at {time}"), *found, expected, tolerance);
                n_compared += 1;
            }
            (Err(_), None) => {}
            (found, expected) => tally.mismatch(&format!("at {time} found {found:?}, expected {expected:?}")),
        }
    }
    if n_compared > 0 { Verdict::Compared } else { Verdict::Refused(reasons(found)) }
}

/// As [`curve`], and the mean weighted by the drop of survival.
fn with_mean(
    item: &Item<'_>,
    tally: &mut Tally,
    (found, outcomes): (&Result<AucTd, MetricError>, &Outcomes),
    key: &str,
    tolerance: f64,
) -> Verdict {
    let Some(value) = item.record.value else { return refused(found) };
    let verdict = curve(item, tally, found, Some(&value["auc"]), tolerance);
    let Ok(found) = found else { return verdict };
    let mean = found.drop_weighted_mean(&KaplanMeier::fit(outcomes).unwrap());
    match (value[key].as_f64(), mean) {
        (Some(expected), Ok(mean)) => tally.at(key, mean, expected, tolerance),
        // torchsurv returns 0 if survival never drops.
        (Some(expected), Err(MetricError::NoSurvivalDrop { .. })) if expected <= 0.0 => {}
        (Some(expected), Err(error)) => tally.mismatch(&format!("{key}: {error}, expected {expected}")),
        // scikit-survival: an undefined time makes the mean NaN. Ours is that of the times at which survival drops.
        (None, _) if found.n_undefined() > 0 => {}
        (None, mean) => tally.mismatch(&format!("{key} is {mean:?}, expected none")),
    }
    verdict
}

fn refused(found: &Result<AucTd, MetricError>) -> Verdict {
    Verdict::Refused(match found {
        Ok(found) if found.n_undefined() == 0 => "a value at every time".to_owned(),
        Ok(found) => reasons(found),
        Err(error) => error.to_string(),
    })
}

/// The kinds of reasons for which times have no value, and whether others have one.
fn reasons(found: &AucTd) -> String {
    let kind = |error: &MetricError| format!("{error:?}").split([' ', '(']).next().unwrap_or_default().to_owned();
    let mut kinds: Vec<String> = found.values.iter().filter_map(|value| value.as_ref().err().map(kind)).collect();
    kinds.sort();
    kinds.dedup();
    let others = if found.n_undefined() < found.values.len() { ", a value at the other times" } else { "" };
    format!("{}{others}", kinds.join(" or "))
}

#[expect(clippy::cast_possible_truncation, reason = "the loss of digits is what is reproduced")]
fn cast(value: f64) -> f64 {
    f64::from(value as f32)
}

fn cast_all(values: &[f64]) -> Vec<f64> {
    values.iter().map(|&value| cast(value)).collect()
}

/// What torchsurv sees: it casts times and estimates (1 - S) to float32 before it compares them.
fn as_float32(item: &Item<'_>) -> (Outcomes, SurvivalCurves) {
    let (outcomes, curves) = (item.outcomes, &item.subset.curves);
    let survival = curves.survival().mapv(|survival| 1.0 - cast(1.0 - survival));
    (
        Outcomes::new(cast_all(outcomes.time()), outcomes.event().to_vec()).unwrap(),
        SurvivalCurves::new(cast_all(curves.grid()), survival).unwrap(),
    )
}
