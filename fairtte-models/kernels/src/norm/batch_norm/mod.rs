//! Batch normalisation of `[batch, channels, plane]` with the activation after it, and its gradients.
//!
//! y = activation(h gamma + beta) with h = (x - mean) / sqrt(variance + epsilon), over batch and plane (Ioffe and Szegedy,
//! 2015, arXiv:1502.03167). With q = dy activation'(h gamma + beta) the gradients are `d_beta` = sum q, `d_gamma` = sum q h and
//! dx = gamma / deviation (q - mean q - h mean(q h)).
//!
//! These layers are limited by memory bandwidth, so one task takes all samples of a channel, which are in the cache in
//! its second pass; the activation costs no pass of its own, and only x, mean and deviation are kept for the gradients.
//! A channel with many values is divided among threads as well. The difference x - mean is taken first, and the
//! rounding error of the mean is kept separately, which preserves precision in a channel with a mean far above its
//! deviation. Planes too small for vectors are in `features.rs`.

#![expect(clippy::cast_possible_truncation, reason = "parameters of a channel are computed in double precision")]

pub(crate) mod channel;
pub(super) mod features;
mod planes;

use rayon::prelude::*;

use crate::activation::{Activation, Curve, with_curve};
use crate::norm::batch_norm::planes::Apply;
use crate::norm::moments::{Moments, PIECE, moments};
use crate::simd;
use crate::tasks::{by_channels, units_per_task};

/// A layer over `[batch, channels, plane]`.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// Number of values of one channel of one sample.
    pub plane: usize,
    /// The factor of each channel.
    pub gamma: &'a [f32],
    /// The shift of each channel.
    pub beta: &'a [f32],
    /// The activation after the normalisation.
    pub activation: Activation,
}

impl Layer<'_> {
    pub(crate) fn channels(&self) -> usize {
        self.gamma.len()
    }

    /// Number of values of one sample.
    pub(crate) fn sample(&self) -> usize {
        self.channels() * self.plane
    }

    pub(crate) fn check(&self, x: &[f32], output: &[f32]) {
        let Self { plane, gamma, beta, .. } = self;
        let channels = gamma.len();
        assert_eq!(beta.len(), channels, "one beta for each gamma");
        assert_eq!(x.len(), output.len(), "lengths of input and output");
        assert!(x.len().is_multiple_of(channels * plane), "whole samples of {channels} channels of {plane}");
    }

    /// How a channel of these moments is normalised.
    pub(crate) fn affine(&self, channel: usize, moments: &Moments, epsilon: f64) -> Affine {
        Affine::normalising(moments, self.gamma[channel], self.beta[channel], epsilon)
    }

    /// The planes of a channel in all samples.
    pub(crate) fn planes<'x>(&self, x: &'x [f32], channel: usize) -> impl Iterator<Item = &'x [f32]> + use<'x> {
        let plane = self.plane;
        x.chunks_exact(self.sample()).map(move |sample| &sample[channel * plane..][..plane])
    }

    /// As its gradients need it.
    pub(crate) fn normalised_by(&self, normalisation: Normalisation) -> Vec<Channel> {
        let Normalisation { mean, inverse_deviation, offset } = normalisation;
        let lengths = [mean.len(), inverse_deviation.len(), offset.len()];
        assert_eq!(lengths, [self.channels(); 3], "one number for each channel");
        let channel = |index: usize| Channel {
            mean: mean[index],
            inverse_deviation: inverse_deviation[index],
            offset: offset[index],
            gamma: self.gamma[index],
            beta: self.beta[index],
        };
        (0..self.channels()).map(channel).collect()
    }
}

/// The statistics that a layer in training mode measured, per channel; zeros if there are no values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Means.
    pub mean: Vec<f32>,
    /// Variances, biased (divided by the count).
    pub variance: Vec<f32>,
    /// 1 / sqrt(variance + epsilon).
    pub inverse_deviation: Vec<f32>,
    /// The rounding error of the mean, in deviations.
    pub offset: Vec<f32>,
    /// gamma / sqrt(variance + epsilon).
    pub scale: Vec<f32>,
    /// beta, and the rounding error of the mean times the scale.
    pub shift: Vec<f32>,
}

