//! Linear layers and attention.

use burn::backend::TensorMetadata as _;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use super::super::operation::Forward;
use super::{Host, made, made_if, vector};
use crate::kernels::attention::Row;
use crate::kernels::{self, Activation};

/// Rows of `x`, inputs and outputs.
fn sizes<B: Host>(x: &FloatTensor<B>, weight: &FloatTensor<B>) -> [usize; 3] {
    let weight = weight.shape().to_vec();
    [x.shape().num_elements() / weight[0].max(1), weight[0], weight[1]]
}

pub(super) fn linear<B: Host>([x, weight, bias]: [&FloatTensor<B>; 3]) -> FloatTensor<B> {
    let sizes = sizes::<B>(x, weight);
    let mut shape = x.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = sizes[2];
    }
    let [x, weight, bias] = [x, weight, bias].map(B::values);
    made::<B>(Shape::from(shape), |y| {
        kernels::linear::forward(x, weight, sizes, Some(bias), Activation::Identity, y);
    })
}

/// Gradients of a linear layer; `x` is freed before its gradient, which is as large, is allocated.
pub(super) fn linear_gradients<B: Host>(
    [x, weight]: [FloatTensor<B>; 2],
    gradient: &FloatTensor<B>,
    needed: &[bool],
) -> Vec<Option<FloatTensor<B>>> {
    let (shape, sizes) = (x.shape(), sizes::<B>(&x, &weight));
    let of_weight = weight.shape();
    let [weight, dy] = [&weight, gradient].map(B::values);
    let mut d_bias = needed[2].then(|| vec![0.0; sizes[2]]);
    let d_weight = made_if::<B>(needed[1], of_weight, |d_weight| {
        kernels::linear::gradients(B::values(&x), weight, dy, sizes, None, d_weight, d_bias.as_deref_mut());
    });
    drop(x);
    let dx = needed[0]
        .then(|| made::<B>(shape, |dx| kernels::linear::gradients(&[], weight, dy, sizes, Some(dx), None, None)));
    vec![dx, d_weight, d_bias.map(|d_bias| vector::<B>(&d_bias))]
}

/// Batch, tokens, heads and width of a head.
fn shape_of_heads<B: Host>(qkv: &FloatTensor<B>, heads: usize) -> [usize; 4] {
    let shape = qkv.shape().to_vec();
    [shape[0], shape[1], heads, shape[2] / 3 / heads]
}

pub(super) fn attention<B: Host>(qkv: &FloatTensor<B>, heads: usize, keep: bool) -> Forward<B> {
    let shape = shape_of_heads::<B>(qkv, heads);
    let [batch, tokens, heads, width] = shape;
    let mut rows = keep.then(|| vec![Row::default(); batch * heads * tokens]);
    let output = made::<B>(Shape::from([batch, tokens, heads * width]), |output| {
        kernels::attention::forward(B::values(qkv), shape, output, rows.as_deref_mut());
    });
    let saved = rows.map_or_else(Vec::new, |rows| vec![qkv.clone(), output.clone(), vector::<B>(rows.as_flattened())]);
    Forward { output, statistics: None, saved }
}

/// The gradient of attention from what [`attention`] saved.
pub(super) fn attention_gradient<B: Host>(
    [qkv, output, rows]: [FloatTensor<B>; 3],
    heads: usize,
    gradient: &FloatTensor<B>,
) -> Vec<Option<FloatTensor<B>>> {
    let shape = shape_of_heads::<B>(&qkv, heads);
    let [qkv_values, output, rows, dy] = [&qkv, &output, &rows, gradient].map(B::values);
    let (rows, _) = rows.as_chunks();
    let d_qkv =
        made::<B>(qkv.shape(), |d_qkv| kernels::attention::gradients(qkv_values, output, rows, dy, shape, d_qkv));
    vec![Some(d_qkv)]
}
