//! Layers computed by fused operations where the device of their tensors has kernels for them, and by burn's own operations
//! everywhere else.
//!
//! burn's modules hold the parameters, so records, imports and parameter names are those of burn. [`kernels`](crate::kernels)
//! serve `flex` (feature `flex`) and `LibTorch` on the CPU (feature `tch`, except for the forward pass of some
//! dense convolutions, which is `LibTorch`'s), in single precision; on a GPU of `LibTorch` its own operations do, in single and half
//! precision. Any other device or type, and what the kernels do not cover (dilation, groups
//! that are not depthwise, asymmetric padding), falls back in the same call, and everything does where the environment
//! variable `FAIRTTE_KERNELS` is `off`. This folder is the only one of the library that names a back end.
//!
//! A layer computes in the type of its input, whatever that of its parameters ([`precision`]).

#![cfg_attr(
    feature = "tch",
    expect(deprecated, reason = "deprecated upstream, and part of the design all the same while burn 0.22 is pinned")
)]

mod activation;
mod adamw;
#[cfg(feature = "tch")]
mod aten;
mod calls;
#[cfg(any(feature = "flex", feature = "tch"))]
mod chain;
mod environment;
#[cfg(feature = "flex")]
mod flex;
#[cfg(any(feature = "flex", feature = "tch"))]
mod graph;
#[cfg(any(feature = "flex", feature = "tch"))]
mod host;
mod inverted_residual;
mod norm;
mod operation;
mod place;
mod precision;
#[cfg(feature = "tch")]
mod slices;
#[cfg(feature = "tch")]
mod torch;
#[cfg(feature = "flex")]
mod unspecified;

use burn::module::Param;
use burn::nn::conv::{Conv2d, Conv3d};
use burn::nn::{LayerNorm, Linear, PaddingConfig2d, PaddingConfig3d};
use burn::tensor::activation::{relu, silu, softmax};
use burn::tensor::module::{conv3d as burn_conv3d, max_pool2d};
use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
use burn::tensor::{Slice, Tensor};

pub use self::adamw::adamw;
use self::calls::{Link, any, one, two};
pub(crate) use self::inverted_residual::{Layers as InvertedResidual, inverted_residual};
pub(crate) use self::norm::{
    Unnormed, bn_act, conv_2d_of, conv_norm_2d, conv_norm_3d, doubled_conv_norm_2d, squeeze_excite,
};
use self::operation::{Convolution, Operation, Pooling, volume};
#[cfg(feature = "tch")]
use self::place::is_on_host;
pub use self::place::{computes_on_host, reserved_memory};
use self::place::{has_kernels, has_kernels_on_host, infers_on_kernels};
use self::precision::{cast_conv_2d, cast_conv_3d, in_single};
pub(crate) use self::precision::{dense, in_type_of, to_single};
#[cfg(feature = "tch")]
pub use self::torch::use_threads;
use crate::ModelError;
pub(crate) use crate::kernels::Activation;

/// Name of the environment variable that turns the kernels off with the value `off`.
const VARIABLE: &str = "FAIRTTE_KERNELS";

/// Checks the environment variables that the kernels read: `FAIRTTE_KERNELS` (`on`, `off`), `FAIRTTE_ISA` (`avx512`, `avx2`,
/// `baseline`) and `FAIRTTE_L2` (`1M`). Without this check an invalid value is ignored.
///
/// # Errors
/// [`ModelError::Setting`] naming the variable, its value and what was expected.
pub fn check_environment() -> Result<(), ModelError> {
    environment::check(std::env::var_os)
}

/// Convolution over pictures, as `conv.forward(x)`.
pub(crate) fn conv2d(conv: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    let (weight, bias) = (conv.weight.val(), conv.bias.as_ref().map(Param::val));
    let fused = settings_2d(conv).and_then(|settings| fused_conv(settings, &x, &weight, bias.as_ref()));
    fused.unwrap_or_else(|| conv2d_by_burn(conv, x))
}

/// The convolution by burn's operations. What patches become is laid out anew too ([`relaid`]): the gradient of the weights of
/// `vit-base/16` was up to 29 times as large in square as it is, where its output was transposed to tokens.
fn conv2d_by_burn(conv: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    let mut cast = cast_conv_2d(conv, &x);
    let weight = cast.weight.val();
    let [_, of_group, high, wide] = weight.dims();
    let embeds = conv.stride == [high, wide] && high * wide > 1;
    cast.weight = Param::initialized(cast.weight.id, relaid(weight));
    let y = cast.forward(x);
    let sizes = y.dims();
    if embeds || of_group == 1 && conv.groups == 1 { y.flatten::<1>(0, 3).reshape(sizes) } else { y }
}

