//! Mutual information of two labellings of the same samples, in nats, with the value expected by chance alone.
//!
//! `I = sum over cells of n_ij/n ln(n n_ij / (a_i b_j))` for the counts `n_ij` of a contingency table with row sums a
//! and column sums b. Normalised: `I / mean(H(A), H(B))` with a named mean. Adjusted: `(I - E) / (mean(H) - E)`, where E
//! is the exact mean of I over all permutations of one labelling (counts are then hypergeometric).
//! Sources: Cover & Thomas (2006), 2.3; Strehl & Ghosh (2002); Vinh, Epps & Bailey, "Information theoretic measures
//! for clusterings comparison", JMLR 11 (2010) 2837-2854, equations 24a and 24b.
//! The plug-in estimate grows as samples shrink, by about (rows - 1)(columns - 1)/(2n) nats where there is no
//! dependence; [`NullCorrected`] keeps both the raw value and the one without that bias.
//! Golden values: scikit-learn 1.9.1 `mutual_info_score`, `normalized_mutual_info_score`, `adjusted_mutual_info_score`.
//! Where the adjusted value is 0/0 up to rounding (every sample a class of its own) it is 1, as in scikit-learn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::finite::finite;

/// The mean of the two entropies by which mutual information is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalisation {
    /// `(H(A) + H(B)) / 2`: the paper and the default of scikit-learn.
    #[default]
    Arithmetic,
    /// `sqrt(H(A) H(B))`.
    Geometric,
    /// The smaller entropy.
    Min,
    /// The larger entropy.
    Max,
}

impl Normalisation {
    fn mean(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Arithmetic => f64::midpoint(a, b),
            Self::Geometric => (a * b).sqrt(),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
        }
    }
}

/// A value with the part of it that is expected by chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NullCorrected {
    /// The uncorrected estimate.
    pub raw: f64,
    /// Mean of the same estimate where there is no dependence.
    pub null_mean: f64,
    /// `raw - null_mean`, or 0 where that is negative.
    pub corrected: f64,
}

impl NullCorrected {
    /// Subtracts `null_mean` from `raw`.
    ///
    /// # Errors
    /// [`MetricError::NotFinite`] if one of the two or their difference is not a finite number.
    pub fn new(raw: f64, null_mean: f64) -> Result<Self, MetricError> {
        finite("estimate", raw)?;
        finite("mean of the estimate under chance", null_mean)?;
        finite("corrected estimate", raw - null_mean)?;
        Ok(Self::of(raw, null_mean))
    }

    /// The same for numbers whose difference is known to be finite.
    pub(super) fn of(raw: f64, null_mean: f64) -> Self {
        Self { raw, null_mean, corrected: (raw - null_mean).max(0.0) }
    }
}

/// How often every pair of labels occurs together.
///
/// ```
/// use fairtte_metrics::bias::{ContingencyTable, Normalisation};
///
/// // The second labelling divides the first into halves: I = ln 2 nats, with entropies ln 4 and ln 2.
/// let table = ContingencyTable::new(&[0, 1, 2, 3], &[7, 7, 9, 9])?;
/// assert!((table.mutual_information() - 2.0_f64.ln()).abs() < 1e-15);
/// assert!((table.normalised(Normalisation::Arithmetic) - 2.0 / 3.0).abs() < 1e-15);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ContingencyTable {
    /// (row, column, count) of the cells that are not empty, ascending.
    cells: Vec<(u32, u32, u64)>,
    rows: Vec<u64>,
    columns: Vec<u64>,
    n: u64,
}

impl ContingencyTable {
    /// Counts the pairs `(a[i], b[i])`; labels are any numbers. O(n log n).
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if the lengths differ, [`MetricError::NoSamples`] if they are 0.
    pub fn new(a: &[u32], b: &[u32]) -> Result<Self, MetricError> {
        if a.len() != b.len() {
            return Err(MetricError::LengthMismatch { what: "labels", found: b.len(), expected: a.len() });
        }
        if a.is_empty() {
            return Err(MetricError::NoSamples);
        }
        let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for pair in a.iter().copied().zip(b.iter().copied()) {
            *counts.entry(pair).or_default() += 1;
        }
        let (row_of, column_of) = (ranks(a), ranks(b));
        let cells = counts.into_iter().map(|((a, b), count)| (row_of[&a], column_of[&b], count));
        Ok(Self::from_cells(cells.collect(), row_of.len(), column_of.len()))
    }

