//! The integrated Brier score for a block of replicates.

use super::{Cells, LANES, LaneWeights};

/// Sums of every slice, by lane.
pub(crate) struct BrierLanes {
    /// The samples' integrals, and the samples.
    integrals: Vec<[f64; LANES]>,
    counts: Vec<[u64; LANES]>,
}

impl BrierLanes {
    /// `integrals`: what every sample adds to the score; `rows`: its weights; both in the order of `cells`.
    pub(crate) fn new(integrals: &[f64], cells: &Cells, rows: &[LaneWeights]) -> Self {
        let mut of_cells = vec![([0.0; LANES], [0_u64; LANES]); cells.n_cells()];
        for (place, (integral, weights)) in integrals.iter().zip(rows).enumerate() {
            let (sums, counts) = &mut of_cells[cells.cell(place)];
            for lane in 0..LANES {
                sums[lane] += integral * f64::from(weights[lane]);
                counts[lane] += u64::from(weights[lane]);
            }
        }
        let mut lanes =
            Self { integrals: vec![[0.0; LANES]; cells.n_slices()], counts: vec![[0; LANES]; cells.n_slices()] };
        for (cell, (sums, counts)) in of_cells.iter().enumerate() {
            for &slice in cells.slices_of(cell) {
                for lane in 0..LANES {
                    lanes.integrals[slice][lane] += sums[lane];
                    lanes.counts[slice][lane] += counts[lane];
                }
            }
        }
        lanes
    }

    /// The score of one slice in one replicate; `None` if no sample was drawn.
    pub(crate) fn value(&self, slice: usize, lane: usize) -> Option<f64> {
        let n = self.counts[slice][lane];
        (n > 0).then(|| self.integrals[slice][lane] / n as f64)
    }
}
