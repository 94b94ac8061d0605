//! Depthwise convolution of pictures: square kernels of side 3 or 5, one for each channel, and the gradients.
//!
//! One task takes a few planes. A plane is copied into a buffer with zeros around it, at stride 2 with even and odd
//! columns separated, so that every tap of the kernel is a load at a fixed offset; several rows of results are computed
//! at once in registers, as neighbouring rows need the same loads. At stride 1 the gradient of the input is the
//! convolution of the gradient of the output with the turned kernel, at stride 2 four such convolutions with the even
//! and odd taps. The gradient of the kernel is summed in registers over the rows of a plane and in double precision
//! over planes. The loops are in `planes.rs` and `taps.rs`; `normed.rs` computes a batch norm before the convolution with it. Small
//! planes have loops of their own (`narrow.rs`), and strides above 2 use plain ones (`strided.rs`).

mod frames;
mod narrow;
pub mod normed;
mod planes;
mod strided;
mod taps;

use std::ops::Range;

use rayon::prelude::*;

use crate::activation::{self, Activation};
use crate::conv::depthwise::frames::Room;
use crate::conv::depthwise::planes::{BackwardInput, Forward};
use crate::conv::depthwise::taps::{BackwardFilter, flush, lanes_of};
use crate::conv::{ConvKind, ConvShape};
use crate::simd;
use crate::tasks::{by_channels, units_per_task};

/// Values per task of the forward pass.
pub(super) const PIECE: usize = 1 << 14;
/// Contiguous values of a sample per task of the gradients.
const RUN: usize = 1 << 14;
/// Minimum number of groups of channels, if there are as many channels.
const GROUPS: usize = 16;
/// With fewer groups the samples are divided among tasks as well.
const ENOUGH: usize = 32;
/// Products of a tap that are summed in single precision, over all lanes.
pub(super) const LONG: usize = 1 << 13;

/// A plane of the input and of the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plane {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) output_height: usize,
    pub(super) output_width: usize,
    pub(super) padding: usize,
    pub(super) stride: usize,
    pub(super) side: usize,
}

impl Plane {
    fn new(shape: &ConvShape) -> Self {
        assert_eq!(shape.kind(), Some(ConvKind::Depthwise), "a depthwise convolution");
        let [_, height, width] = shape.size;
        let [_, output_height, output_width] = shape.output();
        let (padding, stride, side) = (shape.padding[1], shape.stride[1], shape.kernel[1]);
        Self { height, width, output_height, output_width, padding, stride, side }
    }

    /// Values of the plane of the input and of that of the output.
    pub(super) fn lengths(&self) -> [usize; 2] {
        [self.height * self.width, self.output_height * self.output_width]
    }

    /// Values of a kernel.
    pub(super) fn taps(&self) -> usize {
        self.side * self.side
    }
}

/// Whether the planes of a depthwise convolution are small, so that its channels are computed in blocks of 16.
pub(super) fn has_small_planes(shape: &ConvShape) -> bool {
    narrow::is_narrow(&Plane::new(shape))
}

/// `y = activation(x * w + bias)`, for `x` `[batch, channels, height, width]`, `w` `[channels, 1, side, side]`, a bias for each
/// channel and `y` as [`ConvShape::output`] says.
///
/// # Panics
/// If the shape is not depthwise or the lengths do not fit it.
pub fn forward(x: &[f32], w: &[f32], bias: Option<&[f32]>, activation: Activation, shape: &ConvShape, y: &mut [f32]) {
    assert_eq!(shape.lengths(), [x.len(), w.len(), y.len()], "lengths of input, kernels and output");
    assert!(bias.is_none_or(|bias| bias.len() == shape.outputs), "length of the bias");
    let (input, output) = (shape.input_plane(), shape.output_plane());
    let channels = Channels::new(w, bias, activation, shape);
    if let Some(narrow) = &channels.narrow {
        return narrow.forward(x, shape, y);
    }
    let planes = units_per_task(shape.batch * shape.inputs, input.max(output), PIECE);
    y.par_chunks_mut(planes * output).enumerate().for_each_init(
        || channels.room(),
        |room, (task, y)| {
            let mut first = task * planes;
            let mut rest = y;
            while !rest.is_empty() {
                // Planes of one sample, whose kernels are contiguous.
                let channel = first % shape.inputs;
                let count = (shape.inputs - channel).min(rest.len() / output);
                let (y, behind) = rest.split_at_mut(count * output);
                channels.forward(channel, &x[first * input..], room, y);
                (first, rest) = (first + count, behind);
            }
        },
    );
}

