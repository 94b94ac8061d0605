//! The first steps of a training, timed: what an estimate of its length is made of.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use fairtte_fairness::Observer;
use fairtte_fairness::strategies::StepReport;

/// Steps that are timed, after one that warms caches up.
const TIMED: usize = 3;

/// Ends a training after a few steps and knows how long they took.
#[derive(Debug, Default)]
pub(in crate::commands) struct Probe {
    stop: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Steps of an epoch.
    n_steps: usize,
    /// The epoch of every step, and when it was done.
    done: Vec<(usize, Instant)>,
}

impl Probe {
    /// The flag that ends the training.
    pub(super) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Seconds of the steps of an epoch; `None` if fewer than two steps were seen.
    pub(in crate::commands) fn seconds_per_epoch(&self) -> Option<f64> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let between = |pair: &[(usize, Instant)]| (pair[1].1 - pair[0].1).as_secs_f64();
        let is_within = |pair: &&[(usize, Instant)]| pair[0].0 == pair[1].0;
        let within: Vec<f64> = seen.done.windows(2).filter(is_within).map(between).collect();
        // Of an epoch with a single step the time between two steps contains a validation.
        let times = if within.is_empty() { seen.done.windows(2).map(between).collect() } else { within };
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64 * seen.n_steps as f64)
    }
}

impl Observer for &Probe {
    fn started(&mut self, _: usize, _: usize, n_steps: usize) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).n_steps = n_steps;
    }

    fn step_done(&mut self, epoch: usize, _: &StepReport) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.done.push((epoch, Instant::now()));
        if seen.done.len() > TIMED {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_epoch_takes_its_steps_without_the_validations_between_them() {
        let start = Instant::now();
        let at = |epoch: usize, seconds: u64| (epoch, start + Duration::from_secs(seconds));
        let probe = |n_steps: usize, done: Vec<(usize, Instant)>| Probe {
            seen: Mutex::new(Seen { n_steps, done }),
            ..Probe::default()
        };
        // Two steps of 2 s and a validation of 10 s.
        let two = probe(2, vec![at(0, 5), at(0, 7), at(1, 19), at(1, 21)]);
        assert!((two.seconds_per_epoch().unwrap() - 4.0).abs() < 1e-9);
        let one = probe(1, vec![at(0, 5), at(1, 8)]);
        assert!((one.seconds_per_epoch().unwrap() - 3.0).abs() < 1e-9, "there is no other time");
        assert_eq!(probe(1, vec![at(0, 5)]).seconds_per_epoch(), None);
    }
}
