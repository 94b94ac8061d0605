//! Convolutions by a kernel of 3 x 3, and of any depth, at stride 1, with 16 products where the plain sum needs 36.
//!
//! A tile of 2 x 2 outputs depends on 4 x 4 values of the input. The input tile and the filter are transformed (input
//! transform `B' x B`, filter transform `G w G'`, 16 components each), so that the convolution of a tile with a filter
//! is a product component by component; the sum over channels is taken before the output transform `A' m A`, as 16
//! matrix products ([`transforms`]). A task takes some slices of a sample and some rows of tiles in them, few enough
//! that all its transformed channels stay in the caches. Pictures count as the slices of one volume, since a kernel without
//! depth sees each alone: tasks of several small pictures fill vectors and use every transformed filter more often.
//!
//! The transforms mix the values that a tile depends on, so the rounding error is that of the largest of them, also for
//! places that depend only on small ones. An infinity or a NaN would spread over its tile: a result with such a value
//! is rejected, and the caller computes the plain sum, in which it affects only the right places.
//!
//! A. Lavin and S. Gray, "Fast algorithms for convolutional neural networks", CVPR 2016, section 4.1: F(2 x 2, 3 x 3), after
//! S. Winograd, *Arithmetic Complexity of Computations*, SIAM 1980.

mod transforms;
mod weights;

use std::ops::Range;
use std::slice::ChunksExactMut;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::activation::Activation;
use crate::blocks::Blocks;
use crate::conv::{ConvKind, ConvShape};
use crate::gemm::{self, Block, Output, Panel, SLACK, TileSize};
use crate::simd::lanes::LONGEST;
use crate::simd::{self, vectorized};
use transforms::{COMPONENTS, FilterTransform, InputTransform, OutputTransform};
pub(super) use weights::TileSum;

/// Approximate minimum number of tiles of a task, even if its transforms then exceed [`Blocks::transformed`].
const FEW_TILES: usize = 64;
/// Maximum number of steps that are summed at a time. Over 768 steps of a layer of resnet18-3d the largest error was
/// 3.4 times that of PyTorch's plain sum when they were summed at once, and is 0.9 times that in parts.
const STEPS: usize = 96;
/// Panels of the left factor whose sums are transformed back together.
const PANELS: usize = 2;

/// A convolution, or the gradient of the input of one.
pub(super) struct Winograd<'a> {
    /// What is computed; of a gradient, [`ConvShape::transposed`].
    pub shape: ConvShape,
    /// `[batch, inputs, size]`.
    pub source: &'a [f32],
    /// `[outputs, inputs, kernel]`, or, if `transposed`, `[inputs, outputs, kernel]` with each kernel from its end.
    pub weights: &'a [f32],
    pub transposed: bool,
}

/// Tiles of a task and the layout of the transforms of its input in memory: `[component][channel][depth][row][column]`.
struct Tiles {
    /// Slices of the output; the input also has the additional slices that the kernel covers.
    depth: usize,
    rows: usize,
    columns: usize,
    /// Distance from a channel to the next.
    pitch: usize,
    /// Distance from a component to the next.
    stride: usize,
}

impl Tiles {
    /// Columns of the products: one for each tile, in whole vectors.
    fn products(&self) -> usize {
        (self.depth * self.rows * self.columns).next_multiple_of(TileSize::in_use().columns / 2)
    }
}

/// Some slices of the output of a volume, some rows of tiles in them, and some outputs.
struct Task<'c> {
    volume: usize,
    depths: Range<usize>,
    tile_rows: Range<usize>,
    blocks: Range<usize>,
    /// `[outputs][depths]`, each the rows of places in a slice.
    bands: Vec<&'c mut [f32]>,
}

