//! The gradient of the weights by the same transforms: `G' [sum over tiles of (A dy A') * (B' x B)] G`.
//!
//! The transforms of the output and of the weights are transposed: the gradient of the weights is that of the loss through
//! the sum over the transformed tiles. Here channels are innermost and vectors are of channels: a step of the sum is a
//! tile; the transforms of its output channels are the left factor and those of its input channels the right one.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use std::marker::PhantomData;
use std::ops::Range;

use super::tiling::{Matrix, Place, Tiling, both_sides, columns_apart};
use super::transforms::add_zero_times;
use super::{apart, grid};
use crate::conv::ConvShape;
use crate::conv::dense::sums::{LEAST_ROWS, Unit, WeightSum};
use crate::gemm::{self, Block, Output, Panel, SLACK, TileSize};
use crate::simd::lanes::{LONGEST, total};
use crate::simd::{self, Kernel, Vectors};

/// Input channels of a block, side by side in the right factor.
const CHANNELS: usize = 32;
/// Approximate number of values in the transforms of a band: 1 MiB.
const BAND_NUMBERS: usize = 1 << 18;

/// The sum over tiles, for a convolution that has [`tiles_of_weights`](super::choice::tiles_of_weights).
pub(in super::super) struct TileSum<'a, T> {
    tiling: PhantomData<T>,
    x: &'a [f32],
    dy: &'a [f32],
    shape: ConvShape,
    bands: Vec<Band>,
}

/// Some samples, some slices of each, and some rows of tiles in them; of several samples all slices and rows.
struct Band {
    samples: Range<usize>,
    depths: Range<usize>,
    tile_rows: Range<usize>,
}

impl<'a, T: Tiling> TileSum<'a, T> {
    pub fn new(x: &'a [f32], dy: &'a [f32], shape: &ConvShape) -> Self {
        /// Approximate minimum number of tiles of a band, even if its transforms then exceed [`BAND_NUMBERS`], because
        /// a band reads and writes all sums.
        const FEW: usize = 128;
        let depth = shape.output()[0];
        let [rows, columns] = grid::<T>(shape);
        let most = (BAND_NUMBERS / (T::COMPONENTS * (CHANNELS + shape.outputs))).max(FEW);
        let of_rows = gemm::evenly(rows, most / columns);
        let of_depth = gemm::evenly(depth, most / (of_rows * columns));
        let of_batch = gemm::evenly(shape.batch, most / (depth * rows * columns));
        let mut bands = Vec::new();
        for samples in gemm::parts(shape.batch, of_batch) {
            for depths in gemm::parts(depth, of_depth) {
                bands.extend(gemm::parts(rows, of_rows).map(|tile_rows| Band {
                    samples: samples.clone(),
                    depths: depths.clone(),
                    tile_rows,
                }));
            }
        }
        Self { tiling: PhantomData, x, dy, shape: *shape, bands }
    }

    /// Tiles in a row.
    fn columns(&self) -> usize {
        grid::<T>(&self.shape)[1]
    }

    /// Slices of a sample that a band sees.
    fn seen(&self, band: &Band) -> usize {
        band.depths.len() + self.shape.kernel[0] - 1
    }

    /// The input that a band sees transformed, `[sample][depth][row][column][CHANNELS]` at a distance of `stride`.
    fn input(&self, band: &Band, channels: Range<usize>, lines: &mut [f32], stride: usize, target: &mut [f32]) {
        let ConvShape { inputs, size: [depth, height, width], padding, .. } = self.shape;
        let [rows, columns] = [band.tile_rows.len(), self.columns()];
        let places = T::PLACES * columns + 2;
        let plane = depth * height * width;
        let of_slice = rows * columns * CHANNELS;
        let seen = self.seen(band);
        for (index, (sample, slice)) in
            band.samples.clone().flat_map(|sample| (0..seen).map(move |slice| (sample, slice))).enumerate()
        {
            let target = &mut target[index * of_slice..];
            let d = (band.depths.start + slice).checked_sub(padding[0]).filter(|&d| d < depth);
            let Some(d) = d else {
                target.chunks_mut(stride).take(T::COMPONENTS).for_each(|component| component[..of_slice].fill(0.0));
                continue;
            };
            for line in 0..T::PLACES * rows + 2 {
                let row = (T::PLACES * band.tile_rows.start + line).checked_sub(padding[1]).filter(|&row| row < height);
                let line = &mut lines[line * places * CHANNELS..];
                let Some(row) = row else {
                    line[..places * CHANNELS].fill(0.0);
                    continue;
                };
                let (before, after) = (padding[2], padding[2] + width);
                line[..before * CHANNELS].fill(0.0);
                let source = &self.x[(sample * inputs + channels.start) * plane + (d * height + row) * width..];
                gemm::transpose_squares(source, plane, width, channels.len(), CHANNELS, &mut line[before * CHANNELS..]);
                line[after * CHANNELS..places * CHANNELS].fill(0.0);
            }
            simd::run(TileTransform::<T::Input> {
                matrix: PhantomData,
                lines,
                strides: [places * CHANNELS, CHANNELS],
                edge: T::PLACES,
                rows,
                columns,
                channels: CHANNELS,
                stride,
                target,
            });
        }
    }

