//! 3D `ResNets` of `MedicalNet` (Chen, Ma & Zheng 2019, `Med3D`, arXiv 1904.00625) up to their pooled features.
//!
//! The layout of Tencent's published weights, which were trained for segmentation: convolution 7 x 7 x 7 at stride 2, maximum
//! over 3 x 3 x 3 at stride 2, four stages. Stage 2 halves the sizes; stages 3 and 4 keep them and space the entries of
//! their kernels 2 and 4 apart instead, so the grid of features has 1/8 of the resolution of the input. Batch norm eps
//! 1e-5, momentum 0.1; `ReLU`.
//! The mean over space replaces the segmentation layers.
//!
//! | depth | blocks | convolutions of a block | shortcut | features | parameters (1 channel) |
//! |---|---|---|---|---|---|
//! | 10 | 1, 1, 1, 1 | 3, 3 | convolution (B) | 512 | 14,355,520 |
//! | 18 | 2, 2, 2, 2 | 3, 3 | zero channels (A) | 512 | 32,986,176 |
//! | 34 | 3, 4, 6, 3 | 3, 3 | zero channels (A) | 512 | 63,295,808 |
//! | 50 | 3, 4, 6, 3 | 1, 3, 1 | convolution (B) | 2048 | 46,155,072 |
//!
//! | `MedicalNet` key, after `module.` | here |
//! |---|---|
//! | `conv1`, `bn1` | `stem.{conv,norm}` |
//! | `layerL.B.{conv1,bn1}`, `{conv2,bn2}`, `{conv3,bn3}` | `blocks.N.first.{conv,norm}`, `second`, `third`; N counts through the stages |
//! | `layerL.0.downsample.{0,1}` (B only) | `blocks.N.shortcut.{conv,norm}` |
//! | `conv_seg.*` | dropped |
//!
//! Shortcut A takes every second voxel and appends channels of zeros. The reference cuts the gradient there, a remnant of
//! early PyTorch; here it flows, as He et al. (2016) have it: outputs are equal, gradients of 18 and 34 are not.
//! MONAI's class of the same name has no dilation and strides in stages 3 and 4: other features from the same weights.

use burn::module::Module;
use burn::tensor::{Device, Tensor, s};

use crate::fast::{self, Activation};
use crate::layers::{ConvNorm3d, average_3d, max_pool_3d};

const WIDTHS: [usize; 4] = [64, 128, 256, 512];
/// (stride, dilation) of the four stages.
const STAGES: [(usize, usize); 4] = [(1, 1), (2, 1), (1, 2), (1, 4)];

/// The depth of a published network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MedicalNetDepth {
    /// ResNet-10.
    Ten,
    /// ResNet-18.
    Eighteen,
    /// ResNet-34.
    ThirtyFour,
    /// ResNet-50.
    Fifty,
}

/// Everything but the width that distinguishes the networks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Blocks of the four stages.
    pub(crate) repeats: [usize; 4],
    /// Blocks of three convolutions that end in four times the channels.
    pub(crate) bottleneck: bool,
    /// Shortcut A: no parameters.
    pub(crate) zero_channels: bool,
}

impl MedicalNetDepth {
    pub(crate) fn plan(self) -> Plan {
        let (repeats, bottleneck, zero_channels) = match self {
            Self::Ten => ([1, 1, 1, 1], false, false),
            Self::Eighteen => ([2, 2, 2, 2], false, true),
            Self::ThirtyFour => ([3, 4, 6, 3], false, true),
            Self::Fifty => ([3, 4, 6, 3], true, false),
        };
        Plan { repeats, bottleneck, zero_channels }
    }

    /// Number of features that the network gives.
    pub fn n_features(self) -> usize {
        self.plan().expanded(WIDTHS[3])
    }
}

impl Plan {
    fn expanded(self, width: usize) -> usize {
        if self.bottleneck { 4 * width } else { width }
    }
}

/// The network up to its pooled features.
#[derive(Module, Debug)]
pub struct MedicalNet {
    stem: ConvNorm3d,
    blocks: Vec<Block>,
}