/// Whether this method applies to the convolution and is expected to be faster than the plain sum.
pub(crate) fn pays(shape: &ConvShape) -> bool {
    /// Number of channels below which transforms cost more than they save.
    const FEW: usize = 32;
    /// Maximum number of values in the transforms of all kernels, which are in memory together: 64 MiB.
    const MOST: usize = 1 << 24;
    let ConvShape { inputs, outputs, kernel, stride, padding, .. } = *shape;
    let known = kernel[1..] == [3, 3] && stride == [1; 3] && padding[1..].iter().all(|&zeros| zeros <= 2);
    if !known || shape.kind() != Some(ConvKind::Dense) || inputs < FEW || outputs < FEW {
        return false;
    }
    let [_, height, width] = shape.output();
    // The parts of tiles beyond the edge are computed in vain.
    let full = 4 * tiles(shape) * 20 <= height * width * 27;
    // Every task reads the transforms of the kernels, which are farther from its core the more outputs there are, so each must be
    // used often. Pictures share a task: 16 tiles in each of 16 samples for 512 outputs were faster, 49 for 64 outputs were not.
    let often = if of_pictures(shape) {
        let tiles = shape.batch * tiles(shape);
        tiles >= LEAST_OF_PICTURES && 2 * tiles >= outputs
    } else {
        large(shape)
    };
    full && often && COMPONENTS * inputs * outputs * kernel[0] <= MOST
}

/// Whether this holds for the gradient of the weights, too, of which every sample adds to all sums.
pub(super) fn pays_for_weights(shape: &ConvShape) -> bool {
    pays(shape) && large(shape)
}

/// Number of tiles of a batch of pictures below which transforms cost more than they save.
const LEAST_OF_PICTURES: usize = 128;
/// Number of tiles of a volume, or of a picture for the gradient of the weights, below which they do.
const LEAST_TILES: usize = 32;

/// Whether each sample has many tiles, and all together have many for the number of outputs: 49 tiles in each of 16 samples for 512
/// outputs were faster, 16 in each of 32 were not.
fn large(shape: &ConvShape) -> bool {
    let of_sample = shape.output()[0] * tiles(shape);
    of_sample >= LEAST_TILES && shape.batch * of_sample >= shape.outputs
}

/// Tiles of a slice.
fn tiles(shape: &ConvShape) -> usize {
    let [_, height, width] = shape.output();
    height.div_ceil(2) * width.div_ceil(2)
}

/// Whether the slices of a task are the pictures of a batch.
fn of_pictures(shape: &ConvShape) -> bool {
    shape.kernel[0] == 1 && shape.output()[0] == 1
}

