//! Convolution and pooling.

use burn::backend::{Flex, TensorMetadata as _};
use burn::tensor::{Shape, TensorData};
use burn_flex::FlexTensor;

use super::super::operation::{Convolution, Forward, Pooling};
use super::{made, tensor, values, vector};
use crate::kernels::{self, ConvShape};

pub(super) fn conv(
    settings: Convolution,
    x: &FlexTensor,
    weight: &FlexTensor,
    bias: Option<&FlexTensor>,
) -> FlexTensor {
    let shape = conv_shape(settings, x, weight);
    let mut sizes = x.shape().to_vec();
    sizes[1] = shape.outputs;
    let space = sizes.len() - 2;
    sizes[2..].copy_from_slice(&shape.output()[3 - space..]);
    let activation = settings.activation;
    made(Shape::from(sizes), |y| {
        kernels::conv::forward(values(x), values(weight), bias.map(values), activation, &shape, y);
    })
}

pub(super) fn conv_gradients(
    settings: Convolution,
    x: &FlexTensor,
    weight: &FlexTensor,
    gradient: &FlexTensor,
    needed: &[bool],
) -> Vec<Option<FlexTensor>> {
    let [x, weight, gradient] = [x, weight, gradient].map(FlexTensor::to_contiguous);
    let [x, weight] = [&x, &weight];
    let shape = conv_shape(settings, x, weight);
    let mut dx = needed[0].then(|| vec![0.0; shape.lengths()[0]]);
    let mut d_weight = needed[1].then(|| vec![0.0; shape.lengths()[1]]);
    let [dx_values, d_weight_values] = [dx.as_deref_mut(), d_weight.as_deref_mut()];
    kernels::conv::gradients(values(x), values(weight), values(&gradient), &shape, dx_values, d_weight_values);
    let d_bias = needed.get(2).is_some_and(|&needed| needed).then(|| {
        let mut d_bias = vec![0.0; shape.outputs];
        kernels::bias::gradient(values(&gradient), shape.outputs, shape.output_plane(), &mut d_bias);
        vector(d_bias)
    });
    vec![dx.map(|dx| tensor(dx, x.shape())), d_weight.map(|d_weight| tensor(d_weight, weight.shape())), d_bias]
}

pub(super) fn maximum(settings: Pooling, x: &FlexTensor, keep: bool) -> Forward<Flex> {
    let sizes = x.shape().to_vec();
    let planes = sizes[0] * sizes[1];
    let Pooling { size, kernel, stride, padding } = settings;
    let [height, width] = kernels::pooling::maximum_size(size, kernel, stride, padding);
    let shape = Shape::from([sizes[0], sizes[1], height, width]);
    let mut indices = keep.then(|| vec![0_u32; shape.num_elements()]);
    let output = made(shape.clone(), |y| {
        kernels::pooling::maximum(values(x), planes, size, kernel, stride, padding, y, indices.as_deref_mut());
    });
    let indices = indices.map(|indices| FlexTensor::from_data(TensorData::new(indices, shape)));
    // burn's tensors of `flex` know their type at run time, so indices can be kept among the others.
    let saved = indices.map_or_else(Vec::new, |indices| vec![indices]);
    Forward { output, statistics: None, saved }
}

pub(super) fn maximum_gradient(
    size: [usize; 2],
    indices: &FlexTensor,
    gradient: &FlexTensor,
) -> Vec<Option<FlexTensor>> {
    let gradient = gradient.to_contiguous();
    let of_output = indices.shape().to_vec();
    let shape = Shape::from([of_output[0], of_output[1], size[0], size[1]]);
    let indices = indices.as_slice::<u32>().expect("contiguous indices, as maximum wrote them");
    let (plane, output_plane) = (size[0] * size[1], of_output[2] * of_output[3]);
    vec![Some(made(shape, |dx| {
        kernels::pooling::maximum_gradient(values(&gradient), indices, plane, output_plane, dx);
    }))]
}

fn conv_shape(settings: Convolution, x: &FlexTensor, weight: &FlexTensor) -> ConvShape {
    let [x, weight] = [x, weight].map(|tensor| tensor.shape().to_vec());
    let Convolution { stride, padding, groups, .. } = settings;
    let space = |sizes: &[usize]| {
        let mut space = [1; 3];
        let from = 5 - sizes.len();
        space[from..].copy_from_slice(&sizes[2..]);
        space
    };
    let (size, kernel) = (space(&x), space(&weight));
    ConvShape { batch: x[0], inputs: x[1], outputs: weight[0], size, kernel, stride, padding, groups }
}
