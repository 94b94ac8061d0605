//! Convolutions in which every output channel sees every input channel, over pictures and volumes, and their gradients.
//!
//! Each is a matrix product. One factor, the patches of the input that the kernel covers, is never in memory as a
//! whole: the loops of [`gemm`](crate::gemm) pack the piece that they use next from the input itself ([`patches`]).
//! Output: weights times patches of the input. Gradient of the input: weights, mirrored, times patches of the output's
//! gradient; at a stride above 1 once for each remainder of the place by the stride, because places of the input with
//! the same remainder are seen by the same elements of the kernel. Gradient of the weights: gradient of the output
//! times transposed patches, summed over samples in parts fixed by the shape.
//!
//! Kernels of 3 x 3 at stride 1 over enough channels and places take fewer products for all three ([`winograd`]). Where rows are shorter
//! than vectors, the samples are innermost ([`small`]); longer ones are read from a padded copy ([`staged`]).

mod patches;
mod small;
mod stage;
mod staged;
mod sums;
mod weights;
mod winograd;

use std::ops::Range;

use rayon::prelude::*;

pub(super) use patches::Patches;
pub(super) use winograd::pays as has_fewer_products;

use crate::activation::Activation;
use crate::conv::ConvShape;
use crate::gemm::{self, Division, Operand, PlaneTask, Shifted, Strided};
use crate::simd::vectorized;
use patches::positions;
use staged::{Sliding, Spread};
use weights::Staged;
use winograd::Winograd;

/// The output of a convolution, `[batch, outputs, places]`, with a bias for each channel and an activation.
pub fn forward(x: &[f32], w: &[f32], bias: Option<&[f32]>, activation: Activation, shape: &ConvShape, y: &mut [f32]) {
    let ConvShape { batch, inputs, outputs, size, kernel, stride, padding, .. } = *shape;
    let winograd = Winograd { shape: *shape, source: x, weights: w, transposed: false };
    if winograd.compute(bias, activation, y) {
        return;
    }
    let grid = shape.output();
    let of_element = positions(kernel).map(|tap| offsets(tap, padding)).enumerate();
    let (elements, taps): (Vec<_>, Vec<_>) = of_element.filter(|(_, tap)| is_inside(*tap, grid, stride, size)).unzip();
    let left = Chosen { weights: w, inputs, taps: shape.taps(), elements: &elements };
    let steps = inputs * taps.len();
    let sliding = Sliding { source: x, channels: inputs, size, grid, stride, taps: &taps };
    if sliding.compute(&left, [batch, outputs], bias, activation, y) {
        return;
    }
    let extent = [batch, outputs, shape.output_plane()];
    let tasks = gemm::plane_tasks(y, extent, Division::of(extent, steps, false));
    tasks.into_par_iter().for_each(|mut task| {
        let right = Patches {
            source: x,
            channels: inputs,
            size,
            grid,
            stride,
            taps: &taps,
            first_sample: task.samples.start,
            pixels: task.pixels.clone(),
        };
        let left = Shifted { operand: &left, by: task.rows.start };
        gemm::multiply(steps, &left, &right, task.rows.len(), &mut task.output, false);
        task.finish(bias, activation);
    });
}

/// Whether an element of the kernel, at an offset from the place, is inside the input for any place.
fn is_inside(tap: [isize; 3], grid: [usize; 3], stride: [usize; 3], size: [usize; 3]) -> bool {
    (0..3).all(|axis| {
        let at = |place: usize| (place * stride[axis]).checked_add_signed(tap[axis]);
        (0..grid[axis]).filter_map(at).any(|at| at < size[axis])
    })
}

/// The weights of some elements of the kernel as the left factor: a lane is an output channel, a step an input channel and an element.
struct Chosen<'a> {
    weights: &'a [f32],
    inputs: usize,
    taps: usize,
    elements: &'a [usize],
}

