//! Gradient reversal (Ganin & Lempitsky 2015, section 3, arXiv 1409.7495): the identity forwards, multiplication by -`scale`
//! backwards.
//!
//! `x' + scale (x' - x)` with `x'` = x cut off from gradients. The difference is exactly 0, so the value of every finite x is
//! kept to the last bit; `x' (1 + scale) - scale x` would be x up to rounding only.

use burn::tensor::Tensor;

/// `x` itself for whoever reads it, with gradients that come back multiplied by -`scale`.
#[must_use]
pub fn reverse_gradient<const D: usize>(x: Tensor<D>, scale: f64) -> Tensor<D> {
    let value = x.clone().detach();
    value.clone() + (value - x) * scale
}

#[cfg(test)]
#[path = "../../tests/inside/reversal.rs"]
mod tests;
