//! Dense convolutions without patches: the innermost loops read a padded copy of the input in place.
//!
//! A task computes a band of rows (or some slices) of the output of one sample. It copies what the band sees of some
//! input channels, with the zeros of the padding, into a buffer of its core (the *stage*), sorted by the remainder of
//! the place by the stride. There the inputs of an element of the kernel for all outputs of the band are at one fixed
//! distance, so a step of the sum reads consecutive values, the same for every output channel, and nothing is copied
//! for each element of the kernel.
//! The cost is that places at the end of a row, where the kernel would extend beyond it, are computed and discarded: 2
//! of 58 for a kernel of 3 over rows of 56. Where that costs more than packing patches, patches are packed.

use std::ops::Range;

use rayon::prelude::*;

use super::stage::{Layout, Stage};
use crate::activation::Activation;
use crate::blocks::Blocks;
use crate::gemm::{self, Block, Division, Operand, Output, Panel, PlaneTask, SLACK, TileSize};
use crate::simd::{self, vectorized};

/// Maximum number of values of the left factor that are packed once for all tasks.
const MOST_WEIGHTS: usize = 5 << 19;
/// Steps of the sum in one block, about.
const KC: usize = 480;

/// A sum over channels and elements of a kernel: `y[place] = sum of w * source[place * stride + tap]`.
pub(super) struct Sliding<'a> {
    /// `[batch, channels, size]`.
    pub source: &'a [f32],
    pub channels: usize,
    pub size: [usize; 3],
    /// Extent of the places.
    pub grid: [usize; 3],
    pub stride: [usize; 3],
    pub taps: &'a [[isize; 3]],
}

/// Where the places of a grid are in a plane: `place * stride + first`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub size: [usize; 3],
    pub first: [usize; 3],
    pub stride: [usize; 3],
}

