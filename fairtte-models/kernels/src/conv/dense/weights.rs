//! The gradient of the weights: the gradient of the output times transposed patches, summed over places and samples.
//!
//! A step of this sum is a place of the output. A task goes through its places in bands; it copies what a band sees of some
//! input channels into a buffer of its core (the *stage*) with the channels innermost, `[depth][height][width][channels]`, with
//! the zeros of the padding. The columns of one row of the kernel are then consecutive values for every step, at a
//! distance from the first row's that does not depend on the step, so the innermost loops read the stage in place and
//! every value of the input is transposed about once instead of once for each element of the kernel. Only the small
//! left factor is packed. Where a row of the kernel leaves much of its last vector empty, as over the three channels of a picture,
//! the rows of a place are copied side by side, and their columns are panels together.
//!
//! How the places are divided among threads: [`sums`](super::sums).

use std::ops::Range;

use super::sums::{Unit, WeightSum};
use crate::blocks::Blocks;
use crate::conv::ConvShape;
use crate::gemm::{self, Block, Output, Panel, SLACK, TileSize};
use crate::simd::prefetch::LINE;
use crate::simd::{self, vectorized};

/// Approximate number of places of a band.
const BAND: usize = 320;
/// Channels that are copied one by one.
const FEW: usize = 4;
/// Most input channels of a task, and most columns.
const MOST_CHANNELS: usize = 64;
const NR: usize = 1024;

/// Whether the `rows` of a kernel, `length` columns each, fill so little of their vectors that copying them side by side takes less time
/// than it saves in the products with `n_rows` rows.
fn is_ragged(rows: usize, length: usize, n_rows: usize) -> bool {
    /// Products of vectors that copying a row takes as long as.
    const COPY: usize = 8;
    let lanes = TileSize::in_use().lanes;
    let saved = rows * length.div_ceil(lanes) - (rows * length).div_ceil(lanes);
    saved * n_rows > COPY * rows
}

/// Places of the output that are summed in one block: rows of one slice, or slices of one sample, or samples.
#[derive(Clone, Debug)]
struct Band {
    samples: Range<usize>,
    depths: Range<usize>,
    heights: Range<usize>,
}

/// The sum for any kernel.
pub(super) struct Staged<'a> {
    x: &'a [f32],
    dy: &'a [f32],
    shape: ConvShape,
    output: [usize; 3],
    block_channels: usize,
    bands: Vec<Band>,
}

impl<'a> Staged<'a> {
    pub fn new(x: &'a [f32], dy: &'a [f32], shape: &ConvShape) -> Self {
        let inputs = shape.inputs;
        let most = (NR / shape.taps()).clamp(32, 256).max(MOST_CHANNELS.min(inputs)).min(inputs);
        let block_channels = gemm::evenly(inputs, most).next_multiple_of(16).min(inputs);
        Self { x, dy, shape: *shape, output: shape.output(), block_channels, bands: bands(shape) }
    }

    /// Depth, height and width of what a band sees of a sample.
    fn seen(&self, band: &Band) -> [usize; 3] {
        let ConvShape { kernel, stride, .. } = self.shape;
        let places = [band.depths.len(), band.heights.len(), self.output[2]];
        std::array::from_fn(|axis| (places[axis] - 1) * stride[axis] + kernel[axis])
    }

    /// The columns: the rows of the kernel one after the other.
    fn panels(&self, band: &Band, channels: usize) -> Vec<Panel> {
        let tile = TileSize::in_use().columns;
        let kernel = self.shape.kernel;
        let row = kernel[2] * channels;
        let mut panels = Vec::new();
        for (index, first) in self.kernel_rows(band, channels).enumerate() {
            panels.extend((0..row).step_by(tile).map(|at| Panel {
                first: first + at,
                segment: 0,
                column: index * row + at,
                count: (row - at).min(tile),
            }));
        }
        panels
    }

    /// Where the rows of the kernel begin in the stage, from the first column of a place on.
    fn kernel_rows(&self, band: &Band, channels: usize) -> impl Iterator<Item = usize> + use<> {
        let [depth, lines, _] = self.shape.kernel;
        let [_, height, width] = self.seen(band);
        (0..depth).flat_map(move |depth| (0..lines).map(move |line| (depth * height + line) * width * channels))
    }

