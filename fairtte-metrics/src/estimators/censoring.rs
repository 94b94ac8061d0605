//! The censoring curve G(t) = P(not yet censored at t), the source of all inverse-probability weights.
//!
//! G is a Kaplan-Meier curve with events and censorings exchanged. When an event and a censoring share a time there
//! are two readings, and for discrete times they always differ: see [`CensoringTies`].
//! Fit it on the training sample only. Source: Graf et al. (1999), Uno et al. (2007). Golden values:
//! `scikit-survival` 0.28.0 and R `prodlim(reverse = TRUE)` (events first), `pycox` 0.3.0 and R `survfit(1 - d)`
//! (flipped).

use serde::{Deserialize, Serialize};

use crate::estimators::kaplan_meier::{RiskSet, risk_sets, value_before};
use crate::finite::finite;
use crate::{MetricError, Outcomes};

/// Which samples are at risk of being censored at a time with both events and censorings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CensoringTies {
    /// Events leave the risk set before the censorings at the same time are counted (`scikit-survival`, `prodlim`).
    #[default]
    EventsFirst,
    /// The event indicator is flipped, so that tied events stay at risk (`pycox`, `survfit(Surv(t, 1 - d))`).
    Flipped,
}

/// Which of the two values G has at a time where it falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CensoringLookup {
    /// G(t), after the fall (`scikit-survival`, `torchsurv`; what a survivor at t needs).
    #[default]
    RightContinuous,
    /// G(t-), before it (`SurvivalEVAL`, `pycox`, `riskRegression`; what an event at t needs).
    LeftLimit,
}

/// What the weight 1 / G is where G = 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtZeroCensoring {
    /// No weight: an error (`SurvivalEVAL`; `scikit-survival` in AUC and Uno's C).
    #[default]
    Refuse,
    /// The sample weighs 0 (`scikit-survival` in the Brier score, `torchsurv`).
    NoWeight,
    /// G is read as this number in (0, 1] (`mlr3proba`: 0.001).
    Floor(f64),
}

/// The value of a curve beyond the last time of the fitting sample when it has not fallen to 0 by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeyondLastTime {
    /// Unknown: reading it is an error, as in `scikit-survival`.
    #[default]
    Refuse,
    /// The last value is held (`torchsurv`).
    Hold,
    /// The straight line through (0, 1) and the last point is continued until it reaches 0, where it stays
    /// (`SurvivalEVAL`). If the last time is 0 there is no such line, and reading beyond it is an error.
    LinearToZero,
}

impl BeyondLastTime {
    /// The value at a time `t` after the last time of a curve that ends with (`last`, `held`), `t` perhaps infinite;
    /// `None` if it is unknown.
    pub(crate) fn value(self, (last, held): (f64, f64), t: f64) -> Option<f64> {
        match self {
            _ if held <= 0.0 => Some(0.0),
            Self::Hold => Some(held),
            Self::LinearToZero if last > 0.0 => {
                let slope = (1.0 - held) / last;
                // A line may be flat (and 0 times infinity has no value), or so steep that its slope overflows.
                let fall = if slope.is_finite() { slope * t } else { (1.0 - held) * (t / last) };
                Some(if held >= 1.0 { 1.0 } else { (1.0 - fall).max(0.0) })
            }
            Self::Refuse | Self::LinearToZero => None,
        }
    }
}

/// A censoring curve: a right-continuous step function of time that starts at 1.
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes};
///
/// // One event and one censoring at time 1, one event at time 2.
/// let train = Outcomes::new(vec![1.0, 1.0, 2.0], vec![true, false, true])?;
/// assert_eq!(CensoringCurve::fit(&train, CensoringTies::EventsFirst)?.at(1.0)?, 0.5);
/// assert_eq!(CensoringCurve::fit(&train, CensoringTies::Flipped)?.at(1.0)?, 1.0 - 1.0 / 3.0);
/// assert!(CensoringCurve::fit(&train, CensoringTies::EventsFirst)?.at(2.1).is_err());
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CensoringCurve {
    times: Vec<f64>,
    survival: Vec<f64>,
    ties: CensoringTies,
    beyond: BeyondLastTime,
    sets: Vec<RiskSet>,
}

