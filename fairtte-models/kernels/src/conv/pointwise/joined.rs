//! Products over planes of a few hundred places at most, with the places of several samples side by side.
//!
//! A task sums its samples in a buffer of its core that has one row for each channel, adds the bias and applies the activation there,
//! and copies the rows to the samples in pieces of a plane. Sums written to the planes directly would have as many destinations as
//! there are channels and samples, of a few values each. The weights are packed once for all tasks, and so are the places where tasks
//! divide the rows of the result; where each has all rows of its samples, it packs their places itself.

use std::ops::Range;

use rayon::prelude::*;

use crate::activation::Activation;
use crate::blocks::Blocks;
use crate::gemm::{self, Block, Operand, Output, Panel, TileSize, sum_blocks};
use crate::simd::{self, vectorized};

/// `y[batch, rows, plane]`, the product of `left` and of the planes of `x[batch, channels, plane]`, with a bias for each row and an
/// activation.
pub(super) fn multiply(
    left: &impl Operand,
    x: &[f32],
    [batch, rows, channels, plane]: [usize; 4],
    bias: Option<&[f32]>,
    activation: Activation,
    y: &mut [f32],
) {
    let places = Places { data: x, channels, plane };
    let division = Division::of([batch, rows, plane]);
    let packed = if division.alone { 0 } else { batch.div_ceil(division.samples) * division.columns };
    gemm::with_scratch([rows * channels, packed * channels], |[left_panels, right_panels]| {
        let left = Left::pack(left, [rows, channels], division.row_blocks, left_panels);
        let right = if division.alone {
            Right { places, columns: division.columns, packed: None }
        } else {
            Right::pack(places, &division, packed, right_panels)
        };
        division.tasks(y, rows, plane).into_par_iter().for_each(|task| task.compute(&left, &right, bias, activation));
    });
}

/// How the result is divided.
struct Division {
    /// Blocks of the rows, each of which stays in the cache of a core.
    row_blocks: usize,
    /// Samples of a task.
    samples: usize,
    /// Their columns in whole panels.
    columns: usize,
    /// Whether a task computes all rows of its samples, and not one block.
    alone: bool,
}

impl Division {
    fn of([batch, rows, plane]: [usize; 3]) -> Self {
        let (size, blocks, wanted) = (TileSize::in_use(), Blocks::in_use(), 2 * rayon::current_num_threads());
        // Columns for which reading all weights costs little.
        let enough = 4 * size.columns;
        let mut parts = (batch * plane / enough).clamp(1, batch);
        let mut row_blocks = rows.div_ceil(blocks.rows);
        let alone = parts >= wanted;
        if alone {
            parts = wanted.max((batch * plane).div_ceil(2 * enough));
        } else {
            row_blocks = row_blocks.max(wanted.div_ceil(parts)).min(rows.div_ceil(size.rows));
        }
        let samples = batch.div_ceil(parts);
        Self { row_blocks, samples, columns: (samples * plane).next_multiple_of(size.columns), alone }
    }

    /// The tasks of `y`, `[batch, rows, plane]`.
    fn tasks<'c>(&self, y: &'c mut [f32], rows: usize, plane: usize) -> Vec<Task<'c>> {
        let blocks_of_task = if self.alone { self.row_blocks } else { 1 };
        let mut tasks = Vec::new();
        for (index, samples) in y.chunks_mut(self.samples * rows * plane).enumerate() {
            let first = tasks.len();
            let task = |blocks: Range<usize>| {
                let [first, last] =
                    [blocks.start, blocks.end - 1].map(|block| gemm::part(rows, self.row_blocks, block));
                Task { index, samples: index * self.samples, blocks, rows: first.start..last.end, output: Vec::new() }
            };
            tasks.extend(gemm::parts(self.row_blocks, blocks_of_task).map(task));
            for mut planes in samples.chunks_exact_mut(rows * plane) {
                for task in &mut tasks[first..] {
                    let (piece, behind) = planes.split_at_mut(task.rows.len() * plane);
                    task.output.push(piece);
                    planes = behind;
                }
            }
        }
        tasks
    }
}

