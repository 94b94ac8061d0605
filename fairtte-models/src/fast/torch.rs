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
                let none = None::<&Tensor>;
                let (y, mean, inverse_deviation) =
                    of(0).native_batch_norm(Some(of(1)), Some(of(2)), none, none, true, 0.1, epsilon);
                // The variance of a single value comes out as a little less than 0 otherwise.
                let variance = (inverse_deviation.pow_tensor_scalar(-2.0) - epsilon).clamp_min(0.0);
                let [y, mean, inverse_deviation] = [y, mean, inverse_deviation].map(TchTensor::new);
                statistics = Some([mean.clone(), TchTensor::new(variance)]);
                (activated(activation, &y), vec![mean, inverse_deviation, y])
            }
            Operation::Affine { activation } => {
                let y = TchTensor::new(of(0) * per_channel(of(1), of(0)) + per_channel(of(2), of(0)));
                (activated(activation, &y), vec![y])
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
                let [q, k, v] = parts(of(0), heads);
                let (y, log_sums) = Tensor::internal_scaled_dot_product_flash_attention_for_cpu(
                    &q,
                    &k,
                    &v,
                    0.0,
                    false,
                    None::<&Tensor>,
                    None,
                );
                let mut sizes = of(0).size();
                sizes[2] /= 3;
                // The output is a view of `y`, which is kept.
                let y = TchTensor::new(y);
                let output = y.tensor.transpose(1, 2).reshape(&sizes[..]);
                let output = TchTensor::from_existing(output, y.storage.clone());
                (output, vec![y, TchTensor::new(log_sums)])
            }
            Operation::MaxPool(Pooling { kernel, stride, padding, .. }) => {
                let [kernel, stride, padding] = [kernel, stride, padding].map(|side| [integer(side); 2]);
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
        saved: Vec<TchTensor>,
        gradient: TchTensor,
        needed: &[bool],
    ) -> Vec<Option<TchTensor>> {
        let of = |n: usize| &saved[n].tensor;
        let dy = &gradient.tensor;
        let found = match operation {
            Operation::Conv(settings) => {
                let (stride, padding) = spatial(settings, of(0));
                let groups = settings.groups.try_into().unwrap_or(i64::MAX);
                shim::convolution_gradients(dy, of(0), of(1), &stride, &padding, groups, needed)
            }
            Operation::BatchNorm { epsilon, activation } => {
                let dy = activated_gradient(activation, of(5), dy);
                shim::batch_norm_gradients(&dy, of(0), of(1), of(3), of(4), epsilon)
            }
            Operation::Affine { activation } => {
                let dy = activated_gradient(activation, of(3), dy);
                let others: Vec<i64> = (0..of(0).dim()).filter(|&axis| axis != 1).map(integer).collect();
                let d_scale = (&dy * of(0)).sum_dim_intlist(&others[..], false, Kind::Float);
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
                let [y, log_sums] = [of(1), of(2)];
                let dy = dy.reshape(y.transpose(1, 2).size()).transpose(1, 2);
                let (dq, dk, dv) = Tensor::internal_scaled_dot_product_flash_attention_for_cpu_backward(
                    &dy,
                    &q,
                    &k,
                    &v,
                    y,
                    log_sums,
                    0.0,
                    false,
                    None::<&Tensor>,
                    None,
                );
                let parts = [dq, dk, dv].map(|part| part.transpose(1, 2)); // [batch, tokens, heads, width]
                vec![Some(Tensor::stack(&parts, 2).view(&of(0).size()[..]))]
            }
            Operation::MaxPool(Pooling { kernel, stride, padding, .. }) => {
                let [kernel, stride, padding] = [kernel, stride, padding].map(|side| [integer(side); 2]);
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

fn conv(settings: Convolution, x: &Tensor, weight: &Tensor, bias: Option<&TchTensor>) -> Tensor {
    let (stride, padding) = spatial(settings, x);
    let (ones, zeros) = (vec![1; stride.len()], vec![0; stride.len()]);
    let groups = settings.groups.try_into().unwrap_or(i64::MAX);
    let bias = bias.map(|bias| &bias.tensor);
    let mut y = x.convolution(weight, bias, stride, padding, ones, false, zeros, groups);
    match settings.activation {
        Activation::Identity => y,
        Activation::Relu => y.relu_(),
        Activation::Silu => y.silu_(),
        Activation::Gelu => y.gelu_("none"),
        Activation::Sigmoid => y.sigmoid_(),
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
