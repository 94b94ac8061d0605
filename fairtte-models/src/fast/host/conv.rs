//! Convolution and pooling.

use burn::backend::TensorMetadata as _;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use super::super::operation::{Convolution, Forward, Operation, Pooling};
use super::{Host, made, made_if, overwritten, plane, vector};
use crate::kernels::conv::{ConvKind, ConvShape};
use crate::kernels::norm::batch_norm::Layer;
use crate::kernels::{self, Activation};

pub(super) fn conv<B: Host>(
    settings: Convolution,
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    bias: Option<&FloatTensor<B>>,
) -> FloatTensor<B> {
    let shape = self::shape::<B>(settings, x, weight);
    let mut sizes = x.shape().to_vec();
    sizes[1] = shape.outputs;
    let space = sizes.len() - 2;
    sizes[2..].copy_from_slice(&shape.output()[3 - space..]);
    let activation = settings.activation;
    made::<B>(Shape::from(sizes), |y| {
        kernels::conv::forward(B::values(x), B::values(weight), bias.map(B::values), activation, &shape, y);
    })
}

/// Convolution, batch norm by statistics that are given, and activation; `of_norm` are gamma, beta, mean, variance and perhaps
/// the bias of the convolution.
pub(super) fn normed<B: Host>(
    settings: Convolution,
    [x, weight]: [&FloatTensor<B>; 2],
    of_norm: &[FloatTensor<B>],
    epsilon: f64,
) -> FloatTensor<B> {
    let (scale, shift) = scale_and_shift::<B>(of_norm, epsilon);
    let [_, n_weights, n_outputs] = shape::<B>(settings, x, weight).lengths();
    let conv = |settings, inputs| B::forward(Operation::Conv(settings), inputs, false).output;
    // The scale goes into the weights or over the output, whichever has fewer values.
    if n_outputs < n_weights {
        let Convolution { activation, .. } = settings;
        let y = conv(Convolution { activation: Activation::Identity, ..settings }, vec![x.clone(), weight.clone()]);
        let layer = Layer { plane: plane::<B>(&y), gamma: &scale, beta: &shift, activation };
        return overwritten::<B>(y, |y| kernels::norm::batch_norm::apply_in_place(y, &layer));
    }
    let scaled = made::<B>(weight.shape(), |scaled| {
        let of_output = n_weights / scale.len();
        let weights = B::values(weight).chunks_exact(of_output).zip(&scale);
        for (scaled, (weights, scale)) in scaled.chunks_exact_mut(of_output).zip(weights) {
            for (scaled, weight) in scaled.iter_mut().zip(weights) {
                *scaled = weight * scale;
            }
        }
    });
    conv(settings, vec![x.clone(), scaled, vector::<B>(&shift)])
}

/// The scale `gamma / sqrt(variance + epsilon)`, and the shift that maps the mean, less the bias, to `beta`.
#[expect(clippy::cast_possible_truncation, reason = "computed in double precision, used in single")]
pub(super) fn scale_and_shift<B: Host>(of_norm: &[FloatTensor<B>], epsilon: f64) -> (Vec<f32>, Vec<f32>) {
    let of_norm: Vec<&[f32]> = of_norm.iter().map(B::values).collect();
    let at = |n: usize, channel: usize| of_norm.get(n).map_or(0.0, |values| f64::from(values[channel]));
    let fixed = |channel| {
        let scale = at(0, channel) / (at(3, channel) + epsilon).sqrt();
        let shift = at(1, channel) + (at(4, channel) - at(2, channel)) * scale;
        (scale as f32, shift as f32)
    };
    (0..of_norm[0].len()).map(fixed).unzip()
}

pub(super) fn conv_gradients<B: Host>(
    settings: Convolution,
    [x, weight]: [FloatTensor<B>; 2],
    gradient: &FloatTensor<B>,
    needed: &[bool],
) -> Vec<Option<FloatTensor<B>>> {
    let shape = self::shape::<B>(settings, &x, &weight);
    let (of_x, of_weight, dy) = (x.shape(), weight.shape(), B::values(gradient));
    let (dx, d_weight) = if shape.kind() == Some(ConvKind::Depthwise) {
        let [x, weight] = [&x, &weight].map(B::values);
        let mut d_weight = None;
        let dx = made_if::<B>(needed[0], of_x, |dx| {
            d_weight = made_if::<B>(needed[1], of_weight, |d_weight| {
                kernels::conv::gradients(x, weight, dy, &shape, dx, d_weight);
            });
        });
        (dx, d_weight)
    } else {
        // One after the other, and the input is dropped between them: where it was computed again, its memory is free for `dx`.
        let d_weight = needed[1].then(|| {
            made::<B>(of_weight, |d_weight| kernels::conv::weight_gradient(B::values(&x), dy, &shape, d_weight))
        });
        drop(x);
        let dx =
            needed[0].then(|| made::<B>(of_x, |dx| kernels::conv::input_gradient(B::values(&weight), dy, &shape, dx)));
        (dx, d_weight)
    };
    let d_bias = needed.get(2).is_some_and(|&needed| needed).then(|| {
        let mut d_bias = vec![0.0; shape.outputs];
        kernels::bias::gradient(dy, shape.outputs, shape.output_plane(), &mut d_bias);
        vector::<B>(&d_bias)
    });
    vec![dx, d_weight, d_bias]
}

