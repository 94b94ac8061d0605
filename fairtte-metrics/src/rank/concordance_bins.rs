//! The sorting behind C^td, which is done once for all weightings of the samples.
//!
//! Under a reading, event times that fall on the same position of the grid form one bin, and within a bin the
//! predictions do not change. With K distinct predictions among the events of a bin there are 2 K + 1 buckets: an odd
//! bucket holds the samples whose prediction equals one of the K, an even one those between (or outside). A sample at
//! risk is put into its bucket once; what is left per evaluation is to add up weights per bucket.
//!
//! Cost of ranking: O(n log K) per bin, in parallel over bins. Memory: one byte per sample at risk and bin (two, or
//! four, where a bin has more than 127 distinct predictions). Readings with one bin per event time (linear, constant
//! hazard) would need n bytes per event, so bins are handed out in batches of bounded size where many weightings follow,
//! and a few at a time where one does.

use std::ops::Range;

use rayon::prelude::*;

use crate::curves::SurvivalCurves;
use crate::ids::to_u32;
use crate::reading::{Position, Reading};
use crate::{MetricError, Outcomes, parallel};

/// Most ranks (samples at risk, summed over bins) of one batch; few in tests, so that these have several batches.
const MAX_BATCH_RANKS: usize = if cfg!(test) { 64 } else { 1 << 26 };
/// Bins whose predictions are read from the survival matrix together, because a cache line holds several columns.
const BINS_READ_TOGETHER: usize = 16;

/// The rows by time, latest first; at equal times the censored come before the events, so that the samples comparable
/// with an event are exactly those before the first event of its time.
pub(crate) fn latest_first(outcomes: &Outcomes) -> Vec<u32> {
    let (time, event) = (outcomes.time(), outcomes.event());
    let mut order: Vec<u32> = (0..outcomes.n()).map(to_u32).collect();
    // `false < true`: the censored first.
    order.sort_by(|&a, &b| {
        let (a, b) = (a as usize, b as usize);
        time[b].total_cmp(&time[a]).then(event[a].cmp(&event[b]))
    });
    order
}

/// The bins of a sample: their samples, which are not yet ranked.
#[derive(Clone, Debug)]
pub(crate) struct BinPlan {
    /// See [`latest_first`].
    pub(crate) order: Vec<u32>,
    bins: Vec<PlannedBin>,
    /// Place in the order of every event, and how many samples of the order are comparable with it.
    events: Vec<(usize, usize)>,
    reading: Reading,
}

#[derive(Clone, Debug)]
struct PlannedBin {
    position: Position,
    events: Range<usize>,
    /// Samples at risk for at least one event of the bin.
    n_ranked: usize,
}

/// All events whose times fall on one position of the grid.
#[derive(Clone, Debug)]
pub(crate) struct RankedBin {
    pub(crate) n_buckets: usize,
    /// Bucket of every sample that is at risk for at least one event of the bin, in order.
    pub(crate) buckets: Buckets,
    /// Samples at risk for every event of the bin: the first `n_common` of the order.
    pub(crate) n_common: usize,
    /// Latest first.
    pub(crate) events: Vec<BinEvent>,
}