/// Convolution over volumes, as `conv.forward(x)`.
pub(crate) fn conv3d(conv: &Conv3d, x: Tensor<5>) -> Tensor<5> {
    let (weight, bias) = (conv.weight.val(), conv.bias.as_ref().map(Param::val));
    let Some(settings) = settings_3d(conv) else {
        let mut cast = cast_conv_3d(conv, &x);
        cast.weight = Param::initialized(cast.weight.id, relaid(cast.weight.val()));
        return cast.forward(x);
    };
    match fused_conv(settings, &x, &weight, bias.as_ref()) {
        Some(y) => y,
        None => conv3d_by_burn(settings, x, weight, bias),
    }
}

/// The convolution by burn's operations. Along an axis where the kernel is one voxel wide, without padding, the places that the
/// stride leaves out are removed before: with `CubeCL` (burn 0.22.1, `conv_transpose3d`) the gradient of the input is 0 where the
/// stride is longer than the kernel, which would silently cut the shortcuts of residual networks out of the gradient.
fn conv3d_by_burn(settings: Convolution, x: Tensor<5>, weight: Tensor<5>, bias: Option<Tensor<1>>) -> Tensor<5> {
    let Convolution { mut stride, padding, groups, .. } = settings;
    let kernel = weight.dims();
    let (weight, bias) = (relaid(in_type_of(&x, weight)), bias.map(|bias| in_type_of(&x, bias)));
    let x = (0..3).fold(x, |x, axis| {
        if kernel[2 + axis] > 1 || padding[axis] > 0 || stride[axis] == 1 {
            return x;
        }
        let step = std::mem::replace(&mut stride[axis], 1);
        x.slice_dim(2 + axis, Slice::with_step(0, None, step.cast_signed()))
    });
    burn_conv3d(x, weight, bias, ConvOptions::<3>::new(stride, padding, [1; 3], groups))
}

/// Weights as they are, whose gradient is laid out as they are. `CubeCL` may give the gradient of weights of one input channel strides
/// in which two axes count as the innermost one, and fused operations (burn 0.22.1) read a tensor beside such a gradient wrongly: a step
/// of `AdamW` set three quarters of the weights to 0. The gradient passes through the reshaping back, which lays it out anew.
fn relaid<const D: usize>(weight: Tensor<D>) -> Tensor<D> {
    let sizes = weight.dims();
    if sizes[1] == 1 { weight.flatten::<1>(0, D - 1).reshape(sizes) } else { weight }
}

/// An activation, of a tensor of any shape.
pub(crate) fn act<const D: usize>(x: Tensor<D>, activation: Activation) -> Tensor<D> {
    if activation == Activation::Identity {
        return x;
    }
    if has_kernels(&x) {
        return one(x, Operation::Activate(activation));
    }
    match activation {
        Activation::Identity => x,
        Activation::Relu => relu(x),
        Activation::Silu => silu(x),
        Activation::Gelu => in_single(x, activation::gelu),
        Activation::Sigmoid => activation::sigmoid(x),
    }
}

/// `x [batch, channels, height, width]` times one number per sample and channel, `gate [batch, channels, 1, 1]`.
pub(crate) fn gate(x: Tensor<4>, gate: Tensor<4>) -> Tensor<4> {
    let ([batch, channels, ..], of_gate) = (x.dims(), gate.dims());
    let covered = has_kernels(&x) && has_kernels(&gate) && of_gate == [batch, channels, 1, 1];
    if covered { two(x, gate, Operation::Gate) } else { x * gate }
}

/// `relu(a + b)` of two tensors of one shape: the end of a residual block.
pub(crate) fn add_relu<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
    let covered = has_kernels(&a) && has_kernels(&b) && a.dims() == b.dims();
    if covered { two(a, b, Operation::AddRelu) } else { relu(a + b) }
}

/// Maximum over windows of a picture, `[batch, channels, height, width]`; ties go to the first, as in burn.
pub(crate) fn max_pool(x: Tensor<4>, kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Tensor<4> {
    let [_, _, height, width] = x.dims();
    let size = [height, width];
    let fits = (0..2).all(|n| kernel[n] <= size[n] + 2 * padding[n] && 2 * padding[n] <= kernel[n]);
    if fits && has_kernels(&x) {
        return one(x, Operation::MaxPool(Pooling { size, kernel, stride, padding }));
    }
    max_pool2d(x, MaxPoolOptions::new(kernel).with_stride(stride).with_padding(padding))
}

/// Mean over all axes but the first two, `[batch, channels, space..]` -> `[batch, channels, 1..]`.
pub(crate) fn average<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    if D > 2 && has_kernels(&x) {
        let size = volume(&x.dims());
        return one(x, Operation::Average { size });
    }
    in_single(x, |x| (2..D).fold(x, Tensor::mean_dim))
}

