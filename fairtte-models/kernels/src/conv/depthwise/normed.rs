//! Batch norm by the statistics of the batch, activation and depthwise convolution as one layer, and its gradients.
//!
//! All three take each channel by itself. A task computes the statistics of a channel while its planes are in the cache, then each
//! plane after the activation in a buffer of the thread, which the convolution reads; for the gradient of the kernels it does so again.
//! The array between norm and convolution, the largest of an inverted residual block, is neither written nor kept. All values have
//! the bits of the layers one after the other, but for the order in which the gradient of the kernels is summed over samples where there
//! are few channels.

use rayon::prelude::*;

use crate::activation::{Curve, with_curve};
use crate::conv::depthwise::frames::Room;
use crate::conv::depthwise::{self, Plane, Source, forward_planes, narrow};
use crate::conv::{ConvKind, ConvShape};
use crate::norm::batch_norm::{
    Affine, Applied, Channel, Layer, Normalisation, ParameterGradients, Statistics, TASK, channel,
};
use crate::norm::moments::Moments;
use crate::tasks::{by_channels, units_per_task};

/// Whether the layer pays for a convolution: a depthwise one whose planes are not small.
pub fn covers(shape: &ConvShape) -> bool {
    shape.kind() == Some(ConvKind::Depthwise) && !narrow::is_narrow(&Plane::new(shape))
}

/// `y` of `x` `[batch, channels, height, width]` and kernels `w` `[channels, 1, side, side]`; returns the statistics of `x`.
///
/// # Panics
/// If the shape is not [covered](covers) or the lengths do not fit it.
pub fn forward(x: &[f32], norm: &Layer, epsilon: f64, w: &[f32], shape: &ConvShape, y: &mut [f32]) -> Statistics {
    check(norm, shape, [x.len(), w.len(), y.len()]);
    let group = group(shape, &Room::for_forward(&Plane::new(shape)));
    let mut measured = vec![Moments::default(); shape.inputs];
    let tasks = by_channels(y, shape.inputs, shape.output_plane(), group).into_par_iter();
    let room = || Room::for_forward(&Plane::new(shape));
    with_curve!(norm.activation, curve => {
        let layer = Forward { x, norm, epsilon, w, shape, curve };
        tasks.zip(measured.par_chunks_mut(group)).enumerate().for_each_init(room, |room, (task, (mut y, measured))| {
            layer.channels(task * group, room, &mut y, measured);
        });
    });
    Statistics::from_moments(&measured, norm, epsilon)
}

fn check(norm: &Layer, shape: &ConvShape, lengths: [usize; 3]) {
    assert!(covers(shape), "a depthwise convolution of planes that are not small");
    assert_eq!(shape.lengths(), lengths, "lengths of input, kernels and output");
    let of_norm = [norm.plane, norm.gamma.len(), norm.beta.len()];
    assert_eq!(of_norm, [shape.input_plane(), shape.inputs, shape.inputs], "plane and channels of the norm");
}

/// Channels of a task: as of a batch norm, and whole groups of those that a thread has buffers for.
fn group(shape: &ConvShape, room: &Room) -> usize {
    units_per_task(shape.inputs, shape.batch * shape.input_plane(), TASK).next_multiple_of(room.planes)
}

struct Forward<'a, C> {
    x: &'a [f32],
    norm: &'a Layer<'a>,
    epsilon: f64,
    w: &'a [f32],
    shape: &'a ConvShape,
    curve: C,
}

impl<C: Curve> Forward<'_, C> {
    /// The channels from `first` on that `measured` has places for; `y` are their planes of every sample.
    fn channels(&self, first: usize, room: &mut Room, y: &mut [&mut [f32]], measured: &mut [Moments]) {
        let (input, output, taps) = (self.shape.input_plane(), self.shape.output_plane(), self.shape.taps());
        let mut affine = Vec::with_capacity(measured.len());
        for (channel, measured) in (first..).zip(&mut *measured) {
            *measured = channel::measure(self.norm.planes(self.x, channel), self.epsilon);
            affine.push(self.norm.affine(channel, measured, self.epsilon));
        }
        let mut scratch = std::mem::take(&mut room.scratch);
        for (x, y) in self.x.chunks_exact(self.norm.sample()).zip(y) {
            for (index, affine) in affine.chunks(room.planes).enumerate() {
                let before = index * room.planes;
                let x = &x[(first + before) * input..];
                normalise(x, input, affine.iter().copied(), self.curve, &mut scratch);
                let w = &self.w[(first + before) * taps..][..affine.len() * taps];
                let y = &mut y[before * output..][..affine.len() * output];
                forward_planes(&scratch, w, None, Plane::new(self.shape), room, y);
            }
        }
        room.scratch = scratch;
    }
}

