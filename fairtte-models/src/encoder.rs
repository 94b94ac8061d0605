//! Step 6: pixels to a representation of 64 numbers (paper, Table A2).
//!
//! Backbone, mean over space, `Linear(n_features, 64)`, dropout 0.5. A representation of length 0 leaves the linear layer out:
//! the features of the backbone are the representation.

use std::collections::HashSet;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::initialise::UNDRAWN;
use crate::medicalnet::MedicalNetDepth;
use crate::noise::Noise;
use crate::resnet2d::Maps;
use crate::{Backbone, BackboneKind, EfficientNetB0, MlpConfig, ModelError, Pixels, ResNet18, ResNet18Volume};
use crate::{Small2d, Small3d, VitConfig, VitSize};

/// Settings of the image encoder, table `[model]`.
///
/// The table of the named backbone is filled with its defaults on reading; the table of another one is refused by
/// [`validate`](Self::validate).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(!from, deny_unknown_fields))]
#[serde(from = "Written")]
#[serde(rename_all = "kebab-case")]
pub struct EncoderConfig {
    /// Name of the backbone (`fairtte list backbones`).
    #[cfg_attr(feature = "schema", schemars(with = "Option<BackboneKind>"))]
    pub backbone: BackboneKind,
    /// Length of the representation, 1 to 65,536, or 0 for the features of the backbone as they are. Paper: 64.
    #[cfg_attr(feature = "schema", schemars(default = "default_representation"))]
    pub representation: usize,
    /// Probability with which an entry of the representation is dropped in training, in [0, 1). Paper: 0.5.
    #[cfg_attr(feature = "schema", schemars(default = "default_dropout"))]
    pub dropout: f64,
    /// Width of the hidden layer between representation and head, 0 to 65,536; 0 = a single linear layer. Paper: 16.
    #[cfg_attr(feature = "schema", schemars(default = "default_hidden"))]
    pub hidden: usize,
    /// Settings of `mlp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mlp: Option<MlpConfig>,
    /// Settings of `vit-base/16` and `vit-large/16`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vit: Option<VitConfig>,
}

/// The table as given in a run file, before the defaults of the named backbone are filled in.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    backbone: BackboneKind,
    #[serde(default = "default_representation")]
    representation: usize,
    #[serde(default = "default_dropout")]
    dropout: f64,
    #[serde(default = "default_hidden")]
    hidden: usize,
    mlp: Option<MlpConfig>,
    vit: Option<VitConfig>,
}

