//! Convolutions by a kernel of 3 x 3, and of any depth, at stride 1, with 36 products where the plain sum needs 144, or 16 of 36.
//!
//! A tile of 4 x 4 outputs depends on 6 x 6 values of the input. The input tile and the filter are transformed (input
//! transform `B' x B`, filter transform `G w G'`, 36 components each), so that the convolution of a tile with a filter
//! is a product component by component; the sum over channels is taken before the output transform `A' m A`, as 36
//! matrix products ([`transforms`], [`tiling`]). Where fewer places or channels do not repay these transforms, tiles of 2 x 2 outputs
//! may do ([`choice`]).
//!
//! A task takes some slices of a sample and some rows of tiles in them, few enough that all its transformed channels stay in the
//! caches; all tasks read the same transformed kernels. Where those are larger than the transformed input, tasks share the input
//! instead and each transforms the kernels of its outputs ([`work`]). Pictures count as the slices of one volume, since a kernel
//! without depth sees each alone: tasks of several small pictures fill vectors and use every transformed filter more often.
//!
//! The transforms mix the values that a tile depends on, so the rounding error is that of the largest of them, also for
//! places that depend only on small ones. An infinity or a NaN would spread over its tile: a result with such a value
//! is rejected, and the caller computes the plain sum, in which it affects only the right places.
//!
//! A. Lavin and S. Gray, "Fast algorithms for convolutional neural networks", CVPR 2016, sections 4.1 and 4.2: F(2 x 2, 3 x 3) and
//! F(4 x 4, 3 x 3), after S. Winograd, *Arithmetic Complexity of Computations*, SIAM 1980; the points of the larger tiles are others
//! ([`FourByFour`]).

pub(super) mod choice;
pub(super) mod tiling;
mod transforms;
pub(super) mod weights;
mod work;

use std::ops::Range;

use rayon::prelude::*;

use crate::activation::Activation;
use crate::blocks::Blocks;
use crate::conv::ConvShape;
use crate::conv::dense::sums::sum_weights;
use crate::gemm::{self, SLACK, TileSize};
use crate::simd;
use crate::simd::lanes::LONGEST;
pub(crate) use choice::pays;
use choice::{Edge, tiles, tiles_of_weights};
use tiling::{FourByFour, Tiling, TwoByTwo};
use weights::TileSum;
use work::{Done, Kernels, Task, Tiles};

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

/// Computes the gradient of the weights, `[outputs, inputs, kernel]`. Returns `false` if another method is expected to be as fast, or
/// if a value is not finite; the gradient is unspecified then.
pub(super) fn weight_gradient(x: &[f32], dy: &[f32], shape: &ConvShape, dw: &mut [f32]) -> bool {
    match tiles_of_weights(shape) {
        Some(Edge::Two) => sum_weights(&TileSum::<TwoByTwo>::new(x, dy, shape), dw),
        Some(Edge::Four) => sum_weights(&TileSum::<FourByFour>::new(x, dy, shape), dw),
        None => false,
    }
}

/// Whether the slices of a task are the pictures of a batch.
fn of_pictures(shape: &ConvShape) -> bool {
    shape.kernel[0] == 1 && shape.output()[0] == 1
}

/// Rows and columns of tiles in a slice of the output.
fn grid<T: Tiling>(shape: &ConvShape) -> [usize; 2] {
    let [_, height, width] = shape.output();
    [height, width].map(|length| length.div_ceil(T::PLACES))
}

