//! Gradient reversal (Ganin & Lempitsky 2015, section 3, arXiv 1409.7495): the identity forwards, multiplication by -`scale`
//! backwards.
//!
//! `x' + scale (x' - x)` with `x'` = x detached from gradients. The difference is exactly 0, so every finite x is
//! bit-identical; `x' (1 + scale) - scale x` would be x up to rounding only.

use burn::tensor::Tensor;

/// Returns the value of `x`, with gradients multiplied by -`scale` in the backward pass.
#[must_use]
pub fn reverse_gradient<const D: usize>(x: Tensor<D>, scale: f64) -> Tensor<D> {
    let value = x.clone().detach();
    value.clone() + (value - x) * scale
}

#[cfg(test)]
#[path = "../../tests/inside/reversal.rs"]
mod tests;
