//! Layers in half precision: bf16 or f16 activations on parameters in single precision.
//!
//! The type of its input is the type in which a layer computes. Convolutions, linear layers and the products of attention cast
//! their parameters to it, within the graph, so that the gradient of a parameter is in single precision again. What sums many
//! values or needs their range (batch norm, layer norm, softmax, GELU, means over space) computes in single precision and gives the type of its input
//! back. This is the division that PyTorch's automatic mixed precision makes.

use burn::module::Param;
use burn::nn::Linear;
use burn::nn::conv::{Conv2d, Conv3d};
use burn::tensor::{DType, FloatDType, Tensor};

/// Whether the values have 16 bits.
pub(super) fn is_half<const D: usize>(x: &Tensor<D>) -> bool {
    matches!(x.dtype(), DType::F16 | DType::BF16)
}

/// `compute(x)` in single precision where `x` has half, in the type of `x`.
pub(super) fn in_single<const D: usize>(x: Tensor<D>, compute: impl FnOnce(Tensor<D>) -> Tensor<D>) -> Tensor<D> {
    if !is_half(&x) {
        return compute(x);
    }
    let given = FloatDType::from(x.dtype());
    compute(x.cast(FloatDType::F32)).cast(given)
}

/// `x` in single precision, if it has half.
pub(crate) fn to_single<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    if is_half(&x) { x.cast(FloatDType::F32) } else { x }
}

/// A parameter in the type of `x`, if that is half precision.
pub(crate) fn in_type_of<const D: usize, const E: usize>(x: &Tensor<D>, parameter: Tensor<E>) -> Tensor<E> {
    if is_half(x) && parameter.dtype() != x.dtype() {
        return parameter.cast(FloatDType::from(x.dtype()));
    }
    parameter
}

/// `linear.forward(x)` over the last axis, without kernels.
pub(crate) fn dense<const D: usize>(linear: &Linear, x: Tensor<D>) -> Tensor<D> {
    if !is_half(&x) {
        return linear.forward(x);
    }
    let cast = Linear { weight: of_type(&x, &linear.weight), bias: linear.bias.as_ref().map(|bias| of_type(&x, bias)) };
    cast.forward(x)
}

/// The layer with parameters in the type of `x`, if that is half precision.
pub(super) fn cast_conv_2d<const D: usize>(conv: &Conv2d, x: &Tensor<D>) -> Conv2d {
    let mut cast = conv.clone();
    if is_half(x) {
        cast.weight = of_type(x, &conv.weight);
        cast.bias = conv.bias.as_ref().map(|bias| of_type(x, bias));
    }
    cast
}

/// As [`cast_conv_2d`].
pub(super) fn cast_conv_3d<const D: usize>(conv: &Conv3d, x: &Tensor<D>) -> Conv3d {
    let mut cast = conv.clone();
    if is_half(x) {
        cast.weight = of_type(x, &conv.weight);
        cast.bias = conv.bias.as_ref().map(|bias| of_type(x, bias));
    }
    cast
}

/// Holds a parameter in the type of `x`, still in the graph of the original.
fn of_type<const D: usize, const E: usize>(x: &Tensor<D>, parameter: &Param<Tensor<E>>) -> Param<Tensor<E>> {
    Param::initialized(parameter.id, in_type_of(x, parameter.val()))
}
