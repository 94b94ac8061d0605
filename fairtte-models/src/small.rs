//! Two small ReLU networks for the demo, the tests and quick looks at new data.
//!
//! Four 3 x 3 (x 3) convolutions of stride 2 with batch norm and ReLU, then the mean over space. ReLU and dense
//! convolutions are the cheap operations on a CPU; an EfficientNet step costs an order of magnitude more there.
//! Ours: no reference implementation and no pre-trained weights exist.
//!
//! | network | channels | parameters with 1 input channel |
//! |---|---|---|
//! | `small-2d` | 16, 32, 64, 64 | 60,400 |
//! | `small-3d` | 8, 16, 32, 64 | 73,032 |

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::fast::{Activation, Unnormed};
use crate::layers::{ConvNorm2d, ConvNorm3d, average_2d, average_3d};

const WIDTHS_2D: [usize; 4] = [16, 32, 64, 64];
const WIDTHS_3D: [usize; 4] = [8, 16, 32, 64];

/// Four-layer network for pictures.
#[derive(Module, Debug)]
pub struct Small2d {
    layers: Vec<ConvNorm2d>,
}

impl Small2d {
    /// Number of features that [`forward`](Self::forward) gives.
    pub const N_FEATURES: usize = WIDTHS_2D[3];

    /// Builds the network for `channels` input channels; the weights are not initialised yet.
    pub fn new(channels: usize, device: &Device) -> Self {
        let inputs = [channels, WIDTHS_2D[0], WIDTHS_2D[1], WIDTHS_2D[2]];
        let pairs = inputs.into_iter().zip(WIDTHS_2D);
        Self { layers: pairs.map(|(from, to)| ConvNorm2d::new([from, to], 3, 2, 1, device)).collect() }
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.layers.first().map_or(0, ConvNorm2d::n_inputs)
    }

    /// `[batch, channels, height, width]` -> `[batch, 64]`.
    pub fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let x = self.layers.iter().fold(x.into(), |x: Unnormed<4>, layer| layer.unnormed(x, Activation::Relu));
        average_2d(x.finish())
    }
}

/// Four-layer network for volumes.
#[derive(Module, Debug)]
pub struct Small3d {
    layers: Vec<ConvNorm3d>,
}

impl Small3d {
    /// Number of features that [`forward`](Self::forward) gives.
    pub const N_FEATURES: usize = WIDTHS_3D[3];

    /// Builds the network for `channels` input channels; the weights are not initialised yet.
    pub fn new(channels: usize, device: &Device) -> Self {
        let inputs = [channels, WIDTHS_3D[0], WIDTHS_3D[1], WIDTHS_3D[2]];
        let pairs = inputs.into_iter().zip(WIDTHS_3D);
        Self { layers: pairs.map(|(from, to)| ConvNorm3d::new([from, to], [3; 3], [2; 3], device)).collect() }
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.layers.first().map_or(0, ConvNorm3d::n_inputs)
    }

    /// `[batch, channels, depth, height, width]` -> `[batch, 64]`.
    pub fn forward(&self, x: Tensor<5>) -> Tensor<2> {
        let x = self.layers.iter().fold(x.into(), |x: Unnormed<5>, layer| layer.unnormed(x, Activation::Relu));
        average_3d(x.finish())
    }
}
