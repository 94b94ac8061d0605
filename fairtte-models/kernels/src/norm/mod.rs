//! Batch norm and layer norm, and the moments that both are computed from.

pub mod batch_norm;
pub mod layer_norm;

mod moments;