    /// The gradient of the output in a band transformed, as panels `[tiles][outputs]` one after the other, at a distance of
    /// `stride`.
    fn gradient(&self, band: &Band, outputs: Range<usize>, lines: &mut [f32], stride: usize, target: &mut [f32]) {
        let [depth, height, width] = self.shape.output();
        let plane = depth * height * width;
        let [rows, columns] = [band.tile_rows.len(), self.columns()];
        let steps = band.samples.len() * band.depths.len() * rows * columns;
        let length = T::PLACES * columns * LONGEST;
        for panel in gemm::row_panels(outputs.len()) {
            let mut at = panel.start * steps;
            for (sample, d) in band.samples.clone().flat_map(|sample| band.depths.clone().map(move |d| (sample, d))) {
                let first = (sample * self.shape.outputs + outputs.start + panel.start) * plane;
                for row in band.tile_rows.clone() {
                    for index in 0..T::PLACES {
                        let line = &mut lines[index * length..];
                        let row = T::PLACES * row + index;
                        let seen = if row < height { width } else { 0 };
                        if seen > 0 {
                            let source = &self.dy[first + (d * height + row) * width..];
                            gemm::transpose_squares(source, plane, width, panel.len(), LONGEST, line);
                        }
                        line[seen * LONGEST..length].fill(0.0);
                    }
                    simd::run(TileTransform::<T::Gradient> {
                        matrix: PhantomData,
                        lines,
                        strides: [length, LONGEST],
                        edge: T::PLACES,
                        rows: 1,
                        columns,
                        channels: panel.len(),
                        stride,
                        target: &mut target[at..],
                    });
                    at += columns * panel.len();
                }
            }
        }
    }
}

impl<T: Tiling> WeightSum for TileSum<'_, T> {
    fn shape(&self) -> &ConvShape {
        &self.shape
    }

    fn block_channels(&self) -> usize {
        CHANNELS
    }

    fn bands(&self) -> usize {
        self.bands.len()
    }

    /// A unit transforms the gradient of its outputs and the input of its channels, so fewer units transform less in all.
    fn groups(&self, parts: usize) -> [usize; 2] {
        /// Time in which a tile of a channel is transformed, in that of the products of a tile of one channel with one output, with
        /// AVX-512.
        const TRANSFORM: usize = 35;
        /// Maximum number of values of the sums of a unit, of which every thread has one: 8 MiB.
        const MOST: usize = 1 << 21;
        let ConvShape { outputs, kernel, .. } = self.shape;
        let blocks = self.blocks();
        let threads = rayon::current_num_threads();
        let choices = (1..=blocks).flat_map(|a| (1..=outputs.div_ceil(LEAST_ROWS)).map(move |b| [a, b]));
        let costs = |&[of_channels, of_outputs]: &[usize; 2]| {
            let (channels, outputs) = (blocks.div_ceil(of_channels) * CHANNELS, outputs.div_ceil(of_outputs));
            let units = of_channels * of_outputs * parts;
            let of_unit = channels * outputs * kernel[0] + TRANSFORM * (channels + outputs);
            // More units than threads, so that none waits long for the last of another.
            (units < 2 * threads, outputs * self.numbers(channels) > MOST, units.div_ceil(threads) * of_unit)
        };
        choices.min_by_key(costs).unwrap_or([1, 1])
    }

    fn numbers(&self, channels: usize) -> usize {
        T::COMPONENTS * self.shape.kernel[0] * channels.next_multiple_of(CHANNELS)
    }

    /// `[block of channels][component][outputs][depth of the kernel][CHANNELS]`.
    fn run(&self, bands: Range<usize>, channels: Range<usize>, outputs: Range<usize>, sums: &mut [f32]) {
        let depth = self.shape.kernel[0];
        let columns = self.columns();
        let n_rows = outputs.len();
        let size = TileSize::in_use();
        let bands = &self.bands[bands];
        let most = |extent: fn(&Band) -> usize| bands.iter().map(extent).max().unwrap_or(0);
        let (depths, rows) = (most(|band| band.depths.len()), most(|band| band.tile_rows.len()));
        let of_samples = most(|band| band.samples.len()) * rows * columns;
        let right_stride = apart((depths + depth - 1) * of_samples * CHANNELS);
        let left_stride = apart(depths * of_samples * n_rows);
        let lines = (T::PLACES * rows + 2) * (T::PLACES * columns + 2) * CHANNELS;
        let lengths = [lines, T::COMPONENTS * right_stride, T::COMPONENTS * left_stride].map(|length| length + SLACK);
        gemm::with_scratch(lengths, |[lines, right, left]| {
            for (index, band) in bands.iter().enumerate() {
                self.gradient(band, outputs.clone(), lines, left_stride, left);
                let of_slice = band.tile_rows.len() * columns;
                let of_sample = self.seen(band) * of_slice;
                let tiles = (0..band.samples.len())
                    .flat_map(|sample| (0..band.depths.len() * of_slice).map(move |tile| sample * of_sample + tile));
                let offsets: Vec<usize> = tiles.map(|tile| tile * CHANNELS).collect();
                let panel = |depth: usize, at: usize| Panel {
                    first: depth * of_slice * CHANNELS + at,
                    segment: 0,
                    column: depth * CHANNELS + at,
                    count: size.columns,
                };
                let panels: Vec<Panel> = (0..depth)
                    .flat_map(|depth| (0..CHANNELS).step_by(size.columns).map(move |at| panel(depth, at)))
                    .collect();
                let of_component = n_rows * depth * CHANNELS;
                for (block, sums) in blocks(&channels).zip(sums.chunks_exact_mut(T::COMPONENTS * of_component)) {
                    self.input(band, block, lines, right_stride, right);
                    for (component, sums) in sums.chunks_exact_mut(of_component).enumerate() {
                        let rows = sums.chunks_exact_mut(depth * CHANNELS).collect();
                        simd::run(Block {
                            left: &left[component * left_stride..],
                            rows: 0..n_rows,
                            row_panels: n_rows.div_ceil(size.rows),
                            right: &right[component * right_stride..],
                            offsets: &offsets,
                            panels: &panels,
                            output: &mut Output { segment: depth * CHANNELS, n_rows, rows },
                            add: index > 0,
                            far: false,
                        });
                    }
                }
            }
        });
    }

    fn finish(&self, unit: Unit, sums: &[f32]) -> bool {
        let Unit { channels, outputs, mut rows } = unit;
        let depth = self.shape.kernel[0];
        let stride = outputs.len() * depth * CHANNELS;
        let mut finite = true;
        for (block, sums) in blocks(&channels).zip(sums.chunks_exact(T::COMPONENTS * stride)) {
            let (first, channels) = (block.start - channels.start, block.len());
            for (index, row) in rows.iter_mut().enumerate() {
                let sums = &sums[index * depth * CHANNELS..];
                let row = &mut row[first * depth * 9..];
                finite &= simd::run(WeightTransform::<T> { tiling: PhantomData, sums, stride, channels, depth, row });
            }
        }
        finite
    }
}

