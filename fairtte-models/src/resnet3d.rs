//! 3D ResNet-18 (Tran et al. 2018, arXiv 1711.11248, R3D) in the layout of torchvision's `r3d_18`.
//!
//! The paper's encoder for volumes (Table A2). The stack ends at the 512 pooled features; the projection to the
//! representation is [`ImageEncoder`](crate::ImageEncoder)'s. Batch norm eps 1e-5, momentum 0.1; `ReLU`.
//!
//! | torchvision key | here |
//! |---|---|
//! | `stem.{0,1}` | `stem.{conv,norm}` |
//! | `layerL.B.conv1.{0,1}`, `layerL.B.conv2.{0,1}` | `blocks.N.first.{conv,norm}`, `blocks.N.second.{conv,norm}`, N = 2(L-1)+B |
//! | `layerL.0.downsample.{0,1}`, L = 2..4 | `blocks.N.shortcut.{conv,norm}` |
//!
//! 33,166,272 parameters with 3 input channels (torchvision: 33,371,472 with its 400-class layer).

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::fast::{self, Activation};
use crate::layers::{ConvNorm3d, average_3d, basic_blocks};

const WIDTHS: [usize; 4] = [64, 128, 256, 512];

/// The network up to its pooled features.
#[derive(Module, Debug)]
pub struct ResNet18Volume {
    stem: ConvNorm3d,
    blocks: Vec<BasicBlock>,
}

impl ResNet18Volume {
    /// Number of features that [`forward`](Self::forward) gives.
    pub const N_FEATURES: usize = WIDTHS[3];

    /// Builds the network for `channels` input channels; the weights are not initialised yet.
    pub fn new(channels: usize, device: &Device) -> Self {
        Self::with_widths(channels, WIDTHS, device)
    }

    /// The same network with `widths` channels in its four stages, each wider than the one before.
    pub(crate) fn with_widths(channels: usize, widths: [usize; 4], device: &Device) -> Self {
        let blocks = basic_blocks(widths).map(|(channels, stride)| BasicBlock::new(channels, stride, device)).collect();
        Self { stem: ConvNorm3d::new([channels, widths[0]], [3, 7, 7], [1, 2, 2], device), blocks }
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.stem.n_inputs()
    }

    /// `[batch, channels, depth, height, width]` -> `[batch, 512]`.
    pub fn forward(&self, x: Tensor<5>) -> Tensor<2> {
        let x = self.stem.forward(x, Activation::Relu);
        average_3d(self.blocks.iter().fold(x, |x, block| block.forward(x)))
    }
}

/// Two 3 x 3 x 3 convolutions with a shortcut.
#[derive(Module, Debug)]
struct BasicBlock {
    first: ConvNorm3d,
    second: ConvNorm3d,
    shortcut: Option<ConvNorm3d>,
}

impl BasicBlock {
    fn new([input, output]: [usize; 2], stride: usize, device: &Device) -> Self {
        let changes_shape = stride != 1 || input != output;
        Self {
            first: ConvNorm3d::new([input, output], [3; 3], [stride; 3], device),
            second: ConvNorm3d::new([output, output], [3; 3], [1; 3], device),
            shortcut: changes_shape.then(|| ConvNorm3d::new([input, output], [1; 3], [stride; 3], device)),
        }
    }

    fn forward(&self, input: Tensor<5>) -> Tensor<5> {
        let x = self.second.forward(self.first.unnormed(input.clone(), Activation::Relu), Activation::Identity);
        let shortcut = match &self.shortcut {
            Some(shortcut) => shortcut.forward(input, Activation::Identity),
            None => input,
        };
        fast::add_relu(x, shortcut)
    }
}
