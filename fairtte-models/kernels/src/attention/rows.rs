//! Copies of one head's rows into buffers.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use std::ops::Range;

use crate::simd::lanes::LONGEST;
use crate::simd::vectorized;

/// Columns of buffers come in multiples of this, the longest vector.
pub(super) const COLUMNS: usize = LONGEST;

/// Rows of `width` numbers, `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub data: &'a [f32],
    pub stride: usize,
    pub width: usize,
}

impl<'a> Place<'a> {
    #[inline(always)]
    fn row(&self, index: usize) -> &'a [f32] {
        &self.data[index * self.stride..][..self.width]
    }
}

/// Copies rows, times `scale`, to rows of `columns` with zeros at their ends.
pub(super) fn copy_rows(from: Place, range: Range<usize>, scale: f32, to: &mut [f32], columns: usize) {
    vectorized!(copy_rows_here(from, range, scale, to, columns));
}

#[inline(always)]
fn copy_rows_here(from: Place, range: Range<usize>, scale: f32, to: &mut [f32], columns: usize) {
    for (index, to) in range.zip(to.chunks_exact_mut(columns)) {
        let (to, padding) = to.split_at_mut(from.width);
        for (to, &value) in to.iter_mut().zip(from.row(index)) {
            *to = value * scale;
        }
        padding.fill(0.0);
    }
}

/// Copies `rows` rows to columns of rows of `columns` numbers, with zeros at their ends.
pub(super) fn copy_transposed(from: Place, rows: usize, to: &mut [f32], columns: usize) {
    vectorized!(copy_transposed_here(from, rows, to, columns));
}

/// Side of the blocks that are transposed in registers.
const SIDE: usize = 8;

#[inline(always)]
fn copy_transposed_here(from: Place, rows: usize, to: &mut [f32], columns: usize) {
    let width = from.width;
    for first in (0..rows).step_by(SIDE) {
        let count = SIDE.min(rows - first);
        let whole = if count == SIDE { width / SIDE * SIDE } else { 0 };
        for column in (0..whole).step_by(SIDE) {
            let mut block = [[0.0; SIDE]; SIDE];
            for (index, row) in block.iter_mut().enumerate() {
                row.copy_from_slice(&from.data[(first + index) * from.stride + column..][..SIDE]);
            }
            for index in 0..SIDE {
                let mut turned = [0.0; SIDE];
                for (turned, row) in turned.iter_mut().zip(&block) {
                    *turned = row[index];
                }
                to[(column + index) * columns + first..][..SIDE].copy_from_slice(&turned);
            }
        }
        for column in whole..width {
            let to = &mut to[column * columns + first..][..count];
            for (index, to) in to.iter_mut().enumerate() {
                *to = from.data[(first + index) * from.stride + column];
            }
        }
    }
    for to in to.chunks_exact_mut(columns).take(width) {
        to[rows..].fill(0.0);
    }
}

/// The sum of the products of each row of `range` and one of `given`, which begins at the first of the range.
pub(super) fn row_products(from: Place, range: Range<usize>, given: &[f32], columns: usize, sums: &mut [f32]) {
    vectorized!(row_products_here(from, range, given, columns, sums));
}

#[inline(always)]
fn row_products_here(from: Place, range: Range<usize>, given: &[f32], columns: usize, sums: &mut [f32]) {
    for ((index, given), sum) in range.zip(given.chunks_exact(columns)).zip(sums) {
        let (row, rest) = from.row(index).as_chunks::<COLUMNS>();
        let (given, _) = given.as_chunks::<COLUMNS>();
        let mut parts = [0.0; COLUMNS];
        for (row, given) in row.iter().zip(given) {
            for (part, (a, b)) in parts.iter_mut().zip(row.iter().zip(given)) {
                *part += a * b;
            }
        }
        if let Some(given) = given.get(row.len()) {
            for (part, (a, b)) in parts.iter_mut().zip(rest.iter().zip(given)) {
                *part += a * b;
            }
        }
        *sum = parts.iter().sum();
    }
}
