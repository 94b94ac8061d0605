//! The softmax of rows of scores, and its gradient.

use crate::simd::elementary::exp_of_nonpositive;
use crate::simd::{Kernel, Vectors};

/// What turns a row of scores into probabilities: the greatest score, and the inverse of the sum of the exponentials of the
/// distances from it. Combined into one number, their logarithm would lose precision where a score is large.
pub type Row = [f32; 2];

/// Turns each row of scores into `exp(score - greatest)`, without the division by the sum. The padding of a row becomes
/// zero, unless the row has NaN.
pub(super) struct Exponentials<'a> {
    pub scores: &'a mut [f32],
    pub stride: usize,
    pub tokens: usize,
    pub rows: &'a mut [Row],
}

impl Kernel for Exponentials<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { scores, stride, tokens, rows } = self;
        for (row, found) in scores.chunks_exact_mut(stride).zip(rows) {
            row[tokens..].fill(f32::NEG_INFINITY);
            let (row, _) = S::as_mut_simd_f32s(row);
            let mut greatest = simd.splat_f32s(f32::NEG_INFINITY);
            for &x in &*row {
                greatest = simd.select_f32s(simd.less_than_f32s(greatest, x), x, greatest);
            }
            let greatest = simd.reduce_max_f32s(greatest);
            let offset = simd.splat_f32s(greatest);
            let mut sum = simd.splat_f32s(0.0);
            for x in row {
                *x = exp_of_nonpositive(simd, simd.sub_f32s(*x, offset));
                sum = simd.add_f32s(sum, *x);
            }
            *found = [greatest, simd.reduce_sum_f32s(sum).recip()];
        }
    }
}

/// Turns scores into probabilities and the gradient with respect to the probabilities into that with respect to the scores.
pub(super) struct Backward<'a> {
    /// Scores on entry, probabilities on exit.
    pub weights: &'a mut [f32],
    pub d_scores: &'a mut [f32],
    pub stride: usize,
    pub tokens: usize,
    pub rows: &'a [Row],
    /// Sums of the output times its gradient, for each row.
    pub sums: &'a [f32],
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { weights, d_scores, stride, tokens, rows, sums } = self;
        let of_rows = weights.chunks_exact_mut(stride).zip(d_scores.chunks_exact_mut(stride));
        for ((weights, d_scores), (&[greatest, inverse], &sum)) in of_rows.zip(rows.iter().zip(sums)) {
            weights[tokens..].fill(f32::NEG_INFINITY);
            let (weights, _) = S::as_mut_simd_f32s(weights);
            let (d_scores, _) = S::as_mut_simd_f32s(d_scores);
            let [greatest, inverse, sum] = [greatest, inverse, sum].map(|value| simd.splat_f32s(value));
            for (weight, d_score) in weights.iter_mut().zip(d_scores) {
                *weight = simd.mul_f32s(exp_of_nonpositive(simd, simd.sub_f32s(*weight, greatest)), inverse);
                *d_score = simd.mul_f32s(*weight, simd.sub_f32s(*d_score, sum));
            }
        }
    }
}