/// Blocks of some channels, of which the first begins one.
fn blocks(channels: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let first = channels.start;
    gemm::parts(channels.len(), CHANNELS).map(move |block| first + block.start..first + block.end)
}

/// `B' x B` or `A dy A'` of rows of tiles, as `[tiles][channels]` with up to one vector after the last. Vectors are of channels.
struct TileTransform<'a, M> {
    matrix: PhantomData<M>,
    /// `[line][place][channels]`.
    lines: &'a [f32],
    /// Distance from a line to the next, and from a place to the next.
    strides: [usize; 2],
    /// Places from a tile to the next, along each axis.
    edge: usize,
    rows: usize,
    columns: usize,
    channels: usize,
    /// Distance from a component to the next.
    stride: usize,
    target: &'a mut [f32],
}

impl<M: Matrix> Kernel for TileTransform<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { lines, strides: [line, place], edge, rows, columns, channels, stride, target, .. } = self;
        for (tile, (row, column)) in (0..rows).flat_map(|row| (0..columns).map(move |at| (row, at))).enumerate() {
            for lane in (0..channels).step_by(S::F32_LANES) {
                let values = &lines[edge * (row * line + column * place) + lane..];
                let from = Place { values, columns: columns_apart(place), row: line };
                let target = &mut target[tile * channels + lane..];
                both_sides::<M, S>(simd, from, target, [M::ROWS * stride, stride]);
            }
        }
    }
}

/// `G' s G` of the sums of an output channel, `[component][depth][CHANNELS]`, to its weights `[channels][depth][3][3]`;
/// returns whether all are finite.
struct WeightTransform<'a, T> {
    tiling: PhantomData<T>,
    sums: &'a [f32],
    /// Distance from a component to the next.
    stride: usize,
    channels: usize,
    depth: usize,
    row: &'a mut [f32],
}

impl<T: Tiling> Kernel for WeightTransform<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) -> bool {
        let Self { sums, stride, channels, depth, row, .. } = self;
        let mut taps = [0.0; 9 * LONGEST];
        let mut sum = simd.splat_f32s(0.0);
        for slice in 0..depth {
            for first in (0..channels).step_by(S::F32_LANES) {
                let values = &sums[slice * CHANNELS + first..];
                let from = Place { values, columns: columns_apart(stride), row: T::SEEN * stride };
                both_sides::<T::Weights, S>(simd, from, &mut taps, [3 * LONGEST, LONGEST]);
                for (tap, values) in taps.chunks_exact(LONGEST).enumerate() {
                    let count = S::F32_LANES.min(channels - first);
                    let places = row[(first * depth + slice) * 9 + tap..].iter_mut().step_by(9 * depth);
                    places.zip(&values[..count]).for_each(|(place, &value)| *place = value);
                    sum = add_zero_times(simd, values, count, sum);
                }
            }
        }
        total(simd, sum) == 0.0
    }
}
