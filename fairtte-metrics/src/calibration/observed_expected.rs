//! Calibration in the large at one time: the observed risk divided by the mean predicted risk.
//!
//! O/E(t) = (1 - KM(t)) / mean of 1 - S(t); 1 if the risk of the whole sample is right, above 1 if it is underestimated.
//! Sources: Crowson, Atkinson & Therneau (2016), doi:10.1177/0962280213497434; Riley et al. (2019), doi:10.1136/bmj.k1479
//! names it the observed/expected ratio. Golden values: lifelines 0.30.3 `KaplanMeierFitter` and the mean.

use serde::{Deserialize, Serialize};

use crate::ids::to_u32;
use crate::resampling::lanes::{LANES, LaneWeights};
use crate::{MetricError, Outcomes, Reading, SurvivalCurves};

/// Observed and expected risk at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ObservedExpected {
    /// 1 - Kaplan-Meier at the time, in [0, 1].
    pub observed: f64,
    /// Mean predicted risk, in (0, 1].
    pub expected: f64,
    /// Observed divided by expected, at least 0; 1 is best.
    pub ratio: f64,
}

/// The observed/expected ratio of `curves` at `time`; O(n log n).
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::calibration::observed_expected;
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 3.0], vec![true, false])?;
/// let curves = SurvivalCurves::new(vec![2.0], array![[0.5], [1.0]])?;
/// let found = observed_expected(&outcomes, &curves, 2.0, Reading::Step)?;
/// assert_eq!((found.observed, found.expected, found.ratio), (0.5, 0.25, 2.0));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoSamples`]; [`MetricError::LengthMismatch`] if `curves` has not one row per sample;
/// [`MetricError::InvalidSetting`] unless `time` is a finite number >= 0; [`MetricError::BeyondFollowUp`] if the Kaplan-Meier
/// curve is unknown then; [`MetricError::NoPredictedRisk`] if every predicted risk is 0.
pub fn observed_expected(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    time: f64,
    reading: Reading,
) -> Result<ObservedExpected, MetricError> {
    curves.check_rows(outcomes.n())?;
    reading.validate()?;
    check_time(time)?;
    let risk = curves.risk_at(time, reading);
    PreparedObservedExpected::new(outcomes, risk, time).weighted(&vec![1; outcomes.n()])
}

/// Refuses what is no time of a follow-up.
pub(crate) fn check_time(time: f64) -> Result<(), MetricError> {
    if time.is_finite() && time >= 0.0 {
        return Ok(());
    }
    let (setting, expected) = ("time of the calibration", "a finite number >= 0");
    Err(MetricError::InvalidSetting { setting, value: time.to_string(), expected })
}

/// The ratio for any weights of the samples.
#[derive(Clone, Debug)]
pub(crate) struct PreparedObservedExpected {
    horizon: f64,
    risk: Vec<f64>,
    /// Rows, times and events by ascending time.
    rows: Vec<(u32, f64, bool)>,
}

impl PreparedObservedExpected {
    pub(crate) fn new(outcomes: &Outcomes, risk: Vec<f64>, horizon: f64) -> Self {
        let outcome = |row: u32| (row, outcomes.time()[row as usize], outcomes.event()[row as usize]);
        let mut rows: Vec<_> = (0..to_u32(outcomes.n())).map(outcome).collect();
        rows.sort_by(|a, b| a.1.total_cmp(&b.1));
        Self { horizon, risk, rows }
    }

    /// The ratio of the sample in which row `i` occurs `weights[i]` times; O(n).
    pub(crate) fn weighted(&self, weights: &[u32]) -> Result<ObservedExpected, MetricError> {
        let n: u64 = weights.iter().copied().map(u64::from).sum();
        if n == 0 {
            return Err(MetricError::NoSamples);
        }
        let observed = 1.0 - self.kaplan_meier(weights, n)?;
        let risks = self.risk.iter().zip(weights).map(|(risk, weight)| risk * f64::from(*weight));
        let expected = risks.sum::<f64>() / n as f64;
        if expected <= 0.0 {
            return Err(MetricError::NoPredictedRisk { time: self.horizon });
        }
        Ok(ObservedExpected { observed, expected, ratio: observed / expected })
    }

    /// The same ratio in every lane of `weights`, by row; `None` where [`weighted`](Self::weighted) is an error.
    pub(crate) fn lanes(&self, weights: &[LaneWeights]) -> [Option<f64>; LANES] {
        let (mut n, mut expected) = ([0.0; LANES], [0.0; LANES]);
        for (weights, risk) in weights.iter().zip(&self.risk) {
            let weights = weights.map(f64::from);
            n.iter_mut().zip(weights).for_each(|(n, weight)| *n += weight);
            expected.iter_mut().zip(weights).for_each(|(expected, weight)| *expected += risk * weight);
        }
        let survival = self.kaplan_meier_lanes(weights, n);
        let ratio = |lane: usize| {
            let (observed, expected) = (1.0 - survival[lane]?, expected[lane] / n[lane]);
            (expected > 0.0).then(|| observed / expected)
        };
        std::array::from_fn(ratio)
    }

