//! Integrated calibration: how far the mean predicted curve of the evaluated samples is from their Kaplan-Meier curve.
//!
//! With K(t) the Kaplan-Meier curve of the evaluated samples and M(t) the mean of their predicted curves, the
//! difference D(t) = M(t) - K(t) is averaged over the given times by the trapezoid rule (divided by their range), as D
//! (the bias: above 0 the model predicts too much survival), |D| and D^2. 0 is ideal; D^2 of a flat curve at 1/2 is at
//! most 1/4.
//! The comparison of the two curves is that of Chapfuwa et al. (2023), <https://doi.org/10.1109/TNNLS.2020.3029631>, by
//! eye, and of Yanagisawa (2023), PMLR 202, 39165-39182, by divergence; the mean square is `km_calibration` of
//! `SurvivalEVAL` 0.9.0, which takes time 0 and the distinct event times and reads the mean curve linearly from (0, 1).
//! Golden values: that function. Here the times and the reading are given, so that groups share one window. A small
//! value means that the average is right, not every prediction: use it together with D-calibration.

use serde::{Deserialize, Serialize};

use crate::curves::check_grid;
use crate::estimators::KaplanMeier;
use crate::fairness::PerGroup;
use crate::scores::integrate::time_average;
use crate::{Groups, MetricError, Outcomes, Reading, SubjectId, SurvivalCurves};

/// Observed and predicted survival of the evaluated samples, and their average difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct IntegratedCalibration {
    /// The times, in the unit of the data set.
    pub times: Vec<f64>,
    /// Kaplan-Meier survival at every time.
    pub observed: Vec<f64>,
    /// Mean predicted survival at every time.
    pub predicted: Vec<f64>,
    /// Time average of predicted - observed, in [-1, 1]; above 0: too much survival is predicted.
    pub signed: f64,
    /// Time average of |predicted - observed|, in [0, 1].
    pub absolute: f64,
    /// Time average of (predicted - observed)^2, in [0, 1].
    pub squared: f64,
    /// Samples.
    pub n: usize,
    /// Events among them.
    pub n_events: usize,
}