    /// From counts in row-major order; `None` if all are 0. Rows and columns without a sample are left out.
    pub(super) fn from_dense(counts: &[u64], n_columns: usize) -> Option<Self> {
        let n_rows = counts.len() / n_columns;
        let row_used: Vec<bool> = counts.chunks(n_columns).map(|row| row.iter().any(|count| *count > 0)).collect();
        let in_column = |column: usize| counts.iter().skip(column).step_by(n_columns).any(|count| *count > 0);
        let column_used: Vec<bool> = (0..n_columns).map(in_column).collect();
        let place = |used: &[bool]| -> Vec<u32> {
            let place = |next: &mut u32, used: &bool| {
                *next += u32::from(*used);
                Some(next.wrapping_sub(1))
            };
            used.iter().scan(0, place).collect()
        };
        let (row_place, column_place) = (place(&row_used), place(&column_used));
        let cell = |index: usize| (row_place[index / n_columns], column_place[index % n_columns], counts[index]);
        let cells: Vec<_> = (0..n_rows * n_columns).filter(|&index| counts[index] > 0).map(cell).collect();
        let n_used = |used: &[bool]| used.iter().filter(|used| **used).count();
        (!cells.is_empty()).then(|| Self::from_cells(cells, n_used(&row_used), n_used(&column_used)))
    }

    fn from_cells(cells: Vec<(u32, u32, u64)>, n_rows: usize, n_columns: usize) -> Self {
        let (mut rows, mut columns) = (vec![0; n_rows], vec![0; n_columns]);
        for &(row, column, count) in &cells {
            rows[row as usize] += count;
            columns[column as usize] += count;
        }
        let n = rows.iter().sum();
        Self { cells, rows, columns, n }
    }

    /// Number of samples.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Entropies of the two labellings, in nats.
    pub fn entropies(&self) -> (f64, f64) {
        let entropy = |sums: &[u64]| {
            let share = |sum: &u64| *sum as f64 / self.n as f64;
            // "+ 0.0" turns -0 of a single class into 0.
            -sums.iter().map(|sum| share(sum) * share(sum).ln()).sum::<f64>() + 0.0
        };
        (entropy(&self.rows), entropy(&self.columns))
    }

    /// Plug-in mutual information of the two labellings (from the counts), in nats, >= 0. Biased upwards in small
    /// samples.
    pub fn mutual_information(&self) -> f64 {
        if self.rows.len() == 1 || self.columns.len() == 1 {
            return 0.0;
        }
        let n = self.n as f64;
        let term = |&(row, column, count): &(u32, u32, u64)| {
            let margins = self.rows[row as usize] as f64 * self.columns[column as usize] as f64;
            count as f64 / n * (n * count as f64 / margins).ln()
        };
        self.cells.iter().map(term).sum::<f64>().max(0.0)
    }

    /// Mutual information divided by a mean of the entropies, in [0, 1]: 1 if both labellings are constant, 0 if one
    /// of them is (the rule of scikit-learn).
    pub fn normalised(&self, normalisation: Normalisation) -> f64 {
        match (self.rows.len(), self.columns.len()) {
            (1, 1) => 1.0,
            (1, _) | (_, 1) => 0.0,
            _ => {
                let (a, b) = self.entropies();
                (self.mutual_information() / normalisation.mean(a, b)).min(1.0)
            }
        }
    }

    /// Exact mean of [`mutual_information`](Self::mutual_information) over all permutations of one labelling, in nats.
    ///
    /// Cost: for each pair of different row and column sums, as many steps as the count may plausibly differ from its
    /// mean (some 20 standard deviations), so never more than O(n sqrt n) and far less for a few classes.
    pub fn expected_mutual_information(&self) -> f64 {
        if self.rows.len() == 1 || self.columns.len() == 1 {
            return 0.0;
        }
        let (rows, columns) = (multiplicities(&self.rows), multiplicities(&self.columns));
        let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
        let term = |((a, n_a), (b, n_b)): ((&u64, &u64), (&u64, &u64))| {
            *n_a as f64 * *n_b as f64 * expected_term(*a, *b, self.n)
        };
        pairs.map(term).sum::<f64>().max(0.0)
    }

