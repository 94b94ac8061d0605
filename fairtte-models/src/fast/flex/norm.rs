//! Batch norm, its fixed form, and layer norm.

use burn::backend::{Flex, TensorMetadata as _};
use burn_flex::FlexTensor;

use super::super::operation::Forward;
use super::{overwritten, planes, tensor, values, vector};
use crate::kernels::{self, Activation};

pub(super) fn batch_norm(
    [x, gamma, beta]: [&FlexTensor; 3],
    epsilon: f64,
    activation: Activation,
    keep: bool,
) -> Forward<Flex> {
    let (channels, plane) = planes(x);
    let mut y = vec![0.0; x.shape().num_elements()];
    let (of_gamma, of_beta) = (values(gamma), values(beta));
    let found =
        kernels::batch_norm::forward(values(x), channels, plane, of_gamma, of_beta, epsilon, activation, &mut y);
    let mean = vector(found.mean);
    let saved = if keep {
        vec![x.clone(), gamma.clone(), beta.clone(), mean.clone(), vector(found.inverse_deviation)]
    } else {
        vec![]
    };
    Forward { output: tensor(y, x.shape()), statistics: Some([mean, vector(found.variance)]), saved }
}

/// Gradients of batch norm by the statistics of the batch; `saved` are input, gamma, beta, mean and inverse deviation.
pub(super) fn batch_norm_gradients(
    [x, gamma, beta, mean, inverse_deviation]: [&FlexTensor; 5],
    activation: Activation,
    gradient: FlexTensor,
) -> Vec<Option<FlexTensor>> {
    let (channels, plane) = planes(x);
    let [mut d_gamma, mut d_beta] = [vec![0.0; channels], vec![0.0; channels]];
    let [x, gamma, beta, mean, inverse_deviation] = [x, gamma, beta, mean, inverse_deviation].map(values);
    let dx = overwritten(gradient, |dx| {
        let parameters = (&mut d_gamma, &mut d_beta);
        kernels::batch_norm::gradients(
            x,
            channels,
            plane,
            gamma,
            beta,
            mean,
            inverse_deviation,
            activation,
            dx,
            parameters.0,
            parameters.1,
        );
    });
    vec![Some(dx), Some(vector(d_gamma)), Some(vector(d_beta))]
}

/// Gradients of `activation(x * scale + shift)`.
pub(super) fn affine_gradients(
    [x, scale, shift]: [&FlexTensor; 3],
    activation: Activation,
    gradient: FlexTensor,
) -> Vec<Option<FlexTensor>> {
    // It is a batch norm of mean 0 and deviation 1.
    let channels = planes(x).0;
    let [mean, inverse_deviation] = [0.0, 1.0].map(|value| vec![value; channels]);
    let (channels, plane) = planes(x);
    let [mut d_scale, mut d_shift] = [vec![0.0; channels], vec![0.0; channels]];
    let [x, scale, shift] = [x, scale, shift].map(values);
    let dx = overwritten(gradient, |dx| {
        kernels::batch_norm::apply_gradients(
            x,
            channels,
            plane,
            scale,
            shift,
            &mean,
            &inverse_deviation,
            activation,
            dx,
            &mut d_scale,
            &mut d_shift,
        );
    });
    vec![Some(dx), Some(vector(d_scale)), Some(vector(d_shift))]
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