impl CensoringCurve {
    /// Fits G on (training) outcomes; O(n log n). Reading it beyond the last time is an error unless another policy is
    /// set by [`with_beyond`](Self::with_beyond).
    ///
    /// # Errors
    /// [`MetricError::NoSamples`] without samples.
    pub fn fit(outcomes: &Outcomes, ties: CensoringTies) -> Result<Self, MetricError> {
        Self::of_risk_sets(risk_sets(outcomes), ties)
    }

    fn of_risk_sets(sets: Vec<RiskSet>, ties: CensoringTies) -> Result<Self, MetricError> {
        if sets.is_empty() {
            return Err(MetricError::NoSamples);
        }
        let mut so_far = 1.0;
        let survival = sets.iter().map(|set| {
            let at_risk = match ties {
                CensoringTies::EventsFirst => set.n_at_risk - set.n_events,
                CensoringTies::Flipped => set.n_at_risk,
            };
            if set.n_censored > 0 {
                so_far *= 1.0 - set.n_censored as f64 / at_risk as f64;
            }
            so_far
        });
        Ok(Self {
            survival: survival.collect(),
            times: sets.iter().map(|set| set.time).collect(),
            ties,
            beyond: BeyondLastTime::default(),
            sets,
        })
    }

    /// The same curve with another policy beyond the last time.
    #[must_use]
    pub fn with_beyond(self, beyond: BeyondLastTime) -> Self {
        Self { beyond, ..self }
    }

    /// The curve of the same sample with another reading of ties, and the same policy beyond the last time. O(number of
    /// times).
    #[must_use]
    pub fn with_ties(&self, ties: CensoringTies) -> Self {
        match Self::of_risk_sets(self.sets.clone(), ties) {
            Ok(curve) => curve.with_beyond(self.beyond),
            // A curve that exists has a risk set.
            Err(_) => self.clone(),
        }
    }

    /// All distinct times of the fitting sample, ascending.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// G just after each of [`times`](Self::times).
    pub fn survival(&self) -> &[f64] {
        &self.survival
    }

    /// How ties between events and censorings were read.
    pub fn ties(&self) -> CensoringTies {
        self.ties
    }

    /// What happens beyond the last time.
    pub fn beyond(&self) -> BeyondLastTime {
        self.beyond
    }

    /// Last time of the fitting sample.
    pub fn last_time(&self) -> f64 {
        self.times[self.times.len() - 1]
    }

    /// G(t), right-continuous; it can be 0.
    ///
    /// Beyond the last time a curve that has fallen to 0 stays at 0; any other follows [`BeyondLastTime`].
    ///
    /// # Errors
    /// [`MetricError::BeyondCensoringCurve`] beyond the last time if the policy is to refuse, [`MetricError::NotFinite`]
    /// if `t` is not a number (it may be infinite).
    pub fn at(&self, t: f64) -> Result<f64, MetricError> {
        check_number(t)?;
        if t > self.last_time() {
            return self.beyond_last_time(t);
        }
        Ok(value_before(&self.survival, self.times.partition_point(|time| *time <= t)))
    }