    /// Mutual information adjusted for chance: 0 is what permuted labels give on average (so negative values occur),
    /// 1 is identity. Both labellings constant: 1; one of them: 0.
    pub fn adjusted(&self, normalisation: Normalisation) -> f64 {
        match (self.rows.len(), self.columns.len()) {
            (1, 1) => return 1.0,
            (1, _) | (_, 1) => return 0.0,
            _ => {}
        }
        let (a, b) = self.entropies();
        let expected = self.expected_mutual_information();
        // A difference that is rounding noise counts as the smallest step, so that 0/0 becomes 1.
        let apart = |difference: f64| {
            if difference < 0.0 { difference.min(-f64::EPSILON) } else { difference.max(f64::EPSILON) }
        };
        apart(self.mutual_information() - expected) / apart(normalisation.mean(a, b) - expected)
    }
}

/// The position of every distinct label in ascending order.
fn ranks(labels: &[u32]) -> BTreeMap<u32, u32> {
    let mut ranks: BTreeMap<u32, u32> = labels.iter().map(|label| (*label, 0)).collect();
    for (rank, place) in ranks.values_mut().zip(0..) {
        *rank = place;
    }
    ranks
}

/// How often every distinct sum occurs.
fn multiplicities(sums: &[u64]) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for sum in sums {
        *counts.entry(*sum).or_default() += 1;
    }
    counts
}

/// `sum over k of P(k) k/n ln(n k / (a b))` for a hypergeometric count k with margins a and b of n.
///
/// Probabilities come from the ratio of neighbours, starting at the mode, and are divided by their own sum: no
/// factorial, hence no rounding that grows with n.
fn expected_term(a: u64, b: u64, n: u64) -> f64 {
    const NEGLIGIBLE: f64 = 1e-22;
    let (low, high) = ((a + b).saturating_sub(n), a.min(b));
    let (a_f, b_f, n_f) = (a as f64, b as f64, n as f64);
    let mode = (((a_f + 1.0) * (b_f + 1.0)) / (n_f + 2.0)).floor();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the mode lies in [0, n]")]
    let mode = (mode as u64).clamp(low, high);
    let information = |k: u64| if k == 0 { 0.0 } else { k as f64 / n_f * (n_f * k as f64 / (a_f * b_f)).ln() };
    // P(k + 1) / P(k)
    let ratio = |k: u64| {
        let k = k as f64;
        (a_f - k) * (b_f - k) / ((k + 1.0) * (n_f - a_f - b_f + k + 1.0))
    };
    let (mut total, mut sum) = (1.0, information(mode));
    let mut probability = 1.0;
    for k in mode..high {
        probability *= ratio(k);
        total += probability;
        sum += probability * information(k + 1);
        if probability < NEGLIGIBLE {
            break;
        }
    }
    probability = 1.0;
    for k in (low..mode).rev() {
        probability /= ratio(k);
        total += probability;
        sum += probability * information(k);
        if probability < NEGLIGIBLE {
            break;
        }
    }
    sum / total
}

#[cfg(test)]
mod tests {
    use approx::{assert_abs_diff_eq, assert_relative_eq};
    use rand::RngExt as _;
    use rand::seq::SliceRandom as _;

    use super::*;
    use crate::seeds;

    fn random_labels(n: usize, n_classes: u32, name: u64) -> Vec<u32> {
        let mut rng = seeds::stream(3, "labels", &[name]);
        (0..n).map(|_| rng.random_range(0..n_classes)).collect()
    }

    #[test]
    fn independent_labels_share_nothing_and_equal_labels_everything() {
        let crossed = ContingencyTable::new(&[0, 0, 1, 1], &[0, 1, 0, 1]).unwrap();
        assert_abs_diff_eq!(crossed.mutual_information(), 0.0, epsilon = 1e-16);
        let same = ContingencyTable::new(&[5, 5, 1, 2], &[0, 0, 9, 8]).unwrap();
        assert_relative_eq!(same.mutual_information(), same.entropies().0, max_relative = 1e-15);
        assert_relative_eq!(same.entropies().0, 1.5 * 2.0_f64.ln(), max_relative = 1e-15);
        for normalisation in
            [Normalisation::Arithmetic, Normalisation::Geometric, Normalisation::Min, Normalisation::Max]
        {
            assert_relative_eq!(same.normalised(normalisation), 1.0, max_relative = 1e-15);
            assert_relative_eq!(same.adjusted(normalisation), 1.0, max_relative = 1e-15);
        }
    }

