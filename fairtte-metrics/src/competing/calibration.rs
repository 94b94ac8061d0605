//! Calibration of the predicted incidence of one cause at a time: against Aalen-Johansen, and smoothed.
//!
//! O/E(t) = Aalen-Johansen(t) / mean of F(t); 1 if the risk of the whole sample is right, above 1 if it is underestimated. In
//! bins of equal size by predicted risk, the mean of F(t) is shown beside Aalen-Johansen of the bin. The integrated calibration
//! index smooths instead of binning: the observed risk of samples with a prediction F is that of a model of the
//! subdistribution hazard on a restricted cubic spline of log(-log(1 - F)).
//! Sources: van Geloven et al. (2022), <https://doi.org/10.1136/bmj-2021-069249> (O/E and slope with competing events); Austin,
//! Putter, Giardiello & van Klaveren (2022), <https://doi.org/10.1186/s41512-021-00114-6> (index). With one cause each is
//! the measure of the same name in [`crate::calibration`].

use crate::calibration::calibration_index::{PreparedCalibrationSlope, index_of_risk};
use crate::calibration::observed_expected::check_time;
use crate::calibration::{CalibrationIndex, ObservedExpected};
use crate::competing::{CompetingOutcomes, IncidenceCurves};
use crate::estimators::kaplan_meier::check_level;
use crate::evaluation::CalibrationPoint;
use crate::evaluation::calibration_curve::points_in_bins;
use crate::ids::to_u32;
use crate::{MetricError, Outcomes, Reading};

/// The observed/expected ratio of the predicted incidence of `cause` at `time`; O(n log n).
///
/// ```
/// use fairtte_metrics::Reading;
/// use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves, cause_observed_expected};
/// use ndarray::array;
///
/// // By 2: cause 1, cause 2, neither, neither.
/// let outcomes = CompetingOutcomes::new(vec![1.0, 1.5, 3.0, 4.0], vec![1, 2, 1, 0])?;
/// let curves = IncidenceCurves::new(vec![2.0], array![[0.5], [0.5], [0.5], [0.5]])?;
/// let found = cause_observed_expected(&outcomes, 1, &curves, 2.0, Reading::Step)?;
/// assert_eq!((found.observed, found.expected, found.ratio), (0.25, 0.5, 0.5));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::UnknownCause`]; [`MetricError::NoSamples`]; [`MetricError::LengthMismatch`] if `curves` has not one row per
/// sample; [`MetricError::InvalidSetting`] unless `time` is a finite number >= 0; [`MetricError::BeyondFollowUp`] if the incidence is
/// unknown then; [`MetricError::NoPredictedRisk`] if every predicted risk is 0.
pub fn cause_observed_expected(
    outcomes: &CompetingOutcomes,
    cause: u32,
    curves: &IncidenceCurves,
    time: f64,
    reading: Reading,
) -> Result<ObservedExpected, MetricError> {
    let risk = risk_at(outcomes, curves, time, reading)?;
    let (of_cause, competing) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?);
    PreparedCauseObserved::new((&of_cause, &competing), risk, time).weighted(&vec![1; outcomes.n()])
}

/// The integrated calibration index of the predicted incidence of `cause` at `time`; O(n log n).
///
/// # Errors
/// [`MetricError::UnknownCause`], and those of [`calibration_index`](crate::calibration::calibration_index).
pub fn cause_calibration_index(
    outcomes: &CompetingOutcomes,
    cause: u32,
    curves: &IncidenceCurves,
    time: f64,
    reading: Reading,
) -> Result<CalibrationIndex, MetricError> {
    let risk = risk_at(outcomes, curves, time, reading)?;
    index_of_risk(&outcomes.of_cause(cause)?, &outcomes.competing(cause)?, risk, time)
}

/// The calibration slope of the predicted incidence of `cause` at `time`: the coefficient of log(-log(1 - F)) in a model of
/// the subdistribution hazard. O(n log n).
///
/// # Errors
/// As [`cause_calibration_index`]; [`MetricError::CalibrationModel`] also if all predictions are equal.
pub fn cause_calibration_slope(
    outcomes: &CompetingOutcomes,
    cause: u32,
    curves: &IncidenceCurves,
    time: f64,
    reading: Reading,
) -> Result<f64, MetricError> {
    let risk = risk_at(outcomes, curves, time, reading)?;
    let (of_cause, competing) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?);
    PreparedCalibrationSlope::new(&of_cause, &competing, &risk, time)?.weighted(&vec![1; outcomes.n()])
}

