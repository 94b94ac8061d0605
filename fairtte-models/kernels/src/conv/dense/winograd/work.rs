//! What tasks compute: kernels and input transformed, their sums, and the output.

use std::marker::PhantomData;
use std::ops::Range;
use std::slice::ChunksExactMut;
use std::sync::atomic::{AtomicBool, Ordering};

use super::tiling::Tiling;
use super::transforms::{self, FilterTransform, InputTransform, OutputTransform};
use super::{Winograd, apart, grid, of_pictures};
use crate::activation::Activation;
use crate::conv::ConvShape;
use crate::gemm::{self, Block, Output, Panel, SLACK, TileSize};
use crate::simd;
use crate::simd::lanes::LONGEST;

/// Tiles of a task and the layout of the transforms of its input in memory: `[component][channel][depth][row][column]`, or the channels
/// first where tasks share the input.
pub(in super::super) struct Tiles {
    /// Slices of the output; the input also has the additional slices that the kernel covers.
    pub depth: usize,
    pub rows: usize,
    pub columns: usize,
    /// Distance from a channel to the next.
    pub pitch: usize,
    /// Distance from a component to the next.
    pub stride: usize,
}

impl Tiles {
    /// Columns of the products: one for each tile, in whole vectors.
    pub fn products(&self) -> usize {
        (self.depth * self.rows * self.columns).next_multiple_of(TileSize::in_use().columns / 2)
    }
}

/// Some slices of the output of a volume, some rows of tiles in them, and some outputs.
pub(in super::super) struct Task<'c> {
    pub volume: usize,
    pub depths: Range<usize>,
    pub tile_rows: Range<usize>,
    pub blocks: Range<usize>,
    /// `[outputs][depths]`, each the rows of places in a slice.
    pub bands: Vec<&'c mut [f32]>,
}

/// Kernels transformed, `[component][part of the steps][panel of outputs]`, a panel `[steps][outputs]`, where a step is a slice of the
/// kernel and an input.
pub(in super::super) struct Kernels<'a> {
    pub values: &'a [f32],
    pub outputs: Range<usize>,
}

/// What follows the sums, and whether all were finite.
pub(in super::super) struct Done<'a> {
    finite: AtomicBool,
    bias: Option<&'a [f32]>,
    activation: Activation,
}

impl<'a> Done<'a> {
    pub fn new(bias: Option<&'a [f32]>, activation: Activation) -> Self {
        Self { finite: AtomicBool::new(true), bias, activation }
    }

    pub fn is_finite(&self) -> bool {
        self.finite.load(Ordering::Relaxed)
    }
}

