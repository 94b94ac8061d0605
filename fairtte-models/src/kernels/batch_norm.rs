//! Batch normalisation of `[batch, channels, plane]` with the activation behind it, and its gradients.
//!
//! y = activation(h gamma + beta) with h = (x - mean) / sqrt(variance + epsilon), over batch and plane (Ioffe and Szegedy,
//! 2015, arXiv:1502.03167). With q = dy activation'(h gamma + beta) the gradients are `d_beta` = sum q, `d_gamma` = sum q h and
//! dx = gamma / deviation (q - mean q - h mean(q h)).
//!
//! These layers are bound by memory, so one task takes all samples of a channel and its second pass finds them in the cache;
//! the activation costs no pass of its own, and only x, mean and deviation are kept for the gradients. A channel with many
//! numbers is divided among threads as well. The difference x - mean is taken first, which keeps the digits of a channel with
//! a mean far above its deviation. Planes too small for vectors are in `batch_norm_features.rs`.

#![expect(
    clippy::too_many_arguments,
    reason = "arrays and parameters of one layer; a struct would only be taken apart"
)]
#![expect(clippy::cast_possible_truncation, reason = "parameters of a channel are computed in double precision")]

use rayon::prelude::*;

use super::activation::{Activation, Curve, with_curve};
use super::batch_norm_features as features;
use super::batch_norm_planes::{Apply, Finish, Normalise, Sums};
use super::isa;
use super::moments::{LARGE, Moments, PIECE, Segment, moments};
use super::planes::{by_channels, units_per_task};

/// What a layer in training mode measured, per channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Means.
    pub mean: Vec<f32>,
    /// Variances, biased (divided by the count).
    pub variance: Vec<f32>,
    /// 1 / sqrt(variance + epsilon).
    pub inverse_deviation: Vec<f32>,
}

impl Statistics {
    pub(super) fn from_moments(moments: &[Moments], epsilon: f64) -> Self {
        Self {
            mean: moments.iter().map(|channel| channel.mean as f32).collect(),
            variance: moments.iter().map(|channel| channel.variance() as f32).collect(),
            inverse_deviation: moments.iter().map(|channel| inverse_deviation(channel, epsilon) as f32).collect(),
        }
    }
}

pub(super) fn inverse_deviation(moments: &Moments, epsilon: f64) -> f64 {
    1.0 / (moments.variance() + epsilon).sqrt()
}

/// (x - mean) scale + shift of one channel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Affine {
    pub(super) mean: f32,
    pub(super) scale: f32,
    pub(super) shift: f32,
}

impl Affine {
    pub(super) fn normalising(moments: &Moments, gamma: f32, beta: f32, epsilon: f64) -> Self {
        let scale = f64::from(gamma) * inverse_deviation(moments, epsilon);
        let mean = moments.mean as f32;
        // What rounding took from the mean goes into the shift.
        let shift = f64::from(beta) - (moments.mean - f64::from(mean)) * scale;
        Self { mean, scale: scale as f32, shift: shift as f32 }
    }
}

/// A channel as its gradients need it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Channel {
    pub(super) mean: f32,
    pub(super) inverse_deviation: f32,
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
    /// From the sums of q and of q h over `count` numbers; with `frozen` statistics they have no part in dx.
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
pub fn forward(
    x: &[f32],
    channels: usize,
    plane: usize,
    gamma: &[f32],
    beta: &[f32],
    epsilon: f64,
    activation: Activation,
    y: &mut [f32],
) -> Statistics {
    check(x, channels, plane, &[gamma, beta], y);
    if plane < features::LIMIT {
        return with_curve!(activation, curve => features::forward(x, channels, plane, gamma, beta, epsilon, curve, y));
    }
    with_curve!(activation, curve => forward_planes(x, channels, plane, gamma, beta, epsilon, curve, y))
}

/// Gradients of [`forward`]: `gradient` holds that of `y` on entry and that of `x` on exit.
///
/// # Panics
/// If the lengths do not fit together.
pub fn gradients(
    x: &[f32],
    channels: usize,
    plane: usize,
    gamma: &[f32],
    beta: &[f32],
    mean: &[f32],
    inverse_deviation: &[f32],
    activation: Activation,
    gradient: &mut [f32],
    d_gamma: &mut [f32],
    d_beta: &mut [f32],
) {
    check(x, channels, plane, &[gamma, beta, mean, inverse_deviation, d_gamma, d_beta], gradient);
    let layer = layer(gamma, beta, mean, inverse_deviation);
    pull(x, plane, &layer, false, activation, gradient, d_gamma, d_beta);
}

