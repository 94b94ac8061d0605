//! Transposing a square of values in registers.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use super::Vectors;
use super::lanes::{LONGEST, load};

/// Transposes the first rows of `square`, as many as a vector has values, on any set: exchanges the off-diagonal quarters of ever larger
/// squares, by two rotations and two selections for every pair of rows in each stage.
#[inline(always)]
pub(super) fn transpose<S: Vectors>(simd: S, square: &mut [S::f32s; LONGEST]) {
    macro_rules! stage {
        ($($bit:literal)+) => {$(
            if $bit < S::F32_LANES {
                let has: [f32; LONGEST] = std::array::from_fn(|lane| if lane & $bit == 0 { 0.0 } else { 1.0 });
                let has = simd.less_than_f32s(simd.splat_f32s(0.5), load(simd, &has, 0));
                for row in (0..S::F32_LANES).filter(|row| row & $bit == 0) {
                    let (upper, lower) = (square[row], square[row + $bit]);
                    let down = simd.rotate_right_f32s(lower, $bit);
                    let up = simd.rotate_left_f32s(upper, $bit);
                    square[row] = simd.select_f32s(has, down, upper);
                    square[row + $bit] = simd.select_f32s(has, lower, up);
                }
            }
        )+};
    }
    stage!(1 2 4 8);
}

/// As [`transpose`] by 64 shuffles of two rows: pairs of values, then pairs of pairs, then quarters of vectors.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn transpose_16(simd: pulp::x86::V4, square: &mut [pulp::f32x16; LONGEST]) {
    /// Every second quarter of two vectors.
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let avx = simd.avx512f;
    // Quarter q of row 4 g + c: the values of rows 4 g to 4 g + 3 in column 4 q + c.
    let mut fours = [avx._mm512_setzero_ps(); LONGEST];
    for (rows, fours) in square.as_chunks::<4>().0.iter().zip(fours.as_chunks_mut::<4>().0) {
        let [a, b, c, d] = rows.map(pulp::cast);
        let low = [avx._mm512_unpacklo_ps(a, b), avx._mm512_unpacklo_ps(c, d)].map(pulp::cast);
        let high = [avx._mm512_unpackhi_ps(a, b), avx._mm512_unpackhi_ps(c, d)].map(pulp::cast);
        *fours = [
            avx._mm512_unpacklo_pd(low[0], low[1]),
            avx._mm512_unpackhi_pd(low[0], low[1]),
            avx._mm512_unpacklo_pd(high[0], high[1]),
            avx._mm512_unpackhi_pd(high[0], high[1]),
        ]
        .map(pulp::cast);
    }
    for column in 0..4 {
        let [a, b, c, d] = [0, 4, 8, 12].map(|group| fours[group + column]);
        let even = [avx._mm512_shuffle_f32x4::<EVEN>(a, b), avx._mm512_shuffle_f32x4::<EVEN>(c, d)];
        let odd = [avx._mm512_shuffle_f32x4::<ODD>(a, b), avx._mm512_shuffle_f32x4::<ODD>(c, d)];
        for (first, [left, right]) in [(0, even), (4, odd)] {
            square[first + column] = pulp::cast(avx._mm512_shuffle_f32x4::<EVEN>(left, right));
            square[first + 8 + column] = pulp::cast(avx._mm512_shuffle_f32x4::<ODD>(left, right));
        }
    }
}

/// As [`transpose`] by 24 shuffles of two rows.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn transpose_8(simd: pulp::x86::V3, square: &mut [pulp::f32x8; LONGEST]) {
    let avx = simd.avx;
    // Half h of row 4 g + c: the values of rows 4 g to 4 g + 3 in column 4 h + c.
    let mut fours = [avx._mm256_setzero_ps(); 8];
    for (rows, fours) in square.as_chunks::<4>().0.iter().zip(fours.as_chunks_mut::<4>().0) {
        let [a, b, c, d] = rows.map(pulp::cast);
        let low = [avx._mm256_unpacklo_ps(a, b), avx._mm256_unpacklo_ps(c, d)].map(pulp::cast);
        let high = [avx._mm256_unpackhi_ps(a, b), avx._mm256_unpackhi_ps(c, d)].map(pulp::cast);
        *fours = [
            avx._mm256_unpacklo_pd(low[0], low[1]),
            avx._mm256_unpackhi_pd(low[0], low[1]),
            avx._mm256_unpacklo_pd(high[0], high[1]),
            avx._mm256_unpackhi_pd(high[0], high[1]),
        ]
        .map(pulp::cast);
    }
    for column in 0..4 {
        let [upper, lower] = [fours[column], fours[4 + column]];
        square[column] = pulp::cast(avx._mm256_permute2f128_ps::<0b0010_0000>(upper, lower));
        square[4 + column] = pulp::cast(avx._mm256_permute2f128_ps::<0b0011_0001>(upper, lower));
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::store;
    use super::*;

    fn check<S: Vectors>(simd: S, transpose: impl FnOnce(S, &mut [S::f32s; LONGEST])) {
        let length = S::F32_LANES;
        let values: [[f32; LONGEST]; LONGEST] =
            std::array::from_fn(|row| std::array::from_fn(|column| (16 * row + column) as f32));
        let mut square = values.map(|row| load(simd, &row, 0));
        transpose(simd, &mut square);
        for (row, vector) in square.into_iter().enumerate().take(length) {
            let mut found = vec![f32::NAN; length];
            store(simd, &mut found, 0, vector);
            let expected: Vec<f32> = (0..length).map(|column| values[column][row]).collect();
            assert_eq!(found, expected, "row {row} of {length}");
        }
    }

    #[test]
    fn rows_become_columns_on_every_set() {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        {
            for way in [transpose, |simd: pulp::x86::V4, square: &mut _| simd.transpose(square)] {
                let _ = pulp::x86::V4::try_new().map(|simd| check(simd, way));
            }
            for way in [transpose, |simd: pulp::x86::V3, square: &mut _| simd.transpose(square)] {
                let _ = pulp::x86::V3::try_new().map(|simd| check(simd, way));
            }
        }
        #[cfg(target_arch = "aarch64")]
        let _ = pulp::aarch64::Neon::try_new().map(|simd| check(simd, transpose));
        check(pulp::Scalar128b, transpose);
    }
}
