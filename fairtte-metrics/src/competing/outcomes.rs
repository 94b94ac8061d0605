//! Outcomes of which the event has one of several causes: what happens first, and of which kind it is.

use std::collections::BTreeSet;

use crate::{MetricError, Outcomes};

/// All up to the largest number are kept.
const MOST_CAUSES: u32 = 100_000;

/// Observed times and causes of `n` samples: cause 0 = censored, 1, 2, .. = an event of that cause.
///
/// An event of one cause ends the observation of all others: a subject who died of cause 2 has no event of cause 1 later.
/// Times are as in [`Outcomes`].
///
/// ```
/// use fairtte_metrics::competing::CompetingOutcomes;
///
/// // A relapse (1), a death without one (2), and a subject followed for 5 without either.
/// let outcomes = CompetingOutcomes::new(vec![2.0, 3.0, 5.0], vec![1, 2, 0])?;
/// assert_eq!((outcomes.n_causes(), outcomes.n_events(1)), (2, 1));
/// assert_eq!(outcomes.of_cause(1)?.event(), [true, false, false]);
/// assert_eq!(outcomes.all_causes().event(), [true, true, false]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CompetingOutcomes {
    all_causes: Outcomes,
    cause: Vec<u32>,
    n_causes: u32,
    /// Causes of which there may be an event; numbers below the largest may be missing.
    known: BTreeSet<u32>,
}

impl CompetingOutcomes {
    /// Checks and keeps `time` and `cause`, both of length `n`. There are as many causes as the largest number says.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if the lengths differ, [`MetricError::InvalidTime`] if a time is not a finite
    /// number >= 0, [`MetricError::NoEvents`] if every sample is censored, so that there are no causes,
    /// [`MetricError::InvalidSetting`] for a number above 100,000 ([`of_known_causes`](Self::of_known_causes) has no limit).
    pub fn new(time: Vec<f64>, cause: Vec<u32>) -> Result<Self, MetricError> {
        let n_causes = cause.iter().copied().max().unwrap_or(0);
        if n_causes == 0 && time.len() == cause.len() {
            return Err(MetricError::NoEvents { n: time.len() });
        }
        Self::with_causes(time, cause, n_causes)
    }

    /// As [`new`](Self::new), with `n_causes` causes, of which some may have no event.
    ///
    /// # Errors
    /// Those of [`new`](Self::new) for lengths, times and numbers; [`MetricError::UnknownCause`] for a cause beyond `n_causes`.
    pub fn with_causes(time: Vec<f64>, cause: Vec<u32>, n_causes: u32) -> Result<Self, MetricError> {
        if n_causes > MOST_CAUSES {
            let (setting, expected) = ("number of causes", "at most 100000");
            return Err(MetricError::InvalidSetting { setting, value: n_causes.to_string(), expected });
        }
        if let Some(beyond) = cause.iter().find(|cause| **cause > n_causes) {
            return Err(MetricError::UnknownCause { cause: *beyond, n_causes });
        }
        Self::of_known_causes(time, cause, 1..=n_causes)
    }

    /// As [`with_causes`](Self::with_causes), of causes with the numbers `known`, which need not be consecutive; causes with an
    /// event are known as well.
    ///
    /// # Errors
    /// Those of [`new`](Self::new) for lengths and times.
    pub fn of_known_causes(
        time: Vec<f64>,
        cause: Vec<u32>,
        known: impl IntoIterator<Item = u32>,
    ) -> Result<Self, MetricError> {
        let event = cause.iter().map(|cause| *cause > 0).collect();
        let known: BTreeSet<u32> = known.into_iter().chain(cause.iter().copied()).filter(|cause| *cause > 0).collect();
        let n_causes = known.last().copied().unwrap_or(0);
        Ok(Self { all_causes: Outcomes::new(time, event)?, cause, n_causes, known })
    }

    /// Observed times, in the unit of the data set.
    pub fn time(&self) -> &[f64] {
        self.all_causes.time()
    }

    /// 0 = censored, otherwise the cause of the event.
    pub fn cause(&self) -> &[u32] {
        &self.cause
    }

    /// The largest number of a cause.
    pub fn n_causes(&self) -> u32 {
        self.n_causes
    }

    /// How many causes there are: fewer than [`n_causes`](Self::n_causes) if their numbers are not consecutive.
    pub fn n_known(&self) -> usize {
        self.known.len()
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.cause.len()
    }

    /// Number of events of one cause; 0 of a cause that does not exist.
    pub fn n_events(&self, cause: u32) -> usize {
        self.cause.iter().filter(|found| **found == cause && cause > 0).count()
    }

