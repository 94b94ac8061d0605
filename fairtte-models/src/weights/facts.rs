//! What is known about published weights besides the numbers: preprocessing, norm constants, licence.
//!
//! A file of weights contains none of this; it was read from the documentation that `docs/src/pretraining.md` cites. An
//! imported file carries it in its metadata.

use super::Layout;
use crate::BackboneKind;

/// Preprocessing and licence of weights in one layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Mean of each channel of inputs on \[0, 1\]; empty if inputs are scaled otherwise.
    pub mean: &'static [f64],
    /// Standard deviation of each channel.
    pub std: &'static [f64],
    /// Size and interpolation in words.
    pub resize: &'static str,
    /// Epsilon of batch or layer norm.
    pub norm_eps: f64,
    /// The publisher's terms of use.
    pub licence: &'static str,
}

const IMAGENET: ([f64; 3], [f64; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
const TORCHVISION: &str =
    "torchvision is BSD-3-Clause and states no licence for weights; ImageNet's terms of access are for research";
const TIMM: &str = "timm is Apache-2.0; see the licence on the page of each model; ImageNet's terms are for research";
/// timm publishes several weights of one network, each with its own preprocessing.
const PER_MODEL: &str = "mean, deviation, crop and interpolation as in config.json on the page of the model";
const OF_RA: &str = "as in config.json on the page of the model; ra_in1k: ImageNet's mean and deviation, 256 bicubic, centre 224; \
ra4_e3600_r224_in1k: mean and deviation 0.5";
const NON_COMMERCIAL: &str = "MAE and RETFound: CC BY-NC 4.0, no commercial use";

/// What is known of `layout` weights of `kind`; `None` for our own layout and for combinations that were not published.
/// If the layout was recognised from keys (`is_told`) that another program uses too, the facts name the program that
/// each of them applies to.
pub(super) fn facts(kind: BackboneKind, layout: Layout, is_told: bool) -> Option<Facts> {
    use BackboneKind as Kind;
    let imagenet = |resize, norm_eps, licence| Facts { mean: &IMAGENET.0, std: &IMAGENET.1, resize, norm_eps, licence };
    let per_model = |norm_eps| Facts { mean: &[], std: &[], resize: PER_MODEL, norm_eps, licence: TIMM };
    Some(match (layout, kind) {
        (Layout::Torchvision, Kind::EfficientNetB0) => imagenet("256 bicubic, centre 224", 1e-5, TORCHVISION),
        (Layout::Torchvision, Kind::ResNet18) if is_told => imagenet(
            "torchvision: 256 bilinear, centre 224; timm: see config.json of the model",
            1e-5,
            "torchvision: states no licence for weights; timm: see the licence on the page of each model; ImageNet's terms \
of access are for research",
        ),
        (Layout::Torchvision, Kind::ResNet18) => imagenet("256 bilinear, centre 224", 1e-5, TORCHVISION),
        (Layout::Timm, Kind::EfficientNetB0) => Facts { resize: OF_RA, ..per_model(1e-5) },
        (Layout::Timm, Kind::ResNet18) => per_model(1e-5),
        (Layout::Timm, _) => per_model(1e-6),
        (Layout::Torchvision, Kind::ResNet18Volume) => Facts {
            mean: &[0.43216, 0.394_666, 0.37645],
            std: &[0.22803, 0.22145, 0.216_989],
            resize: "frames of 128 x 171 bilinear, centre 112 x 112",
            norm_eps: 1e-5,
            licence: "torchvision is BSD-3-Clause and states no licence for weights; trained on Kinetics-400",
        },
        (Layout::Medicalnet, _) => Facts {
            mean: &[],
            std: &[],
            resize: "each volume to mean 0 and deviation 1 over voxels above 0; order 0 (nearest voxel)",
            norm_eps: 1e-5,
            licence: "MedicalNet: MIT (Tencent)",
        },
        (Layout::Mae, _) if is_told => imagenet(
            "if this is MAE or RETFound: 256 bicubic, centre 224",
            1e-6,
            "if this is MAE or RETFound: CC BY-NC 4.0, no commercial use; DeiT: Apache-2.0",
        ),
        (Layout::Mae, _) => imagenet("256 bicubic, centre 224", 1e-6, NON_COMMERCIAL),
        (Layout::Dinov2, _) => imagenet("256 bicubic, centre 224", 1e-6, "DINOv2: Apache-2.0; RETFound: CC BY-NC 4.0"),
        _ => return None,
    })
}
