//! The decoder of a U-Net (Ronneberger et al. 2015, arXiv 1505.04597) on the maps of [`ResNet18`](crate::ResNet18): a class for
//! every pixel.
//!
//! Five blocks go from 1/32 of the picture back to its size. Each doubles height and width (every pixel becomes four), puts the map
//! of the backbone of that size beside the result (1/16, 1/8, 1/4, 1/2; the last block has none) and applies two convolutions 3 x 3
//! with batch norm and `ReLU`. A convolution 3 x 3 with bias gives the logits. This is `Unet("resnet18")` of
//! `segmentation_models_pytorch` 0.5 with its usual widths.
//!
//! | key of the reference | here |
//! |---|---|
//! | `decoder.blocks.N.conv1.{0,1}`, `decoder.blocks.N.conv2.{0,1}` | `blocks.N.first.{conv,norm}`, `blocks.N.second.{conv,norm}` |
//! | `segmentation_head.0` | `output` |
//!
//! 3,151,987 parameters with three classes, beside those of the backbone.

use burn::module::Module;
use burn::nn::PaddingConfig2d;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::tensor::{Device, Tensor};

use crate::fast::{self, Activation, Unnormed};
use crate::initialise::UNDRAWN;
use crate::layers::ConvNorm2d;
use crate::resnet2d::{Maps, WIDTHS};

/// Channels of the five blocks.
const DECODER_WIDTHS: [usize; 5] = [256, 128, 64, 32, 16];

/// From the maps of a backbone to the logits of every pixel.
#[derive(Module, Debug)]
pub struct UnetDecoder {
    blocks: Vec<DecoderBlock>,
    output: Conv2d,
}

impl UnetDecoder {
    /// The number that height and width of a picture must be multiples of.
    pub const SIDE_MULTIPLE: usize = 32;

    /// Builds the decoder for `n_classes` classes of pixels; the weights are not initialised yet.
    pub fn new(n_classes: usize, device: &Device) -> Self {
        Self::with_widths(WIDTHS, DECODER_WIDTHS, n_classes, device)
    }

    /// The same on a backbone with `stages` channels in its four stages, with `widths` channels in the blocks.
    pub(crate) fn with_widths(stages: [usize; 4], widths: [usize; 5], n_classes: usize, device: &Device) -> Self {
        let below = [stages[3], widths[0], widths[1], widths[2], widths[3]];
        let beside = [stages[2], stages[1], stages[0], stages[0], 0];
        let block = |n: usize| DecoderBlock::new(below[n] + beside[n], widths[n], device);
        let output = Conv2dConfig::new([widths[4], n_classes], [3, 3])
            .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
            .with_initializer(UNDRAWN)
            .init(device);
        Self { blocks: (0..5).map(block).collect(), output }
    }

    /// The maps of a picture -> its logits, `[batch, n_classes, height, width]`, in single precision. The sides of the picture are multiples of
    /// [`SIDE_MULTIPLE`](Self::SIDE_MULTIPLE), which [`ImageEncoder::with_maps`](crate::ImageEncoder::with_maps) checks.
    pub fn forward(&self, maps: Maps) -> Tensor<4> {
        let [half, quarter, eighth, sixteenth, x] = maps;
        let beside = [Some(sixteenth), Some(eighth), Some(quarter), Some(half), None];
        let blocks = self.blocks.iter().zip(beside);
        let x = blocks.fold(x.into(), |x: Unnormed<4>, (block, beside)| block.forward(x, beside));
        // As features of a backbone, logits are in single precision, and so is what follows: losses, sums over pixels.
        fast::to_single(fast::conv_2d_of(&self.output, x))
    }
}

/// Doubled height and width, a map of the backbone beside them, two convolutions.
#[derive(Module, Debug)]
struct DecoderBlock {
    first: ConvNorm2d,
    second: ConvNorm2d,
}

impl DecoderBlock {
    fn new(inputs: usize, outputs: usize, device: &Device) -> Self {
        Self {
            first: ConvNorm2d::new([inputs, outputs], 3, 1, 1, device),
            second: ConvNorm2d::new([outputs, outputs], 3, 1, 1, device),
        }
    }

    fn forward(&self, x: Unnormed<'_, 4>, beside: Option<Tensor<4>>) -> Unnormed<'_, 4> {
        let x = self.first.unnormed_of_doubled(x, beside, Activation::Relu);
        self.second.unnormed(x, Activation::Relu)
    }
}
