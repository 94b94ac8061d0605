//! Null distribution of the signed-rank statistic: every rank is positive or negative with chance 1/2, independently.
//!
//! Ranks may be any mid-ranks, so ties (and the gaps that dropped zeros leave) are exact: a dynamic program over the
//! possible sums of doubled ranks (Streitberg & Röhmel, "Exact distributions for permutation and rank tests",
//! Statistical Software Newsletter 12 (1986) 10-17) in place of the `2^n` sign patterns. Probabilities are halved as each
//! rank is added; for up to 1,000 ranks the smallest, `2^-1000`, is still a normal number, and all are sums of positive
//! numbers, so the tails keep their digits. O(n^3) time at worst, O(n^2) memory.

use crate::MetricError;

/// The largest number of ranked differences with an exact distribution; above it use the normal approximation.
pub const MAX_EXACT_DIFFERENCES: usize = 1_000;

/// Probabilities of the possible sums of positive ranks.
pub(super) struct SignedRankDistribution {
    /// `probability[s]`: the chance that the sum is `s * unit`.
    probability: Vec<f64>,
    /// One step of the sum, in doubled ranks.
    unit: u64,
}

impl SignedRankDistribution {
    /// Of the ranks given doubled, which are some of the mid-ranks 1 to `n_ranked`.
    pub(super) fn of(doubled_ranks: &[u64], n_ranked: usize) -> Result<Self, MetricError> {
        if n_ranked > MAX_EXACT_DIFFERENCES {
            return Err(MetricError::InvalidSetting {
                setting: "method of the signed-rank test",
                value: format!("an exact distribution for {n_ranked} ranked differences"),
                expected: "at most 1000 of them, or the normal approximation",
            });
        }
        let unit = if doubled_ranks.iter().all(|rank| rank % 2 == 0) { 2 } else { 1 };
        let mut ranks: Vec<usize> = doubled_ranks.iter().map(|&rank| usize_of(rank / unit)).collect();
        // Small ranks first keep the reachable sums few for as long as possible.
        ranks.sort_unstable();
        let mut probability = vec![0.0; ranks.iter().sum::<usize>() + 1];
        probability[0] = 1.0;
        let mut reached = 0;
        for rank in ranks {
            reached += rank;
            for sum in (rank..=reached).rev() {
                probability[sum] = 0.5 * (probability[sum] + probability[sum - rank]);
            }
            probability[..rank].iter_mut().for_each(|chance| *chance *= 0.5);
        }
        Ok(Self { probability, unit })
    }

    /// Of the ranks 1 to n.
    pub(super) fn untied(n: usize) -> Result<Self, MetricError> {
        let doubled: Vec<u64> = (1..=n as u64).map(|rank| 2 * rank).collect();
        Self::of(&doubled, n)
    }

    /// P(sum <= `doubled / 2`); a sum between two possible ones is rounded up.
    pub(super) fn at_most(&self, doubled: u64) -> f64 {
        let last = usize_of(doubled.div_ceil(self.unit)).min(self.probability.len() - 1);
        self.probability[..=last].iter().sum::<f64>().min(1.0)
    }

    /// P(sum >= `doubled / 2`); a sum between two possible ones is rounded down.
    pub(super) fn at_least(&self, doubled: u64) -> f64 {
        // The distribution is symmetric; summing from the far end adds the small numbers first.
        let first = usize_of(doubled / self.unit);
        self.probability.iter().skip(first).rev().sum::<f64>().min(1.0)
    }
}

fn usize_of(rank: u64) -> usize {
    usize::try_from(rank).expect("a rank sum of at most 1000 ranks fits")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries all sign patterns.
    fn by_hand(doubled_ranks: &[u64], sum: u64) -> (f64, f64) {
        let patterns = 1_u32 << doubled_ranks.len();
        let sums = (0..patterns).map(|signs| {
            let positive = |(bit, rank): (usize, &u64)| if signs >> bit & 1 == 1 { *rank } else { 0 };
            doubled_ranks.iter().enumerate().map(positive).sum::<u64>()
        });
        let (low, high) = sums.fold((0, 0), |(low, high), s| (low + u32::from(s <= sum), high + u32::from(s >= sum)));
        (f64::from(low) / f64::from(patterns), f64::from(high) / f64::from(patterns))
    }

    #[test]
    fn every_tail_equals_the_count_over_all_sign_patterns() {
        for ranks in [vec![2, 4, 6, 8, 10], vec![3, 3, 6, 9, 9, 12], vec![7, 7, 7, 12], vec![5], vec![]] {
            let distribution = SignedRankDistribution::of(&ranks, 7).unwrap();
            for sum in (0..=ranks.iter().sum()).filter(|sum| sum % distribution.unit == 0) {
                assert_eq!((distribution.at_most(sum), distribution.at_least(sum)), by_hand(&ranks, sum), "{ranks:?}");
            }
        }
    }

    #[test]
    fn sums_between_two_possible_ones_are_rounded_to_the_careful_side() {
        // Ranks 1 and 2: sums 0, 1, 2, 3 with chance 1/4 each; 1.5 is 3 doubled.
        let distribution = SignedRankDistribution::untied(2).unwrap();
        assert_eq!((distribution.at_most(3), distribution.at_least(3)), (0.75, 0.75));
    }

    #[test]
    fn the_largest_sample_keeps_its_smallest_probability() {
        let distribution = SignedRankDistribution::untied(MAX_EXACT_DIFFERENCES).unwrap();
        assert_eq!(distribution.at_most(0), 2_f64.powi(-1_000));
        assert_eq!(distribution.at_least(1_000 * 1_001), 2_f64.powi(-1_000));
        let error = SignedRankDistribution::untied(1_001).err().unwrap().to_string();
        assert!(error.contains("1001 ranked differences"), "{error}");
    }
}
