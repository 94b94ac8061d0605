//! The times at which AUC and Brier score are evaluated.
//!
//! One choice serves the whole sample and every group: a group scored over its own window would be compared with
//! others at other times. The rules of support are those of `scikit-survival` 0.28.0: times lie in
//! [first, last) of the evaluated sample and where the censoring curve of the training sample is known and above 0. Beyond
//! them, times lie within those of the curves ([`Covered`]): outside, a reading repeats the value of the nearest column.

use serde::{Deserialize, Serialize};

use crate::estimators::censoring::{BeyondLastTime, CensoringCurve};
use crate::resampling::bootstrap::quantile;
use crate::{EvaluationSettings, MetricError, Outcomes, Reading, SurvivalCurves};

/// The chosen evaluation times and the rule that gave them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TimeWindow {
    /// First time, in the unit of the data set.
    pub lower: f64,
    /// Last time.
    pub upper: f64,
    /// All times, ascending.
    pub times: Vec<f64>,
    /// The rule that gave them, in words.
    pub rule: String,
}

/// The times at which curves are known: from the first to the last time of their grid. Every curve is 1 at time 0, but
/// only [`Reading::LinearFromOne`] reads a curve between time 0 and its first column, so only with it they are known there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Covered {
    pub(crate) first: f64,
    pub(crate) last: f64,
}

impl Covered {
    /// The times at which all of `curves` are known.
    pub(crate) fn by<'a>(curves: impl IntoIterator<Item = &'a SurvivalCurves>, reading: Reading) -> Self {
        let whole = Self { first: 0.0, last: f64::INFINITY };
        curves.into_iter().fold(whole, |covered, curves| {
            let grid = curves.grid();
            let first = if matches!(reading, Reading::LinearFromOne) { 0.0 } else { grid[0] };
            Self { first: covered.first.max(first), last: covered.last.min(grid[grid.len() - 1]) }
        })
    }

    /// Checks a time.
    ///
    /// # Errors
    /// [`MetricError::OutsideCurves`] if the curves are not known there.
    fn require(self, time: f64) -> Result<(), MetricError> {
        let Self { first, last } = self;
        if (first..=last).contains(&time) { Ok(()) } else { Err(MetricError::OutsideCurves { time, first, last }) }
    }
}

/// The times at which a metric about one time can be computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KnownTimes {
    covered: Covered,
    /// First and last observed time of the evaluated sample.
    observed: (f64, f64),
}

impl KnownTimes {
    pub(crate) fn of(outcomes: &Outcomes, covered: Covered) -> Self {
        Self { covered, observed: observed_range(outcomes) }
    }

    /// What both know.
    pub(crate) fn and(self, other: Self) -> Self {
        let covered = Covered {
            first: self.covered.first.max(other.covered.first),
            last: self.covered.last.min(other.covered.last),
        };
        let observed = (self.observed.0.max(other.observed.0), self.observed.1.min(other.observed.1));
        Self { covered, observed }
    }

    /// The time, if curves and outcomes are known there.
    ///
    /// # Errors
    /// [`MetricError::OutsideCurves`], or [`MetricError::BeyondFollowUp`] after the last observed time.
    pub(crate) fn require(self, time: f64) -> Result<f64, MetricError> {
        self.covered.require(time)?;
        let (_, last) = self.observed;
        if time > last { Err(MetricError::BeyondFollowUp { time, last }) } else { Ok(time) }
    }
}

/// Chooses the times for `settings`, which must be valid.
pub(crate) fn choose_times(
    outcomes: &Outcomes,
    censoring: &CensoringCurve,
    covered: Covered,
    settings: &EvaluationSettings,
) -> Result<TimeWindow, MetricError> {
    if let Some(times) = &settings.times {
        check_support(outcomes, censoring, times)?;
        times.iter().try_for_each(|time| covered.require(*time))?;
        let (lower, upper) = (times[0], times[times.len() - 1]);
        return Ok(TimeWindow { lower, upper, times: times.clone(), rule: "given in the settings".to_owned() });
    }
    let event_times = sorted_event_times(outcomes)?;
    let (lowest, wanted) =
        (quantile(&event_times, settings.lower_quantile), quantile(&event_times, settings.upper_quantile));
    let lower = lowest.max(covered.first);
    let (limit, reason) = match upper_limit(outcomes, censoring, lowest)? {
        (limit, _) if covered.last < limit => (covered.last, "the last time of the curves"),
        of_outcomes => of_outcomes,
    };
    let upper = wanted.min(limit);
    if upper < lower {
        covered.require(lowest)?;
        return Err(MetricError::EmptyWindow { lower, upper });
    }
    let times = equally_spaced(lower, upper, settings.n_times);
    let clipped = |is_clipped: bool, end: &str, wanted: f64, limit: f64, reason: &str| {
        if is_clipped { format!("; {end} end clipped from {wanted} to {limit}, {reason}") } else { String::new() }
    };
    let below = clipped(lower > lowest, "lower", lowest, lower, "the first time of the curves");
    let above = clipped(wanted > limit, "upper", wanted, limit, reason);
    let rule = format!(
        "{} equally spaced times between the {} and {} quantiles of the {} evaluated event times{below}{above}",
        times.len(),
        settings.lower_quantile,
        settings.upper_quantile,
        event_times.len()
    );
    Ok(TimeWindow { lower, upper, times, rule })
}

