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

pub(super) fn linear_gradients(
    x: &FlexTensor,
    weight: &FlexTensor,
    gradient: &FlexTensor,
    needed: &[bool],
) -> Vec<Option<FlexTensor>> {
    let gradient = gradient.to_contiguous();
    let sizes = sizes(x, weight);
    let lengths = [x.shape().num_elements(), weight.shape().num_elements(), sizes[2]];
    let mut found = [0, 1, 2].map(|n| needed[n].then(|| vec![0.0; lengths[n]]));
    let [dx, d_weight, d_bias] = found.each_mut().map(Option::as_deref_mut);
    kernels::linear::gradients(values(x), values(weight), values(&gradient), sizes, dx, d_weight, d_bias);
    let [dx, d_weight, d_bias] = found;
    vec![
        dx.map(|dx| tensor(dx, x.shape())),
        d_weight.map(|d_weight| tensor(d_weight, weight.shape())),
        d_bias.map(vector),
    ]
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
