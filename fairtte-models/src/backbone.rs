//! The registry of backbones: adding one touches its file and this one.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::efficientnet::EfficientNetB0;
use crate::fast;
use crate::medicalnet::{MedicalNet, MedicalNetDepth};
use crate::mlp::Mlp;
use crate::noise::Noise;
use crate::resnet2d::{Maps, ResNet18};
use crate::resnet3d::ResNet18Volume;
use crate::small::{Small2d, Small3d};
use crate::vit::{VisionTransformer, VitSize};
use crate::{EncoderConfig, ModelError, Pixels, UnetDecoder};

/// Which network turns pixels into features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BackboneKind {
    /// [`EfficientNetB0`], pictures.
    #[serde(rename = "efficientnet-b0")]
    EfficientNetB0,
    /// [`ResNet18`], pictures.
    #[serde(rename = "resnet18")]
    ResNet18,
    /// [`VisionTransformer`] of size [`VitSize::Base`], pictures.
    #[serde(rename = "vit-base/16")]
    VitBase16,
    /// [`VisionTransformer`] of size [`VitSize::Large`], pictures.
    #[serde(rename = "vit-large/16")]
    VitLarge16,
    /// [`ResNet18Volume`], volumes.
    #[serde(rename = "resnet18-3d")]
    ResNet18Volume,
    /// [`MedicalNet`] of depth 10, volumes.
    #[serde(rename = "medicalnet-resnet10")]
    MedicalNet10,
    /// [`MedicalNet`] of depth 18, volumes.
    #[serde(rename = "medicalnet-resnet18")]
    MedicalNet18,
    /// [`MedicalNet`] of depth 34, volumes.
    #[serde(rename = "medicalnet-resnet34")]
    MedicalNet34,
    /// [`MedicalNet`] of depth 50, volumes.
    #[serde(rename = "medicalnet-resnet50")]
    MedicalNet50,
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
    pub const ALL: [Self; 12] = [
        Self::EfficientNetB0,
        Self::ResNet18,
        Self::VitBase16,
        Self::VitLarge16,
        Self::ResNet18Volume,
        Self::MedicalNet10,
        Self::MedicalNet18,
        Self::MedicalNet34,
        Self::MedicalNet50,
        Self::Small2d,
        Self::Small3d,
        Self::Mlp,
    ];

    /// Name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::EfficientNetB0 => "efficientnet-b0",
            Self::ResNet18 => "resnet18",
            Self::VitBase16 => "vit-base/16",
            Self::VitLarge16 => "vit-large/16",
            Self::ResNet18Volume => "resnet18-3d",
            Self::MedicalNet10 => "medicalnet-resnet10",
            Self::MedicalNet18 => "medicalnet-resnet18",
            Self::MedicalNet34 => "medicalnet-resnet34",
            Self::MedicalNet50 => "medicalnet-resnet50",
            Self::Small2d => "small-2d",
            Self::Small3d => "small-3d",
            Self::Mlp => "mlp",
        }
    }

    /// One line for `fairtte list`.
    pub fn summary(self) -> &'static str {
        match self {
            Self::EfficientNetB0 => "EfficientNet-B0 for pictures (torchvision's layout, 4.0 million parameters)",
            Self::ResNet18 => "ResNet-18 for pictures (torchvision's layout, 11.2 million parameters)",
            Self::VitBase16 => "Vision Transformer B/16 for pictures, mean of the patches (85.8 million parameters)",
            Self::VitLarge16 => "Vision Transformer L/16 for pictures, as RETFound uses it (303.3 million parameters)",
            Self::ResNet18Volume => "ResNet-18 for volumes (torchvision's r3d_18, 33.2 million parameters)",
            Self::MedicalNet10 => "MedicalNet's ResNet-10 for volumes (14.4 million parameters)",
            Self::MedicalNet18 => "MedicalNet's ResNet-18 for volumes, shortcut A (33.0 million parameters)",
            Self::MedicalNet34 => "MedicalNet's ResNet-34 for volumes, shortcut A (63.3 million parameters)",
            Self::MedicalNet50 => "MedicalNet's ResNet-50 for volumes (46.2 million parameters)",
            Self::Small2d => "four-layer ReLU network for pictures, quick on a CPU",
            Self::Small3d => "four-layer ReLU network for volumes, quick on a CPU",
            Self::Mlp => "dense layers for the columns of a table (pycox's MLPVanilla), two of 32 nodes by default",
        }
    }

    /// Number of spatial axes it reads: 2 for pictures, 3 for volumes, 0 for the columns of a table.
    pub fn n_axes(self) -> usize {
        match self {
            Self::EfficientNetB0 | Self::ResNet18 | Self::VitBase16 | Self::VitLarge16 | Self::Small2d => 2,
            Self::ResNet18Volume
            | Self::MedicalNet10
            | Self::MedicalNet18
            | Self::MedicalNet34
            | Self::MedicalNet50
            | Self::Small3d => 3,
            Self::Mlp => 0,
        }
    }

    /// The number that height and width of a picture must be multiples of: the side of a patch, or 1 for networks that
    /// take any size.
    pub fn side_multiple(self) -> usize {
        match self {
            Self::VitBase16 | Self::VitLarge16 => VisionTransformer::PATCH,
            _ => 1,
        }
    }

    /// Number of features it gives with the default settings ([`EncoderConfig::n_features`] for others).
    pub fn n_features(self) -> usize {
        EncoderConfig::new(self).n_features()
    }

    /// Builds the network with the default settings for `channels` input channels (columns of a table); the weights are
    /// not initialised yet ([`initialise`](crate::initialise)).
    pub fn build(self, channels: usize, device: &Device) -> Backbone {
        Backbone::new(&EncoderConfig::new(self), channels, device)
    }

    fn expected(self) -> &'static str {
        match self.n_axes() {
            0 => "[batch, columns]",
            2 if self.side_multiple() > 1 => "[batch, channels, height, width] with height and width multiples of 16",
            2 => "[batch, channels, height, width]",
            _ => "[batch, channels, depth, height, width]",
        }
    }
}

