//! EfficientNet-B0 (Tan & Le 2019, arXiv 1905.11946, Table 1) in the layout of torchvision's `efficientnet_b0`.
//!
//! The paper's encoder for pictures (Table A2). The stack ends at the 1280 pooled features; the projection to the
//! representation is [`ImageEncoder`](crate::ImageEncoder)'s. Batch norm eps 1e-5, momentum 0.1; `SiLU`; squeeze-and-
//! excitation to a quarter of the block's input channels; stochastic depth rising linearly to 0.2 over 16 blocks.
//!
//! | torchvision key | here |
//! |---|---|
//! | `features.0.{0,1}` | `stem.{conv,norm}` |
//! | `features.S.B.block.*`, S = 1..7 | `blocks.N.{expand,depthwise,squeeze,excite,project}`, N = 0..15 in order |
//! | `features.8.{0,1}` | `last.{conv,norm}` |
//!
//! 4,007,548 parameters with 3 input channels (torchvision: 5,288,548 with its 1000-class layer).

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::tensor::{Device, Tensor};

use crate::fast::{self, Activation, InvertedResidual};
use crate::initialise::UNDRAWN;
use crate::layers::{ConvNorm2d, average_2d};
use crate::noise::Noise;

/// (expansion, kernel, stride, input channels, output channels, repeats) of a stage.
type Stage = (usize, usize, usize, usize, usize, usize);

const STAGES: [Stage; 7] = [
    (1, 3, 1, 32, 16, 1),
    (6, 3, 2, 16, 24, 2),
    (6, 5, 2, 24, 40, 2),
    (6, 3, 2, 40, 80, 3),
    (6, 5, 1, 80, 112, 3),
    (6, 5, 2, 112, 192, 4),
    (6, 3, 1, 192, 320, 1),
];
const STOCHASTIC_DEPTH: f64 = 0.2;

/// The network up to its pooled features.
#[derive(Module, Debug)]
pub struct EfficientNetB0 {
    stem: ConvNorm2d,
    blocks: Vec<MbConv>,
    last: ConvNorm2d,
}

impl EfficientNetB0 {
    /// Number of features that [`forward`](Self::forward) gives.
    pub const N_FEATURES: usize = 1280;

    /// Builds the network for `channels` input channels; the weights are not initialised yet.
    pub fn new(channels: usize, device: &Device) -> Self {
        Self::with_stages(channels, &STAGES, Self::N_FEATURES, device)
    }

    /// The same construction of any width and depth; `stages` are chained by their channels.
    pub(crate) fn with_stages(channels: usize, stages: &[Stage], n_features: usize, device: &Device) -> Self {
        let n_blocks: usize = stages.iter().map(|stage| stage.5).sum();
        let mut blocks = Vec::with_capacity(n_blocks);
        for &(expansion, kernel, stride, input, output, repeats) in stages {
            for repeat in 0..repeats {
                let (input, stride) = if repeat == 0 { (input, stride) } else { (output, 1) };
                let drop = STOCHASTIC_DEPTH * blocks.len() as f64 / n_blocks as f64;
                blocks.push(MbConv::new(expansion, kernel, stride, [input, output], drop, device));
            }
        }
        let first = stages.first().map_or(n_features, |stage| stage.3);
        let last = stages.last().map_or(first, |stage| stage.4);
        Self {
            stem: ConvNorm2d::new([channels, first], 3, 2, 1, device),
            blocks,
            last: ConvNorm2d::new([last, n_features], 1, 1, 1, device),
        }
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.stem.n_inputs()
    }

    /// `[batch, channels, height, width]` -> `[batch, 1280]`.
    pub fn forward(&self, x: Tensor<4>, noise: &mut Noise) -> Tensor<2> {
        let x = self.stem.forward(x, Activation::Silu);
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x, noise));
        average_2d(self.last.forward(x, Activation::Silu))
    }
}

/// Inverted residual block with squeeze-and-excitation.
#[derive(Module, Debug)]
struct MbConv {
    expand: Option<ConvNorm2d>,
    depthwise: ConvNorm2d,
    squeeze: Conv2d,
    excite: Conv2d,
    project: ConvNorm2d,
    residual: bool,
    drop: f64,
}

impl MbConv {
    fn new(
        expansion: usize,
        kernel: usize,
        stride: usize,
        [input, output]: [usize; 2],
        drop: f64,
        device: &Device,
    ) -> Self {
        let wide = input * expansion;
        let narrow = (input / 4).max(1);
        let pointwise = |channels| Conv2dConfig::new(channels, [1, 1]).with_initializer(UNDRAWN).init(device);
        Self {
            expand: (expansion > 1).then(|| ConvNorm2d::new([input, wide], 1, 1, 1, device)),
            depthwise: ConvNorm2d::new([wide, wide], kernel, stride, wide, device),
            squeeze: pointwise([wide, narrow]),
            excite: pointwise([narrow, wide]),
            project: ConvNorm2d::new([wide, output], 1, 1, 1, device),
            residual: stride == 1 && input == output,
            drop,
        }
    }

    fn forward(&self, input: Tensor<4>, noise: &mut Noise) -> Tensor<4> {
        if let Noise::Off = noise
            && let Some(y) = fast::inverted_residual(&self.layers(), &input)
        {
            return y;
        }
        let x = match &self.expand {
            Some(expand) => expand.unnormed(input.clone(), Activation::Silu),
            None => input.clone().into(),
        };
        let x = self.depthwise.unnormed(x, Activation::Silu);
        let x = fast::squeeze_excite(x, [&self.squeeze, &self.excite], Activation::Silu);
        let x = self.project.forward(x, Activation::Identity);
        if self.residual { noise.drop_samples(x, self.drop) + input } else { x }
    }

    fn layers(&self) -> InvertedResidual<'_> {
        InvertedResidual {
            expand: self.expand.as_ref().map(ConvNorm2d::parts),
            depthwise: self.depthwise.parts(),
            squeeze: &self.squeeze,
            excite: &self.excite,
            project: self.project.parts(),
            activation: Activation::Silu,
            residual: self.residual,
        }
    }
}
