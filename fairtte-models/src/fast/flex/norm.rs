//! Batch norm, its fixed form, and layer norm.

use burn::backend::{Flex, TensorMetadata as _};
use burn_flex::FlexTensor;

use super::super::operation::Forward;
use super::{overwritten, planes, tensor, values, vector};
use crate::kernels::batch_norm::{Layer, Normalisation, ParameterGradients};
use crate::kernels::{self, Activation};

pub(super) fn batch_norm(
    [x, gamma, beta]: [&FlexTensor; 3],
    epsilon: f64,
    activation: Activation,
    keep: bool,
) -> Forward<Flex> {
    let mut y = vec![0.0; x.shape().num_elements()];
    let found = kernels::batch_norm::forward(values(x), &layer([x, gamma, beta], activation), epsilon, &mut y);
    let mean = vector(found.mean);
    let saved = if keep {
        let normalisation = [mean.clone(), vector(found.inverse_deviation), vector(found.offset)];
        [x, gamma, beta].map(Clone::clone).into_iter().chain(normalisation).collect()
    } else {
        vec![]
    };
    Forward { output: tensor(y, x.shape()), statistics: Some([mean, vector(found.variance)]), saved }
}

/// The layer over tensors of the shape of `x`.
pub(super) fn layer([x, gamma, beta]: [&FlexTensor; 3], activation: Activation) -> Layer<'_> {
    Layer { plane: planes(x).1, gamma: values(gamma), beta: values(beta), activation }
}

/// Gradients of batch norm by the statistics of the batch.
pub(super) fn batch_norm_gradients(
    layer @ [x, ..]: [&FlexTensor; 3],
    [mean, inverse_deviation, offset]: [&FlexTensor; 3],
    activation: Activation,
    gradient: FlexTensor,
) -> Vec<Option<FlexTensor>> {
    let [mean, inverse_deviation, offset] = [mean, inverse_deviation, offset].map(values);
    let normalisation = Normalisation { mean, inverse_deviation, offset };
    let mut of_parameters = ParameterGradients::default();
    let dx = overwritten(gradient, |dx| {
        of_parameters = kernels::batch_norm::gradients(values(x), &self::layer(layer, activation), normalisation, dx);
    });
    vec![Some(dx), Some(vector(of_parameters.gamma)), Some(vector(of_parameters.beta))]
}

/// Gradients of `activation(x * scale + shift)`.
pub(super) fn affine_gradients(
    layer @ [x, ..]: [&FlexTensor; 3],
    activation: Activation,
    gradient: FlexTensor,
) -> Vec<Option<FlexTensor>> {
    let mut of_parameters = ParameterGradients::default();
    let dx = overwritten(gradient, |dx| {
        of_parameters = kernels::batch_norm::apply_gradients(values(x), &self::layer(layer, activation), dx);
    });
    vec![Some(dx), Some(vector(of_parameters.gamma)), Some(vector(of_parameters.beta))]
}

/// Layer norm over the last axis.
pub(super) fn layer_norm([x, gamma, beta]: [&FlexTensor; 3], epsilon: f64, keep: bool) -> Forward<Flex> {
    let width = gamma.shape().num_elements();
    let rows = x.shape().num_elements() / width;
    let mut y = vec![0.0; rows * width];
    let [mut mean, mut inverse_deviation] = [vec![0.0; rows], vec![0.0; rows]];
    let statistics = keep.then_some([mean.as_mut_slice(), inverse_deviation.as_mut_slice()]);
    kernels::layer_norm::forward(values(x), width, values(gamma), values(beta), epsilon, &mut y, statistics);
    let saved = if keep { vec![x.clone(), gamma.clone(), vector(mean), vector(inverse_deviation)] } else { vec![] };
    Forward { output: tensor(y, x.shape()), statistics: None, saved }
}

/// Gradients of layer norm; `saved` are input, gamma, and mean and inverse deviation of each row.
pub(super) fn layer_norm_gradients(
    [x, gamma, mean, inverse_deviation]: [&FlexTensor; 4],
    gradient: FlexTensor,
) -> Vec<Option<FlexTensor>> {
    let width = gamma.shape().num_elements();
    let [mut d_gamma, mut d_beta] = [vec![0.0; width], vec![0.0; width]];
    let [x, gamma, mean, inverse_deviation] = [x, gamma, mean, inverse_deviation].map(values);
    let dx = overwritten(gradient, |dx| {
        let (d_gamma, d_beta) = (&mut d_gamma, &mut d_beta);
        kernels::layer_norm::gradients(x, width, gamma, mean, inverse_deviation, dx, d_gamma, d_beta);
    });
    vec![Some(dx), Some(vector(d_gamma)), Some(vector(d_beta))]
}
