//! Permutation tests of statistics that compare groups: their distribution when group membership has no meaning.
//!
//! `p = (1 + number of permutations with a statistic >= the observed one) / (1 + B)`. Labels move between whole
//! subjects, because the samples of one person are alike and share the attribute; where a subject has samples in
//! several groups (an age group that changes between visits), its samples of one group are a unit, and such subjects
//! are counted. With strata, labels move only between units of the same stratum, which tests whether groups differ
//! beyond what the stratum explains.
//! Sources: Phipson & Smyth (2010), <https://doi.org/10.2202/1544-6115.1585> (why both counts have 1 added); Winkler et
//! al. (2015), <https://doi.org/10.1016/j.neuroimage.2015.05.092> (whole blocks exchanged).
//! A permutation in which the statistic is undefined counts as if it reached the observed value, so that it can never
//! make a result look significant; it is left out of the null mean and counted.

use std::collections::{BTreeMap, BTreeSet};

use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use crate::finite::finite;
use crate::ids::to_u32;
use crate::resampling::bootstrap::MAX_REPLICATES;
use crate::{GroupId, Groups, MetricError, SubjectId, parallel, seeds};

/// Relative tolerance: two sums of the same terms in different orders differ by less.
const ROUNDING: f64 = 1e-10;

/// Rows of a unit and the strata they belong to.
type UnitRows = (Vec<u32>, BTreeSet<u32>);

/// A fixed set of permutations of the group labels of `n` samples.
#[derive(Clone, Debug)]
pub struct LabelPermutations {
    n: usize,
    /// Label of every unit.
    labels: Vec<GroupId>,
    /// The rows of all units, one unit after the other.
    rows: Vec<u32>,
    /// Where the rows of every unit end.
    ends: Vec<u32>,
    /// Units between which labels move.
    strata: Vec<Vec<u32>>,
    n_split_subjects: usize,
    n_permutations: usize,
    seed: u64,
}

impl LabelPermutations {
    /// Fixes the permutations; row `i` belongs to `subjects[i]`, has the label `membership[i]` (`None`: takes no part
    /// and stays `None`) and the stratum `strata[i]`. Units whose rows belong to several strata form a stratum with the
    /// units of the same set of strata.
    ///
    /// Units are kept in the order of their subjects' names, so the permutations do not depend on the order of rows.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if the lengths differ, [`MetricError::InvalidSetting`] unless there are 1 to
    /// 1,000,000 permutations.
    pub fn new(
        subjects: &[SubjectId],
        membership: &[Option<GroupId>],
        strata: Option<&[u32]>,
        n_permutations: usize,
        seed: u64,
    ) -> Result<Self, MetricError> {
        let expected = subjects.len();
        let lengths = [("group memberships", membership.len()), ("strata", strata.map_or(expected, <[u32]>::len))];
        if let Some((what, found)) = lengths.into_iter().find(|(_, found)| *found != expected) {
            return Err(MetricError::LengthMismatch { what, found, expected });
        }
        if !(1..=MAX_REPLICATES).contains(&n_permutations) {
            let (setting, expected) = ("n-permutations", "a whole number from 1 to 1000000");
            return Err(MetricError::InvalidSetting { setting, value: n_permutations.to_string(), expected });
        }
        let mut rows: BTreeMap<(&SubjectId, GroupId), UnitRows> = BTreeMap::new();
        for (row, (subject, group)) in subjects.iter().zip(membership).enumerate() {
            let Some(group) = group else { continue };
            let unit = rows.entry((subject, *group)).or_default();
            unit.0.push(to_u32(row));
            unit.1.insert(strata.map_or(0, |strata| strata[row]));
        }
        let owners: Vec<&SubjectId> = rows.keys().map(|(subject, _)| *subject).collect(); // ascending
        let n_split_subjects = owners.chunk_by(|a, b| a == b).filter(|units| units.len() > 1).count();
        let mut by_stratum: BTreeMap<BTreeSet<u32>, Vec<u32>> = BTreeMap::new();
        let (mut labels, mut all_rows, mut ends) = (vec![], vec![], vec![]);
        for ((_, group), (rows, strata)) in rows {
            by_stratum.entry(strata).or_default().push(to_u32(labels.len()));
            labels.push(group);
            all_rows.extend(rows);
            ends.push(to_u32(all_rows.len()));
        }
        let strata = by_stratum.into_values().collect();
        Ok(Self { n: expected, labels, rows: all_rows, ends, strata, n_split_subjects, n_permutations, seed })
    }

    /// Number of permutations.
    pub fn n_permutations(&self) -> usize {
        self.n_permutations
    }

    /// Number of units between which labels move.
    pub fn n_units(&self) -> usize {
        self.labels.len()
    }

    /// Subjects with samples in more than one group.
    pub fn n_split_subjects(&self) -> usize {
        self.n_split_subjects
    }

    fn rows_of(&self, unit: usize) -> &[u32] {
        let start = unit.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[start as usize..self.ends[unit] as usize]
    }

