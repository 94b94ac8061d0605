//! Whether the times of a training sample, on which the censoring curve is fitted, are in the unit of the evaluated ones.
//!
//! The rule is that of curves and outcomes ([`check_units`](crate::evaluation::check_units)), with the Kaplan-Meier curve of the
//! training sample in place of the mean curve. Where no unit explains it, ranges are far apart only by the median of one sample,
//! because the largest of a few evaluated times may be small.

use crate::estimators::kaplan_meier::KaplanMeier;
use crate::evaluation::coverage::{FAR, Ranges};
use crate::resampling::bootstrap::quantile;
use crate::{MetricError, Outcomes};

/// Number of times, after 0, on which the curve of the training sample is compared.
const N_TIMES: usize = 256;

/// Checks that the times of `train` can be in the unit of the `evaluated` ones.
///
/// With `L` the largest time of `train` and `T` that of `evaluated`, these are errors: a median of one sample above 50 times the largest
/// time of the other; and `L / T` within a factor of 2 of a factor of two units, if the mean distance of the two Kaplan-Meier curves is
/// above 0.05 and falls below half of that with the conversion. The ranges are far apart by the first rule, and by the second if one
/// largest time is above 50 times the other. Otherwise the second rule takes samples with very different risk and follow-up for another
/// unit too (hazards that differ by a factor of 4 or more): callers that know the unit may pass over it. O(n log n).
///
/// ```
/// use fairtte_metrics::Outcomes;
/// use fairtte_metrics::evaluation::check_training_times;
///
/// let evaluated = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, false, true])?;
/// let train = Outcomes::new(vec![365.25, 730.5, 1095.75], vec![true, false, true])?;
/// let error = check_training_times(&train, &evaluated).unwrap_err().to_string();
/// assert!(error.contains("they look like days and years; divide the training times by 365.25"), "{error}");
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::TrainingTimesDisagree`] with the largest times and, if one makes them agree, the factor.
pub fn check_training_times(train: &Outcomes, evaluated: &Outcomes) -> Result<(), MetricError> {
    let (of_train, of_evaluated) = (sorted(train), sorted(evaluated));
    let (Some(&last), Some(&latest)) = (of_train.last(), of_evaluated.last()) else { return Ok(()) };
    // Without a time after 0 there is no range.
    if last <= 0.0 || latest <= 0.0 {
        return Ok(());
    }
    let curve = KaplanMeier::fit(train)?;
    let grid: Vec<f64> = (0..=N_TIMES).map(|k| last * (k as f64 / N_TIMES as f64)).collect();
    let mean: Vec<f64> = grid.iter().map(|time| curve.at(*time)).collect();
    let ranges = Ranges { grid: &grid, mean: &mean, observed: KaplanMeier::fit(evaluated)?, latest };
    let is_far = quantile(&of_train, 0.5) > FAR * latest || quantile(&of_evaluated, 0.5) > FAR * last;
    let factor = ranges.factor().filter(|factor| is_far || ranges.fit_only_by(factor));
    if !is_far && factor.is_none() {
        return Ok(());
    }
    // No difference in risk explains such a factor between the ranges where a unit does. Early events of one sample bring its median
    // close to the range of the other.
    let is_far = is_far || last > FAR * latest || latest > FAR * last;
    Err(MetricError::TrainingTimesDisagree { train: last, evaluated: latest, factor, is_far })
}

fn sorted(outcomes: &Outcomes) -> Vec<f64> {
    let mut times = outcomes.time().to_vec();
    times.sort_by(f64::total_cmp);
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 samples with a constant hazard per year, followed for at most `years`; times in years times `scale`.
    fn outcomes(hazard: f64, years: f64, scale: f64) -> Outcomes {
        let event_time = |k: usize| -(1.0 - (k as f64 + 0.5) / 200.0).ln() / hazard;
        let rows = (0..200).map(event_time).map(|time| (time.min(years) * scale, time <= years));
        let (time, event) = rows.unzip();
        Outcomes::new(time, event).unwrap()
    }

    #[test]
    fn training_times_in_another_unit_are_refused_in_both_directions() {
        for (factor, smaller, larger) in
            [(365.25, "days", "years"), (52.18, "weeks", "years"), (12.0, "months", "years"), (7.0, "days", "weeks")]
        {
            let check = |train: f64, evaluated: f64| {
                let (train, evaluated) = (outcomes(0.3, 5.0, train), outcomes(0.3, 5.0, evaluated));
                check_training_times(&train, &evaluated).unwrap_err().to_string()
            };
            let long = check(factor, 1.0);
            let advice = format!("they look like {smaller} and {larger}; divide the training times by {factor};");
            assert!(long.contains(&advice), "{long}");
            let short = check(1.0, factor);
            let advice = format!("they look like {larger} and {smaller}; multiply the training times by {factor};");
            assert!(short.contains(&advice), "{short}");
        }
        let far = check_training_times(&outcomes(0.3, 5.0, 1e5), &outcomes(0.3, 5.0, 1.0)).unwrap_err().to_string();
        let expected = "the training times go up to 500000 and the evaluated ones up to 5: they hardly overlap, expected the same unit of \
                        time; if the unit is the same, censor the longer of the two where the other ends";
        assert_eq!(far, expected);
    }

    #[test]
    fn another_follow_up_and_another_risk_are_no_other_unit() {
        for (train, evaluated) in [(1.0, 12.0), (12.0, 1.0), (5.0, 5.0), (0.5, 8.0), (2.0, 15.0)] {
            for hazard in [0.15, 0.2, 0.3, 0.4, 0.6] {
                let found = check_training_times(&outcomes(hazard, train, 1.0), &outcomes(0.3, evaluated, 1.0));
                assert_eq!(found, Ok(()), "{train} {evaluated} {hazard}");
            }
        }
        // A risk that is far higher looks like another unit; ranges that hardly overlap are told apart.
        let is_far = |train: &Outcomes, evaluated: &Outcomes| match check_training_times(train, evaluated) {
            Err(MetricError::TrainingTimesDisagree { is_far, .. }) => Some(is_far),
            found => found.map(|()| None).unwrap(),
        };
        assert_eq!(is_far(&outcomes(0.05, 10.0, 1.0), &outcomes(0.5, 1.0, 1.0)), Some(false));
        // With the early events of a high hazard, the median of the days is below 50 times the largest time in years.
        for hazard in [0.3, 2.0] {
            let (days, years) = (outcomes(hazard, 5.0, 365.25), outcomes(hazard, 5.0, 1.0));
            assert_eq!(is_far(&days, &years), Some(true), "{hazard}");
            assert_eq!(is_far(&years, &days), Some(true), "{hazard}");
        }
        // A single early sample, and samples without a time after 0.
        let of = |time: f64| Outcomes::new(vec![time], vec![true]).unwrap();
        assert_eq!(check_training_times(&outcomes(0.3, 5.0, 1.0), &of(0.5)), Ok(()));
        assert_eq!(check_training_times(&of(0.0), &of(5.0)), Ok(()));
    }
}