/// `y = activation(x scale + shift)`, scale and shift per channel: the layer in evaluation mode.
///
/// # Panics
/// If the lengths do not fit together.
pub fn apply(
    x: &[f32],
    channels: usize,
    plane: usize,
    scale: &[f32],
    shift: &[f32],
    activation: Activation,
    y: &mut [f32],
) {
    check(x, channels, plane, &[scale, shift], y);
    let tasks = Tasks::new(x.len(), channels, plane);
    y.par_chunks_mut(tasks.size).zip(x.par_chunks(tasks.size)).enumerate().for_each(|(task, (y, x))| {
        y.copy_from_slice(x);
        tasks.apply(task, scale, shift, activation, y);
    });
}

/// [`apply`] that overwrites its input.
///
/// # Panics
/// If the lengths do not fit together.
pub fn apply_in_place(
    values: &mut [f32],
    channels: usize,
    plane: usize,
    scale: &[f32],
    shift: &[f32],
    activation: Activation,
) {
    check(values, channels, plane, &[scale, shift], values);
    let tasks = Tasks::new(values.len(), channels, plane);
    values.par_chunks_mut(tasks.size).enumerate().for_each(|(task, values)| {
        tasks.apply(task, scale, shift, activation, values);
    });
}

/// Gradients of the layer with frozen statistics: mean and deviation are constants.
///
/// # Panics
/// If the lengths do not fit together.
pub fn apply_gradients(
    x: &[f32],
    channels: usize,
    plane: usize,
    gamma: &[f32],
    beta: &[f32],
    mean: &[f32],
    inverse_deviation: &[f32],
    activation: Activation,
    gradient: &mut [f32],
    d_gamma: &mut [f32],
    d_beta: &mut [f32],
) {
    check(x, channels, plane, &[gamma, beta, mean, inverse_deviation, d_gamma, d_beta], gradient);
    let layer = layer(gamma, beta, mean, inverse_deviation);
    pull(x, plane, &layer, true, activation, gradient, d_gamma, d_beta);
}

fn check(x: &[f32], channels: usize, plane: usize, parameters: &[&[f32]], output: &[f32]) {
    assert_eq!(x.len(), output.len(), "lengths of input and output");
    assert_eq!(x.len() % (channels * plane).max(1), 0, "whole samples of {channels} channels of {plane}");
    assert!(parameters.iter().all(|values| values.len() == channels), "one parameter for each of {channels} channels");
}

fn layer(gamma: &[f32], beta: &[f32], mean: &[f32], inverse_deviation: &[f32]) -> Vec<Channel> {
    let parameters = gamma.iter().zip(beta).zip(mean.iter().zip(inverse_deviation));
    let channel = |((&gamma, &beta), (&mean, &inverse_deviation))| Channel { mean, inverse_deviation, gamma, beta };
    parameters.map(channel).collect()
}

/// How [`apply`] is divided: into runs of planes, or of samples where planes are small.
#[derive(Clone, Copy)]
struct Tasks {
    channels: usize,
    plane: usize,
    size: usize,
}

impl Tasks {
    fn new(length: usize, channels: usize, plane: usize) -> Self {
        let unit = if plane < features::LIMIT { channels * plane } else { plane }.max(1);
        Self { channels, plane, size: unit * units_per_task(length / unit, unit, PIECE) }
    }

    fn apply(self, task: usize, scale: &[f32], shift: &[f32], activation: Activation, values: &mut [f32]) {
        let Self { channels, plane, size } = self;
        if plane < features::LIMIT {
            return with_curve!(activation, curve => features::apply(plane, scale, shift, curve, values));
        }
        for (index, values) in values.chunks_exact_mut(plane).enumerate() {
            let channel = (task * size / plane + index) % channels;
            let (scale, shift) = (scale[channel], shift[channel]);
            with_curve!(activation, curve => isa::run(Apply { scale, shift, curve, values }));
        }
    }
}

