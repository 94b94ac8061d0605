//! `ResNets`: torchvision's and timm's `resnet18`, `MedicalNet`'s, and torchvision's `r3d_18`.
//!
//! The first three use the same names of layers (`layerL.B.conv1`, `bn1`, .., `downsample.{0,1}`); `r3d_18` puts each
//! convolution with its norm into a pair (`layerL.B.conv1.{0,1}`). Read off torchvision 0.29.2 (`resnet.py`,
//! `video/resnet.py`), timm 1.0.31 (`resnet.py`), `MedicalNet`'s `models/resnet.py`.

use super::{leaf, stage};
use crate::BackboneKind;

fn repeats(kind: BackboneKind) -> [usize; 4] {
    match kind {
        BackboneKind::MedicalNet10 => [1, 1, 1, 1],
        BackboneKind::MedicalNet34 | BackboneKind::MedicalNet50 => [3, 4, 6, 3],
        _ => [2, 2, 2, 2],
    }
}

fn number(part: &str) -> Option<usize> {
    match part {
        "first" => Some(1),
        "second" => Some(2),
        "third" => Some(3),
        _ => None,
    }
}

/// torchvision's and timm's `resnet18`, and `MedicalNet`'s.
pub(super) fn plain(kind: BackboneKind, name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let word = |part: &str| if part == "conv" { "conv" } else { "bn" };
    match *parts.as_slice() {
        ["stem", part, last] => Some(format!("{}1.{}", word(part), leaf(last))),
        ["blocks", n, layer, part, last] => {
            let (stage, block) = stage(&repeats(kind), n.parse().ok()?)?;
            let layer = match layer {
                "shortcut" => format!("downsample.{}", u8::from(part != "conv")),
                layer => format!("{}{}", word(part), number(layer)?),
            };
            Some(format!("layer{}.{block}.{layer}.{}", stage + 1, leaf(last)))
        }
        _ => None,
    }
}

/// torchvision's `r3d_18`.
pub(super) fn video(kind: BackboneKind, name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let place = |part: &str| u8::from(part != "conv");
    match *parts.as_slice() {
        ["stem", part, last] => Some(format!("stem.{}.{}", place(part), leaf(last))),
        ["blocks", n, layer, part, last] => {
            let (stage, block) = stage(&repeats(kind), n.parse().ok()?)?;
            let layer = match layer {
                "shortcut" => "downsample".to_owned(),
                layer => format!("conv{}", number(layer)?),
            };
            Some(format!("layer{}.{block}.{layer}.{}.{}", stage + 1, place(part), leaf(last)))
        }
        _ => None,
    }
}
