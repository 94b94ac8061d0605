//! Weights of many replicates side by side: one visit to a sample serves all of them.

/// Replicates that are computed side by side: one cache line of weights per sample.
pub(crate) const LANES: usize = 32;

/// How often one sample occurs in each replicate of a block.
pub(crate) type LaneWeights = [u16; LANES];

/// Whether sums over all samples, doubled, fit into 32 bits.
pub(crate) fn sums_fit(weights: &[LaneWeights]) -> bool {
    let mut totals = [0; LANES];
    for row in weights {
        add_totals(&mut totals, row);
    }
    totals_fit(&totals)
}

/// [`sums_fit`] of the sums by lane.
pub(crate) fn totals_fit(totals: &[u64; LANES]) -> bool {
    totals.iter().all(|&total| total < u64::from(u32::MAX) / 2)
}

/// Adds the weights of one sample to the sums by lane.
pub(crate) fn add_totals(totals: &mut [u64; LANES], row: &LaneWeights) {
    for (total, &weight) in totals.iter_mut().zip(row) {
        *total += u64::from(weight);
    }
}
