//! The fused operations on a GPU of `LibTorch`, by its own operations and their gradients.
//!
//! burn composes gradients, norms and activations of several operations, each of which reads and writes whole tensors, and the gradient
//! of a convolution's weights of other convolutions. `LibTorch` has all of them as single operations.
//!
//! A layer computes in the type of its input, single or half precision. Parameters and their gradients are in single precision, and so are
//! the statistics of norms.

mod activation;
mod foreign;
mod tokens;

use burn::backend::LibTorch;
use burn_tch::TchTensor;
use tch::{Kind, Tensor};

use super::operation::{Convolution, Forward, Operation, Pooling};
use crate::kernels::Activation;
use crate::kernels::adamw::Settings;

/// The input of a norm and what its gradients need besides.
struct Norm<'a> {
    x: &'a Tensor,
    gamma: &'a Tensor,
    mean: &'a Tensor,
    inverse_deviation: &'a Tensor,
}

pub(super) fn forward(operation: Operation, inputs: &[TchTensor], keep: bool) -> Forward<LibTorch> {
    let plain = |output: Tensor, saved: Vec<TchTensor>| Forward {
        output: TchTensor::new(output),
        statistics: None,
        saved: if keep { saved } else { vec![] },
    };
    match (operation, inputs) {
        (Operation::Conv(settings), [x, weight, bias @ ..]) => {
            let (x, weight) = (laid_out(x), of_kind(weight, x.tensor.kind()));
            let y = conv(settings, [&x.tensor, &weight.tensor], bias.first().map(|bias| &bias.tensor));
            plain(y, vec![x, weight])
        }
        (Operation::NormedConv { settings, epsilon }, [x, weight, of_norm @ ..]) => {
            plain(normed(settings, [&laid_out(x).tensor, &weight.tensor], of_norm, epsilon), vec![])
        }
        (Operation::BatchNorm { epsilon, activation }, [x, gamma, beta]) => {
            batch_norm([x, gamma, beta], epsilon, activation, keep)
        }
        (Operation::Affine { activation }, [x, scale, shift]) => {
            let [of_scale, of_shift] = [scale, shift].map(|of_channels| by_channel(&of_channels.tensor, &x.tensor));
            let z = &x.tensor * of_scale + of_shift;
            let (output, of_gradient) = activation::activated(activation, z, keep);
            let saved = [x, scale, shift].map(Clone::clone).into_iter().chain(of_gradient).collect();
            Forward { output, statistics: None, saved }
        }
        (Operation::Activate(activation), [x]) => plain(activation::activate(activation, &x.tensor), vec![x.clone()]),
        (Operation::Gate, [x, gate]) => plain(&x.tensor * &gate.tensor, vec![x.clone(), gate.clone()]),
        (Operation::AddRelu, [a, b]) => {
            let output = TchTensor::new((&a.tensor + &b.tensor).relu_());
            let saved = if keep { vec![output.clone()] } else { vec![] };
            Forward { output, statistics: None, saved }
        }
        (Operation::LayerNorm { epsilon }, [x, gamma, beta]) => {
            let in_single = x.tensor.to_kind(Kind::Float);
            let (y, mean, inverse_deviation) =
                in_single.native_layer_norm(gamma.tensor.size(), Some(&gamma.tensor), Some(&beta.tensor), epsilon);
            let statistics = [mean, inverse_deviation].map(TchTensor::new);
            let saved = [x.clone(), gamma.clone()].into_iter().chain(statistics).collect();
            plain(y.to_kind(x.tensor.kind()), saved)
        }
        (Operation::Linear, [x, weight, bias]) => {
            let weight = of_kind(weight, x.tensor.kind());
            plain(tokens::linear([&x.tensor, &weight.tensor, &bias.tensor]), vec![x.clone(), weight])
        }
        (Operation::Attention { heads }, [qkv]) => {
            let (y, weights) = tokens::attention(&qkv.tensor, heads);
            plain(y, vec![qkv.clone(), TchTensor::new(weights)])
        }
        (Operation::MaxPool(pooling), [x]) => {
            let [kernel, stride, padding] = of_pooling(pooling);
            let (y, indices) = x.tensor.max_pool2d_with_indices(kernel, stride, padding, [1, 1], false);
            plain(y, vec![x.clone(), TchTensor::new(indices)])
        }
        (Operation::DoubleBeside { .. }, [x, beside @ ..]) => {
            let sizes = x.tensor.size();
            let doubled = x.tensor.upsample_nearest2d([2 * sizes[2], 2 * sizes[3]], None, None);
            let output = match beside {
                [beside, ..] => Tensor::cat(&[&doubled, &beside.tensor], 1),
                [] => doubled,
            };
            plain(output, vec![])
        }
        (Operation::Average { .. }, [x]) => plain(x.tensor.mean_dim(space(&x.tensor), true, None), vec![]),
        (operation, inputs) => unreachable!("{operation:?} of {} tensors on a GPU", inputs.len()),
    }
}

