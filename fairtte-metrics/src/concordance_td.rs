//! Time-dependent concordance C^td: how often the sample with the earlier event was given the lower survival at
//! that event's time.
//!
//! ```text
//! C^td = sum over comparable (i, j) of 1{S_i(T_i) < S_j(T_i)}  /  number of comparable (i, j)
//! ```
//!
//! (i, j) is comparable if i has an event and either `T_i < T_j`, or `T_i = T_j` and j is censored.
//! Source: Antolini, Boracchi & Biganzoli (2005), <https://doi.org/10.1002/sim.2427>; `FairTTE`, Definition 3. The
//! paper prints `T_i < T_j` only; like `pycox` (`antolini`) we also compare an event with a censoring at the same
//! time, who is known to have outlived it. Two events at the same time are not comparable.
//! Golden values: `pycox` 0.3.0 (strict) and `SurvivalEVAL` 0.9.0, ties "Risk" (half).
//!
//! How it is fast: under a reading, event times that fall on the same position of the grid form one bin, and within a
//! bin the predictions do not move. Each sample at risk is put, once, into a bucket between the predictions of the
//! bin's events. What is left per evaluation is to add up weights: O(n) per bin plus O(log n) per sample, so
//! O(n log n + n L) in all. A bootstrap replicate is a vector of multiplicities and shares all of the sorting.

use crate::bootstrap::weights_in_order;
use crate::curves::SurvivalCurves;
use crate::fenwick::Fenwick;
use crate::ids::to_u32;
use crate::reading::{Position, Reading};
use crate::{MetricError, Outcomes};

/// What a comparable pair with equal predictions counts (predictions are compared exactly, without tolerance).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TiedPredictions {
    /// Nothing, as in the definition.
    #[default]
    Strict,
    /// One half, so that a model that says the same of everybody gets 0.5 and not 0.
    Half,
}

/// C^td with the counts behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// grid under `reading` (with [`Reading::Linear`] that is the number of distinct event times).
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if outcomes and curves differ in length, [`MetricError::InvalidSetting`] for
    /// a refinement factor of 0.
    pub fn prepare(
        outcomes: &Outcomes,
        curves: &SurvivalCurves,
        reading: Reading,
    ) -> Result<PreparedConcordanceTd, MetricError> {
        curves.check_rows(outcomes.n())?;
        reading.validate()?;
        Ok(PreparedConcordanceTd::new(outcomes, curves, reading))
    }
}

/// C^td of `curves`.
///
/// Tied times: an event and a censoring at the same time are comparable, two events are not. Tied predictions: see
/// [`TiedPredictions`]. No censoring weights are used.
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves, TiedPredictions, concordance_td};
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
/// Those of [`ConcordanceTd::prepare`], [`MetricError::NoEvents`] without events and
/// [`MetricError::NoComparablePairs`] if nobody is known to have outlived an event.
pub fn concordance_td(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    reading: Reading,
    ties: TiedPredictions,
) -> Result<ConcordanceTd, MetricError> {
    let prepared = ConcordanceTd::prepare(outcomes, curves, reading)?;
    prepared.weighted(&vec![1; outcomes.n()], ties)
}

/// C^td sorted and ready for any number of weight vectors.
#[derive(Clone, Debug)]
pub struct PreparedConcordanceTd {
    /// Samples by time, latest first; at equal times the censored come before the events, so that the samples
    /// comparable with an event are exactly those before its time's first event.
    order: Vec<u32>,
    bins: Vec<Bin>,
    events: Vec<BinEvent>,
}

/// All events whose times fall on one position of the grid.
///
/// With K distinct predictions among them there are 2 K + 1 buckets: an odd bucket holds the samples whose prediction
/// equals one of the K, an even one those between (or outside).
#[derive(Clone, Debug)]
struct Bin {
    n_buckets: usize,
    /// Bucket of every sample that is at risk for at least one event of the bin, in order.
    buckets: Buckets,
    /// Samples at risk for every event of the bin: the first `n_common` of the order.
    n_common: usize,
    /// This bin's part of `events`.
    events: std::ops::Range<usize>,
}

/// Bucket numbers; most bins have few events, and then a byte each is enough.
#[derive(Clone, Debug)]
enum Buckets {
    Narrow(Vec<u8>),
    Wide(Vec<u32>),
}

trait BucketNumber: Copy {
    fn index(self) -> usize;
}

impl BucketNumber for u8 {
    fn index(self) -> usize {
        usize::from(self)
    }
}

