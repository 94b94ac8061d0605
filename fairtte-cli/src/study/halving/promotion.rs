//! Which trials of a cell continue: the first fronts by metric and worst group.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A trial at a rung.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entrant {
    /// Counted from 0.
    pub(crate) trial: usize,
    /// Best C^td, or AUC of a class, of the validation part so far.
    pub(crate) overall: Option<f64>,
    /// The same of its worst group.
    pub(crate) worst: Option<f64>,
}

impl Entrant {
    /// Both values; what is undefined is below everything.
    fn values(&self) -> [f64; 2] {
        [self.overall, self.worst].map(|value| value.unwrap_or(f64::NEG_INFINITY))
    }

    /// Whether it is at least as good in both values and better in one.
    fn dominates(&self, other: &Self) -> bool {
        let (own, other) = (self.values(), other.values());
        own.iter().zip(other).all(|(a, b)| *a >= b) && own.iter().zip(other).any(|(a, b)| *a > b)
    }
}

/// The `n` best: front after front of trials that no other dominates. Of the last front those with the smallest sum of their ranks
/// by both values, then the earlier trial.
pub(super) fn promoted(entrants: &[Entrant], n: usize) -> BTreeSet<usize> {
    let rank = |entrant: &Entrant, value: usize| {
        entrants.iter().filter(|other| other.values()[value] > entrant.values()[value]).count()
    };
    let mut left: Vec<&Entrant> = entrants.iter().collect();
    let mut chosen = BTreeSet::new();
    while chosen.len() < n && !left.is_empty() {
        let (mut front, rest): (Vec<_>, Vec<_>) =
            left.iter().partition(|entrant| !left.iter().any(|other| other.dominates(entrant)));
        front.sort_by_key(|entrant: &&Entrant| (rank(entrant, 0) + rank(entrant, 1), entrant.trial));
        chosen.extend(front.iter().take(n - chosen.len()).map(|entrant| entrant.trial));
        left = rest;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entrants(values: &[(f64, f64)]) -> Vec<Entrant> {
        let of = |(trial, (overall, worst)): (usize, &(f64, f64))| {
            let defined = |value: &f64| (!value.is_nan()).then_some(*value);
            Entrant { trial, overall: defined(overall), worst: defined(worst) }
        };
        values.iter().enumerate().map(of).collect()
    }

    fn best(values: &[(f64, f64)], n: usize) -> Vec<usize> {
        promoted(&entrants(values), n).into_iter().collect()
    }

    #[test]
    fn fronts_come_first_whatever_the_gap() {
        // 0 has the best metric, 3 the best worst group; 1 is dominated by 0, 2 is an untrained model without a gap.
        let values = [(0.8, 0.5), (0.7, 0.5), (0.5, 0.5), (0.6, 0.6)];
        assert_eq!(best(&values, 2), [0, 3]);
        assert_eq!(best(&values, 3), [0, 1, 3]);
        assert_eq!(best(&values, 4), [0, 1, 2, 3]);
    }

    #[test]
    fn a_front_that_is_too_large_is_cut_by_ranks() {
        // All are in one front. Ranks by the metric 0, 1, 2, by the worst group 2, 1, 0: equal sums, so the first trials.
        assert_eq!(best(&[(0.8, 0.5), (0.7, 0.6), (0.6, 0.7)], 2), [0, 1]);
        // The last has worse ranks than the others.
        assert_eq!(best(&[(0.6, 0.7), (0.7, 0.6), (0.7, 0.6), (0.5, 0.8)], 2), [1, 2]);
    }

    #[test]
    fn what_shows_nothing_comes_last() {
        let values = [(f64::NAN, f64::NAN), (0.5, f64::NAN), (0.6, 0.1)];
        assert_eq!(best(&values, 2), [1, 2]);
        assert_eq!(best(&values, 1), [2]);
        assert_eq!(best(&[(f64::NAN, f64::NAN)], 1), [0]);
    }
}