pub(super) fn backward(
    operation: Operation,
    saved: &[TchTensor],
    gradient: TchTensor,
    needed: &[bool],
) -> Vec<Option<TchTensor>> {
    let dy = &gradient.tensor;
    let some = |gradient: Tensor| Some(TchTensor::new(gradient));
    match (operation, saved) {
        (Operation::Conv(settings), [x, weight]) => {
            let (stride, padding) = settings.spatial(&x.tensor);
            let wanted = [needed[0], needed[1], needed.get(2).is_some_and(|&needed| needed)];
            let both = [&x.tensor, &weight.tensor];
            let groups = integer(settings.groups);
            let [dx, d_weight, d_bias] = foreign::convolution_gradients(dy, both, [&stride, &padding], groups, wanted);
            vec![dx.map(TchTensor::new), d_weight.as_ref().map(of_parameter), d_bias.as_ref().map(of_parameter)]
        }
        (Operation::BatchNorm { epsilon, activation }, [x, gamma, mean, inverse_deviation, of_gradient @ ..]) => {
            let norm = Norm {
                x: &x.tensor,
                gamma: &gamma.tensor,
                mean: &mean.tensor,
                inverse_deviation: &inverse_deviation.tensor,
            };
            let dz = activation::through(activation, gradient, of_gradient);
            foreign::batch_norm_gradients(&dz.tensor, &norm, epsilon).map(|found| found.map(TchTensor::new)).into()
        }
        (Operation::Affine { activation }, [x, scale, shift, of_gradient @ ..]) => {
            let dz = activation::through(activation, gradient, of_gradient).tensor;
            let over: Vec<i64> = std::iter::once(0).chain(space(&dz)).collect();
            let dx = &dz * by_channel(&scale.tensor, &dz);
            let d_scale = (&dz * &x.tensor).sum_dim_intlist(&over[..], false, scale.tensor.kind());
            let d_shift = dz.sum_dim_intlist(&over[..], false, shift.tensor.kind());
            vec![some(dx), some(d_scale), some(d_shift)]
        }
        (Operation::Activate(activation), [x]) => {
            // Those that read the output compute it again.
            let read = match activation {
                Activation::Sigmoid => TchTensor::new(x.tensor.sigmoid()),
                _ => x.clone(),
            };
            vec![Some(activation::through(activation, gradient, &[read]))]
        }
        (Operation::Gate, [x, gate]) => {
            let d_gate = (dy * &x.tensor).sum_dim_intlist(&space(dy)[..], true, None::<Kind>);
            vec![some(dy * &gate.tensor), some(d_gate)]
        }
        (Operation::AddRelu, [y]) => {
            let gradient = activation::through(Activation::Relu, gradient, std::slice::from_ref(y));
            vec![Some(gradient.clone()), Some(gradient)]
        }
        (Operation::LayerNorm { .. }, [x, gamma, mean, inverse_deviation]) => {
            let in_single = x.tensor.to_kind(Kind::Float);
            let norm = Norm {
                x: &in_single,
                gamma: &gamma.tensor,
                mean: &mean.tensor,
                inverse_deviation: &inverse_deviation.tensor,
            };
            let [dx, d_gamma, d_beta] = foreign::layer_norm_gradients(&dy.to_kind(Kind::Float), &norm);
            let dx = dx.map(|dx| TchTensor::new(dx.to_kind(x.tensor.kind())));
            vec![dx, d_gamma.map(TchTensor::new), d_beta.map(TchTensor::new)]
        }
        (Operation::Linear, [x, weight]) => tokens::linear_gradients([&x.tensor, &weight.tensor], dy, needed),
        (Operation::Attention { heads }, [qkv, weights]) => {
            vec![some(tokens::attention_gradient(&qkv.tensor, heads, &weights.tensor, dy))]
        }
        (Operation::DoubleBeside { channels }, []) => {
            let sizes = dy.size();
            let channels = integer(channels);
            let of_doubled = dy.narrow(1, 0, channels);
            let of_x = [sizes[0], channels, sizes[2] / 2, sizes[3] / 2];
            let dx = Tensor::upsample_nearest2d_backward(&of_doubled, [sizes[2], sizes[3]], of_x, None, None);
            let d_beside = needed.get(1).is_some_and(|&needed| needed);
            vec![some(dx), d_beside.then(|| TchTensor::new(dy.narrow(1, channels, sizes[1] - channels)))]
        }
        (Operation::MaxPool(pooling), [x, indices]) => {
            let [kernel, stride, padding] = of_pooling(pooling);
            let indices = &indices.tensor;
            let dx = x.tensor.max_pool2d_with_indices_backward(dy, kernel, stride, padding, [1, 1], false, indices);
            vec![some(dx)]
        }
        (Operation::Average { size }, []) => {
            let of_output = dy.size();
            let of_space = &size[5 - of_output.len()..];
            let sizes: Vec<i64> = of_output[..2].iter().copied().chain(of_space.iter().map(|&n| integer(n))).collect();
            let each = dy / of_space.iter().product::<usize>() as f64;
            let everywhere = each.expand(sizes, false);
            let dx = if channels_are_last(&everywhere) {
                foreign::channels_last(&everywhere)
            } else {
                everywhere.contiguous()
            };
            vec![some(dx)]
        }
        (operation, saved) => unreachable!("{operation:?} with {} saved tensors on a GPU", saved.len()),
    }
}

