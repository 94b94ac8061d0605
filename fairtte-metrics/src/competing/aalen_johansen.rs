//! The Aalen-Johansen estimate of the cumulative incidence of one cause, with its variance.
//!
//! ```text
//! F(t) = sum over event times u <= t of  S(u-) d(u) / r(u)
//! ```
//!
//! where d events of the cause happen at u among r samples whose time is not before u, and S is the Kaplan-Meier curve of
//! events of all causes; a sample censored at u is at risk at u. Two forms of the variance (e events of all causes at u,
//! D = F(t) - F(u), S = S(u-)):
//!
//! ```text
//! Delta: sum of  D^2 e / (r (r - e))        + S^2 d (r - d) / r^3              - 2 D S d / r^2
//! Aalen: sum of  D^2 e / ((r - 1) (r - e))  + S^2 d (r - d) / ((r - 1) r^2)    - 2 D S d (r - d) / ((r - 1) r (r - e))
//! ```
//!
//! `Delta` is that of Greenwood if there is one cause; `Aalen` does not exist where one sample is left, which adds nothing
//! if it is censored. D is 0 at a time at which everybody has an event, and the terms with D are then 0.
//! Sources: Aalen & Johansen (1978), Scandinavian Journal of Statistics 5, 141-150; the delta method as in Marubini &
//! Valsecchi (1995), equation 10.12; Aalen (1978), doi:10.1214/aos/1176344247, as in Pintilie (2006), equation 4.5. Golden
//! values: `lifelines` 0.30.3 `AalenJohansenFitter` (`Delta`) and `scikit-survival` 0.28.0
//! `cumulative_incidence_competing_risks` with `var_type` "Aalen".
//! The interval is on the scale of log(-log(1 - F)), so that it is that of Kaplan-Meier if there is one cause.

use serde::{Deserialize, Serialize};

use crate::competing::CompetingOutcomes;
use crate::estimators::KaplanMeier;
use crate::estimators::kaplan_meier::check_level;
use crate::normal::normal_quantile;
use crate::{MetricError, Outcomes};

/// The form of the variance; the formulas are at the top of this module's file and in the guide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IncidenceVariance {
    /// The delta method (`lifelines`).
    #[default]
    Delta,
    /// Counting processes, with r - 1 in place of r (`scikit-survival`, `var_type` "Aalen").
    Aalen,
}

/// An Aalen-Johansen curve: a right-continuous step function of time that starts at 0.
///
/// ```
/// use fairtte_metrics::competing::{AalenJohansen, CompetingOutcomes, IncidenceVariance};
///
/// // Cause 1 at 1 and 3, cause 2 at 2, one sample censored at 4: S(3-) = 1/2.
/// let outcomes = CompetingOutcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![1, 2, 1, 0])?;
/// let curve = AalenJohansen::fit(&outcomes, 1, IncidenceVariance::default())?;
/// assert_eq!((curve.at(0.5), curve.at(1.0), curve.at(2.5), curve.at(3.0)), (0.0, 0.25, 0.25, 0.5));
/// // A subject who had cause 2 cannot have cause 1 any more; counted as censored, the risk would be 1 - 3/4 * 1/2.
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AalenJohansen {
    times: Vec<f64>,
    incidence: Vec<f64>,
    variance: Vec<Option<f64>>,
    event_free: Vec<f64>,
    n_at_risk: Vec<usize>,
    n_events: Vec<usize>,
}

/// What is observed at one distinct time, seen from one cause.
struct CauseSet {
    time: f64,
    at_risk: usize,
    of_cause: usize,
    of_all: usize,
}