/// Integrated calibration of all samples over `times` (increasing, at least two); O(n L + n log n) for L times.
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::calibration::integrated_calibration;
/// use ndarray::array;
///
/// // Kaplan-Meier: 1, 0.5, 0.5 at times 0, 1, 2; predicted: 1, 0.75, 0.5.
/// let outcomes = Outcomes::new(vec![1.0, 2.0], vec![true, false])?;
/// let curves = SurvivalCurves::new(vec![0.0, 1.0, 2.0], array![[1.0, 0.75, 0.5], [1.0, 0.75, 0.5]])?;
/// let found = integrated_calibration(&outcomes, &curves, Reading::Step, &[0.0, 1.0, 2.0])?;
/// assert_eq!((found.signed, found.absolute), (0.125, 0.125)); // (0 + 0.25) / 2 and (0.25 + 0) / 2, over 2
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::LengthMismatch`] if `curves` has not one row per sample,
/// [`MetricError::TooFewTimes`] or [`MetricError::InvalidGrid`] for the times, [`MetricError::InvalidSetting`] for the
/// reading, [`MetricError::BeyondFollowUp`] if a time is where the Kaplan-Meier curve is unknown: after the last
/// observed time, unless that was an event which brought the curve to 0.
pub fn integrated_calibration(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    reading: Reading,
    times: &[f64],
) -> Result<IntegratedCalibration, MetricError> {
    curves.check_rows(outcomes.n())?;
    reading.validate()?;
    if times.len() < 2 {
        return Err(MetricError::TooFewTimes { n_times: times.len() });
    }
    check_grid(times)?;
    let kaplan_meier = KaplanMeier::fit(outcomes)?;
    let last = outcomes.time().iter().copied().fold(0.0, f64::max);
    let beyond = times.iter().find(|time| **time > last);
    if let Some(&time) = beyond.filter(|_| kaplan_meier.at(last) > 0.0) {
        return Err(MetricError::BeyondFollowUp { time, last });
    }
    let observed: Vec<f64> = times.iter().map(|time| kaplan_meier.at(*time)).collect();
    let mean = |time: &f64| curves.all_at(*time, reading).iter().sum::<f64>() / outcomes.n() as f64;
    let predicted: Vec<f64> = times.iter().map(mean).collect();
    let difference: Vec<f64> =
        predicted.iter().zip(&observed).map(|(predicted, observed)| predicted - observed).collect();
    let average = |of: fn(f64) -> f64| time_average(times, &difference.iter().map(|d| of(*d)).collect::<Vec<_>>());
    Ok(IntegratedCalibration {
        signed: average(|d| d),
        absolute: average(f64::abs),
        squared: average(|d| d * d),
        times: times.to_vec(),
        observed,
        predicted,
        n: outcomes.n(),
        n_events: outcomes.n_events(),
    })
}

/// Integrated calibration of every group of one attribute over the same times: the Kaplan-Meier curve of the group
/// against the mean curve of the group.
///
/// A group that was followed for a shorter time than `times` has a [`MetricError::BeyondFollowUp`] in its place.
///
/// # Errors
/// [`MetricError::LengthMismatch`] if `groups`, `outcomes`, `curves` and `subjects` differ in length. An error in one
/// group becomes that group's value.
pub fn integrated_calibration_by_group(
    groups: &Groups,
    outcomes: &Outcomes,
    subjects: Option<&[SubjectId]>,
    curves: &SurvivalCurves,
    reading: Reading,
    times: &[f64],
) -> Result<PerGroup<IntegratedCalibration>, MetricError> {
    curves.check_rows(outcomes.n())?;
    PerGroup::compute(groups, outcomes, subjects, |rows| {
        integrated_calibration(&outcomes.select(rows), &curves.select(rows), reading, times)
    })
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use ndarray::array;

    use super::*;
    use crate::GroupId;

    fn five() -> (Outcomes, SurvivalCurves) {
        let outcomes = Outcomes::new(vec![0.5, 2.5, 3.0, 6.0, 6.5], vec![true, true, false, true, false]).unwrap();
        let survival = array![
            [1.0, 0.9, 0.8, 0.5, 0.2],
            [1.0, 0.95, 0.7, 0.6, 0.5],
            [1.0, 0.8, 0.4, 0.3, 0.1],
            [1.0, 0.99, 0.9, 0.85, 0.6],
            [1.0, 0.7, 0.6, 0.5, 0.45],
        ];
        (outcomes, SurvivalCurves::new(vec![0.0, 1.0, 2.0, 4.0, 7.0], survival).unwrap())
    }

    #[test]
    fn the_mean_square_is_that_of_survivaleval() {
        let (outcomes, curves) = five();
        let found = integrated_calibration(&outcomes, &curves, Reading::Linear, &[0.0, 0.5, 2.5, 6.0]).unwrap();
        // `SurvivalEvaluator(..).km_calibration()`, SurvivalEVAL 0.9.0.
        assert_relative_eq!(found.squared, 0.009_704_114_583_333_324, max_relative = 1e-13);
        assert_eq!((found.n, found.n_events), (5, 3));
    }

    #[test]
    fn too_much_and_too_little_survival_cancel_in_the_bias_alone() {
        // Kaplan-Meier 1, 0.5, 0.5; predicted 0.75, 0.75, 0.25: differences -0.25, 0.25, -0.25.
        let outcomes = Outcomes::new(vec![1.0, 2.0], vec![true, false]).unwrap();
        let curves = SurvivalCurves::new(vec![0.0, 2.0], array![[1.0, 0.5], [0.5, 0.0]]).unwrap();
        let found = integrated_calibration(&outcomes, &curves, Reading::Step, &[0.0, 1.0, 2.0]).unwrap();
        assert_eq!((found.signed, found.absolute, found.squared), (0.0, 0.25, 0.0625));
        assert_eq!((found.observed, found.predicted), (vec![1.0, 0.5, 0.5], vec![0.75, 0.75, 0.25]));
    }

    #[test]
    fn a_group_is_compared_with_its_own_curve_and_one_group_equals_overall() {
        let (outcomes, curves) = five();
        let times = [0.5, 1.0, 3.0];
        let overall = integrated_calibration(&outcomes, &curves, Reading::default(), &times).unwrap();
        let by = |levels: &[&str], membership: [u32; 5]| {
            let levels = levels.iter().map(|level| (*level).to_owned()).collect();
            let groups = Groups::new("sex", levels, membership.iter().map(|m| Some(GroupId(*m))).collect()).unwrap();
            integrated_calibration_by_group(&groups, &outcomes, None, &curves, Reading::default(), &times).unwrap()
        };
        assert_eq!(by(&["all"], [0; 5]).groups[0].value, Ok(overall));
        let two = by(&["F", "M"], [0, 0, 1, 1, 1]);
        let women = two.groups[0].value.clone();
        // Both women had the event by 2.5, so their curve is 0 from there on and known beyond.
        assert_eq!(women.unwrap().observed, [0.5, 0.5, 0.0]);
        let bias = two.map(|group| Ok(group.signed));
        assert!(bias.gap().unwrap() > 0.0);
    }

    #[test]
    fn times_beyond_the_follow_up_are_refused_by_name() {
        let (outcomes, curves) = five();
        let at = |times: &[f64]| integrated_calibration(&outcomes, &curves, Reading::Step, times).unwrap_err();
        assert_eq!(at(&[1.0, 7.0]), MetricError::BeyondFollowUp { time: 7.0, last: 6.5 });
        assert_eq!(at(&[1.0]), MetricError::TooFewTimes { n_times: 1 });
        assert_eq!(at(&[1.0, 1.0]), MetricError::InvalidGrid { index: 1, time: 1.0 });
        let nobody = integrated_calibration(&outcomes.select(&[]), &curves.select(&[]), Reading::Step, &[0.0, 1.0]);
        assert_eq!(nobody, Err(MetricError::NoSamples));
    }
}
