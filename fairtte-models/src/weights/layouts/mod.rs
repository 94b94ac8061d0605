//! Names of weights: what other programs call the parameters of our backbones.
//!
//! A layout turns the name of a parameter here (`blocks.3.expand.conv.weight`, the path of the module) into the key of a
//! file, says which additional keys a file may have, and which of ours it may lack. One file per family; the
//! architectures themselves are described where they are built.

mod efficientnet;
mod resnet;
mod vit;

use serde::{Deserialize, Serialize};

use crate::BackboneKind;

/// The program whose names a file uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Layout {
    /// Recognised by keys that only one of the others has.
    #[default]
    Auto,
    /// torchvision.
    Torchvision,
    /// timm.
    Timm,
    /// Tencent's `MedicalNet`: below `state_dict`, each key prefixed with `module.`.
    Medicalnet,
    /// Masked autoencoders and `RETFound`: below `model`, with a decoder that is left out.
    Mae,
    /// `DINOv2`: below `teacher`, each key prefixed with `backbone.`.
    Dinov2,
    /// What `fairtte weights import` writes.
    Native,
}

impl Layout {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Auto, Self::Torchvision, Self::Timm, Self::Medicalnet, Self::Mae, Self::Dinov2, Self::Native];

    /// The layout of the library that the published weights of `kind` come from; our own where there are none.
    pub fn home(kind: BackboneKind) -> Self {
        use BackboneKind as Kind;
        match kind {
            Kind::EfficientNetB0 | Kind::ResNet18 | Kind::ResNet18Volume => Self::Torchvision,
            Kind::VitBase16 | Kind::VitLarge16 => Self::Timm,
            Kind::MedicalNet10 | Kind::MedicalNet18 | Kind::MedicalNet34 | Kind::MedicalNet50 => Self::Medicalnet,
            Kind::Small2d | Kind::Small3d | Kind::Mlp => Self::Native,
        }
    }

    /// Name in run files and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Torchvision => "torchvision",
            Self::Timm => "timm",
            Self::Medicalnet => "medicalnet",
            Self::Mae => "mae",
            Self::Dinov2 => "dinov2",
            Self::Native => "native",
        }
    }
}

/// The names of a layout for one backbone.
#[derive(Clone, Copy)]
pub(super) struct Names {
    /// The key of a file for the name of a parameter here.
    pub(super) key: fn(BackboneKind, &str) -> Option<String>,
    /// Prefixes of additional keys that a file may have: its classifier, a decoder.
    pub(super) dropped: &'static [&'static str],
    /// Prefixes of names here that a file may lack.
    pub(super) may_lack: &'static [&'static str],
    /// Name of the first convolution here.
    pub(super) first: &'static str,
}

/// The names of `layout` for the backbone `kind`, if that program has such a network.
pub(super) fn names(layout: Layout, kind: BackboneKind) -> Option<Names> {
    use BackboneKind as Kind;
    let stem = "stem.conv.weight";
    let named = |key, dropped, first| Some(Names { key, dropped, may_lack: &[], first });
    match (layout, kind) {
        (Layout::Native, Kind::VitBase16 | Kind::VitLarge16) => {
            // A file that was imported without `fc_norm` lacks it here too.
            Some(Names { key: native, dropped: &[], may_lack: vit::MAY_LACK, first: vit::FIRST })
        }
        (Layout::Native, Kind::Small2d | Kind::Small3d) => named(native, &[], "layers.0.conv.weight"),
        (Layout::Native, _) => named(native, &[], stem),
        (Layout::Torchvision, Kind::EfficientNetB0) => named(efficientnet::torchvision, &["classifier."], stem),
        (Layout::Timm, Kind::EfficientNetB0) => named(efficientnet::timm, &["classifier."], stem),
        (Layout::Torchvision | Layout::Timm, Kind::ResNet18) => named(resnet::plain, &["fc."], stem),
        (Layout::Torchvision, Kind::ResNet18Volume) => named(resnet::video, &["fc."], stem),
        (Layout::Medicalnet, Kind::MedicalNet10 | Kind::MedicalNet18 | Kind::MedicalNet34 | Kind::MedicalNet50) => {
            named(resnet::plain, &["conv_seg.", "fc."], stem)
        }
        (Layout::Timm | Layout::Mae | Layout::Dinov2, Kind::VitBase16 | Kind::VitLarge16) => {
            Some(Names { key: vit::key, dropped: vit::DROPPED, may_lack: vit::MAY_LACK, first: vit::FIRST })
        }
        _ => None,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "one signature for all layouts")]
fn native(_: BackboneKind, name: &str) -> Option<String> {
    Some(name.to_owned())
}

/// The last part of a name as torch calls it.
fn leaf(name: &str) -> &str {
    match name {
        "gamma" => "weight",
        "beta" => "bias",
        other => other,
    }
}

/// Stage (from 0) and block within it of the block `n`, for stages of `repeats` blocks.
fn stage(repeats: &[usize], mut n: usize) -> Option<(usize, usize)> {
    for (stage, repeats) in repeats.iter().enumerate() {
        if n < *repeats {
            return Some((stage, n));
        }
        n -= repeats;
    }
    None
}
