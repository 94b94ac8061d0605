//! Convolutions by a kernel of one element at stride 1: a matrix product for each sample, with the planes of the input as
//! rows of the right factor.
//!
//! They are the dense convolution of a volume seen as one long row, where a patch is a single number and the patches of a
//! panel are one piece of each plane. Samples are joined where planes are small, so that 7 x 7 places do not leave most of a
//! vector empty. Planes of a single place (squeeze and excitation) are the product of a linear layer.

use rayon::prelude::*;

use crate::activation::{self, Activation};
use crate::conv::ConvShape;
use crate::conv::dense;
use crate::gemm::{self, Matrix, Options};
use crate::simd::vectorized;
use crate::tasks::units_per_task;

/// The output, `[batch, outputs, places]`, with a bias for each channel and an activation.
pub fn forward(x: &[f32], w: &[f32], bias: Option<&[f32]>, activation: Activation, shape: &ConvShape, y: &mut [f32]) {
    let ConvShape { batch, inputs, outputs, .. } = *shape;
    let plane = shape.input_plane();
    if plane >= SHORT {
        return dense::forward(x, w, bias, activation, &flat(shape), y);
    }
    if plane > 1 {
        dense::forward(x, w, None, Activation::Identity, &flat(shape), y);
        return finish(bias, activation, plane, outputs * plane, y);
    }
    let options = Options { bias, parallel: true, add: false };
    let weights = Matrix::new(w, inputs).transposed();
    gemm::product(y, outputs, [batch, outputs, inputs], Matrix::new(x, inputs), weights, options);
    activation::in_place(activation, y);
}

/// Adds the bias of each channel and applies the activation, to all channels of a sample as one row.
fn finish(bias: Option<&[f32]>, activation: Activation, plane: usize, sample: usize, y: &mut [f32]) {
    if bias.is_none() && activation == Activation::Identity {
        return;
    }
    let repeated = |bias: &[f32]| bias.iter().flat_map(|&bias| std::iter::repeat_n(bias, plane)).collect::<Vec<_>>();
    let bias = bias.map(repeated).unwrap_or_default();
    y.par_chunks_mut(sample * units_per_task(y.len() / sample, sample, PIECE)).for_each(|y| {
        if !bias.is_empty() {
            vectorized!(add(&bias, y));
        }
        activation::in_place(activation, y);
    });
}

/// Adds `bias` to each row of `y`.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn add(bias: &[f32], y: &mut [f32]) {
    for row in y.chunks_exact_mut(bias.len()) {
        row.iter_mut().zip(bias).for_each(|(value, &bias)| *value += bias);
    }
}

/// The gradient of the input.
pub fn input_gradient(w: &[f32], dy: &[f32], shape: &ConvShape, dx: &mut [f32]) {
    let ConvShape { batch, inputs, outputs, .. } = *shape;
    if shape.input_plane() > 1 {
        return dense::input_gradient(w, dy, &flat(shape), dx);
    }
    let options = Options { parallel: true, ..Options::default() };
    gemm::product(dx, inputs, [batch, inputs, outputs], Matrix::new(dy, outputs), Matrix::new(w, inputs), options);
}

/// The gradient of the weights.
pub fn weight_gradient(x: &[f32], dy: &[f32], shape: &ConvShape, dw: &mut [f32]) {
    let ConvShape { batch, inputs, outputs, .. } = *shape;
    if shape.input_plane() > LONG {
        return dense::weight_gradient(x, dy, shape, dw);
    }
    if shape.input_plane() > 1 {
        return dense::weight_gradient(x, dy, &flat(shape), dw);
    }
    let options = Options { parallel: true, ..Options::default() };
    let gradient = Matrix::new(dy, outputs).transposed();
    gemm::product(dw, inputs, [outputs, inputs, batch], gradient, Matrix::new(x, inputs), options);
}

/// Number of places below which a plane is too short for a vector loop of its own.
const SHORT: usize = 64;
/// Values per task.
const PIECE: usize = 1 << 14;
/// Number of places above which a plane is not one row of a band of the weights' gradient.
const LONG: usize = 400;

/// The same convolution with all places in one row.
fn flat(shape: &ConvShape) -> ConvShape {
    ConvShape { size: [1, 1, shape.input_plane()], ..*shape }
}

#[cfg(test)]
mod tests;