/// Every pixel of `x` becomes four, and the channels of `beside` come after those of `x`: `[batch, channels, height, width]` and
/// `[batch, others, 2 height, 2 width]` -> `[batch, channels + others, 2 height, 2 width]`.
pub(crate) fn double_beside(x: Tensor<4>, beside: Option<Tensor<4>>) -> Tensor<4> {
    if let Some(link) = doubling_link(&x, beside.as_ref()) {
        return calls::chain(x, vec![link]);
    }
    let [batch, channels, height, width] = x.dims();
    let pixels = x.reshape([batch, channels, height, 1, width, 1]);
    let x = pixels.expand([batch, channels, height, 2, width, 2]).reshape([batch, channels, 2 * height, 2 * width]);
    match beside {
        Some(beside) => Tensor::cat(vec![x, beside], 1),
        None => x,
    }
}

/// [`double_beside`] in a chain, of a tensor of the shape of `x`; `None` without kernels, and for sizes that do not fit.
fn doubling_link(x: &Tensor<4>, beside: Option<&Tensor<4>>) -> Option<Link> {
    let [batch, channels, height, width] = x.dims();
    let fits = |beside: &Tensor<4>| {
        let [samples, _, rows, columns] = beside.dims();
        has_kernels(beside) && [samples, rows, columns] == [batch, 2 * height, 2 * width]
    };
    let covered = has_kernels(x) && !x.dims().contains(&0) && beside.is_none_or(fits);
    covered.then(|| (Operation::DoubleBeside { channels }, beside.cloned().map(any).into_iter().collect()))
}

/// `norm.forward(x)`, layer norm over the last axis; `epsilon` is that of `norm`, which does not expose it.
pub(crate) fn layer_norm<const D: usize>(norm: &LayerNorm, epsilon: f64, x: Tensor<D>) -> Tensor<D> {
    chained(&x, [norm_link(norm, epsilon, x.dims()[D - 1])]).unwrap_or_else(|| in_single(x, |x| norm.forward(x)))
}

/// `linear.forward(x)` over the last axis.
pub(crate) fn linear(linear: &Linear, x: Tensor<3>) -> Tensor<3> {
    chained(&x, [linear_link(linear, x.dims()[2])]).unwrap_or_else(|| dense(linear, x))
}

/// `linear.forward(norm.forward(x))`; training does not keep the normed tokens, but computes them again.
pub(crate) fn normed_linear(norm: &LayerNorm, epsilon: f64, linear: &Linear, x: Tensor<3>) -> Tensor<3> {
    let width = x.dims()[2];
    let links = [norm_link(norm, epsilon, width), linear_link(linear, width)];
    chained(&x, links).unwrap_or_else(|| self::linear(linear, layer_norm(norm, epsilon, x)))
}

/// Layer norm, a wider linear layer, an activation and a linear layer back; training keeps nothing between them, but computes
/// it again.
pub(crate) fn feed_forward(
    norm: &LayerNorm,
    epsilon: f64,
    [widen, narrow]: [&Linear; 2],
    activation: Activation,
    x: Tensor<3>,
) -> Tensor<3> {
    let (width, wide) = (x.dims()[2], widen.weight.val().dims()[1]);
    let activate = (Operation::Activate(activation), vec![]);
    let links = [norm_link(norm, epsilon, width), linear_link(widen, width), Some(activate), linear_link(narrow, wide)];
    chained(&x, links).unwrap_or_else(|| linear(narrow, act(linear(widen, layer_norm(norm, epsilon, x)), activation)))
}

/// The chain of `links` if kernels cover all of it. On a GPU of one link only: its memory suffices more often than its time, so that
/// nothing is computed twice.
fn chained<const D: usize, const N: usize>(x: &Tensor<D>, links: [Option<Link>; N]) -> Option<Tensor<D>> {
    let links: Vec<Link> = links.into_iter().collect::<Option<_>>()?;
    let covered = if N == 1 { has_kernels(x) } else { has_kernels_on_host(x) };
    covered.then(|| calls::chain(x.clone(), links))
}

