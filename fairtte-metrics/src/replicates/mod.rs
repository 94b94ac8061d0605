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

mod auc;
mod brier;
mod cells;
mod concordance;

pub(crate) use auc::AucLanes;
pub(crate) use brier::BrierLanes;
pub(crate) use cells::Cells;
pub(crate) use concordance::ConcordanceLanes;

/// Replicates that are computed side by side: one cache line of weights per sample.
pub(crate) const LANES: usize = 32;

/// How often one sample occurs in each replicate of a block.
pub(crate) type LaneWeights = [u16; LANES];

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
            for (total, &weight) in totals.iter_mut().zip(row) {
                *total += u64::from(weight);
            }
        }
        run_ends.push(rows.len());
        Self { rows, run_ends, totals }
    }

    /// Whether sums over all samples, doubled, fit into 32 bits.
    pub(crate) fn fits(&self) -> bool {
        self.totals.iter().all(|&total| total < u64::from(u32::MAX) / 2)
    }
}

/// Adds lane by lane.
#[inline(always)]
fn add<const N: usize>(sums: &mut [u32; N], other: &[u32; N]) {
    for (sum, value) in sums.iter_mut().zip(other) {
        *sum += value;
    }
}

/// Adds weights lane by lane.
#[inline(always)]
fn add_weights(sums: &mut [u32; LANES], weights: &LaneWeights) {
    for (sum, &weight) in sums.iter_mut().zip(weights) {
        *sum += u32::from(weight);
    }
}
