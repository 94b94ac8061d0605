//! Step 6: pixels to a representation of 64 numbers (paper, Table A2).
//!
//! Backbone, mean over space, `Linear(n_features, 64)`, dropout 0.5.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::initialise::UNDRAWN;
use crate::noise::Noise;
use crate::{Backbone, BackboneKind, ModelError, Pixels};

/// Settings of the image encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EncoderConfig {
    /// Name of the backbone (`fairtte list backbones`).
    pub backbone: BackboneKind,
    /// Length of the representation, 1 to 65,536. Paper: 64.
    #[serde(default = "default_representation")]
    pub representation: usize,
    /// Probability with which an entry of the representation is dropped in training, in [0, 1). Paper: 0.5.
    #[serde(default = "default_dropout")]
    pub dropout: f64,
    /// Width of the hidden layer between representation and head, 0 to 65,536; 0 = a single linear layer. Paper: 16.
    #[serde(default = "default_hidden")]
    pub hidden: usize,
}

fn default_representation() -> usize {
    64
}

fn default_dropout() -> f64 {
    0.5
}

fn default_hidden() -> usize {
    16
}

impl EncoderConfig {
    /// The paper's settings on `backbone`.
    pub fn new(backbone: BackboneKind) -> Self {
        Self {
            backbone,
            representation: default_representation(),
            dropout: default_dropout(),
            hidden: default_hidden(),
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ModelError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), ModelError> {
        let setting = |key, value, expected| Err(ModelError::Setting { key, value, expected });
        if !(1..=65_536).contains(&self.representation) {
            return setting("model.representation", self.representation.to_string(), "a whole number from 1 to 65536");
        }
        if self.hidden > 65_536 {
            return setting("model.hidden", self.hidden.to_string(), "a whole number from 0 to 65536");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return setting("model.dropout", self.dropout.to_string(), "a number in [0, 1)");
        }
        Ok(())
    }

    /// Builds the encoder for `channels` input channels; weights are still to be drawn.
    pub fn build(&self, channels: usize, device: &Device) -> ImageEncoder {
        let projection = LinearConfig::new(self.backbone.n_features(), self.representation);
        ImageEncoder {
            backbone: self.backbone.build(channels, device),
            projection: projection.with_initializer(UNDRAWN).init(device),
            dropout: self.dropout,
        }
    }
}

/// Backbone and projection.
#[derive(Module, Debug)]
pub struct ImageEncoder {
    backbone: Backbone,
    projection: Linear,
    dropout: f64,
}

impl ImageEncoder {
    /// Pixels -> representation `[batch, representation]`.
    ///
    /// # Errors
    /// As [`Backbone::forward`].
    pub fn forward(&self, pixels: Pixels, noise: &mut Noise) -> Result<Tensor<2>, ModelError> {
        let features = self.backbone.forward(pixels, noise)?; // [batch, n_features]
        Ok(noise.dropout(self.projection.forward(features), self.dropout))
    }
}
