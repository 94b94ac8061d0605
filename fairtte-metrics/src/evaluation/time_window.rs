//! The times at which AUC and Brier score are evaluated.
//!
//! One choice serves the whole sample and every group: a group scored over its own window would be compared with
//! others at other times. The rules of support are those of `scikit-survival` 0.28.0: times lie in
//! [first, last) of the evaluated sample and where the censoring curve of the training sample is known and above 0.

use serde::{Deserialize, Serialize};

use crate::estimators::censoring::{BeyondLastTime, CensoringCurve};
use crate::resampling::bootstrap::quantile;
use crate::{EvaluationSettings, MetricError, Outcomes};

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

/// Chooses the times for `settings`, which must be valid.
pub(crate) fn choose_times(
    outcomes: &Outcomes,
    censoring: &CensoringCurve,
    settings: &EvaluationSettings,
) -> Result<TimeWindow, MetricError> {
    if let Some(times) = &settings.times {
        check_support(outcomes, censoring, times)?;
        let (lower, upper) = (times[0], times[times.len() - 1]);
        return Ok(TimeWindow { lower, upper, times: times.clone(), rule: "given in the settings".to_owned() });
    }
    let event_times = sorted_event_times(outcomes)?;
    let lower = quantile(&event_times, settings.lower_quantile);
    let wanted = quantile(&event_times, settings.upper_quantile);
    let (limit, reason) = upper_limit(outcomes, censoring, lower)?;
    let upper = wanted.min(limit);
    if upper < lower {
        return Err(MetricError::EmptyWindow { lower, upper });
    }
    let times = equally_spaced(lower, upper, settings.n_times);
    let clipped =
        if wanted > limit { format!("; upper end clipped from {wanted} to {limit}, {reason}") } else { String::new() };
    let rule = format!(
        "{} equally spaced times between the {} and {} quantiles of the {} evaluated event times{clipped}",
        times.len(),
        settings.lower_quantile,
        settings.upper_quantile,
        event_times.len()
    );
    Ok(TimeWindow { lower, upper, times, rule })
}

/// The horizon of the settings, or the median of the evaluated event times, moved into the evaluation times.
pub(crate) fn choose_horizon(
    outcomes: &Outcomes,
    window: Option<&TimeWindow>,
    settings: &EvaluationSettings,
) -> Result<f64, MetricError> {
    if let Some(horizon) = settings.horizon {
        return Ok(horizon);
    }
    let event_times = sorted_event_times(outcomes)?;
    let median = quantile(&event_times, 0.5);
    Ok(window.map_or(median, |window| median.clamp(window.lower, window.upper)))
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

fn equally_spaced(lower: f64, upper: f64, n: usize) -> Vec<f64> {
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
        let censoring = CensoringCurve::fit(&outcomes(train), CensoringTies::default()).unwrap();
        choose_times(&outcomes(test), &censoring, settings)
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
}
