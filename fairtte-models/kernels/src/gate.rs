//! Multiplication of each channel by its own factor: the last step of squeeze and excitation.
//!
//! Hu, Shen and Sun (2018), Squeeze-and-excitation networks, doi:10.1109/CVPR.2018.00745. The gradients with respect to the
//! array and to the gates take one pass over both arrays.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use rayon::prelude::*;

use crate::simd::lanes::{last_lanes, load_last, masked, store_last, total};
use crate::simd::{self, Kernel, Vectors};
use crate::tasks::units_per_task;

/// Values per task.
const PIECE: usize = 1 << 14;
/// Number of values whose products are added in single precision.
const BLOCK: usize = 1 << 12;

/// `y = x * gate`, for `x` and `y` of `gate.len()` planes.
///
/// # Panics
/// If the lengths do not fit together.
pub fn forward(x: &[f32], plane: usize, gate: &[f32], y: &mut [f32]) {
    assert!(x.len() == y.len() && x.len() == plane * gate.len(), "lengths of input, output and gates");
    if x.is_empty() {
        return;
    }
    let planes = units_per_task(gate.len(), plane, PIECE);
    let inputs = x.par_chunks(planes * plane).zip(gate.par_chunks(planes));
    y.par_chunks_mut(planes * plane).zip(inputs).for_each(|(y, (x, gate))| simd::run(Scale { x, plane, gate, y }));
}

/// As [`forward`], in place.
///
/// # Panics
/// If the lengths do not fit together.
pub(crate) fn forward_in_place(values: &mut [f32], plane: usize, gate: &[f32]) {
    assert_eq!(values.len(), plane * gate.len(), "lengths of values and gates");
    for (values, gate) in values.chunks_exact_mut(plane.max(1)).zip(gate) {
        for value in values {
            *value *= gate;
        }
    }
}

/// Turns the gradient of the result into that of `x`, in place, and writes the gradient of each gate to `d_gate`.
///
/// # Panics
/// If the lengths do not fit together.
pub fn gradients(x: &[f32], plane: usize, gate: &[f32], gradient: &mut [f32], d_gate: &mut [f32]) {
    assert!(x.len() == gradient.len() && x.len() == plane * gate.len(), "lengths of input, gradient and gates");
    assert_eq!(gate.len(), d_gate.len(), "lengths of gates and their gradient");
    if x.is_empty() {
        return d_gate.fill(0.0);
    }
    let planes = units_per_task(gate.len(), plane, PIECE);
    let inputs = x.par_chunks(planes * plane).zip(gate.par_chunks(planes));
    let outputs = gradient.par_chunks_mut(planes * plane).zip(d_gate.par_chunks_mut(planes));
    outputs.zip(inputs).for_each(|((gradient, d_gate), (x, gate))| {
        simd::run(Backward { x, plane, gate, gradient, d_gate });
    });
}

struct Scale<'a> {
    x: &'a [f32],
    plane: usize,
    gate: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let planes = self.y.chunks_exact_mut(self.plane).zip(self.x.chunks_exact(self.plane));
        for ((y, x), &gate) in planes.zip(self.gate) {
            if x.len() < S::F32_LANES {
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = x * gate;
                }
                continue;
            }
            let factor = simd.splat_f32s(gate);
            for (y, &x) in S::as_mut_simd_f32s(y).0.iter_mut().zip(S::as_simd_f32s(x).0) {
                *y = simd.mul_f32s(x, factor);
            }
            if !x.len().is_multiple_of(S::F32_LANES) {
                store_last(simd, y, simd.mul_f32s(load_last(simd, x), factor));
            }
        }
    }
}

struct Backward<'a> {
    x: &'a [f32],
    plane: usize,
    gate: &'a [f32],
    gradient: &'a mut [f32],
    d_gate: &'a mut [f32],
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let planes = self.gradient.chunks_exact_mut(self.plane).zip(self.x.chunks_exact(self.plane));
        for ((gradient, x), (&gate, d_gate)) in planes.zip(self.gate.iter().zip(self.d_gate)) {
            let mut sum = 0.0;
            for (gradient, x) in gradient.chunks_mut(BLOCK).zip(x.chunks(BLOCK)) {
                sum += backward_block(simd, x, gate, gradient);
            }
            #[expect(clippy::cast_possible_truncation, reason = "the result is single precision")]
            let sum = sum as f32;
            *d_gate = sum;
        }
    }
}

/// Multiplies `gradient` by `gate` and returns the sum of its products with `x`.
#[inline(always)]
fn backward_block<S: Vectors>(simd: S, x: &[f32], gate: f32, gradient: &mut [f32]) -> f64 {
    if x.len() < S::F32_LANES {
        let mut sum = 0.0;
        for (gradient, &x) in gradient.iter_mut().zip(x) {
            sum += *gradient * x;
            *gradient *= gate;
        }
        return f64::from(sum);
    }
    let factor = simd.splat_f32s(gate);
    let rest = x.len() % S::F32_LANES;
    let last = load_last(simd, gradient);
    let (inputs, _) = S::as_simd_f32s(x);
    let (gradients, _) = S::as_mut_simd_f32s(gradient);
    let mut sums = [simd.splat_f32s(0.0); 4];
    let (input_fours, inputs) = inputs.split_at(inputs.len() / 4 * 4);
    let (fours, gradients) = gradients.split_at_mut(input_fours.len());
    for (gradients, inputs) in fours.chunks_exact_mut(4).zip(input_fours.chunks_exact(4)) {
        for lane in 0..4 {
            sums[lane] = simd.multiply_add(gradients[lane], inputs[lane], sums[lane]);
            gradients[lane] = simd.mul_f32s(gradients[lane], factor);
        }
    }
    for (gradient, &input) in gradients.iter_mut().zip(inputs) {
        sums[0] = simd.multiply_add(*gradient, input, sums[0]);
        *gradient = simd.mul_f32s(*gradient, factor);
    }
    if rest != 0 {
        let product = simd.mul_f32s(last, load_last(simd, x));
        sums[1] = simd.add_f32s(sums[1], masked(simd, last_lanes(simd, rest), product));
        store_last(simd, gradient, simd.mul_f32s(last, factor));
    }
    total(simd, simd.add_f32s(simd.add_f32s(sums[0], sums[1]), simd.add_f32s(sums[2], sums[3])))
}

#[cfg(test)]
mod tests;