/// Every pixel of `x` four times, and the channels of `beside` after its own.
pub(super) fn doubled<B: Host>(x: &FloatTensor<B>, beside: Option<&FloatTensor<B>>) -> FloatTensor<B> {
    let sizes = x.shape().to_vec();
    let [batch, channels, height, width] = [sizes[0], sizes[1], sizes[2], sizes[3]];
    let others = beside.map_or(0, |beside| beside.shape().to_vec()[1]);
    let beside = beside.map(B::values).unwrap_or_default();
    made::<B>(Shape::from([batch, channels + others, 2 * height, 2 * width]), |y| {
        kernels::upsampling::double_beside(B::values(x), [channels, height, width], beside, others, y);
    })
}

/// Gradients of [`doubled`], of which the first input has `channels` channels.
pub(super) fn doubled_gradients<B: Host>(
    channels: usize,
    gradient: &FloatTensor<B>,
    needed: &[bool],
) -> Vec<Option<FloatTensor<B>>> {
    let sizes = gradient.shape().to_vec();
    let [batch, all, height, width] = [sizes[0], sizes[1], sizes[2] / 2, sizes[3] / 2];
    let [of_x, of_beside] = [[channels, height, width], [all - channels, 2 * height, 2 * width]];
    let shape = |[channels, height, width]: [usize; 3]| Shape::from([batch, channels, height, width]);
    let dy = B::values(gradient);
    let dx = needed[0]
        .then(|| made::<B>(shape(of_x), |dx| kernels::upsampling::doubled_gradient(dy, of_x, of_beside[0], dx)));
    let d_beside = needed.get(1).is_some_and(|&needed| needed).then(|| {
        made::<B>(shape(of_beside), |d_beside| kernels::upsampling::beside_gradient(dy, of_x, of_beside[0], d_beside))
    });
    vec![dx, d_beside]
}

pub(super) fn maximum<B: Host>(settings: Pooling, x: &FloatTensor<B>, keep: bool) -> Forward<B> {
    let sizes = x.shape().to_vec();
    let planes = sizes[0] * sizes[1];
    let Pooling { size, kernel, stride, padding } = settings;
    let [height, width] = kernels::pooling::maximum_size(size, kernel, stride, padding);
    let shape = Shape::from([sizes[0], sizes[1], height, width]);
    let maxima = |indices: Option<&mut [u32]>| {
        made::<B>(shape.clone(), |y| {
            kernels::pooling::maximum(B::values(x), planes, size, kernel, stride, padding, y, indices);
        })
    };
    if !keep {
        return Forward { output: maxima(None), statistics: None, saved: vec![] };
    }
    let mut output = None;
    let indices = B::of_indices(shape.clone(), |indices| {
        #[cfg(test)]
        indices.fill(u32::MAX);
        output = Some(maxima(Some(indices)));
    });
    Forward { output: output.expect("was made"), statistics: None, saved: vec![indices] }
}

pub(super) fn maximum_gradient<B: Host>(
    size: [usize; 2],
    [indices]: [FloatTensor<B>; 1],
    gradient: &FloatTensor<B>,
) -> Vec<Option<FloatTensor<B>>> {
    let of_output = indices.shape().to_vec();
    let shape = Shape::from([of_output[0], of_output[1], size[0], size[1]]);
    let (plane, output_plane) = (size[0] * size[1], of_output[2] * of_output[3]);
    vec![Some(made::<B>(shape, |dx| {
        kernels::pooling::maximum_gradient(B::values(gradient), B::indices(&indices), plane, output_plane, dx);
    }))]
}

/// The shape as the kernels take it.
pub(super) fn shape<B: Host>(settings: Convolution, x: &FloatTensor<B>, weight: &FloatTensor<B>) -> ConvShape {
    settings.shape(&x.shape().to_vec(), &weight.shape().to_vec())
}
