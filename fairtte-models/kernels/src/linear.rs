//! The linear layer `y = x w + b` on rows, and its gradients.
//!
//! The weight is `[inputs, outputs]`, as burn keeps it. Forward and both gradients are one matrix product each: `dx = dy w^T`,
//! `d_weight = x^T dy`; the product takes the transposes as strides. `d_bias` is the sum of the rows of `dy`, taken
//! over blocks of rows that the shape fixes, in single precision within a block and in double precision over the blocks.
//! The activation is a second pass, over rows that are partly in the cache.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use rayon::prelude::*;

use crate::activation::{self, Activation};
use crate::gemm::{Matrix, Options, product};
use crate::simd::vectorized;

/// `y = activation(x weight + bias)`: `x` is `[rows, inputs]`, `weight` `[inputs, outputs]`, `y` `[rows, outputs]`. Costs
/// `2 rows inputs outputs` operations.
///
/// # Panics
/// If a length does not fit the sizes.
pub fn forward(
    x: &[f32],
    weight: &[f32],
    [rows, inputs, outputs]: [usize; 3],
    bias: Option<&[f32]>,
    activation: Activation,
    y: &mut [f32],
) {
    assert_eq!(x.len(), rows * inputs, "the input is not {rows} x {inputs}");
    check(weight, y, [rows, inputs, outputs]);
    let (x, weight) = (Matrix::new(x, inputs), Matrix::new(weight, outputs));
    product(y, outputs, [rows, outputs, inputs], x, weight, Options { bias, parallel: true, ..Options::default() });
    if activation != Activation::Identity {
        y.par_chunks_mut(PIECE).for_each(|piece| activation::in_place(activation, piece));
    }
}

/// Writes the requested gradients with respect to `x`, `weight` and `bias`, given `dy`, that with respect to
/// `x weight + bias`. Each of the first two costs as much as [`forward`]. Only that of `weight` needs `x`, which may be
/// empty otherwise.
///
/// # Panics
/// If a length does not fit the sizes.
pub fn gradients(
    x: &[f32],
    weight: &[f32],
    dy: &[f32],
    [rows, inputs, outputs]: [usize; 3],
    dx: Option<&mut [f32]>,
    d_weight: Option<&mut [f32]>,
    d_bias: Option<&mut [f32]>,
) {
    if d_weight.is_some() || !x.is_empty() {
        assert_eq!(x.len(), rows * inputs, "the input is not {rows} x {inputs}");
    }
    check(weight, dy, [rows, inputs, outputs]);
    let options = Options { parallel: true, ..Options::default() };
    let gradient = Matrix::new(dy, outputs);
    if let Some(dx) = dx {
        assert_eq!(dx.len(), rows * inputs, "length of the input's gradient");
        let weight = Matrix::new(weight, outputs).transposed();
        product(dx, inputs, [rows, inputs, outputs], gradient, weight, options);
    }
    if let Some(d_weight) = d_weight {
        assert_eq!(d_weight.len(), weight.len(), "length of the weight's gradient");
        weight_gradient(x, dy, [inputs, outputs], d_weight);
    }
    if let Some(d_bias) = d_bias {
        assert_eq!(d_bias.len(), outputs, "length of the bias's gradient");
        column_sums(dy, d_bias);
    }
}

/// Number of rows whose products are added in single precision.
const LONG: usize = 1 << 14;

/// `d_weight = x^T dy`, in double precision over pieces of many rows.
fn weight_gradient(x: &[f32], dy: &[f32], [inputs, outputs]: [usize; 2], d_weight: &mut [f32]) {
    let over = |x: &[f32], dy: &[f32], d_weight: &mut [f32]| {
        let sizes = [inputs, outputs, dy.len() / outputs];
        let (x, dy) = (Matrix::new(x, inputs).transposed(), Matrix::new(dy, outputs));
        product(d_weight, outputs, sizes, x, dy, Options { parallel: true, ..Options::default() });
    };
    if d_weight.is_empty() {
        return;
    }
    if dy.len() <= LONG * outputs {
        return over(x, dy, d_weight);
    }
    let mut totals = vec![0.0; d_weight.len()];
    for (x, dy) in x.chunks(LONG * inputs).zip(dy.chunks(LONG * outputs)) {
        over(x, dy, d_weight);
        totals.iter_mut().zip(&*d_weight).for_each(|(total, &part)| *total += f64::from(part));
    }
    narrow(&totals, d_weight);
}

fn narrow(totals: &[f64], sums: &mut [f32]) {
    for (sum, &total) in sums.iter_mut().zip(totals) {
        #[expect(clippy::cast_possible_truncation, reason = "results are in single precision")]
        let narrowed = total as f32;
        *sum = narrowed;
    }
}

fn check(weight: &[f32], y: &[f32], [rows, inputs, outputs]: [usize; 3]) {
    assert_eq!(weight.len(), inputs * outputs, "the weight is not {inputs} x {outputs}");
    assert_eq!(y.len(), rows * outputs, "the output is not {rows} x {outputs}");
}

/// Values per task: 64 KiB.
const PIECE: usize = 1 << 14;

/// Rows per task where columns are summed.
pub(super) fn block_of_rows(width: usize) -> usize {
    (PIECE / width.max(1)).clamp(32, 256)
}

/// Writes the sum of all rows, whose width is the length of `sums`, to `sums`.
pub(super) fn column_sums(values: &[f32], sums: &mut [f32]) {
    let width = sums.len();
    if width == 0 {
        return;
    }
    let block = block_of_rows(width);
    let mut of_blocks = vec![0.0; values.len().div_ceil(block * width) * width];
    of_blocks.par_chunks_mut(width).zip(values.par_chunks(block * width)).for_each(|(sums, values)| {
        vectorized!(add_rows(values, sums));
    });
    add_blocks(&of_blocks, sums);
}

/// Adds rows to `sums`, four at a time.
#[inline(always)]
fn add_rows(values: &[f32], sums: &mut [f32]) {
    let width = sums.len();
    let mut quads = values.chunks_exact(4 * width);
    for quad in quads.by_ref() {
        let (first, second) = quad.split_at(2 * width);
        let ((a, b), (c, d)) = (first.split_at(width), second.split_at(width));
        for ((sum, (a, b)), (c, d)) in sums.iter_mut().zip(a.iter().zip(b)).zip(c.iter().zip(d)) {
            *sum += (a + b) + (c + d);
        }
    }
    for row in quads.remainder().chunks_exact(width) {
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value;
        }
    }
}

/// Writes the sums of the rows of `of_blocks` to `sums`, added in double precision.
pub(super) fn add_blocks(of_blocks: &[f32], sums: &mut [f32]) {
    let width = sums.len();
    let mut totals = vec![0.0; width];
    vectorized!(add_widened(of_blocks, &mut totals));
    narrow(&totals, sums);
}

#[inline(always)]
fn add_widened(rows: &[f32], totals: &mut [f64]) {
    for row in rows.chunks_exact(totals.len()) {
        for (total, &value) in totals.iter_mut().zip(row) {
            *total += f64::from(value);
        }
    }
}

#[cfg(test)]
mod tests;
