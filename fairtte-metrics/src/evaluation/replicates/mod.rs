//! All metrics of the whole sample and of every group, for many bootstrap replicates at once.
//!
//! A replicate is a vector of weights: how often every sample was drawn. What had to be sorted was sorted once; a
//! replicate only adds weights up. [`LANES`] replicates go through the sorted samples side by side, so that one visit
//! to a sample serves all of them and every addition is a vector operation. Groups cost no visit of their own: a
//! sample's weights are added to the sums of its cell (its combination of levels over all attributes), and the sums of
//! a group are those of its cells.
//!
//! Cost per block of replicates: O(n L). Memory per thread: the weights, 2 bytes per sample and lane.
//! The exact slow path, one weight vector and one group at a time, stays in `concordance_td.rs`, `auc_td.rs` and
//! `brier.rs`; the tests compare the two.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set of the machine")]
#![expect(clippy::needless_range_loop, reason = "loops over lanes of local arrays are what becomes vector code")]

mod auc;
mod brier;
mod cells;
mod concordance;
#[cfg(test)]
mod tests;
mod unit_weights;

use std::borrow::Cow;
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::rank::TiedPredictions;
use crate::rank::concordance_bins::{BinPlan, RankedBin};
use crate::resampling::lanes::{LANES, LaneWeights, add_totals, totals_fit};
use crate::{MetricError, SurvivalCurves};

pub(crate) use auc::{AucLanes, SortedAuc};
pub(crate) use brier::BrierLanes;
pub(crate) use cells::Cells;
use concordance::ConcordanceLanes;

/// The weights of one block of replicates, in the order in which the samples were sorted.
pub(crate) struct Block {
    rows: Vec<LaneWeights>,
    /// Ends of runs of samples whose weights add up to less than 2^16 in every lane.
    run_ends: Vec<usize>,
    /// Sum of all weights, by lane.
    totals: [u64; LANES],
}

impl Block {
    /// `weights` are `[n, LANES]` by row of the sample; `order` is the sorted order of the rows.
    pub(crate) fn new(weights: &[LaneWeights], order: &[u32]) -> Self {
        let rows: Vec<LaneWeights> = order.iter().map(|&row| weights[row as usize]).collect();
        let mut totals = [0; LANES];
        let (mut run_ends, mut run) = (vec![], 0_u32);
        for (place, row) in rows.iter().enumerate() {
            let largest = u32::from(row.iter().copied().max().unwrap_or(0));
            if run + largest > u32::from(u16::MAX) {
                run_ends.push(place);
                run = 0;
            }
            run += largest;
            add_totals(&mut totals, row);
        }
        run_ends.push(rows.len());
        Self { rows, run_ends, totals }
    }

    /// Whether sums over all samples, doubled, fit into 32 bits.
    pub(crate) fn fits(&self) -> bool {
        totals_fit(&self.totals)
    }
}

// Arrays are passed to these by value, so that the compiler can rule out overlaps and work on whole vectors.

/// Adds lane by lane.
#[inline(always)]
fn add(sums: &mut [u32; LANES], other: &[u32; LANES]) {
    let (mut result, other) = (*sums, *other);
    for lane in 0..LANES {
        result[lane] += other[lane];
    }
    *sums = result;
}

/// Adds weights lane by lane.
#[inline(always)]
fn add_weights(sums: &mut [u32; LANES], weights: &LaneWeights) {
    let (mut result, weights) = (*sums, *weights);
    for lane in 0..LANES {
        result[lane] += u32::from(weights[lane]);
    }
    *sums = result;
}

/// Metrics of a report.
pub(crate) const N_METRICS: usize = 4;

/// The place of AUC^td among them.
pub(crate) const AUC: usize = 2;

/// The place of IBS among them.
pub(crate) const IBS: usize = 3;

/// C^td with tied predictions counting 0 and 1/2, AUC^td and IBS, in this order; `None` where undefined.
pub(crate) type Values = [Option<f64>; N_METRICS];

/// The metrics of many weight vectors.
#[derive(Debug, PartialEq)]
pub(crate) struct ReplicateValues {
    /// By replicate and slice.
    pub(crate) values: Vec<Vec<Values>>,
    /// By slice: replicates whose AUC is an average over fewer times than that of the sample.
    pub(crate) n_partial_auc: Vec<usize>,
}

