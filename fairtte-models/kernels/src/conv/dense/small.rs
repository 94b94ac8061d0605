//! Convolutions over pictures of a few places, with the samples innermost.
//!
//! The last stages of a network see pictures of 8 x 8 places or fewer: rows too short for vectors, and patches whose runs have one to
//! eight values. Here a copy of the input, padded and with the remainders by the stride apart as in [`stage`](super::stage), has the
//! values of a place for all samples (at most [`MOST_COLUMNS`] places of all together) one after the other. The places of a row of the
//! output are then consecutive for every element of the kernel, so the innermost loops read the copy in place, and the threads
//! divide the outputs.

use rayon::prelude::*;

use super::stage::Layout;
use super::staged::Sliding;
use crate::blocks::Blocks;
use crate::gemm::{self, Block, Division, Operand, Output, Panel, PlaneTask, SLACK, TileSize, sum_blocks};
use crate::simd;

/// Most places of a picture for which this method is faster.
const MOST_PLACES: usize = 64;
/// Most columns of a product.
const MOST_COLUMNS: usize = 512;

/// How the copy of some samples is laid out.
struct Interleaved {
    samples: usize,
    /// Values of a channel.
    channel: usize,
    /// For every value of a channel that is inside the input: its place here and there.
    inside: Vec<[usize; 2]>,
    /// The distance of every step of the sum from its first place.
    offsets: Vec<usize>,
    /// Columns of the product, those of a row of places rounded up to whole vectors.
    panels: Vec<Panel>,
    /// The columns of a row, and their number so rounded.
    row: [usize; 2],
}

impl Sliding<'_> {
    /// Whether this method is expected to be the fastest for a batch of so many samples.
    pub(super) fn is_small(&self, batch: usize) -> bool {
        let places = self.grid.iter().product::<usize>();
        // The copies pay where every value is used several times, or is a run of its own.
        if !(1..=MOST_PLACES).contains(&places) || self.taps.len() < 2.min(places) {
            return false;
        }
        // Of few samples a row does not fill its vectors.
        let row = self.grid[2] * gemm::evenly(batch, MOST_COLUMNS / places);
        row.next_multiple_of(TileSize::in_use().columns / 2) * 20 <= row * 27
    }

    /// Computes `y` from copies of some samples at a time.
    pub(super) fn compute_small(
        &self,
        left: &impl Operand,
        [batch, rows]: [usize; 2],
        finish: impl Fn(&mut PlaneTask) + Sync,
        y: &mut [f32],
    ) {
        let [places, plane] = [self.grid, self.size].map(|extent| extent.iter().product::<usize>());
        let sample = self.channels * plane;
        let most = rows.div_ceil(TileSize::in_use().rows);
        let row_parts = (2 * rayon::current_num_threads()).min(most).max(rows.div_ceil(Blocks::in_use().rows));
        let samples = gemm::evenly(batch, MOST_COLUMNS / places);
        let mut stage = self.interleaved(samples);
        for (source, y) in self.source.chunks(samples * sample).zip(y.chunks_mut(samples * rows * places)) {
            if source.len() < samples * sample {
                stage = self.interleaved(source.len() / sample);
            }
            gemm::with_scratch([self.channels * stage.channel + SLACK], |[staged]| {
                let channels = staged.par_chunks_exact_mut(stage.channel).take(self.channels).enumerate();
                channels.for_each(|(channel, staged)| stage.fill(&source[channel * plane..], sample, staged));
                let division = Division { samples: stage.samples, pixels: places, row_parts };
                let tasks = gemm::plane_tasks(y, [stage.samples, rows, places], division);
                tasks.into_par_iter().for_each(|mut task| {
                    stage.sum(left, staged, &mut task);
                    finish(&mut task);
                });
            });
        }
    }

    fn interleaved(&self, samples: usize) -> Interleaved {
        let layout = Layout::new(self.taps, self.stride);
        let extent: [usize; 3] = std::array::from_fn(|axis| self.grid[axis] + layout.extra[axis]);
        let volume = extent.iter().product::<usize>();
        let at = |[d, h, w]: [usize; 3]| ((d * extent[1] + h) * extent[2] + w) * samples;
        let source = |remainder: &[usize; 3], place: [usize; 3]| {
            let at = |axis: usize| {
                let at = self.seen(&layout, remainder, axis, place[axis]);
                usize::try_from(at).ok().filter(|&at| at < self.size[axis])
            };
            Some((at(0)? * self.size[1] + at(1)?) * self.size[2] + at(2)?)
        };
        let mut inside = Vec::new();
        for (index, remainder) in layout.used.iter().enumerate() {
            for place in super::positions(extent) {
                let to = index * volume * samples + at(place);
                inside.extend(source(remainder, place).map(|from| [to, from]));
            }
        }
        let channel = layout.used.len() * volume * samples;
        let offsets = layout.offsets(self.channels, volume * samples, at);

        let tile = TileSize::in_use().columns;
        let [depth, height, width] = self.grid;
        let row = [width * samples, (width * samples).next_multiple_of(tile / 2)];
        let panels = super::positions([depth, height, 1]).enumerate().flat_map(|(index, place)| {
            let first = at(place);
            gemm::parts(row[1], tile).map(move |columns| Panel {
                first: first + columns.start,
                segment: 0,
                column: index * row[1] + columns.start,
                count: columns.len(),
            })
        });
        Interleaved { samples, channel, inside, offsets, panels: panels.collect(), row }
    }
}

impl Interleaved {
    /// Copies a channel of all samples; `source` begins with that of the first, and that of the next is `sample` values further.
    fn fill(&self, source: &[f32], sample: usize, staged: &mut [f32]) {
        staged.fill(0.0);
        for index in 0..self.samples {
            let (staged, source) = (&mut staged[index..], &source[index * sample..]);
            for &[to, from] in &self.inside {
                staged[to] = source[from];
            }
        }
    }

    /// The outputs of a task.
    fn sum(&self, left: &impl Operand, staged: &[f32], task: &mut PlaneTask) {
        let n_rows = task.rows.len();
        let blocks = sum_blocks(self.offsets.len());
        let longest = self.offsets.len().div_ceil(blocks.len());
        let columns = self.panels.last().map_or(0, |panel| panel.column + panel.count);
        gemm::with_scratch([n_rows * longest + SLACK, n_rows * columns], |[panels, sums]| {
            let rows = sums.chunks_exact_mut(columns).take(n_rows).collect();
            let mut output = Output { segment: columns, n_rows, rows };
            for steps in blocks {
                simd::run(Block {
                    row_panels: gemm::pack_left(left, steps.clone(), task.rows.clone(), panels),
                    left: panels,
                    rows: 0..n_rows,
                    right: staged,
                    offsets: &self.offsets[steps.clone()],
                    panels: &self.panels,
                    output: &mut output,
                    add: steps.start > 0,
                    far: false,
                });
            }
            for (index, target) in task.output.rows.iter_mut().enumerate() {
                let (sample, row) = (index / n_rows, index % n_rows);
                let rows = sums[row * columns..(row + 1) * columns].chunks_exact(self.row[1]);
                let values = rows.flat_map(|row| row[..self.row[0]].iter().skip(sample).step_by(self.samples));
                target.iter_mut().zip(values).for_each(|(target, &value)| *target = value);
            }
        });
    }
}
