//! Running sums over buckets in which one bucket changes at a time.
//!
//! Source: Fenwick, "A new data structure for cumulative frequency tables", Software: Practice and Experience 24
//! (1994) 327-336.

use std::ops::AddAssign;

/// Counts in buckets, or sums of weights, with O(log n) updates and prefix sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fenwick<T = u64> {
    /// Node k (from 1) holds the sum of the `k & -k` buckets that end at bucket k - 1.
    nodes: Vec<T>,
    total: T,
}

impl<T: AddAssign + Copy + Default + PartialEq> Fenwick<T> {
    /// Empties all counts and sets the number of buckets; keeps the memory.
    pub(crate) fn reset(&mut self, n_buckets: usize) {
        self.nodes.clear();
        self.nodes.resize(n_buckets + 1, T::default());
        self.total = T::default();
    }

    pub(crate) fn add(&mut self, bucket: usize, count: T) {
        self.total += count;
        let mut node = bucket + 1;
        while node < self.nodes.len() {
            self.nodes[node] += count;
            node += node & node.wrapping_neg();
        }
    }

    /// Sum of the buckets below `end`.
    pub(crate) fn sum_to(&self, end: usize) -> T {
        if self.total == T::default() {
            return T::default();
        }
        let (mut node, mut sum) = (end, T::default());
        while node > 0 {
            sum += self.nodes[node];
            node &= node - 1;
        }
        sum
    }

    pub(crate) fn total(&self) -> T {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_sums_match_a_plain_sum() {
        let mut tree = Fenwick::default();
        tree.reset(11);
        let mut plain = [0_u64; 11];
        for step in 0..50_u64 {
            let bucket = usize::try_from(step * step % 11).unwrap();
            tree.add(bucket, step);
            plain[bucket] += step;
            for end in 0..=11 {
                assert_eq!(tree.sum_to(end), plain[..end].iter().sum::<u64>());
            }
        }
        assert_eq!(tree.total(), plain.iter().sum::<u64>());
        tree.reset(3);
        assert_eq!(tree.sum_to(3), 0);
    }
}
