//! Step 4: continuous time to interval indices (Kvamme & Borgan 2021, section 3; pycox `LabTransDiscreteTime`).
//!
//! Cut points are `n` equally spaced times from 0 to the largest training time, and there are as many network outputs
//! as cut points. An event is rounded up to the first cut at or after it, a censoring is rounded down to the last cut at
//! or before it: both claim no more than was observed. A time beyond the last cut becomes a censoring at that cut.
//! Index 0 is time 0: only a censoring before the second cut gets it.
//!
//! Fitted on the training part only. Golden values: pycox 0.3.0 (`3eccdd7`), datasets.md 3.1.

use fairtte_metrics::Outcomes;

use crate::SurvivalError;

/// The time grid of a discrete-time model, `[n_intervals]`, starting at 0.
#[derive(Clone, Debug, PartialEq)]
pub struct CutPoints {
    times: Vec<f64>,
}

/// Interval index and event indicator of every sample, `[n]` each.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalTargets {
    /// Index into the cut points.
    pub index: Vec<usize>,
    /// `true` = event observed within the grid.
    pub event: Vec<bool>,
}

impl CutPoints {
    /// Numbers of cut points that make sense: 0 and the largest time at least, and no more than a network can have
    /// outputs for.
    pub const RANGE: std::ops::RangeInclusive<usize> = 2..=10_000;

    /// Checks a number of cut points.
    ///
    /// # Errors
    /// [`SurvivalError::Intervals`] unless `n` is in [`RANGE`](Self::RANGE).
    pub fn check(n: usize) -> Result<(), SurvivalError> {
        if Self::RANGE.contains(&n) { Ok(()) } else { Err(SurvivalError::Intervals { found: n }) }
    }

    /// `n` equally spaced cut points from 0 to the largest time of `train`.
    ///
    /// # Errors
    /// [`SurvivalError::Intervals`] unless `n` is in [`RANGE`](Self::RANGE), [`SurvivalError::NoEvent`] if no training sample has an event.
    pub fn equidistant(train: &Outcomes, n: usize) -> Result<Self, SurvivalError> {
        Self::check(n)?;
        if train.n_events() == 0 {
            return Err(SurvivalError::NoEvent { part: "training", n: train.n() });
        }
        let largest = train.time().iter().copied().fold(0.0, f64::max);
        let step = largest / (n - 1) as f64;
        let mut times: Vec<f64> = (0..n).map(|k| k as f64 * step).collect();
        times[n - 1] = largest; // exact, so that the largest training event stays an event
        Ok(Self { times })
    }

    /// The cut points, ascending, first 0.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Number of cut points, which is the number of network outputs.
    pub fn n(&self) -> usize {
        self.times.len()
    }

    /// Interval indices of `time` and `event`, `[n]` each. Cost O(n log `n_intervals`).
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn discretise(&self, time: &[f64], event: &[bool]) -> IntervalTargets {
        assert_eq!(time.len(), event.len(), "one event indicator per time");
        let last = self.times.len() - 1;
        let (index, event) = time
            .iter()
            .zip(event)
            .map(|(&time, &event)| {
                if time > self.times[last] {
                    (last, false)
                } else if event {
                    (self.times.partition_point(|cut| *cut < time), true)
                } else {
                    (self.times.partition_point(|cut| *cut <= time).saturating_sub(1), false)
                }
            })
            .unzip();
        IntervalTargets { index, event }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    fn cuts(largest: f64, n: usize) -> CutPoints {
        let train = Outcomes::new(vec![largest / 2.0, largest], vec![true, false]).unwrap();
        CutPoints::equidistant(&train, n).unwrap()
    }

    fn flags(bits: &[u8]) -> Vec<bool> {
        bits.iter().map(|bit| *bit == 1).collect()
    }

    // Golden: pycox 0.3.0 LabTransDiscreteTime(14, 'equidistant'), fitted on a largest duration of 13.
    #[test]
    fn events_round_up_and_censorings_round_down() {
        let time = [1e-9, 1e-9, 0.5, 0.5, 1.0, 1.0, 4.5, 4.5, 13.0, 13.0];
        let event = flags(&[1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
        let targets = cuts(13.0, 14).discretise(&time, &event);
        assert_eq!(targets.index, [1, 0, 1, 0, 1, 1, 5, 4, 13, 13]);
        assert_eq!(targets.event, event);
    }

    #[test]
    fn times_beyond_the_grid_become_censorings_at_its_end() {
        let time = [13.0001, 20.0, 13.0001, 12.9999, 12.9999];
        let targets = cuts(13.0, 14).discretise(&time, &flags(&[1, 1, 0, 1, 0]));
        assert_eq!(targets.index, [13, 13, 13, 13, 12]);
        assert_eq!(targets.event, flags(&[0, 0, 0, 1, 0]));
    }

    #[test]
    fn a_grid_that_is_not_made_of_integers() {
        let time = [1.0, 10.0, 10.0, 1000.0, 2000.0, 4000.0];
        let targets = cuts(4000.0, 128).discretise(&time, &flags(&[0, 1, 0, 1, 0, 1]));
        assert_eq!(targets.index, [0, 1, 0, 32, 63, 127]);
    }

    #[test]
    fn training_without_an_event_is_refused() {
        let train = Outcomes::new(vec![1.0, 2.0], vec![false, false]).unwrap();
        let error = CutPoints::equidistant(&train, 5).unwrap_err();
        assert_eq!(error.to_string(), "the training part has 2 samples and no observed event, expected at least one");
    }
}