impl Statistics {
    pub(crate) fn from_moments(moments: &[Moments], layer: &Layer, epsilon: f64) -> Self {
        let offset = |channel: &Moments| (rounded(channel.mean) - channel.mean) * inverse_deviation(channel, epsilon);
        let affine = Affine::of_channels(moments, layer.gamma, layer.beta, epsilon);
        Self {
            scale: affine.iter().map(|channel| channel.scale).collect(),
            shift: affine.iter().map(|channel| channel.shift).collect(),
            mean: moments.iter().map(|channel| channel.mean as f32).collect(),
            variance: moments.iter().map(|channel| channel.variance() as f32).collect(),
            inverse_deviation: moments.iter().map(|channel| inverse_deviation(channel, epsilon) as f32).collect(),
            offset: moments.iter().map(|channel| offset(channel) as f32).collect(),
        }
    }

    /// What [`gradients`] needs.
    pub fn normalisation(&self) -> Normalisation<'_> {
        Normalisation { mean: &self.mean, inverse_deviation: &self.inverse_deviation, offset: &self.offset }
    }

    /// What [`repeat`] needs.
    pub fn applied(&self) -> Applied<'_> {
        Applied { mean: &self.mean, scale: &self.scale, shift: &self.shift }
    }
}

/// How each channel was normalised: `h = (x - mean) inverse_deviation + offset`.
#[derive(Clone, Copy, Debug)]
pub struct Normalisation<'a> {
    /// See [`Statistics::mean`].
    pub mean: &'a [f32],
    /// See [`Statistics::inverse_deviation`].
    pub inverse_deviation: &'a [f32],
    /// See [`Statistics::offset`].
    pub offset: &'a [f32],
}

/// What the activation of each channel was applied to: `(x - mean) scale + shift`.
#[derive(Clone, Copy, Debug)]
pub struct Applied<'a> {
    /// See [`Statistics::mean`].
    pub mean: &'a [f32],
    /// See [`Statistics::scale`].
    pub scale: &'a [f32],
    /// See [`Statistics::shift`].
    pub shift: &'a [f32],
}

impl Applied<'_> {
    pub(crate) fn of(&self, channel: usize) -> Affine {
        Affine { mean: self.mean[channel], scale: self.scale[channel], shift: self.shift[channel] }
    }
}

/// Gradients of the parameters of a layer, per channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterGradients {
    /// Of [`Layer::gamma`].
    pub gamma: Vec<f32>,
    /// Of [`Layer::beta`].
    pub beta: Vec<f32>,
}

impl ParameterGradients {
    /// From the sums of q and of q h of each channel.
    pub(crate) fn from_sums(sums: &[[f64; 2]]) -> Self {
        let [beta, gamma] = [0, 1].map(|which| sums.iter().map(|sums| sums[which] as f32).collect());
        Self { gamma, beta }
    }
}

fn rounded(value: f64) -> f64 {
    f64::from(value as f32)
}

pub(super) fn inverse_deviation(moments: &Moments, epsilon: f64) -> f64 {
    1.0 / (moments.variance() + epsilon).sqrt()
}

/// (x - mean) scale + shift of one channel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Affine {
    pub(super) mean: f32,
    pub(super) scale: f32,
    pub(super) shift: f32,
}

impl Affine {
    pub(super) fn normalising(moments: &Moments, gamma: f32, beta: f32, epsilon: f64) -> Self {
        let scale = f64::from(gamma) * inverse_deviation(moments, epsilon);
        // The rounding error of the mean goes into the shift.
        let shift = f64::from(beta) + (rounded(moments.mean) - moments.mean) * scale;
        Self { mean: moments.mean as f32, scale: scale as f32, shift: shift as f32 }
    }

    pub(super) fn of_channels(moments: &[Moments], gamma: &[f32], beta: &[f32], epsilon: f64) -> Vec<Self> {
        let channels = moments.iter().zip(gamma.iter().zip(beta));
        channels.map(|(moments, (&gamma, &beta))| Self::normalising(moments, gamma, beta, epsilon)).collect()
    }
}

/// A channel as its gradients need it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Channel {
    pub(super) mean: f32,
    pub(super) inverse_deviation: f32,
    pub(super) offset: f32,
    pub(super) gamma: f32,
    pub(super) beta: f32,
}

/// dx = q factor + h slope + constant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backward {
    pub(super) factor: f32,
    pub(super) slope: f32,
    pub(super) constant: f32,
}