    /// Label of every sample in `permutation`, `[n]`. Permutation k is the same whatever their total number.
    pub fn labels(&self, permutation: usize) -> Vec<Option<GroupId>> {
        let mut rng = seeds::stream(self.seed, "bias-permutation", &[permutation as u64]);
        let mut permuted = vec![None; self.n];
        for stratum in &self.strata {
            let mut givers = stratum.clone();
            givers.shuffle(&mut rng);
            for (&unit, &giver) in stratum.iter().zip(&givers) {
                for &row in self.rows_of(unit as usize) {
                    permuted[row as usize] = Some(self.labels[giver as usize]);
                }
            }
        }
        permuted
    }

    /// Applies `statistic` to the labels of every permutation, in parallel; results are in the order of permutations
    /// and do not depend on the number of threads.
    pub fn map<T: Send>(&self, statistic: impl Fn(&[Option<GroupId>]) -> T + Sync) -> Vec<T> {
        parallel::map(0..self.n_permutations, |permutation| statistic(&self.labels(permutation)))
    }
}

/// An observed statistic compared with its values under permutation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PermutationTest {
    /// `(1 + number of values >= observed) / (1 + B)`, in (0, 1].
    pub p_value: f64,
    /// Mean of the defined values.
    pub null_mean: f64,
    /// Permutations, B.
    pub n_permutations: usize,
    /// Permutations without a value; they count as >= observed.
    pub n_undefined: usize,
}

impl PermutationTest {
    /// Compares `observed` with the values under permutation, `None` where undefined.
    ///
    /// ```
    /// use fairtte_metrics::bias::PermutationTest;
    ///
    /// let test = PermutationTest::new(3.0, &[Some(1.0), Some(3.0), Some(2.0), None])?;
    /// assert_eq!((test.p_value, test.null_mean), (0.6, 2.0)); // 3.0 and the undefined one: (1 + 2) / (1 + 4)
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// [`MetricError::UndefinedInEveryPermutation`] if no value is defined, [`MetricError::NotFinite`] if `observed`, a
    /// value or the mean of the values is not a finite number.
    pub fn new(observed: f64, null: &[Option<f64>]) -> Result<Self, MetricError> {
        let n_permutations = null.len();
        finite("observed statistic", observed)?;
        let defined = null.iter().flatten().map(|&value| finite("permuted statistic", value));
        let defined: Vec<f64> = defined.collect::<Result<_, _>>()?;
        if defined.is_empty() {
            return Err(MetricError::UndefinedInEveryPermutation { n_permutations });
        }
        let n_undefined = n_permutations - defined.len();
        let reached = observed - ROUNDING * observed.abs();
        let n_reached = n_undefined + defined.iter().filter(|value| **value >= reached).count();
        let p_value = (1 + n_reached) as f64 / (1 + n_permutations) as f64;
        let null_mean = finite("mean under permutation", defined.iter().sum::<f64>() / defined.len() as f64)?;
        Ok(Self { p_value, null_mean, n_permutations, n_undefined })
    }
}

