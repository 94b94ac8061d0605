//! Concordances: Harrell, Uno, and C^td by all conventions.

use fairtte_metrics::estimators::BeyondLastTime;
use fairtte_metrics::rank::{
    ConcordanceTdSums, ConventionTd, HarrellC, TieTest, TiedPairs, TiedPredictions, UnoConvention, concordance_td,
    concordance_td_ipcw, concordance_td_with, harrell_concordance, harrell_variance, uno_concordance,
};
use fairtte_metrics::{CensoringCurve, MetricError, Outcomes, Reading, Risk, SurvivalCurves};
use serde_json::Value;

use super::Item;
use crate::records::numbers;
use crate::tally::{Tally, Verdict};

const TOLERANCE: f64 = 1e-12;
/// torchsurv computes in float32.
const FLOAT32_TOLERANCE: f64 = 2e-5;

/// A value, or numerator and denominator with it.
type Found = Result<(f64, Option<(f64, f64)>), MetricError>;

pub fn compare(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let args = item.record.args;
    let step = Reading::Step;
    match (item.record.peer, item.record.function) {
        ("pycox", "EvalSurv.concordance_td") => match (args["method"].as_str(), args["steps"].as_str()) {
            (Some("antolini"), Some("post")) => {
                let found = antolini_post(item, tally);
                compare_value(item, tally, TOLERANCE, found)
            }
            (Some(method), Some(steps)) => {
                let convention = match method {
                    "antolini" => ConventionTd::Antolini(TiedPredictions::Strict),
                    "adj_antolini" => ConventionTd::Adjusted,
                    _ => return Verdict::NotMine,
                };
                let reading = match steps {
                    "post" => step,
                    "pre" => Reading::NextGridPoint,
                    _ => return Verdict::NotMine,
                };
                compare_value(item, tally, TOLERANCE, with(item, reading, convention))
            }
            _ => Verdict::NotMine,
        },
        ("SurvivalEVAL", "SurvivalEvaluator.concordance_time_dependent") => match tied_pairs(args) {
            Some(ties) => {
                let found = with(item, Reading::LinearFromOne, ConventionTd::SurvivalEval(ties));
                compare_value(item, tally, TOLERANCE, found)
            }
            None => Verdict::NotMine,
        },
        ("SurvivalEVAL", "concordance_time_dependent") => match (tied_pairs(args), args["method"].as_str()) {
            (Some(ties), Some("Antolini")) => {
                compare_value(item, tally, TOLERANCE, with(item, step, ConventionTd::SurvivalEval(ties)))
            }
            (Some(ties), Some("IPCW")) => {
                let found = concordance_td_ipcw(
                    item.outcomes,
                    &item.subset.curves,
                    step,
                    &line_to_zero(item),
                    args["tau"].as_f64(),
                    ties,
                );
                compare_value(item, tally, TOLERANCE, found.map(|found| sums(&found)))
            }
            _ => Verdict::NotMine,
        },
        ("torchsurv", "ConcordanceIndex(n x n estimate)") => {
            let found = as_float32(item).and_then(|(outcomes, curves, _)| {
                let convention = ConventionTd::SurvivalEval(TiedPairs::Predictions);
                concordance_td_with(&outcomes, &curves, step, convention)
            });
            compare_value(item, tally, FLOAT32_TOLERANCE, found.map(|found| (found.value, None)))
        }
        _ if item.subset.risk.is_empty() => Verdict::NotMine,
        _ => compare_by_risk(item, tally),
    }
}

