//! Elementary functions on vectors: the exponential, the logistic function and the normal distribution.
//!
//! Method. exp(x) = 2^n e^r with n = round(x / ln 2), so |r| <= ln(2)/2, and a polynomial in r with the smallest
//! maximum relative error (3e-9). The logistic function works on exp(-|x|), which cannot overflow, and gives p and 1 -
//! p without cancellation. The upper tail of the normal distribution at a >= 0 is exp(-a^2/2) R(m) / (a + 4) with m =
//! (a - 4) / (a + 4) and a polynomial R (error 9e-9); a^2 is kept in two parts, since its rounding error would be
//! magnified by the exponential.
//!
//! Over the whole range, subnormal results included, the exponential is within 1.6 units in the last place, the logistic function
//! within 3 and the normal distribution within 7 (its tail is a product of three factors), also where the set has no fused
//! multiply-add. NaN gives NaN. Everything here is inlined into the kernel of the caller.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use crate::simd::Vectors;

/// Adding this rounds a number below 2^22 to an integer and leaves it in the last bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts; the product of the first, which has nine bits, with an integer below 2^15 is exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
/// Coefficients of the polynomial for (e^r - 1 - r) / r^2, lowest first.
const EXP: [f32; 5] = [4.999_999_3e-1, 1.666_652e-1, 4.166_839e-2, 8.368_717e-3, 1.381_459_6e-3];
/// Exponent of the factor 2^64 that keeps intermediate results of tiny exponentials normal, and the bias of the format.
const LIFTED: f32 = 127.0 + 64.0;
const LOWER: f32 = 5.421_011e-20;
/// Below this value e^x rounds to zero.
const LEAST: f32 = -104.0;
/// Arguments whose n is -127, where the bits of 2^n are those of 0, and 128, where they are those of infinity.
const SMALLEST: f32 = -88.0;
const LARGEST: f32 = 88.75;

/// The polynomial with these coefficients, lowest first, at `x`.
#[inline(always)]
fn polynomial<S: Vectors, const N: usize>(simd: S, coefficients: &[f32; N], x: S::f32s) -> S::f32s {
    let mut sum = simd.splat_f32s(coefficients[N - 1]);
    for &coefficient in coefficients[..N - 1].iter().rev() {
        sum = simd.multiply_add(sum, x, simd.splat_f32s(coefficient));
    }
    sum
}

/// e^(x - n ln 2 + rest) where that is within half of ln 2.
#[inline(always)]
fn reduced<S: Vectors>(simd: S, x: S::f32s, n: S::f32s, rest: Option<S::f32s>) -> S::f32s {
    let mut r = simd.multiply_add(n, simd.splat_f32s(-LN_2[0]), x);
    r = simd.multiply_add(n, simd.splat_f32s(-LN_2[1]), r);
    if let Some(rest) = rest {
        r = simd.add_f32s(r, rest);
    }
    let square = simd.mul_f32s(r, r);
    let sum = simd.multiply_add(polynomial(simd, &EXP, r), square, r);
    simd.add_f32s(sum, simd.splat_f32s(1.0))
}

/// 2^(k - 127) for integers k in 0..=255 (0 and infinity at the ends) that [`ROUND`] has been added to.
#[inline(always)]
fn power<S: Vectors>(simd: S, biased: S::f32s) -> S::f32s {
    let bits = simd.transmute_u32s_f32s(biased);
    simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(bits, simd.splat_u32s(23)))
}

/// e^(x + rest) for x <= 0 and |rest| < 1.
#[inline(always)]
fn exp_in_parts<S: Vectors>(simd: S, x: S::f32s, rest: Option<S::f32s>) -> S::f32s {
    let x = simd.at_least(x, LEAST);
    let lifted = simd.splat_f32s(ROUND + LIFTED);
    let sum = rest.map_or(x, |rest| simd.add_f32s(x, rest));
    let biased = simd.multiply_add(sum, simd.splat_f32s(std::f32::consts::LOG2_E), lifted);
    let value = reduced(simd, x, simd.sub_f32s(biased, lifted), rest);
    simd.mul_f32s(simd.mul_f32s(value, power(simd, biased)), simd.splat_f32s(LOWER))
}