impl AalenJohansen {
    /// Fits the curve of `cause`; O(n log n). Without any event of the cause it stays at 0.
    ///
    /// # Errors
    /// [`MetricError::NoSamples`] without samples, [`MetricError::UnknownCause`].
    pub fn fit(outcomes: &CompetingOutcomes, cause: u32, variance: IncidenceVariance) -> Result<Self, MetricError> {
        let (of_cause, competing) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?);
        Self::of_cause(&of_cause, &competing, variance)
    }

    /// The curve of the events of `outcomes`, beside which the samples marked in `competing` had other events.
    pub(crate) fn of_cause(
        outcomes: &Outcomes,
        competing: &[bool],
        variance: IncidenceVariance,
    ) -> Result<Self, MetricError> {
        let sets = cause_sets(outcomes, competing);
        if sets.is_empty() {
            return Err(MetricError::NoSamples);
        }
        let (mut free, mut incidence) = (1.0, 0.0);
        let mut sums = Some(VarianceSums::default());
        let (mut incidences, mut variances, mut event_free) = (Vec::new(), Vec::new(), Vec::new());
        for set in &sets {
            let before = free;
            let (of_cause, of_all, at_risk) = (set.of_cause as f64, set.of_all as f64, set.at_risk as f64);
            incidence += before * of_cause / at_risk;
            free *= 1.0 - of_all / at_risk;
            sums = sums.and_then(|sums| sums.plus(set, before, incidence, variance));
            incidences.push(f64::min(incidence, 1.0));
            event_free.push(free);
            variances.push(sums.as_ref().map(|sums| sums.at(incidence)));
        }
        Ok(Self {
            times: sets.iter().map(|set| set.time).collect(),
            incidence: incidences,
            variance: variances,
            event_free,
            n_at_risk: sets.iter().map(|set| set.at_risk).collect(),
            n_events: sets.iter().map(|set| set.of_cause).collect(),
        })
    }

    /// All distinct observed times (events of any cause, and censorings), ascending.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// F just after each of [`times`](Self::times), in [0, 1].
    pub fn incidence(&self) -> &[f64] {
        &self.incidence
    }

    /// Variance of F at each of [`times`](Self::times); `None` where its form has no value.
    pub fn variance(&self) -> &[Option<f64>] {
        &self.variance
    }

    /// Probability of being free of every event just after each of [`times`](Self::times): Kaplan-Meier of all causes.
    pub fn event_free(&self) -> &[f64] {
        &self.event_free
    }

    /// Samples at risk at each of [`times`](Self::times).
    pub fn n_at_risk(&self) -> &[usize] {
        &self.n_at_risk
    }

    /// Events of the cause at each of [`times`](Self::times).
    pub fn n_events(&self) -> &[usize] {
        &self.n_events
    }

    /// F(t); beyond the last time the last value is held.
    pub fn at(&self, t: f64) -> f64 {
        let passed = self.times.partition_point(|time| *time <= t);
        passed.checked_sub(1).map_or(0.0, |last| self.incidence[last])
    }

    /// F(t), refused where it is unknown: beyond the last time, unless everybody has had an event.
    ///
    /// # Errors
    /// [`MetricError::BeyondFollowUp`].
    pub fn known_at(&self, t: f64) -> Result<f64, MetricError> {
        let last = self.times.len() - 1;
        if t > self.times[last] && self.event_free[last] > 0.0 {
            return Err(MetricError::BeyondFollowUp { time: t, last: self.times[last] });
        }
        Ok(self.at(t))
    }

    /// Pointwise interval of `level` (for example 0.95) for F at each of [`times`](Self::times), on the scale of
    /// log(-log(1 - F)), so that it stays inside [0, 1].
    ///
    /// (0, 0) before the first event of the cause; `None` where F = 1 or the variance has no value.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] if `level` is not in (0, 1).
    pub fn interval(&self, level: f64) -> Result<Vec<Option<(f64, f64)>>, MetricError> {
        check_level(level)?;
        let z = normal_quantile(0.5 + level / 2.0);
        let bounds = |(&incidence, variance): (&f64, &Option<f64>)| {
            let (without, variance) = (1.0 - incidence, (*variance)?);
            if incidence <= 0.0 {
                return Some((0.0, 0.0));
            }
            if without <= 0.0 {
                return None;
            }
            let spread = z * variance.sqrt() / (without * without.ln()).abs();
            Some((1.0 - without.powf((-spread).exp()), 1.0 - without.powf(spread.exp())))
        };
        Ok(self.incidence.iter().zip(&self.variance).map(bounds).collect())
    }

    /// 1 - F in the shape of a Kaplan-Meier curve, which has the same interval.
    pub(crate) fn complement(self) -> KaplanMeier {
        let survival: Vec<f64> = self.incidence.iter().map(|incidence| 1.0 - incidence).collect();
        // As for Kaplan-Meier, there is no interval where the curve is 0.
        let variance = self.variance.iter().zip(&survival).map(|(v, s)| v.filter(|_| *s > 0.0)).collect();
        KaplanMeier::of_parts(self.times, survival, variance, self.n_at_risk, self.n_events)
    }
}

