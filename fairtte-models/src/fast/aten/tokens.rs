//! Linear layers and attention.

use burn_tch::TchTensor;
use tch::{Kind, Tensor};

use super::{integer, of_parameter};

pub(super) fn linear([x, weight, bias]: [&Tensor; 3]) -> Tensor {
    let bias = bias.to_kind(x.kind());
    let mut sizes = x.size();
    sizes.pop();
    sizes.extend(bias.size());
    bias.addmm(&rows(x), weight).reshape(sizes)
}

pub(super) fn linear_gradients(
    [x, weight]: [&Tensor; 2],
    gradient: &Tensor,
    needed: &[bool],
) -> Vec<Option<TchTensor>> {
    let dy = rows(gradient);
    let dx = needed[0].then(|| TchTensor::new(dy.matmul(&weight.tr()).reshape(x.size())));
    let d_weight = needed[1].then(|| of_parameter(&rows(x).tr().matmul(&dy)));
    let d_bias = needed[2].then(|| TchTensor::new(dy.sum_dim_intlist(0, false, Kind::Float)));
    vec![dx, d_weight, d_bias]
}

/// Scaled dot-product attention: its output and the weights of the values, `[batch, heads, tokens, tokens]`.
pub(super) fn attention(qkv: &Tensor, heads: usize) -> (Tensor, Tensor) {
    let [queries, keys, values] = parts(qkv, heads);
    let weights = (queries * scale(&keys)).matmul(&keys.transpose(2, 3)).softmax(3, None::<Kind>);
    let mixed = weights.matmul(&values).transpose(1, 2);
    let sizes = qkv.size();
    (mixed.reshape([sizes[0], sizes[1], sizes[2] / 3]), weights)
}

pub(super) fn attention_gradient(qkv: &Tensor, heads: usize, weights: &Tensor, gradient: &Tensor) -> Tensor {
    let [queries, keys, values] = parts(qkv, heads);
    let sizes = qkv.size();
    let dy = gradient.reshape([sizes[0], sizes[1], integer(heads), -1]).transpose(1, 2);
    let d_values = weights.transpose(2, 3).matmul(&dy);
    let d_weights = dy.matmul(&values.transpose(2, 3));
    let d_scores = Tensor::internal_softmax_backward_data(&d_weights, weights, 3, weights.kind()) * scale(&keys);
    let (d_queries, d_keys) = (d_scores.matmul(&keys), d_scores.transpose(2, 3).matmul(&queries));
    // [3, batch, heads, tokens, per head]
    Tensor::stack(&[d_queries, d_keys, d_values], 0).permute([1, 3, 0, 2, 4]).reshape(sizes)
}

/// Queries, keys and values, `[batch, heads, tokens, per head]`.
fn parts(qkv: &Tensor, heads: usize) -> [Tensor; 3] {
    let sizes = qkv.size();
    let parts = qkv.reshape([sizes[0], sizes[1], 3, integer(heads), -1]).permute([2, 0, 3, 1, 4]);
    [0, 1, 2].map(|n| parts.select(0, n))
}

/// The factor of the scores.
fn scale(keys: &Tensor) -> f64 {
    (keys.size()[3] as f64).powf(-0.5)
}

/// `[rows, width]` of `[.., width]`.
fn rows(x: &Tensor) -> Tensor {
    x.reshape([-1, *x.size().last().expect("tokens have a width")])
}
