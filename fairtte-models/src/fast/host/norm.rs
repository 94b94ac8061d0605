//! Batch norm, alone and before a depthwise convolution, its fixed form, and layer norm.

use burn::backend::TensorMetadata as _;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use super::super::operation::{Convolution, Forward};
use super::{Host, conv, made, overwritten, plane, vector};
use crate::kernels::conv::normed_depthwise;
use crate::kernels::norm::batch_norm::{Applied, Layer, Normalisation, ParameterGradients, Statistics};
use crate::kernels::{self, Activation};

pub(super) fn batch_norm<B: Host>(
    [x, gamma, beta]: [&FloatTensor<B>; 3],
    epsilon: f64,
    activation: Activation,
    keep: bool,
) -> Forward<B> {
    let layer = layer::<B>([x, gamma, beta], activation);
    let mut found = Statistics::default();
    let output = made::<B>(x.shape(), |y| found = kernels::norm::batch_norm::forward(B::values(x), &layer, epsilon, y));
    measured::<B>(output, &found, &[x, gamma, beta], keep)
}

/// The result of an operation that begins with a norm; with `keep`, its inputs are saved, and mean, inverse deviation, offset, scale and
/// shift of each channel.
pub(super) fn measured<B: Host>(
    output: FloatTensor<B>,
    found: &Statistics,
    inputs: &[&FloatTensor<B>],
    keep: bool,
) -> Forward<B> {
    let mean = vector::<B>(&found.mean);
    let saved = if keep {
        let others = [&found.inverse_deviation, &found.offset, &found.scale, &found.shift];
        let of_channels = std::iter::once(mean.clone()).chain(others.map(|values| vector::<B>(values)));
        inputs.iter().map(|&input| input.clone()).chain(of_channels).collect()
    } else {
        vec![]
    };
    Forward { output, statistics: Some([mean, vector::<B>(&found.variance)]), saved }
}

/// Mean, inverse deviation and offset as the gradients take them.
pub(super) fn normalisation<B: Host>(of_channels: [&FloatTensor<B>; 3]) -> Normalisation<'_> {
    let [mean, inverse_deviation, offset] = of_channels.map(B::values);
    Normalisation { mean, inverse_deviation, offset }
}

/// Mean, scale and shift as [`repeated_batch_norm`] takes them.
pub(super) fn applied<B: Host>(of_channels: [&FloatTensor<B>; 3]) -> Applied<'_> {
    let [mean, scale, shift] = of_channels.map(B::values);
    Applied { mean, scale, shift }
}

/// The layer over tensors of the shape of `x`.
pub(super) fn layer<B: Host>([x, gamma, beta]: [&FloatTensor<B>; 3], activation: Activation) -> Layer<'_> {
    Layer { plane: plane::<B>(x), gamma: B::values(gamma), beta: B::values(beta), activation }
}

/// The output of [`batch_norm`] from what that saved.
pub(super) fn repeated_batch_norm<B: Host>(
    [x, gamma, beta, mean, _, _, scale, shift]: &[FloatTensor<B>; 8],
    activation: Activation,
) -> FloatTensor<B> {
    let layer = layer::<B>([x, gamma, beta], activation);
    let applied = applied::<B>([mean, scale, shift]);
    made::<B>(x.shape(), |y| kernels::norm::batch_norm::repeat(B::values(x), &layer, applied, y))
}

/// Gradients of batch norm by the statistics of the batch, from what [`batch_norm`] saved.
pub(super) fn batch_norm_gradients<B: Host>(
    [x, gamma, beta, mean, inverse_deviation, offset, ..]: [FloatTensor<B>; 8],
    activation: Activation,
    gradient: FloatTensor<B>,
) -> Vec<Option<FloatTensor<B>>> {
    let normalisation = normalisation::<B>([&mean, &inverse_deviation, &offset]);
    let layer = layer::<B>([&x, &gamma, &beta], activation);
    pulled::<B>(gradient, |dx| kernels::norm::batch_norm::gradients(B::values(&x), &layer, normalisation, dx))
}

/// Batch norm as [`batch_norm`] and the depthwise convolution of its output.
pub(super) fn depthwise<B: Host>(
    [x, gamma, beta]: [&FloatTensor<B>; 3],
    weight: &FloatTensor<B>,
    epsilon: f64,
    activation: Activation,
    settings: Convolution,
    keep: bool,
) -> Forward<B> {
    let (layer, shape) = (layer::<B>([x, gamma, beta], activation), conv::shape::<B>(settings, x, weight));
    let [_, height, width] = shape.output();
    let mut found = Statistics::default();
    let output = made::<B>(Shape::from([shape.batch, shape.outputs, height, width]), |y| {
        found = normed_depthwise::forward(B::values(x), &layer, epsilon, B::values(weight), &shape, y);
    });
    measured::<B>(output, &found, &[x, gamma, beta, weight], keep)
}