/// Tests whether `statistic`, which is large when groups differ, is larger than under permuted labels.
///
/// Returns the observed value and the test.
///
/// # Errors
/// Those of [`LabelPermutations::new`] and [`PermutationTest::new`], and the error of `statistic` for the observed
/// labels.
pub fn permutation_test(
    subjects: &[SubjectId],
    groups: &Groups,
    strata: Option<&[u32]>,
    n_permutations: usize,
    seed: u64,
    statistic: impl Fn(&[Option<GroupId>]) -> Result<f64, MetricError> + Sync,
) -> Result<(f64, PermutationTest), MetricError> {
    let permutations = LabelPermutations::new(subjects, groups.membership(), strata, n_permutations, seed)?;
    let observed = statistic(groups.membership())?;
    let null = permutations.map(|labels| statistic(labels).ok());
    Ok((observed, PermutationTest::new(observed, &null)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects(names: &[&str]) -> Vec<SubjectId> {
        names.iter().map(|name| SubjectId::from(*name)).collect()
    }

    fn labels(labels: &[i32]) -> Vec<Option<GroupId>> {
        labels.iter().map(|label| u32::try_from(*label).ok().map(GroupId)).collect()
    }

    #[test]
    fn labels_move_with_whole_subjects_and_their_numbers_stay() {
        let subjects = subjects(&["a", "b", "a", "c", "d", "d", "e"]);
        let membership = labels(&[0, 1, 0, 1, 1, 1, -1]);
        let permutations = LabelPermutations::new(&subjects, &membership, None, 40, 3).unwrap();
        assert_eq!((permutations.n_units(), permutations.n_split_subjects()), (4, 0));
        let all = permutations.map(<[Option<GroupId>]>::to_vec);
        for found in &all {
            assert_eq!((found[0], found[4], found[6]), (found[2], found[5], None));
            let units = [found[0], found[1], found[3], found[4]];
            assert_eq!(units.iter().filter(|label| **label == Some(GroupId(0))).count(), 1);
        }
        // Each of the four units is in group 0 in some permutation.
        assert!([0, 1, 3, 4].iter().all(|&row| all.iter().any(|found| found[row] == Some(GroupId(0)))));
    }

    #[test]
    fn strata_keep_the_labels_among_themselves() {
        let names: Vec<String> = (0..8).map(|k| format!("s{k}")).collect();
        let subjects = subjects(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let membership = labels(&[0, 0, 0, 1, 1, 1, 0, 1]);
        let strata = [0, 0, 0, 0, 1, 1, 1, 1];
        let permutations = LabelPermutations::new(&subjects, &membership, Some(&strata), 30, 3).unwrap();
        for found in permutations.map(<[Option<GroupId>]>::to_vec) {
            assert_eq!(found[..4].iter().filter(|label| **label == Some(GroupId(1))).count(), 1);
            assert_eq!(found[4..].iter().filter(|label| **label == Some(GroupId(0))).count(), 1);
        }
    }

    #[test]
    fn a_subject_in_two_groups_is_two_units_and_counted() {
        let subjects = subjects(&["a", "a", "b"]);
        let permutations = LabelPermutations::new(&subjects, &labels(&[0, 1, 1]), None, 1, 3).unwrap();
        assert_eq!((permutations.n_units(), permutations.n_split_subjects()), (3, 1));
    }

    #[test]
    fn neither_threads_nor_the_order_of_rows_change_the_permutations() {
        let forward = subjects(&["a", "b", "c", "d", "e", "f"]);
        let membership = labels(&[0, 1, 0, 1, 1, 0]);
        let permutations = LabelPermutations::new(&forward, &membership, None, 50, 8).unwrap();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| permutations.map(<[Option<GroupId>]>::to_vec))
        };
        assert_eq!(run(1), run(3));
        let turned: Vec<SubjectId> = forward.iter().rev().cloned().collect();
        let turned_labels: Vec<Option<GroupId>> = membership.iter().rev().copied().collect();
        let other = LabelPermutations::new(&turned, &turned_labels, None, 50, 8).unwrap();
        let found: Vec<_> = other.labels(7).into_iter().rev().collect();
        assert_eq!(found, permutations.labels(7));
    }

    #[test]
    fn the_p_value_of_all_arrangements_is_the_exact_one() {
        // Difference of means of {1, 2, 3} and {11, 12, 13}: 2 of 20 arrangements reach it.
        let subjects = subjects(&["a", "b", "c", "d", "e", "f"]);
        let values = [1.0, 2.0, 3.0, 11.0, 12.0, 13.0];
        let levels = vec!["x".to_owned(), "y".to_owned()];
        let groups = Groups::new("g", levels, labels(&[0, 0, 0, 1, 1, 1])).unwrap();
        let statistic = |labels: &[Option<GroupId>]| {
            let sum =
                |group| values.iter().zip(labels).filter(|(_, l)| **l == Some(GroupId(group))).map(|(v, _)| v).sum();
            let (a, b): (f64, f64) = (sum(0), sum(1));
            Ok((a - b).abs() / 3.0)
        };
        let (observed, test) = permutation_test(&subjects, &groups, None, 4_000, 1, statistic).unwrap();
        assert_eq!(observed, 10.0);
        assert!((test.p_value - 0.1).abs() < 0.015, "{}", test.p_value); // 3 standard errors
    }

    #[test]
    fn undefined_permutations_never_help() {
        let test = PermutationTest::new(9.0, &[Some(1.0), None, None]).unwrap();
        assert_eq!((test.p_value, test.n_undefined, test.null_mean), (0.75, 2, 1.0));
        let error = PermutationTest::new(9.0, &[None, None]);
        assert_eq!(error, Err(MetricError::UndefinedInEveryPermutation { n_permutations: 2 }));
        assert!(LabelPermutations::new(&subjects(&["a"]), &labels(&[0]), None, 0, 1).is_err());
        assert!(LabelPermutations::new(&subjects(&["a"]), &labels(&[0, 1]), None, 5, 1).is_err());
        assert!(LabelPermutations::new(&subjects(&["a"]), &labels(&[0]), Some(&[]), 5, 1).is_err());
    }

    #[test]
    fn what_is_not_a_finite_number_has_no_test() {
        let refused = |observed, null: &[Option<f64>]| {
            matches!(PermutationTest::new(observed, null), Err(MetricError::NotFinite { .. }))
        };
        assert!(refused(f64::NAN, &[Some(1.0)]) && refused(1.0, &[Some(0.0), Some(f64::NAN)]));
        assert!(refused(1.0, &[Some(f64::MAX), Some(f64::MAX)])); // their sum overflows
        let groups = Groups::new("g", vec!["x".to_owned()], labels(&[0, 0])).unwrap();
        let test = |value| permutation_test(&subjects(&["a", "b"]), &groups, None, 3, 1, move |_| Ok(value));
        assert!(test(0.5).is_ok() && test(f64::NAN).is_err() && test(f64::INFINITY).is_err());
        assert!(LabelPermutations::new(&subjects(&["a"]), &labels(&[0]), None, usize::MAX, 1).is_err());
    }
}