/// Layer norm of tokens of this width in a chain.
fn norm_link(norm: &LayerNorm, epsilon: f64, width: usize) -> Option<Link> {
    let (gamma, beta) = (norm.gamma.val(), norm.beta.as_ref()?.val());
    let covered = has_kernels(&gamma) && has_kernels(&beta) && gamma.dims() == [width];
    covered.then(|| (Operation::LayerNorm { epsilon }, vec![any(gamma), any(beta)]))
}

/// A linear layer of tokens of this width in a chain.
fn linear_link(linear: &Linear, width: usize) -> Option<Link> {
    let (weight, bias) = (linear.weight.val(), linear.bias.as_ref()?.val());
    let covered = has_kernels(&weight) && has_kernels(&bias) && weight.dims()[0] == width;
    covered.then(|| (Operation::Linear, vec![any(weight), any(bias)]))
}

/// Self-attention of all tokens, `qkv [batch, tokens, 3 * heads * width]` -> `[batch, tokens, heads * width]`.
pub(crate) fn attention(qkv: Tensor<3>, heads: usize) -> Tensor<3> {
    if has_kernels(&qkv) {
        return one(qkv, Operation::Attention { heads });
    }
    let [batch, tokens, width] = qkv.dims();
    let per_head = width / 3 / heads;
    let qkv = qkv.reshape([batch, tokens, 3, heads, per_head]).permute([2, 0, 3, 1, 4]); // [3, batch, heads, tokens, per head]
    let part = |n| qkv.clone().narrow(0, n, 1).squeeze_dim::<4>(0);
    let scores = (part(0) * (per_head as f64).powf(-0.5)).matmul(part(1).swap_dims(2, 3));
    let mixed = in_single(scores, |scores| softmax(scores, 3)).matmul(part(2)); // [batch, heads, tokens, per head]
    mixed.swap_dims(1, 2).reshape([batch, tokens, width / 3])
}

/// The settings of a convolution without an activation if the kernels cover it, otherwise `None`.
fn settings_2d(conv: &Conv2d) -> Option<Convolution> {
    let [high, wide] = match conv.padding {
        PaddingConfig2d::Valid => [0, 0],
        PaddingConfig2d::Explicit(top, left, bottom, right) if (top, left) == (bottom, right) => [top, left],
        PaddingConfig2d::Explicit(..) | PaddingConfig2d::Same => return None,
    };
    let [down, across] = conv.stride;
    let (stride, padding) = ([1, down, across], [0, high, wide]);
    let settings = Convolution { stride, padding, groups: conv.groups, activation: Activation::Identity };
    (conv.dilation == [1; 2]).then_some(settings)
}

fn settings_3d(conv: &Conv3d) -> Option<Convolution> {
    let padding = match conv.padding {
        PaddingConfig3d::Valid => [0; 3],
        PaddingConfig3d::Explicit(deep, high, wide) => [deep, high, wide],
        PaddingConfig3d::Same => return None,
    };
    let settings = Convolution { stride: conv.stride, padding, groups: conv.groups, activation: Activation::Identity };
    (conv.dilation == [1; 3]).then_some(settings)
}

/// The convolution by kernels, or `None` if they do not cover it.
fn fused_conv<const D: usize>(
    settings: Convolution,
    x: &Tensor<D>,
    weight: &Tensor<D>,
    bias: Option<&Tensor<1>>,
) -> Option<Tensor<D>> {
    chained(x, [conv_link(settings, x.dims(), weight, bias)])
}

/// A convolution in a chain, of a tensor of this shape.
fn conv_link<const D: usize>(
    settings: Convolution,
    of_x: [usize; D],
    weight: &Tensor<D>,
    bias: Option<&Tensor<1>>,
) -> Option<Link> {
    let covered = has_kernels(weight) && bias.is_none_or(has_kernels) && knows(settings, of_x, weight);
    let parameters = || std::iter::once(any(weight.clone())).chain(bias.cloned().map(any)).collect();
    covered.then(|| (Operation::Conv(settings), parameters()))
}

/// Whether the kernels support a convolution.
fn knows<const D: usize>(settings: Convolution, of_x: [usize; D], weight: &Tensor<D>) -> bool {
    let of_weight = weight.dims();
    let shape = settings.shape(&of_x, &of_weight);
    // A wrong number of channels is left to burn, which reports the error.
    shape.kind().is_some() && of_weight[1] * settings.groups == of_x[1]
}

#[cfg(test)]
#[path = "../../tests/inside/fast/mod.rs"]
mod tests;
#[cfg(test)]
pub(crate) use self::tests::plain_device;
