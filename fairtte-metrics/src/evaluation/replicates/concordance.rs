//! The pairs of C^td for a block of replicates.

use super::{Block, Cells, LANES, LaneWeights, add, add_weights};
use crate::rank::concordance_bins::{BucketNumber, Buckets, RankedBin};
use crate::rank::concordance_td::Counts;

type Sums = [u32; LANES];
type Pairs = [u64; LANES];

/// Pairs of every slice, by lane.
#[derive(Clone)]
pub(crate) struct ConcordanceLanes {
    slices: Vec<SlicePairs>,
    totals: Pairs,
}

#[derive(Clone)]
struct SlicePairs {
    n_events: Pairs,
    comparable: Pairs,
    concordant: Pairs,
    tied: Pairs,
}

/// Buffers of one block.
#[derive(Default)]
struct Scratch {
    /// Weights by cell and bucket, over one run of samples.
    in_bucket: Vec<LaneWeights>,
    /// By slice and bucket: weights in this bucket or a higher one, of the samples at risk for every event of the bin.
    from_bucket: Vec<Sums>,
    /// By slice: the samples that joined within the bin, as a Fenwick tree over buckets; node 0 is their total.
    joined: Vec<Sums>,
}

/// [`ConcordanceLanes::add`] as a value, so that it can be compiled for several instruction sets.
struct AddBins<'a> {
    lanes: &'a mut ConcordanceLanes,
    bins: &'a [RankedBin],
    cells: &'a Cells,
    block: &'a Block,
}

impl pulp::WithSimd for AddBins<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { lanes, bins, cells, block } = self;
        let mut scratch = Scratch::default();
        for bin in bins {
            match &bin.buckets {
                Buckets::Narrow(buckets) => lanes.add_bin(bin, buckets, cells, block, &mut scratch),
                Buckets::Medium(buckets) => lanes.add_bin(bin, buckets, cells, block, &mut scratch),
                Buckets::Wide(buckets) => lanes.add_bin(bin, buckets, cells, block, &mut scratch),
            }
        }
    }
}

impl ConcordanceLanes {
    pub(crate) fn new(cells: &Cells, block: &Block) -> Self {
        let none =
            SlicePairs { n_events: [0; LANES], comparable: [0; LANES], concordant: [0; LANES], tied: [0; LANES] };
        Self { slices: vec![none; cells.n_slices()], totals: block.totals }
    }

    /// Adds the pairs of `bins`.
    pub(crate) fn add(&mut self, bins: &[RankedBin], cells: &Cells, block: &Block) {
        pulp::Arch::new().dispatch(AddBins { lanes: self, bins, cells, block });
    }

    /// The pairs of one slice in one replicate.
    pub(crate) fn counts(&self, slice: usize, lane: usize) -> (Counts, u64) {
        let pairs = &self.slices[slice];
        let counts = Counts {
            n_events: pairs.n_events[lane],
            comparable: pairs.comparable[lane],
            concordant: pairs.concordant[lane],
            tied: pairs.tied[lane],
        };
        (counts, self.totals[lane])
    }

