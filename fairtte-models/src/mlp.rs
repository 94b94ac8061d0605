//! Multilayer perceptron for tables: pycox's `MLPVanilla` without its last layer, with the widths of its examples.
//!
//! Two blocks of linear layer, ReLU and batch norm, 32 nodes each (Kvamme & Borgan 2021, section 6; pycox 0.3.0, built on
//! torchtuples' `DenseVanillaBlock`: the batch norm comes after the activation). The last linear layer is the encoder's
//! projection and the head.

use burn::module::Module;
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use crate::initialise::UNDRAWN;

const WIDTHS: [usize; 2] = [32, 32];

/// Network for the columns of a table.
#[derive(Module, Debug)]
pub struct Mlp {
    layers: Vec<DenseNorm>,
}

#[derive(Module, Debug)]
struct DenseNorm {
    dense: Linear,
    norm: BatchNorm,
}

impl Mlp {
    /// Number of features that [`forward`](Self::forward) gives.
    pub const N_FEATURES: usize = WIDTHS[1];

    /// Builds the network for `columns` input columns; weights are still to be drawn.
    pub fn new(columns: usize, device: &Device) -> Self {
        let layer = |(from, to)| DenseNorm {
            dense: LinearConfig::new(from, to).with_initializer(UNDRAWN).init(device),
            norm: BatchNormConfig::new(to).init(device),
        };
        Self { layers: [columns, WIDTHS[0]].into_iter().zip(WIDTHS).map(layer).collect() }
    }

    /// `[batch, columns]` -> `[batch, 32]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.layers.iter().fold(x, |x, layer| layer.norm.forward(relu(layer.dense.forward(x))))
    }
}
