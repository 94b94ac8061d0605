//! The Nelson-Aalen estimate of the cumulative hazard.
//!
//! ```text
//! H(t) = sum over event times u <= t of  d / r                            (Together)
//!                                        sum for k = 0 .. d - 1 of 1 / (r - k)  (OneByOne)
//! ```
//!
//! where d events happen at u among r samples whose time is not before u; a sample censored at u is at risk at u.
//! Without tied events both are the same.
//! Sources: Nelson (1972), <https://doi.org/10.1080/00401706.1972.10488991>; Aalen (1978),
//! <https://doi.org/10.1214/aos/1176344247>; Fleming & Harrington (1984) for the second form,
//! <https://doi.org/10.1080/03610928408828837>.
//! Golden values: `scikit-survival` 0.28.0, `SurvivalEVAL` 0.9.0, `lifelines` 0.30.3 (`nelson_aalen_smoothing=False`) and R
//! `survfit(ctype = 1)` for `Together`; the default of `lifelines` and R `survfit(ctype = 2)` for `OneByOne`.

use serde::{Deserialize, Serialize};

use crate::estimators::kaplan_meier::risk_sets;
use crate::{MetricError, Outcomes};

/// How events at the same time leave the risk set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TiedEvents {
    /// All at once: the hazard grows by d / r.
    #[default]
    Together,
    /// One after the other, as if their times differed infinitesimally: 1 / r + 1 / (r - 1) + ...
    OneByOne,
}

/// A Nelson-Aalen curve: a right-continuous step function of time that starts at 0.
///
/// ```
/// use fairtte_metrics::Outcomes;
/// use fairtte_metrics::estimators::{NelsonAalen, TiedEvents};
///
/// let outcomes = Outcomes::new(vec![1.0, 1.0, 2.0, 3.0], vec![true, true, false, true])?;
/// let together = NelsonAalen::fit(&outcomes, TiedEvents::Together)?;
/// assert_eq!((together.at(0.9), together.at(1.0), together.at(3.0)), (0.0, 0.5, 1.5));
/// let one_by_one = NelsonAalen::fit(&outcomes, TiedEvents::OneByOne)?;
/// assert_eq!(one_by_one.at(2.0), 1.0 / 4.0 + 1.0 / 3.0);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NelsonAalen {
    times: Vec<f64>,
    cumulative_hazard: Vec<f64>,
    ties: TiedEvents,
}

impl NelsonAalen {
    /// Fits the curve; O(n log n). Without any event it stays at 0 (`scikit-survival` refuses such a sample).
    ///
    /// # Errors
    /// [`MetricError::NoSamples`] without samples.
    pub fn fit(outcomes: &Outcomes, ties: TiedEvents) -> Result<Self, MetricError> {
        let sets = risk_sets(outcomes);
        if sets.is_empty() {
            return Err(MetricError::NoSamples);
        }
        let mut so_far = 0.0;
        let cumulative_hazard = sets.iter().map(|set| {
            so_far += match ties {
                TiedEvents::Together => set.n_events as f64 / set.n_at_risk as f64,
                TiedEvents::OneByOne => (0..set.n_events).map(|k| 1.0 / (set.n_at_risk - k) as f64).sum(),
            };
            so_far
        });
        Ok(Self {
            cumulative_hazard: cumulative_hazard.collect(),
            times: sets.iter().map(|set| set.time).collect(),
            ties,
        })
    }

    /// All distinct observed times (events and censorings), ascending.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// H just after each of [`times`](Self::times).
    pub fn cumulative_hazard(&self) -> &[f64] {
        &self.cumulative_hazard
    }

    /// How events at the same time were counted.
    pub fn ties(&self) -> TiedEvents {
        self.ties
    }

    /// H(t); beyond the last time the last value is held.
    pub fn at(&self, t: f64) -> f64 {
        let n_passed = self.times.partition_point(|time| *time <= t);
        n_passed.checked_sub(1).map_or(0.0, |last| self.cumulative_hazard[last])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_at_time_zero_and_the_last_event_add_to_the_hazard() {
        let outcomes = Outcomes::new(vec![0.0, 2.0], vec![true, true]).unwrap();
        let curve = NelsonAalen::fit(&outcomes, TiedEvents::default()).unwrap();
        assert_eq!((curve.at(0.0), curve.at(1.9), curve.at(9.0)), (0.5, 0.5, 1.5));
        assert_eq!((curve.times(), curve.ties()), ([0.0, 2.0].as_slice(), TiedEvents::Together));
    }

    #[test]
    fn without_events_the_hazard_is_zero_and_without_samples_there_is_none() {
        let censored = Outcomes::new(vec![1.0, 2.0], vec![false, false]).unwrap();
        assert_eq!(NelsonAalen::fit(&censored, TiedEvents::OneByOne).unwrap().cumulative_hazard(), [0.0, 0.0]);
        let empty = Outcomes::new(vec![], vec![]).unwrap();
        assert_eq!(NelsonAalen::fit(&empty, TiedEvents::OneByOne), Err(MetricError::NoSamples));
    }
}