impl Winograd<'_> {
    /// Computes the output `[batch, outputs, places]` with a bias for each channel and an activation. Returns `false`
    /// if another method is expected to be as fast, or if a value was not finite before these; the output is unspecified then.
    pub fn compute(&self, bias: Option<&[f32]>, activation: Activation, y: &mut [f32]) -> bool {
        match tiles(&self.shape) {
            Some(Edge::Two) => self.compute_in::<TwoByTwo>(bias, activation, y),
            Some(Edge::Four) => self.compute_in::<FourByFour>(bias, activation, y),
            None => false,
        }
    }

    /// [`compute`](Self::compute) in tiles of one size.
    pub fn compute_in<T: Tiling>(&self, bias: Option<&[f32]>, activation: Activation, y: &mut [f32]) -> bool {
        let done = Done::new(bias, activation);
        let shared = self.shared_tiles::<T>();
        if self.shares_input::<T>(&shared) {
            self.by_outputs::<T>(&shared, &done, y);
        } else {
            self.by_tiles::<T>(&done, y);
        }
        done.is_finite()
    }

    /// Transforms the kernels, and then computes tasks that transform what they see of the input.
    fn by_tiles<T: Tiling>(&self, done: &Done, y: &mut [f32]) {
        let ConvShape { inputs, outputs, .. } = self.shape;
        let tasks = self.tasks::<T>(y, self.division::<T>());
        gemm::with_scratch([T::COMPONENTS * self.stride_of_kernels(outputs)], |[values]| {
            self.kernels::<T>(0..self.blocks(), values).into_par_iter().for_each(simd::run);
            let kernels = Kernels { values, outputs: 0..outputs };
            tasks.into_par_iter().for_each(|task| {
                if !done.is_finite() {
                    return;
                }
                let tiles = self.tiles::<T>(task.depths.len(), task.tile_rows.len());
                gemm::with_scratch([T::COMPONENTS * tiles.stride + SLACK], |[input]| {
                    for channel in 0..inputs {
                        let target = &mut input[channel * tiles.pitch..];
                        self.input::<T>(
                            [task.volume, channel],
                            task.depths.start,
                            task.tile_rows.start,
                            &tiles,
                            target,
                        );
                    }
                    self.finish::<T>(task, &kernels, input, &tiles, done);
                });
            });
        });
    }

    /// Transforms the input, and then computes tasks that transform the kernels of their outputs, so that no kernel is read from
    /// memory that is far from its core.
    fn by_outputs<T: Tiling>(&self, tiles: &Tiles, done: &Done, y: &mut [f32]) {
        let inputs = self.shape.inputs;
        let (volumes, blocks) = (self.volumes()[0], self.blocks());
        let mut of_blocks: Vec<Vec<Task>> = (0..blocks).map(|_| Vec::with_capacity(volumes)).collect();
        for (index, task) in self.tasks::<T>(y, [tiles.depth, tiles.rows, blocks]).into_iter().enumerate() {
            of_blocks[index % blocks].push(task);
        }
        gemm::with_scratch([volumes * inputs * tiles.pitch + SLACK], |[input]| {
            let of_channels = input.par_chunks_exact_mut(tiles.pitch).take(volumes * inputs).enumerate();
            of_channels.for_each(|(index, input)| {
                self.input::<T>([index / inputs, index % inputs], 0, 0, tiles, input);
            });
            of_blocks.into_par_iter().enumerate().for_each(|(block, tasks)| {
                let outputs = self.outputs(&(block..block + 1));
                gemm::with_scratch([T::COMPONENTS * self.stride_of_kernels(outputs.len())], |[values]| {
                    self.kernels::<T>(block..block + 1, values).into_iter().for_each(simd::run);
                    let kernels = Kernels { values, outputs };
                    for task in tasks.into_iter().take_while(|_| done.is_finite()) {
                        let input = &input[task.volume * inputs * tiles.pitch..];
                        self.finish::<T>(task, &kernels, input, tiles, done);
                    }
                });
            });
        });
    }

    /// Whether the kernels are so large that every task is better off with those of its outputs: larger than the transformed input, as
    /// `tiles`, which must be small enough to be in memory as a whole: 16 MiB.
    fn shares_input<T: Tiling>(&self, tiles: &Tiles) -> bool {
        const MOST: usize = 1 << 22;
        let input = self.volumes()[0] * self.shape.inputs * tiles.pitch;
        input <= (T::COMPONENTS * self.length_of_kernels(self.shape.outputs)).min(MOST)
    }

    /// Slices and rows of tiles of a task, and the number of groups that the blocks of outputs are divided into, for as
    /// many tasks as keep all threads busy. No result depends on this, since each is the sum of the same products in
    /// the same order.
    fn division<T: Tiling>(&self) -> [usize; 3] {
        /// Rows of tiles are divided until this many slices fit, since the additional slices that the kernel covers are
        /// transformed by two tasks.
        const SLICES: usize = 4;
        let [volumes, depth] = self.volumes();
        let [rows, columns] = grid::<T>(&self.shape);
        let wanted = 2 * rayon::current_num_threads();
        let share = volumes * depth * rows * columns / wanted;
        let most = (Blocks::in_use().transformed / (T::COMPONENTS * self.shape.inputs)).min(share).max(FEW_TILES);
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
}

/// Distance between the components, of which all are accessed in turn: not at the same offset of a page, where they
/// would evict one another from the first-level cache (a third of the time of the transforms).
fn apart(length: usize) -> usize {
    const PAGE: usize = 1024;
    length.next_multiple_of(PAGE) + 5 * LONGEST
}