/// The observed probability of not having had the event by a time: Kaplan-Meier, or 1 - Aalen-Johansen where some samples
/// had a competing event.
///
/// # Errors
/// [`MetricError::NoSamples`] without samples.
pub(crate) fn observed_without(outcomes: &Outcomes, competing: Option<&[bool]>) -> Result<KaplanMeier, MetricError> {
    match competing {
        None => KaplanMeier::fit(outcomes),
        Some(competing) => {
            AalenJohansen::of_cause(outcomes, competing, IncidenceVariance::Delta).map(AalenJohansen::complement)
        }
    }
}

/// The sums over event times u of a D^2 + b - 2 D c, as D = F(t) - F(u) changes with t: O(1) per time.
#[derive(Clone, Copy, Default)]
struct VarianceSums {
    /// Sums of a, a F(u), a F(u)^2.
    a: [f64; 3],
    b: f64,
    /// Sums of c, c F(u).
    c: [f64; 2],
}

impl VarianceSums {
    /// With the terms of one time, `free` = S(u-), `incidence` = F(u).
    fn plus(mut self, set: &CauseSet, free: f64, incidence: f64, form: IncidenceVariance) -> Option<Self> {
        if set.of_all == 0 {
            return Some(self);
        }
        let (of_cause, of_all, n) = (set.of_cause as f64, set.of_all as f64, set.at_risk as f64);
        let reduced = match form {
            IncidenceVariance::Delta => n,
            IncidenceVariance::Aalen if set.at_risk == 1 => return None,
            IncidenceVariance::Aalen => n - 1.0,
        };
        self.b += free * free * of_cause * (n - of_cause) / (reduced * n * n);
        if set.of_all < set.at_risk {
            let of_a = of_all / (reduced * (n - of_all));
            let of_c = match form {
                IncidenceVariance::Delta => free * of_cause / (n * n),
                IncidenceVariance::Aalen => free * of_cause * (n - of_cause) / (reduced * n * (n - of_all)),
            };
            let powers = [1.0, incidence, incidence * incidence];
            self.a.iter_mut().zip(powers).for_each(|(sum, power)| *sum += of_a * power);
            self.c.iter_mut().zip(powers).for_each(|(sum, power)| *sum += of_c * power);
        }
        Some(self)
    }

    /// The variance at the time at which F is `incidence`.
    fn at(&self, incidence: f64) -> f64 {
        let of_a = incidence * incidence * self.a[0] - 2.0 * incidence * self.a[1] + self.a[2];
        // Rounding must not make it negative.
        (of_a + self.b - 2.0 * (incidence * self.c[0] - self.c[1])).max(0.0)
    }
}

