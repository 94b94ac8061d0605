//! The fused operations on LibTorch, by the operations of ATen that PyTorch's own layers call.
//!
//! The receiver of a gradient function of the crate tch is the argument of the forward pass, and the gradient its argument.

#![expect(deprecated, reason = "deprecated upstream, and part of the design all the same while burn 0.22 is pinned")]

use burn::backend::LibTorch;
use burn_tch::TchTensor;
use tch::{Kind, Tensor};

use super::operation::{Convolution, Forward, Kernels, Operation, Pooling};
use super::shim;
use crate::kernels::Activation;

impl Kernels for LibTorch {
    fn forward(operation: Operation, inputs: Vec<TchTensor>, keep: bool) -> Forward<Self> {
        // A tensor that is both given out and kept must be one `TchTensor` cloned: burn changes a tensor in place whose
        // storage it believes to be the only holder of.
        let of = |n: usize| &inputs[n].tensor;
        let mut statistics = None;
        let (output, extra) = match operation {
            Operation::Conv(settings) => (TchTensor::new(conv(settings, of(0), of(1), inputs.get(2))), vec![]),
            Operation::BatchNorm { epsilon, activation } => {
                let [y, mean, inverse_deviation, variance] = batch_norm(of(0), of(1), of(2), epsilon);
                let [mean, inverse_deviation] = [mean, inverse_deviation].map(TchTensor::new);
                statistics = Some([mean.clone(), TchTensor::new(variance)]);
                let (output, kept) = activated_and_kept(activation, y);
                (output, [mean, inverse_deviation].into_iter().chain(kept).collect())
            }
            Operation::Affine { activation } => {
                let mut y = of(0) * per_channel(of(1), of(0));
                let _ = y.g_add_(&per_channel(of(2), of(0)));
                let (output, kept) = activated_and_kept(activation, y);
                (output, kept.into_iter().collect())
            }
            Operation::Activate(activation) => (activated(activation, &inputs[0]), vec![]),
            Operation::Gate => (TchTensor::new(of(0) * of(1)), vec![]),
            Operation::AddRelu => (TchTensor::new((of(0) + of(1)).relu_()), vec![]),
            Operation::LayerNorm { epsilon } => {
                let (y, mean, inverse_deviation) =
                    of(0).native_layer_norm(of(1).size(), Some(of(1)), Some(of(2)), epsilon);
                (TchTensor::new(y), [mean, inverse_deviation].map(TchTensor::new).into())
            }
            Operation::Linear => {
                let y = of(2).addmm(&rows(of(0)), of(1));
                let mut sizes = of(0).size();
                sizes.pop();
                sizes.extend(of(2).size());
                (TchTensor::new(y.view(&sizes[..])), vec![])
            }
            Operation::Attention { heads } => {
                let (y, kept) = attention(of(0), heads);
                let mut sizes = of(0).size();
                sizes[2] /= 3;
                // The output is a view of `y`, which is kept.
                let y = TchTensor::new(y);
                let output = y.tensor.transpose(1, 2).reshape(&sizes[..]);
                let output = TchTensor::from_existing(output, y.storage.clone());
                (output, vec![y, TchTensor::new(kept)])
            }
            Operation::MaxPool(Pooling { kernel, stride, padding, .. }) => {
                let [kernel, stride, padding] = [kernel, stride, padding].map(|sides| sides.map(integer));
                let (y, indices) = of(0).max_pool2d_with_indices(kernel, stride, padding, [1, 1], false);
                (TchTensor::new(y), vec![TchTensor::new(indices)])
            }
            Operation::Average { .. } => (TchTensor::new(of(0).mean_dim(space(of(0)), true, Kind::Float)), vec![]),
        };
        let saved = match operation {
            _ if !keep => vec![],
            Operation::AddRelu => vec![output.clone()],
            Operation::Average { .. } => vec![],
            Operation::Conv(_) | Operation::Linear => inputs.into_iter().take(2).collect(),
            _ => inputs.into_iter().chain(extra).collect(),
        };
        Forward { output, statistics, saved }
    }

