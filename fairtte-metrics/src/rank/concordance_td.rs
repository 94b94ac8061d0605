//! Time-dependent concordance C^td: how often the sample with the earlier event was given the lower survival at
//! that event's time.
//!
//! ```text
//! C^td = sum over comparable (i, j) of 1{S_i(T_i) < S_j(T_i)}  /  number of comparable (i, j)
//! ```
//!
//! (i, j) is comparable if i has an event and either `T_i < T_j`, or `T_i = T_j` and j is censored.
//! Source: Antolini, Boracchi & Biganzoli (2005), <https://doi.org/10.1002/sim.2427>; `FairTTE`, Definition 3. The
//! paper prints `T_i < T_j` only; like `pycox` (`antolini`) we also compare an event with a censoring at the same time,
//! as that sample is known to have outlived it. Two events at the same time are not comparable.
//! Golden values: `pycox` 0.3.0 (strict) and `SurvivalEVAL` 0.9.0, ties "Risk" (half).
//!
//! Algorithm: see `concordance_bins.rs`. O(n log n + n L) in all, and a bootstrap replicate, a vector of
//! multiplicities, shares all of the sorting.

use std::ops::Add;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::curves::SurvivalCurves;
use crate::rank::concordance_bins::{BinPlan, BucketNumber, Buckets, RankedBin};
use crate::rank::concordance_direct::count_directly;
use crate::rank::fenwick::Fenwick;
use crate::reading::Reading;
use crate::weights::weights_in_order;
use crate::{MetricError, Outcomes};

/// How much a comparable pair with equal predictions counts (predictions are compared exactly, without tolerance).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TiedPredictions {
    /// Nothing, as in the definition.
    #[default]
    Strict,
    /// One half, so that a model that predicts the same for all samples gets 0.5 and not 0.
    Half,
}

/// C^td with the counts behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConcordanceTd {
    /// C^td in [0, 1]; higher is better.
    pub value: f64,
    /// Comparable pairs.
    pub n_comparable: u64,
    /// Comparable pairs in which the earlier event had the lower survival.
    pub n_concordant: u64,
    /// Comparable pairs with equal predictions.
    pub n_tied_predictions: u64,
}

impl ConcordanceTd {
    /// C^td of the same pairs under another rule for tied predictions.
    pub fn value_with(&self, ties: TiedPredictions) -> f64 {
        share(self.n_concordant, self.n_tied_predictions, self.n_comparable, ties)
    }

    /// Sorts everything that does not depend on weights; see [`PreparedConcordanceTd::weighted`].
    ///
    /// Cost: O(n L log n) time and O(n L) memory, where L is the number of distinct positions of event times on the
    /// grid under `reading` (with [`Reading::Linear`] that is the number of distinct event times, and n bytes each).
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if outcomes and curves differ in length, [`MetricError::InvalidSetting`] for
    /// a refinement factor of 0.
    pub fn prepare(
        outcomes: &Outcomes,
        curves: &SurvivalCurves,
        reading: Reading,
    ) -> Result<PreparedConcordanceTd, MetricError> {
        let plan = BinPlan::new(outcomes, curves, reading)?;
        let bins = plan.rank(plan.all(), curves);
        Ok(PreparedConcordanceTd { order: plan.order, bins })
    }
}

/// C^td of `curves`.
///
/// Tied times: an event and a censoring at the same time are comparable, two events are not. Tied predictions: see
/// [`TiedPredictions`]. No censoring weights are used.
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::rank::{TiedPredictions, concordance_td};
/// use ndarray::array;
///
/// // Comparable pairs: (0, 1), (0, 2), (1, 2). At time 1 sample 0 is below sample 1 but above sample 2, at time 2
/// // sample 1 is above sample 2: one pair of three is concordant.
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, true, false])?;
/// let curves = SurvivalCurves::new(vec![1.0, 2.0], array![[0.5, 0.4], [0.7, 0.6], [0.3, 0.2]])?;
/// let c = concordance_td(&outcomes, &curves, Reading::Step, TiedPredictions::Strict)?;
/// assert_eq!((c.n_concordant, c.n_comparable), (1, 3));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`ConcordanceTd::prepare`], [`MetricError::NoEvents`] without events and [`MetricError::NoComparablePairs`]
/// if no sample is known to have outlived an event.
pub fn concordance_td(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    reading: Reading,
    ties: TiedPredictions,
) -> Result<ConcordanceTd, MetricError> {
    let plan = BinPlan::new(outcomes, curves, reading)?;
    let weights = Weights::new(vec![1; outcomes.n()]);
    if reading == Reading::Linear {
        let (counts, left) = count_directly(&plan, curves);
        let ranked = left.into_iter().map(|bin| weights.count(&plan.rank(bin..bin + 1, curves)));
        return ranked.fold(counts, Add::add).finish(weights.total(), ties);
    }
    let counts = plan.of_ranked(curves, |bins| weights.count(bins));
    counts.reduce(Counts::default, Add::add).finish(weights.total(), ties)
}

