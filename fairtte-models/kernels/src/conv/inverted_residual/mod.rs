//! Inverted residual blocks with squeeze and excitation, in inference: all layers of a sample before the next sample.
//!
//! Sandler et al. (2018), `MobileNetV2`, arXiv:1801.04381, with the gates of Hu, Shen and Sun (2018): a convolution of one element
//! to more channels, a depthwise convolution, factors for its channels from their means, and a convolution of one element to few
//! channels, each with a batch norm by fixed statistics. Layer by layer, the two arrays of many channels go through memory
//! several times, which takes longer than their arithmetic. Here one thread computes the whole block for one sample, or for a
//! few whose planes are small: some channels of the first layer at a time, which the depthwise convolution reads while they
//! are in the cache. The first array is never there as a whole, and of the second only that of the samples of a thread.
//!
//! Every value is the same sum in the same order as by [`conv::forward`](super::forward),
//! [`pooling::average`], [`linear`](crate::linear) and [`gate::forward`](crate::gate::forward) one after
//! the other, so the results have the same bits.

mod panels;
mod planes;
mod row;

use rayon::prelude::*;

use self::panels::{Product, columns_of, pack_right};
use self::planes::Planes;
use self::row::{Turned, turned_length};
use crate::activation::Activation;
use crate::blocks::Blocks;
use crate::conv::depthwise::{self, Channels, ChannelsRoom};
use crate::conv::{ConvKind, ConvShape};
use crate::gemm::{self, SLACK};
use crate::pooling;

/// Sizes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// Samples.
    pub batch: usize,
    /// Channels of the input.
    pub inputs: usize,
    /// Channels of the depthwise convolution.
    pub wide: usize,
    /// Channels of the squeezed means.
    pub narrow: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Height and width of the input.
    pub size: [usize; 2],
    /// Side of the kernels of the depthwise convolution, 3 or 5.
    pub side: usize,
    /// Its stride.
    pub stride: usize,
    /// Zeros that it adds at each end.
    pub padding: usize,
}

/// A layer: its weights, one factor for each of its outputs if they have one, and one bias for each of its outputs.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// `[outputs, inputs]`, of the depthwise convolution `[channels, side, side]`.
    pub weights: &'a [f32],
    /// The weights of an output are multiplied by its factor.
    pub scale: Option<&'a [f32]>,
    /// Added to each output.
    pub bias: &'a [f32],
}

/// The layers of a block.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// To the channels of the depthwise convolution; without it the input has as many.
    pub expand: Option<Layer<'a>>,
    /// Of each channel.
    pub depthwise: Layer<'a>,
    /// From the means of the channels.
    pub squeeze: Layer<'a>,
    /// To the factors of the channels, through the logistic function.
    pub excite: Layer<'a>,
    /// To the output.
    pub project: Layer<'a>,
    /// After the first three layers.
    pub activation: Activation,
    /// Whether the input is added to the output.
    pub residual: bool,
}

impl BlockShape {
    /// The depthwise convolution.
    pub fn depthwise(&self) -> ConvShape {
        ConvShape {
            batch: self.batch,
            inputs: self.wide,
            outputs: self.wide,
            size: [1, self.size[0], self.size[1]],
            kernel: [1, self.side, self.side],
            stride: [1, self.stride, self.stride],
            padding: [0, self.padding, self.padding],
            groups: self.wide,
        }
    }

    /// Whether all layers have kernels: the depthwise convolution is one of those that do, and no layer is without channels.
    fn has_kernels(&self) -> bool {
        let Self { inputs, narrow, outputs, .. } = *self;
        self.depthwise().kind() == Some(ConvKind::Depthwise) && ![inputs, narrow, outputs].contains(&0)
    }

    /// Whether every convolution with a batch norm has at least as many outputs as weights, so that factors belong into the weights.
    pub fn scales_weights(&self) -> bool {
        let Self { batch, inputs, wide, .. } = *self;
        let [input, output] = self.planes();
        let taps = self.depthwise().taps();
        batch * input >= inputs && batch * output >= taps && batch * output >= wide
    }

    /// Places of a channel before and after the depthwise convolution.
    fn planes(&self) -> [usize; 2] {
        let shape = self.depthwise();
        [shape.input_plane(), shape.output_plane()]
    }

