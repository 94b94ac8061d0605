//! Batch norm with the activation after it, and in inference with the convolution before it.
//!
//! Which statistics are used, and when the running ones move, is as in burn's `BatchNorm::forward`: those of the batch on an
//! autodiff device while the layer trains, the running ones otherwise. In inference nothing between convolution and
//! activation depends on the data, so scale and shift of the batch norm go into weights and bias of the convolution, or over its
//! output if that is smaller.

use burn::module::Param;
use burn::nn::BatchNorm;
use burn::nn::conv::{Conv2d, Conv3d};
use burn::tensor::{Device, Tensor};

use super::calls::{self, Link, any};
use super::operation::{Convolution, Operation};
use super::precision::{in_single, is_half};
use super::{
    Activation, act, conv_link, conv2d, conv3d, has_kernels, has_kernels_on_host, infers_on_kernels, knows,
    settings_2d, settings_3d,
};

/// `activation(norm.forward(x))` for `x [batch, channels, space..]`.
pub(crate) fn bn_act<const D: usize>(norm: &BatchNorm, x: Tensor<D>, activation: Activation) -> Tensor<D> {
    if is_half(&x) && !has_kernels(&x) {
        return in_single(x, |x| bn_act(norm, x, activation));
    }
    if !covered(norm, &x) {
        return act(norm.forward(x), activation);
    }
    let device = x.device();
    if !trains(norm, &device) {
        let [scale, shift] = fixed(norm, &device);
        return calls::three(x, scale, shift, Operation::Affine { activation });
    }
    by_batch(norm, x, activation, None)
}

/// Whether kernels cover the norm of `x`.
fn covered<const D: usize>(norm: &BatchNorm, x: &Tensor<D>) -> bool {
    let (gamma, beta) = (norm.gamma.val(), norm.beta.val());
    let sizes = x.dims();
    has_kernels(x)
        && has_kernels(&gamma)
        && has_kernels(&beta)
        && sizes.get(1) == Some(&gamma.dims()[0])
        && !sizes.contains(&0)
}

/// Whether the statistics are those of the batch.
fn trains(norm: &BatchNorm, device: &Device) -> bool {
    device.is_autodiff() && norm.training.is_enabled()
}

/// Batch norm by the statistics of the batch, its activation, and the `next` operation, if any, in the same node of the
/// graph.
fn by_batch<const D: usize>(norm: &BatchNorm, x: Tensor<D>, activation: Activation, next: Option<Link>) -> Tensor<D> {
    let device = x.device();
    let operation = Operation::BatchNorm { epsilon: norm.epsilon, activation };
    let link = (operation, vec![any(norm.gamma.val()), any(norm.beta.val())]);
    let (y, [mean, variance]) = calls::norm(x, std::iter::once(link).chain(next).collect());
    let moved = |running: Tensor<1>, of_batch: Tensor<1>| {
        let kept = running.to_device(&device).mul_scalar(1.0 - norm.momentum);
        kept.add(of_batch.detach().mul_scalar(norm.momentum)).detach()
    };
    norm.running_mean.update(moved(norm.running_mean.value_sync(), mean));
    norm.running_var.update(moved(norm.running_var.value_sync(), variance));
    y
}

/// `activation(norm(conv(x)))` over pictures.
pub(crate) fn conv_norm_2d(conv: &Conv2d, norm: &BatchNorm, x: Tensor<4>, activation: Activation) -> Tensor<4> {
    let bias = conv.bias.as_ref().map(Param::val);
    let folded = settings_2d(conv).and_then(|settings| folded(settings, conv.weight.val(), bias, norm, &x, activation));
    folded.unwrap_or_else(|| bn_act(norm, conv2d(conv, x), activation))
}

/// `activation(norm(conv(x)))` over volumes.
pub(crate) fn conv_norm_3d(conv: &Conv3d, norm: &BatchNorm, x: Tensor<5>, activation: Activation) -> Tensor<5> {
    let bias = conv.bias.as_ref().map(Param::val);
    let folded = settings_3d(conv).and_then(|settings| folded(settings, conv.weight.val(), bias, norm, &x, activation));
    folded.unwrap_or_else(|| bn_act(norm, conv3d(conv, x), activation))
}