/// What all replicates of one evaluation share.
pub(crate) struct Sorted<'a> {
    pub(crate) curves: &'a SurvivalCurves,
    pub(crate) plan: BinPlan,
    /// The bins of the plan once they are ranked, if they are one batch.
    pub(crate) ranked: OnceLock<Vec<RankedBin>>,
    /// `None` where the AUC, or the Brier score, cannot be computed at all. The AUC has an order, and so cells, of its own.
    pub(crate) auc: Option<SortedAuc>,
    /// What every sample adds to the integrated Brier score, by row.
    pub(crate) brier: Option<Vec<f64>>,
    pub(crate) cells: Cells,
}

/// The sums of one block of replicates.
struct BlockSums {
    concordance: ConcordanceLanes,
    auc: Option<AucLanes>,
    brier: Option<BrierLanes>,
}

impl Sorted<'_> {
    /// The metrics of `n` weight vectors, in parallel over blocks; the values do not depend on
    /// the number of threads. `fill(first, out)` writes the weights of the replicates `first..first + LANES` as
    /// `[n_samples, LANES]`; those beyond `n` may be anything.
    ///
    /// # Errors
    /// Those of `fill`, and [`MetricError::TooManyDraws`] if sums of weights do not fit into 32 bits.
    pub(crate) fn values(
        &self,
        n: usize,
        fill: impl Fn(usize, &mut [u16]) -> Result<(), MetricError> + Sync,
    ) -> Result<ReplicateValues, MetricError> {
        let n_slices = self.cells.n_slices();
        if n == 0 {
            return Ok(ReplicateValues { values: vec![], n_partial_auc: vec![0; n_slices] });
        }
        let auc = self.auc.as_ref().map(|auc| (auc, auc.used_times()));
        let integrals = self.brier.as_ref().map(|by_row| in_order(by_row, &self.plan.order));
        let mut sums: Vec<Option<BlockSums>> = (0..n.div_ceil(LANES)).map(|_| None).collect();
        let batches = self.plan.batches();
        for batch in &batches {
            let rank = || self.plan.rank(batch.clone(), self.curves);
            let bins =
                if batches.len() > 1 { Cow::Owned(rank()) } else { Cow::Borrowed(self.ranked.get_or_init(rank)) };
            sums.par_iter_mut().enumerate().try_for_each(|(number, sums)| {
                let mut weights = vec![[0; LANES]; self.plan.order.len()];
                fill(number * LANES, weights.as_flattened_mut())?;
                let block = Block::new(&weights, &self.plan.order);
                if !block.fits() {
                    return Err(MetricError::TooManyDraws { replicate: number * LANES });
                }
                // The weights are recomputed for every batch, but only C^td comes in batches.
                let sums = sums.get_or_insert_with(|| BlockSums {
                    concordance: ConcordanceLanes::new(&self.cells, &block),
                    auc: auc.as_ref().map(|(auc, used_times)| AucLanes::new(auc, used_times, &weights)),
                    brier: integrals.as_ref().map(|integrals| BrierLanes::new(integrals, &self.cells, &block.rows)),
                });
                sums.concordance.add(&bins, &self.cells, &block);
                Ok(())
            })?;
        }
        let sums_of = |replicate: usize| sums[replicate / LANES].as_ref().expect("there is at least one batch");
        let values =
            |replicate| (0..n_slices).map(|slice| sums_of(replicate).values(slice, replicate % LANES)).collect();
        let is_partial = |replicate: usize, slice| {
            let average = sums_of(replicate).auc.as_ref().and_then(|auc| auc.average(slice, replicate % LANES));
            average.is_some_and(|average| average.is_partial)
        };
        let n_partial = |slice| (0..n).filter(|&replicate| is_partial(replicate, slice)).count();
        Ok(ReplicateValues {
            values: (0..n).map(values).collect(),
            n_partial_auc: (0..n_slices).map(n_partial).collect(),
        })
    }
}

impl BlockSums {
    fn values(&self, slice: usize, lane: usize) -> Values {
        let (counts, n) = self.concordance.counts(slice, lane);
        let strict = counts.finish(n, TiedPredictions::Strict).ok();
        [
            strict.map(|found| found.value),
            strict.map(|found| found.value_with(TiedPredictions::Half)),
            self.auc.as_ref().and_then(|auc| auc.average(slice, lane)).map(|average| average.value),
            self.brier.as_ref().and_then(|brier| brier.value(slice, lane)),
        ]
    }
}

fn in_order(by_row: &[f64], order: &[u32]) -> Vec<f64> {
    order.iter().map(|&row| by_row[row as usize]).collect()
}