/// Gradients of all inputs from what [`depthwise`] saved.
pub(super) fn depthwise_gradients<B: Host>(
    [x, gamma, beta, weight, mean, inverse_deviation, offset, scale, shift]: [FloatTensor<B>; 9],
    activation: Activation,
    settings: Convolution,
    gradient: &FloatTensor<B>,
) -> Vec<Option<FloatTensor<B>>> {
    let (layer, shape) = (layer::<B>([&x, &gamma, &beta], activation), conv::shape::<B>(settings, &x, &weight));
    let measured = (normalisation::<B>([&mean, &inverse_deviation, &offset]), applied::<B>([&mean, &scale, &shift]));
    let mut found = ParameterGradients::default();
    let mut d_weight = None;
    let dx = made::<B>(x.shape(), |dx| {
        d_weight = Some(made::<B>(weight.shape(), |d_weight| {
            let [x, weight, dy] = [&x, &weight, gradient].map(B::values);
            found = normed_depthwise::gradients(x, &layer, measured, weight, dy, &shape, dx, d_weight);
        }));
    });
    vec![Some(dx), Some(vector::<B>(&found.gamma)), Some(vector::<B>(&found.beta)), d_weight]
}

/// Gradients of `activation(x * scale + shift)`.
pub(super) fn affine_gradients<B: Host>(
    [x, scale, shift]: [FloatTensor<B>; 3],
    activation: Activation,
    gradient: FloatTensor<B>,
) -> Vec<Option<FloatTensor<B>>> {
    let layer = layer::<B>([&x, &scale, &shift], activation);
    pulled::<B>(gradient, |dx| kernels::norm::batch_norm::apply_gradients(B::values(&x), &layer, dx))
}

/// Returns the gradient of the input, which replaces that of the output in place, and those of the parameters, both
/// computed by `pull`.
fn pulled<B: Host>(
    gradient: FloatTensor<B>,
    pull: impl FnOnce(&mut [f32]) -> ParameterGradients,
) -> Vec<Option<FloatTensor<B>>> {
    let mut of_parameters = ParameterGradients::default();
    let dx = overwritten::<B>(gradient, |dx| of_parameters = pull(dx));
    vec![Some(dx), Some(vector::<B>(&of_parameters.gamma)), Some(vector::<B>(&of_parameters.beta))]
}

/// Layer norm over the last axis.
pub(super) fn layer_norm<B: Host>([x, gamma, beta]: [&FloatTensor<B>; 3], epsilon: f64, keep: bool) -> Forward<B> {
    let width = gamma.shape().num_elements();
    let rows = x.shape().num_elements() / width;
    let [mut mean, mut inverse_deviation] = [vec![0.0; rows], vec![0.0; rows]];
    let statistics = keep.then_some([mean.as_mut_slice(), inverse_deviation.as_mut_slice()]);
    let output = made::<B>(x.shape(), |y| {
        kernels::norm::layer_norm::forward(
            B::values(x),
            width,
            B::values(gamma),
            B::values(beta),
            epsilon,
            y,
            statistics,
        );
    });
    let saved =
        if keep { vec![x.clone(), gamma.clone(), vector::<B>(&mean), vector::<B>(&inverse_deviation)] } else { vec![] };
    Forward { output, statistics: None, saved }
}

/// Gradients of layer norm from what [`layer_norm`] saved.
pub(super) fn layer_norm_gradients<B: Host>(
    [x, gamma, mean, inverse_deviation]: [FloatTensor<B>; 4],
    gradient: FloatTensor<B>,
) -> Vec<Option<FloatTensor<B>>> {
    let width = gamma.shape().num_elements();
    let [mut d_gamma, mut d_beta] = [vec![0.0; width], vec![0.0; width]];
    let [x, gamma, mean, inverse_deviation] = [&x, &gamma, &mean, &inverse_deviation].map(B::values);
    let dx = overwritten::<B>(gradient, |dx| {
        let (d_gamma, d_beta) = (&mut d_gamma, &mut d_beta);
        kernels::norm::layer_norm::gradients(x, width, gamma, mean, inverse_deviation, dx, d_gamma, d_beta);
    });
    vec![Some(dx), Some(vector::<B>(&d_gamma)), Some(vector::<B>(&d_beta))]
}