/// `second(first(x))` over volumes, each as in [`conv_norm_3d`]. Training does not keep the input of the second convolution,
/// the largest tensor of a block besides the output of the first, but computes it again from that: one batch norm.
pub(crate) fn two_conv_norms_3d([first, second]: [(&Conv3d, &BatchNorm, Activation); 2], x: Tensor<5>) -> Tensor<5> {
    let (conv, norm, activation) = first;
    if !trains(norm, &x.device()) {
        return conv_norm_3d(second.0, second.1, conv_norm_3d(conv, norm, x, activation), second.2);
    }
    let x = conv3d(conv, x);
    let (weight, bias) = (second.0.weight.val(), second.0.bias.as_ref().map(Param::val));
    let next = settings_3d(second.0).and_then(|settings| conv_link(settings, &x, &weight, bias.as_ref()));
    let x = match next {
        Some(next) if covered(norm, &x) && has_kernels_on_host(&x) => by_batch(norm, x, activation, Some(next)),
        _ => conv3d(second.0, bn_act(norm, x, activation)),
    };
    bn_act(second.1, x, second.2)
}

/// Convolution, batch norm and activation where nothing is being trained, if kernels cover them.
fn folded<const D: usize>(
    settings: Convolution,
    weight: Tensor<D>,
    bias: Option<Tensor<1>>,
    norm: &BatchNorm,
    x: &Tensor<D>,
    activation: Activation,
) -> Option<Tensor<D>> {
    if !(infers_on_kernels(x) && infers_on_kernels(&weight) && infers_on_kernels(&norm.gamma.val())) {
        return None;
    }
    let channels = weight.dims()[0];
    let of_norm = parameters(norm, channels, &x.device())?;
    if !bias.as_ref().is_none_or(|bias| fits(bias, channels)) || !knows(settings, x, &weight) {
        return None;
    }
    let settings = Convolution { activation, ..settings };
    let parameters = std::iter::once(any(weight)).chain(of_norm.into_iter().chain(bias).map(any)).collect();
    Some(calls::chain(x.clone(), vec![(Operation::NormedConv { settings, epsilon: norm.epsilon }, parameters)]))
}

/// Batch norm by its running statistics as a scale and a shift for each channel.
fn fixed(norm: &BatchNorm, device: &Device) -> [Tensor<1>; 2] {
    let [mean, variance] = statistics(norm, device);
    scale_and_shift(norm.gamma.val(), norm.beta.val(), mean, variance, norm.epsilon)
}

/// Gamma, beta, running mean and variance, if kernels cover them. A wrong number of channels is left to burn, which reports the error.
pub(super) fn parameters(norm: &BatchNorm, channels: usize, device: &Device) -> Option<[Tensor<1>; 4]> {
    let [mean, variance] = statistics(norm, device);
    let of_norm = [norm.gamma.val(), norm.beta.val(), mean, variance];
    of_norm.iter().all(|of_norm| fits(of_norm, channels)).then_some(of_norm)
}

/// Whether kernels cover a number for each channel.
pub(super) fn fits(of_channels: &Tensor<1>, channels: usize) -> bool {
    has_kernels(of_channels) && of_channels.dims() == [channels]
}

/// The running mean and variance.
fn statistics(norm: &BatchNorm, device: &Device) -> [Tensor<1>; 2] {
    [&norm.running_mean, &norm.running_var].map(|running| running.value().to_device(device))
}

/// The scale `gamma / sqrt(variance + epsilon)`, and the shift that maps the mean to `beta`.
pub(super) fn scale_and_shift(
    gamma: Tensor<1>,
    beta: Tensor<1>,
    mean: Tensor<1>,
    variance: Tensor<1>,
    epsilon: f64,
) -> [Tensor<1>; 2] {
    let scale = gamma / (variance + epsilon).sqrt();
    let shift = beta - mean * scale.clone();
    [scale, shift]
}