/// The evaluation times that two cohorts have in common, from the window of each by itself.
///
/// # Errors
/// [`MetricError::EmptyWindow`] if they have none.
pub(crate) fn common_window(
    internal: &TimeWindow,
    external: &TimeWindow,
    settings: &EvaluationSettings,
) -> Result<TimeWindow, MetricError> {
    if settings.times.is_some() {
        return Ok(internal.clone());
    }
    let (lower, upper) = (internal.lower.max(external.lower), internal.upper.min(external.upper));
    if upper < lower {
        return Err(MetricError::EmptyWindow { lower, upper });
    }
    let times = equally_spaced(lower, upper, settings.n_times);
    let n = times.len();
    let rule = format!(
        "{n} equally spaced times that both cohorts cover; internal: {}; external: {}",
        internal.rule, external.rule
    );
    Ok(TimeWindow { lower, upper, times, rule })
}

/// The horizon of the settings, or the median of the evaluated event times, moved into the evaluation times.
///
/// # Errors
/// [`MetricError::NoEvents`] without both, and those of [`KnownTimes::require`].
pub(crate) fn choose_horizon(
    outcomes: &Outcomes,
    window: Option<&TimeWindow>,
    known: KnownTimes,
    settings: &EvaluationSettings,
) -> Result<f64, MetricError> {
    if let Some(horizon) = settings.horizon {
        return known.require(horizon);
    }
    let event_times = sorted_event_times(outcomes)?;
    let median = quantile(&event_times, 0.5);
    known.require(window.map_or(median, |window| median.clamp(window.lower, window.upper)))
}

fn sorted_event_times(outcomes: &Outcomes) -> Result<Vec<f64>, MetricError> {
    let events = outcomes.time().iter().zip(outcomes.event()).filter(|(_, event)| **event);
    let mut event_times: Vec<f64> = events.map(|(time, _)| *time).collect();
    if event_times.is_empty() {
        return Err(MetricError::NoEvents { n: outcomes.n() });
    }
    event_times.sort_by(f64::total_cmp);
    Ok(event_times)
}

/// The last usable time and what limits it.
fn upper_limit(
    outcomes: &Outcomes,
    censoring: &CensoringCurve,
    lower: f64,
) -> Result<(f64, &'static str), MetricError> {
    let (first, last) = observed_range(outcomes);
    let below_last = outcomes.time().iter().copied().filter(|time| *time < last).reduce(f64::max);
    let below_last = below_last.ok_or(MetricError::OutsideObservedTimes { time: lower, first, last })?;
    let of_sample = (below_last, "the second-to-last observed time, because there is no follow-up beyond the last");
    let last_positive =
        censoring.last_positive_time().ok_or(MetricError::ZeroCensoringSurvival { time: censoring.times()[0] })?;
    // `<`: the curve falls to 0 at a later time of the training sample.
    let of_censoring = if last_positive < censoring.last_time() {
        (last_positive, "the last time at which the censoring curve is above 0")
    } else if censoring.beyond() != BeyondLastTime::Hold {
        (last_positive, "the last time of the censoring curve")
    } else {
        (f64::INFINITY, "")
    };
    Ok(if of_censoring.0 < of_sample.0 { of_censoring } else { of_sample })
}

fn observed_range(outcomes: &Outcomes) -> (f64, f64) {
    let times = outcomes.time().iter();
    times.fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), &t| (first.min(t), last.max(t)))
}

fn check_support(outcomes: &Outcomes, censoring: &CensoringCurve, times: &[f64]) -> Result<(), MetricError> {
    let (first, last) = observed_range(outcomes);
    for &time in times {
        if time < first || time >= last {
            return Err(MetricError::OutsideObservedTimes { time, first, last });
        }
        censoring.weight_at(time)?;
    }
    Ok(())
}

