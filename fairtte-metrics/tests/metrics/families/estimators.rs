//! Kaplan-Meier, both censoring curves and Nelson-Aalen.
//!
//! Some packages put a row at time 0 before the observed times; where nothing is observed at 0 that row must be the start
//! of the curve (survival 1, hazard 0) and is compared with it.

use fairtte_metrics::estimators::{KaplanMeier, NelsonAalen, TiedEvents};
use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes};

use super::Item;
use super::definitions::{Product, cumulative_hazard};
use crate::records::numbers;
use crate::tally::{Tally, Verdict};

const TOLERANCE: f64 = 1e-12;

pub fn compare(item: &Item<'_>, tally: &mut Tally) -> Verdict {
    let outcomes = item.outcomes;
    let survival = || KaplanMeier::fit(outcomes).map(|curve| curve.survival().to_vec());
    let censoring = |ties| CensoringCurve::fit(outcomes, ties).map(|curve| curve.survival().to_vec());
    let hazard = |ties| NelsonAalen::fit(outcomes, ties).map(|curve| curve.cumulative_hazard().to_vec());
    let (found, start, definition): (_, _, fn(&Outcomes) -> Vec<f64>) = match (item.record.peer, item.record.function) {
        ("lifelines", "KaplanMeierFitter")
        | ("scikit-survival", "kaplan_meier_estimator")
        | ("SurvivalEVAL", "KaplanMeier")
        | ("pycox", "utils.kaplan_meier")
        | ("R", "survival::survfit(Surv(time,event)~1)") => {
            (survival(), 1.0, |sample| Product::of_events(sample).curve())
        }
        ("scikit-survival", "kaplan_meier_estimator(reverse=True)")
        | ("SurvivalEVAL", "KaplanMeier(reverse=True)")
        | ("R", "prodlim(Hist(time,event)~1, reverse=TRUE)") => {
            (censoring(CensoringTies::EventsFirst), 1.0, |sample| Product::of_censorings(sample, false).curve())
        }
        ("pycox", "utils.kaplan_meier(durations, 1-events)") | ("R", "survival::survfit(Surv(time,1-event)~1)") => {
            (censoring(CensoringTies::Flipped), 1.0, |sample| Product::of_censorings(sample, true).curve())
        }
        ("lifelines", "NelsonAalenFitter(nelson_aalen_smoothing=False)")
        | ("scikit-survival", "nelson_aalen_estimator")
        | ("SurvivalEVAL", "NelsonAalen")
        | ("R", "survfit(stype=2,ctype=1)$cumhaz") => {
            (hazard(TiedEvents::Together), 0.0, |sample| cumulative_hazard(sample, false))
        }
        ("lifelines", "NelsonAalenFitter(nelson_aalen_smoothing=True, default)")
        | ("R", "survfit(stype=2,ctype=2)$cumhaz") => {
            (hazard(TiedEvents::OneByOne), 0.0, |sample| cumulative_hazard(sample, true))
        }
        _ => return Verdict::NotMine,
    };
    let Some(expected) = item.record.value else {
        return Verdict::Refused(match found {
            Ok(curve) => {
                tally.all_close("definition", &curve, &definition(outcomes), TOLERANCE);
                "the curve of the definition".to_owned()
            }
            Err(error) => error.to_string(),
        });
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            tally.mismatch(&error.to_string());
            return Verdict::Compared;
        }
    };
    let mut times = KaplanMeier::fit(outcomes).map(|curve| curve.times().to_vec()).unwrap_or_default();
    let values_key = if expected.get("surv").is_some() { "surv" } else { "cumhaz" };
    let (expected_times, expected) = (numbers(&expected["time"]), numbers(&expected[values_key]));
    let mut values = found;
    if expected_times[0] == 0.0 && times[0] > 0.0 {
        times.insert(0, 0.0);
        values.insert(0, start);
    }
    tally.all_close("time", &times, &expected_times, TOLERANCE);
    tally.all_close(values_key, &values, &expected, TOLERANCE);
    Verdict::Compared
}