/// The risk sets at all distinct times, ascending. O(n log n).
fn cause_sets(outcomes: &Outcomes, competing: &[bool]) -> Vec<CauseSet> {
    let rows = outcomes.time().iter().zip(outcomes.event()).zip(competing);
    let mut rows: Vec<(f64, bool, bool)> = rows.map(|((time, event), other)| (*time, *event, *other)).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut at_risk = rows.len();
    let mut sets = Vec::new();
    for tied in rows.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let of_cause = tied.iter().filter(|row| row.1).count();
        let of_all = of_cause + tied.iter().filter(|row| row.2).count();
        sets.push(CauseSet { time: tied[0].0, at_risk, of_cause, of_all });
        at_risk -= tied.len();
    }
    sets
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use proptest::prelude::*;

    use super::*;

    fn outcomes(rows: &[(u8, u32)]) -> CompetingOutcomes {
        let (time, cause) = rows.iter().map(|(time, cause)| (f64::from(*time), *cause)).unzip();
        CompetingOutcomes::with_causes(time, cause, 2).unwrap()
    }

    /// F at a time by the definition, one time after the other.
    fn direct(rows: &[(u8, u32)], t: f64) -> f64 {
        let mut times: Vec<u8> = rows.iter().map(|row| row.0).filter(|time| f64::from(*time) <= t).collect();
        times.sort_unstable();
        times.dedup();
        let (mut free, mut incidence) = (1.0, 0.0);
        for time in times {
            let count = |of: &dyn Fn(&(u8, u32)) -> bool| rows.iter().filter(|row| of(row)).count() as f64;
            let at_risk = count(&|row| row.0 >= time);
            incidence += free * count(&|row| row.0 == time && row.1 == 1) / at_risk;
            free *= 1.0 - count(&|row| row.0 == time && row.1 > 0) / at_risk;
        }
        incidence
    }

    proptest! {
        #[test]
        fn the_curves_of_all_causes_and_the_share_free_of_them_add_up_to_one(
            rows in prop::collection::vec((1_u8..12, 0_u32..3), 1..40),
        ) {
            let outcomes = outcomes(&rows);
            let fit = |cause| AalenJohansen::fit(&outcomes, cause, IncidenceVariance::Delta).unwrap();
            let (first, second) = (fit(1), fit(2));
            let all = KaplanMeier::fit(outcomes.all_causes()).unwrap();
            for (k, time) in first.times().iter().enumerate() {
                let sum = first.incidence()[k] + second.incidence()[k] + first.event_free()[k];
                prop_assert!((sum - 1.0).abs() < 1e-12);
                prop_assert_eq!(first.event_free()[k].to_bits(), all.survival()[k].to_bits());
                prop_assert!((first.incidence()[k] - direct(&rows, *time)).abs() < 1e-12);
            }
        }

        #[test]
        fn one_cause_alone_is_kaplan_meier_with_greenwoods_variance(
            rows in prop::collection::vec((1_u8..12, 0_u32..2), 1..40),
        ) {
            let outcomes = outcomes(&rows);
            let curve = AalenJohansen::fit(&outcomes, 1, IncidenceVariance::Delta).unwrap();
            let expected = KaplanMeier::fit(outcomes.all_causes()).unwrap();
            let (own, other) = (curve.interval(0.9).unwrap(), expected.interval(0.9).unwrap());
            for k in 0..curve.times().len() {
                prop_assert!((1.0 - curve.incidence()[k] - expected.survival()[k]).abs() < 1e-12);
                if let Some(variance) = expected.variance()[k] {
                    prop_assert!((curve.variance()[k].unwrap() - variance).abs() < 1e-12);
                }
                if let (Some(own), Some(other)) = (own[k], other[k]) {
                    prop_assert!((own.0 - 1.0 + other.1).abs() < 1e-6 && (own.1 - 1.0 + other.0).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn without_censoring_the_delta_variance_is_binomial() {
        // Twelve samples, none censored: F is the share with cause 1 by then.
        let rows: Vec<(u8, u32)> = (1..=12).map(|k| (k, if k % 3 == 0 { 2 } else { 1 })).collect();
        let curve = AalenJohansen::fit(&outcomes(&rows), 1, IncidenceVariance::Delta).unwrap();
        for (incidence, variance) in curve.incidence().iter().zip(curve.variance()) {
            assert_abs_diff_eq!(variance.unwrap(), incidence * (1.0 - incidence) / 12.0, epsilon = 1e-15);
        }
        assert_abs_diff_eq!(curve.at(99.0), 8.0 / 12.0, epsilon = 1e-15);
        assert_eq!(curve.known_at(99.0), Ok(curve.at(99.0)));
    }

    #[test]
    fn a_time_beyond_the_follow_up_is_refused_by_name() {
        let curve = AalenJohansen::fit(&outcomes(&[(1, 1), (3, 0)]), 1, IncidenceVariance::Delta).unwrap();
        assert_eq!(curve.known_at(3.5), Err(MetricError::BeyondFollowUp { time: 3.5, last: 3.0 }));
        assert_eq!((curve.known_at(3.0), curve.at(3.5)), (Ok(0.5), 0.5));
        assert!(curve.interval(1.0).is_err());
        let nobody = CompetingOutcomes::with_causes(vec![], vec![], 1).unwrap();
        assert_eq!(AalenJohansen::fit(&nobody, 1, IncidenceVariance::Delta), Err(MetricError::NoSamples));
    }

    #[test]
    fn the_interval_is_a_point_before_events_and_absent_at_one() {
        let curve = AalenJohansen::fit(&outcomes(&[(1, 2), (2, 1), (2, 1)]), 1, IncidenceVariance::Delta).unwrap();
        let interval = curve.interval(0.95).unwrap();
        assert_eq!(interval[0], Some((0.0, 0.0)));
        assert!(interval[1].is_some_and(|(low, high)| 0.0 < low && low < 2.0 / 3.0 && 2.0 / 3.0 < high && high < 1.0));
        let all = AalenJohansen::fit(&outcomes(&[(2, 1), (2, 1)]), 1, IncidenceVariance::Delta).unwrap();
        assert_eq!((all.incidence()[0], all.interval(0.95).unwrap()[0]), (1.0, None));
        // One sample is left: the form of Aalen divides by 0.
        let aalen = AalenJohansen::fit(&outcomes(&[(1, 1), (2, 1)]), 1, IncidenceVariance::Aalen).unwrap();
        assert!(aalen.variance()[0].is_some() && aalen.variance()[1].is_none());
    }
}