impl From<Written> for EncoderConfig {
    fn from(written: Written) -> Self {
        let Written { backbone, representation, dropout, hidden, mlp, vit } = written;
        let defaults = Self::new(backbone);
        Self { backbone, representation, dropout, hidden, mlp: mlp.or(defaults.mlp), vit: vit.or(defaults.vit) }
    }
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
        let is_vit = matches!(backbone, BackboneKind::VitBase16 | BackboneKind::VitLarge16);
        Self {
            backbone,
            representation: default_representation(),
            dropout: default_dropout(),
            hidden: default_hidden(),
            mlp: (backbone == BackboneKind::Mlp).then(MlpConfig::default),
            vit: is_vit.then(VitConfig::default),
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ModelError::Setting`] naming the key, its value and its range; [`ModelError::OtherBackbone`] for the settings of a
    /// backbone that is not the one named.
    pub fn validate(&self) -> Result<(), ModelError> {
        let setting = |key, value, expected| Err(ModelError::Setting { key, value, expected });
        if self.representation > 65_536 {
            return setting("representation", self.representation.to_string(), "a whole number from 0 to 65536");
        }
        if self.hidden > 65_536 {
            return setting("hidden", self.hidden.to_string(), "a whole number from 0 to 65536");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return setting("dropout", self.dropout.to_string(), "a number in [0, 1)");
        }
        let used = Self::new(self.backbone);
        for (table, given, used) in
            [("mlp", self.mlp.is_some(), used.mlp.is_some()), ("vit", self.vit.is_some(), used.vit.is_some())]
        {
            if given && !used {
                return Err(ModelError::OtherBackbone { table, backbone: self.backbone.name() });
            }
        }
        self.mlp.as_ref().map_or(Ok(()), MlpConfig::validate)?;
        self.vit.as_ref().map_or(Ok(()), VitConfig::validate)
    }

    /// Number of features that the backbone gives.
    pub fn n_features(&self) -> usize {
        match self.backbone {
            BackboneKind::EfficientNetB0 => EfficientNetB0::N_FEATURES,
            BackboneKind::ResNet18 => ResNet18::N_FEATURES,
            BackboneKind::VitBase16 => VitSize::Base.n_features(),
            BackboneKind::VitLarge16 => VitSize::Large.n_features(),
            BackboneKind::ResNet18Volume => ResNet18Volume::N_FEATURES,
            BackboneKind::MedicalNet10 => MedicalNetDepth::Ten.n_features(),
            BackboneKind::MedicalNet18 => MedicalNetDepth::Eighteen.n_features(),
            BackboneKind::MedicalNet34 => MedicalNetDepth::ThirtyFour.n_features(),
            BackboneKind::MedicalNet50 => MedicalNetDepth::Fifty.n_features(),
            BackboneKind::Small2d => Small2d::N_FEATURES,
            BackboneKind::Small3d => Small3d::N_FEATURES,
            BackboneKind::Mlp => self.mlp.clone().unwrap_or_default().n_features(),
        }
    }

    /// Length of the output of [`ImageEncoder::forward`]: [`representation`](Self::representation), or the features of
    /// the backbone where that is 0.
    pub fn n_representation(&self) -> usize {
        if self.representation == 0 { self.n_features() } else { self.representation }
    }

    /// Builds the encoder for `channels` input channels; the weights are not initialised yet.
    pub fn build(&self, channels: usize, device: &Device) -> ImageEncoder {
        let linear = LinearConfig::new(self.n_features(), self.representation).with_initializer(UNDRAWN);
        ImageEncoder {
            backbone: Backbone::new(self, channels, device),
            projection: (self.representation > 0).then(|| linear.init(device)),
            dropout: self.dropout,
            still: false,
        }
    }
}

/// Backbone and projection.
#[derive(Module, Debug)]
pub struct ImageEncoder {
    backbone: Backbone,
    projection: Option<Linear>,
    dropout: f64,
    /// Whether the backbone stays in evaluation mode.
    still: bool,
}

impl ImageEncoder {
    /// The network that makes features of pixels.
    pub fn backbone(&self) -> &Backbone {
        &self.backbone
    }

    /// The layer from the features to the representation, if there is one.
    pub fn projection(&self) -> Option<&Linear> {
        self.projection.as_ref()
    }

    /// Returns the encoder with `change` applied to its backbone.
    ///
    /// # Errors
    /// That of `change`.
    pub fn try_map_backbone<E>(self, change: impl FnOnce(Backbone) -> Result<Backbone, E>) -> Result<Self, E> {
        Ok(Self { backbone: change(self.backbone)?, ..self })
    }

    /// Returns the encoder with its backbone in evaluation mode and with the parameters named in `frozen` cut off from
    /// gradients.
    #[must_use]
    pub fn frozen(self, frozen: &HashSet<String>) -> Self {
        Self { backbone: self.backbone.frozen(frozen), still: true, ..self }
    }

    /// Returns the encoder with the scale, shift and running statistics of its batch norms frozen.
    #[must_use]
    pub fn with_frozen_batch_norm(self) -> Self {
        Self { backbone: self.backbone.with_frozen_batch_norm(), ..self }
    }

    /// Pixels -> representation `[batch, n_representation]`.
    ///
    /// # Errors
    /// As [`Backbone::forward`].
    pub fn forward(&self, pixels: Pixels, noise: &mut Noise) -> Result<Tensor<2>, ModelError> {
        let representation = self.before_dropout(pixels, noise)?;
        Ok(self.dropped(representation, noise))
    }

    /// Pixels -> representation `[batch, n_representation]` without its dropout.
    ///
    /// # Errors
    /// As [`Backbone::forward`].
    pub fn before_dropout(&self, pixels: Pixels, noise: &mut Noise) -> Result<Tensor<2>, ModelError> {
        let of_backbone = if self.still { &mut Noise::Off } else { &mut *noise };
        let features = self.backbone.forward(pixels, of_backbone)?; // [batch, n_features]
        Ok(match &self.projection {
            Some(projection) => projection.forward(features),
            None => features,
        })
    }

    /// As [`before_dropout`](Self::before_dropout), with the maps of the backbone, for the decoder of a U-Net.
    ///
    /// # Errors
    /// As [`Backbone::with_maps`].
    pub fn with_maps(&self, pixels: Pixels) -> Result<(Tensor<2>, Maps), ModelError> {
        let (features, maps) = self.backbone.with_maps(pixels)?;
        let representation = match &self.projection {
            Some(projection) => projection.forward(features),
            None => features,
        };
        Ok((representation, maps))
    }

    /// Applies the dropout of the representation, the last step of [`forward`](Self::forward).
    pub fn dropped(&self, representation: Tensor<2>, noise: &mut Noise) -> Tensor<2> {
        noise.dropout(representation, self.dropout)
    }
}