/// C^td sorted and ready for any number of weight vectors.
#[derive(Clone, Debug)]
pub struct PreparedConcordanceTd {
    order: Vec<u32>,
    bins: Vec<RankedBin>,
}

impl PreparedConcordanceTd {
    /// C^td of the sample in which row `i` occurs `weights[i]` times, exactly as if it were repeated that often.
    ///
    /// Cost: O(n L + n log n), no sorting.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if there is not one weight per sample, [`MetricError::TooManySamples`] if they
    /// add up to 2^32 or more (whose pairs could not be counted), [`MetricError::NoEvents`] and
    /// [`MetricError::NoComparablePairs`] as in [`concordance_td`].
    pub fn weighted(&self, weights: &[u32], ties: TiedPredictions) -> Result<ConcordanceTd, MetricError> {
        let weights = Weights::new(weights_in_order(weights, &self.order)?);
        if weights.total() > u64::from(u32::MAX) {
            return Err(MetricError::TooManySamples { n: weights.total() });
        }
        weights.count(&self.bins).finish(weights.total(), ties)
    }
}

/// How often every sample occurs, in order.
struct Weights {
    weights: Vec<u32>,
    /// Sum of the first k weights.
    n_before: Vec<u64>,
}

impl Weights {
    fn new(weights: Vec<u32>) -> Self {
        let mut n_before = Vec::with_capacity(weights.len() + 1);
        n_before.push(0_u64);
        for &weight in &weights {
            n_before.push(n_before[n_before.len() - 1] + u64::from(weight));
        }
        Self { weights, n_before }
    }

    fn total(&self) -> u64 {
        self.n_before[self.weights.len()]
    }

    /// Counts the pairs of `bins`. Sums of integers: the same in any order, so for any number of threads.
    fn count(&self, bins: &[RankedBin]) -> Counts {
        let count = |scratch: &mut Scratch, bin: &RankedBin| match &bin.buckets {
            Buckets::Narrow(buckets) => self.count_bin(bin, buckets, scratch),
            Buckets::Medium(buckets) => self.count_bin(bin, buckets, scratch),
            Buckets::Wide(buckets) => self.count_bin(bin, buckets, scratch),
        };
        bins.par_iter().map_init(Scratch::default, count).reduce(Counts::default, Add::add)
    }

    fn count_bin<B: BucketNumber>(&self, bin: &RankedBin, buckets: &[B], scratch: &mut Scratch) -> Counts {
        let Scratch { in_bucket, above, inside } = scratch;
        in_bucket.clear();
        in_bucket.resize(bin.n_buckets, 0);
        for (&bucket, &weight) in buckets[..bin.n_common].iter().zip(&self.weights) {
            in_bucket[bucket.index()] += u64::from(weight);
        }
        above.clear();
        above.resize(bin.n_buckets, 0);
        for bucket in (1..bin.n_buckets).rev() {
            above[bucket - 1] = above[bucket] + in_bucket[bucket];
        }
        // Samples whose own time lies in this bin join one by one, because they outlive only some of its events.
        inside.reset(bin.n_buckets);
        let mut n_joined = bin.n_common;
        let mut counts = Counts::default();
        for event in &bin.events {
            while n_joined < event.n_at_risk {
                inside.add(buckets[n_joined].index(), u64::from(self.weights[n_joined]));
                n_joined += 1;
            }
            let weight = u64::from(self.weights[event.place]);
            if weight > 0 {
                let (below_or_tied, below) = (inside.sum_to(event.bucket + 1), inside.sum_to(event.bucket));
                let greater = above[event.bucket] + (inside.total() - below_or_tied);
                let tied = in_bucket[event.bucket] + (below_or_tied - below);
                counts.n_events += weight;
                counts.concordant += weight * greater;
                counts.tied += weight * tied;
                counts.comparable += weight * self.n_before[event.n_at_risk];
            }
        }
        counts
    }
}

/// Buffers of one evaluation.
#[derive(Default)]
struct Scratch {
    in_bucket: Vec<u64>,
    above: Vec<u64>,
    inside: Fenwick,
}

/// Pairs, each counted as often as its two samples occur.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) n_events: u64,
    pub(crate) comparable: u64,
    pub(crate) concordant: u64,
    pub(crate) tied: u64,
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            n_events: self.n_events + other.n_events,
            comparable: self.comparable + other.comparable,
            concordant: self.concordant + other.concordant,
            tied: self.tied + other.tied,
        }
    }
}