/// The forward pass of some channels of a sample, on the calling thread.
pub(crate) struct Channels<'a> {
    w: &'a [f32],
    bias: Option<&'a [f32]>,
    activation: Activation,
    plane: Plane,
    narrow: Option<narrow::Forward<'a>>,
}

/// Buffers of [`Channels`].
pub(crate) struct ChannelsRoom(Buffers);

enum Buffers {
    Wide(Room),
    Narrow(narrow::ForwardRoom),
}

impl<'a> Channels<'a> {
    /// With all kernels `w` `[channels, 1, side, side]` of a layer and its bias.
    ///
    /// # Panics
    /// If the shape is not depthwise.
    pub fn new(w: &'a [f32], bias: Option<&'a [f32]>, activation: Activation, shape: &ConvShape) -> Self {
        let plane = Plane::new(shape);
        let narrow = narrow::is_narrow(&plane).then(|| narrow::Forward::new(w, bias, activation, plane));
        Self { w, bias, activation, plane, narrow }
    }

    pub fn room(&self) -> ChannelsRoom {
        ChannelsRoom(match &self.narrow {
            Some(narrow) => Buffers::Narrow(narrow.room()),
            None => Buffers::Wide(Room::for_forward(&self.plane)),
        })
    }

    /// Computes as many channels as `y` has planes, from channel `first` on, a multiple of 16 if [`has_small_planes`]; `x` begins with
    /// their planes and may be longer.
    pub fn forward(&self, first: usize, x: &[f32], room: &mut ChannelsRoom, y: &mut [f32]) {
        let plane = self.plane;
        let ([input, output], taps) = (plane.lengths(), plane.taps());
        let room = match (&self.narrow, &mut room.0) {
            (Some(narrow), Buffers::Narrow(room)) => return narrow.channels(first, x, room, y),
            (None, Buffers::Wide(room)) => room,
            _ => unreachable!("a room of the same layer"),
        };
        for (index, y) in y.chunks_mut(room.planes * output).enumerate() {
            let count = y.len() / output;
            let before = index * room.planes;
            let w = &self.w[(first + before) * taps..][..count * taps];
            let bias = self.bias.map(|bias| &bias[first + before..][..count]);
            forward_planes(&x[before * input..], w, bias, plane, room, y);
            activation::in_place(self.activation, y);
        }
    }
}

/// `x` begins with the planes and may be longer.
fn forward_planes(x: &[f32], w: &[f32], bias: Option<&[f32]>, plane: Plane, room: &mut Room, y: &mut [f32]) {
    match (plane.side, plane.stride) {
        (3, 1) => simd::run(Forward::<3, 1> { x, w, bias, plane, room, y }),
        (3, 2) => simd::run(Forward::<3, 2> { x, w, bias, plane, room, y }),
        (5, 1) => simd::run(Forward::<5, 1> { x, w, bias, plane, room, y }),
        (5, 2) => simd::run(Forward::<5, 2> { x, w, bias, plane, room, y }),
        _ => strided::forward(x, w, bias, &plane, y),
    }
}

