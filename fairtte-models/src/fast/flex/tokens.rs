//! Linear layers and attention.

use burn::backend::{Flex, TensorMetadata as _};
use burn::tensor::Shape;
use burn_flex::FlexTensor;

use super::super::operation::Forward;
use super::{made, tensor, values, vector};
use crate::kernels::attention::Row;
use crate::kernels::{self, Activation};

/// Rows of `x`, inputs and outputs.
fn sizes(x: &FlexTensor, weight: &FlexTensor) -> [usize; 3] {
    let weight = weight.shape().to_vec();
    [x.shape().num_elements() / weight[0].max(1), weight[0], weight[1]]
}

pub(super) fn linear([x, weight, bias]: [&FlexTensor; 3]) -> FlexTensor {
    let sizes = sizes(x, weight);
    let mut shape = x.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = sizes[2];
    }
    made(Shape::from(shape), |y| {
        kernels::linear::forward(values(x), values(weight), sizes, Some(values(bias)), Activation::Identity, y);
    })
}

/// Gradients of a linear layer; `x` goes before the gradient of it is made, which is as large.
pub(super) fn linear_gradients(
    x: FlexTensor,
    weight: &FlexTensor,
    gradient: &FlexTensor,
    needed: &[bool],
) -> Vec<Option<FlexTensor>> {
    let [weight, gradient] = [weight, gradient].map(FlexTensor::to_contiguous);
    let (weight, dy) = (&weight, values(&gradient));
    let x = if x.is_contiguous() { x } else { x.to_contiguous() };
    let (shape, sizes) = (x.shape(), sizes(&x, weight));
    let mut d_weight = needed[1].then(|| vec![0.0; weight.shape().num_elements()]);
    let mut d_bias = needed[2].then(|| vec![0.0; sizes[2]]);
    let of_parameters = (d_weight.as_deref_mut(), d_bias.as_deref_mut());
    kernels::linear::gradients(values(&x), values(weight), dy, sizes, None, of_parameters.0, of_parameters.1);
    drop(x);
    let dx = needed[0]
        .then(|| made(shape, |dx| kernels::linear::gradients(&[], values(weight), dy, sizes, Some(dx), None, None)));
    vec![dx, d_weight.map(|d_weight| tensor(d_weight, weight.shape())), d_bias.map(vector)]
}

/// Batch, tokens, heads and width of a head.
fn shape_of_heads(qkv: &FlexTensor, heads: usize) -> [usize; 4] {
    let shape = qkv.shape().to_vec();
    [shape[0], shape[1], heads, shape[2] / 3 / heads]
}

pub(super) fn attention(qkv: &FlexTensor, heads: usize, keep: bool) -> Forward<Flex> {
    let shape = shape_of_heads(qkv, heads);
    let [batch, tokens, heads, width] = shape;
    let mut rows = keep.then(|| vec![Row::default(); batch * heads * tokens]);
    let output = made(Shape::from([batch, tokens, heads * width]), |output| {
        kernels::attention::forward(values(qkv), shape, output, rows.as_deref_mut());
    });
    let saved = rows.map_or_else(Vec::new, |rows| vec![qkv.clone(), output.clone(), vector(rows.into_flattened())]);
    Forward { output, statistics: None, saved }
}

pub(super) fn attention_gradient(
    [qkv, output, rows]: [&FlexTensor; 3],
    heads: usize,
    gradient: &FlexTensor,
) -> Vec<Option<FlexTensor>> {
    let gradient = gradient.to_contiguous();
    let shape = shape_of_heads(qkv, heads);
    vec![Some(made(qkv.shape(), |d_qkv| {
        let (rows, _) = values(rows).as_chunks();
        kernels::attention::gradients(values(qkv), values(output), rows, values(&gradient), shape, d_qkv);
    }))]
}