/// A network from pixels to features.
#[derive(Module, Debug)]
pub struct Backbone {
    pub(crate) network: Network,
    #[module(skip)]
    pub(crate) kind: BackboneKind,
}

/// The networks of the names.
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "one backbone lives per network; its weights are on the heap anyway")]
pub(crate) enum Network {
    /// EfficientNet-B0.
    EfficientNetB0(EfficientNetB0),
    /// 2D ResNet-18.
    ResNet18(ResNet18),
    /// Either Vision Transformer.
    VisionTransformer(VisionTransformer),
    /// 3D ResNet-18.
    ResNet18Volume(ResNet18Volume),
    /// Any of `MedicalNet`'s networks.
    MedicalNet(MedicalNet),
    /// Small network for pictures.
    Small2d(Small2d),
    /// Small network for volumes.
    Small3d(Small3d),
    /// Network for the columns of a table.
    Mlp(Mlp),
}

impl Backbone {
    /// Builds the backbone that `config` names, for `channels` input channels; the weights are not initialised yet.
    pub(crate) fn new(config: &EncoderConfig, channels: usize, device: &Device) -> Self {
        let medicalnet = |depth| Network::MedicalNet(MedicalNet::new(depth, channels, device));
        let vit = |size| {
            let drop_path = config.vit.unwrap_or_default().drop_path;
            Network::VisionTransformer(VisionTransformer::new(size, channels, drop_path, device))
        };
        let network = match config.backbone {
            BackboneKind::EfficientNetB0 => Network::EfficientNetB0(EfficientNetB0::new(channels, device)),
            BackboneKind::ResNet18 => Network::ResNet18(ResNet18::new(channels, device)),
            BackboneKind::VitBase16 => vit(VitSize::Base),
            BackboneKind::VitLarge16 => vit(VitSize::Large),
            BackboneKind::ResNet18Volume => Network::ResNet18Volume(ResNet18Volume::new(channels, device)),
            BackboneKind::MedicalNet10 => medicalnet(MedicalNetDepth::Ten),
            BackboneKind::MedicalNet18 => medicalnet(MedicalNetDepth::Eighteen),
            BackboneKind::MedicalNet34 => medicalnet(MedicalNetDepth::ThirtyFour),
            BackboneKind::MedicalNet50 => medicalnet(MedicalNetDepth::Fifty),
            BackboneKind::Small2d => Network::Small2d(Small2d::new(channels, device)),
            BackboneKind::Small3d => Network::Small3d(Small3d::new(channels, device)),
            BackboneKind::Mlp => Network::Mlp(Mlp::new(channels, &config.mlp.clone().unwrap_or_default(), device)),
        };
        Self { network, kind: config.backbone }
    }

