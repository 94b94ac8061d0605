//! Convolution followed by batch norm and an activation, the building block of every convolutional backbone here, and
//! pooling.
//!
//! Pooling over volumes is composed of pooling over pictures, because burn has none: the maximum over height and
//! width, then over depth. The order of the axes makes a difference only for the gradient at tied values: as in PyTorch it
//! goes to the first of them in the order depth, height, width, because each of the two passes keeps the first.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig, Conv3d, Conv3dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, PaddingConfig2d, PaddingConfig3d};
use burn::tensor::{Device, Tensor};

use crate::fast::{self, Activation, Unnormed};
use crate::initialise::UNDRAWN;

/// 2D convolution without bias, then batch norm (eps 1e-5, momentum 0.1) and an activation.
#[derive(Module, Debug)]
pub(crate) struct ConvNorm2d {
    conv: Conv2d,
    norm: BatchNorm,
}

impl ConvNorm2d {
    /// Odd `kernel`, padding `(kernel - 1) / 2`.
    pub(crate) fn new(channels: [usize; 2], kernel: usize, stride: usize, groups: usize, device: &Device) -> Self {
        let pad = (kernel - 1) / 2;
        let conv = Conv2dConfig::new(channels, [kernel, kernel])
            .with_stride([stride, stride])
            .with_groups(groups)
            .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
            .with_bias(false)
            .with_initializer(UNDRAWN)
            .init(device);
        Self { conv, norm: BatchNormConfig::new(channels[1]).init(device) }
    }

    pub(crate) fn forward<'x>(&self, x: impl Into<Unnormed<'x, 4>>, activation: Activation) -> Tensor<4> {
        self.unnormed(x, activation).finish()
    }

    /// As [`forward`](Self::forward), for another layer: training does not keep the tensor between the two.
    pub(crate) fn unnormed<'x>(&self, x: impl Into<Unnormed<'x, 4>>, activation: Activation) -> Unnormed<'_, 4> {
        fast::conv_norm_2d(&self.conv, &self.norm, x.into(), activation)
    }

    /// As [`unnormed`](Self::unnormed) of `x` with height and width doubled, and the channels of `beside` after its own.
    pub(crate) fn unnormed_of_doubled(
        &self,
        x: Unnormed<'_, 4>,
        beside: Option<Tensor<4>>,
        activation: Activation,
    ) -> Unnormed<'_, 4> {
        fast::doubled_conv_norm_2d(&self.conv, &self.norm, x, beside, activation)
    }

    /// The two layers.
    pub(crate) fn parts(&self) -> (&Conv2d, &BatchNorm) {
        (&self.conv, &self.norm)
    }

    /// Number of input channels (of a convolution without groups).
    pub(crate) fn n_inputs(&self) -> usize {
        self.conv.weight.lazy_shape()[1]
    }
}

/// 3D convolution without bias, then batch norm (eps 1e-5, momentum 0.1) and an activation.
#[derive(Module, Debug)]
pub(crate) struct ConvNorm3d {
    conv: Conv3d,
    norm: BatchNorm,
}

impl ConvNorm3d {
    /// Odd `kernel` sizes `[depth, height, width]`, padding `(kernel - 1) / 2`.
    pub(crate) fn new(channels: [usize; 2], kernel: [usize; 3], stride: [usize; 3], device: &Device) -> Self {
        Self::dilated(channels, kernel, stride, 1, device)
    }

    /// As [`new`](Self::new), with `dilation` steps between the entries of the kernel and as many times the padding.
    pub(crate) fn dilated(
        channels: [usize; 2],
        kernel: [usize; 3],
        stride: [usize; 3],
        dilation: usize,
        device: &Device,
    ) -> Self {
        let [d, h, w] = kernel.map(|k| dilation * (k - 1) / 2);
        let conv = Conv3dConfig::new(channels, kernel)
            .with_stride(stride)
            .with_dilation([dilation; 3])
            .with_padding(PaddingConfig3d::Explicit(d, h, w))
            .with_bias(false)
            .with_initializer(UNDRAWN)
            .init(device);
        Self { conv, norm: BatchNormConfig::new(channels[1]).init(device) }
    }

    pub(crate) fn forward<'x>(&self, x: impl Into<Unnormed<'x, 5>>, activation: Activation) -> Tensor<5> {
        self.unnormed(x, activation).finish()
    }

    /// As [`forward`](Self::forward), for another layer: training does not keep the tensor between the two.
    pub(crate) fn unnormed<'x>(&self, x: impl Into<Unnormed<'x, 5>>, activation: Activation) -> Unnormed<'_, 5> {
        fast::conv_norm_3d(&self.conv, &self.norm, x.into(), activation)
    }

    /// Number of input channels.
    pub(crate) fn n_inputs(&self) -> usize {
        self.conv.weight.lazy_shape()[1]
    }
}

/// Maximum over windows of 3 x 3 at stride 2 with padding 1: `[batch, channels, height, width]` -> sizes halved and
/// rounded up.
pub(crate) fn max_pool_2d(x: Tensor<4>) -> Tensor<4> {
    fast::max_pool(x, [3, 3], [2, 2], [1, 1])
}

/// Maximum over windows of 3 x 3 x 3 at stride 2 with padding 1: `[batch, channels, depth, height, width]` -> sizes
/// halved and rounded up.
pub(crate) fn max_pool_3d(x: Tensor<5>) -> Tensor<5> {
    let [batch, channels, depth, height, width] = x.dims();
    let planes = max_pool_2d(x.reshape([batch, channels * depth, height, width]));
    let [_, _, height, width] = planes.dims();
    let columns = planes.reshape([batch, channels, depth, height * width]);
    let columns = fast::max_pool(columns, [3, 1], [2, 1], [1, 0]);
    let depth = columns.dims()[2];
    columns.reshape([batch, channels, depth, height, width])
}

/// Mean over all spatial axes, in single precision: `[batch, channels, height, width]` -> `[batch, channels]`.
pub(crate) fn average_2d(x: Tensor<4>) -> Tensor<2> {
    fast::average(fast::to_single(x)).flatten(1, 3)
}

/// Mean over all spatial axes, in single precision: `[batch, channels, depth, height, width]` -> `[batch, channels]`.
pub(crate) fn average_3d(x: Tensor<5>) -> Tensor<2> {
    fast::average(fast::to_single(x)).flatten(1, 4)
}

/// The eight blocks of a ResNet-18, two per stage: channels `[input, output]` and stride. A stage that is wider than the one
/// before begins with stride 2.
pub(crate) fn basic_blocks(widths: [usize; 4]) -> impl Iterator<Item = ([usize; 2], usize)> {
    let inputs = [widths[0], widths[0], widths[1], widths[2]];
    inputs.into_iter().zip(widths).flat_map(|(input, output)| {
        let stride = if output == input { 1 } else { 2 };
        [([input, output], stride), ([output, output], 1)]
    })
}

#[cfg(test)]
#[path = "../tests/inside/pooling.rs"]
mod tests;