/// The most bytes that `LibTorch` had reserved on a GPU; `None` before it computed there.
pub(super) fn reserved(index: usize) -> Option<u64> {
    foreign::reserved(index)
}

/// `AdamW`, step `time`, from 1: the parameter and its moments, changed in place unless another tensor shares their memory.
pub(super) fn adamw(tensors: [TchTensor; 4], settings: &Settings, time: usize) -> [TchTensor; 3] {
    let [parameter, gradient, first, second] = tensors;
    let gradient = gradient.tensor.contiguous();
    let [parameter, first, second] = [parameter, first, second].map(|tensor| {
        let alone = tensor.can_mut() && tensor.tensor.is_contiguous();
        if alone { tensor } else { TchTensor::new(tensor.tensor.contiguous().copy()) }
    });
    let Settings { learning_rate, beta_1, beta_2, epsilon, weight_decay } = *settings;
    let time = Tensor::full([0_i64; 0], time as f64, (Kind::Float, parameter.tensor.device()));
    let [beta_1, beta_2, epsilon, weight_decay] = [beta_1, beta_2, epsilon, weight_decay].map(f64::from);
    foreign::adamw(
        [&parameter.tensor, &gradient, &first.tensor, &second.tensor],
        &time,
        [learning_rate, beta_1, beta_2, epsilon, weight_decay],
    );
    [parameter, first, second]
}

/// Batch norm by the statistics of the batch, and its activation.
fn batch_norm(
    [x, gamma, beta]: [&TchTensor; 3],
    epsilon: f64,
    activation: Activation,
    keep: bool,
) -> Forward<LibTorch> {
    // A momentum of 1 leaves nothing but this batch in the running statistics.
    let running = [0, 1].map(|_| gamma.tensor.zeros_like());
    let (z, mean, inverse_deviation) = x.tensor.native_batch_norm(
        Some(&gamma.tensor),
        Some(&beta.tensor),
        Some(&running[0]),
        Some(&running[1]),
        true,
        1.0,
        epsilon,
    );
    let [_, unbiased] = running;
    let n = (x.tensor.numel() / gamma.tensor.numel()) as f64;
    // Of a single value the unbiased variance is not defined, and the biased one is 0.
    let variance = TchTensor::new(if n > 1.0 { unbiased * ((n - 1.0) / n) } else { gamma.tensor.zeros_like() });
    let [mean, inverse_deviation] = [mean, inverse_deviation].map(TchTensor::new);
    let (output, of_gradient) = activation::activated(activation, z, keep);
    let statistics = Some([mean.clone(), variance]);
    let saved = if keep {
        [x.clone(), gamma.clone(), mean, inverse_deviation].into_iter().chain(of_gradient).collect()
    } else {
        vec![]
    };
    Forward { output, statistics, saved }
}

