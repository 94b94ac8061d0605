//! AUC^td by every convention: the curve, and its mean where the package has one.

use fairtte_metrics::estimators::{BeyondLastTime, KaplanMeier};
use fairtte_metrics::rank::{AucConvention, AucTd, auc_td_with};
use fairtte_metrics::{CensoringCurve, CensoringTies, MetricError, Outcomes, Reading, SurvivalCurves};
use serde_json::Value;

use super::Item;
use super::definitions::{Auc, Beyond};
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
            let definition = definition(item, AucConvention::ScikitSurvival, Beyond::Unknown);
            with_mean(item, tally, (&found, &definition), "mean", TOLERANCE)
        }
        ("torchsurv", "Auc(cumulative, IPCW self) + integral") => {
            let (outcomes, curves) = as_float32(item);
            let censoring = item.case.censoring(item.record.censoring, &outcomes).with_beyond(BeyondLastTime::Hold);
            let convention = AucConvention::ScikitSurvival;
            let found = auc_td_with(&outcomes, &curves, &censoring, Reading::Step, &cast_all(tau), convention);
            let definition = Auc {
                convention,
                outcomes: &outcomes,
                curves: &curves,
                sample: if item.record.censoring == "self" { &outcomes } else { &item.case.train },
                beyond: Beyond::Held,
            };
            with_mean(item, tally, (&found, &definition), "integral", FLOAT32_TOLERANCE)
        }
        ("SurvivalEVAL", "auc(method=Uno) per tau") => {
            let found = auc(item, &own().with_beyond(BeyondLastTime::LinearToZero), tau, AucConvention::SurvivalEval);
            let definition = definition(item, AucConvention::SurvivalEval, Beyond::Line);
            curve(item, tally, (&found, &definition), item.record.value, TOLERANCE)
        }
        ("SurvivalEVAL", "auc(method=Naive) per tau") => {
            // No weights are used, so any curve will do.
            let censoring = CensoringCurve::fit(item.outcomes, CensoringTies::EventsFirst).unwrap();
            let found = auc(item, &censoring, tau, AucConvention::SurvivalEvalNaive);
            let definition = definition(item, AucConvention::SurvivalEvalNaive, Beyond::Unknown);
            curve(item, tally, (&found, &definition), item.record.value, TOLERANCE)
        }
        ("R", "riskRegression::Score(cens.model='km')") => {
            let definition = definition(item, AucConvention::RiskRegression, Beyond::Unknown);
            let Some(value) = item.record.value else {
                return refused(tally, &auc(item, &own(), tau, AucConvention::RiskRegression), &definition);
            };
            let found = auc(item, &own(), &numbers(&value["tau_auc"]), AucConvention::RiskRegression);
            curve(item, tally, (&found, &definition), Some(&value["auc"]), TOLERANCE)
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

fn definition<'a>(item: &'a Item<'_>, convention: AucConvention, beyond: Beyond) -> Auc<'a> {
    let sample = if item.record.censoring == "train" { &item.case.train } else { item.outcomes };
    Auc { convention, outcomes: item.outcomes, curves: &item.subset.curves, sample, beyond }
}

/// Compares the values time by time. Where the package has none, ours is none or that of the
/// definition.
fn curve(
    item: &Item<'_>,
    tally: &mut Tally,
    (found, definition): (&Result<AucTd, MetricError>, &Auc<'_>),
    expected: Option<&Value>,
    tolerance: f64,
) -> Verdict {
    let Some(expected) = expected.filter(|_| item.record.error.is_none()) else {
        return refused(tally, found, definition);
    };
    let expected = optional_numbers(expected);
    let found = match found {
        Ok(found) => found,
        // The package was called without a time and gave no value.
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
            (Ok(found), None) => as_defined(tally, *time, *found, definition),
            (found, expected) => tally.mismatch(&format!("at {time} found {found:?}, expected {expected:?}")),
        }
    }
    if n_compared > 0 { Verdict::Compared } else { Verdict::Refused(reasons(found)) }
}

/// As [`curve`], and the mean weighted by the drop of survival.
fn with_mean(
    item: &Item<'_>,
    tally: &mut Tally,
    (found, definition): (&Result<AucTd, MetricError>, &Auc<'_>),
    key: &str,
    tolerance: f64,
) -> Verdict {
    let Some(value) = item.record.value else { return refused(tally, found, definition) };
    let verdict = curve(item, tally, (found, definition), Some(&value["auc"]), tolerance);
    let Ok(found) = found else { return verdict };
    let mean = found.drop_weighted_mean(&KaplanMeier::fit(definition.outcomes).unwrap());
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

fn as_defined(tally: &mut Tally, time: f64, found: f64, definition: &Auc<'_>) {
    // NaN, which is never equal to a number, where the definition gives none.
    let expected = definition.at(time).unwrap_or(f64::NAN);
    tally.at(&format!("definition at {time}"), found, expected, TOLERANCE);
}

fn refused(tally: &mut Tally, found: &Result<AucTd, MetricError>, definition: &Auc<'_>) -> Verdict {
    for (time, value) in found.iter().flat_map(|found| found.times.iter().zip(&found.values)) {
        if let Ok(value) = value {
            as_defined(tally, *time, *value, definition);
        }
    }
    Verdict::Refused(match found {
        Ok(found) if found.n_undefined() == 0 => "the value of the definition at every time".to_owned(),
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
