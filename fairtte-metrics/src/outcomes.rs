//! Right-censored outcomes: an observed time and whether the event was observed at that time.

use crate::MetricError;

/// Observed times and event indicators of `n` samples.
///
/// Times are finite and at least 0 in the unit of the data set (0: event or censoring on the day of entry, as it occurs
/// in registries); `event` is `true` where the event was observed and `false` where the sample was censored.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcomes {
    time: Vec<f64>,
    event: Vec<bool>,
}

impl Outcomes {
    /// Checks and keeps `time` and `event`, both of length `n`; a time of -0.0 is kept as 0.0.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if the lengths differ, [`MetricError::InvalidTime`] if a time is not a
    /// finite number >= 0.
    pub fn new(mut time: Vec<f64>, event: Vec<bool>) -> Result<Self, MetricError> {
        if time.len() != event.len() {
            return Err(MetricError::LengthMismatch {
                what: "event indicators",
                found: event.len(),
                expected: time.len(),
            });
        }
        if let Some(row) = time.iter().position(|t| !(t.is_finite() && *t >= 0.0)) {
            return Err(MetricError::InvalidTime { row, time: time[row] });
        }
        // -0.0 becomes 0.0: where times are sorted the two would be different times.
        for t in &mut time {
            *t += 0.0;
        }
        Ok(Self { time, event })
    }

    /// Observed times, in the unit of the data set.
    pub fn time(&self) -> &[f64] {
        &self.time
    }

    /// `true` = event observed, `false` = censored.
    pub fn event(&self) -> &[bool] {
        &self.event
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.time.len()
    }

    /// Number of observed events.
    pub fn n_events(&self) -> usize {
        self.event.iter().filter(|event| **event).count()
    }

    /// Number of observed events at or before `time`.
    pub(crate) fn n_events_by(&self, time: f64) -> usize {
        self.time.iter().zip(&self.event).filter(|(observed, event)| **event && **observed <= time).count()
    }

    /// The rows at `index`, in that order; a row may be taken more than once (bootstrap).
    ///
    /// # Panics
    /// If an index is not below [`n`](Self::n).
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        Self {
            time: index.iter().map(|&row| self.time[row]).collect(),
            event: index.iter().map(|&row| self.event[row]).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimators::KaplanMeier;

    #[test]
    fn a_negative_zero_is_the_time_zero() {
        let outcomes = Outcomes::new(vec![0.0, -0.0, 1.0], vec![true; 3]).unwrap();
        assert!(outcomes.time()[1].is_sign_positive());
        assert_eq!(KaplanMeier::fit(&outcomes).unwrap().times(), [0.0, 1.0]);
    }

    #[test]
    fn a_time_that_is_no_number_or_below_zero_is_refused_with_its_row() {
        for time in [-f64::MIN_POSITIVE, f64::INFINITY] {
            let error = Outcomes::new(vec![1.0, time], vec![true, false]);
            assert_eq!(error, Err(MetricError::InvalidTime { row: 1, time }));
        }
        assert!(Outcomes::new(vec![f64::NAN], vec![true]).is_err());
        assert!(matches!(Outcomes::new(vec![1.0], vec![]), Err(MetricError::LengthMismatch { found: 0, .. })));
    }
}