/// The convolution and the activation of its settings.
pub(super) fn conv(settings: Convolution, [x, weight]: [&Tensor; 2], bias: Option<&Tensor>) -> Tensor {
    let (stride, padding) = settings.spatial(x);
    let (ones, zeros) = (vec![1; stride.len()], vec![0; stride.len()]);
    let bias = bias.map(|bias| bias.to_kind(x.kind()));
    let y = x.convolution(weight, bias, stride, padding, ones, false, zeros, integer(settings.groups));
    activation::in_place(settings.activation, y)
}

/// Convolution, batch norm by statistics that are given, and activation; `of_norm` are gamma, beta, mean, variance and perhaps the bias
/// of the convolution.
fn normed(settings: Convolution, [x, weight]: [&Tensor; 2], of_norm: &[TchTensor], epsilon: f64) -> Tensor {
    let at = |n: usize| of_norm.get(n).map(|tensor| &tensor.tensor);
    let [gamma, beta, mean, variance] = [0, 1, 2, 3].map(|n| at(n).expect("four tensors of a norm"));
    let scale = gamma / (variance + epsilon).sqrt();
    let shift = match at(4) {
        Some(bias) => beta + (bias - mean) * &scale,
        None => beta - mean * &scale,
    };
    let mut of_outputs = vec![1; weight.dim()];
    of_outputs[0] = -1;
    let scaled = (weight * scale.reshape(of_outputs)).to_kind(x.kind());
    conv(settings, [x, &scaled], Some(&shift))
}

/// A picture in half precision with its channels last in memory, as tensor cores read it; another tensor as it is.
fn laid_out(x: &TchTensor) -> TchTensor {
    if !channels_are_last(&x.tensor) {
        return x.clone();
    }
    let found = foreign::channels_last(&x.tensor);
    // The same memory belongs to the same owner.
    if found.data_ptr() == x.tensor.data_ptr() { x.clone() } else { TchTensor::new(found) }
}

/// Whether [`laid_out`] puts the channels last.
fn channels_are_last(x: &Tensor) -> bool {
    x.dim() == 4 && x.kind() != Kind::Float
}

/// The tensor in another type; itself if it has this type.
fn of_kind(tensor: &TchTensor, kind: Kind) -> TchTensor {
    if tensor.tensor.kind() == kind { tensor.clone() } else { TchTensor::new(tensor.tensor.to_kind(kind)) }
}

/// The gradient of a parameter, which is in single precision and contiguous.
fn of_parameter(gradient: &Tensor) -> TchTensor {
    TchTensor::new(gradient.to_kind(Kind::Float).contiguous())
}

/// The axes after batch and channels.
fn space(x: &Tensor) -> Vec<i64> {
    (2..integer(x.dim())).collect()
}

/// A number for each channel of `x`, to be broadcast over it.
fn by_channel(of_channels: &Tensor, x: &Tensor) -> Tensor {
    let mut sizes = vec![1; x.dim()];
    sizes[1] = -1;
    of_channels.reshape(sizes)
}

/// Size of the windows, stride and padding.
fn of_pooling(Pooling { kernel, stride, padding, .. }: Pooling) -> [[i64; 2]; 3] {
    [kernel, stride, padding].map(|sizes| sizes.map(integer))
}

impl Convolution {
    /// Stride and padding of as many axes as `x` has in space.
    fn spatial(&self, x: &Tensor) -> (Vec<i64>, Vec<i64>) {
        let of_axes = |sizes: &[usize; 3]| sizes[5 - x.dim()..].iter().copied().map(integer).collect();
        (of_axes(&self.stride), of_axes(&self.padding))
    }
}

pub(super) fn integer(size: usize) -> i64 {
    size.try_into().unwrap_or(i64::MAX)
}