impl BucketNumber for u32 {
    fn index(self) -> usize {
        self as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct BinEvent {
    /// Place in the order.
    place: usize,
    /// The first `n_at_risk` samples of the order are comparable with this event.
    n_at_risk: usize,
    bucket: usize,
}

impl PreparedConcordanceTd {
    fn new(outcomes: &Outcomes, curves: &SurvivalCurves, reading: Reading) -> Self {
        let (time, event) = (outcomes.time(), outcomes.event());
        let mut order: Vec<usize> = (0..outcomes.n()).collect();
        // `false < true`: the censored first.
        order.sort_by(|&a, &b| time[b].total_cmp(&time[a]).then(event[a].cmp(&event[b])));

        let mut prepared = Self { order: vec![], bins: vec![], events: vec![] };
        let mut open: Vec<(usize, usize)> = Vec::new(); // (place, n_at_risk) of the events of the current bin
        let mut position = None;
        let mut first_tied = 0;
        for (place, &row) in order.iter().enumerate() {
            if !event[row] {
                continue;
            }
            let starts_tie = place == 0 || !event[order[place - 1]] || time[order[place - 1]] > time[row];
            if starts_tie {
                first_tied = place;
                let here = reading.position(curves.grid(), time[row]);
                if let Some(before) = position
                    && before != here
                {
                    prepared.close_bin(&order, &open, curves, before, reading);
                    open.clear();
                }
                position = Some(here);
            }
            open.push((place, first_tied));
        }
        if let Some(position) = position {
            prepared.close_bin(&order, &open, curves, position, reading);
        }
        prepared.order = order.into_iter().map(to_u32).collect();
        prepared
    }

    fn close_bin(
        &mut self,
        order: &[usize],
        open: &[(usize, usize)],
        curves: &SurvivalCurves,
        position: Position,
        reading: Reading,
    ) {
        let prediction = |place: usize| curves.read(order[place], position, reading);
        let mut levels: Vec<f64> = open.iter().map(|&(place, _)| prediction(place)).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        let bucket = |value: f64| {
            levels.partition_point(|level| *level < value) + levels.partition_point(|level| *level <= value)
        };
        let (n_common, n_ranked) = (open[0].1, open[open.len() - 1].1);
        let n_buckets = 2 * levels.len() + 1;
        let ranked = (0..n_ranked).map(|place| to_u32(bucket(prediction(place))));
        let buckets = if n_buckets <= usize::from(u8::MAX) + 1 {
            Buckets::Narrow(ranked.map(|bucket| u8::try_from(bucket).expect("fewer than 256 buckets")).collect())
        } else {
            Buckets::Wide(ranked.collect())
        };
        let first_event = self.events.len();
        self.events.extend(open.iter().map(|&(place, n_at_risk)| BinEvent {
            place,
            n_at_risk,
            bucket: bucket(prediction(place)),
        }));
        self.bins.push(Bin { n_buckets, buckets, n_common, events: first_event..self.events.len() });
    }

    /// C^td of the sample in which row `i` occurs `weights[i]` times, exactly as if it were written out that often.
    ///
    /// Cost: O(n L + n log n), no sorting.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if there is not one weight per sample, [`MetricError::NoEvents`] and
    /// [`MetricError::NoComparablePairs`] as in [`concordance_td`].
    pub fn weighted(&self, weights: &[u32], ties: TiedPredictions) -> Result<ConcordanceTd, MetricError> {
        let weights = weights_in_order(weights, &self.order)?;
        let mut n_before = Vec::with_capacity(weights.len() + 1);
        n_before.push(0_u64);
        for &weight in &weights {
            n_before.push(n_before[n_before.len() - 1] + u64::from(weight));
        }
        let mut counts = Counts::default();
        let mut scratch = Scratch::default();
        for bin in &self.bins {
            let inputs = (bin, weights.as_slice(), n_before.as_slice());
            match &bin.buckets {
                Buckets::Narrow(buckets) => self.count_bin(inputs, buckets, &mut scratch, &mut counts),
                Buckets::Wide(buckets) => self.count_bin(inputs, buckets, &mut scratch, &mut counts),
            }
        }
        counts.finish(n_before[weights.len()], ties)
    }

    /// Adds the pairs of one bin; `weights` are in order, `n_before[k]` is the sum of the first k of them.
    fn count_bin<B: BucketNumber>(
        &self,
        (bin, weights, n_before): (&Bin, &[u32], &[u64]),
        buckets: &[B],
        scratch: &mut Scratch,
        counts: &mut Counts,
    ) {
        let Scratch { in_bucket, above, inside } = scratch;
        in_bucket.clear();
        in_bucket.resize(bin.n_buckets, 0);
        for (&bucket, &weight) in buckets[..bin.n_common].iter().zip(weights) {
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
        for event in &self.events[bin.events.clone()] {
            while n_joined < event.n_at_risk {
                inside.add(buckets[n_joined].index(), u64::from(weights[n_joined]));
                n_joined += 1;
            }
            let weight = u64::from(weights[event.place]);
            if weight > 0 {
                let (below_or_tied, below) = (inside.sum_to(event.bucket + 1), inside.sum_to(event.bucket));
                let greater = above[event.bucket] + (inside.total() - below_or_tied);
                let tied = in_bucket[event.bucket] + (below_or_tied - below);
                counts.n_events += weight;
                counts.concordant += weight * greater;
                counts.tied += weight * tied;
                counts.comparable += weight * n_before[event.n_at_risk];
            }
        }
    }
}

/// Buffers of one evaluation.
#[derive(Default)]
struct Scratch {
    in_bucket: Vec<u64>,
    above: Vec<u64>,
    inside: Fenwick,
}

#[derive(Default)]
struct Counts {
    n_events: u64,
    comparable: u64,
    concordant: u64,
    tied: u64,
}

impl Counts {
    fn finish(&self, n: u64, ties: TiedPredictions) -> Result<ConcordanceTd, MetricError> {
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
}
