//! Batch norm with the activation after it, and in inference with the convolution before it.
//!
//! Training computes a norm together with the operation after it ([`Unnormed`]) and does not keep the tensor between them.
//!
//! Which statistics are used, and when the running ones move, is as in burn's `BatchNorm::forward`: those of the batch on an
//! autodiff device while the layer trains, the running ones otherwise. In inference nothing between convolution and
//! activation depends on the data, so scale and shift of the batch norm go into weights and bias of the convolution, or over its
//! output if that is smaller.

use burn::module::Param;
use burn::nn::BatchNorm;
use burn::nn::conv::{Conv2d, Conv3d};
use burn::tensor::{Device, Tensor};

use super::calls::{self, Any, Link, any};
use super::operation::{Convolution, Operation};
use super::precision::{in_single, is_half};
use super::{
    Activation, act, average, conv_link, conv2d, conv3d, double_beside, doubling_link, gate, has_kernels,
    has_kernels_on_host, infers_on_kernels, knows, settings_2d, settings_3d,
};
use crate::kernels::conv::{ConvKind, normed_depthwise};

/// A tensor, perhaps with a batch norm in training and its activation still to be applied, and perhaps squeeze and excitation.
///
/// The operation after it computes them in one node of the graph, which keeps the tensor before the norm alone: those after it, as
/// large, are computed again for the gradients.
pub(crate) struct Unnormed<'a, const D: usize> {
    pub(super) x: Tensor<D>,
    pub(super) norm: Option<(&'a BatchNorm, Activation)>,
    /// Squeeze and excite, if kernels cover them.
    excitation: Option<[Any; 4]>,
}

impl<const D: usize> From<Tensor<D>> for Unnormed<'_, D> {
    fn from(x: Tensor<D>) -> Self {
        Self { x, norm: None, excitation: None }
    }
}

impl<'a, const D: usize> Unnormed<'a, D> {
    pub(super) fn new(x: Tensor<D>, norm: &'a BatchNorm, activation: Activation) -> Self {
        Self { x, norm: Some((norm, activation)), excitation: None }
    }

    /// The tensor after norm, activation and excitation.
    pub(crate) fn finish(self) -> Tensor<D> {
        match self.norm {
            Some((norm, activation)) if self.excitation.is_some() => {
                by_batch(norm, self.x, first_link(norm, activation, self.excitation), vec![])
            }
            Some((norm, activation)) => bn_act(norm, self.x, activation),
            None => self.x,
        }
    }

    /// What `next` makes of the tensor after the norm, if kernels cover all of it, otherwise what `alone` makes of it.
    fn through(self, next: Option<Vec<Link>>, alone: impl FnOnce(Tensor<D>) -> Tensor<D>) -> Tensor<D> {
        match (self.norm, next) {
            (Some((norm, activation)), Some(next)) if covered(norm, &self.x) && has_kernels_on_host(&self.x) => {
                by_batch(norm, self.x, first_link(norm, activation, self.excitation), next)
            }
            (None, Some(next)) if next.len() > 1 && has_kernels_on_host(&self.x) => calls::chain(self.x, next),
            _ => alone(self.finish()),
        }
    }

    /// The convolution by `weight` of the tensor after norm and activation in one operation, if it is one that has such kernels.
    fn through_depthwise(&self, settings: Convolution, weight: &Tensor<D>) -> Option<Tensor<D>> {
        let (Some((norm, activation)), None) = (self.norm, &self.excitation) else { return None };
        let of_x = self.x.dims();
        let covered = covered(norm, &self.x)
            && has_kernels_on_host(&self.x)
            && has_kernels(weight)
            && knows(settings, of_x, weight)
            && normed_depthwise::covers(&settings.shape(&of_x, &weight.dims()));
        let operation = Operation::NormedDepthwise { epsilon: norm.epsilon, activation, settings };
        covered.then(|| by_batch(norm, self.x.clone(), (operation, vec![any(weight.clone())]), vec![]))
    }
}

/// `x` times the gates of its channels: `logistic(excite(activation(squeeze(means of x))))`, with the activation of `x`.
pub(crate) fn squeeze_excite<'a>(
    x: Unnormed<'a, 4>,
    [squeeze, excite]: [&Conv2d; 2],
    activation: Activation,
) -> Unnormed<'a, 4> {
    if let Some((norm, of_norm)) = x.norm
        && of_norm == activation
        && covered(norm, &x.x)
        && has_kernels_on_host(&x.x)
        && let Some(parameters) = of_excitation([squeeze, excite], x.x.dims())
    {
        return Unnormed { excitation: Some(parameters), ..x };
    }
    let x = x.finish();
    let pooled = average(x.clone()); // [batch, channels, 1, 1]
    let squeezed = act(conv2d(squeeze, pooled), activation);
    let gates = act(conv2d(excite, squeezed), Activation::Sigmoid);
    gate(x, gates).into()
}

/// Weight and bias of squeeze and of excite, if kernels cover both.
fn of_excitation([squeeze, excite]: [&Conv2d; 2], [batch, channels, ..]: [usize; 4]) -> Option<[Any; 4]> {
    let narrow = squeeze.weight.val().dims()[0];
    let parameters = |conv: &Conv2d, inputs: usize, outputs: usize| {
        let (weight, bias) = (conv.weight.val(), conv.bias.as_ref()?.val());
        let shape = settings_2d(conv)?.shape(&[batch, inputs, 1, 1], &weight.dims());
        let fits = weight.dims() == [outputs, inputs, 1, 1] && shape.kind() == Some(ConvKind::Pointwise);
        let covered = fits && has_kernels(&weight) && self::fits(&bias, outputs);
        covered.then(|| [any(weight), any(bias)])
    };
    let [squeeze, squeeze_bias] = parameters(squeeze, channels, narrow)?;
    let [excite, excite_bias] = parameters(excite, narrow, channels)?;
    Some([squeeze, squeeze_bias, excite, excite_bias])
}

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
    by_batch(norm, x, first_link(norm, activation, None), vec![])
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

