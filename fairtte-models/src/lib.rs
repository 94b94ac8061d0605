// In the documentation the names of the README lead to the items; the README itself has links to the source.
//! [`BackboneKind`]: BackboneKind
//! [`Backbone`]: Backbone
//! [`EncoderConfig`]: EncoderConfig
//! [`ImageEncoder`]: ImageEncoder
//! [`Pixels`]: Pixels
//! [`Noise`]: Noise
//! [`initialise`]: fn@initialise
//! [`check_environment`]: check_environment
//! [`ModelError`]: ModelError
//! [`WeightFile`]: weights::WeightFile
//! [`Fit`]: weights::Fit
//! [`weights`]: weights
//! [`kernels`]: fairtte_kernels
#![doc = include_str!("../README.md")]

mod backbone;
mod cubic;
mod efficientnet;
mod encoder;
mod error;
mod fast;
mod initialise;
mod layers;
mod medicalnet;
mod mlp;
mod noise;
mod pixels;
mod precision;
mod resnet2d;
mod resnet3d;
mod small;
mod unet;
mod vit;
pub mod weights;

pub use backbone::{Backbone, BackboneKind};
pub use efficientnet::EfficientNetB0;
pub use encoder::{EncoderConfig, ImageEncoder};
pub use error::ModelError;
pub use fairtte_kernels as kernels;
#[cfg(feature = "tch")]
pub use fast::use_threads;
pub use fast::{adamw, check_environment, computes_on_host, reserved_memory};
pub use initialise::initialise;
pub use medicalnet::{MedicalNet, MedicalNetDepth};
pub use mlp::{Mlp, MlpConfig};
pub use noise::Noise;
pub use pixels::Pixels;
pub use precision::Precision;
pub use resnet2d::{Maps, ResNet18};
pub use resnet3d::ResNet18Volume;
pub use small::{Small2d, Small3d};
pub use unet::UnetDecoder;
pub use vit::{VisionTransformer, VitConfig, VitSize};

// Tests of what is private lie in `tests/inside`, because they name a back end, which nothing in `src` does.
#[cfg(test)]
#[path = "../tests/inside/conformance.rs"]
mod conformance;
#[cfg(test)]
#[path = "../tests/inside/miniature.rs"]
mod miniature;
#[cfg(test)]
#[path = "../tests/inside/parity.rs"]
mod parity;
#[cfg(test)]
#[path = "../tests/inside/precision.rs"]
mod precision_tests;
#[cfg(test)]
#[path = "../tests/inside/unet.rs"]
mod unet_parity;
