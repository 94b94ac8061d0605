//! The Kaplan-Meier estimate of the survival function, with its Greenwood variance.
//!
//! S(t) = product over event times u <= t of (1 - d / r), where d events happen at u among r samples whose time is not
//! before u; a sample censored at u is still at risk at u.
//! Sources: Kaplan & Meier (1958), <https://doi.org/10.1080/01621459.1958.10501452>; the variance is that of
//! Greenwood (1926), the interval on the scale of log(-log S) that of Kalbfleisch & Prentice (1980).
//! Golden values: `scikit-survival` 0.28.0, `lifelines` 0.30.3, `pycox` 0.3.0 and R `survfit`, which agree.

use crate::estimators::censoring::{BeyondLastTime, check_number};
use crate::normal::normal_quantile;
use crate::{MetricError, Outcomes};

/// What is observed at one distinct time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RiskSet {
    pub(crate) time: f64,
    /// Samples whose time is not before this time.
    pub(crate) n_at_risk: usize,
    pub(crate) n_events: usize,
    pub(crate) n_censored: usize,
}

/// The risk sets at all distinct observed times, in order of time. O(n log n).
pub(crate) fn risk_sets(outcomes: &Outcomes) -> Vec<RiskSet> {
    let mut rows: Vec<(f64, bool)> = outcomes.time().iter().copied().zip(outcomes.event().iter().copied()).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut n_at_risk = rows.len();
    let mut sets = Vec::new();
    for tied in rows.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let n_events = tied.iter().filter(|row| row.1).count();
        sets.push(RiskSet { time: tied[0].0, n_at_risk, n_events, n_censored: tied.len() - n_events });
        n_at_risk -= tied.len();
    }
    sets
}

/// A Kaplan-Meier curve: a right-continuous step function of time that starts at 1.
///
/// ```
/// use fairtte_metrics::Outcomes;
/// use fairtte_metrics::estimators::KaplanMeier;
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 2.0, 3.0], vec![true, true, false, true])?;
/// let curve = KaplanMeier::fit(&outcomes)?;
/// assert_eq!(curve.at(0.9), 1.0);
/// assert_eq!(curve.at(1.0), 0.75);
/// assert_eq!(curve.at(2.5), 0.5); // 0.75 * (1 - 1/3): the sample censored at 2 is at risk at 2
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KaplanMeier {
    times: Vec<f64>,
    survival: Vec<f64>,
    variance: Vec<Option<f64>>,
    n_at_risk: Vec<usize>,
    n_events: Vec<usize>,
}

impl KaplanMeier {
    /// Fits the curve; O(n log n). Without any event the curve stays at 1.
    ///
    /// # Errors
    /// [`MetricError::NoSamples`] without samples.
    pub fn fit(outcomes: &Outcomes) -> Result<Self, MetricError> {
        let sets = risk_sets(outcomes);
        if sets.is_empty() {
            return Err(MetricError::NoSamples);
        }
        let (mut survival, mut greenwood) = (1.0, Some(0.0));
        let (mut survivals, mut variances) = (Vec::with_capacity(sets.len()), Vec::with_capacity(sets.len()));
        for set in &sets {
            let (events, at_risk) = (set.n_events as f64, set.n_at_risk as f64);
            survival *= 1.0 - events / at_risk;
            let term = (set.n_events < set.n_at_risk).then(|| events / (at_risk * (at_risk - events)));
            greenwood = greenwood.zip(term).map(|(sum, term)| sum + term);
            survivals.push(survival);
            variances.push(greenwood.map(|sum| survival * survival * sum));
        }
        Ok(Self {
            times: sets.iter().map(|set| set.time).collect(),
            survival: survivals,
            variance: variances,
            n_at_risk: sets.iter().map(|set| set.n_at_risk).collect(),
            n_events: sets.iter().map(|set| set.n_events).collect(),
        })
    }

