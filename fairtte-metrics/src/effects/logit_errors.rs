//! Absolute logit errors of predicted hazards, and their mean (MALE), against true hazards.

use ndarray::Array2;

use super::{IntervalHazards, check_alike};
use crate::{MetricError, Outcomes, SurvivalCurves};

/// Absolute logit errors of every sample in every interval.
///
/// ALE(k) = |logit h(k) - logit g(k)| of true hazard h and predicted hazard g of the interval k of one person; MALE is its mean over
/// persons and *failure intervals* (benchmark, Eq. 1). It is 0 only where the curves are equal, and it bounds what it says about
/// probabilities: |log of predicted over true probability to fail in interval k| <= the sum of ALE over the intervals up to k
/// (its theorem D.2, whose printed sum has a misprinted index).
///
/// What the paper leaves open is decided here: a failure interval is one in which at least one event is observed; hazards are kept in
/// \[1e-7, 1 - 1e-7\], and how many were moved is counted; intervals in which no person is under observation are left out; every person
/// counts in every interval, because the truth is known beyond the end of a person's follow-up.
#[derive(Clone, Debug, PartialEq)]
pub struct LogitErrors {
    ends: Vec<f64>,
    errors: Array2<f64>,
    at_risk: Vec<usize>,
    events: Vec<usize>,
    event_times: Vec<f64>,
    /// True hazards that were moved into the range.
    pub n_clipped_true: usize,
    /// Predicted hazards that were moved into the range.
    pub n_clipped_predicted: usize,
}

/// The error of one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalError {
    /// End of the interval.
    pub end: f64,
    /// Samples under observation at its start.
    pub n_at_risk: usize,
    /// Observed events in it.
    pub n_events: usize,
    /// Mean ALE over the samples; `None` where no person is at risk.
    pub error: Option<f64>,
}

/// A mean absolute logit error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogitMean {
    /// MALE, >= 0.
    pub value: f64,
    /// Failure intervals behind it.
    pub n_intervals: usize,
}

impl LogitErrors {
    /// Compares predicted with true curves at the same times; `outcomes` say who is under observation and where events are. O(n times).
    ///
    /// ```
    /// use fairtte_metrics::effects::LogitErrors;
    /// use fairtte_metrics::{Outcomes, SurvivalCurves};
    /// use ndarray::array;
    ///
    /// let outcomes = Outcomes::new(vec![1.0, 2.0], vec![true, true])?;
    /// let truth = SurvivalCurves::new(vec![1.0, 2.0], array![[0.5, 0.25], [0.5, 0.25]])?;
    /// let predicted = SurvivalCurves::new(vec![1.0, 2.0], array![[0.5, 0.125], [0.5, 0.25]])?;
    /// // The predicted hazard of one person in one of two intervals is 3/4 in place of 1/2: its odds are 3 in place of 1.
    /// let found = LogitErrors::new(&truth, &predicted, &outcomes)?;
    /// assert!((found.mean(0.0, 2.0).unwrap().value - 3.0_f64.ln() / 4.0).abs() < 1e-12);
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] for other samples or another number of times, [`MetricError::OtherGrid`] for other times,
    /// [`MetricError::NoSamples`].
    pub fn new(truth: &SurvivalCurves, predicted: &SurvivalCurves, outcomes: &Outcomes) -> Result<Self, MetricError> {
        truth.check_rows(outcomes.n())?;
        check_alike(truth, predicted)?;
        if truth.n() == 0 {
            return Err(MetricError::NoSamples);
        }
        let (of_truth, of_predicted) = (IntervalHazards::of(truth), IntervalHazards::of(predicted));
        let logit = |p: f64| (p / (1.0 - p)).ln();
        let errors = Array2::from_shape_fn(of_truth.hazards.dim(), |place| {
            (logit(of_truth.hazards[place]) - logit(of_predicted.hazards[place])).abs()
        });
        let ends = of_truth.ends;
        let (mut at_risk, mut events) = (vec![0; ends.len()], vec![0; ends.len()]);
        let mut event_times = Vec::new();
        for (time, event) in outcomes.time().iter().zip(outcomes.event()) {
            // At risk in the intervals that start before the time, and in the first one.
            let last = ends.partition_point(|end| end < time);
            (0..=last.min(ends.len().saturating_sub(1))).for_each(|k| at_risk[k] += usize::from(!ends.is_empty()));
            if *event {
                event_times.push(*time);
                if let Some(count) = events.get_mut(last) {
                    *count += 1;
                }
            }
        }
        event_times.sort_by(f64::total_cmp);
        let (n_clipped_true, n_clipped_predicted) = (of_truth.n_clipped, of_predicted.n_clipped);
        Ok(Self { ends, errors, at_risk, events, event_times, n_clipped_true, n_clipped_predicted })
    }

    /// ALE of every sample in every interval, `[n, n_intervals]`.
    pub fn errors(&self) -> &Array2<f64> {
        &self.errors
    }

    /// ALE(t): the mean over the samples of every interval.
    pub fn by_interval(&self) -> Vec<IntervalError> {
        let rows: Vec<usize> = (0..self.errors.nrows()).collect();
        self.by_interval_of(&rows)
    }

    /// As [`by_interval`](Self::by_interval), of the samples of `rows` alone; who is at risk is counted in the whole sample.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    pub fn by_interval_of(&self, rows: &[usize]) -> Vec<IntervalError> {
        let of = |(k, end): (usize, &f64)| {
            let sum: f64 = rows.iter().map(|row| self.errors[[*row, k]]).sum();
            let is_known = self.at_risk[k] > 0 && !rows.is_empty();
            IntervalError {
                end: *end,
                n_at_risk: self.at_risk[k],
                n_events: self.events[k],
                error: is_known.then(|| sum / rows.len() as f64),
            }
        };
        self.ends.iter().enumerate().map(of).collect()
    }

    /// MALE over the failure intervals whose end lies in (`after`, `until`]; `None` if there is none.
    pub fn mean(&self, after: f64, until: f64) -> Option<LogitMean> {
        mean_of(&self.by_interval(), after, until)
    }

    /// As [`mean`](Self::mean), of the samples of `rows` alone.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    pub fn mean_of(&self, rows: &[usize], after: f64, until: f64) -> Option<LogitMean> {
        mean_of(&self.by_interval_of(rows), after, until)
    }

    /// The observed event time below or at which a share `q` of them lies, by which the benchmark tells early (up to 0.75) from late
    /// intervals (0.75 to 0.99); `None` without events.
    pub fn event_time_quantile(&self, q: f64) -> Option<f64> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place among the events")]
        let place = (q.clamp(0.0, 1.0) * self.event_times.len() as f64).ceil() as usize;
        self.event_times.get(place.saturating_sub(1)).copied()
    }
}

fn mean_of(intervals: &[IntervalError], after: f64, until: f64) -> Option<LogitMean> {
    let used = intervals.iter().filter(|at| at.n_events > 0 && at.end > after && at.end <= until);
    let found: Vec<f64> = used.filter_map(|at| at.error).collect();
    let n_intervals = found.len();
    (n_intervals > 0).then(|| LogitMean { value: found.iter().sum::<f64>() / n_intervals as f64, n_intervals })
}
