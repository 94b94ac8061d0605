// In the documentation the names of the README lead to the items; the README itself has links to the source.
//! [`ConvShape`]: conv::ConvShape
//! [`conv::forward`]: conv::forward
//! [`conv::gradients`]: conv::gradients
//! [`linear::forward`]: linear::forward
//! [`linear::gradients`]: linear::gradients
//! [`batch_norm::forward`]: norm::batch_norm::forward
//! [`layer_norm::forward`]: norm::layer_norm::forward
//! [`attention::forward`]: attention::forward
//! [`attention::gradients`]: attention::gradients
//! [`Activation`]: Activation
//! [`adamw::update`]: adamw::update
//! [`InstructionSet`]: InstructionSet
//! [`conv`]: mod@conv
//! [`conv::inverted_residual`]: conv::inverted_residual
//! [`conv::normed_depthwise`]: conv::normed_depthwise
//! [`norm::squeeze_excite`]: norm::squeeze_excite
//! [`attention`]: mod@attention
//! [`norm`]: mod@norm
//! [`simd`]: mod@simd
//! [`linear`]: mod@linear
//! [`activation`]: mod@activation
//! [`pooling`]: mod@pooling
//! [`gate`]: mod@gate
//! [`residual`]: mod@residual
//! [`bias`]: mod@bias
//! [`adamw`]: mod@adamw
//! [`survey`]: mod@survey
//! [`upsampling`]: mod@upsampling
//! [`Blocks`]: Blocks
//! [`blocks`]: mod@blocks
//! [`survey::layers`]: survey::layers
//! [`survey::peak`]: survey::peak
#![doc = include_str!("../README.md")]

pub mod activation;
pub mod adamw;
pub mod attention;
pub mod bias;
pub mod blocks;
pub mod conv;
pub mod gate;
pub mod linear;
pub mod norm;
pub mod pooling;
pub mod residual;
pub mod simd;
pub mod survey;
pub mod upsampling;

#[cfg(test)]
mod arrays;
mod gemm;
mod tasks;

pub use activation::Activation;
pub use blocks::Blocks;
pub use simd::InstructionSet;
