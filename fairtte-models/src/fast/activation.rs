//! GELU and the logistic function by burn's operations, for devices without kernels.

use burn::tensor::{Tensor, activation};

use crate::kernels::activation::NORMAL_TAIL;

/// Beyond this many standard deviations tail and density of the normal distribution are 0 in single precision.
const FARTHEST: f64 = 20.0;
/// The density at 0, 1 / sqrt(2 pi).
const PEAK: f64 = 0.398_942_280_401_432_7;

/// x P(x) with the distribution function P of the standard normal distribution, within 1e-8 of x and the rounding of its type.
///
/// burn's own has the gradient of another approximation, up to 3e-4 apart, and an error function is only as exact as the
/// device's: WGSL has none, and the polynomial that `CubeCL` takes in its place is 1.5e-7 apart. So both value and slope are computed from
/// the tail, as in the kernels. The graph keeps the slope alone.
pub(super) fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let fixed = x.clone().detach();
    let (below, density) = normal(fixed.clone());
    let slope = below.clone() + fixed.clone() * density;
    // The second term is 0, with the slope as its gradient.
    fixed.clone() * below + (x - fixed) * slope
}

/// Distribution function and density of the standard normal distribution. The tail beyond a >= 0 is exp(-a^2/2) R(m) / (a + 4) with
/// m = (a - 4) / (a + 4) and the polynomial R of the kernels.
fn normal<const D: usize>(x: Tensor<D>) -> (Tensor<D>, Tensor<D>) {
    let distance = x.clone().abs().clamp_max(FARTHEST);
    let bell = (distance.clone() * distance.clone() * -0.5).exp();
    let inverse = (distance.clone() + 4.0).recip();
    let place = (distance - 4.0) * inverse.clone();
    let start = Tensor::zeros_like(&place);
    let ratio = NORMAL_TAIL.iter().rev().fold(start, |sum, coefficient| sum * place.clone() + *coefficient);
    let tail = bell.clone() * ratio * inverse;
    let below = (-tail.clone() + 1.0).mask_where(x.lower_elem(0.0), tail);
    (below, bell * PEAK)
}

/// 1 / (1 + exp(-x)) with value and gradient NaN where x is NaN. burn's contains a logarithm, which software Vulkan answers with a number
/// there, so that a gate would turn the NaN of a training that has diverged into 0.
pub(super) fn sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let fixed = x.clone().detach();
    let one_or_nan = Tensor::ones_like(&fixed).mask_where(fixed.clone().is_nan(), fixed);
    activation::sigmoid(x) * one_or_nan
}