/// Gradients of [`forward`] with respect to `x` and `w`, as requested.
///
/// # Panics
/// If the shape is not depthwise or the lengths do not fit it.
pub fn gradients(x: &[f32], w: &[f32], dy: &[f32], shape: &ConvShape, dx: Option<&mut [f32]>, dw: Option<&mut [f32]>) {
    let plane = Plane::new(shape);
    assert_eq!(shape.lengths(), [x.len(), w.len(), dy.len()], "lengths of input, kernels and gradient");
    assert!(dx.as_ref().is_none_or(|dx| dx.len() == x.len()), "length of the gradient of the input");
    assert!(dw.as_ref().is_none_or(|dw| dw.len() == w.len()), "length of the gradient of the kernels");
    if narrow::is_narrow(&plane) {
        return narrow::gradients(x, w, dy, shape, &plane, dx, dw);
    }
    let layer = Layer { x: Plain { x, plane: shape.input_plane() }, w, dy, shape, plane, wants_dw: dw.is_some() };
    let group = units_per_task(shape.inputs.div_ceil(GROUPS), shape.input_plane(), RUN);
    let groups = shape.inputs.div_ceil(group);
    let samples = shape.batch.div_ceil(ENOUGH.div_ceil(groups).min(shape.batch));
    let mut tasks = layer.tasks(group, samples, dx);
    let partial: Vec<Vec<f64>> =
        tasks.par_iter_mut().map_init(|| Room::for_gradients(&plane), |room, task| layer.run(task, room)).collect();
    if let Some(dw) = dw {
        add_parts(&partial, shape.batch.div_ceil(samples), group * shape.taps(), dw);
    }
}

/// Writes the sums of `parts` partial sums of each group of channels, which has `length` values in `dw`.
fn add_parts(partial: &[Vec<f64>], parts: usize, length: usize, dw: &mut [f32]) {
    for (dw, partial) in dw.chunks_mut(length).zip(partial.chunks(parts)) {
        for (place, dw) in dw.iter_mut().enumerate() {
            let sum: f64 = partial.iter().map(|part| part[place]).sum();
            #[expect(clippy::cast_possible_truncation, reason = "gradients are single precision")]
            let sum = sum as f32;
            *dw = sum;
        }
    }
}

/// Where the gradient of the kernels finds planes of the input.
trait Source: Sync {
    /// `count` planes from index `place` on, all of one sample; `scratch` has room for them.
    fn planes<'s>(&'s self, place: usize, count: usize, scratch: &'s mut Vec<f32>) -> &'s [f32];
}

/// The input itself.
struct Plain<'a> {
    x: &'a [f32],
    plane: usize,
}

impl Source for Plain<'_> {
    fn planes<'s>(&'s self, place: usize, count: usize, _: &'s mut Vec<f32>) -> &'s [f32] {
        &self.x[place * self.plane..][..count * self.plane]
    }
}

struct Layer<'a, X> {
    x: X,
    w: &'a [f32],
    dy: &'a [f32],
    shape: &'a ConvShape,
    plane: Plane,
    wants_dw: bool,
}

/// A few channels of a few samples, and the destination of their dx.
struct Task<'a> {
    first_channel: usize,
    channels: usize,
    first_sample: usize,
    samples: usize,
    /// Per sample `[channels, plane]`; none if dx is not wanted.
    dx: Vec<&'a mut [f32]>,
}

