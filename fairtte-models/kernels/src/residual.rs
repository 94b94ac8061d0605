//! The end of a residual block: the sum of two branches through ReLU, in one pass.
//!
//! He, Zhang, Ren and Sun (2016), Deep residual learning for image recognition, doi:10.1109/CVPR.2016.90. The gradient
//! is computed from the result, whose sign shows where the sum was positive; both branches receive the same gradient.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use rayon::prelude::*;

use crate::activation::{Curve, Relu};
use crate::simd::lanes::{load_rest, store_rest};
use crate::simd::{self, Kernel, Vectors};

/// Values per task.
const PIECE: usize = 1 << 14;

/// `y = max(a + b, 0)`; NaN stays.
///
/// # Panics
/// If the lengths differ.
pub fn add_relu(a: &[f32], b: &[f32], y: &mut [f32]) {
    assert!(a.len() == b.len() && a.len() == y.len(), "lengths of both branches and their sum");
    let pieces = a.par_chunks(PIECE).zip(b.par_chunks(PIECE));
    y.par_chunks_mut(PIECE).zip(pieces).for_each(|(y, (a, b))| simd::run(Sum { a, b, y }));
}

/// Sets `gradient` to zero where `y`, the result of [`add_relu`], is not positive; NaN lets it pass, as in `PyTorch`.
///
/// # Panics
/// If the lengths differ.
pub fn add_relu_gradient(y: &[f32], gradient: &mut [f32]) {
    crate::activation::gradient(crate::activation::Activation::Relu, y, gradient);
}

struct Sum<'a> {
    a: &'a [f32],
    b: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Sum<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let ((a, a_rest), (b, b_rest)) = (S::as_simd_f32s(self.a), S::as_simd_f32s(self.b));
        let (y, rest) = S::as_mut_simd_f32s(self.y);
        for (y, (&a, &b)) in y.iter_mut().zip(a.iter().zip(b)) {
            *y = Relu.value(simd, simd.add_f32s(a, b));
        }
        if !rest.is_empty() {
            let sum = simd.add_f32s(load_rest(simd, a_rest), load_rest(simd, b_rest));
            store_rest(simd, rest, Relu.value(simd, sum));
        }
    }
}

#[cfg(test)]
mod tests;