impl Operand for Chosen<'_> {
    fn pack(&self, steps: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [f32]) {
        let (count, stride) = (self.elements.len(), self.inputs * self.taps);
        if count == self.taps {
            let weights = Strided { data: self.weights, lane_stride: stride, step_stride: 1 };
            return weights.pack(steps, lanes, width, panel);
        }
        for (step, panel) in steps.zip(panel.chunks_exact_mut(width)) {
            let from = lanes.start * stride + step / count * self.taps + self.elements[step % count];
            let weights = self.weights[from..].iter().step_by(stride);
            panel[..lanes.len()].iter_mut().zip(weights).for_each(|(panel, &weight)| *panel = weight);
            panel[lanes.len()..].fill(0.0);
        }
    }
}

/// The offset of an element of the kernel from the first place of the patch in the input without padding.
fn offsets(tap: [usize; 3], padding: [usize; 3]) -> [isize; 3] {
    std::array::from_fn(|axis| tap[axis].cast_signed() - padding[axis].cast_signed())
}

/// The gradient of the input, `[batch, inputs, size]`.
pub fn input_gradient(w: &[f32], dy: &[f32], shape: &ConvShape, dx: &mut [f32]) {
    let ConvShape { batch, inputs, outputs, .. } = *shape;
    if let Some(shape) = shape.transposed() {
        let winograd = Winograd { shape, source: dy, weights: w, transposed: true };
        if winograd.compute(None, Activation::Identity, dx) {
            return;
        }
    }
    if shape.stride != [1; 3] {
        return gradient_by_phases(w, dy, shape, &phases(shape), dx);
    }
    let phase = Phase::new([0; 3], shape);
    let sliding = phase.sliding(dy, shape);
    if sliding.compute(&phase.mirrored(w, shape), [batch, inputs], None, Activation::Identity, dx) {
        return;
    }
    let extent = [batch, inputs, shape.input_plane()];
    let tasks = gemm::plane_tasks(dx, extent, Division::of(extent, outputs * shape.taps(), false));
    tasks.into_par_iter().for_each(|mut task| phase.multiply(w, None, dy, shape, &mut task));
}

/// The gradient of the weights, `[outputs, inputs, kernel]`.
pub fn weight_gradient(x: &[f32], dy: &[f32], shape: &ConvShape, dw: &mut [f32]) {
    if !winograd::weight_gradient(x, dy, shape, dw) {
        sums::sum_weights(&Staged::new(x, dy, shape), dw);
    }
}

/// Minimum number of channels of the input of a task.
const LEAST_ROWS: usize = 32;

/// The gradient of the input of a convolution with a stride; the weights are packed once, for all tasks, as panels or with the
/// channels of the input innermost.
fn gradient_by_phases(w: &[f32], dy: &[f32], shape: &ConvShape, phases: &[Phase], dx: &mut [f32]) {
    let ConvShape { batch, inputs, outputs, .. } = *shape;
    let extent = [batch, inputs, shape.input_plane()];
    let steps = phases.iter().map(|phase| outputs * phase.elements.len()).max().unwrap_or(0);
    let mut division = Division::of(extent, steps, true);
    let groups = batch.div_ceil(division.samples);
    let enough = rayon::current_num_threads().div_ceil(groups).min(inputs.div_ceil(LEAST_ROWS));
    division.row_parts = division.row_parts.max(enough);
    let slides: Vec<bool> = phases.iter().map(|phase| phase.sliding(dy, shape).pays(inputs)).collect();
    let turn = slides.contains(&false) && shape.taps() > 1;
    let length = |(phase, &slides): (&Phase, &bool)| if slides { inputs * outputs * phase.elements.len() } else { 0 };
    let lengths = [phases.iter().zip(&slides).map(length).sum(), if turn { w.len() } else { 0 }];
    gemm::with_scratch(lengths, |[mut panels, turned]| {
        let turned = turn.then(|| turn_weights(w, shape, turned));
        let mut ways = Vec::with_capacity(phases.len());
        for of_phase @ (phase, &slides) in phases.iter().zip(&slides) {
            let (piece, rest) = panels.split_at_mut(length(of_phase));
            panels = rest;
            let left = phase.mirrored(w, shape);
            let packed = slides
                .then_some(piece)
                .map(|piece| phase.sliding(dy, shape).pack(&left, inputs, division.row_parts, piece));
            ways.push((phase, packed));
        }
        gemm::plane_tasks(dx, extent, division).into_par_iter().for_each(|mut task| {
            for (phase, packed) in &ways {
                match packed {
                    Some(packed) => phase.sliding(dy, shape).spread(packed, &phase.spread(shape), &mut task),
                    None => phase.scatter(w, turned, dy, shape, &mut task),
                }
            }
        });
    });
}

