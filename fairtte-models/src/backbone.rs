//! The registry of backbones: adding one touches its file and this one.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::efficientnet::EfficientNetB0;
use crate::mlp::Mlp;
use crate::noise::Noise;
use crate::resnet3d::ResNet18Volume;
use crate::small::{Small2d, Small3d};
use crate::{ModelError, Pixels};

/// Which network turns pixels into features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BackboneKind {
    /// [`EfficientNetB0`], pictures.
    #[serde(rename = "efficientnet-b0")]
    EfficientNetB0,
    /// [`ResNet18Volume`], volumes.
    #[serde(rename = "resnet18-3d")]
    ResNet18Volume,
    /// [`Small2d`], pictures.
    #[serde(rename = "small-2d")]
    Small2d,
    /// [`Small3d`], volumes.
    #[serde(rename = "small-3d")]
    Small3d,
    /// [`Mlp`], columns of a table.
    Mlp,
}

impl BackboneKind {
    /// All backbones, in the order in which they are listed to users.
    pub const ALL: [Self; 5] = [Self::EfficientNetB0, Self::ResNet18Volume, Self::Small2d, Self::Small3d, Self::Mlp];

    /// Name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::EfficientNetB0 => "efficientnet-b0",
            Self::ResNet18Volume => "resnet18-3d",
            Self::Small2d => "small-2d",
            Self::Small3d => "small-3d",
            Self::Mlp => "mlp",
        }
    }

    /// One line for `fairtte list`.
    pub fn summary(self) -> &'static str {
        match self {
            Self::EfficientNetB0 => "EfficientNet-B0 for pictures (torchvision's layout, 4.0 million parameters)",
            Self::ResNet18Volume => "ResNet-18 for volumes (torchvision's r3d_18, 33.2 million parameters)",
            Self::Small2d => "four-layer ReLU network for pictures, quick on a CPU",
            Self::Small3d => "four-layer ReLU network for volumes, quick on a CPU",
            Self::Mlp => "two dense layers of 32 nodes for the columns of a table (pycox's MLPVanilla)",
        }
    }

    /// Number of spatial axes it reads: 2 for pictures, 3 for volumes, 0 for the columns of a table.
    pub fn n_axes(self) -> usize {
        match self {
            Self::EfficientNetB0 | Self::Small2d => 2,
            Self::ResNet18Volume | Self::Small3d => 3,
            Self::Mlp => 0,
        }
    }

    /// Number of features it gives.
    pub fn n_features(self) -> usize {
        match self {
            Self::EfficientNetB0 => EfficientNetB0::N_FEATURES,
            Self::ResNet18Volume => ResNet18Volume::N_FEATURES,
            Self::Small2d => Small2d::N_FEATURES,
            Self::Small3d => Small3d::N_FEATURES,
            Self::Mlp => Mlp::N_FEATURES,
        }
    }

    /// Builds the network for `channels` input channels (columns of a table); weights are still to be drawn
    /// ([`initialise`](crate::initialise)).
    pub fn build(self, channels: usize, device: &Device) -> Backbone {
        match self {
            Self::EfficientNetB0 => Backbone::EfficientNetB0(EfficientNetB0::new(channels, device)),
            Self::ResNet18Volume => Backbone::ResNet18Volume(ResNet18Volume::new(channels, device)),
            Self::Small2d => Backbone::Small2d(Small2d::new(channels, device)),
            Self::Small3d => Backbone::Small3d(Small3d::new(channels, device)),
            Self::Mlp => Backbone::Mlp(Mlp::new(channels, device)),
        }
    }
}

/// A network from pixels to features.
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "one backbone lives per network; its weights are on the heap anyway")]
pub enum Backbone {
    /// EfficientNet-B0.
    EfficientNetB0(EfficientNetB0),
    /// 3D ResNet-18.
    ResNet18Volume(ResNet18Volume),
    /// Small network for pictures.
    Small2d(Small2d),
    /// Small network for volumes.
    Small3d(Small3d),
    /// Network for the columns of a table.
    Mlp(Mlp),
}

impl Backbone {
    /// Pixels -> features `[batch, n_features]`.
    ///
    /// # Errors
    /// [`ModelError::WrongInput`] if the input has other axes than the network reads.
    pub fn forward(&self, pixels: Pixels, noise: &mut Noise) -> Result<Tensor<2>, ModelError> {
        let wrong = |backbone: BackboneKind, shape: Vec<usize>| ModelError::WrongInput {
            backbone: backbone.name(),
            shape,
            expected: match backbone.n_axes() {
                0 => "[batch, columns]",
                2 => "[batch, channels, height, width]",
                _ => "[batch, channels, depth, height, width]",
            },
        };
        Ok(match (self, pixels) {
            (Self::EfficientNetB0(net), Pixels::Image(x)) => net.forward(x, noise),
            (Self::Small2d(net), Pixels::Image(x)) => net.forward(x),
            (Self::ResNet18Volume(net), Pixels::Volume(x)) => net.forward(x),
            (Self::Small3d(net), Pixels::Volume(x)) => net.forward(x),
            (Self::Mlp(net), Pixels::Table(x)) => net.forward(x),
            (Self::EfficientNetB0(_), other) => return Err(wrong(BackboneKind::EfficientNetB0, other.shape())),
            (Self::Small2d(_), other) => return Err(wrong(BackboneKind::Small2d, other.shape())),
            (Self::ResNet18Volume(_), other) => return Err(wrong(BackboneKind::ResNet18Volume, other.shape())),
            (Self::Small3d(_), other) => return Err(wrong(BackboneKind::Small3d, other.shape())),
            (Self::Mlp(_), other) => return Err(wrong(BackboneKind::Mlp, other.shape())),
        })
    }
}
