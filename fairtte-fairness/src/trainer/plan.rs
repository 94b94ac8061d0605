//! Which batches of an epoch make which step of the optimisers.
//!
//! Every `accumulate` batches in a row make a step. A batch without a sample that has a loss term contributes nothing: the
//! step is the mean over the others, made with the last of them. A gradient of 0 would not be equivalent, because
//! momentum and weight decay change the weights even then.

use std::ops::Range;

use crate::strategies::Accumulation;

/// The batches of an epoch.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Whether a sample has a loss term, `[n_batches]`.
    has_loss: Vec<bool>,
    accumulate: usize,
}

impl Plan {
    /// `accumulate` batches, at least 1, make a step; the last one of the epoch may have fewer.
    pub(super) fn new(has_loss: Vec<bool>, accumulate: usize) -> Self {
        Self { has_loss, accumulate }
    }

    /// Number of batches.
    pub(super) fn n(&self) -> usize {
        self.has_loss.len()
    }

    pub(super) fn has_loss(&self, batch: usize) -> bool {
        self.has_loss[batch]
    }

    /// Whether the batch is the last of its step, with a loss or without.
    pub(super) fn ends_step(&self, batch: usize) -> bool {
        batch + 1 == self.step_of(batch).end
    }

    /// The place of a batch that has a loss among those of its step that have one.
    pub(super) fn accumulation(&self, batch: usize) -> Accumulation {
        let step = self.step_of(batch);
        let of = self.has_loss[step.clone()].iter().filter(|has_loss| **has_loss).count();
        Accumulation { of, last: !self.has_loss[batch + 1..step.end].contains(&true) }
    }

    fn step_of(&self, batch: usize) -> Range<usize> {
        let start = batch - batch % self.accumulate;
        start..(start + self.accumulate).min(self.n())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_without_a_loss_does_not_count_in_its_step() {
        // Steps: 0 1 2, 3 4 5, 6 7 8, 9.
        let has_loss = [true, false, true, true, true, false, false, false, false, true];
        let plan = Plan::new(has_loss.to_vec(), 3);
        let place = |batch| {
            let Accumulation { of, last } = plan.accumulation(batch);
            (of, last)
        };
        assert_eq!([0, 2].map(place), [(2, false), (2, true)]);
        assert_eq!([3, 4].map(place), [(2, false), (2, true)], "the last that has a loss moves the weights");
        assert_eq!(place(9), (1, true));
        let ends: Vec<usize> = (0..plan.n()).filter(|batch| plan.ends_step(*batch)).collect();
        assert_eq!(ends, [2, 5, 8, 9], "a step ends where it would if all had a loss");
    }

    #[test]
    fn without_accumulation_every_batch_is_a_step() {
        let plan = Plan::new(vec![true, false, true], 1);
        assert!((0..3).all(|batch| plan.ends_step(batch)));
        assert_eq!(plan.accumulation(2), Accumulation::default());
    }
}