/// At most `n` times from `lower` to `upper`.
pub(crate) fn equally_spaced(lower: f64, upper: f64, n: usize) -> Vec<f64> {
    let last = n - 1;
    let time = |k: usize| if k == last { upper } else { lower + (upper - lower) * (k as f64 / last as f64) };
    let mut times: Vec<f64> = (0..n).map(time).collect();
    // A window narrower than n floating-point steps, often a single time, has fewer than n times.
    times.dedup();
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CensoringTies;

    fn outcomes(rows: &[(f64, bool)]) -> Outcomes {
        let (time, event) = rows.iter().copied().unzip();
        Outcomes::new(time, event).unwrap()
    }

    fn choose(
        test: &[(f64, bool)],
        train: &[(f64, bool)],
        settings: &EvaluationSettings,
    ) -> Result<TimeWindow, MetricError> {
        choose_within(&[0.0, 100.0], test, train, settings)
    }

    fn choose_within(
        grid: &[f64],
        test: &[(f64, bool)],
        train: &[(f64, bool)],
        settings: &EvaluationSettings,
    ) -> Result<TimeWindow, MetricError> {
        let censoring = CensoringCurve::fit(&outcomes(train), CensoringTies::default()).unwrap();
        let curves = SurvivalCurves::new(grid.to_vec(), ndarray::Array2::ones((1, grid.len()))).unwrap();
        choose_times(&outcomes(test), &censoring, Covered::by([&curves], settings.reading), settings)
    }

    fn settings() -> EvaluationSettings {
        EvaluationSettings { n_times: 5, ..EvaluationSettings::default() }
    }

    #[test]
    fn the_window_runs_between_quantiles_of_the_event_times() {
        let test: Vec<(f64, bool)> = (1..=11).map(|k| (f64::from(k), true)).chain([(20.0, false)]).collect();
        let window = choose(&test, &[(30.0, true)], &settings()).unwrap();
        assert_eq!((window.lower, window.upper), (2.0, 10.0));
        assert_eq!(window.times, [2.0, 4.0, 6.0, 8.0, 10.0]);
    }

    #[test]
    fn the_upper_end_is_clipped_to_where_weights_and_controls_exist() {
        let test = [(1.0, true), (2.0, true), (6.0, true), (6.0, true), (6.0, true)];
        let by_sample = choose(&test, &[(30.0, true)], &settings()).unwrap();
        assert_eq!(by_sample.upper, 2.0);
        assert!(by_sample.rule.contains("clipped from 6 to 2, the second-to-last observed time"));
        let longer = [(1.0, true), (2.0, true), (6.0, true), (9.0, false)];
        assert_eq!(choose(&longer, &[(1.0, true), (3.0, true)], &settings()).unwrap().upper, 3.0);
        assert_eq!(choose(&longer, &[(1.0, true), (2.5, true), (4.0, false)], &settings()).unwrap().upper, 2.5);
        let empty = choose(&longer, &[(0.5, true)], &settings());
        assert!(matches!(empty, Err(MetricError::EmptyWindow { upper: 0.5, .. })));
    }

    #[test]
    fn samples_without_a_window_say_why() {
        assert_eq!(choose(&[(1.0, false)], &[(3.0, true)], &settings()), Err(MetricError::NoEvents { n: 1 }));
        let all_equal = choose(&[(2.0, true), (2.0, true)], &[(3.0, true)], &settings());
        assert!(matches!(all_equal, Err(MetricError::OutsideObservedTimes { .. })));
    }

    #[test]
    fn given_times_must_lie_inside_the_support() {
        let given = |times: &[f64]| EvaluationSettings { times: Some(times.to_vec()), ..settings() };
        let test = [(1.0, true), (6.0, true), (9.0, false)];
        assert_eq!(choose(&test, &[(30.0, true)], &given(&[2.0, 3.0])).unwrap().times, [2.0, 3.0]);
        let last = choose(&test, &[(30.0, true)], &given(&[2.0, 9.0]));
        assert_eq!(last, Err(MetricError::OutsideObservedTimes { time: 9.0, first: 1.0, last: 9.0 }));
        let beyond = choose(&test, &[(2.5, true)], &given(&[3.0]));
        assert_eq!(beyond, Err(MetricError::BeyondCensoringCurve { time: 3.0, last: 2.5 }));
    }

    #[test]
    fn the_window_lies_within_the_times_of_the_curves() {
        let test: Vec<(f64, bool)> = (1..=11).map(|k| (f64::from(k), true)).chain([(20.0, false)]).collect();
        let within =
            |grid: &[f64], settings: &EvaluationSettings| choose_within(grid, &test, &[(30.0, true)], settings);
        let all = within(&[2.0, 10.0], &settings()).unwrap();
        assert_eq!((all.times, all.rule.contains("clipped")), (vec![2.0, 4.0, 6.0, 8.0, 10.0], false));
        let both = within(&[3.0, 5.0, 7.0], &settings()).unwrap();
        assert_eq!(both.times, [3.0, 4.0, 5.0, 6.0, 7.0]);
        let ends = "; lower end clipped from 2 to 3, the first time of the curves; upper end clipped from 10 to 7, the \
                    last time of the curves";
        assert!(both.rule.ends_with(ends), "{}", both.rule);
        let from_one = EvaluationSettings { reading: Reading::LinearFromOne, ..settings() };
        assert_eq!(within(&[3.0, 5.0, 7.0], &from_one).unwrap().lower, 2.0, "a curve is known from (0, 1) on");
        let before = MetricError::OutsideCurves { time: 2.0, first: 0.0, last: 1.5 };
        assert_eq!(within(&[0.0, 1.5], &settings()), Err(before));
        let after = MetricError::OutsideCurves { time: 2.0, first: 12.0, last: 15.0 };
        assert_eq!(within(&[12.0, 15.0], &settings()), Err(after));
    }

    #[test]
    fn given_times_must_lie_within_the_times_of_the_curves() {
        let given = EvaluationSettings { times: Some(vec![3.0, 5.0]), ..settings() };
        let test = [(1.0, true), (6.0, true), (9.0, false)];
        let within = |grid: &[f64]| choose_within(grid, &test, &[(30.0, true)], &given);
        assert_eq!(within(&[3.0, 5.0]).unwrap().times, [3.0, 5.0]);
        assert_eq!(within(&[0.0, 4.0]), Err(MetricError::OutsideCurves { time: 5.0, first: 0.0, last: 4.0 }));
        assert_eq!(within(&[3.5, 9.0]), Err(MetricError::OutsideCurves { time: 3.0, first: 3.5, last: 9.0 }));
    }

    #[test]
    fn a_horizon_lies_within_the_times_of_curves_and_outcomes() {
        let of = |grid: &[f64], horizon: Option<f64>| {
            let curves = SurvivalCurves::new(grid.to_vec(), ndarray::Array2::ones((1, grid.len()))).unwrap();
            let outcomes = outcomes(&[(1.0, true), (6.0, true), (8.0, true), (9.0, false)]);
            let known = KnownTimes::of(&outcomes, Covered::by([&curves], Reading::default()));
            choose_horizon(&outcomes, None, known, &EvaluationSettings { horizon, ..settings() })
        };
        assert_eq!(of(&[0.0, 20.0], Some(9.0)), Ok(9.0), "the last observed time is known");
        assert_eq!(of(&[0.0, 20.0], Some(9.5)), Err(MetricError::BeyondFollowUp { time: 9.5, last: 9.0 }));
        assert_eq!(of(&[0.0, 7.0], Some(7.0)), Ok(7.0));
        let outside = |time, first, last| Err(MetricError::OutsideCurves { time, first, last });
        assert_eq!(of(&[0.0, 7.0], Some(7.5)), outside(7.5, 0.0, 7.0));
        assert_eq!(of(&[2.0, 7.0], Some(1.0)), outside(1.0, 2.0, 7.0));
        // The median of the event times.
        assert_eq!(of(&[0.0, 7.0], None), Ok(6.0));
        assert_eq!(of(&[0.0, 5.0], None), outside(6.0, 0.0, 5.0));
    }

    #[test]
    fn two_cohorts_know_what_both_know() {
        let known = |first, last, observed| KnownTimes { covered: Covered { first, last }, observed };
        let both = known(0.0, 9.0, (1.0, 8.0)).and(known(2.0, 7.0, (3.0, 6.0)));
        assert_eq!(both, known(2.0, 7.0, (3.0, 6.0)));
        assert_eq!(both, known(2.0, 7.0, (3.0, 6.0)).and(known(0.0, 9.0, (1.0, 8.0))));
    }

    #[test]
    fn models_are_compared_where_all_of_their_curves_are_known() {
        let curves = |grid: [f64; 2]| SurvivalCurves::new(grid.to_vec(), ndarray::Array2::ones((1, 2))).unwrap();
        let covered = Covered::by([&curves([0.0, 4.0]), &curves([1.0, 9.0])], Reading::default());
        assert_eq!(covered, Covered { first: 1.0, last: 4.0 });
    }
}
