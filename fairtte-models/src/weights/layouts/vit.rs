//! Vision Transformers as timm, masked autoencoders (MAE, `RETFound`) and `DINOv2` name them.
//!
//! All three share timm's names. A pre-trained file has `norm`, the layer norm of all tokens, and no `fc_norm`, which
//! follows the mean of the patches here; one that was fine-tuned with the mean has `fc_norm`. So `fc_norm` may be
//! missing (it then starts as the identity it is built as) and `norm` is left out, as `RETFound`'s own fine-tuning does
//! it.

use super::leaf;
use crate::BackboneKind;

/// The convolution that makes tokens of patches.
pub(super) const FIRST: &str = "patches.weight";
/// Classifier, the norm of all tokens, and what only pre-training needs.
pub(super) const DROPPED: &[&str] = &["head.", "norm.", "mask_token", "decoder_", "dino_head.", "ibot_head."];
/// The norm after the mean of the patches.
pub(super) const MAY_LACK: &[&str] = &["norm."];

pub(super) fn key(_: BackboneKind, name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    match *parts.as_slice() {
        ["class_token"] => Some("cls_token".to_owned()),
        ["positions"] => Some("pos_embed".to_owned()),
        ["patches", last] => Some(format!("patch_embed.proj.{last}")),
        ["norm", last] => Some(format!("fc_norm.{}", leaf(last))),
        ["blocks", n, layer, last] => {
            let layer = match layer {
                "first_norm" => "norm1",
                "qkv" => "attn.qkv",
                "project" => "attn.proj",
                "second_norm" => "norm2",
                "widen" => "mlp.fc1",
                "narrow" => "mlp.fc2",
                _ => return None,
            };
            Some(format!("blocks.{n}.{layer}.{}", leaf(last)))
        }
        _ => None,
    }
}