    #[inline(always)]
    fn add_bin<B: BucketNumber>(
        &mut self,
        bin: &RankedBin,
        buckets: &[B],
        cells: &Cells,
        block: &Block,
        scratch: &mut Scratch,
    ) {
        scratch.sum_common(bin, &buckets[..bin.n_common], cells, block);
        let n_nodes = bin.n_buckets + 1;
        let Scratch { from_bucket, joined, .. } = scratch;
        joined.clear();
        joined.resize(cells.n_slices() * n_nodes, [0; LANES]);
        let mut n_joined = bin.n_common;
        for event in &bin.events {
            for place in n_joined..event.n_at_risk {
                for &slice in cells.slices_at(place) {
                    let tree = &mut joined[slice * n_nodes..][..n_nodes];
                    add_to_tree(tree, buckets[place].index(), &block.rows[place]);
                }
            }
            n_joined = n_joined.max(event.n_at_risk);
            for &slice in cells.slices_at(event.place) {
                let from_bucket = &from_bucket[slice * n_nodes..][..n_nodes];
                let mut at_risk = from_bucket[0];
                let mut above = from_bucket[event.bucket + 1];
                let mut not_below = from_bucket[event.bucket];
                if n_joined > bin.n_common {
                    let tree = &joined[slice * n_nodes..][..n_nodes];
                    let (below, not_above) = (sum_of_tree(tree, event.bucket), sum_of_tree(tree, event.bucket + 1));
                    for lane in 0..LANES {
                        at_risk[lane] += tree[0][lane];
                        above[lane] += tree[0][lane] - not_above[lane];
                        not_below[lane] += tree[0][lane] - below[lane];
                    }
                }
                self.slices[slice].add(&block.rows[event.place], &at_risk, &above, &not_below);
            }
        }
    }
}

impl SlicePairs {
    #[inline(always)]
    fn add(&mut self, weights: &LaneWeights, at_risk: &Sums, above: &Sums, not_below: &Sums) {
        for lane in 0..LANES {
            let weight = u64::from(weights[lane]);
            self.n_events[lane] += weight;
            self.comparable[lane] += weight * u64::from(at_risk[lane]);
            self.concordant[lane] += weight * u64::from(above[lane]);
            self.tied[lane] += weight * u64::from(not_below[lane] - above[lane]);
        }
    }
}

impl Scratch {
    /// Fills `from_bucket` with the samples at risk for every event of the bin.
    #[inline(always)]
    fn sum_common<B: BucketNumber>(&mut self, bin: &RankedBin, buckets: &[B], cells: &Cells, block: &Block) {
        let (n_buckets, n_nodes) = (bin.n_buckets, bin.n_buckets + 1);
        self.from_bucket.clear();
        self.from_bucket.resize(cells.n_slices() * n_nodes, [0; LANES]);
        let mut start = 0;
        for &end in &block.run_ends {
            let end = end.min(buckets.len());
            if start >= end {
                break;
            }
            self.in_bucket.clear();
            self.in_bucket.resize(cells.n_cells() * n_buckets, [0; LANES]);
            for (place, bucket) in (start..end).zip(&buckets[start..end]) {
                let sums = &mut self.in_bucket[cells.cell(place) * n_buckets + bucket.index()];
                let (mut result, weights) = (*sums, block.rows[place]);
                for lane in 0..LANES {
                    result[lane] += weights[lane];
                }
                *sums = result;
            }
            for (cell, weights) in self.in_bucket.chunks_exact(n_buckets).enumerate() {
                for &slice in cells.slices_of(cell) {
                    for (sums, weights) in self.from_bucket[slice * n_nodes..].iter_mut().zip(weights) {
                        add_weights(sums, weights);
                    }
                }
            }
            start = end;
        }
        for sums in self.from_bucket.chunks_exact_mut(n_nodes) {
            for bucket in (0..n_buckets).rev() {
                let above = sums[bucket + 1];
                add(&mut sums[bucket], &above);
            }
        }
    }
}

/// Fenwick (1994): node k (from 1) holds the sum of the `k & -k` buckets that end at bucket k - 1.
#[inline(always)]
fn add_to_tree(tree: &mut [Sums], bucket: usize, weights: &LaneWeights) {
    add_weights(&mut tree[0], weights);
    let mut node = bucket + 1;
    while node < tree.len() {
        add_weights(&mut tree[node], weights);
        node += node & node.wrapping_neg();
    }
}

/// Sum of the buckets below `end`.
#[inline(always)]
fn sum_of_tree(tree: &[Sums], end: usize) -> Sums {
    let (mut node, mut sum) = (end, [0; LANES]);
    while node > 0 {
        add(&mut sum, &tree[node]);
        node &= node - 1;
    }
    sum
}