/// Bucket numbers; most bins have few events, and then a byte each is enough.
#[derive(Clone, Debug)]
pub(crate) enum Buckets {
    Narrow(Vec<u8>),
    Medium(Vec<u16>),
    Wide(Vec<u32>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BinEvent {
    /// Place in the order.
    pub(crate) place: usize,
    /// The first `n_at_risk` samples of the order are comparable with this event.
    pub(crate) n_at_risk: usize,
    pub(crate) bucket: usize,
}

pub(crate) trait BucketNumber: Copy + Send + Sync {
    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! bucket_number {
    ($($integer:ty),*) => {$(
        impl BucketNumber for $integer {
            fn from_index(index: usize) -> Self {
                Self::try_from(index).expect("the type was chosen for the number of buckets")
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    )*};
}

bucket_number!(u8, u16, u32);

impl BinPlan {
    /// # Errors
    /// [`MetricError::LengthMismatch`] if outcomes and curves differ in length, [`MetricError::InvalidSetting`] for a
    /// refinement factor of 0.
    pub(crate) fn new(outcomes: &Outcomes, curves: &SurvivalCurves, reading: Reading) -> Result<Self, MetricError> {
        curves.check_rows(outcomes.n())?;
        reading.validate()?;
        let (time, event) = (outcomes.time(), outcomes.event());
        let mut plan = Self { order: latest_first(outcomes), bins: vec![], events: vec![], reading };
        let mut first_tied = 0;
        for (place, &row) in plan.order.iter().enumerate() {
            let row = row as usize;
            if !event[row] {
                continue;
            }
            let before = place.checked_sub(1).map(|before| plan.order[before] as usize);
            if before.is_none_or(|before| !event[before] || time[before] > time[row]) {
                first_tied = place;
                let position = reading.position(curves.grid(), time[row]);
                if plan.bins.last().is_none_or(|bin| bin.position != position) {
                    let start = plan.events.len();
                    plan.bins.push(PlannedBin { position, events: start..start, n_ranked: 0 });
                }
            }
            plan.events.push((place, first_tied));
            let bin = plan.bins.last_mut().expect("the first event of a time opens a bin");
            bin.events.end += 1;
            bin.n_ranked = first_tied;
        }
        Ok(plan)
    }

    /// All bins, in batches of bounded memory.
    pub(crate) fn batches(&self) -> Vec<Range<usize>> {
        let (mut batches, mut start, mut n_ranks) = (vec![], 0, 0);
        for (bin, planned) in self.bins.iter().enumerate() {
            if bin > start && n_ranks + planned.n_ranked > MAX_BATCH_RANKS {
                batches.push(start..bin);
                (start, n_ranks) = (bin, 0);
            }
            n_ranks += planned.n_ranked;
        }
        batches.push(start..self.bins.len());
        batches
    }

    /// Where the bin lies on the grid.
    pub(crate) fn position(&self, bin: usize) -> Position {
        self.bins[bin].position
    }

    /// Place in the order of every event of the bin, latest first, and how many samples are comparable with it.
    pub(crate) fn events(&self, bin: usize) -> &[(usize, usize)] {
        &self.events[self.bins[bin].events.clone()]
    }

    /// The bins of all batches.
    pub(crate) fn all(&self) -> Range<usize> {
        0..self.bins.len()
    }

    /// Ranks the samples of some bins; `curves` are those of the plan.
    pub(crate) fn rank(&self, bins: Range<usize>, curves: &SurvivalCurves) -> Vec<RankedBin> {
        let together = self.bins[bins].chunks(BINS_READ_TOGETHER);
        parallel::map(together, |bins| self.rank_together(bins, curves)).into_iter().flatten().collect()
    }

    /// What `found` makes of all bins, a few at a time: only those that are at work are in memory.
    pub(crate) fn of_ranked<T: Send>(
        &self,
        curves: &SurvivalCurves,
        found: impl Fn(&[RankedBin]) -> T + Sync + Send,
    ) -> impl ParallelIterator<Item = T> {
        self.bins.par_chunks(BINS_READ_TOGETHER).map(move |bins| found(&self.rank_together(bins, curves)))
    }

    /// Ranks the samples of bins whose predictions are read from the survival matrix together.
    fn rank_together(&self, bins: &[PlannedBin], curves: &SurvivalCurves) -> Vec<RankedBin> {
        // A bin also reads its own events, which come after the samples at risk.
        let n_read = bins.iter().map(|bin| self.events[bin.events.end - 1].0 + 1).max().unwrap_or(0);
        let positions: Vec<Position> = bins.iter().map(|bin| bin.position).collect();
        let predictions = curves.read_block(&self.order[..n_read], &positions, self.reading);
        let ranked = bins.iter().zip(predictions.chunks(n_read));
        ranked.map(|(bin, predictions)| self.rank_bin(bin, predictions)).collect()
    }

    /// `predictions` in order, at the position of the bin.
    fn rank_bin(&self, bin: &PlannedBin, predictions: &[f64]) -> RankedBin {
        let events = &self.events[bin.events.clone()];
        let mut levels: Vec<f64> = events.iter().map(|&(place, _)| predictions[place]).collect();
        levels.sort_unstable_by(f64::total_cmp);
        levels.dedup();
        let bucket = |place: usize| {
            let below = levels.partition_point(|level| *level < predictions[place]);
            let equal = levels.get(below).is_some_and(|level| *level <= predictions[place]);
            2 * below + usize::from(equal)
        };
        let event = |&(place, n_at_risk): &(usize, usize)| BinEvent { place, n_at_risk, bucket: bucket(place) };
        let n_buckets = 2 * levels.len() + 1;
        RankedBin {
            n_buckets,
            buckets: Buckets::new(n_buckets, (0..bin.n_ranked).map(bucket)),
            n_common: events[0].1,
            events: events.iter().map(event).collect(),
        }
    }
}

impl Buckets {
    fn new(n_buckets: usize, buckets: impl Iterator<Item = usize>) -> Self {
        match n_buckets - 1 {
            0..=0xff => Self::Narrow(buckets.map(u8::from_index).collect()),
            0x100..=0xffff => Self::Medium(buckets.map(u16::from_index).collect()),
            _ => Self::Wide(buckets.map(u32::from_index).collect()),
        }
    }
}
