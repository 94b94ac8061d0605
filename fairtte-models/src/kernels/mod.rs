//! Arithmetic of the layers on plain slices, and its gradients: no type of burn in here.
//!
//! All arrays are single precision, row-major and contiguous: `[batch, channels, depth, height, width]`, pictures with depth 1.
//! A function writes every element of the slices it is given for its results. Results do not depend on the number of threads
//! (sums are taken in an order fixed by the shapes, and by whether all numbers are finite), but do depend on the
//! [`InstructionSet`] in their last bits. NaN and
//! infinity pass through as IEEE arithmetic takes them. A slice that does not have the length its shape asks for is a mistake
//! of the caller and ends in a panic that says so.
//!
//! Threads are those of rayon's current pool.

pub mod activation;
pub mod adamw;
pub mod attention;
pub mod batch_norm;
pub mod bias;
pub mod conv;
pub mod gate;
pub mod isa;
pub mod layer_norm;
pub mod linear;
pub mod pooling;
pub mod residual;

#[cfg(test)]
#[path = "../../tests/inside/kernels/arrays.rs"]
mod arrays;
mod batch_norm_features;
mod batch_norm_planes;
mod dense;
mod depthwise;
mod depthwise_frames;
mod depthwise_narrow;
mod depthwise_planes;
mod depthwise_strided;
mod depthwise_taps;
mod elementary;
mod gemm;
mod lanes;
mod moments;
mod planes;
mod pointwise;
mod shape;

pub use activation::Activation;
pub use isa::InstructionSet;
pub use shape::{ConvKind, ConvShape};