impl Winograd<'_> {
    /// Computes the output `[batch, outputs, places]` with a bias for each channel and an activation. Returns `false`
    /// if a value was not finite before these; the output is unspecified then.
    pub fn compute(&self, bias: Option<&[f32]>, activation: Activation, y: &mut [f32]) -> bool {
        let ConvShape { inputs, outputs, kernel, .. } = self.shape;
        let finite = AtomicBool::new(true);
        let tasks = self.tasks(y);
        gemm::with_scratch([COMPONENTS * outputs * inputs * kernel[0]], |[kernels]| {
            self.kernels(kernels);
            tasks.into_par_iter().for_each(|mut task| {
                if !finite.load(Ordering::Relaxed) {
                    return;
                }
                if !self.task(kernels, &mut task) {
                    return finite.store(false, Ordering::Relaxed);
                }
                let (depth, first) = (task.depths.len(), self.outputs(&task.blocks).start);
                for (index, band) in task.bands.into_iter().enumerate() {
                    gemm::finish(band, bias.map(|bias| bias[first + index / depth]), activation);
                }
            });
        });
        finite.into_inner()
    }

    /// Slices and rows of tiles of a task, and the number of groups that the blocks of outputs are divided into, for as
    /// many tasks as keep all threads busy. No result depends on this, since each is the sum of the same products in
    /// the same order.
    fn division(&self) -> [usize; 3] {
        /// Rows of tiles are divided until this many slices fit, since the additional slices that the kernel covers are
        /// transformed by two tasks.
        const SLICES: usize = 4;
        let [_, height, width] = self.shape.output();
        let [volumes, depth] = self.volumes();
        let [rows, columns] = [height.div_ceil(2), width.div_ceil(2)];
        let wanted = 2 * rayon::current_num_threads();
        let share = volumes * depth * rows * columns / wanted;
        let most = (Blocks::in_use().transformed / (COMPONENTS * self.shape.inputs)).min(share).max(FEW_TILES);
        let slices = if self.shape.kernel[0] == 1 { 1 } else { SLICES };
        let of_rows = gemm::evenly(rows, most / slices / columns);
        let of_depth = gemm::evenly(depth, most / (of_rows * columns));
        let tasks = volumes * depth.div_ceil(of_depth) * rows.div_ceil(of_rows);
        [of_depth, of_rows, wanted.div_ceil(tasks).min(self.blocks())]
    }

    /// Number of volumes, and of slices in the output of each.
    fn volumes(&self) -> [usize; 2] {
        if of_pictures(&self.shape) { [1, self.shape.batch] } else { [self.shape.batch, self.shape.output()[0]] }
    }

    /// The index of a slice among all of `channels` channels, of `depth` slices in a volume.
    fn slice(&self, [volume, channel, slice]: [usize; 3], channels: usize, depth: usize) -> usize {
        if of_pictures(&self.shape) {
            slice * channels + channel
        } else {
            (volume * channels + channel) * depth + slice
        }
    }

    fn tasks<'c>(&self, y: &'c mut [f32]) -> Vec<Task<'c>> {
        let [_, height, width] = self.shape.output();
        let [volumes, depth] = self.volumes();
        let [of_depth, of_rows, groups] = self.division();
        let groups: Vec<_> = (0..groups).map(|index| gemm::part(self.blocks(), groups, index)).collect();
        let mut slices: Vec<_> =
            y.chunks_exact_mut(height * width).map(|slice| slice.chunks_mut(2 * of_rows * width)).collect();
        let mut tasks = Vec::new();
        for volume in 0..volumes {
            for depths in gemm::parts(depth, of_depth) {
                for blocks in &groups {
                    // The strips of a slice belong to tasks that follow one another.
                    for tile_rows in gemm::parts(height.div_ceil(2), of_rows) {
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

    /// Steps that are summed before they are added to the others; rounding errors grow with the length of a sum.
    fn steps(&self) -> usize {
        gemm::evenly(self.shape.inputs * self.shape.kernel[0], STEPS)
    }

    /// Number of blocks of outputs; the sums of a block are transformed back together.
    fn blocks(&self) -> usize {
        self.shape.outputs.div_ceil(PANELS * TileSize::in_use().rows)
    }

    /// The outputs of some blocks.
    fn outputs(&self, blocks: &Range<usize>) -> Range<usize> {
        let part = |index: usize| gemm::part(self.shape.outputs, self.blocks(), index);
        part(blocks.start).start..part(blocks.end - 1).end
    }

    /// The kernels transformed, `[component][part of the steps][panel of outputs]`, a panel `[steps][outputs]`, where a step is a
    /// slice of the kernel and an input.
    fn kernels(&self, kernels: &mut [f32]) {
        let ConvShape { inputs, outputs, kernel, .. } = self.shape;
        let steps = inputs * kernel[0];
        let of_block = |block: Range<usize>| {
            gemm::row_panels(block.len()).map(move |part| block.start + part.start..block.start + part.end)
        };
        let blocks = (0..self.blocks()).map(|index| self.outputs(&(index..index + 1)));
        let mut panels: Vec<_> = blocks.flat_map(of_block).map(|rows| (rows, Vec::new())).collect();
        for of_component in kernels.chunks_exact_mut(outputs * steps).take(COMPONENTS) {
            for mut of_part in of_component.chunks_mut(outputs * self.steps()) {
                let steps = of_part.len() / outputs;
                for (rows, places) in &mut panels {
                    let (place, rest) = of_part.split_at_mut(rows.len() * steps);
                    places.push(place);
                    of_part = rest;
                }
            }
        }
        let strides = if self.transposed { [1, outputs] } else { [inputs, 1] }.map(|stride| stride * self.shape.taps());
        let from = FilterTransform {
            weights: self.weights,
            strides,
            inputs,
            depth: kernel[0],
            steps: self.steps(),
            mirrored: self.transposed,
        };
        panels.into_par_iter().for_each(|(rows, mut places)| vectorized!(from.write(rows, &mut places)));
    }

    /// Computes a task; returns whether all its values are finite.
    fn task(&self, kernels: &[f32], task: &mut Task) -> bool {
        let ConvShape { inputs, kernel, .. } = self.shape;
        let width = self.shape.output()[2];
        let (depth, rows, columns) = (task.depths.len(), task.tile_rows.len(), width.div_ceil(2));
        // An odd number of vectors, so that channels are not at the same offset of a page either.
        let pitch = (((depth + kernel[0] - 1) * rows * columns).next_multiple_of(LONGEST) + LONGEST) | LONGEST;
        let tiles = Tiles { depth, rows, columns, pitch, stride: apart(inputs * pitch) };
        let n_columns = tiles.products();
        let largest = self.shape.outputs.div_ceil(self.blocks());
        let stride = apart(largest * n_columns);
        let lengths =
            [COMPONENTS * tiles.stride, transforms::lines(&tiles), COMPONENTS * stride].map(|length| length + SLACK);
        gemm::with_scratch(lengths, |[input, lines, sums]| {
            self.input(task, &tiles, lines, input);
            let mut finite = true;
            let mut bands = task.bands.chunks_exact_mut(depth);
            for block in task.blocks.clone() {
                let block = self.outputs(&(block..block + 1));
                let of_components = sums.chunks_exact_mut(stride).map(|sums| sums.chunks_exact_mut(n_columns));
                self.sum(block.clone(), kernels, input, &tiles, of_components);
                for (row, bands) in bands.by_ref().take(block.len()).enumerate() {
                    let sums = &sums[row * n_columns..];
                    finite &= simd::run(OutputTransform { sums, stride, tiles: &tiles, lines, width, bands });
                }
            }
            finite
        })
    }

    /// The sums of some outputs, a matrix `[outputs][tiles]` for each component.
    fn sum<'s>(
        &self,
        block: Range<usize>,
        kernels: &[f32],
        input: &[f32],
        tiles: &Tiles,
        sums: impl Iterator<Item = ChunksExactMut<'s, f32>>,
    ) {
        let ConvShape { inputs, outputs, kernel, .. } = self.shape;
        let steps = inputs * kernel[0];
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
        for (component, sums) in sums.take(COMPONENTS).enumerate() {
            let mut output = Output { segment: n_columns, n_rows: block.len(), rows: sums.take(block.len()).collect() };
            for part in gemm::parts(steps, self.steps()) {
                let left = &kernels[component * outputs * steps + part.start * outputs..][..part.len() * outputs];
                simd::run(Block {
                    left: &left[block.start * part.len()..block.end * part.len()],
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

    /// The input of a task transformed.
    fn input(&self, task: &Task, tiles: &Tiles, lines: &mut [f32], input: &mut [f32]) {
        let ConvShape { batch, inputs, size: [depth, height, width], kernel, padding, .. } = self.shape;
        let depth = if of_pictures(&self.shape) { batch } else { depth };
        let of_slice = tiles.rows * tiles.columns;
        for channel in 0..inputs {
            for slice in 0..tiles.depth + kernel[0] - 1 {
                let target = &mut input[channel * tiles.pitch + slice * of_slice..];
                let d = (task.depths.start + slice).checked_sub(padding[0]).filter(|&d| d < depth);
                let Some(d) = d else {
                    target
                        .chunks_mut(tiles.stride)
                        .take(COMPONENTS)
                        .for_each(|component| component[..of_slice].fill(0.0));
                    continue;
                };
                let from = self.slice([task.volume, channel, d], inputs, depth) * height * width;
                simd::run(InputTransform {
                    source: &self.source[from..from + height * width],
                    size: [height, width],
                    padding: [padding[1], padding[2]],
                    first: 2 * task.tile_rows.start,
                    tiles,
                    lines,
                    target,
                });
            }
        }
    }
}

/// Distance between the components, of which all 16 are accessed in turn: not at the same offset of a page, where they
/// would evict one another from the first-level cache (a third of the time of the transforms).
fn apart(length: usize) -> usize {
    const PAGE: usize = 1024;
    length.next_multiple_of(PAGE) + 5 * LONGEST
}