/// Predicted against observed incidence of `cause` at `time` in at most `n_bins` bins of equal size by predicted risk, ascending;
/// samples of the same risk are in one bin. The observed one is Aalen-Johansen of the bin, with its pointwise interval of `level`. A
/// bin that is not followed to `time` is left out. O(n log n).
///
/// ```
/// use fairtte_metrics::Reading;
/// use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves, cause_calibration_bins};
/// use ndarray::array;
///
/// // Of the two with low risk none has cause 1 by 2, of those with high risk one.
/// let outcomes = CompetingOutcomes::new(vec![3.0, 1.5, 1.0, 4.0], vec![0, 2, 1, 0])?;
/// let curves = IncidenceCurves::new(vec![2.0], array![[0.25], [0.25], [0.75], [0.75]])?;
/// let bins = cause_calibration_bins(&outcomes, 1, &curves, 2.0, Reading::Step, 2, 0.95)?;
/// assert_eq!((bins[0].predicted, bins[0].observed), (0.25, 0.0));
/// assert_eq!((bins[1].predicted, bins[1].observed), (0.75, 0.5));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::UnknownCause`], [`MetricError::LengthMismatch`], [`MetricError::InvalidSetting`] for a time that is no finite
/// number >= 0, for a level outside (0, 1), for no bin, or more bins than samples.
pub fn cause_calibration_bins(
    outcomes: &CompetingOutcomes,
    cause: u32,
    curves: &IncidenceCurves,
    time: f64,
    reading: Reading,
    n_bins: usize,
    level: f64,
) -> Result<Vec<CalibrationPoint>, MetricError> {
    check_level(level)?;
    let risk = risk_at(outcomes, curves, time, reading)?;
    if !(1..=outcomes.n()).contains(&n_bins) {
        let (setting, value) = ("number of bins", n_bins.to_string());
        return Err(MetricError::InvalidSetting { setting, value, expected: "at least 1 and at most one per sample" });
    }
    let mut order: Vec<usize> = (0..outcomes.n()).collect();
    order.sort_by(|a, b| risk[*a].total_cmp(&risk[*b]));
    let (of_cause, competing) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?);
    points_in_bins((&of_cause, Some(&competing)), &risk, &order, n_bins, (time, level))
}

fn risk_at(
    outcomes: &CompetingOutcomes,
    curves: &IncidenceCurves,
    time: f64,
    reading: Reading,
) -> Result<Vec<f64>, MetricError> {
    curves.without().check_rows(outcomes.n())?;
    reading.validate()?;
    check_time(time)?;
    Ok(curves.all_at(time, reading))
}

/// The observed/expected ratio for any weights of the samples.
#[derive(Clone, Debug)]
pub(crate) struct PreparedCauseObserved {
    horizon: f64,
    risk: Vec<f64>,
    /// By ascending time.
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    place: u32,
    time: f64,
    event: bool,
    competing: bool,
}

impl PreparedCauseObserved {
    pub(crate) fn new((outcomes, competing): (&Outcomes, &[bool]), risk: Vec<f64>, horizon: f64) -> Self {
        let of_row = |row: u32| {
            let at = row as usize;
            Row { place: row, time: outcomes.time()[at], event: outcomes.event()[at], competing: competing[at] }
        };
        let mut rows: Vec<Row> = (0..to_u32(outcomes.n())).map(of_row).collect();
        rows.sort_by(|a, b| a.time.total_cmp(&b.time));
        Self { horizon, risk, rows }
    }

    /// The ratio of the sample in which row `i` occurs `weights[i]` times; O(n).
    pub(crate) fn weighted(&self, weights: &[u32]) -> Result<ObservedExpected, MetricError> {
        let n: u64 = weights.iter().copied().map(u64::from).sum();
        if n == 0 {
            return Err(MetricError::NoSamples);
        }
        let observed = self.observed(weights, n)?;
        let risks = self.risk.iter().zip(weights).map(|(risk, weight)| risk * f64::from(*weight));
        let expected = risks.sum::<f64>() / n as f64;
        if expected <= 0.0 {
            return Err(MetricError::NoPredictedRisk { time: self.horizon });
        }
        Ok(ObservedExpected { observed, expected, ratio: observed / expected })
    }