/// The left factor as panels, for each block of the rows and each block of the sum.
struct Left<'a> {
    rows: usize,
    steps: usize,
    blocks: usize,
    panels: &'a [f32],
}

impl<'a> Left<'a> {
    fn pack(left: &impl Operand, [rows, steps]: [usize; 2], blocks: usize, panels: &'a mut [f32]) -> Self {
        let mut pieces = Vec::new();
        let mut rest = &mut panels[..];
        for rows in (0..blocks).map(|block| gemm::part(rows, blocks, block)) {
            for steps in sum_blocks(steps) {
                let (piece, behind) = rest.split_at_mut(rows.len() * steps.len());
                pieces.push((rows.clone(), steps, piece));
                rest = behind;
            }
        }
        pieces.into_par_iter().for_each(|(rows, steps, piece)| {
            gemm::pack_left(left, steps, rows, piece);
        });
        Self { rows, steps, blocks, panels }
    }

    /// The rows of a block, and its panels for some steps.
    fn block(&self, block: usize, steps: &Range<usize>) -> (Range<usize>, &[f32]) {
        let rows = gemm::part(self.rows, self.blocks, block);
        let panels = &self.panels[rows.start * self.steps + steps.start * rows.len()..];
        (rows, panels)
    }
}

/// The right factor.
struct Right<'a> {
    places: Places<'a>,
    /// Columns of a task in whole panels.
    columns: usize,
    /// Panels for each block of the sum, and their columns; `None` if every task packs its own.
    packed: Option<(&'a [f32], usize)>,
}

impl<'a> Right<'a> {
    /// Packs the places of all samples, `columns` with those that fill the last panel of each task.
    fn pack(places: Places<'a>, division: &Division, columns: usize, panels: &'a mut [f32]) -> Self {
        let (width, of_task) = (TileSize::in_use().columns, division.columns);
        let mut pieces = Vec::new();
        let mut rest = &mut panels[..];
        for steps in sum_blocks(places.channels) {
            for column in (0..columns).step_by(width) {
                let (piece, behind) = rest.split_at_mut(width * steps.len());
                let first = column / of_task * division.samples;
                pieces.push((steps.clone(), places.lanes(first, division.samples, column % of_task), piece));
                rest = behind;
            }
        }
        let pack =
            |(steps, lanes, piece): (Range<usize>, Range<usize>, &mut [f32])| places.pack(steps, lanes, width, piece);
        pieces.into_par_iter().with_min_len(4).for_each(pack);
        Self { places, columns: of_task, packed: Some((panels, columns)) }
    }
}

/// Some rows of some samples of the result.
struct Task<'c> {
    /// Number of the task among those of the same rows.
    index: usize,
    /// First sample.
    samples: usize,
    blocks: Range<usize>,
    /// The rows of these blocks.
    rows: Range<usize>,
    /// What it computes of each sample, `[rows][plane]`.
    output: Vec<&'c mut [f32]>,
}

