//! Any convolution that has kernels: determines the kind, checks the lengths, and calls its kernels.

mod dense;
mod depthwise;
pub mod inverted_residual;
mod pointwise;
mod shape;

use crate::activation::Activation;

pub use depthwise::normed as normed_depthwise;
pub use shape::{ConvKind, ConvShape};

/// The output `[batch, outputs, depth, height, width]` of a convolution of `x` by the weights
/// `[outputs, inputs / groups, kernel..]`, with one bias for each output channel and an activation, applied while the output
/// is in the caches.
///
/// # Panics
/// If [`ConvShape::kind`] is `None` or a slice does not have its length.
pub fn forward(x: &[f32], w: &[f32], bias: Option<&[f32]>, activation: Activation, shape: &ConvShape, y: &mut [f32]) {
    let kind = shape.kind().expect("a convolution that the kernels support");
    assert_eq!([x.len(), w.len(), y.len()], shape.lengths(), "lengths of input, weights and output");
    assert!(bias.is_none_or(|bias| bias.len() == shape.outputs), "one bias for each output channel");
    match kind {
        ConvKind::Pointwise => pointwise::forward(x, w, bias, activation, shape, y),
        ConvKind::Dense => dense::forward(x, w, bias, activation, shape, y),
        ConvKind::Depthwise => depthwise::forward(x, w, bias, activation, shape, y),
    }
}

/// Whether [`forward`] takes fewer products than the sums that define it (Winograd's convolution); the gradient of the input does where
/// this holds for [`ConvShape::transposed`]. Not without a [kind](ConvShape::kind).
pub fn has_fewer_products(shape: &ConvShape) -> bool {
    shape.kind() == Some(ConvKind::Dense) && dense::has_fewer_products(shape)
}

/// The gradients of the input and of the weights, from `dy`, that of the output.
///
/// # Panics
/// If [`ConvShape::kind`] is `None` or a slice does not have its length.
pub fn gradients(x: &[f32], w: &[f32], dy: &[f32], shape: &ConvShape, dx: Option<&mut [f32]>, dw: Option<&mut [f32]>) {
    let kind = shape.kind().expect("a convolution that the kernels support");
    assert_eq!([x.len(), w.len(), dy.len()], shape.lengths(), "lengths of input, weights and output");
    assert!(dx.as_ref().is_none_or(|dx| dx.len() == x.len()), "the gradient of the input has the input's length");
    assert!(dw.as_ref().is_none_or(|dw| dw.len() == w.len()), "the gradient of the weights has the weights' length");
    if kind == ConvKind::Depthwise {
        return depthwise::gradients(x, w, dy, shape, dx, dw);
    }
    if let Some(dx) = dx {
        input_gradient(w, dy, shape, dx);
    }
    if let Some(dw) = dw {
        weight_gradient(x, dy, shape, dw);
    }
}

/// The gradient of the input alone, which the input itself does not enter; not of a depthwise convolution, whose gradients are computed
/// together.
///
/// # Panics
/// If the convolution is depthwise, [`ConvShape::kind`] is `None` or a slice does not have its length.
pub fn input_gradient(w: &[f32], dy: &[f32], shape: &ConvShape, dx: &mut [f32]) {
    assert_eq!([dx.len(), w.len(), dy.len()], shape.lengths(), "lengths of input, weights and output");
    match shape.kind() {
        Some(ConvKind::Pointwise) => pointwise::input_gradient(w, dy, shape, dx),
        Some(ConvKind::Dense) => dense::input_gradient(w, dy, shape, dx),
        kind => panic!("a pointwise or dense convolution, not {kind:?}"),
    }
}

/// The gradient of the weights alone, as [`input_gradient`].
///
/// # Panics
/// If the convolution is depthwise, [`ConvShape::kind`] is `None` or a slice does not have its length.
pub fn weight_gradient(x: &[f32], dy: &[f32], shape: &ConvShape, dw: &mut [f32]) {
    assert_eq!([x.len(), dw.len(), dy.len()], shape.lengths(), "lengths of input, weights and output");
    match shape.kind() {
        Some(ConvKind::Pointwise) => pointwise::weight_gradient(x, dy, shape, dw),
        Some(ConvKind::Dense) => dense::weight_gradient(x, dy, shape, dw),
        kind => panic!("a pointwise or dense convolution, not {kind:?}"),
    }
}
