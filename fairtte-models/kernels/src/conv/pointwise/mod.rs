//! Convolutions by a kernel of one element at stride 1: a matrix product for each sample, with the planes of the input as
//! rows of the right factor.
//!
//! Large planes are the dense convolution of a volume seen as one long row, where a patch is a single number and the patches of a
//! panel are one piece of each plane. Smaller ones are joined ([`joined`]), so that 7 x 7 places do not leave most of a vector empty.
//! Planes of a single place (squeeze and excitation) are the product of a linear layer.

mod joined;

use crate::activation::{self, Activation};
use crate::conv::ConvShape;
use crate::conv::dense;
use crate::gemm::{self, Matrix, Options, Strided};

/// The output, `[batch, outputs, places]`, with a bias for each channel and an activation.
pub fn forward(x: &[f32], w: &[f32], bias: Option<&[f32]>, activation: Activation, shape: &ConvShape, y: &mut [f32]) {
    let ConvShape { batch, inputs, outputs, .. } = *shape;
    let plane = shape.input_plane();
    if plane >= LARGE {
        return dense::forward(x, w, bias, activation, &flat(shape), y);
    }
    if plane > 1 {
        let left = Strided { data: w, lane_stride: inputs, step_stride: 1 };
        return joined::multiply(&left, x, [batch, outputs, inputs, plane], bias, activation, y);
    }
    let options = Options { bias, parallel: true, add: false };
    let weights = Matrix::new(w, inputs).transposed();
    gemm::product(y, outputs, [batch, outputs, inputs], Matrix::new(x, inputs), weights, options);
    activation::in_place(activation, y);
}

/// The gradient of the input.
pub fn input_gradient(w: &[f32], dy: &[f32], shape: &ConvShape, dx: &mut [f32]) {
    let ConvShape { batch, inputs, outputs, .. } = *shape;
    let plane = shape.input_plane();
    if plane >= LARGE {
        return dense::input_gradient(w, dy, &flat(shape), dx);
    }
    if plane > 1 {
        let left = Strided { data: w, lane_stride: 1, step_stride: inputs };
        return joined::multiply(&left, dy, [batch, inputs, outputs, plane], None, Activation::Identity, dx);
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

/// Number of places from which planes are not joined: at 784 and at 1,024 both ways take about the same time.
const LARGE: usize = 600;
/// Number of places above which a plane is not one row of a band of the weights' gradient.
const LONG: usize = 400;

/// The same convolution with all places in one row.
fn flat(shape: &ConvShape) -> ConvShape {
    ConvShape { size: [1, 1, shape.input_plane()], ..*shape }
}

#[cfg(test)]
mod tests;