impl MedicalNet {
    /// Builds the network for `channels` input channels (the published weights: 1); the weights are not initialised yet.
    pub fn new(depth: MedicalNetDepth, channels: usize, device: &Device) -> Self {
        Self::with_plan(depth.plan(), channels, WIDTHS, device)
    }

    /// The same construction with `widths` channels in its four stages.
    pub(crate) fn with_plan(plan: Plan, channels: usize, widths: [usize; 4], device: &Device) -> Self {
        let mut blocks = Vec::new();
        let mut input = widths[0];
        for ((width, repeats), (stride, dilation)) in widths.into_iter().zip(plan.repeats).zip(STAGES) {
            for repeat in 0..repeats {
                let stride = if repeat == 0 { stride } else { 1 };
                blocks.push(Block::new(plan, [input, width], stride, dilation, device));
                input = plan.expanded(width);
            }
        }
        Self { stem: ConvNorm3d::new([channels, widths[0]], [7; 3], [2; 3], device), blocks }
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.stem.n_inputs()
    }

    /// `[batch, channels, depth, height, width]` -> `[batch, 512]`, or `[batch, 2048]` for ResNet-50.
    pub fn forward(&self, x: Tensor<5>) -> Tensor<2> {
        let x = max_pool_3d(self.stem.forward(x, Activation::Relu));
        average_3d(self.blocks.iter().fold(x, |x, block| block.forward(x)))
    }
}

/// Two or three convolutions with a shortcut.
#[derive(Module, Debug)]
struct Block {
    first: ConvNorm3d,
    second: ConvNorm3d,
    third: Option<ConvNorm3d>,
    shortcut: Option<ConvNorm3d>,
    stride: usize,
}

impl Block {
    fn new(plan: Plan, [input, width]: [usize; 2], stride: usize, dilation: usize, device: &Device) -> Self {
        let output = plan.expanded(width);
        let cube = |channels, stride| ConvNorm3d::dilated(channels, [3; 3], [stride; 3], dilation, device);
        let point = |channels, stride| ConvNorm3d::new(channels, [1; 3], [stride; 3], device);
        let (first, second, third) = if plan.bottleneck {
            (point([input, width], 1), cube([width, width], stride), Some(point([width, output], 1)))
        } else {
            (cube([input, output], stride), cube([output, output], 1), None)
        };
        let changes_shape = stride != 1 || input != output;
        let shortcut = (changes_shape && !plan.zero_channels).then(|| point([input, output], stride));
        Self { first, second, third, shortcut, stride }
    }

    fn forward(&self, input: Tensor<5>) -> Tensor<5> {
        let x = self.first.unnormed(input.clone(), Activation::Relu);
        let x = match &self.third {
            Some(third) => third.forward(self.second.unnormed(x, Activation::Relu), Activation::Identity),
            None => self.second.forward(x, Activation::Identity),
        };
        let shortcut = match &self.shortcut {
            Some(shortcut) => shortcut.forward(input, Activation::Identity),
            None => thinned(input, self.stride, x.dims()[1]),
        };
        fast::add_relu(x, shortcut)
    }
}

/// Shortcut A: every `stride`-th voxel, filled up with zeros to `n_channels`; the input itself where nothing changes.
fn thinned(mut x: Tensor<5>, stride: usize, n_channels: usize) -> Tensor<5> {
    let [batch, present, depth, height, width] = x.dims();
    if present < n_channels {
        let zeros = Tensor::zeros([batch, n_channels - present, depth, height, width], (&x.device(), x.dtype()));
        x = Tensor::cat(vec![x, zeros], 1);
    }
    if stride == 1 {
        return x;
    }
    // The slice comes last, since burn-tch takes the gradient of a slice with steps only if it is contiguous, and that
    // of `cat` is not.
    let step = isize::try_from(stride).unwrap_or(isize::MAX);
    x.slice(s![.., .., ..;step, ..;step, ..;step])
}