fn compare_by_risk(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let args = item.record.args;
    let risk = Risk::new(item.subset.risk.clone()).unwrap();
    let harrell = |test, ties| harrell_concordance(item.outcomes, &risk, test, ties);
    let uno = |censoring: &CensoringCurve, convention| {
        uno_concordance(item.outcomes, &risk, censoring, args["tau"].as_f64(), convention)
    };
    match (item.record.peer, item.record.function) {
        ("scikit-survival", "concordance_index_censored") => {
            let found = harrell(TieTest::Near, TiedPairs::Predictions);
            if let (Ok(found), Some(expected)) = (&found, item.record.value) {
                let counts = ["concordant", "discordant", "tied_risk", "tied_time"];
                let expected = counts.map(|key| expected[key].as_f64().unwrap());
                let counts =
                    [found.n_concordant, found.n_discordant, found.n_tied_predictions, found.n_censored_at_event];
                tally.all_close("counts", &counts.map(|count| count as f64), &expected, 0.0);
            }
            compare_value(item, tally, TOLERANCE, found.map(|found| (found.value, None)))
        }
        ("lifelines", "utils.concordance_index") => {
            let found = harrell(TieTest::Exact, TiedPairs::Predictions);
            compare_value(item, tally, TOLERANCE, found.map(|found| (found.value, None)))
        }
        ("torchsurv", "ConcordanceIndex") => {
            let found = as_float32(item).and_then(|(outcomes, _, risk)| {
                harrell_concordance(&outcomes, &risk, TieTest::Near, TiedPairs::Predictions)
            });
            compare_value(item, tally, FLOAT32_TOLERANCE, found.map(|found| (found.value, None)))
        }
        ("SurvivalEVAL", "concordance") => match (args["method"].as_str(), tied_pairs(args)) {
            (Some("Harrell"), Some(ties)) => {
                let share = |found: HarrellC| found.share(ties).map(|share| (found.value, Some(share)));
                compare_value(item, tally, TOLERANCE, harrell(TieTest::Near, ties).and_then(share))
            }
            (Some("Uno"), Some(TiedPairs::Predictions)) => {
                let found = uno(&line_to_zero(item), UnoConvention::SurvivalEval);
                let share = |found: fairtte_metrics::rank::UnoC| {
                    let score = found.weighted_concordant + 0.5 * found.weighted_tied;
                    (found.value, Some((score, found.weighted_comparable())))
                };
                compare_value(item, tally, TOLERANCE, found.map(share))
            }
            _ => Verdict::NotMine,
        },
        ("scikit-survival", "concordance_index_ipcw") => {
            let censoring = item.case.censoring(item.record.censoring, item.outcomes);
            let found = uno(&censoring, UnoConvention::ScikitSurvival);
            compare_value(item, tally, TOLERANCE, found.map(|found| (found.value, None)))
        }
        ("R", "survival::concordance(Surv~risk, reverse=TRUE, timewt='n/G2')") => {
            let censoring = item.case.censoring(item.record.censoring, item.outcomes);
            compare_value(item, tally, TOLERANCE, uno(&censoring, UnoConvention::R).map(|found| (found.value, None)))
        }
        ("R", "survival::concordance(Surv~risk, reverse=TRUE)") => {
            let found = harrell(TieTest::Exact, TiedPairs::Predictions);
            if let (Ok(found), Some(expected)) = (&found, item.record.value)
                && let Some(variance) = expected["var"].as_f64()
            {
                let counts = [
                    found.n_concordant,
                    found.n_discordant,
                    found.n_tied_predictions,
                    found.n_tied_events - found.n_tied_events_and_predictions,
                    found.n_tied_events_and_predictions,
                ];
                let expected_counts = numbers(&expected["counts"]);
                tally.all_close("counts", &counts.map(|count| count as f64), &expected_counts, 0.0);
                tally.at(
                    "variance",
                    harrell_variance(item.outcomes, &risk, TieTest::Exact).unwrap(),
                    variance,
                    TOLERANCE,
                );
            }
            compare_value(item, tally, TOLERANCE, found.map(|found| (found.value, None)))
        }
        _ => Verdict::NotMine,
    }
}