    /// Survival at the horizon in every lane, of which `at_risk` are the samples; `None` where it is unknown.
    fn kaplan_meier_lanes(&self, weights: &[LaneWeights], mut at_risk: [f64; LANES]) -> [Option<f64>; LANES] {
        let (mut survival, mut last, mut followed) = ([1.0; LANES], [f64::NEG_INFINITY; LANES], [false; LANES]);
        for tied in self.rows.chunk_by(|a, b| a.1.total_cmp(&b.1).is_eq()) {
            let time = tied[0].1;
            let (mut n_left, mut n_events) = ([0.0; LANES], [0.0; LANES]);
            for (row, _, event) in tied {
                let weights = weights[*row as usize].map(f64::from);
                n_left.iter_mut().zip(weights).for_each(|(n, weight)| *n += weight);
                let counted = if *event { 1.0 } else { 0.0 };
                n_events.iter_mut().zip(weights).for_each(|(n, weight)| *n += counted * weight);
            }
            if time > self.horizon {
                followed.iter_mut().zip(n_left).for_each(|(followed, n)| *followed |= n > 0.0);
                if followed == [true; LANES] {
                    break;
                }
                continue;
            }
            for lane in 0..LANES {
                last[lane] = if n_left[lane] > 0.0 { time } else { last[lane] };
                survival[lane] *= 1.0 - n_events[lane] / at_risk[lane].max(1.0);
                at_risk[lane] -= n_left[lane];
            }
        }
        // No sample is followed beyond the horizon.
        let unknown = |lane: usize| !followed[lane] && self.horizon > last[lane] && survival[lane] > 0.0;
        std::array::from_fn(|lane| (!unknown(lane)).then(|| survival[lane]))
    }

    fn kaplan_meier(&self, weights: &[u32], n: u64) -> Result<f64, MetricError> {
        let (mut survival, mut at_risk, mut last) = (1.0, n, 0.0_f64);
        for tied in self.rows.chunk_by(|a, b| a.1.total_cmp(&b.1).is_eq()) {
            let time = tied[0].1;
            let count = |events_only: bool| -> u64 {
                let rows = tied.iter().filter(|row| row.2 || !events_only);
                rows.map(|row| u64::from(weights[row.0 as usize])).sum()
            };
            let n_left = count(false);
            last = if n_left > 0 { time } else { last };
            if time > self.horizon {
                if n_left > 0 {
                    return Ok(survival);
                }
                continue;
            }
            let n_events = count(true);
            if n_events > 0 {
                survival *= 1.0 - n_events as f64 / at_risk as f64;
            }
            at_risk -= n_left;
        }
        // No sample is followed beyond the horizon.
        if self.horizon > last && survival > 0.0 {
            return Err(MetricError::BeyondFollowUp { time: self.horizon, last });
        }
        Ok(survival)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::estimators::KaplanMeier;

    proptest! {
        #[test]
        fn weights_are_repeated_rows_and_the_observed_risk_is_that_of_kaplan_meier(
            rows in prop::collection::vec((1_u8..9, any::<bool>(), 0_u32..4, 0.01_f64..0.99), 1..30),
            horizon in 1_u8..10,
        ) {
            let repeated: Vec<_> = rows.iter().flat_map(|row| std::iter::repeat_n(*row, row.2 as usize)).collect();
            prop_assume!(!repeated.is_empty());
            let outcomes = |rows: &[(u8, bool, u32, f64)]| {
                Outcomes::new(rows.iter().map(|r| f64::from(r.0)).collect(), rows.iter().map(|r| r.1).collect()).unwrap()
            };
            let risks = |rows: &[(u8, bool, u32, f64)]| rows.iter().map(|row| row.3).collect::<Vec<_>>();
            let weights: Vec<u32> = rows.iter().map(|row| row.2).collect();
            let horizon = f64::from(horizon);
            let weighted = PreparedObservedExpected::new(&outcomes(&rows), risks(&rows), horizon).weighted(&weights);
            let plain = PreparedObservedExpected::new(&outcomes(&repeated), risks(&repeated), horizon)
                .weighted(&vec![1; repeated.len()]);
            match (weighted, plain) {
                (Ok(weighted), Ok(plain)) => {
                    prop_assert!((weighted.ratio - plain.ratio).abs() < 1e-12);
                    let km = KaplanMeier::fit(&outcomes(&repeated)).unwrap().at(horizon);
                    prop_assert!((plain.observed - (1.0 - km)).abs() < 1e-12);
                }
                (weighted, plain) => prop_assert_eq!(weighted, plain),
            }
        }
    }

    #[test]
    fn what_does_not_exist_says_why() {
        let outcomes = Outcomes::new(vec![1.0, 2.0], vec![true, false]).unwrap();
        let ratio = |risk: f64, time| PreparedObservedExpected::new(&outcomes, vec![risk; 2], time).weighted(&[1, 1]);
        assert_eq!(ratio(0.5, 3.0), Err(MetricError::BeyondFollowUp { time: 3.0, last: 2.0 }));
        assert_eq!(ratio(0.0, 1.0), Err(MetricError::NoPredictedRisk { time: 1.0 }));
        assert_eq!(ratio(0.25, 2.0).unwrap().ratio, 2.0);
    }
}