impl Task<'_> {
    fn compute(mut self, left: &Left<'_>, right: &Right<'_>, bias: Option<&[f32]>, activation: Activation) {
        let width = TileSize::in_use().columns;
        let (n_rows, used) = (self.rows.len(), self.output.len() * right.places.plane);
        let columns = used.next_multiple_of(width / 2);
        let own = if right.packed.is_some() { 0 } else { right.columns * left.steps.min(gemm::KC) };
        gemm::with_scratch([n_rows * columns, own], |[sums, own]| {
            let rows = sums.chunks_exact_mut(columns).take(n_rows).collect();
            let mut output = Output { segment: columns, n_rows, rows };
            for steps in sum_blocks(left.steps) {
                self.add(left, self.right(right, &steps, own), steps, &mut output);
            }
            output.finish(bias.map(|bias| &bias[self.rows.clone()]), activation, &..used);
            vectorized!(spread(sums, columns, right.places.plane, &mut self.output));
        });
    }

    /// The panels of its samples for some steps.
    fn right<'a>(&self, right: &Right<'a>, steps: &Range<usize>, own: &'a mut [f32]) -> &'a [f32] {
        if let Some((panels, columns)) = right.packed {
            return &panels[steps.start * columns + self.index * right.columns * steps.len()..];
        }
        let width = TileSize::in_use().columns;
        for (index, piece) in own.chunks_mut(width * steps.len()).take(right.columns / width).enumerate() {
            let lanes = right.places.lanes(self.samples, self.output.len(), index * width);
            right.places.pack(steps.clone(), lanes, width, piece);
        }
        own
    }

    /// Adds some steps of the sum, or begins it.
    fn add(&self, left: &Left<'_>, right: &[f32], steps: Range<usize>, output: &mut Output<'_>) {
        let TileSize { columns: width, rows: tile, .. } = TileSize::in_use();
        let panel = |columns: Range<usize>| Panel {
            first: columns.start * steps.len(),
            segment: 0,
            column: columns.start,
            count: columns.len(),
        };
        let panels: Vec<Panel> = gemm::parts(output.segment, width).map(panel).collect();
        let offsets: Vec<usize> = (0..steps.len()).map(|step| step * width).collect();
        for block in self.blocks.clone() {
            let (rows, left) = left.block(block, &steps);
            simd::run(Block {
                left,
                rows: rows.start - self.rows.start..rows.end - self.rows.start,
                row_panels: rows.len().div_ceil(tile),
                right,
                offsets: &offsets,
                panels: &panels,
                output,
                add: steps.start > 0,
                far: false,
            });
        }
    }
}

/// The places of consecutive samples, `[batch, channels, plane]`, as a factor: a lane is a place, a step a channel.
struct Places<'a> {
    data: &'a [f32],
    channels: usize,
    plane: usize,
}

impl Places<'_> {
    /// The lanes of the panel that begins at `column` of those of some samples; none if they end before it.
    fn lanes(&self, first: usize, samples: usize, column: usize) -> Range<usize> {
        let end = ((first + samples) * self.plane).min(self.data.len() / self.channels);
        let [from, to] = [0, TileSize::in_use().columns].map(|lane| (first * self.plane + column + lane).min(end));
        from..to
    }

    /// Writes the panel `[steps][width]`, with 0 in the lanes beyond `lanes`.
    fn pack(&self, steps: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [f32]) {
        vectorized!(self.copy(steps.clone(), lanes.clone(), width, panel));
    }

    /// Sample by sample, whose channels follow one another in memory.
    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn copy(&self, steps: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [f32]) {
        let mut at = lanes.start;
        while at < lanes.end {
            let (sample, place) = (at / self.plane, at % self.plane);
            let count = (self.plane - place).min(lanes.end - at);
            let source = &self.data[(sample * self.channels + steps.start) * self.plane + place..];
            copy_columns(source, self.plane, steps.len(), &mut panel[at - lanes.start..], width, count);
            at += count;
        }
        if lanes.len() < width {
            panel.chunks_exact_mut(width).take(steps.len()).for_each(|row| row[lanes.len()..].fill(0.0));
        }
    }
}

/// Copies rows of sums, `[row][sample][plane]` with rows `pitch` apart, to the samples.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn spread(sums: &[f32], pitch: usize, plane: usize, samples: &mut [&mut [f32]]) {
    for (index, sample) in samples.iter_mut().enumerate() {
        let rows = sample.len() / plane;
        copy_columns(&sums[index * plane..], pitch, rows, sample, plane, plane);
    }
}

/// Copies `count` columns of `rows` rows, in pieces whose length is known when the code is compiled.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn copy_columns(source: &[f32], from_pitch: usize, rows: usize, target: &mut [f32], to_pitch: usize, count: usize) {
    let mut done = 0;
    macro_rules! pieces {
        ($($length:literal)*) => {
            $(for _ in 0..(count - done) / $length {
                for row in 0..rows {
                    let (from, to) = (row * from_pitch + done, row * to_pitch + done);
                    target[to..to + $length].copy_from_slice(&source[from..from + $length]);
                }
                done += $length;
            })*
        };
    }
    pieces!(16 8 4 2 1);
}