    /// Where the first column of each place is in the stage.
    fn offsets(&self, band: &Band, channels: usize) -> Vec<usize> {
        let stride = self.shape.stride;
        let [depth, height, width] = self.seen(band);
        let mut offsets = Vec::new();
        for sample in 0..band.samples.len() {
            for d in 0..band.depths.len() {
                for h in 0..band.heights.len() {
                    let line = (sample * depth + d * stride[0]) * height + h * stride[1];
                    offsets.extend((0..self.output[2]).map(|w| (line * width + w * stride[2]) * channels));
                }
            }
        }
        offsets
    }

    /// Copies the rows of the kernel for places at `offsets` of the stage side by side; returns panels and offsets of the result.
    fn gather(
        &self,
        band: &Band,
        channels: usize,
        staged: &[f32],
        offsets: &[usize],
        gathered: &mut [f32],
    ) -> (Vec<Panel>, Vec<usize>) {
        let columns = self.shape.taps() * channels;
        let pitch = columns.next_multiple_of(LINE);
        let rows: Vec<usize> = self.kernel_rows(band, channels).collect();
        vectorized!(copy_rows(staged, offsets, &rows, self.shape.kernel[2] * channels, pitch, gathered));
        let panel = |columns: Range<usize>| Panel {
            first: columns.start,
            segment: 0,
            column: columns.start,
            count: columns.len(),
        };
        let panels = gemm::parts(columns, TileSize::in_use().columns).map(panel).collect();
        (panels, (0..offsets.len()).map(|place| place * pitch).collect())
    }

    /// Copies what the band sees, channels innermost.
    fn fill(&self, band: &Band, channels: Range<usize>, staged: &mut [f32]) {
        let ConvShape { inputs, size, stride, padding, .. } = self.shape;
        let [depth, height, width] = self.seen(band);
        let count = channels.len();
        let plane = size.iter().product::<usize>();
        let inside = |index: usize, axis: usize| index.checked_sub(padding[axis]).filter(|&index| index < size[axis]);
        let before = padding[2].min(width);
        let within = size[2].min(width - before);
        let mut first = 0;
        for sample in band.samples.clone() {
            let base = (sample * inputs + channels.start) * plane;
            for d in 0..depth {
                let d = inside(band.depths.start * stride[0] + d, 0);
                for h in 0..height {
                    let h = inside(band.heights.start * stride[1] + h, 1);
                    let line = &mut staged[first..];
                    first += width * count;
                    let (Some(d), Some(h)) = (d, h) else {
                        line[..width * count].fill(0.0);
                        continue;
                    };
                    line[..before * count].fill(0.0);
                    let source = &self.x[base + (d * size[1] + h) * size[2]..];
                    let target = &mut line[before * count..];
                    if count <= FEW {
                        vectorized!(interleave(source, plane, [within, count], target));
                    } else {
                        gemm::transpose(source, plane, within, count, count, target);
                    }
                    line[(before + within) * count..width * count].fill(0.0);
                }
            }
        }
    }

    /// Packs rows of the output's gradient; returns the number of panels.
    fn pack(&self, band: &Band, rows: Range<usize>, left: &mut [f32]) -> usize {
        let outputs = self.shape.outputs;
        let [depth, height, width] = self.output;
        let plane = depth * height * width;
        let pixel = (band.depths.start * height + band.heights.start) * width;
        let count = band.depths.len() * band.heights.len() * width;
        let steps = count * band.samples.len();
        let row_panels = gemm::row_panels(rows.len());
        for panel in row_panels.clone() {
            let target = &mut left[panel.start * steps..];
            for (index, sample) in band.samples.clone().enumerate() {
                let source = &self.dy[(sample * outputs + rows.start + panel.start) * plane + pixel..];
                let target = &mut target[index * count * panel.len()..];
                gemm::transpose(source, plane, count, panel.len(), panel.len(), target);
            }
        }
        row_panels.len()
    }
}

