//! Products of small matrices that fit into the cache, without packing: the left factor is read element by element
//! along or across its rows, the right one in whole vectors.

use crate::simd::{Kernel, Vectors};

/// Rows of a tile of the result.
pub(super) const ROWS: usize = 6;

/// The next multiple of a tile's rows.
pub(super) fn round_rows(rows: usize) -> usize {
    rows.next_multiple_of(ROWS)
}

/// Vectors side by side in a tile: 24 or 12 sums and a row of the right factor fill 32 or 16 registers.
const fn most_vectors<S: Vectors>() -> usize {
    if S::REGISTER_COUNT >= 32 && S::F32_LANES > 4 { 4 } else { 2 }
}

/// A matrix in memory, rows `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct Factor<'a> {
    data: &'a [f32],
    stride: usize,
    across: bool,
}

impl<'a> Factor<'a> {
    /// The matrix as it is in memory.
    pub(super) fn along(data: &'a [f32], stride: usize) -> Self {
        Self { data, stride, across: false }
    }

    /// Its transpose.
    pub(super) fn across(data: &'a [f32], stride: usize) -> Self {
        Self { data, stride, across: true }
    }
}

/// `output (+)= left right`, with `rows` whole tiles and `columns` whole vectors.
pub(super) struct Product<'a> {
    pub left: Factor<'a>,
    /// Read as it is in memory.
    pub right: Factor<'a>,
    pub steps: usize,
    pub output: &'a mut [f32],
    pub output_stride: usize,
    pub rows: usize,
    pub columns: usize,
    pub add: bool,
}

impl Kernel for Product<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn run_on<S: Vectors>(mut self, simd: S) {
        let vectors = self.columns / S::F32_LANES;
        let parts = vectors.div_ceil(most_vectors::<S>());
        for part in 0..parts {
            let (first, end) = (vectors * part / parts, vectors * (part + 1) / parts);
            let column = first * S::F32_LANES;
            match end - first {
                1 => self.strip::<S, 1>(simd, column),
                2 => self.strip::<S, 2>(simd, column),
                3 if most_vectors::<S>() >= 3 => self.strip::<S, 3>(simd, column),
                4 if most_vectors::<S>() >= 4 => self.strip::<S, 4>(simd, column),
                _ => unreachable!("a strip has 1 to {} vectors", most_vectors::<S>()),
            }
        }
    }
}

impl Product<'_> {
    /// All rows of `WIDTH` vectors of columns.
    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn strip<S: Vectors, const WIDTH: usize>(&mut self, simd: S, column: usize) {
        let Self { left, right, steps, output_stride, .. } = *self;
        let width = WIDTH * S::F32_LANES;
        let right = Columns { data: &right.data[column..], stride: right.stride, width };
        for row in (0..self.rows).step_by(ROWS) {
            let sums = if left.across {
                sums_across::<S, WIDTH>(simd, &left.data[row..], left.stride, right, steps)
            } else {
                sums_along::<S, WIDTH>(simd, &left.data[row * left.stride..], left.stride, right, steps)
            };
            for (index, sums) in sums.into_iter().enumerate() {
                let output = &mut self.output[(row + index) * output_stride + column..][..width];
                let (output, _) = S::as_mut_simd_f32s(output);
                for (output, sum) in output.iter_mut().zip(sums) {
                    *output = if self.add { simd.add_f32s(*output, sum) } else { sum };
                }
            }
        }
    }
}

/// Some columns of the right factor.
#[derive(Clone, Copy)]
struct Columns<'a> {
    data: &'a [f32],
    stride: usize,
    width: usize,
}

impl<'a> Columns<'a> {
    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn row(self, index: usize) -> &'a [f32] {
        &self.data[index * self.stride..][..self.width]
    }
}

/// The sums of a tile whose rows of the left factor are `stride` apart.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn sums_along<S: Vectors, const WIDTH: usize>(
    simd: S,
    left: &[f32],
    stride: usize,
    right: Columns,
    steps: usize,
) -> [[S::f32s; WIDTH]; ROWS] {
    let mut rows = [left; ROWS];
    for (index, row) in rows.iter_mut().enumerate() {
        *row = &left[index * stride..][..steps];
    }
    let mut sums = [[simd.splat_f32s(0.0); WIDTH]; ROWS];
    #[expect(clippy::needless_range_loop, reason = "with this form the compiler knows that all rows have the step")]
    for step in 0..steps {
        let (right, _) = S::as_simd_f32s(right.row(step));
        for index in 0..ROWS {
            let left = simd.splat_f32s(rows[index][step]);
            for vector in 0..WIDTH {
                sums[index][vector] = simd.multiply_add(left, right[vector], sums[index][vector]);
            }
        }
    }
    sums
}

/// The sums of a tile whose rows of the left factor are one element apart, and its steps `stride`.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn sums_across<S: Vectors, const WIDTH: usize>(
    simd: S,
    left: &[f32],
    stride: usize,
    right: Columns,
    steps: usize,
) -> [[S::f32s; WIDTH]; ROWS] {
    let mut sums = [[simd.splat_f32s(0.0); WIDTH]; ROWS];
    for step in 0..steps {
        let left = &left[step * stride..][..ROWS];
        let (right, _) = S::as_simd_f32s(right.row(step));
        for index in 0..ROWS {
            let left = simd.splat_f32s(left[index]);
            for vector in 0..WIDTH {
                sums[index][vector] = simd.multiply_add(left, right[vector], sums[index][vector]);
            }
        }
    }
    sums
}