/// The weights as `[outputs][taps][inputs]`.
fn turn_weights<'t>(w: &[f32], shape: &ConvShape, turned: &'t mut [f32]) -> &'t [f32] {
    let (taps, inputs) = (shape.taps(), shape.inputs);
    let of_outputs = turned.par_chunks_mut(taps * inputs).zip(w.par_chunks(taps * inputs));
    of_outputs.for_each(|(turned, w)| gemm::transpose(w, taps, taps, inputs, inputs, turned));
    turned
}

/// Places of the input with the same remainder by the stride, and the elements of the kernel that see them.
struct Phase {
    remainder: [usize; 3],
    /// Extent of the places along each axis.
    grid: [usize; 3],
    /// Numbers of the elements in the kernel.
    elements: Vec<usize>,
    /// The place of the output for each of them, as an offset from the place's index in the grid.
    taps: Vec<[isize; 3]>,
}

/// The phases that have places: no remainder is beyond the end of the input.
fn phases(shape: &ConvShape) -> Vec<Phase> {
    let remainders = std::array::from_fn(|axis| shape.stride[axis].min(shape.size[axis]));
    positions(remainders).map(|remainder| Phase::new(remainder, shape)).collect()
}

impl Phase {
    fn new(remainder: [usize; 3], shape: &ConvShape) -> Self {
        let ConvShape { size, kernel, stride, padding, .. } = *shape;
        let grid = std::array::from_fn(|axis| size[axis].saturating_sub(remainder[axis]).div_ceil(stride[axis]));
        let mut elements = Vec::new();
        let mut taps = Vec::new();
        for (element, tap) in positions(kernel).enumerate() {
            let distance: [isize; 3] =
                std::array::from_fn(|axis| (remainder[axis] + padding[axis]).cast_signed() - tap[axis].cast_signed());
            let tap = std::array::from_fn(|axis| distance[axis] / stride[axis].cast_signed());
            let is_whole = (0..3).all(|axis| distance[axis] % stride[axis].cast_signed() == 0);
            if is_whole && is_inside(tap, grid, [1; 3], shape.output()) {
                elements.push(element);
                taps.push(tap);
            }
        }
        Self { remainder, grid, elements, taps }
    }

    fn sliding<'a>(&'a self, dy: &'a [f32], shape: &ConvShape) -> Sliding<'a> {
        let (size, channels) = (shape.output(), shape.outputs);
        Sliding { source: dy, channels, size, grid: self.grid, stride: [1; 3], taps: &self.taps }
    }

    fn mirrored<'a>(&'a self, w: &'a [f32], shape: &ConvShape) -> Mirrored<'a> {
        Mirrored { weights: w, turned: None, inputs: shape.inputs, taps: shape.taps(), elements: &self.elements }
    }

    fn spread(&self, shape: &ConvShape) -> Spread {
        Spread { size: shape.size, first: self.remainder, stride: shape.stride }
    }

    /// Computes the places of this phase as consecutive columns of the task's output.
    fn multiply(&self, w: &[f32], turned: Option<&[f32]>, dy: &[f32], shape: &ConvShape, task: &mut PlaneTask) {
        let left = Mirrored { turned, ..self.mirrored(w, shape) };
        let right = Patches {
            source: dy,
            channels: shape.outputs,
            size: shape.output(),
            grid: self.grid,
            stride: [1; 3],
            taps: &self.taps,
            first_sample: task.samples.start,
            pixels: task.pixels.clone(),
        };
        let steps = shape.outputs * self.elements.len();
        let left = Shifted { operand: &left, by: task.rows.start };
        gemm::multiply(steps, &left, &right, task.rows.len(), &mut task.output, false);
    }

