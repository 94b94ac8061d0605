//! Mid-ranks: equal values share the mean of the places they take. Kept doubled, so that they are whole numbers and
//! every sum of them is exact.

/// Twice the mid-ranks of some values, rank 1 for the smallest, and what their ties amount to.
pub(super) struct MidRanks {
    /// Twice the rank of every value, in the order given.
    pub doubled: Vec<u64>,
    /// Sum of `t^3 - t` over the sets of `t` equal values.
    pub tie_sum: u128,
    /// Values that have an equal.
    pub n_tied: usize,
}

impl MidRanks {
    /// Ranks finite values; `0` and `-0` are equal.
    pub(super) fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
        let mut ranks = Self { doubled: vec![0; values.len()], tie_sum: 0, n_tied: 0 };
        let mut first = 0;
        #[expect(clippy::float_cmp, reason = "a tie is exact equality, in every package compared with")]
        for ties in order.chunk_by(|&a, &b| values[a] == values[b]) {
            let last = first + ties.len();
            // Places first + 1 to last: twice their mean is the sum of the two ends.
            for &row in ties {
                ranks.doubled[row] = (first + 1 + last) as u64;
            }
            let size = ties.len() as u128;
            ranks.tie_sum += size * size * size - size;
            ranks.n_tied += if ties.len() > 1 { ties.len() } else { 0 };
            first = last;
        }
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_the_mean_of_their_places() {
        let ranks = MidRanks::of(&[3.0, -0.0, 3.0, 0.0, 3.0, 7.0]);
        assert_eq!(ranks.doubled, [8, 3, 8, 3, 8, 12]);
        assert_eq!((ranks.tie_sum, ranks.n_tied), (24 + 6, 5));
    }
}
