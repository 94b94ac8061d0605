#![doc = include_str!("../README.md")]

mod backbone;
mod batch;
mod efficientnet;
mod encoder;
mod error;
mod initialise;
mod layers;
mod mlp;
mod noise;
mod resnet3d;
mod small;
pub mod weights;

pub use backbone::{Backbone, BackboneKind};
pub use batch::{Batch, Pixels};
pub use efficientnet::EfficientNetB0;
pub use encoder::{EncoderConfig, ImageEncoder};
pub use error::ModelError;
pub use initialise::initialise;
pub use mlp::Mlp;
pub use noise::Noise;
pub use resnet3d::ResNet18Volume;
pub use small::{Small2d, Small3d};