impl Winograd<'_> {
    /// Tasks of at most so many slices and rows of tiles, each of one of so many groups of the blocks of outputs.
    pub fn tasks<'c, T: Tiling>(&self, y: &'c mut [f32], [of_depth, of_rows, groups]: [usize; 3]) -> Vec<Task<'c>> {
        let [_, height, width] = self.shape.output();
        let [volumes, depth] = self.volumes();
        let groups: Vec<_> = (0..groups).map(|index| gemm::part(self.blocks(), groups, index)).collect();
        let mut slices: Vec<_> =
            y.chunks_exact_mut(height * width).map(|slice| slice.chunks_mut(T::PLACES * of_rows * width)).collect();
        let mut tasks = Vec::new();
        for volume in 0..volumes {
            for depths in gemm::parts(depth, of_depth) {
                for blocks in &groups {
                    // The strips of a slice belong to tasks that follow one another.
                    for tile_rows in gemm::parts(grid::<T>(&self.shape)[0], of_rows) {
                        let (depths, blocks) = (depths.clone(), blocks.clone());
                        let mut bands = Vec::with_capacity(self.outputs(&blocks).len() * depths.len());
                        for output in self.outputs(&blocks) {
                            for d in depths.clone() {
                                let slice = self.slice([volume, output, d], self.shape.outputs, depth);
                                bands.extend(slices[slice].next());
                            }
                        }
                        tasks.push(Task { volume, depths, tile_rows, blocks, bands });
                    }
                }
            }
        }
        tasks
    }

    /// Number of values of a component of the transformed kernels of so many outputs.
    pub fn length_of_kernels(&self, outputs: usize) -> usize {
        outputs * self.shape.inputs * self.shape.kernel[0]
    }

    /// Distance from a component of them to the next.
    pub fn stride_of_kernels(&self, outputs: usize) -> usize {
        apart(self.length_of_kernels(outputs))
    }

    /// The transforms of the kernels of some blocks of outputs, each of a panel, to `values` as [`Kernels`].
    pub fn kernels<'k, T: Tiling>(
        &'k self,
        blocks: Range<usize>,
        values: &'k mut [f32],
    ) -> Vec<FilterTransform<'k, T>> {
        let ConvShape { inputs, outputs, kernel, .. } = self.shape;
        let strides = if self.transposed { [1, outputs] } else { [inputs, 1] }.map(|stride| stride * self.shape.taps());
        let steps = self.steps();
        let mut panels = Vec::new();
        for block in blocks.clone().map(|index| self.outputs(&(index..index + 1))) {
            panels.extend(gemm::row_panels(block.len()).map(|part| FilterTransform {
                tiling: PhantomData,
                weights: self.weights,
                strides,
                inputs,
                depth: kernel[0],
                steps,
                mirrored: self.transposed,
                outputs: block.start + part.start..block.start + part.end,
                places: Vec::new(),
            }));
        }
        let outputs = self.outputs(&blocks).len();
        for of_component in values.chunks_mut(self.stride_of_kernels(outputs)).take(T::COMPONENTS) {
            for mut of_part in of_component[..self.length_of_kernels(outputs)].chunks_mut(outputs * steps) {
                let steps = of_part.len() / outputs;
                for panel in &mut panels {
                    let (place, rest) = of_part.split_at_mut(panel.outputs.len() * steps);
                    panel.places.push(place);
                    of_part = rest;
                }
            }
        }
        panels
    }

    /// Tiles of a task that transforms its input.
    pub fn tiles<T: Tiling>(&self, depth: usize, rows: usize) -> Tiles {
        let columns = grid::<T>(&self.shape)[1];
        let pitch = self.plane(depth, rows, columns);
        Tiles { depth, rows, columns, pitch, stride: apart(self.shape.inputs * pitch) }
    }

    /// All tiles of a volume, each channel of which has its components one after the other.
    pub fn shared_tiles<T: Tiling>(&self) -> Tiles {
        let [rows, columns] = grid::<T>(&self.shape);
        let depth = self.volumes()[1];
        let stride = self.plane(depth, rows, columns);
        Tiles { depth, rows, columns, pitch: T::COMPONENTS * stride + LONGEST, stride }
    }

    /// Number of values of a component of a channel, with a vector after the last: an odd number of vectors, so that channels are not
    /// at the same offset of a page.
    fn plane(&self, depth: usize, rows: usize, columns: usize) -> usize {
        let tiles = (depth + self.shape.kernel[0] - 1) * rows * columns;
        (tiles.next_multiple_of(LONGEST) + LONGEST) | LONGEST
    }

    /// A channel of a volume transformed: the slices from `first` and the rows of tiles from `first_row`.
    pub fn input<T: Tiling>(
        &self,
        [volume, channel]: [usize; 2],
        first: usize,
        first_row: usize,
        tiles: &Tiles,
        input: &mut [f32],
    ) {
        let ConvShape { batch, inputs, size: [depth, height, width], kernel, padding, .. } = self.shape;
        let depth = if of_pictures(&self.shape) { batch } else { depth };
        let of_slice = tiles.rows * tiles.columns;
        // The slices of the input among those that the tiles see; the others are padding.
        let seen = tiles.depth + kernel[0] - 1;
        let [from, to] = [padding[0], padding[0] + depth].map(|slice| slice.saturating_sub(first).min(seen));
        if from < to {
            let place =
                |channel: usize, slice: usize| self.slice([volume, channel, slice], inputs, depth) * height * width;
            let slice = first + from - padding[0];
            let start = place(channel, slice);
            gemm::with_scratch([transforms::lines::<T>(tiles) + SLACK], |[lines]| {
                simd::run(InputTransform::<T> {
                    tiling: PhantomData,
                    source: &self.source[start..],
                    depth: to - from,
                    distance: place(channel, slice + 1) - start,
                    next: place(channel + 1, slice) - start,
                    size: [height, width],
                    padding: [padding[1], padding[2]],
                    first: T::PLACES * first_row,
                    tiles,
                    lines,
                    target: &mut input[from * of_slice..],
                });
            });
        }
        // The transform may have written behind its last slice.
        for component in input.chunks_mut(tiles.stride).take(T::COMPONENTS) {
            component[..from * of_slice].fill(0.0);
            component[to * of_slice..seen * of_slice].fill(0.0);
        }
    }

    /// Computes the outputs of a task from its kernels and its input, both transformed.
    pub fn finish<T: Tiling>(&self, mut task: Task, kernels: &Kernels, input: &[f32], tiles: &Tiles, done: &Done) {
        let (depth, width) = (tiles.depth, self.shape.output()[2]);
        let n_columns = tiles.products();
        let stride = apart(self.shape.outputs.div_ceil(self.blocks()) * n_columns);
        let lengths = [transforms::lines::<T>(tiles), T::COMPONENTS * stride].map(|length| length + SLACK);
        gemm::with_scratch(lengths, |[lines, sums]| {
            let mut bands = task.bands.chunks_exact_mut(depth);
            for block in task.blocks.map(|block| self.outputs(&(block..block + 1))) {
                let of_components = sums.chunks_exact_mut(stride).map(|sums| sums.chunks_exact_mut(n_columns));
                self.sum::<T>(block.clone(), kernels, input, tiles, of_components);
                for (row, (output, bands)) in block.zip(bands.by_ref()).enumerate() {
                    let sums = &sums[row * n_columns..];
                    let tiling = PhantomData;
                    if !simd::run(OutputTransform::<T> { tiling, sums, stride, tiles, lines, width, bands }) {
                        return done.finite.store(false, Ordering::Relaxed);
                    }
                    let bias = done.bias.map(|bias| bias[output]);
                    for band in bands {
                        gemm::finish(band, bias, done.activation);
                    }
                }
            }
        });
    }

    /// The sums of some outputs, a matrix `[outputs][tiles]` for each component.
    fn sum<'s, T: Tiling>(
        &self,
        block: Range<usize>,
        kernels: &Kernels,
        input: &[f32],
        tiles: &Tiles,
        sums: impl Iterator<Item = ChunksExactMut<'s, f32>>,
    ) {
        let ConvShape { inputs, kernel, .. } = self.shape;
        let (steps, outputs) = (inputs * kernel[0], kernels.outputs.len());
        let stride = self.stride_of_kernels(outputs);
        let [from, to] = [block.start, block.end].map(|output| output - kernels.outputs.start);
        let slice = tiles.rows * tiles.columns;
        // The tiles of an element of the kernel one slice further are one slice further, too.
        let of_slice = |depth: usize| (0..inputs).map(move |input| input * tiles.pitch + depth * slice);
        let offsets: Vec<usize> = (0..kernel[0]).flat_map(of_slice).collect();
        let n_columns = tiles.products();
        let panel = |columns: Range<usize>| Panel {
            first: columns.start,
            segment: 0,
            column: columns.start,
            count: columns.len(),
        };
        let panels: Vec<Panel> = gemm::parts(n_columns, TileSize::in_use().columns).map(panel).collect();
        for (component, sums) in sums.take(T::COMPONENTS).enumerate() {
            let mut output = Output { segment: n_columns, n_rows: block.len(), rows: sums.take(block.len()).collect() };
            for part in gemm::parts(steps, self.steps()) {
                let left = &kernels.values[component * stride + part.start * outputs..][..part.len() * outputs];
                simd::run(Block {
                    left: &left[from * part.len()..to * part.len()],
                    rows: 0..block.len(),
                    row_panels: gemm::row_panels(block.len()).len(),
                    right: &input[component * tiles.stride..],
                    offsets: &offsets[part.clone()],
                    panels: &panels,
                    output: &mut output,
                    add: part.start > 0,
                    far: false,
                });
            }
        }
    }
}