    #[test]
    fn constant_labels_follow_the_rule_of_scikit_learn() {
        let one = ContingencyTable::new(&[4, 4, 4], &[0, 1, 2]).unwrap();
        let both = ContingencyTable::new(&[4, 4, 4], &[7, 7, 7]).unwrap();
        assert_eq!((one.normalised(Normalisation::Max), one.adjusted(Normalisation::Max)), (0.0, 0.0));
        assert_eq!((both.normalised(Normalisation::Max), both.adjusted(Normalisation::Max)), (1.0, 1.0));
        assert_eq!(one.entropies().0, 0.0);
    }

    #[test]
    fn every_sample_in_a_class_of_its_own_is_adjusted_to_one() {
        let labels: Vec<u32> = (0..30).collect();
        let table = ContingencyTable::new(&labels, &labels).unwrap();
        assert_eq!(table.adjusted(Normalisation::Arithmetic), 1.0);
    }

    #[test]
    fn the_expected_information_is_the_mean_over_all_permutations() {
        // All 120 orders of five labels.
        let (a, b) = ([0, 0, 1, 1, 2], [0, 1, 1, 1, 1]);
        let mut sum = 0.0;
        let mut n = 0_u32;
        let mut order = [0_usize; 5];
        for code in 0..3125_usize {
            for (place, slot) in order.iter_mut().enumerate() {
                *slot = code / 5_usize.pow(u32::try_from(place).unwrap()) % 5;
            }
            if (0..5).all(|k| order.contains(&k)) {
                let permuted = order.map(|k| b[k]);
                sum += ContingencyTable::new(&a, &permuted).unwrap().mutual_information();
                n += 1;
            }
        }
        assert_eq!(n, 120);
        let expected = ContingencyTable::new(&a, &b).unwrap().expected_mutual_information();
        assert_relative_eq!(expected, sum / 120.0, max_relative = 1e-13);
    }

    #[test]
    fn chance_grows_as_samples_shrink_and_the_mean_of_shuffles_agrees() {
        for (n, name) in [(60, 0), (2_000, 1)] {
            let (a, mut b) = (random_labels(n, 4, name), random_labels(n, 6, name + 10));
            let expected = ContingencyTable::new(&a, &b).unwrap().expected_mutual_information();
            // (rows - 1)(columns - 1)/(2n) to first order
            assert_relative_eq!(expected, 15.0 / (2.0 * n as f64), max_relative = 0.15);
            let mut rng = seeds::stream(5, "shuffle", &[]);
            let shuffled = (0..2_000).map(|_| {
                b.shuffle(&mut rng);
                ContingencyTable::new(&a, &b).unwrap().mutual_information()
            });
            // 2n I is nearly chi-square with 15 df: standard error of the mean of 2000 is 0.8 % of it; 4 of them.
            assert_relative_eq!(shuffled.sum::<f64>() / 2_000.0, expected, max_relative = 0.033);
        }
    }

    #[test]
    fn a_dense_table_leaves_out_what_is_empty() {
        let dense = ContingencyTable::from_dense(&[0, 0, 0, 2, 0, 1, 0, 0, 4], 3).unwrap();
        let listed = ContingencyTable::new(&[1, 1, 1, 2, 2, 2, 2], &[0, 0, 2, 2, 2, 2, 2]).unwrap();
        assert_eq!(dense, listed);
        assert_eq!(ContingencyTable::from_dense(&[0, 0], 2), None);
    }

    #[test]
    fn the_corrected_value_never_falls_below_zero() {
        assert_eq!(NullCorrected::new(0.75, 0.25).unwrap().corrected, 0.5);
        assert_eq!(NullCorrected::new(0.01, 0.02).unwrap().corrected, 0.0);
        for (raw, null_mean) in [(f64::NAN, 0.0), (0.0, f64::NAN), (f64::INFINITY, 0.0), (f64::MAX, f64::MIN)] {
            assert!(matches!(NullCorrected::new(raw, null_mean), Err(MetricError::NotFinite { .. })));
        }
        assert!(ContingencyTable::new(&[], &[]).is_err());
        assert!(ContingencyTable::new(&[1], &[]).is_err());
    }
}