    /// Samples that are computed together: several where the places of one do not fill the vectors of a product.
    fn together(&self) -> usize {
        /// Places that do.
        const ENOUGH: usize = 192;
        let [_, output] = self.planes();
        ENOUGH.div_ceil(output).min(self.batch / rayon::current_num_threads()).max(1)
    }

    /// Whether [`forward`] is expected to be faster than the layers one after the other: the arrays of many channels do not stay in
    /// the caches, and the threads have equal numbers of samples, about.
    pub fn pays(&self) -> bool {
        let Self { batch, wide, .. } = *self;
        if !self.has_kernels() || self.stride > 2 {
            return false;
        }
        let threads = rayon::current_num_threads();
        let units = batch.div_ceil(self.together());
        let even = units.div_ceil(threads) * threads * 4 <= units * 5;
        let [input, output] = self.planes();
        even && batch * wide * (input + output) * size_of::<f32>() > threads * Blocks::in_use().l2
    }
}

/// `y` `[batch, outputs, places]` of `x` `[batch, inputs, places]`.
///
/// # Panics
/// If the depthwise convolution is none that has kernels, a layer has no channels, or a slice does not have its length.
pub fn forward(x: &[f32], shape: &BlockShape, layers: &Layers, y: &mut [f32]) {
    assert!(shape.has_kernels(), "kernels of the depthwise convolution and channels in every layer: {shape:?}");
    let BlockShape { batch, inputs, wide, narrow, outputs, .. } = *shape;
    let [plane, deep_plane] = shape.planes();
    let taps = shape.depthwise().taps();
    assert!(
        x.len() == batch * inputs * plane && y.len() == batch * outputs * deep_plane,
        "lengths of input and output"
    );
    assert!(layers.expand.is_some() || inputs == wide, "as many channels as the input without a first layer");
    assert!(!layers.residual || (inputs == outputs && plane == deep_plane), "an output of the size of the input");
    let check = |layer: &Layer, from: usize, to: usize| {
        assert!(layer.weights.len() == from * to && layer.bias.len() == to, "lengths of the weights and the bias");
        assert!(layer.scale.is_none_or(|scale| scale.len() == to), "a factor for each output");
    };
    layers.expand.iter().for_each(|layer| check(layer, inputs, wide));
    check(&layers.depthwise, taps, wide);
    check(&layers.squeeze, wide, narrow);
    check(&layers.excite, narrow, wide);
    check(&layers.project, wide, outputs);
    let together = shape.together();
    let group = group(shape, together);
    let expanded = layers.expand.map_or(0, |_| inputs * wide);
    let lengths = [
        expanded + SLACK,
        outputs * wide + SLACK,
        turned_length(wide, narrow),
        turned_length(narrow, wide),
        wide * taps,
    ];
    gemm::with_scratch(lengths, |[expand, project, squeeze, excite, kernels]| {
        let ((expand, project), (squeeze, excite)) = rayon::join(
            || {
                rayon::join(
                    || layers.expand.map(|layer| Product::new(&layer, [inputs, wide], group, expand)),
                    || Product::new(&layers.project, [wide, outputs], outputs, project),
                )
            },
            || {
                rayon::join(
                    || Turned::new(&layers.squeeze, [wide, narrow], squeeze),
                    || Turned::new(&layers.excite, [narrow, wide], excite),
                )
            },
        );
        scaled(&layers.depthwise, taps, kernels);
        let depthwise = shape.depthwise();
        let channels = Channels::new(kernels, Some(layers.depthwise.bias), layers.activation, &depthwise);
        let block = Block { shape, layers, group, expand, channels, squeeze, excite, project };
        let units = y.par_chunks_mut(together * outputs * deep_plane).zip(x.par_chunks(together * inputs * plane));
        // A thread that is held up keeps one unit, and not several, from the others.
        units.with_max_len(1).for_each_init(|| block.channels.room(), |room, (y, x)| block.samples(x, room, y));
    });
}

/// The weights of a depthwise convolution times the factors.
fn scaled(layer: &Layer, taps: usize, kernels: &mut [f32]) {
    kernels[..layer.weights.len()].copy_from_slice(layer.weights);
    for (kernel, &scale) in kernels.chunks_exact_mut(taps).zip(layer.scale.unwrap_or_default()) {
        for weight in kernel {
            *weight *= scale;
        }
    }
}