impl Sliding<'_> {
    /// Computes `y`, `[batch, rows, grid]`, from the weights `left`, then adds the bias and applies the activation; returns whether
    /// a method of this kind is expected to be faster than packing patches, and does nothing otherwise.
    pub fn compute(
        &self,
        left: &impl Operand,
        [batch, rows]: [usize; 2],
        bias: Option<&[f32]>,
        activation: Activation,
        y: &mut [f32],
    ) -> bool {
        let finish = |task: &mut PlaneTask| task.finish(bias, activation);
        if self.is_small(batch) {
            self.compute_small(left, [batch, rows], finish, y);
        } else if self.pays(rows) {
            self.compute_staged(left, [batch, rows], finish, y);
        } else {
            return false;
        }
        true
    }

    /// Whether a padded copy of the input is expected to be faster than packing patches.
    pub fn pays(&self, rows: usize) -> bool {
        let [depth, height, width] = self.grid;
        if self.grid.contains(&0) || (depth * height == 1 && self.taps.len() == 1) {
            return false;
        }
        let layout = Layout::new(self.taps, self.stride);
        let computed = ((height - 1) * (width + layout.extra[2]) + width).next_multiple_of(16);
        let weights = rows * self.channels * self.taps.len();
        !self.taps.is_empty() && weights <= MOST_WEIGHTS && computed * 20 <= height * width * 27
    }

    /// Rows or slices of the places that make a task: its extent in depth and height.
    fn band(&self) -> [usize; 2] {
        let [depth, height, width] = self.grid;
        let (slice, wanted) = (height * width, Blocks::in_use().task_columns);
        if 2 * slice <= wanted {
            let tasks = (depth * slice).div_ceil(wanted);
            return [depth.div_ceil(tasks), height];
        }
        let tasks = ((slice + wanted / 2) / wanted).clamp(1, height);
        [1, height.div_ceil(tasks)]
    }

    /// Computes `y` from a padded copy of each band.
    fn compute_staged(
        &self,
        left: &impl Operand,
        [batch, rows]: [usize; 2],
        finish: impl Fn(&mut PlaneTask) + Sync,
        y: &mut [f32],
    ) {
        let [depth, height, width] = self.grid;
        let layout = Layout::new(self.taps, self.stride);
        let [band_depth, band_height] = self.band();
        let pixels = if band_depth > 1 || band_height == height { band_depth * height } else { band_height } * width;
        let pieces = (depth * height * width).div_ceil(pixels) * batch;
        let row_parts = (2 * rayon::current_num_threads()).div_ceil(pieces).min(rows.div_ceil(16));
        let steps = self.channels * self.taps.len();
        // A band must not span two slices partially: if a band is a part of a slice, each slice is divided into tasks
        // separately.
        let slices = if pixels < height * width { depth } else { 1 };
        let extent = [batch, rows, depth * height * width];
        let tasks = plane_bands(y, extent, slices, Division { samples: 1, pixels, row_parts });
        gemm::with_scratch([rows * steps], |[weights]| {
            self.pack_weights(left, rows, row_parts, weights);
            tasks.into_par_iter().for_each(|mut task| {
                let weights = &weights[task.rows.start * steps..task.rows.end * steps];
                self.band_of(&layout, weights, &mut task);
                finish(&mut task);
            });
        });
    }

    /// Channels of one block of the sum.
    fn block_channels(&self) -> usize {
        gemm::evenly(self.channels, KC / self.taps.len())
    }

    /// The blocks of the sum, in channels.
    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + Clone + use<> {
        gemm::parts(self.channels, self.block_channels())
    }

    /// The left factor as panels: for each part of the rows, for each block of the sum.
    fn pack_weights(&self, left: &impl Operand, rows: usize, row_parts: usize, packed: &mut [f32]) {
        let taps = self.taps.len();
        let mut pieces = Vec::new();
        let mut rest = packed;
        for part in 0..row_parts {
            let range = gemm::part(rows, row_parts, part);
            for channels in self.blocks() {
                let (piece, behind) = std::mem::take(&mut rest).split_at_mut(range.len() * channels.len() * taps);
                pieces.push((range.clone(), channels.start * taps..channels.end * taps, piece));
                rest = behind;
            }
        }
        pieces.into_par_iter().for_each(|(rows, steps, piece)| {
            gemm::pack_left(left, steps, rows, piece);
        });
    }

    /// The places of one task.
    fn band_of(&self, layout: &Layout, weights: &[f32], task: &mut PlaneTask) {
        let [_, height, width] = self.grid;
        let first = task.pixels.start / width;
        let last = task.pixels.end / width;
        let depths = first / height..last.div_ceil(height);
        let heights =
            if depths.len() > 1 { 0..height } else { first - depths.start * height..last - depths.start * height };
        let stage = Stage::new(layout, [depths, heights], width);
        self.sum(layout, &stage, weights, [task.samples.start, task.rows.len()], |row, slices, columns| {
            let mut places = task.output.rows[row].chunks_exact_mut(width);
            for slice in slices.chunks_exact(columns) {
                for (line, place) in places.by_ref().take(stage.out[1]).enumerate() {
                    place.copy_from_slice(&slice[line * stage.pitch..][..width]);
                }
            }
        });
    }

    /// The places of whole planes, of which a plane holds others between these; `weights` are packed for all rows.
    pub fn spread(&self, weights: &Packed, spread: &Spread, task: &mut PlaneTask) {
        let [depth, height, width] = self.grid;
        if depth * height * width == 0 {
            return;
        }
        let Packed { layout, weights, steps } = weights;
        let weights = &weights[task.rows.start * steps..task.rows.end * steps];
        let [band_depth, band_height] = self.band();
        let rows = task.rows.len();
        for (index, sample) in task.samples.clone().enumerate() {
            for depths in gemm::parts(depth, band_depth) {
                for heights in gemm::parts(height, band_height) {
                    let stage = Stage::new(layout, [depths.clone(), heights.clone()], width);
                    self.sum(layout, &stage, weights, [sample, rows], |row, slices, columns| {
                        let target = &mut task.output.rows[index * rows + row];
                        for (slice, d) in slices.chunks_exact(columns).zip(depths.clone()) {
                            for (line, h) in heights.clone().enumerate() {
                                let at = |axis: usize, place: usize| place * spread.stride[axis] + spread.first[axis];
                                let from = (at(0, d) * spread.size[1] + at(1, h)) * spread.size[2];
                                let target = target[from + spread.first[2]..from + spread.size[2]].iter_mut();
                                let source = &slice[line * stage.pitch..][..width];
                                target.step_by(spread.stride[2]).zip(source).for_each(|(to, &value)| *to = value);
                            }
                        }
                    });
                }
            }
        }
    }

    /// The left factor for [`spread`](Self::spread), in `weights`, which has the same number of values.
    pub fn pack<'p>(&self, left: &impl Operand, rows: usize, row_parts: usize, weights: &'p mut [f32]) -> Packed<'p> {
        self.pack_weights(left, rows, row_parts, weights);
        Packed { layout: Layout::new(self.taps, self.stride), weights, steps: self.channels * self.taps.len() }
    }

    /// Sums a band and passes on, for every row, its slices and the columns of each.
    fn sum(
        &self,
        layout: &Layout,
        stage: &Stage,
        weights: &[f32],
        [sample, rows]: [usize; 2],
        mut write: impl FnMut(usize, &[f32], usize),
    ) {
        let width = self.grid[2];
        let tile = TileSize::in_use().columns;
        let slice = (stage.out[1] - 1) * stage.pitch + width;
        let columns = slice.next_multiple_of(tile);
        let panel = |depth: usize, column: usize| Panel {
            first: depth * stage.extent[1] * stage.pitch + column,
            segment: 0,
            column: depth * columns + column,
            count: (slice - column).min(tile),
        };
        let panels: Vec<Panel> = (0..stage.out[0])
            .flat_map(|depth| (0..slice).step_by(tile).map(move |column| panel(depth, column)))
            .collect();
        let at = |[d, h, w]: [usize; 3]| (d * stage.extent[1] + h) * stage.pitch + w;
        let offsets = layout.offsets(self.block_channels(), stage.volume(), at);
        let total = columns * stage.out[0];
        let lengths = [rows * total, self.block_channels() * stage.channel(layout) + SLACK];
        gemm::with_scratch(lengths, |[sums, staged]| {
            let mut output =
                Output { segment: total, n_rows: rows, rows: sums.chunks_exact_mut(total).take(rows).collect() };
            let row_panels = rows.div_ceil(TileSize::in_use().rows);
            let mut weights = weights;
            for channels in self.blocks() {
                vectorized!(self.fill(layout, stage, sample, channels.clone(), staged));
                let steps = channels.len() * self.taps.len();
                let (left, behind) = weights.split_at(steps * rows);
                weights = behind;
                simd::run(Block {
                    left,
                    rows: 0..rows,
                    row_panels,
                    right: staged,
                    offsets: &offsets[..steps],
                    panels: &panels,
                    output: &mut output,
                    add: channels.start > 0,
                    far: false,
                });
            }
            for (row, sums) in sums.chunks_exact(total).take(rows).enumerate() {
                write(row, sums, columns);
            }
        });
    }

    /// The index along an axis of the value that an element of the kernel with this remainder sees from a place of the stage.
    pub(super) fn seen(&self, layout: &Layout, remainder: &[usize; 3], axis: usize, place: usize) -> isize {
        let quotient = place.cast_signed() + layout.low[axis];
        quotient * self.stride[axis].cast_signed() + remainder[axis].cast_signed()
    }

    /// Copies what the places see of some channels.
    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn fill(&self, layout: &Layout, stage: &Stage, sample: usize, channels: Range<usize>, staged: &mut [f32]) {
        let plane = self.size.iter().product::<usize>();
        let [depth, height, width] = self.size;
        let mut lines = staged.chunks_exact_mut(stage.pitch);
        for channel in channels {
            let source = &self.source[(sample * self.channels + channel) * plane..][..plane];
            for remainder in &layout.used {
                let at = |axis: usize, index: usize| self.seen(layout, remainder, axis, stage.first[axis] + index);
                let stride = self.stride[2];
                let start = at(2, 0);
                let before = start.min(0).unsigned_abs().div_ceil(stride).min(stage.pitch);
                let start = start + (before * stride).cast_signed();
                let room = (width.cast_signed() - start).max(0).unsigned_abs().div_ceil(stride);
                let inside = room.min(stage.pitch - before);
                for d in 0..stage.extent[0] {
                    for h in 0..stage.extent[1] {
                        let Some(line) = lines.next() else { return };
                        let (d, h) = (at(0, d), at(1, h));
                        let seen = (0..depth.cast_signed()).contains(&d) && (0..height.cast_signed()).contains(&h);
                        if !seen || inside == 0 {
                            line.fill(0.0);
                            continue;
                        }
                        let from = (d.unsigned_abs() * height + h.unsigned_abs()) * width + start.unsigned_abs();
                        line[..before].fill(0.0);
                        let target = &mut line[before..before + inside];
                        if stride == 1 {
                            target.copy_from_slice(&source[from..from + inside]);
                        } else if stride == 2 {
                            every_other(&source[from..(from + 2 * inside).min(source.len())], target);
                        } else {
                            let source = source[from..].iter().step_by(stride);
                            target.iter_mut().zip(source).for_each(|(target, &source)| *target = source);
                        }
                        line[before + inside..].fill(0.0);
                    }
                }
            }
        }
    }
}