impl Backward {
    /// From the sums of q and of q h over `count` values; with `frozen` statistics dx does not depend on the sums.
    pub(super) fn new(channel: Channel, sums: [f64; 2], count: f64, frozen: bool) -> Self {
        let factor = f64::from(channel.gamma) * f64::from(channel.inverse_deviation);
        let [constant, slope] = if frozen { [0.0; 2] } else { sums.map(|sum| -factor * sum / count) };
        Self { factor: factor as f32, slope: slope as f32, constant: constant as f32 }
    }
}

/// `y = activation(normalised x)` with the statistics of `x` itself.
///
/// # Panics
/// If the lengths do not fit together.
pub fn forward(x: &[f32], layer: &Layer, epsilon: f64, y: &mut [f32]) -> Statistics {
    layer.check(x, y);
    if x.is_empty() {
        return Statistics::from_moments(&vec![Moments::of_nothing(); layer.channels()], layer, epsilon);
    }
    with_curve!(layer.activation, curve => if layer.plane < features::LIMIT {
        features::forward(x, layer, epsilon, curve, y)
    } else {
        forward_planes(x, layer, epsilon, curve, y)
    })
}

/// As [`forward`] of the same `x`, with the same bits, from what that measured ([`Statistics::applied`]): one pass.
///
/// # Panics
/// If the lengths do not fit together.
pub fn repeat(x: &[f32], layer: &Layer, applied: Applied, y: &mut [f32]) {
    layer.check(x, y);
    let lengths = [applied.mean.len(), applied.scale.len(), applied.shift.len()];
    assert_eq!(lengths, [layer.channels(); 3], "one number for each channel");
    let tasks = Tasks::new(x.len(), layer);
    y.par_chunks_mut(tasks.size).zip(x.par_chunks(tasks.size)).enumerate().for_each(|(task, (y, x))| {
        tasks.repeat(task, x, applied, y);
    });
}

/// Gradients of [`forward`]: `gradient` holds that of `y` on entry and that of `x` on exit.
///
/// # Panics
/// If the lengths do not fit together.
pub fn gradients(x: &[f32], layer: &Layer, normalisation: Normalisation, gradient: &mut [f32]) -> ParameterGradients {
    backward(x, layer, normalisation, false, gradient)
}

/// `y = activation(x gamma + beta)`: the layer in evaluation mode, with its statistics included in `gamma` and `beta`.
///
/// # Panics
/// If the lengths do not fit together.
pub fn apply(x: &[f32], layer: &Layer, y: &mut [f32]) {
    layer.check(x, y);
    let tasks = Tasks::new(x.len(), layer);
    y.par_chunks_mut(tasks.size).zip(x.par_chunks(tasks.size)).enumerate().for_each(|(task, (y, x))| {
        y.copy_from_slice(x);
        tasks.apply(task, y);
    });
}

/// As [`apply`], in place.
///
/// # Panics
/// If the length does not fit.
pub fn apply_in_place(values: &mut [f32], layer: &Layer) {
    layer.check(values, values);
    let tasks = Tasks::new(values.len(), layer);
    values.par_chunks_mut(tasks.size).enumerate().for_each(|(task, values)| tasks.apply(task, values));
}

/// Gradients of [`apply`], as those of [`gradients`].
///
/// # Panics
/// If the lengths do not fit together.
pub fn apply_gradients(x: &[f32], layer: &Layer, gradient: &mut [f32]) -> ParameterGradients {
    // The statistics are constants, a mean of 0 and a deviation of 1.
    let [zeros, ones] = [0.0, 1.0].map(|value| vec![value; layer.channels()]);
    let normalisation = Normalisation { mean: &zeros, inverse_deviation: &ones, offset: &zeros };
    backward(x, layer, normalisation, true, gradient)
}

/// How [`apply`] and [`repeat`] are divided: into runs of planes, or of samples where planes are small.
#[derive(Clone, Copy)]
struct Tasks<'a> {
    layer: Layer<'a>,
    size: usize,
}

impl<'a> Tasks<'a> {
    fn new(length: usize, layer: &Layer<'a>) -> Self {
        let unit = if layer.plane < features::LIMIT { layer.sample() } else { layer.plane }.max(1);
        Self { layer: *layer, size: unit * units_per_task(length / unit, unit, PIECE) }
    }