    /// Computes the places of this phase and writes them to their places, `stride` apart.
    fn scatter(&self, w: &[f32], turned: Option<&[f32]>, dy: &[f32], shape: &ConvShape, task: &mut PlaneTask) {
        let plane = self.grid.iter().product::<usize>();
        if plane == 0 {
            return;
        }
        if self.elements.is_empty() {
            // The stride is wider than the kernel: no output saw these places.
            return task.output.rows.iter_mut().for_each(|target| self.clear_plane(shape, target));
        }
        gemm::with_scratch([task.output.rows.len() * plane], |[scratch]| {
            let rows = scratch.chunks_exact_mut(plane).take(task.output.rows.len()).collect();
            let output = gemm::Output { segment: plane, n_rows: task.rows.len(), rows };
            let (rows, samples) = (task.rows.clone(), task.samples.clone());
            self.multiply(w, turned, dy, shape, &mut PlaneTask { rows, samples, pixels: 0..plane, output });
            for (target, source) in task.output.rows.iter_mut().zip(scratch.chunks_exact(plane)) {
                self.scatter_plane(source, shape, target);
            }
        });
    }

    fn clear_plane(&self, shape: &ConvShape, target: &mut [f32]) {
        for index in 0..self.grid[0] * self.grid[1] {
            target[self.row(shape, index)].iter_mut().step_by(shape.stride[2]).for_each(|target| *target = 0.0);
        }
    }

    /// From the first place of this phase in a row of the input to the end of the row.
    fn row(&self, shape: &ConvShape, index: usize) -> Range<usize> {
        let ConvShape { size, stride, .. } = *shape;
        let depth = index / self.grid[1] * stride[0] + self.remainder[0];
        let row = index % self.grid[1] * stride[1] + self.remainder[1];
        let first = (depth * size[1] + row) * size[2];
        first + self.remainder[2]..first + size[2]
    }

    fn scatter_plane(&self, source: &[f32], shape: &ConvShape, target: &mut [f32]) {
        for (index, source) in source.chunks_exact(self.grid[2]).enumerate() {
            let target = target[self.row(shape, index)].iter_mut().step_by(shape.stride[2]);
            target.zip(source).for_each(|(target, &source)| *target = source);
        }
    }
}

/// The weights as the left factor of the input's gradient: a lane is an input channel, a step an output channel and one of
/// the elements of the kernel.
struct Mirrored<'a> {
    weights: &'a [f32],
    /// The weights as `[outputs][taps][inputs]`, if available.
    turned: Option<&'a [f32]>,
    inputs: usize,
    taps: usize,
    elements: &'a [usize],
}

impl Operand for Mirrored<'_> {
    fn pack(&self, steps: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [f32]) {
        if self.taps == 1 {
            let strided = Strided { data: self.weights, lane_stride: 1, step_stride: self.inputs };
            return strided.pack(steps, lanes, width, panel);
        }
        let count = self.elements.len();
        if let Some(turned) = self.turned {
            return vectorized!(self.copy(turned, steps, lanes, width, panel));
        }
        let mut step = steps.start;
        while step < steps.end {
            let (output, element) = (step / count, step % count);
            let panel = &mut panel[(step - steps.start) * width..];
            let first = (output * self.inputs + lanes.start) * self.taps;
            let weights = &self.weights[first..];
            if count == self.taps {
                // All elements: the weights of an output are a matrix of channels and elements.
                let together = (count - element).min(steps.end - step);
                gemm::transpose(&weights[element..], self.taps, together, lanes.len(), width, panel);
                step += together;
            } else {
                let weights = weights[self.elements[element]..].iter().step_by(self.taps);
                panel.iter_mut().zip(weights.take(lanes.len())).for_each(|(panel, &weight)| *panel = weight);
                step += 1;
            }
        }
    }
}

impl Mirrored<'_> {
    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn copy(&self, turned: &[f32], steps: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [f32]) {
        let count = self.elements.len();
        for (index, step) in steps.enumerate() {
            let row = step / count * self.taps + self.elements[step % count];
            gemm::copy_run(turned, row * self.inputs + lanes.start, panel, index * width, lanes.len());
            panel[index * width + lanes.len()..(index + 1) * width].fill(0.0);
        }
    }
}

#[cfg(test)]
mod tests;
