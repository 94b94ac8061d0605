//! EfficientNet-B0 as torchvision and timm name it.
//!
//! Both count seven stages of 1, 2, 2, 3, 3, 4 and 1 blocks, torchvision from 1 and with its own number for every layer of
//! a block, timm from 0 and with names; the first stage has no expansion in either. Read off torchvision 0.29.2
//! (`torchvision/models/efficientnet.py`) and timm 1.0.31 (`timm/models/_efficientnet_blocks.py`).
//!
//! timm's `tf_efficientnet_b0*` have the same keys but another network: batch norm eps 1e-3 and padding at one side only.

use super::{leaf, stage};
use crate::BackboneKind;

const REPEATS: [usize; 7] = [1, 2, 2, 3, 3, 4, 1];

pub(super) fn torchvision(_: BackboneKind, name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let layer = |part: &str| if part == "conv" { "0" } else { "1" };
    match *parts.as_slice() {
        ["stem", part, last] => Some(format!("features.0.{}.{}", layer(part), leaf(last))),
        ["last", part, last] => Some(format!("features.8.{}.{}", layer(part), leaf(last))),
        ["blocks", n, part, ref rest @ ..] => {
            let (stage, block) = stage(&REPEATS, n.parse().ok()?)?;
            let place = |with_expansion: usize| with_expansion - usize::from(stage == 0);
            let tail = match (part, rest) {
                ("expand", [part, last]) => format!("0.{}.{}", layer(part), leaf(last)),
                ("depthwise", [part, last]) => format!("{}.{}.{}", place(1), layer(part), leaf(last)),
                ("squeeze", [last]) => format!("{}.fc1.{last}", place(2)),
                ("excite", [last]) => format!("{}.fc2.{last}", place(2)),
                ("project", [part, last]) => format!("{}.{}.{}", place(3), layer(part), leaf(last)),
                _ => return None,
            };
            Some(format!("features.{}.{block}.block.{tail}", stage + 1))
        }
        _ => None,
    }
}

pub(super) fn timm(_: BackboneKind, name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    match *parts.as_slice() {
        ["stem", part, last] => Some(format!("{}.{}", if part == "conv" { "conv_stem" } else { "bn1" }, leaf(last))),
        ["last", part, last] => Some(format!("{}.{}", if part == "conv" { "conv_head" } else { "bn2" }, leaf(last))),
        ["blocks", n, part, ref rest @ ..] => {
            let (stage, block) = stage(&REPEATS, n.parse().ok()?)?;
            let is_first = stage == 0;
            let (layer, last) = match (part, rest) {
                ("squeeze", [last]) => ("se.conv_reduce", *last),
                ("excite", [last]) => ("se.conv_expand", *last),
                (part, [inner, last]) => {
                    let layer = match (part, *inner, is_first) {
                        ("expand", "conv", false) | ("project", "conv", true) => "conv_pw",
                        ("expand", "norm", false) | ("depthwise", "norm", true) => "bn1",
                        ("depthwise", "conv", _) => "conv_dw",
                        ("depthwise", "norm", false) | ("project", "norm", true) => "bn2",
                        ("project", "conv", false) => "conv_pwl",
                        ("project", "norm", false) => "bn3",
                        _ => return None,
                    };
                    (layer, *last)
                }
                _ => return None,
            };
            Some(format!("blocks.{stage}.{block}.{layer}.{}", leaf(last)))
        }
        _ => None,
    }
}