    /// G just before t; it can be 0.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn left_limit(&self, t: f64) -> Result<f64, MetricError> {
        check_number(t)?;
        if t > self.last_time() {
            return self.beyond_last_time(t);
        }
        Ok(value_before(&self.survival, self.times.partition_point(|time| *time < t)))
    }

    /// The inverse-probability weight 1 / G of a sample at time t, finite and at least 0.
    ///
    /// ```
    /// use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes};
    /// use fairtte_metrics::estimators::{AtZeroCensoring, CensoringLookup};
    ///
    /// let train = Outcomes::new(vec![1.0, 2.0], vec![false, false])?;
    /// let curve = CensoringCurve::fit(&train, CensoringTies::EventsFirst)?;
    /// assert_eq!(curve.weight(2.0, CensoringLookup::LeftLimit, AtZeroCensoring::Refuse)?, 2.0);
    /// assert!(curve.weight(2.0, CensoringLookup::RightContinuous, AtZeroCensoring::Refuse).is_err());
    /// assert_eq!(curve.weight(2.0, CensoringLookup::RightContinuous, AtZeroCensoring::NoWeight)?, 0.0);
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`at`](Self::at),
    /// [`MetricError::ZeroCensoringSurvival`] where G = 0 is refused, [`MetricError::InvalidSetting`] if a floor is not in
    /// (0, 1], [`MetricError::NotFinite`] if it is so small that 1 / floor overflows.
    pub fn weight(&self, t: f64, lookup: CensoringLookup, at_zero: AtZeroCensoring) -> Result<f64, MetricError> {
        let survival = match lookup {
            CensoringLookup::RightContinuous => self.at(t)?,
            CensoringLookup::LeftLimit => self.left_limit(t)?,
        };
        match at_zero {
            AtZeroCensoring::Floor(floor) if !(floor > 0.0 && floor <= 1.0) => Err(MetricError::InvalidSetting {
                setting: "floor of the censoring curve",
                value: floor.to_string(),
                expected: "a number in (0, 1]",
            }),
            _ if survival > 0.0 => finite("censoring weight", 1.0 / survival),
            AtZeroCensoring::Refuse => Err(MetricError::ZeroCensoringSurvival { time: t }),
            AtZeroCensoring::NoWeight => Ok(0.0),
            AtZeroCensoring::Floor(floor) => finite("censoring weight", 1.0 / floor),
        }
    }

    /// 1 / G(t).
    pub(crate) fn weight_at(&self, t: f64) -> Result<f64, MetricError> {
        self.weight(t, CensoringLookup::RightContinuous, AtZeroCensoring::Refuse)
    }

    /// 1 / G(t-).
    pub(crate) fn weight_before(&self, t: f64) -> Result<f64, MetricError> {
        self.weight(t, CensoringLookup::LeftLimit, AtZeroCensoring::Refuse)
    }

    /// The last fitted time at which G is still above 0; `None` if G is 0 from the first time on.
    pub(crate) fn last_positive_time(&self) -> Option<f64> {
        let n_positive = self.survival.partition_point(|survival| *survival > 0.0);
        n_positive.checked_sub(1).map(|last| self.times[last])
    }

    /// G at a time beyond the last one, where it has no steps and so equals its left limit.
    fn beyond_last_time(&self, t: f64) -> Result<f64, MetricError> {
        let last = (self.last_time(), self.survival[self.survival.len() - 1]);
        self.beyond.value(last, t).ok_or(MetricError::BeyondCensoringCurve { time: t, last: last.0 })
    }
}