/// Number of channels of the first layer that are computed before the depthwise convolution reads them: half of the cache of a
/// core.
fn group(shape: &BlockShape, together: usize) -> usize {
    /// Channels of a block of the depthwise convolution of small planes.
    const BLOCK: usize = 16;
    let [plane, _] = shape.planes();
    let most = Blocks::in_use().l2 / 2 / size_of::<f32>() / (together * plane);
    let whole = most / BLOCK * BLOCK;
    // Small planes are read in whole blocks only, even if those of many samples do not fit.
    let least = if depthwise::has_small_planes(&shape.depthwise()) { BLOCK } else { BLOCK / 2 };
    whole.max(least).min(shape.wide)
}

/// A block with its weights in the order in which they are read.
struct Block<'a> {
    shape: &'a BlockShape,
    layers: &'a Layers<'a>,
    group: usize,
    expand: Option<Product<'a>>,
    channels: Channels<'a>,
    squeeze: Turned<'a>,
    excite: Turned<'a>,
    project: Product<'a>,
}

impl Block<'_> {
    /// Computes a few samples on this thread.
    fn samples(&self, x: &[f32], room: &mut ChannelsRoom, y: &mut [f32]) {
        let BlockShape { inputs, wide, narrow, outputs, .. } = *self.shape;
        let [plane, deep_plane] = self.shape.planes();
        let samples = x.len() / (inputs * plane);
        let lengths = [samples * wide * deep_plane, samples * wide, samples * narrow, samples * wide];
        gemm::with_scratch(lengths, |[deep, means, squeezed, gates]| {
            let deep = &mut deep[..samples * wide * deep_plane];
            self.expand_and_convolve(x, samples, room, deep);
            let (means, gates) = (&mut means[..samples * wide], &mut gates[..samples * wide]);
            pooling::average_here(deep, deep_plane, means);
            let rows = means.chunks_exact(wide).zip(gates.chunks_exact_mut(wide));
            for ((means, gates), squeezed) in rows.zip(squeezed.chunks_exact_mut(narrow)) {
                self.squeeze.forward(means, self.layers.activation, squeezed);
                self.excite.forward(squeezed, Activation::Sigmoid, gates);
            }
            let right = Planes { source: deep, channels: wide, plane: deep_plane, factors: gates };
            let rows = y.chunks_exact_mut(deep_plane).collect();
            self.project.forward_packing(&right, [samples, deep_plane], Activation::Identity, rows);
            if self.layers.residual {
                y.iter_mut().zip(x).for_each(|(y, x)| *y += x);
            }
            debug_assert_eq!(y.len(), samples * outputs * deep_plane, "whole samples");
        });
    }

    /// The first two layers, some channels at a time.
    fn expand_and_convolve(&self, x: &[f32], samples: usize, room: &mut ChannelsRoom, deep: &mut [f32]) {
        let BlockShape { inputs, wide, .. } = *self.shape;
        let [plane, deep_plane] = self.shape.planes();
        let Some(expand) = &self.expand else {
            for (x, deep) in x.chunks_exact(wide * plane).zip(deep.chunks_exact_mut(wide * deep_plane)) {
                self.channels.forward(0, x, room, deep);
            }
            return;
        };
        let columns = columns_of([samples, plane]);
        let lengths = [inputs * columns + SLACK, samples * self.group * plane];
        gemm::with_scratch(lengths, |[right, grown]| {
            let planes = Planes { source: x, channels: inputs, plane, factors: &[] };
            let panels = pack_right(&planes, expand.steps(), [samples, plane], right);
            for (index, channels) in gemm::parts(wide, self.group).enumerate() {
                let grown = &mut grown[..samples * channels.len() * plane];
                let rows = grown.chunks_exact_mut(plane).collect();
                expand.forward_group(index, right, &panels, self.layers.activation, rows);
                let count = channels.len();
                for (grown, deep) in grown.chunks_exact(count * plane).zip(deep.chunks_exact_mut(wide * deep_plane)) {
                    let deep = &mut deep[channels.start * deep_plane..channels.end * deep_plane];
                    self.channels.forward(channels.start, grown, room, deep);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