/// Writes the planes at the beginning of `x` after norm and activation to `scratch`, one for each of `affine`.
fn normalise<C: Curve>(
    x: &[f32],
    plane: usize,
    affine: impl ExactSizeIterator<Item = Affine>,
    curve: C,
    scratch: &mut Vec<f32>,
) {
    scratch.resize(affine.len() * plane, 0.0);
    for ((x, values), affine) in x.chunks_exact(plane).zip(scratch.chunks_exact_mut(plane)).zip(affine) {
        channel::normalise_plane(x, affine, curve, values);
    }
}

/// The input of the convolution, computed again.
struct Normed<'a, C> {
    x: &'a [f32],
    plane: usize,
    channels: usize,
    applied: Applied<'a>,
    curve: C,
}

impl<C: Curve> Source for Normed<'_, C> {
    fn planes<'s>(&'s self, place: usize, count: usize, scratch: &'s mut Vec<f32>) -> &'s [f32] {
        let first = place % self.channels;
        let affine = (first..first + count).map(|channel| self.applied.of(channel));
        normalise(&self.x[place * self.plane..], self.plane, affine, self.curve, scratch);
        scratch
    }
}

/// Gradients of [`forward`] from `dy`, that of its output, and what it measured: writes those of `x` and `w`.
///
/// # Panics
/// If the shape is not [covered](covers) or the lengths do not fit it.
#[expect(clippy::too_many_arguments, reason = "slices with different roles")]
pub fn gradients(
    x: &[f32],
    norm: &Layer,
    (normalisation, applied): (Normalisation, Applied),
    w: &[f32],
    dy: &[f32],
    shape: &ConvShape,
    dx: &mut [f32],
    dw: &mut [f32],
) -> ParameterGradients {
    check(norm, shape, [x.len(), w.len(), dy.len()]);
    assert!(dx.len() == x.len() && dw.len() == w.len(), "lengths of the gradients");
    let of_channels = norm.normalised_by(normalisation);
    let sums = with_curve!(norm.activation, curve => {
        let x = Normed { x, plane: shape.input_plane(), channels: shape.inputs, applied, curve };
        let layer = depthwise::Layer { x, w, dy, shape, plane: Plane::new(shape), wants_dw: true };
        layer.gradients(&of_channels, dx, dw)
    });
    ParameterGradients::from_sums(&sums)
}

impl<C: Curve> depthwise::Layer<'_, Normed<'_, C>> {
    /// Writes `dx` and `dw`; returns the sums of q and of q h of each channel of the norm.
    fn gradients(&self, of_channels: &[Channel], dx: &mut [f32], dw: &mut [f32]) -> Vec<[f64; 2]> {
        let Normed { x, plane, channels, curve, .. } = self.x;
        let count = (self.shape.batch * plane) as f64;
        let group = group(self.shape, &Room::for_gradients(&self.plane));
        let mut sums = vec![[0.0; 2]; channels];
        let mut tasks = self.tasks(group, self.shape.batch, Some(dx));
        let partial: Vec<Vec<f64>> = (tasks.par_iter_mut().zip(sums.par_chunks_mut(group)))
            .map_init(
                || Room::for_gradients(&self.plane),
                |room, (task, sums)| {
                    let dw = self.run(task, room);
                    for (index, sums) in sums.iter_mut().enumerate() {
                        let channel = task.first_channel + index;
                        let mut segments = channel::segments(x, channels, plane, channel, index, &mut task.dx);
                        *sums = channel::backward(&mut segments, of_channels[channel], count, false, curve);
                    }
                    dw
                },
            )
            .collect();
        depthwise::add_parts(&partial, 1, group * self.shape.taps(), dw);
        sums
    }
}

#[cfg(test)]
mod tests;