    /// The outcomes in which an event of any cause is the event: they say who is censored.
    pub fn all_causes(&self) -> &Outcomes {
        &self.all_causes
    }

    /// The outcomes in which events of `cause` are the events and those of other causes censorings.
    ///
    /// They give the hazard of the cause among those still free of every event, which a Cox model of that cause needs. They
    /// do not give its risk: 1 - Kaplan-Meier of them is too high, because it counts those who had another event as if
    /// they could still have this one.
    ///
    /// # Errors
    /// [`MetricError::UnknownCause`].
    pub fn of_cause(&self, cause: u32) -> Result<Outcomes, MetricError> {
        self.check(cause)?;
        let event = self.cause.iter().map(|found| *found == cause).collect();
        Outcomes::new(self.time().to_vec(), event)
    }

    /// The rows at `index`, in that order, with the same causes; a row may be taken more than once.
    ///
    /// # Panics
    /// If an index is not below [`n`](Self::n).
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        Self {
            all_causes: self.all_causes.select(index),
            cause: index.iter().map(|row| self.cause[*row]).collect(),
            n_causes: self.n_causes,
            known: self.known.clone(),
        }
    }

    /// Whether every sample had an event of another cause than `cause`, `[n]`.
    ///
    /// # Errors
    /// [`MetricError::UnknownCause`].
    pub(crate) fn competing(&self, cause: u32) -> Result<Vec<bool>, MetricError> {
        self.check(cause)?;
        Ok(self.cause.iter().map(|found| *found != cause && *found > 0).collect())
    }

    pub(crate) fn check(&self, cause: u32) -> Result<(), MetricError> {
        if (1..=self.n_causes).contains(&cause) {
            Ok(())
        } else {
            Err(MetricError::UnknownCause { cause, n_causes: self.n_causes })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_counted_and_turned_into_events() {
        let outcomes = CompetingOutcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![3, 0, 1, 3]).unwrap();
        assert_eq!((outcomes.n_causes(), outcomes.n()), (3, 4));
        assert_eq!([0, 1, 2, 3, 4].map(|cause| outcomes.n_events(cause)), [0, 1, 0, 2, 0]);
        assert_eq!(outcomes.of_cause(2).unwrap().n_events(), 0);
        assert_eq!(outcomes.competing(1).unwrap(), [true, false, false, true]);
        assert_eq!(outcomes.all_causes().event(), [true, false, true, true]);
        let some = outcomes.select(&[2, 2, 1]);
        assert_eq!((some.cause(), some.time(), some.n_causes()), (&[1, 1, 0][..], &[3.0, 3.0, 2.0][..], 3));
        assert_eq!(some.all_causes().event(), [true, true, false]);
    }

    #[test]
    fn numbers_of_causes_need_not_be_consecutive() {
        let outcomes = CompetingOutcomes::of_known_causes(vec![1.0, 2.0, 3.0], vec![0, 5, 0], [2, 9]).unwrap();
        assert_eq!((outcomes.n_causes(), outcomes.n_known(), outcomes.select(&[0]).n_known()), (9, 3, 3));
        assert_eq!(outcomes.of_cause(2).unwrap().n_events(), 0);
        let consecutive = CompetingOutcomes::new(vec![1.0, 2.0], vec![3, 1]).unwrap();
        assert_eq!((consecutive.n_causes(), consecutive.n_known()), (3, 3), "as many as the largest number says");
    }

    #[test]
    fn what_is_no_outcome_is_refused() {
        let new = |time: &[f64], cause: &[u32]| CompetingOutcomes::new(time.to_vec(), cause.to_vec());
        assert_eq!(new(&[1.0, 2.0], &[0, 0]), Err(MetricError::NoEvents { n: 2 }));
        assert_eq!(new(&[1.0, -2.0], &[0, 1]), Err(MetricError::InvalidTime { row: 1, time: -2.0 }));
        assert!(matches!(new(&[1.0], &[1, 0]), Err(MetricError::LengthMismatch { found: 2, expected: 1, .. })));
        let beyond = CompetingOutcomes::with_causes(vec![1.0], vec![3], 2);
        assert_eq!(beyond, Err(MetricError::UnknownCause { cause: 3, n_causes: 2 }));
        assert!(matches!(new(&[1.0], &[u32::MAX]), Err(MetricError::InvalidSetting { .. })));
        let two = new(&[1.0], &[2]).unwrap();
        for cause in [0, 3] {
            assert_eq!(two.of_cause(cause), Err(MetricError::UnknownCause { cause, n_causes: 2 }));
        }
    }
}