impl<X: Source> Layer<'_, X> {
    /// Tasks ordered by channels, then samples.
    fn tasks<'b>(&self, group: usize, samples: usize, dx: Option<&'b mut [f32]>) -> Vec<Task<'b>> {
        let (channels, batch) = (self.shape.inputs, self.shape.batch);
        let mut dx = dx.map(|dx| by_channels(dx, channels, self.shape.input_plane(), group).into_iter());
        let mut tasks = Vec::with_capacity(channels.div_ceil(group) * batch.div_ceil(samples));
        for first_channel in (0..channels).step_by(group) {
            let mut parts = dx.as_mut().and_then(Iterator::next).unwrap_or_default().into_iter();
            for first_sample in (0..batch).step_by(samples) {
                let samples = samples.min(batch - first_sample);
                let dx = parts.by_ref().take(samples).collect();
                tasks.push(Task {
                    first_channel,
                    channels: group.min(channels - first_channel),
                    first_sample,
                    samples,
                    dx,
                });
            }
        }
        tasks
    }

    /// Computes dx and returns the part of dw.
    fn run(&self, task: &mut Task, room: &mut Room) -> Vec<f64> {
        let taps = self.shape.taps();
        let mut dw = vec![0.0; if self.wants_dw { task.channels * taps } else { 0 }];
        let mut sums = vec![0.0; lanes_of(dw.len())];
        // Sums in single precision of at most about this many products in a lane.
        let samples_per_flush = (LONG / self.shape.output_plane()).max(1);
        for sample in 0..task.samples {
            let mut dx = task.dx.get_mut(sample);
            for first in (0..task.channels).step_by(room.planes) {
                let channels = first..task.channels.min(first + room.planes);
                let dx = dx.as_mut().map(|dx| {
                    let plane = self.shape.input_plane();
                    &mut dx[channels.start * plane..channels.end * plane]
                });
                let place = (task.first_sample + sample) * self.shape.inputs + task.first_channel + first;
                self.backward(place, channels, room, dx, &mut sums, &mut dw);
            }
            if sample % samples_per_flush == samples_per_flush - 1 || sample + 1 == task.samples {
                flush(&mut sums, &mut dw);
            }
        }
        self.sum_again(task, room, &mut dw);
        dw
    }

    /// Sums the gradient of a kernel that contains NaN once more, over the values that its taps see: in the buffers they also meet zeros
    /// around the gradient of the output, whose products with NaN and infinity are NaN.
    fn sum_again(&self, task: &Task, room: &mut Room, dw: &mut [f64]) {
        let taps = self.shape.taps();
        let mut scratch = std::mem::take(&mut room.scratch);
        for (channel, dw) in (task.first_channel..).zip(dw.chunks_exact_mut(taps)) {
            if !dw.iter().any(|sum| sum.is_nan()) {
                continue;
            }
            dw.fill(0.0);
            let w = &self.w[channel * taps..][..taps];
            for sample in task.first_sample..task.first_sample + task.samples {
                let place = sample * self.shape.inputs + channel;
                let x = self.x.planes(place, 1, &mut scratch);
                let dy = &self.dy[place * self.shape.output_plane()..];
                strided::gradients(x, w, dy, &self.plane, None, Some(&mut *dw));
            }
        }
        room.scratch = scratch;
    }

    /// Some channels of the task, of one sample; their planes begin at index `place`.
    fn backward(
        &self,
        place: usize,
        channels: Range<usize>,
        room: &mut Room,
        dx: Option<&mut [f32]>,
        sums: &mut [f32],
        dw: &mut [f64],
    ) {
        let taps = self.shape.taps();
        let mut scratch = std::mem::take(&mut room.scratch);
        let x = self.x.planes(place, channels.len(), &mut scratch);
        let dy = &self.dy[place * self.shape.output_plane()..];
        let w = &self.w[place % self.shape.inputs * taps..][..channels.len() * taps];
        let places = channels.start * taps..channels.end * taps;
        let sums = self.wants_dw.then(|| (&mut sums[lanes_of(places.start)..lanes_of(places.end)], &mut dw[places]));
        match (self.plane.side, self.plane.stride) {
            (3, 1) => backward_planes::<3, 1>(x, w, dy, self.plane, room, dx, sums),
            (3, 2) => backward_planes::<3, 2>(x, w, dy, self.plane, room, dx, sums),
            (5, 1) => backward_planes::<5, 1>(x, w, dy, self.plane, room, dx, sums),
            (5, 2) => backward_planes::<5, 2>(x, w, dy, self.plane, room, dx, sums),
            _ => strided::gradients(x, w, dy, &self.plane, dx, sums.map(|(_, dw)| dw)),
        }
        room.scratch = scratch;
    }
}

/// Writes dx and adds to the sums of dw; `x` and `dy` begin with the planes and may be longer.
fn backward_planes<const K: usize, const STRIDE: usize>(
    x: &[f32],
    w: &[f32],
    dy: &[f32],
    plane: Plane,
    room: &mut Room,
    dx: Option<&mut [f32]>,
    sums: Option<(&mut [f32], &mut [f64])>,
) {
    simd::run(BackwardInput::<K, STRIDE> { w, dy, plane, room, dx });
    if let Some((sums, dw)) = sums {
        simd::run(BackwardFilter::<K, STRIDE> { x, plane, room, sums, dw });
    }
}

#[cfg(test)]
mod tests;