/// Compares a recorded number, or `cindex` with `num` and `den`, with ours.
fn compare_value(item: &Item<'_>, tally: &mut Tally, tolerance: f64, found: Found) -> Verdict {
    let value = item.record.value;
    let number = |key: &str| value.and_then(|value| value[key].as_f64());
    let Some(expected) = value.and_then(Value::as_f64).or_else(|| number("cindex")) else {
        return match found {
            Ok(_) => super::unchecked(item),
            // Numbers differ from record to record; the kind of error is what counts.
            Err(error) => {
                Verdict::Refused(format!("{error:?}").split([' ', '(']).next().unwrap_or_default().to_owned())
            }
        };
    };
    match found {
        Ok((found, share)) => {
            tally.at("value", found, expected, tolerance);
            if let (Some((score, total)), Some(num), Some(den)) = (share, number("num"), number("den")) {
                tally.at("numerator", score, num, tolerance);
                tally.at("denominator", total, den, tolerance);
            }
        }
        Err(error) => tally.mismatch(&format!("{error}, expected {expected}")),
    }
    Verdict::Compared
}

fn with(item: &Item<'_>, reading: Reading, convention: ConventionTd) -> Found {
    concordance_td_with(item.outcomes, &item.subset.curves, reading, convention).map(|found| match convention {
        ConventionTd::SurvivalEval(_) => sums(&found),
        _ => (found.value, None),
    })
}

fn sums(found: &ConcordanceTdSums) -> (f64, Option<(f64, f64)>) {
    (found.value, Some((found.numerator, found.denominator)))
}

/// The value to report, and the other implementation of the same convention beside it.
fn antolini_post(item: &Item<'_>, tally: &mut Tally) -> Found {
    let (outcomes, curves) = (item.outcomes, &item.subset.curves);
    let found = concordance_td(outcomes, curves, Reading::Step, TiedPredictions::Strict);
    let convention = ConventionTd::Antolini(TiedPredictions::Strict);
    let other = concordance_td_with(outcomes, curves, Reading::Step, convention);
    match (&found, other) {
        (Ok(found), Ok(other)) => tally.at("both implementations", found.value, other.value, 0.0),
        (Err(found), Err(other)) if *found == other => {}
        (found, other) => tally.mismatch(&format!("{found:?} here, {other:?} there")),
    }
    found.map(|found| (found.value, None))
}

/// G as `SurvivalEVAL` reads it.
fn line_to_zero(item: &Item<'_>) -> CensoringCurve {
    item.case.censoring(item.record.censoring, item.outcomes).with_beyond(BeyondLastTime::LinearToZero)
}

fn tied_pairs(args: &Value) -> Option<TiedPairs> {
    match args["ties"].as_str()? {
        "None" => Some(TiedPairs::Dropped),
        "Risk" => Some(TiedPairs::Predictions),
        "Time" => Some(TiedPairs::Times),
        "All" => Some(TiedPairs::All),
        _ => None,
    }
}

/// What torchsurv sees: it casts times, scores and estimates (1 - S) to float32 before it compares them.
fn as_float32(item: &Item<'_>) -> Result<(Outcomes, SurvivalCurves, Risk), MetricError> {
    #[expect(clippy::cast_possible_truncation, reason = "the loss of digits is what is reproduced")]
    let cast = |value: f64| f64::from(value as f32);
    let (outcomes, curves) = (item.outcomes, &item.subset.curves);
    let times = outcomes.time().iter().map(|&time| cast(time)).collect();
    // The grid with them, so that a time on a grid point still reads that point.
    let grid = curves.grid().iter().map(|&time| cast(time)).collect();
    let survival = curves.survival().mapv(|survival| 1.0 - cast(1.0 - survival));
    Ok((
        Outcomes::new(times, outcomes.event().to_vec())?,
        SurvivalCurves::new(grid, survival)?,
        Risk::new(item.subset.risk.iter().map(|&risk| cast(risk)).collect())?,
    ))
}
