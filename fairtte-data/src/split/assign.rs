//! The order of the subjects and its partition.
//!
//! Within each stratum (one for all, if nothing is stratified) the subjects are in the order of their keyed hash:
//!
//! - fractions: the first are train, then validation, the rest test. Without stratification the counts are
//!   `floor(train n)`, `floor(validation n)` and the rest; with stratification those of `rounding.rs`, which differ by
//!   less than 1 from the exact shares.
//! - k-fold: fold j is the j-th block of the order; the sizes of the blocks differ by at most one. Every subject is in
//!   the test part of exactly one fold. The validation part is the first `validation / (train + validation)` of the
//!   subjects that follow the test block, wrapping around at the end: with 5 folds and the default fractions
//!   the next fold.
//! - site left out: the subjects of the site are the test part, the first `validation / (train + validation)` of the
//!   others the validation part.

use std::collections::{BTreeMap, BTreeSet};

use fairtte_metrics::SubjectId;
use fairtte_metrics::seeds::stream;
use rand::Rng as _;

use crate::cohort::Cohort;

use super::Part;
use super::config::KFold;
use super::rounding::{floor_of, round_counts};
use super::strata::Strata;

/// The part of every subject.
pub(super) type Parts<'a> = BTreeMap<&'a SubjectId, Part>;

/// The subjects of a cohort, stratum by stratum, each in the order of the keyed hash.
pub(super) struct Order<'a> {
    strata: Vec<Vec<&'a SubjectId>>,
    is_stratified: bool,
}

impl<'a> Order<'a> {
    /// Orders the subjects of `cohort` by `seed` and `repeat`.
    pub(super) fn new(cohort: &'a Cohort, strata: &Strata<'a>, seed: u64, repeat: u32) -> Self {
        let mut key = [0_u8; blake3::KEY_LEN];
        // Repeat 0 is the split of runs made before repeats were introduced.
        let counters: &[u64] = if repeat == 0 { &[] } else { &[u64::from(repeat)] };
        stream(seed, "split", counters).fill_bytes(&mut key);
        let hash = |bytes: &[u8]| *blake3::keyed_hash(&key, bytes).as_bytes();
        let subjects = super::subjects(cohort).into_iter();
        let mut ordered: Vec<_> = subjects.map(|subject| (hash(subject.as_str().as_bytes()), subject)).collect();
        ordered.sort_unstable();
        let mut by_stratum: BTreeMap<&[String], Vec<&SubjectId>> = BTreeMap::new();
        for (_, subject) in ordered {
            by_stratum.entry(strata[subject].as_slice()).or_default().push(subject);
        }
        // If rounding leaves a choice between strata, it depends on the seed and not on the alphabet.
        let with_hash =
            by_stratum.into_iter().map(|(stratum, subjects)| (hash(stratum.join("\0").as_bytes()), subjects));
        let mut with_hash: Vec<_> = with_hash.collect();
        with_hash.sort_unstable();
        let is_stratified = strata.values().any(|stratum| !stratum.is_empty());
        Self { strata: with_hash.into_iter().map(|(_, subjects)| subjects).collect(), is_stratified }
    }

    /// Train, validation and test part in these fractions.
    pub(super) fn cut_fractions(&self, fractions: [f64; 3]) -> Parts<'a> {
        let counts = if self.is_stratified {
            round_counts(&self.sizes(), &fractions)
        } else {
            let counts = |n| {
                let (n_train, n_validation) = (floor_of(fractions[0], n), floor_of(fractions[1], n));
                vec![n_train, n_validation, n - n_train - n_validation]
            };
            self.sizes().into_iter().map(counts).collect()
        };
        let mut parts = Parts::new();
        for (subjects, counts) in self.strata.iter().zip(counts) {
            let part = Part::ALL.into_iter().zip(counts).flat_map(|(part, n)| std::iter::repeat_n(part, n));
            parts.extend(subjects.iter().copied().zip(part));
        }
        parts
    }

    /// The fold as test part, the rest shared between training and validation.
    pub(super) fn cut_fold(&self, KFold { folds, fold }: KFold, validation_of_rest: f64) -> Parts<'a> {
        let blocks: Vec<(usize, usize)> = if self.is_stratified {
            let counts = round_counts(&self.sizes(), &vec![1.0 / folds as f64; folds]);
            let begin = |counts: &Vec<usize>| counts[..fold].iter().sum::<usize>();
            counts.iter().map(|counts| (begin(counts), begin(counts) + counts[fold])).collect()
        } else {
            self.sizes().into_iter().map(|n| (fold * n / folds, (fold + 1) * n / folds)).collect()
        };
        let mut parts = Parts::new();
        let mut rest = Vec::new();
        for (subjects, (begin, end)) in self.strata.iter().zip(blocks) {
            parts.extend(subjects[begin..end].iter().map(|subject| (*subject, Part::Test)));
            rest.push([&subjects[end..], &subjects[..begin]].concat());
        }
        self.cut_rest(&rest, validation_of_rest, &mut parts);
        parts
    }

    /// `test` as test part, the rest shared between training and validation.
    pub(super) fn cut_left_out(&self, test: &BTreeSet<&'a SubjectId>, validation_of_rest: f64) -> Parts<'a> {
        let mut parts: Parts<'a> = test.iter().map(|subject| (*subject, Part::Test)).collect();
        let others = |subjects: &Vec<&'a SubjectId>| -> Vec<&'a SubjectId> {
            subjects.iter().copied().filter(|subject| !test.contains(subject)).collect()
        };
        let rest: Vec<_> = self.strata.iter().map(others).collect();
        self.cut_rest(&rest, validation_of_rest, &mut parts);
        parts
    }

    /// The first of each stratum of `rest` become the validation part, the others the training part.
    fn cut_rest(&self, rest: &[Vec<&'a SubjectId>], validation: f64, parts: &mut Parts<'a>) {
        let sizes: Vec<usize> = rest.iter().map(Vec::len).collect();
        let n_validation: Vec<usize> = if self.is_stratified {
            round_counts(&sizes, &[validation, 1.0 - validation]).iter().map(|counts| counts[0]).collect()
        } else {
            sizes.iter().map(|&n| floor_of(validation, n)).collect()
        };
        for (subjects, n) in rest.iter().zip(n_validation) {
            let part = |position| if position < n { Part::Validation } else { Part::Train };
            parts.extend(subjects.iter().enumerate().map(|(position, subject)| (*subject, part(position))));
        }
    }

    fn sizes(&self) -> Vec<usize> {
        self.strata.iter().map(Vec::len).collect()
    }
}