    /// Aalen-Johansen at the horizon of `n` samples.
    fn observed(&self, weights: &[u32], n: u64) -> Result<f64, MetricError> {
        let (mut free, mut incidence, mut at_risk, mut last) = (1.0, 0.0, n, 0.0_f64);
        for tied in self.rows.chunk_by(|a, b| a.time.total_cmp(&b.time).is_eq()) {
            let count = |of: &dyn Fn(&Row) -> bool| -> u64 {
                tied.iter().filter(|row| of(row)).map(|row| u64::from(weights[row.place as usize])).sum()
            };
            let (time, n_left) = (tied[0].time, count(&|_| true));
            if n_left == 0 {
                continue;
            }
            last = time;
            if time > self.horizon {
                return Ok(incidence);
            }
            let (of_cause, of_all) = (count(&|row| row.event), count(&|row| row.event || row.competing));
            incidence += free * of_cause as f64 / at_risk as f64;
            free *= 1.0 - of_all as f64 / at_risk as f64;
            at_risk -= n_left;
        }
        // No sample is followed beyond the horizon.
        if self.horizon > last && free > 0.0 {
            return Err(MetricError::BeyondFollowUp { time: self.horizon, last });
        }
        Ok(f64::min(incidence, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::calibration::{calibration_index, calibration_slope, observed_expected};
    use crate::competing::testing::samples;
    use crate::competing::{AalenJohansen, IncidenceVariance};

    proptest! {
        #[test]
        fn the_observed_risk_is_aalen_johansen_and_a_weight_a_repeated_row(
            sample in samples(2, 20), picked in prop::collection::vec(0_u32..4, 20), horizon in 1_u8..9,
        ) {
            let (n, horizon) = (sample.outcomes.n(), f64::from(horizon));
            let weights = &picked[..n];
            let rows: Vec<usize> = (0..n).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize)).collect();
            prop_assume!(!rows.is_empty());
            let prepare = |rows: &[usize]| {
                let outcomes = sample.outcomes.select(rows);
                let cause = (outcomes.of_cause(1).unwrap(), outcomes.competing(1).unwrap());
                PreparedCauseObserved::new((&cause.0, &cause.1), vec![0.25; rows.len()], horizon)
            };
            let all: Vec<usize> = (0..n).collect();
            let weighted = prepare(&all).weighted(weights);
            let repeated = sample.outcomes.select(&rows);
            let curve = AalenJohansen::fit(&repeated, 1, IncidenceVariance::Delta).unwrap();
            match (weighted, curve.known_at(horizon)) {
                (Ok(weighted), Ok(observed)) => {
                    prop_assert!((weighted.observed - observed).abs() < 1e-12);
                    prop_assert!((weighted.ratio - observed / 0.25).abs() < 1e-12);
                }
                (weighted, observed) => prop_assert_eq!(weighted.err(), observed.err()),
            }
        }

        #[test]
        fn one_cause_alone_is_the_calibration_of_a_single_event(sample in samples(1, 30)) {
            let (events, survival, reading) = (sample.outcomes.all_causes(), sample.curves.without(), Reading::Step);
            let own = cause_observed_expected(&sample.outcomes, 1, &sample.curves, 3.0, reading);
            match (own, observed_expected(events, survival, 3.0, reading)) {
                (Ok(own), Ok(other)) => prop_assert!((own.ratio - other.ratio).abs() < 1e-12),
                (own, other) => prop_assert_eq!(own, other),
            }
            let own = cause_calibration_index(&sample.outcomes, 1, &sample.curves, 3.0, reading);
            prop_assert_eq!(own, calibration_index(events, survival, 3.0, reading));
            let own = cause_calibration_slope(&sample.outcomes, 1, &sample.curves, 3.0, reading);
            prop_assert_eq!(own, calibration_slope(events, survival, 3.0, reading));
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let outcomes = CompetingOutcomes::new(vec![1.0, 1.5, 3.0, 4.0], vec![1, 2, 1, 0]).unwrap();
        let incidence = ndarray::array![[0.5], [0.4], [0.5], [0.6]];
        let curves = IncidenceCurves::new(vec![2.0], incidence).unwrap();
        let (events, without, reading) = (outcomes.all_causes(), curves.without(), Reading::Step);
        for time in [f64::NAN, -1.0, f64::INFINITY] {
            let refused = [
                cause_observed_expected(&outcomes, 1, &curves, time, reading).err(),
                cause_calibration_index(&outcomes, 1, &curves, time, reading).err(),
                cause_calibration_slope(&outcomes, 1, &curves, time, reading).err(),
                cause_calibration_bins(&outcomes, 1, &curves, time, reading, 2, 0.95).err(),
                observed_expected(events, without, time, reading).err(),
                calibration_index(events, without, time, reading).err(),
                calibration_slope(events, without, time, reading).err(),
            ];
            for (place, error) in refused.into_iter().enumerate() {
                let is_about_time =
                    matches!(error, Some(MetricError::InvalidSetting { setting: "time of the calibration", .. }));
                assert!(is_about_time, "{place} {time}: {error:?}");
            }
        }
    }
}