    /// Another step function of the same shape, one value per time.
    pub(crate) fn of_parts(
        times: Vec<f64>,
        survival: Vec<f64>,
        variance: Vec<Option<f64>>,
        n_at_risk: Vec<usize>,
        n_events: Vec<usize>,
    ) -> Self {
        Self { times, survival, variance, n_at_risk, n_events }
    }

    /// All distinct observed times (events and censorings), ascending.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// S just after each of [`times`](Self::times).
    pub fn survival(&self) -> &[f64] {
        &self.survival
    }

    /// Samples at risk at each of [`times`](Self::times).
    pub fn n_at_risk(&self) -> &[usize] {
        &self.n_at_risk
    }

    /// Events at each of [`times`](Self::times).
    pub fn n_events(&self) -> &[usize] {
        &self.n_events
    }

    /// Greenwood variance of S at each of [`times`](Self::times); `None` once all samples at risk had the event
    /// (S = 0), where the formula has no value.
    pub fn variance(&self) -> &[Option<f64>] {
        &self.variance
    }

    /// S(t); beyond the last time the last value is held.
    pub fn at(&self, t: f64) -> f64 {
        value_before(&self.survival, self.times.partition_point(|time| *time <= t))
    }

    /// S(t) with a named policy beyond the last time: held (as [`at`](Self::at), `torchsurv`), on the line through (0, 1)
    /// and the last point down to 0 (`SurvivalEVAL`), or refused (`scikit-survival`). A curve that has fallen to 0 stays
    /// there.
    ///
    /// ```
    /// use fairtte_metrics::Outcomes;
    /// use fairtte_metrics::estimators::{BeyondLastTime, KaplanMeier};
    ///
    /// let curve = KaplanMeier::fit(&Outcomes::new(vec![1.0, 2.0], vec![true, false])?)?;
    /// assert_eq!(curve.at_or_beyond(3.0, BeyondLastTime::Hold)?, 0.5);
    /// assert_eq!(curve.at_or_beyond(3.0, BeyondLastTime::LinearToZero)?, 0.25);
    /// assert!(curve.at_or_beyond(3.0, BeyondLastTime::Refuse).is_err());
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// [`MetricError::BeyondFollowUp`] beyond the last time if that is refused, or if the last time is 0 and the policy is a
    /// line; [`MetricError::NotFinite`] if `t` is not a number.
    pub fn at_or_beyond(&self, t: f64, beyond: BeyondLastTime) -> Result<f64, MetricError> {
        check_number(t)?;
        let (last, held) = (self.times[self.times.len() - 1], self.survival[self.survival.len() - 1]);
        if t <= last {
            return Ok(self.at(t));
        }
        beyond.value((last, held), t).ok_or(MetricError::BeyondFollowUp { time: t, last })
    }

    /// S just before t.
    pub fn left_limit(&self, t: f64) -> f64 {
        value_before(&self.survival, self.times.partition_point(|time| *time < t))
    }

    /// Pointwise interval of `level` (for example 0.95) at each of [`times`](Self::times), on the scale of
    /// log(-log S), so that it stays inside [0, 1].
    ///
    /// (1, 1) before the first event; `None` where S = 0, because the variance is unknown there.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] if `level` is not in (0, 1).
    pub fn interval(&self, level: f64) -> Result<Vec<Option<(f64, f64)>>, MetricError> {
        check_level(level)?;
        let z = normal_quantile(0.5 + level / 2.0);
        let bounds = |(&survival, variance): (&f64, &Option<f64>)| {
            let variance = (*variance)?;
            if survival >= 1.0 {
                return Some((1.0, 1.0));
            }
            let spread = z * variance.sqrt() / (survival * survival.ln()).abs();
            Some((survival.powf(spread.exp()), survival.powf((-spread).exp())))
        };
        Ok(self.survival.iter().zip(&self.variance).map(bounds).collect())
    }
}

/// The value of a step function after `n_passed` of its steps; 1 before the first.
pub(crate) fn value_before(values: &[f64], n_passed: usize) -> f64 {
    n_passed.checked_sub(1).map_or(1.0, |last| values[last])
}

