//! What is drawn where trees are grown from a part of the samples: subjects, with all their samples.
//!
//! If samples were drawn, a subject with several would be among those that a tree was grown from and among those that it is tested on,
//! and the error of the tests would be far too small.

use std::collections::HashMap;

use fairtte_metrics::{MetricError, SubjectId};
use serde::{Deserialize, Serialize};

use crate::ClassicalError;

/// The subjects of samples, numbered in the order of their first samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Units {
    /// The subject of every sample; empty where every sample has its own.
    of_sample: Vec<u32>,
}

impl Units {
    /// The units of `n` samples with these subjects `[n]`.
    ///
    /// # Errors
    /// [`ClassicalError::Metric`] if there are not as many subjects as samples.
    pub(crate) fn of_subjects(n: usize, subjects: &[SubjectId]) -> Result<Self, ClassicalError> {
        if subjects.len() != n {
            let (what, found) = ("subjects", subjects.len());
            return Err(MetricError::LengthMismatch { what, found, expected: n }.into());
        }
        let mut numbers = HashMap::with_capacity(n);
        let number = |subject| {
            let next = u32::try_from(numbers.len()).map_err(|_| ClassicalError::TooMany { n })?;
            Ok(*numbers.entry(subject).or_insert(next))
        };
        let of_sample = subjects.iter().map(number).collect::<Result<Vec<_>, ClassicalError>>()?;
        Ok(if numbers.len() == n { Self::default() } else { Self { of_sample } })
    }

    /// Whether every sample has a subject of its own.
    pub(crate) fn are_samples(&self) -> bool {
        self.of_sample.is_empty()
    }

    /// Whether these are units of `n` samples.
    pub(crate) fn fit(&self, n: usize) -> bool {
        self.are_samples() || self.of_sample.len() == n && self.of_sample.iter().all(|unit| (*unit as usize) < n)
    }

    /// The unit of a sample.
    pub(crate) fn of(&self, sample: u32) -> u32 {
        self.of_sample.get(sample as usize).copied().unwrap_or(sample)
    }

    /// Number of units of `n` samples.
    pub(crate) fn n(&self, n: usize) -> usize {
        self.of_sample.iter().max().map_or(n, |last| *last as usize + 1)
    }

    /// The units of `samples`, each once, in the order of their first samples.
    pub(crate) fn of_samples(&self, samples: &[u32]) -> Vec<u32> {
        let mut is_known = vec![false; self.of_sample.iter().max().map_or(0, |last| *last as usize + 1)];
        let mut units: Vec<u32> = samples.iter().map(|sample| self.of(*sample)).collect();
        if !self.are_samples() {
            units.retain(|unit| !std::mem::replace(&mut is_known[*unit as usize], true));
        }
        units
    }

    /// Those of `samples` whose unit is among `chosen`.
    pub(crate) fn samples_of(&self, chosen: &[u32], samples: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let last = chosen.iter().max().map_or(0, |last| *last as usize + 1);
        let mut is_chosen = vec![false; last];
        for unit in chosen {
            is_chosen[*unit as usize] = true;
        }
        samples.into_iter().filter(|sample| is_chosen.get(self.of(*sample) as usize) == Some(&true)).collect()
    }

    /// The value of every sample from those of the units.
    pub(crate) fn spread(&self, of_units: &mut Vec<u32>) {
        if !self.are_samples() {
            *of_units = self.of_sample.iter().map(|unit| of_units[*unit as usize]).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]

    use super::*;

    fn units(subjects: &[&str]) -> Units {
        let subjects: Vec<SubjectId> = subjects.iter().map(|subject| SubjectId::from(*subject)).collect();
        Units::of_subjects(subjects.len(), &subjects).unwrap()
    }

    #[test]
    fn subjects_are_drawn_with_all_their_samples() {
        let found = units(&["b", "a", "b", "c", "a"]);
        assert_eq!((found.n(5), found.of_samples(&[2, 3, 0])), (3, vec![0, 2]));
        assert_eq!(found.samples_of(&[0, 2], 0..5), [0, 2, 3]);
        let mut counts = vec![2, 0, 1];
        found.spread(&mut counts);
        assert_eq!(counts, [2, 0, 2, 1, 0]);
        assert!(found.fit(5) && !found.fit(4));
        assert!(Units::of_subjects(2, &["a".into()]).is_err());
    }

    #[test]
    fn samples_of_different_subjects_are_units_themselves() {
        let found = units(&["b", "a", "c"]);
        assert_eq!(found, Units::default());
        assert_eq!((found.n(3), found.of_samples(&[2, 0])), (3, vec![2, 0]));
        assert_eq!(found.samples_of(&[2, 0], 0..3), [0, 2]);
    }
}