impl Counts {
    /// `n` samples in all.
    pub(crate) fn finish(self, n: u64, ties: TiedPredictions) -> Result<ConcordanceTd, MetricError> {
        let as_count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        if self.n_events == 0 {
            return Err(MetricError::NoEvents { n: as_count(n) });
        }
        if self.comparable == 0 {
            return Err(MetricError::NoComparablePairs { n: as_count(n), n_events: as_count(self.n_events) });
        }
        Ok(ConcordanceTd {
            value: share(self.concordant, self.tied, self.comparable, ties),
            n_comparable: self.comparable,
            n_concordant: self.concordant,
            n_tied_predictions: self.tied,
        })
    }
}

fn share(concordant: u64, equal: u64, comparable: u64, ties: TiedPredictions) -> f64 {
    let credit = match ties {
        TiedPredictions::Strict => 0.0,
        TiedPredictions::Half => 0.5 * equal as f64,
    };
    (concordant as f64 + credit) / comparable as f64
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn outcomes(rows: &[(f64, bool)]) -> Outcomes {
        let (time, event) = rows.iter().copied().unzip();
        Outcomes::new(time, event).unwrap()
    }

    #[test]
    fn an_event_and_a_censoring_at_the_same_time_are_comparable_but_two_events_are_not() {
        let curves = SurvivalCurves::new(vec![1.0], array![[0.2], [0.8]]).unwrap();
        let value = |second| {
            let rows = outcomes(&[(1.0, true), (1.0, second)]);
            concordance_td(&rows, &curves, Reading::Step, TiedPredictions::Strict)
        };
        assert_eq!(value(false).unwrap().n_comparable, 1);
        assert_eq!(value(true), Err(MetricError::NoComparablePairs { n: 2, n_events: 2 }));
    }

    #[test]
    fn equal_predictions_count_nothing_or_one_half() {
        let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.5], [0.9]]).unwrap();
        let rows = outcomes(&[(1.0, true), (2.0, false), (3.0, false)]);
        let strict = concordance_td(&rows, &curves, Reading::Step, TiedPredictions::Strict).unwrap();
        let half = concordance_td(&rows, &curves, Reading::Step, TiedPredictions::Half).unwrap();
        assert!((strict.value - 0.5).abs() < 1e-15 && (half.value - 0.75).abs() < 1e-15);
        assert_eq!((half.n_comparable, half.n_concordant, half.n_tied_predictions), (2, 1, 1));
    }

    #[test]
    fn a_sample_that_leaves_within_the_bin_is_compared_only_with_earlier_events() {
        // All three times lie in one step of the grid. Pairs: (0, 1), (0, 2), (1, 2).
        let curves = SurvivalCurves::new(vec![1.0, 9.0], array![[0.3, 0.0], [0.6, 0.0], [0.5, 0.0]]).unwrap();
        let rows = outcomes(&[(2.0, true), (3.0, true), (4.0, true)]);
        let c = concordance_td(&rows, &curves, Reading::Step, TiedPredictions::Strict).unwrap();
        assert_eq!((c.n_concordant, c.n_comparable), (2, 3));
    }

    #[test]
    fn no_event_and_wrong_lengths_are_errors() {
        let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.5]]).unwrap();
        let censored = outcomes(&[(1.0, false), (2.0, false)]);
        let value = concordance_td(&censored, &curves, Reading::Step, TiedPredictions::Strict);
        assert_eq!(value, Err(MetricError::NoEvents { n: 2 }));
        let short = outcomes(&[(1.0, true)]);
        let value = concordance_td(&short, &curves, Reading::Step, TiedPredictions::Strict);
        assert!(matches!(value, Err(MetricError::LengthMismatch { found: 2, expected: 1, .. })));
        let zero = ConcordanceTd::prepare(&censored, &curves, Reading::Refined { factor: 0 });
        assert!(matches!(zero, Err(MetricError::InvalidSetting { .. })));
    }

    #[test]
    fn weights_whose_pairs_cannot_be_counted_are_refused() {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, true, false]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], ndarray::array![[0.1], [0.2], [0.3]]).unwrap();
        let prepared = ConcordanceTd::prepare(&outcomes, &curves, Reading::Step).unwrap();
        let refused = prepared.weighted(&[u32::MAX; 3], TiedPredictions::Strict);
        assert_eq!(refused, Err(MetricError::TooManySamples { n: 3 * u64::from(u32::MAX) }));
        let half = u32::MAX / 2;
        let largest = prepared.weighted(&[half, half, 1], TiedPredictions::Strict).unwrap();
        let half = u64::from(half);
        assert_eq!((largest.n_comparable, largest.value), (half * half + 2 * half, 1.0));
    }
}
