//! ResNet-18 for pictures (He et al. 2016, arXiv 1512.03385, Table 1) in the layout of torchvision's `resnet18`.
//!
//! The encoder of MEDFAIR. The stack ends at the 512 pooled features; the projection to the representation is
//! [`ImageEncoder`](crate::ImageEncoder)'s. Convolution 7 x 7 at stride 2, maximum over 3 x 3 at stride 2, four stages of two
//! blocks; batch norm eps 1e-5, momentum 0.1; `ReLU`.
//!
//! | torchvision key | here |
//! |---|---|
//! | `conv1`, `bn1` | `stem.{conv,norm}` |
//! | `layerL.B.{conv1,bn1}`, `layerL.B.{conv2,bn2}` | `blocks.N.first.{conv,norm}`, `blocks.N.second.{conv,norm}`, N = 2(L-1)+B |
//! | `layerL.0.downsample.{0,1}`, L = 2..4 | `blocks.N.shortcut.{conv,norm}` |
//!
//! 11,176,512 parameters with 3 input channels (torchvision: 11,689,512 with its 1000-class layer).

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::fast::{self, Activation};
use crate::layers::{ConvNorm2d, average_2d, basic_blocks, max_pool_2d};

/// Channels of the four stages.
pub(crate) const WIDTHS: [usize; 4] = [64, 128, 256, 512];

/// What the network computes at five scales, `[batch, channels, height, width]` each: after the first convolution (half of the
/// sides of the picture) and after every stage (1/4 to 1/32), sides rounded up.
pub type Maps = [Tensor<4>; 5];

/// The network up to its pooled features.
#[derive(Module, Debug)]
pub struct ResNet18 {
    stem: ConvNorm2d,
    blocks: Vec<BasicBlock>,
}

impl ResNet18 {
    /// Number of features that [`forward`](Self::forward) gives.
    pub const N_FEATURES: usize = WIDTHS[3];

    /// Builds the network for `channels` input channels; the weights are not initialised yet.
    pub fn new(channels: usize, device: &Device) -> Self {
        Self::with_widths(channels, WIDTHS, device)
    }

    /// The same network with `widths` channels in its four stages, each wider than the one before.
    pub(crate) fn with_widths(channels: usize, widths: [usize; 4], device: &Device) -> Self {
        let blocks = basic_blocks(widths).map(|(channels, stride)| BasicBlock::new(channels, stride, device)).collect();
        Self { stem: ConvNorm2d::new([channels, widths[0]], 7, 2, 1, device), blocks }
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.stem.n_inputs()
    }

    /// `[batch, channels, height, width]` -> maps with 64, 64, 128, 256 and 512 channels.
    pub fn maps(&self, x: Tensor<4>) -> Maps {
        let stem = self.stem.forward(x, Activation::Relu);
        let stage = |x: Tensor<4>, n: usize| self.blocks[2 * n..2 * n + 2].iter().fold(x, |x, block| block.forward(x));
        let first = stage(max_pool_2d(stem.clone()), 0);
        let second = stage(first.clone(), 1);
        let third = stage(second.clone(), 2);
        let fourth = stage(third.clone(), 3);
        [stem, first, second, third, fourth]
    }

    /// The last of the [`maps`](Self::maps) -> `[batch, 512]`, as [`forward`](Self::forward).
    pub(crate) fn pooled([.., last]: &Maps) -> Tensor<2> {
        average_2d(last.clone())
    }

    /// `[batch, channels, height, width]` -> `[batch, 512]`.
    pub fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let x = max_pool_2d(self.stem.forward(x, Activation::Relu));
        average_2d(self.blocks.iter().fold(x, |x, block| block.forward(x)))
    }
}

/// Two 3 x 3 convolutions with a shortcut.
#[derive(Module, Debug)]
struct BasicBlock {
    first: ConvNorm2d,
    second: ConvNorm2d,
    shortcut: Option<ConvNorm2d>,
}

impl BasicBlock {
    fn new([input, output]: [usize; 2], stride: usize, device: &Device) -> Self {
        let changes_shape = stride != 1 || input != output;
        Self {
            first: ConvNorm2d::new([input, output], 3, stride, 1, device),
            second: ConvNorm2d::new([output, output], 3, 1, 1, device),
            shortcut: changes_shape.then(|| ConvNorm2d::new([input, output], 1, stride, 1, device)),
        }
    }

    fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        let x = self.second.forward(self.first.unnormed(input.clone(), Activation::Relu), Activation::Identity);
        let shortcut = match &self.shortcut {
            Some(shortcut) => shortcut.forward(input, Activation::Identity),
            None => input,
        };
        fast::add_relu(x, shortcut)
    }
}
