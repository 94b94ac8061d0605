//! Numbers at risk below a survival curve, at round times that all groups share.

use serde::{Deserialize, Serialize};

use crate::Outcomes;

/// More steps than this do not fit below a figure.
const MOST_STEPS: u8 = 6;

/// How many samples of a group are still observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NumbersAtRisk {
    /// Round times from 0 to the last observed time of all samples, in the unit of the data set.
    pub times: Vec<f64>,
    /// Samples whose time is not before each of them.
    pub n_at_risk: Vec<usize>,
    /// Events at or before each of them.
    pub n_events: Vec<usize>,
}

impl NumbersAtRisk {
    /// The numbers of `outcomes` at `times`; O(n) per time.
    pub(crate) fn new(outcomes: &Outcomes, times: &[f64]) -> Self {
        let at_risk = |time: &f64| outcomes.time().iter().filter(|observed| **observed >= *time).count();
        Self {
            times: times.to_vec(),
            n_at_risk: times.iter().map(at_risk).collect(),
            n_events: times.iter().map(|time| outcomes.n_events_by(*time)).collect(),
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of ten from 0 to the last observed time, at most seven.
pub(crate) fn round_times(outcomes: &Outcomes) -> Vec<f64> {
    let last = outcomes.time().iter().copied().fold(0.0, f64::max);
    if last <= 0.0 {
        return vec![0.0];
    }
    let power = 10_f64.powf((last / f64::from(MOST_STEPS)).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| last / step <= f64::from(MOST_STEPS)).unwrap_or(last);
    (0..=MOST_STEPS).map(|k| f64::from(k) * step).filter(|time| *time <= last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(rows: &[(f64, bool)]) -> Outcomes {
        let (time, event) = rows.iter().copied().unzip();
        Outcomes::new(time, event).unwrap()
    }

    #[test]
    fn a_sample_is_at_risk_at_its_own_time_and_its_event_has_happened_then() {
        let numbers = NumbersAtRisk::new(&outcomes(&[(1.0, true), (2.0, false), (2.0, true)]), &[0.0, 1.0, 2.0, 3.0]);
        assert_eq!((numbers.n_at_risk, numbers.n_events), (vec![3, 3, 2, 0], vec![0, 1, 2, 2]));
    }

    #[test]
    fn the_times_are_round_and_few() {
        let until = |last: f64| round_times(&outcomes(&[(last, true)]));
        assert_eq!(until(9.7), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(until(6.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(until(2029.0), [0.0, 500.0, 1000.0, 1500.0, 2000.0]);
        assert_eq!(until(0.0), [0.0]);
        assert!((1..400).all(|k| (3..=7).contains(&until(f64::from(k) * 0.037).len())));
    }
}
