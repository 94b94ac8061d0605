//! Which of several trainings a bootstrap replicate uses, so that an interval includes the variation over training
//! seeds.
//!
//! A model that was chosen among n trainings could be another one with other seeds. A replicate therefore draws n - 1
//! of the n trainings with replacement, and the choice is made again among those. With n - 1 draws the variance of a
//! mean over trainings is s^2 / n with the unbiased s^2; n draws would give (n - 1) / n of it, a third too little for
//! three seeds. Source: Rao & Wu (1988), doi:10.1080/01621459.1988.10478591 (bootstrap samples of n - 1 units). With a
//! single training nothing is known about other seeds: every replicate uses it.

use rand::RngExt as _;

use crate::seeds;

/// Positions in `0..n` of the trainings that `replicate` uses, ascending, without repetitions; position 0 for `n` = 1,
/// none for 0.
///
/// The draws are made from shared uniform numbers: two lists of the same length get the same positions in the same
/// replicate, so trainings at the same position (with the same seed) stay paired. Cost: O(n log n).
///
/// ```
/// use fairtte_metrics::resampling::draw_trainings;
///
/// assert_eq!(draw_trainings(1, 7, 0), [0]);
/// let drawn = draw_trainings(5, 7, 0);
/// assert!(!drawn.is_empty() && drawn.len() <= 4 && drawn.iter().all(|place| *place < 5));
/// ```
pub fn draw_trainings(n: usize, replicate: usize, seed: u64) -> Vec<usize> {
    let mut rng = seeds::stream(seed, "trainings", &[replicate as u64]);
    let n_draws = n.saturating_sub(1).max(1).min(n);
    let mut place = || {
        let share: f64 = rng.random();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below n, which is a usize")]
        let place = (share * n as f64) as usize;
        place.min(n.saturating_sub(1))
    };
    let mut drawn: Vec<usize> = (0..n_draws).map(|_| place()).collect();
    drawn.sort_unstable();
    drawn.dedup();
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    // Each of n - 1 draws hits a given place with probability 1 / n.
    #[test]
    fn a_place_is_missing_as_often_as_n_minus_one_draws_miss_it() {
        for n in [2, 3, 5] {
            let n_replicates = 20_000;
            let has = |place| (0..n_replicates).filter(|b| draw_trainings(n, *b, 3).contains(&place)).count();
            let expected = 1.0 - (1.0 - 1.0 / n as f64).powi(i32::try_from(n).unwrap() - 1);
            for place in 0..n {
                let share = has(place) as f64 / n_replicates as f64;
                // Four standard errors of a share of 20,000.
                assert!((share - expected).abs() < 4.0 * (0.25 / 20_000_f64).sqrt(), "{n} {place}: {share} {expected}");
            }
        }
    }

    #[test]
    fn lists_of_one_length_stay_paired_and_replicates_differ() {
        assert_eq!(draw_trainings(4, 9, 1), draw_trainings(4, 9, 1));
        let distinct: std::collections::BTreeSet<Vec<usize>> = (0..200).map(|b| draw_trainings(4, b, 1)).collect();
        assert!(distinct.len() > 10, "{distinct:?}");
        assert!(draw_trainings(0, 0, 1).is_empty());
    }
}