pub(crate) fn check_level(level: f64) -> Result<(), MetricError> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    let setting = "confidence level";
    Err(MetricError::InvalidSetting { setting, value: level.to_string(), expected: "a number between 0 and 1" })
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    fn fit(rows: &[(f64, bool)]) -> KaplanMeier {
        let (time, event) = rows.iter().copied().unzip();
        KaplanMeier::fit(&Outcomes::new(time, event).unwrap()).unwrap()
    }

    #[test]
    fn the_curve_is_right_continuous_and_held_beyond_the_last_time() {
        let curve = fit(&[(2.0, true), (1.0, true), (3.0, false), (4.0, false)]);
        assert_eq!((curve.left_limit(1.0), curve.at(1.0)), (1.0, 0.75));
        assert_eq!((curve.left_limit(2.0), curve.at(2.0), curve.at(99.0)), (0.75, 0.5, 0.5));
        assert_eq!(curve.n_at_risk(), [4, 3, 2, 1]);
        assert_eq!(curve.n_events(), [1, 1, 0, 0]);
    }

    #[test]
    fn a_curve_that_has_reached_zero_stays_there_under_every_policy() {
        let curve = fit(&[(1.0, true), (2.0, true)]);
        for beyond in [BeyondLastTime::Refuse, BeyondLastTime::Hold, BeyondLastTime::LinearToZero] {
            assert_eq!(curve.at_or_beyond(2.5, beyond), Ok(0.0));
        }
        let open = fit(&[(1.0, true), (2.0, false)]);
        let refused = open.at_or_beyond(2.5, BeyondLastTime::Refuse);
        assert_eq!(refused, Err(MetricError::BeyondFollowUp { time: 2.5, last: 2.0 }));
        assert_eq!(open.at_or_beyond(9.0, BeyondLastTime::LinearToZero), Ok(0.0));
        let at_entry = fit(&[(0.0, true), (0.0, false)]).at_or_beyond(1.0, BeyondLastTime::LinearToZero);
        assert_eq!(at_entry, Err(MetricError::BeyondFollowUp { time: 1.0, last: 0.0 }));
    }

    #[test]
    fn without_censoring_greenwood_is_the_binomial_variance() {
        let curve = fit(&[(1.0, true), (2.0, true), (3.0, true), (4.0, true), (5.0, true)]);
        for (survival, variance) in curve.survival().iter().zip(curve.variance()).take(4) {
            assert_abs_diff_eq!(variance.unwrap(), survival * (1.0 - survival) / 5.0, epsilon = 1e-15);
        }
        assert_eq!((curve.at(5.0), curve.variance()[4]), (0.0, None));
    }

    #[test]
    fn the_interval_matches_a_value_worked_out_by_hand() {
        // One event among ten: S = 0.9, var = 0.009; on the log(-log) scale theta = log(-log 0.9) = -2.2503673,
        // se = sqrt(0.009) / (0.9 * 0.1053605) = 1.0004625, so bounds 0.9^exp(+-1.959964 * 1.0004625).
        let mut rows = vec![(1.0, true)];
        rows.extend((2..=10).map(|k| (f64::from(k), false)));
        let interval = fit(&rows).interval(0.95).unwrap();
        let (lower, upper) = interval[0].unwrap();
        assert_abs_diff_eq!(lower, 0.473_009, epsilon = 1e-6);
        assert_abs_diff_eq!(upper, 0.985_281, epsilon = 1e-6);
    }

    #[test]
    fn the_interval_is_a_point_before_events_and_absent_at_zero() {
        let curve = fit(&[(1.0, false), (2.0, true)]);
        assert_eq!(curve.interval(0.95).unwrap(), [Some((1.0, 1.0)), None]);
        assert!(curve.interval(1.0).is_err());
    }

    #[test]
    fn no_samples_is_an_error() {
        let empty = Outcomes::new(vec![], vec![]).unwrap();
        assert_eq!(KaplanMeier::fit(&empty), Err(MetricError::NoSamples));
    }
}
