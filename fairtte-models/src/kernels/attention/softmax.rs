//! Rows of scores to probabilities, and the gradient of that.

use crate::kernels::elementary::exp_of_nonpositive;
use crate::kernels::isa::{Kernel, Vectors};

/// Turns each row of scores into `exp(score - greatest)`, without the division by the sum, whose inverse goes to `inverses`
/// and whose logarithm, plus the greatest score, to `log_sums`. The padding of a row becomes zero, unless the row has NaN.
pub(super) struct Exponentials<'a> {
    pub scores: &'a mut [f32],
    pub stride: usize,
    pub tokens: usize,
    pub inverses: &'a mut [f32],
    pub log_sums: &'a mut [f32],
}

impl Kernel for Exponentials<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { scores, stride, tokens, inverses, log_sums } = self;
        let rows = scores.chunks_exact_mut(stride).zip(inverses.iter_mut().zip(log_sums));
        for (row, (inverse, log_sum)) in rows {
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
            let sum = simd.reduce_sum_f32s(sum);
            *inverse = sum.recip();
            *log_sum = greatest + sum.ln();
        }
    }
}

/// Turns scores into probabilities and the gradient with respect to the probabilities into that with respect to the scores.
pub(super) struct Pull<'a> {
    /// Scores on entry, probabilities on exit.
    pub weights: &'a mut [f32],
    pub d_scores: &'a mut [f32],
    pub stride: usize,
    pub tokens: usize,
    pub log_sums: &'a [f32],
    /// Of the output times its gradient, for each row.
    pub sums: &'a [f32],
}

impl Kernel for Pull<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { weights, d_scores, stride, tokens, log_sums, sums } = self;
        let rows = weights.chunks_exact_mut(stride).zip(d_scores.chunks_exact_mut(stride));
        for ((weights, d_scores), (&log_sum, &sum)) in rows.zip(log_sums.iter().zip(sums)) {
            weights[tokens..].fill(f32::NEG_INFINITY);
            let (weights, _) = S::as_mut_simd_f32s(weights);
            let (d_scores, _) = S::as_mut_simd_f32s(d_scores);
            let (offset, sum) = (simd.splat_f32s(log_sum), simd.splat_f32s(sum));
            for (weight, d_score) in weights.iter_mut().zip(d_scores) {
                *weight = exp_of_nonpositive(simd, simd.sub_f32s(*weight, offset));
                *d_score = simd.mul_f32s(*weight, simd.sub_f32s(*d_score, sum));
            }
        }
    }
}