/// The parts of channel `channel`, which is number `index` of the group that `parts` holds of every sample.
fn segments<'a>(
    x: &'a [f32],
    channels: usize,
    plane: usize,
    channel: usize,
    index: usize,
    parts: &'a mut [&mut [f32]],
) -> Vec<Segment<'a>> {
    let planes = parts.iter_mut().enumerate().map(|(sample, part)| {
        (&x[(sample * channels + channel) * plane..][..plane], &mut part[index * plane..][..plane])
    });
    if plane <= PIECE {
        return planes.map(|(x, values)| Segment { x, values }).collect();
    }
    let pieces = planes.flat_map(|(x, values)| x.chunks(PIECE).zip(values.chunks_mut(PIECE)));
    pieces.map(|(x, values)| Segment { x, values }).collect()
}

/// Numbers in the channels that one task takes.
const TASK: usize = 1 << 15;

fn forward_planes<C: Curve>(
    x: &[f32],
    channels: usize,
    plane: usize,
    gamma: &[f32],
    beta: &[f32],
    epsilon: f64,
    curve: C,
    y: &mut [f32],
) -> Statistics {
    let group = units_per_task(channels, x.len() / channels.max(1), TASK);
    let mut measured = vec![Moments::default(); channels];
    let tasks = by_channels(y, channels, plane, group).into_par_iter().zip(measured.par_chunks_mut(group));
    tasks.enumerate().for_each(|(task, (mut parts, measured))| {
        for (index, measured) in measured.iter_mut().enumerate() {
            let channel = task * group + index;
            let mut segments = segments(x, channels, plane, channel, index, &mut parts);
            *measured = moments(&segments, epsilon);
            let affine = Affine::normalising(measured, gamma[channel], beta[channel], epsilon);
            divided(&mut segments, |segments| isa::run(Normalise { segments, affine, curve }));
        }
    });
    Statistics::from_moments(&measured, epsilon)
}

/// Gradients of the layer, with statistics of the batch or frozen ones.
fn pull(
    x: &[f32],
    plane: usize,
    layer: &[Channel],
    frozen: bool,
    activation: Activation,
    gradient: &mut [f32],
    d_gamma: &mut [f32],
    d_beta: &mut [f32],
) {
    let sums = if plane < features::LIMIT {
        with_curve!(activation, curve => features::gradients(x, plane, layer, frozen, curve, gradient))
    } else {
        with_curve!(activation, curve => pull_planes(x, plane, layer, frozen, curve, gradient))
    };
    for ((d_gamma, d_beta), [constant, slope]) in d_gamma.iter_mut().zip(d_beta).zip(sums) {
        (*d_beta, *d_gamma) = (constant as f32, slope as f32);
    }
}

/// Sums of q and of q h of each channel; `gradient` becomes that of x.
fn pull_planes<C: Curve>(
    x: &[f32],
    plane: usize,
    layer: &[Channel],
    frozen: bool,
    curve: C,
    gradient: &mut [f32],
) -> Vec<[f64; 2]> {
    let channels = layer.len();
    let count = x.len() / channels.max(1);
    let group = units_per_task(channels, count, TASK);
    let mut sums = vec![[0.0; 2]; channels];
    let tasks = by_channels(gradient, channels, plane, group).into_par_iter().zip(sums.par_chunks_mut(group));
    tasks.enumerate().for_each(|(task, (mut parts, sums))| {
        for (index, sums) in sums.iter_mut().enumerate() {
            let channel = layer[task * group + index];
            let mut segments = segments(x, channels, plane, task * group + index, index, &mut parts);
            let parts = divided(&mut segments, |segments| isa::run(Sums { segments, channel, curve }));
            *sums = parts.into_iter().fold([0.0; 2], |sums, part| [sums[0] + part[0], sums[1] + part[1]]);
            let backward = Backward::new(channel, *sums, count as f64, frozen);
            divided(&mut segments, |segments| isa::run(Finish { segments, channel, backward, curve }));
        }
    });
    sums
}

/// Results of `compute` over the pieces of a channel: on all threads if it is a large one.
fn divided<R: Send>(segments: &mut [Segment], compute: impl Fn(&mut [Segment]) -> R + Send + Sync) -> Vec<R> {
    let length = segments.first().map_or(0, |segment| segment.x.len());
    if length * segments.len() <= LARGE {
        return vec![compute(segments)];
    }
    segments.par_chunks_mut(units_per_task(segments.len(), length, PIECE)).map(&compute).collect()
}

#[cfg(test)]
#[path = "../../tests/inside/kernels/batch_norm.rs"]
mod tests;
