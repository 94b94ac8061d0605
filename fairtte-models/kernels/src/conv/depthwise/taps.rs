//! Gradient of the kernels of a depthwise convolution, over planes in buffers (`frames.rs`).

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use std::ops::Range;

use crate::conv::depthwise::frames::{Frame, Room, fill_all, input_frame, output_frame};
use crate::conv::depthwise::{LONG, Plane};
use crate::simd::lanes::{LONGEST, load, store};
use crate::simd::{Kernel, Vectors};

/// Gradient of the kernels of a few planes, added to the lanes of `sums`, `[planes, K * K, LONGEST]`, of which a set with
/// shorter vectors uses the first.
pub(super) struct BackwardFilter<'a, const K: usize, const STRIDE: usize> {
    pub(super) x: &'a [f32],
    pub(super) plane: Plane,
    pub(super) room: &'a mut Room,
    pub(super) sums: &'a mut [f32],
    /// Receives the sums of large planes.
    pub(super) dw: &'a mut [f64],
}

impl<const K: usize, const STRIDE: usize> Kernel for BackwardFilter<'_, K, STRIDE> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { x, plane, room, sums, dw } = self;
        let frames = [input_frame(&plane), output_frame(&plane)];
        fill_all(simd, x, sums.len() / (K * K * LONGEST), frames[0], &mut room.input);
        let inputs = room.input.chunks_exact(frames[0].length());
        let outputs = room.output.chunks_exact(frames[1].length());
        let parameters = sums.chunks_exact_mut(K * K * LONGEST).zip(dw.chunks_exact_mut(K * K));
        for ((sums, dw), (input, output)) in parameters.zip(inputs.zip(outputs)) {
            let last = plane.padding + plane.height;
            let step = (LONG / plane.output_width).max(1);
            for first in (plane.padding..last).step_by(step) {
                let buffers = Buffers { input, output, plane, frames, rows: first..last.min(first + step) };
                buffers.backward_all::<S, K, STRIDE>(simd, sums);
                if step < plane.height {
                    flush(sums, dw);
                }
            }
        }
    }
}

/// Adds the sums of the lanes to `dw` and makes them zero.
pub(super) fn flush(sums: &mut [f32], dw: &mut [f64]) {
    for (dw, sums) in dw.iter_mut().zip(sums.chunks_exact_mut(LONGEST)) {
        *dw += sums.iter().map(|&sum| f64::from(sum)).sum::<f64>();
        sums.fill(0.0);
    }
}

/// Length of the sums of a kernel of `taps` taps.
pub(super) fn lanes_of(taps: usize) -> usize {
    taps * LONGEST
}

/// A plane and the gradient of its result, both with zeros around them.
struct Buffers<'a> {
    input: &'a [f32],
    output: &'a [f32],
    plane: Plane,
    frames: [Frame; 2],
    /// Those rows of the padded input whose products are added.
    rows: Range<usize>,
}

impl Buffers<'_> {
    /// Adds to all of dw.
    #[inline(always)]
    fn backward_all<S: Vectors, const K: usize, const STRIDE: usize>(&self, simd: S, lanes: &mut [f32]) {
        if K == 5 && S::REGISTER_COUNT < 32 {
            // The sums of one row of the kernel fit into the registers.
            self.backward_taps::<S, K, STRIDE, 0, 1>(simd, lanes);
            self.backward_taps::<S, K, STRIDE, 1, 1>(simd, lanes);
            self.backward_taps::<S, K, STRIDE, 2, 1>(simd, lanes);
            self.backward_taps::<S, K, STRIDE, 3, 1>(simd, lanes);
            self.backward_taps::<S, K, STRIDE, 4, 1>(simd, lanes);
        } else {
            self.backward_taps::<S, K, STRIDE, 0, K>(simd, lanes);
        }
    }

    /// Adds to rows `FIRST..FIRST + COUNT` of dw.
    #[inline(always)]
    fn backward_taps<S: Vectors, const K: usize, const STRIDE: usize, const FIRST: usize, const COUNT: usize>(
        &self,
        simd: S,
        lanes: &mut [f32],
    ) {
        let mut sums = [[simd.splat_f32s(0.0); K]; COUNT];
        for (tap, sum) in sums.as_flattened_mut().iter_mut().enumerate() {
            *sum = load(simd, lanes, (FIRST * K + tap) * LONGEST);
        }
        for row in self.rows.clone() {
            if STRIDE == 1 || row % 2 == 0 {
                self.backward_row::<S, K, STRIDE, FIRST, COUNT, 0>(simd, row, &mut sums);
            } else {
                self.backward_row::<S, K, STRIDE, FIRST, COUNT, 1>(simd, row, &mut sums);
            }
        }
        for (tap, &sum) in sums.as_flattened().iter().enumerate() {
            store(simd, lanes, (FIRST * K + tap) * LONGEST, sum);
        }
    }

    /// Products of one row of the padded input, whose index is `PARITY` modulo the stride.
    #[inline(always)]
    fn backward_row<
        S: Vectors,
        const K: usize,
        const STRIDE: usize,
        const FIRST: usize,
        const COUNT: usize,
        const PARITY: usize,
    >(
        &self,
        simd: S,
        row: usize,
        sums: &mut [[S::f32s; K]; COUNT],
    ) {
        let [input, output] = self.frames;
        let inputs = &self.input[row * STRIDE * input.pitch..][..STRIDE * input.pitch];
        for column in (0..self.plane.output_width).step_by(S::F32_LANES) {
            let mut vectors = [simd.splat_f32s(0.0); K];
            for phase in 0..STRIDE {
                let row = &inputs[phase * input.pitch + column..][..2 * LONGEST];
                for shift in 0..(K - phase).div_ceil(STRIDE) {
                    vectors[shift * STRIDE + phase] = load(simd, row, shift);
                }
            }
            for (tap, sums) in sums.iter_mut().enumerate() {
                let tap = tap + FIRST;
                if tap % STRIDE == PARITY {
                    // The margin contains zeros for rows before the first and after the last.
                    let row = row / STRIDE + output.margin - tap / STRIDE;
                    let gradient = load(simd, self.output, row * output.pitch + output.margin + column);
                    for (sum, &vector) in sums.iter_mut().zip(&vectors) {
                        *sum = simd.multiply_add(gradient, vector, *sum);
                    }
                }
            }
        }
    }
}
