//! Batch norm, alone and with squeeze and excitation after it, and layer norm, and the moments that they are computed from.

pub mod batch_norm;
pub mod layer_norm;
pub mod squeeze_excite;

pub(crate) mod moments;
