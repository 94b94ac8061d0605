//! D-calibration and 1-calibration against `SurvivalEVAL`; D-calibration and alpha against the `mlr3proba` formulas.

use fairtte_metrics::calibration::{
    BinVariance, CalibrationBin, DCalibration, DCalibrationConvention, ObservedRisk, OneCalibrationSettings,
    OwnTimeReading, RiskBinning, calibration_alpha, d_calibration, one_calibration,
};
use fairtte_metrics::{MetricError, Reading};
use serde_json::Value;

use super::Item;
use crate::records::{numbers, optional_numbers};
use crate::tally::{Tally, Verdict};

const TOLERANCE: f64 = 1e-12;
/// A step to the last grid point, and 1 before the grid.
const OWN_STEP: OwnTimeReading = OwnTimeReading::OneBefore(Reading::Step);

/// Compares the record if it is one of the calibration measures.
pub fn compare(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let args = item.record.args;
    let step = args["probs"] == "S(own time), step post, 1 before the grid";
    let linear = args["interpolation"] == "Linear";
    let mlr3proba = item.record.peer.starts_with("formula:mlr3proba");
    match (item.record.peer, item.record.function) {
        ("SurvivalEVAL", "d_calibration") if step => of_survivaleval(item, OWN_STEP, tally),
        ("SurvivalEVAL", "SurvivalEvaluator probs -> d_calibration") if linear => {
            of_survivaleval(item, OwnTimeReading::LinearFromOne, tally)
        }
        ("SurvivalEVAL", "one_calibration") => at_one_time(item, tally),
        (_, "surv.dcalib") if mlr3proba => of_mlr3proba(item, tally),
        (_, "surv.calib_alpha(method=ratio)") if mlr3proba => alpha(item, tally),
        _ => Verdict::NotMine,
    }
}

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// Ours where the other package raised an error.
fn refused<T>(item: &Item<'_>, ours: &Result<T, MetricError>) -> Verdict {
    match ours {
        Ok(_) => super::unchecked(item),
        Err(error) => Verdict::Refused(error.to_string()),
    }
}

fn d_calibrate(
    item: &Item<'_>,
    reading: OwnTimeReading,
    n_bins: &Value,
    convention: DCalibrationConvention,
) -> Result<DCalibration, MetricError> {
    d_calibration(item.outcomes, &item.subset.curves, reading, count(n_bins), convention)
}

fn of_survivaleval(item: &Item<'_>, reading: OwnTimeReading, tally: &mut Tally) -> Verdict {
    let ours = d_calibrate(item, reading, &item.record.args["num_bins"], DCalibrationConvention::Survivaleval);
    let Some(value) = item.record.value else { return refused(item, &ours) };
    match ours {
        Err(error) => tally.mismatch(&error.to_string()),
        Ok(mut ours) => {
            ours.mass.reverse(); // theirs runs down from S = 1
            let hist = numbers(&value["hist"]);
            if let Some(lost) = lost_samples(ours.n, &hist) {
                *ours.mass.last_mut().unwrap() -= lost;
                tally.all_close("hist without what it loses", &ours.mass, &hist, TOLERANCE);
                return Verdict::Skipped(
                    "loses a censored sample whose interpolated survival is -1e-17, not 0".to_owned(),
                );
            }
            tally.all_close("hist", &ours.mass, &hist, TOLERANCE);
            tally.at("statistic", ours.statistic, value["statistic"].as_f64().unwrap(), TOLERANCE);
            tally.at("p", ours.p_value, value["p"].as_f64().unwrap(), TOLERANCE);
        }
    }
    Verdict::Compared
}

/// Whole samples that are missing from the bins of a record. Its linear interpolation to a survival of 0 can end just
/// below 0, and what lies outside [0, 1] is left out there.
fn lost_samples(n: usize, hist: &[f64]) -> Option<f64> {
    let lost = (n as f64 - hist.iter().sum::<f64>()).round();
    (lost > 0.0).then_some(lost)
}