/// Returns an error if `t` is NaN.
pub(crate) fn check_number(t: f64) -> Result<(), MetricError> {
    if t.is_nan() { Err(MetricError::NotFinite { what: "time", value: t }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimators::KaplanMeier;

    fn outcomes(rows: &[(f64, bool)]) -> Outcomes {
        let (time, event) = rows.iter().copied().unzip();
        Outcomes::new(time, event).unwrap()
    }

    #[test]
    fn left_limit_and_right_continuous_reading_differ_at_a_censoring() {
        let curve = CensoringCurve::fit(&outcomes(&[(1.0, false), (2.0, true)]), CensoringTies::default()).unwrap();
        assert_eq!((curve.left_limit(1.0), curve.at(1.0), curve.at(0.5)), (Ok(1.0), Ok(0.5), Ok(1.0)));
    }

    #[test]
    fn beyond_the_last_time_the_policy_decides_unless_the_curve_is_zero() {
        let open = CensoringCurve::fit(&outcomes(&[(1.0, false), (2.0, true)]), CensoringTies::default()).unwrap();
        assert_eq!(open.at(2.0), Ok(0.5));
        assert_eq!(open.at(2.5), Err(MetricError::BeyondCensoringCurve { time: 2.5, last: 2.0 }));
        assert_eq!(open.with_beyond(BeyondLastTime::Hold).at(2.5), Ok(0.5));
        let closed = CensoringCurve::fit(&outcomes(&[(1.0, true), (2.0, false)]), CensoringTies::default()).unwrap();
        assert_eq!(closed.at(2.5), Ok(0.0));
        assert_eq!(closed.weight_at(2.5), Err(MetricError::ZeroCensoringSurvival { time: 2.5 }));
        assert_eq!(closed.last_positive_time(), Some(1.0));
    }

    #[test]
    fn a_line_to_zero_goes_on_from_the_last_point_and_needs_a_last_time_above_zero() {
        // (0, 1) to (2, 1/2): 1/4 at 3, 0 from 4 on.
        let curve = CensoringCurve::fit(&outcomes(&[(1.0, false), (2.0, true)]), CensoringTies::default()).unwrap();
        let line = curve.with_beyond(BeyondLastTime::LinearToZero);
        assert_eq!([2.0, 3.0, 4.0, 9.0].map(|t| line.at(t).unwrap()), [0.5, 0.25, 0.0, 0.0]);
        assert_eq!((line.left_limit(3.0), line.weight_before(3.0)), (Ok(0.25), Ok(4.0)));
        let at_entry = CensoringCurve::fit(&outcomes(&[(0.0, true)]), CensoringTies::default()).unwrap();
        let beyond = at_entry.with_beyond(BeyondLastTime::LinearToZero).at(1.0);
        assert_eq!(beyond, Err(MetricError::BeyondCensoringCurve { time: 1.0, last: 0.0 }));
    }

    #[test]
    fn a_weight_where_the_curve_is_zero_follows_the_policy() {
        let curve = CensoringCurve::fit(&outcomes(&[(1.0, true), (2.0, false)]), CensoringTies::default()).unwrap();
        let weight = |at_zero| curve.weight(2.0, CensoringLookup::RightContinuous, at_zero);
        assert_eq!(weight(AtZeroCensoring::Refuse), Err(MetricError::ZeroCensoringSurvival { time: 2.0 }));
        assert_eq!(weight(AtZeroCensoring::NoWeight), Ok(0.0));
        assert_eq!(weight(AtZeroCensoring::Floor(0.001)), Ok(1000.0));
        assert!(matches!(weight(AtZeroCensoring::Floor(f64::NAN)), Err(MetricError::InvalidSetting { .. })));
        assert!(matches!(weight(AtZeroCensoring::Floor(5e-324)), Err(MetricError::NotFinite { .. })));
        assert_eq!(curve.weight(2.0, CensoringLookup::LeftLimit, AtZeroCensoring::NoWeight), Ok(1.0));
    }

    #[test]
    fn a_time_with_only_events_leaves_the_curve_where_it_is() {
        let curve = CensoringCurve::fit(&outcomes(&[(1.0, true), (1.0, true)]), CensoringTies::EventsFirst).unwrap();
        assert_eq!(curve.at(1.0), Ok(1.0));
    }

    #[test]
    fn a_line_to_zero_is_read_at_infinity_and_from_the_smallest_time_but_not_at_nan() {
        let line = |rows: &[(f64, bool)]| {
            let curve = CensoringCurve::fit(&outcomes(rows), CensoringTies::default()).unwrap();
            curve.with_beyond(BeyondLastTime::LinearToZero)
        };
        let (flat, falling) = (line(&[(2.0, true)]), line(&[(1.0, false), (2.0, true)]));
        assert_eq!((flat.at(f64::INFINITY), falling.at(f64::INFINITY)), (Ok(1.0), Ok(0.0)));
        for curve in [&flat, &falling] {
            assert!(matches!(curve.at(f64::NAN), Err(MetricError::NotFinite { .. })));
            assert!(matches!(curve.left_limit(f64::NAN), Err(MetricError::NotFinite { .. })));
        }
        // The line from (0, 1) to (2 `least`, 1/2): 1/4 at 3 `least`.
        let least = f64::from_bits(1);
        let steep = line(&[(least, false), (2.0 * least, true)]);
        assert_eq!([3.0, 4.0].map(|multiple| steep.at(multiple * least).unwrap()), [0.25, 0.0]);
        let kaplan_meier = KaplanMeier::fit(&outcomes(&[(2.0, false)])).unwrap();
        assert_eq!(kaplan_meier.at_or_beyond(f64::INFINITY, BeyondLastTime::LinearToZero), Ok(1.0));
        assert!(kaplan_meier.at_or_beyond(f64::NAN, BeyondLastTime::Hold).is_err());
    }
}