/// Batch norm, activation and excitation.
fn first_link(norm: &BatchNorm, activation: Activation, excitation: Option<[Any; 4]>) -> Link {
    let epsilon = norm.epsilon;
    match excitation {
        Some(parameters) => (Operation::NormedSqueezeExcite { epsilon, activation }, parameters.into()),
        None => (Operation::BatchNorm { epsilon, activation }, vec![]),
    }
}

/// An operation that begins with the norm by the statistics of the batch, with its parameters besides those of the norm, and the
/// `next` ones, if any, in one node of the graph.
fn by_batch<const D: usize>(
    norm: &BatchNorm,
    x: Tensor<D>,
    (operation, parameters): Link,
    next: Vec<Link>,
) -> Tensor<D> {
    let device = x.device();
    let of_norm = [any(norm.gamma.val()), any(norm.beta.val())];
    let link = (operation, of_norm.into_iter().chain(parameters).collect());
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
pub(crate) fn conv_norm_2d<'a>(
    conv: &Conv2d,
    norm: &'a BatchNorm,
    x: Unnormed<'_, 4>,
    activation: Activation,
) -> Unnormed<'a, 4> {
    let layer = Layer {
        settings: settings_2d(conv),
        weight: conv.weight.val(),
        bias: conv.bias.as_ref().map(Param::val),
        norm,
    };
    layer.forward(x, activation, |x| conv2d(conv, x))
}

/// `activation(norm(conv(x)))` over volumes.
pub(crate) fn conv_norm_3d<'a>(
    conv: &Conv3d,
    norm: &'a BatchNorm,
    x: Unnormed<'_, 5>,
    activation: Activation,
) -> Unnormed<'a, 5> {
    let layer = Layer {
        settings: settings_3d(conv),
        weight: conv.weight.val(),
        bias: conv.bias.as_ref().map(Param::val),
        norm,
    };
    layer.forward(x, activation, |x| conv3d(conv, x))
}

/// As [`conv_norm_2d`] of `double_beside(x, beside)`, which training does not keep either.
pub(crate) fn doubled_conv_norm_2d<'a>(
    conv: &Conv2d,
    norm: &'a BatchNorm,
    x: Unnormed<'_, 4>,
    beside: Option<Tensor<4>>,
    activation: Activation,
) -> Unnormed<'a, 4> {
    if !trains(norm, &x.x.device()) {
        return conv_norm_2d(conv, norm, double_beside(x.finish(), beside).into(), activation);
    }
    let [batch, channels, height, width] = x.x.dims();
    let others = beside.as_ref().map_or(0, |beside| beside.dims()[1]);
    let doubled = [batch, channels + others, 2 * height, 2 * width];
    let next =
        doubling_link(&x.x, beside.as_ref()).zip(conv_2d_link(conv, doubled)).map(|(double, conv)| vec![double, conv]);
    Unnormed::new(x.through(next, |x| conv2d(conv, double_beside(x, beside))), norm, activation)
}

/// `conv.forward(x)` over pictures.
pub(crate) fn conv_2d_of(conv: &Conv2d, x: Unnormed<'_, 4>) -> Tensor<4> {
    let next = conv_2d_link(conv, x.x.dims()).map(|link| vec![link]);
    x.through(next, |x| conv2d(conv, x))
}

fn conv_2d_link(conv: &Conv2d, of_x: [usize; 4]) -> Option<Link> {
    conv_link(settings_2d(conv)?, of_x, &conv.weight.val(), conv.bias.as_ref().map(Param::val).as_ref())
}

/// A convolution and the norm after it.
struct Layer<'a, const D: usize> {
    settings: Option<Convolution>,
    weight: Tensor<D>,
    bias: Option<Tensor<1>>,
    norm: &'a BatchNorm,
}

impl<'a, const D: usize> Layer<'a, D> {
    /// The two layers; `conv` is the first alone.
    fn forward(
        self,
        x: Unnormed<'_, D>,
        activation: Activation,
        conv: impl FnOnce(Tensor<D>) -> Tensor<D>,
    ) -> Unnormed<'a, D> {
        let norm = self.norm;
        if trains(norm, &x.x.device()) {
            if let (Some(settings), None) = (self.settings, &self.bias)
                && let Some(y) = x.through_depthwise(settings, &self.weight)
            {
                return Unnormed::new(y, norm, activation);
            }
            // What a depthwise convolution reads is not computed again where its planes are small: it takes little memory.
            let settings = self.settings.filter(|settings| settings.groups == 1);
            let link = |settings| conv_link(settings, x.x.dims(), &self.weight, self.bias.as_ref());
            let next = settings.and_then(link).map(|link| vec![link]);
            return Unnormed::new(x.through(next, conv), norm, activation);
        }
        let x = x.finish();
        let folded = self.settings.and_then(|settings| folded(settings, self.weight, self.bias, norm, &x, activation));
        folded.unwrap_or_else(|| bn_act(norm, conv(x), activation)).into()
    }
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
    if !bias.as_ref().is_none_or(|bias| fits(bias, channels)) || !knows(settings, x.dims(), &weight) {
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