/// e^x for x <= 0.
#[inline(always)]
pub(crate) fn exp_of_nonpositive<S: Vectors>(simd: S, x: S::f32s) -> S::f32s {
    exp_in_parts(simd, x, None)
}

/// e^x, infinite above 88.4 and 0 below -87.7, where 2^n has no normal number; NaN is kept.
/// Cheaper than [`exp_of_nonpositive`], whose small results are exact.
#[inline(always)]
pub(crate) fn exp_of_any<S: Vectors>(simd: S, x: S::f32s) -> S::f32s {
    let x = simd.at_most(simd.at_least(x, SMALLEST), LARGEST);
    let bias = simd.splat_f32s(ROUND + 127.0);
    let biased = simd.multiply_add(x, simd.splat_f32s(std::f32::consts::LOG2_E), bias);
    simd.mul_f32s(reduced(simd, x, simd.sub_f32s(biased, bias), None), power(simd, biased))
}

/// p = 1 / (1 + e^-x) and 1 - p.
#[inline(always)]
pub(crate) fn logistic<S: Vectors>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    let one = simd.splat_f32s(1.0);
    let tail = exp_of_nonpositive(simd, simd.neg_f32s(simd.abs_f32s(x)));
    let greater = simd.div_f32s(one, simd.add_f32s(one, tail));
    let less = simd.mul_f32s(tail, greater);
    let negative = simd.less_than_f32s(x, simd.splat_f32s(0.0));
    (simd.select_f32s(negative, less, greater), simd.select_f32s(negative, greater, less))
}

/// Coefficients of the polynomial R in the upper tail of the standard normal distribution, exp(-a^2/2) R(m) / (a + 4) with m = (a - 4) /
/// (a + 4) at a >= 0, lowest first; for devices that compute by other means.
pub const NORMAL_TAIL: [f32; 10] = [
    7.552_851e-1,
    -6.078_966e-1,
    3.871_369e-1,
    -1.865_235e-1,
    6.040_376_4e-2,
    -7.525_002_7e-3,
    -3.512_074_7e-3,
    1.569_589_2e-3,
    1.783_666_2e-4,
    -1.324_359_9e-4,
];
/// Beyond this many standard deviations tail and density round to zero.
const FARTHEST: f32 = 20.0;

/// Distribution function and density of the standard normal distribution at x.
#[inline(always)]
pub(crate) fn normal<S: Vectors>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    let one = simd.splat_f32s(1.0);
    let distance = simd.at_most(simd.abs_f32s(x), FARTHEST);
    // The square of the upper half of the bits is exact.
    let upper = simd.and_u32s(simd.transmute_u32s_f32s(distance), simd.splat_u32s(0xFFFF_F000));
    let upper = simd.transmute_f32s_u32s(upper);
    let half = simd.splat_f32s(-0.5);
    let main = simd.mul_f32s(simd.mul_f32s(upper, upper), half);
    let rest = simd.mul_f32s(simd.sub_f32s(distance, upper), simd.add_f32s(distance, upper));
    let bell = exp_in_parts(simd, main, Some(simd.mul_f32s(rest, half)));

    let inverse = simd.div_f32s(one, simd.add_f32s(distance, simd.splat_f32s(4.0)));
    let place = simd.mul_f32s(simd.sub_f32s(distance, simd.splat_f32s(4.0)), inverse);
    let ratio = simd.mul_f32s(polynomial(simd, &NORMAL_TAIL, place), inverse);
    let tail = simd.mul_f32s(bell, ratio);
    let negative = simd.less_than_f32s(x, simd.splat_f32s(0.0));
    let below = simd.select_f32s(negative, tail, simd.sub_f32s(one, tail));
    (below, simd.mul_f32s(bell, simd.splat_f32s(0.398_942_3)))
}

#[cfg(test)]
mod tests;
