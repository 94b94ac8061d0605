#![doc = include_str!("../README.md")]

pub mod activation;
pub mod adamw;
pub mod attention;
pub mod bias;
pub mod conv;
pub mod gate;
pub mod linear;
pub mod norm;
pub mod pooling;
pub mod residual;
pub mod simd;

#[cfg(test)]
mod arrays;
mod gemm;
mod tasks;

pub use activation::Activation;
pub use simd::InstructionSet;