fn of_mlr3proba(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let conventions = [("clean", DCalibrationConvention::Mlr3proba), ("quirk", DCalibrationConvention::Mlr3probaAsInR)];
    for (name, convention) in conventions {
        let ours = d_calibrate(item, OWN_STEP, &item.record.args["B"], convention);
        let Some(value) = item.record.value else { return refused(item, &ours) };
        let value = &value[name];
        match ours {
            Err(error) => tally.mismatch(&format!("{name}: {error}")),
            Ok(ours) => {
                tally.all_close(&format!("{name} bins"), &ours.mass, &numbers(&value["bins"]), TOLERANCE);
                let close = [("statistic", ours.statistic), ("chisq_p", ours.p_value)];
                for (what, found) in close {
                    tally.at(&format!("{name} {what}"), found, value[what].as_f64().unwrap(), TOLERANCE);
                }
            }
        }
    }
    Verdict::Compared
}

fn alpha(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let replacement = item.record.args["eps"].as_f64().unwrap();
    let ours = calibration_alpha(item.outcomes, &item.subset.curves, OWN_STEP, replacement);
    match (ours, item.record.value) {
        (ours, None) => return refused(item, &ours),
        (Ok(ours), Some(value)) => tally.close(ours.alpha, value.as_f64().unwrap(), TOLERANCE),
        (Err(error), _) => tally.mismatch(&error.to_string()),
    }
    Verdict::Compared
}

fn at_one_time(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let args = item.record.args;
    let settings = OneCalibrationSettings {
        n_bins: count(&args["num_bins"]),
        binning: match args["binning_strategy"].as_str() {
            Some("C") => RiskBinning::EqualSize,
            Some("H") => RiskBinning::EqualWidth,
            _ => return Verdict::NotMine,
        },
        observed: match args["method"].as_str() {
            Some("DN") => ObservedRisk::KaplanMeier,
            Some("Uncensored") => ObservedRisk::Uncensored,
            _ => return Verdict::NotMine,
        },
        variance: if args["adjust_variance"] == true { BinVariance::Estimated } else { BinVariance::ExpectedBinomial },
    };
    let time = args["target_time"].as_f64().unwrap();
    let ours = one_calibration(item.outcomes, &item.subset.curves, time, Reading::Step, settings);
    let Some(value) = item.record.value else { return refused(item, &ours) };
    let ours = match ours {
        Ok(ours) => ours,
        // No sample is left: theirs is an empty list of bins.
        Err(MetricError::AllCensoredBefore { .. }) if numbers(&value["observed"]).is_empty() => {
            return Verdict::Compared;
        }
        Err(error) => {
            tally.mismatch(&error.to_string());
            return Verdict::Compared;
        }
    };
    let of_bins = |of: fn(&CalibrationBin) -> f64| ours.bins.iter().map(of).collect::<Vec<_>>();
    let sizes = of_bins(|bin| bin.n as f64);
    if ours.n_moved_edges > 0 {
        return Verdict::Skipped("an edge of its bins cuts tied risks, which it sorts in no stable order".to_owned());
    }
    tally.all_close("bin_sizes", &sizes, &numbers(&value["bin_sizes"]), 0.0);
    tally.all_close("observed", &of_bins(|bin| bin.observed), &numbers(&value["observed"]), TOLERANCE);
    tally.all_close("expected", &of_bins(|bin| bin.expected), &numbers(&value["expected"]), TOLERANCE);
    // Theirs may be negative.
    tally.at("dof", ours.degrees_of_freedom as f64, value["dof"].as_f64().unwrap().max(0.0), 0.0);
    // Where theirs is not a finite number ours is an error, except p = 0 beside an infinite statistic.
    for (what, ours) in [("statistic", &ours.statistic), ("p", &ours.p_value)] {
        match (ours, optional_numbers(&value[what])[0]) {
            (Ok(found), Some(expected)) => tally.at(what, *found, expected, TOLERANCE),
            (Err(_), None) => {}
            (found, expected) => tally.mismatch(&format!("{what} found {found:?}, expected {expected:?}")),
        }
    }
    Verdict::Compared
}