/// The values with an even index.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn every_other(source: &[f32], target: &mut [f32]) {
    let (pairs, rest) = source.as_chunks::<2>();
    for (target, pair) in target.iter_mut().zip(pairs) {
        *target = pair[0];
    }
    if let (Some(target), [last]) = (target.get_mut(pairs.len()), rest) {
        *target = *last;
    }
}

/// A left factor as panels, for a division of its rows.
pub(super) struct Packed<'a> {
    layout: Layout,
    weights: &'a [f32],
    steps: usize,
}

/// Tasks of `division`, in which every plane is first cut into `slices` equal slices.
fn plane_bands<'c>(
    data: &'c mut [f32],
    [batch, rows, plane]: [usize; 3],
    slices: usize,
    division: Division,
) -> Vec<PlaneTask<'c>> {
    if slices == 1 {
        return gemm::plane_tasks(data, [batch, rows, plane], division);
    }
    // Slices are treated as samples of a result whose rows interleave.
    let slice = plane / slices;
    let pieces = slice.div_ceil(division.pixels);
    let mut tasks: Vec<PlaneTask<'c>> = Vec::with_capacity(batch * division.row_parts * slices * pieces);
    let mut planes = data.chunks_exact_mut(plane);
    for sample in 0..batch {
        for part in 0..division.row_parts {
            let range = gemm::part(rows, division.row_parts, part);
            let first = tasks.len();
            for (index, piece) in (0..slices).flat_map(|index| (0..pieces).map(move |piece| (index, piece))) {
                let from = index * slice + piece * division.pixels;
                let to = (from + division.pixels).min((index + 1) * slice);
                let output = Output { segment: to - from, n_rows: range.len(), rows: Vec::with_capacity(range.len()) };
                tasks.push(PlaneTask { rows: range.clone(), samples: sample..sample + 1, pixels: from..to, output });
            }
            for plane in planes.by_ref().take(range.len()) {
                let cut = plane.chunks_exact_mut(slice).flat_map(|slice| slice.chunks_mut(division.pixels));
                for (task, piece) in tasks[first..].iter_mut().zip(cut) {
                    task.output.rows.push(piece);
                }
            }
        }
    }
    tasks
}