impl WeightSum for Staged<'_> {
    fn shape(&self) -> &ConvShape {
        &self.shape
    }

    fn block_channels(&self) -> usize {
        self.block_channels
    }

    fn bands(&self) -> usize {
        self.bands.len()
    }

    fn numbers(&self, channels: usize) -> usize {
        self.shape.taps() * channels
    }

    /// `[outputs][taps][channels]`.
    fn run(&self, bands: Range<usize>, channels: Range<usize>, outputs: Range<usize>, sums: &mut [f32]) {
        let bands = &self.bands[bands];
        let n_rows = outputs.len();
        let columns = self.shape.taps() * channels.len();
        let rows = sums.chunks_exact_mut(columns).take(n_rows).collect();
        let mut output = Output { segment: columns, n_rows, rows };
        let places = |band: &Band| band.samples.len() * band.depths.len() * band.heights.len() * self.output[2];
        let stage = |band: &Band| band.samples.len() * self.seen(band).iter().product::<usize>() * channels.len();
        let most = |of: &dyn Fn(&Band) -> usize| bands.iter().map(of).max().unwrap_or(0);
        let kernel = self.shape.kernel;
        let ragged = is_ragged(kernel[0] * kernel[1], kernel[2] * channels.len(), n_rows);
        let side_by_side = if ragged { most(&places) * columns.next_multiple_of(LINE) } else { 0 };
        let of_left = most(&places) * Blocks::in_use().rows.min(n_rows);
        let lengths = [most(&stage), side_by_side, of_left].map(|length| length + SLACK);
        gemm::with_scratch(lengths, |[staged, gathered, left]| {
            for (index, band) in bands.iter().enumerate() {
                self.fill(band, channels.clone(), staged);
                let offsets = self.offsets(band, channels.len());
                let (right, (panels, offsets)) = if ragged {
                    let found = self.gather(band, channels.len(), staged, &offsets, gathered);
                    (&*gathered, found)
                } else {
                    (&*staged, (self.panels(band, channels.len()), offsets))
                };
                let row_blocks = n_rows.div_ceil(Blocks::in_use().rows);
                for rows in (0..row_blocks).map(|index| gemm::part(n_rows, row_blocks, index)) {
                    let of_block = outputs.start + rows.start..outputs.start + rows.end;
                    let row_panels = self.pack(band, of_block, left);
                    simd::run(Block {
                        left,
                        rows,
                        row_panels,
                        right,
                        offsets: &offsets,
                        panels: &panels,
                        output: &mut output,
                        add: index > 0,
                        far: false,
                    });
                }
            }
        });
    }

    fn finish(&self, unit: Unit, sums: &[f32]) -> bool {
        let (taps, channels) = (self.shape.taps(), unit.channels.len());
        for (row, sums) in unit.rows.into_iter().zip(sums.chunks_exact(taps * channels)) {
            if taps == 1 {
                row.copy_from_slice(sums);
                continue;
            }
            for (tap, sums) in sums.chunks_exact(channels).enumerate() {
                row[tap..].iter_mut().step_by(taps).zip(sums).for_each(|(row, &sum)| *row = sum);
            }
        }
        true
    }
}

/// As [`gemm::transpose`] of a few rows.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn interleave(source: &[f32], stride: usize, [length, count]: [usize; 2], target: &mut [f32]) {
    if count == 1 {
        return target[..length].copy_from_slice(&source[..length]);
    }
    for channel in 0..count {
        let values = &source[channel * stride..][..length];
        target[channel..].iter_mut().step_by(count).zip(values).for_each(|(target, &value)| *target = value);
    }
}

/// For each place, rows of `length` values at its offset and those of the `rows`, one after the other, `pitch` from a place to the next.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn copy_rows(staged: &[f32], offsets: &[usize], rows: &[usize], length: usize, pitch: usize, gathered: &mut [f32]) {
    for (place, offset) in offsets.iter().enumerate() {
        for (index, row) in rows.iter().enumerate() {
            // What is written behind a row is overwritten by the next, and behind the last one not read.
            gemm::copy_run(staged, offset + row, gathered, place * pitch + index * length, length);
        }
    }
}

/// The places of a convolution in bands.
fn bands(shape: &ConvShape) -> Vec<Band> {
    let [depth, height, width] = shape.output();
    let batch = shape.batch;
    // The largest boxes of about the required number of places.
    let [samples, depths, heights] = if width * height * depth <= BAND {
        [(BAND / (width * height * depth)).min(batch), depth, height]
    } else if width * height <= BAND {
        [1, BAND / (width * height), height]
    } else {
        let cuts = height.div_ceil((BAND / width).max(1));
        [1, 1, height.div_ceil(cuts)]
    };
    let mut bands = Vec::new();
    for samples in gemm::parts(batch, samples) {
        for depths in gemm::parts(depth, depths) {
            for heights in gemm::parts(height, heights) {
                bands.push(Band { samples: samples.clone(), depths: depths.clone(), heights });
            }
        }
    }
    bands
}