    /// Its name.
    pub fn kind(&self) -> BackboneKind {
        self.kind
    }

    /// Number of input channels, or of columns of a table.
    pub fn n_channels(&self) -> usize {
        match &self.network {
            Network::EfficientNetB0(net) => net.n_inputs(),
            Network::ResNet18(net) => net.n_inputs(),
            Network::VisionTransformer(net) => net.n_inputs(),
            Network::ResNet18Volume(net) => net.n_inputs(),
            Network::MedicalNet(net) => net.n_inputs(),
            Network::Small2d(net) => net.n_inputs(),
            Network::Small3d(net) => net.n_inputs(),
            Network::Mlp(net) => net.n_inputs(),
        }
    }

    /// Pixels -> features `[batch, n_features]`, with the maps that they are the means of.
    ///
    /// # Errors
    /// [`ModelError::NoMaps`] for another network than [`ResNet18`], [`ModelError::WrongSides`] for sides of the picture that are no
    /// multiples of [`UnetDecoder::SIDE_MULTIPLE`]; as [`forward`](Self::forward).
    pub fn with_maps(&self, pixels: Pixels) -> Result<(Tensor<2>, Maps), ModelError> {
        let (kind, shape, expected) = (self.kind, pixels.shape(), self.n_channels());
        let Network::ResNet18(net) = &self.network else { return Err(ModelError::NoMaps { backbone: kind.name() }) };
        let Pixels::Image(x) = pixels else {
            return Err(ModelError::WrongInput { backbone: kind.name(), shape, expected: kind.expected() });
        };
        if shape[1] != expected {
            return Err(ModelError::WrongChannels { backbone: kind.name(), shape, expected });
        }
        let multiple = UnetDecoder::SIDE_MULTIPLE;
        if shape[2..].iter().any(|side| side % multiple != 0) {
            return Err(ModelError::WrongSides { shape, multiple });
        }
        let maps = net.maps(x);
        Ok((ResNet18::pooled(&maps), maps))
    }

    /// Pixels -> features `[batch, n_features]`, which are in single precision also if the pixels have half; the layers compute
    /// in the precision of the pixels.
    ///
    /// # Errors
    /// [`ModelError::WrongInput`] if the input has other axes than the network reads or sides that its patches do not
    /// divide, [`ModelError::WrongChannels`] if it has another number of channels.
    pub fn forward(&self, pixels: Pixels, noise: &mut Noise) -> Result<Tensor<2>, ModelError> {
        let shape = pixels.shape();
        let (kind, expected) = (self.kind, self.n_channels());
        let patch = match &self.network {
            Network::VisionTransformer(net) => net.patch(),
            _ => 1,
        };
        let wrong =
            || ModelError::WrongInput { backbone: kind.name(), shape: shape.clone(), expected: kind.expected() };
        if shape.iter().skip(2).any(|side| side % patch != 0) {
            return Err(wrong());
        }
        if shape.len() == kind.n_axes() + 2 && shape[1] != expected {
            return Err(ModelError::WrongChannels { backbone: kind.name(), shape, expected });
        }
        let features = match (&self.network, pixels) {
            (Network::EfficientNetB0(net), Pixels::Image(x)) => net.forward(x, noise),
            (Network::ResNet18(net), Pixels::Image(x)) => net.forward(x),
            (Network::VisionTransformer(net), Pixels::Image(x)) => net.forward(x, noise),
            (Network::Small2d(net), Pixels::Image(x)) => net.forward(x),
            (Network::ResNet18Volume(net), Pixels::Volume(x)) => net.forward(x),
            (Network::MedicalNet(net), Pixels::Volume(x)) => net.forward(x),
            (Network::Small3d(net), Pixels::Volume(x)) => net.forward(x),
            (Network::Mlp(net), Pixels::Table(x)) => net.forward(x, noise),
            _ => return Err(wrong()),
        };
        Ok(fast::to_single(features))
    }
}