    fn apply(self, task: usize, values: &mut [f32]) {
        let Layer { plane, gamma, beta, activation } = self.layer;
        if plane < features::LIMIT {
            return with_curve!(activation, curve => features::apply(&self.layer, curve, values));
        }
        for (index, values) in values.chunks_exact_mut(plane).enumerate() {
            let channel = self.channel(task, index);
            let (scale, shift) = (gamma[channel], beta[channel]);
            with_curve!(activation, curve => simd::run(Apply { scale, shift, curve, values }));
        }
    }

    fn repeat(self, task: usize, x: &[f32], applied: Applied, y: &mut [f32]) {
        let Layer { plane, activation, .. } = self.layer;
        if plane < features::LIMIT {
            return with_curve!(activation, curve => features::repeat(x, plane, applied, curve, y));
        }
        for (index, (x, values)) in x.chunks_exact(plane).zip(y.chunks_exact_mut(plane)).enumerate() {
            let affine = applied.of(self.channel(task, index));
            with_curve!(activation, curve => channel::normalise_plane(x, affine, curve, values));
        }
    }

    /// The channel of a plane of a task.
    fn channel(self, task: usize, index: usize) -> usize {
        (task * self.size / self.layer.plane + index) % self.layer.channels()
    }
}

/// Number of values in the channels of one task.
pub(crate) const TASK: usize = 1 << 15;

fn forward_planes<C: Curve>(x: &[f32], layer: &Layer, epsilon: f64, curve: C, y: &mut [f32]) -> Statistics {
    let (channels, plane) = (layer.channels(), layer.plane);
    let group = units_per_task(channels, x.len() / channels, TASK);
    let mut measured = vec![Moments::default(); channels];
    let tasks = by_channels(y, channels, plane, group).into_par_iter().zip(measured.par_chunks_mut(group));
    tasks.enumerate().for_each(|(task, (mut parts, measured))| {
        for (index, measured) in measured.iter_mut().enumerate() {
            let channel = task * group + index;
            let mut segments = channel::segments(x, channels, plane, channel, index, &mut parts);
            *measured = moments(&segments, epsilon);
            let affine = layer.affine(channel, measured, epsilon);
            channel::normalise(&mut segments, affine, curve);
        }
    });
    Statistics::from_moments(&measured, layer, epsilon)
}

/// Gradients of the layer, with statistics of the batch or frozen ones.
fn backward(
    x: &[f32],
    layer: &Layer,
    normalisation: Normalisation,
    frozen: bool,
    gradient: &mut [f32],
) -> ParameterGradients {
    layer.check(x, gradient);
    let (plane, channels) = (layer.plane, layer.normalised_by(normalisation));
    let sums = with_curve!(layer.activation, curve => if x.is_empty() {
        vec![[0.0; 2]; channels.len()]
    } else if plane < features::LIMIT {
        features::gradients(x, plane, &channels, frozen, curve, gradient)
    } else {
        backward_planes(x, plane, &channels, frozen, curve, gradient, |_, _| ())
    });
    ParameterGradients::from_sums(&sums)
}

/// Sums of q and of q h of each channel; `gradient` becomes that of x. Before a channel is computed, `prepare` may change the gradient
/// of each of its planes, of which it gets the index.
pub(super) fn backward_planes<C: Curve>(
    x: &[f32],
    plane: usize,
    layer: &[Channel],
    frozen: bool,
    curve: C,
    gradient: &mut [f32],
    prepare: impl Fn(usize, &mut [f32]) + Sync,
) -> Vec<[f64; 2]> {
    let channels = layer.len();
    let count = x.len() / channels;
    let group = units_per_task(channels, count, TASK);
    let mut sums = vec![[0.0; 2]; channels];
    let tasks = by_channels(gradient, channels, plane, group).into_par_iter().zip(sums.par_chunks_mut(group));
    tasks.enumerate().for_each(|(task, (mut parts, sums))| {
        for (index, sums) in sums.iter_mut().enumerate() {
            let channel = task * group + index;
            for (sample, part) in parts.iter_mut().enumerate() {
                prepare(sample * channels + channel, &mut part[index * plane..][..plane]);
            }
            let mut segments = channel::segments(x, channels, plane, channel, index, &mut parts);
            *sums = channel::backward(&mut segments, layer[channel], count as f64, frozen, curve);
        }
    });
    sums
}

#[cfg(test)]
mod tests;