    fn backward(
        operation: Operation,
        mut saved: Vec<TchTensor>,
        gradient: TchTensor,
        needed: &[bool],
    ) -> Vec<Option<TchTensor>> {
        let dy = match operation {
            // What the activation needs is dropped before room is made for the gradients of the norm.
            Operation::BatchNorm { activation, .. } | Operation::Affine { activation }
                if activation != Activation::Identity =>
            {
                let kept = saved.pop().expect("what the activation needs is the last of the saved tensors");
                activated_gradient(activation, &kept.tensor, &gradient.tensor)
            }
            _ => gradient.tensor.shallow_clone(),
        };
        drop(gradient);
        let (of, dy) = (|n: usize| &saved[n].tensor, &dy);
        let found = match operation {
            Operation::Conv(settings) => {
                let (stride, padding) = spatial(settings, of(0));
                let groups = settings.groups.try_into().unwrap_or(i64::MAX);
                shim::convolution_gradients(dy, of(0), of(1), &stride, &padding, groups, needed)
            }
            Operation::BatchNorm { epsilon, .. } => shim::batch_norm_gradients(dy, of(0), of(1), of(3), of(4), epsilon),
            Operation::Affine { .. } => {
                let others: Vec<i64> = (0..of(0).dim()).filter(|&axis| axis != 1).map(integer).collect();
                let d_scale = (dy * of(0)).sum_dim_intlist(&others[..], false, Kind::Float);
                let d_shift = dy.sum_dim_intlist(&others[..], false, Kind::Float);
                vec![Some(dy * per_channel(of(1), of(0))), Some(d_scale), Some(d_shift)]
            }
            Operation::Activate(activation) => vec![Some(activated_gradient(activation, of(0), dy))],
            Operation::Gate => {
                let d_gate = (dy * of(0)).sum_dim_intlist(&space(of(0))[..], true, Kind::Float);
                vec![Some(dy * of(1)), Some(d_gate)]
            }
            Operation::AddRelu => {
                let gradient = TchTensor::new(of(0).threshold_backward(dy, 0));
                return vec![Some(gradient.clone()), Some(gradient)];
            }
            Operation::LayerNorm { .. } => {
                // ATen takes this gradient as dense and does not look.
                shim::layer_norm_gradients(&dy.contiguous(), [of(0), of(1), of(2), of(3), of(4)])
            }
            Operation::Linear => {
                let (dy, x) = (rows(dy), rows(of(0)));
                let dx = needed[0].then(|| dy.matmul(&of(1).tr()).view(&of(0).size()[..]));
                let d_weight = needed[1].then(|| x.tr().matmul(&dy));
                vec![dx, d_weight, Some(dy.sum_dim_intlist(&[0_i64][..], false, Kind::Float))]
            }
            Operation::Attention { heads } => {
                let [q, k, v] = parts(of(0), heads);
                let dy = dy.reshape(of(1).transpose(1, 2).size()).transpose(1, 2);
                let [dq, dk, dv] = attention_gradients(&dy, [&q, &k, &v], of(1), of(2));
                let parts = [dq, dk, dv].map(|part| part.transpose(1, 2)); // [batch, tokens, heads, width]
                vec![Some(Tensor::stack(&parts, 2).view(&of(0).size()[..]))]
            }
            Operation::MaxPool(Pooling { kernel, stride, padding, .. }) => {
                let [kernel, stride, padding] = [kernel, stride, padding].map(|sides| sides.map(integer));
                let dx = of(0).max_pool2d_with_indices_backward(dy, kernel, stride, padding, [1, 1], false, of(1));
                vec![Some(dx)]
            }
            Operation::Average { size } => {
                let mut sizes = dy.size();
                let within = sizes.len() - 2;
                sizes[2..].copy_from_slice(&integers(&size)[3 - within..]);
                let n: usize = size.iter().product();
                vec![Some((dy / n as f64).expand(sizes, false).contiguous())]
            }
        };
        found.into_iter().map(|gradient| gradient.map(TchTensor::new)).collect()
    }
}

/// Output, mean, inverse deviation and biased variance.
fn batch_norm(x: &Tensor, gamma: &Tensor, beta: &Tensor, epsilon: f64) -> [Tensor; 4] {
    // With a momentum of 1 the running statistics become those of the batch. From the inverse deviation the variance would
    // have no digits left where it is small beside epsilon.
    let [running_mean, unbiased] = [gamma.zeros_like(), gamma.zeros_like()];
    let running = (Some(&running_mean), Some(&unbiased));
    let (y, mean, inverse_deviation) =
        x.native_batch_norm(Some(gamma), Some(beta), running.0, running.1, true, 1.0, epsilon);
    let n = x.numel() / gamma.numel().max(1);
    let variance = if n > 1 { unbiased * ((n - 1) as f64 / n as f64) } else { unbiased.zeros_like() };
    [y, mean, inverse_deviation, variance]
}

fn conv(settings: Convolution, x: &Tensor, weight: &Tensor, bias: Option<&TchTensor>) -> Tensor {
    let (stride, padding) = spatial(settings, x);
    let (ones, zeros) = (vec![1; stride.len()], vec![0; stride.len()]);
    let groups = settings.groups.try_into().unwrap_or(i64::MAX);
    let bias = bias.map(|bias| &bias.tensor);
    let y = x.convolution(weight, bias, stride, padding, ones, false, zeros, groups);
    activated_in_place(settings.activation, y)
}

fn activated_in_place(activation: Activation, mut y: Tensor) -> Tensor {
    match activation {
        Activation::Identity => y,
        Activation::Relu => y.relu_(),
        Activation::Silu => y.silu_(),
        Activation::Gelu => y.gelu_("none"),
        Activation::Sigmoid => y.sigmoid_(),
    }
}

/// `activation(y)`, and what its gradient is taken from, if anything: for `relu` the output itself does as well as `y`.
fn activated_and_kept(activation: Activation, y: Tensor) -> (TchTensor, Option<TchTensor>) {
    match activation {
        Activation::Identity => (TchTensor::new(y), None),
        Activation::Relu => {
            let output = TchTensor::new(activated_in_place(activation, y));
            (output.clone(), Some(output))
        }
        Activation::Silu | Activation::Gelu | Activation::Sigmoid => {
            let y = TchTensor::new(y);
            (activated(activation, &y), Some(y))
        }
    }
}

