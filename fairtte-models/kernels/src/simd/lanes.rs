//! Loads, stores and sums of vectors at any place of a slice.
//!
//! The remainder at the end of a slice is read as the vector that ends there. Its first lanes have been read before, so
//! sums mask them out and outputs write them again with the same values. This is faster than a copy or a masked access.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use crate::simd::Vectors;

/// Longest vector of all sets.
pub(crate) const LONGEST: usize = 16;

/// The vector at place `at`.
#[inline(always)]
pub(crate) fn load<S: Vectors>(_: S, values: &[f32], at: usize) -> S::f32s {
    S::as_simd_f32s(&values[at..at + S::F32_LANES]).0[0]
}

/// Writes a vector to place `at`.
#[inline(always)]
pub(crate) fn store<S: Vectors>(_: S, values: &mut [f32], at: usize, vector: S::f32s) {
    S::as_mut_simd_f32s(&mut values[at..at + S::F32_LANES]).0[0] = vector;
}

/// The values of a slice shorter than a vector, followed by zeros.
#[inline(always)]
pub(crate) fn load_rest<S: Vectors>(_: S, rest: &[f32]) -> S::f32s {
    let mut values = [0.0; LONGEST];
    values[..rest.len()].copy_from_slice(rest);
    S::as_simd_f32s(&values).0[0]
}

/// Writes the first values of a vector to a slice shorter than it.
#[inline(always)]
pub(crate) fn store_rest<S: Vectors>(_: S, rest: &mut [f32], vector: S::f32s) {
    let mut values = [0.0; LONGEST];
    S::as_mut_simd_f32s(&mut values).0[0] = vector;
    let length = rest.len();
    rest.copy_from_slice(&values[..length]);
}

/// The vector that ends where the slice ends; of a shorter slice, the first lanes are zero.
#[inline(always)]
pub(crate) fn load_last<S: Vectors>(simd: S, values: &[f32]) -> S::f32s {
    if values.len() >= S::F32_LANES {
        return load(simd, values, values.len() - S::F32_LANES);
    }
    let mut padded = [0.0; LONGEST];
    padded[S::F32_LANES - values.len()..S::F32_LANES].copy_from_slice(values);
    S::as_simd_f32s(&padded).0[0]
}

/// Writes a vector so that it ends where the slice ends; of a shorter slice, the first lanes are dropped.
#[inline(always)]
pub(crate) fn store_last<S: Vectors>(simd: S, values: &mut [f32], vector: S::f32s) {
    let length = values.len();
    if length >= S::F32_LANES {
        return store(simd, values, length - S::F32_LANES, vector);
    }
    let mut padded = [0.0; LONGEST];
    S::as_mut_simd_f32s(&mut padded).0[0] = vector;
    values.copy_from_slice(&padded[S::F32_LANES - length..S::F32_LANES]);
}

/// All bits in the last `count` lanes, none before.
#[inline(always)]
pub(crate) fn last_lanes<S: Vectors>(_: S, count: usize) -> S::u32s {
    const STEP: [u32; 2 * LONGEST] = {
        let mut step = [0; 2 * LONGEST];
        let mut lane = LONGEST;
        while lane < 2 * LONGEST {
            step[lane] = u32::MAX;
            lane += 1;
        }
        step
    };
    let first = LONGEST - S::F32_LANES + count;
    S::as_simd_u32s(&STEP[first..first + S::F32_LANES]).0[0]
}

/// All bits in the first `count` lanes, none after.
#[inline(always)]
pub(crate) fn first_lanes<S: Vectors>(simd: S, count: usize) -> S::u32s {
    simd.xor_u32s(last_lanes(simd, S::F32_LANES - count), simd.splat_u32s(u32::MAX))
}

/// The lanes that the mask selects, zero elsewhere.
#[inline(always)]
pub(crate) fn masked<S: Vectors>(simd: S, mask: S::u32s, vector: S::f32s) -> S::f32s {
    simd.transmute_f32s_u32s(simd.and_u32s(mask, simd.transmute_u32s_f32s(vector)))
}

/// Sum of all lanes.
#[inline(always)]
pub(crate) fn total<S: Vectors>(simd: S, vector: S::f32s) -> f64 {
    f64::from(simd.reduce_sum_f32s(vector))
}
