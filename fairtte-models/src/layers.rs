//! Convolution followed by batch norm, the brick of every backbone here.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig, Conv3d, Conv3dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, PaddingConfig2d, PaddingConfig3d};
use burn::tensor::{Device, Tensor};

use crate::initialise::UNDRAWN;

/// 2D convolution without bias, then batch norm (eps 1e-5, momentum 0.1).
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

    pub(crate) fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        self.norm.forward(self.conv.forward(x))
    }
}

/// 3D convolution without bias, then batch norm (eps 1e-5, momentum 0.1).
#[derive(Module, Debug)]
pub(crate) struct ConvNorm3d {
    conv: Conv3d,
    norm: BatchNorm,
}

impl ConvNorm3d {
    /// Odd `kernel` sizes `[depth, height, width]`, padding `(kernel - 1) / 2`.
    pub(crate) fn new(channels: [usize; 2], kernel: [usize; 3], stride: [usize; 3], device: &Device) -> Self {
        let [d, h, w] = kernel.map(|k| (k - 1) / 2);
        let conv = Conv3dConfig::new(channels, kernel)
            .with_stride(stride)
            .with_padding(PaddingConfig3d::Explicit(d, h, w))
            .with_bias(false)
            .with_initializer(UNDRAWN)
            .init(device);
        Self { conv, norm: BatchNormConfig::new(channels[1]).init(device) }
    }

    pub(crate) fn forward(&self, x: Tensor<5>) -> Tensor<5> {
        self.norm.forward(self.conv.forward(x))
    }
}

/// Mean over all spatial axes: `[batch, channels, height, width]` -> `[batch, channels]`.
pub(crate) fn average_2d(x: Tensor<4>) -> Tensor<2> {
    x.flatten::<3>(2, 3).mean_dim(2).flatten(1, 2)
}

/// Mean over all spatial axes: `[batch, channels, depth, height, width]` -> `[batch, channels]`.
pub(crate) fn average_3d(x: Tensor<5>) -> Tensor<2> {
    x.flatten::<3>(2, 4).mean_dim(2).flatten(1, 2)
}
