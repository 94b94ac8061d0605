//! Multilayer perceptron for tables: pycox's `MLPVanilla` without its last layer.
//!
//! Blocks of linear layer, ReLU, batch norm and dropout in this order (Kvamme & Borgan 2021, section 6; pycox 0.3.0 takes them
//! from torchtuples 0.2.2, `DenseVanillaBlock`: the batch norm comes after the activation). Two blocks of 32 nodes with
//! batch norm and without dropout are the defaults here: the widths of pycox's examples, the rest of its signature. With
//! `model.representation = 0` the head reads the last block, as in pycox.
//!
//! | pycox key | here |
//! |---|---|
//! | `net.N.linear` | `layers.N.dense` |
//! | `net.N.batch_norm` | `layers.N.norm` |
//! | the last `net.N` | dropped |

use burn::module::Module;
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::ModelError;
use crate::fast::{self, Activation};
use crate::initialise::UNDRAWN;
use crate::noise::Noise;

/// Settings of [`Mlp`], table `[model.mlp]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MlpConfig {
    /// Nodes of each layer, 1 to 32 layers of 1 to 65,536 nodes. Default `[32, 32]`.
    pub widths: Vec<usize>,
    /// Probability with which a node of each layer is dropped in training, in [0, 1). Default 0.
    pub dropout: f64,
    /// Whether each layer ends in batch norm. Default true.
    pub batch_norm: bool,
}

impl Default for MlpConfig {
    fn default() -> Self {
        Self { widths: vec![32, 32], dropout: 0.0, batch_norm: true }
    }
}

impl MlpConfig {
    /// Number of features that the network gives.
    pub fn n_features(&self) -> usize {
        self.widths.last().copied().unwrap_or(0)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ModelError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), ModelError> {
        let setting = |key, value, expected| Err(ModelError::Setting { key, value, expected });
        if !(1..=32).contains(&self.widths.len()) || self.widths.iter().any(|width| !(1..=65_536).contains(width)) {
            let value = format!("{:?}", self.widths);
            return setting("mlp.widths", value, "1 to 32 whole numbers from 1 to 65536");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return setting("mlp.dropout", self.dropout.to_string(), "a number in [0, 1)");
        }
        Ok(())
    }
}

/// Network for the columns of a table.
#[derive(Module, Debug)]
pub struct Mlp {
    layers: Vec<DenseNorm>,
    dropout: f64,
}

#[derive(Module, Debug)]
struct DenseNorm {
    dense: Linear,
    norm: Option<BatchNorm>,
}

impl Mlp {
    /// Builds the network for `columns` input columns; the weights are not initialised yet.
    pub fn new(columns: usize, config: &MlpConfig, device: &Device) -> Self {
        let inputs = std::iter::once(columns).chain(config.widths.iter().copied());
        let layer = |(from, to)| DenseNorm {
            dense: LinearConfig::new(from, to).with_initializer(UNDRAWN).init(device),
            norm: config.batch_norm.then(|| BatchNormConfig::new(to).init(device)),
        };
        let layers = inputs.zip(config.widths.iter().copied()).map(layer).collect();
        Self { layers, dropout: config.dropout }
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.dense.weight.lazy_shape()[0])
    }

    /// `[batch, columns]` -> `[batch, last width]`.
    pub fn forward(&self, x: Tensor<2>, noise: &mut Noise) -> Tensor<2> {
        self.layers.iter().fold(x, |x, layer| {
            let x = fast::act(fast::dense(&layer.dense, x), Activation::Relu);
            let x = match &layer.norm {
                Some(norm) => fast::bn_act(norm, x, Activation::Identity),
                None => x,
            };
            noise.dropout(x, self.dropout)
        })
    }
}