/// A new tensor, but for the identity: `x` itself.
fn activated(activation: Activation, x: &TchTensor) -> TchTensor {
    match activation {
        Activation::Identity => x.clone(),
        Activation::Relu => TchTensor::new(x.tensor.relu()),
        Activation::Silu => TchTensor::new(x.tensor.silu()),
        Activation::Gelu => TchTensor::new(x.tensor.gelu("none")),
        Activation::Sigmoid => TchTensor::new(x.tensor.sigmoid()),
    }
}

fn activated_gradient(activation: Activation, x: &Tensor, dy: &Tensor) -> Tensor {
    match activation {
        Activation::Identity => dy.shallow_clone(),
        Activation::Relu => x.threshold_backward(dy, 0),
        Activation::Silu => x.silu_backward(dy),
        Activation::Gelu => x.gelu_backward(dy, "none"),
        Activation::Sigmoid => Tensor::sigmoid_backward(dy, &x.sigmoid()),
    }
}

/// `[.., width]` as `[rows, width]`.
fn rows(x: &Tensor) -> Tensor {
    let width = x.size().last().copied().unwrap_or(1);
    x.reshape([-1, width])
}

/// Queries, keys and values of `[batch, tokens, 3 * heads * width]`, each `[batch, heads, tokens, width]`, as views.
fn parts(qkv: &Tensor, heads: usize) -> [Tensor; 3] {
    let sizes = qkv.size();
    let heads = integer(heads);
    let split = qkv.reshape([sizes[0], sizes[1], 3, heads, sizes[2] / 3 / heads]).permute([2, 0, 3, 1, 4]);
    [0, 1, 2].map(|part| split.select(0, part))
}

/// Logarithms of the sums of the exponential scores beyond which attention is computed score by score.
const LARGE_LOG_SUM: f64 = 1000.0;

/// Attention `[batch, heads, tokens, width]`, and what its gradients need: the logarithms of the sums, `[batch, heads,
/// tokens]`, or the weights, `[batch, heads, tokens, tokens]`.
///
/// ATen's fused attention gives zeros for a row of scores that are not numbers, and in single precision the logarithm of
/// the sum of large ones has too few digits to find the weights again; then the weights are computed and kept.
fn attention(qkv: &Tensor, heads: usize) -> (Tensor, Tensor) {
    let [q, k, v] = parts(qkv, heads);
    let (y, log_sums) =
        Tensor::internal_scaled_dot_product_flash_attention_for_cpu(&q, &k, &v, 0.0, false, None::<&Tensor>, None);
    let small = || log_sums.abs().max().double_value(&[]) <= LARGE_LOG_SUM;
    if qkv.numel() == 0 || qkv.sum(Kind::Float).double_value(&[]).is_finite() && small() {
        return (y, log_sums);
    }
    let weights = (&q * scale_of_scores(&q)).matmul(&k.transpose(2, 3)).softmax(3, Kind::Float);
    // Laid out as that of the fused attention.
    let y = weights.matmul(&v).transpose(1, 2).contiguous().transpose(1, 2);
    (y, weights)
}

fn attention_gradients(dy: &Tensor, [q, k, v]: [&Tensor; 3], y: &Tensor, kept: &Tensor) -> [Tensor; 3] {
    let none = None::<&Tensor>;
    if kept.dim() == 3 {
        let (dq, dk, dv) = Tensor::internal_scaled_dot_product_flash_attention_for_cpu_backward(
            dy, q, k, v, y, kept, 0.0, false, none, None,
        );
        return [dq, dk, dv];
    }
    let d_weights = dy.matmul(&v.transpose(2, 3));
    let d_scores = Tensor::internal_softmax_backward_data(&d_weights, kept, 3, Kind::Float) * scale_of_scores(q);
    [d_scores.matmul(k), d_scores.transpose(2, 3).matmul(q), kept.transpose(2, 3).matmul(dy)]
}

/// 1 / sqrt(width), by which scores are multiplied.
fn scale_of_scores(q: &Tensor) -> f64 {
    (q.size()[3] as f64).powf(-0.5)
}

/// A vector over the channels in the rank of `x`.
fn per_channel(vector: &Tensor, x: &Tensor) -> Tensor {
    let mut sizes = vec![1; x.dim()];
    sizes[1] = -1;
    vector.view(&sizes[..])
}

/// All axes but the first two.
fn space(x: &Tensor) -> Vec<i64> {
    (2..x.dim()).map(integer).collect()
}

/// Stride and padding of as many axes as `x` has in space.
fn spatial(settings: Convolution, x: &Tensor) -> (Vec<i64>, Vec<i64>) {
    let from = 5 - x.dim();
    (integers(&settings.stride[from..]), integers(&settings.padding[from..]))
}

fn integers(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().copied().map(integer).collect()
}

fn integer(size: usize) -> i64 {
    size.try_into().unwrap_or(i64::MAX)
}
