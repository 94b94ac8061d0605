//! Scaled dot-product attention `softmax(q k^T / sqrt(width)) v` of every head of every sample, and its gradients.
//!
//! Queries, keys and values are read where a linear layer wrote them, `[batch, tokens, 3, heads, width]`. One task computes
//! one head: it copies the head's rows into buffers of its thread, which stay in the cache, and works through blocks of
//! queries, so nothing of size `tokens^2` is ever in memory. Between the passes only each query's greatest score and sum of
//! exponentials are kept; the backward pass computes the probabilities `P = exp(q k^T / sqrt(width) - greatest) / sum` again and,
//! with `D = sum(dy y)` of each query and `dS = P (dy v^T - D)`, gives `dv = P^T dy`, `dk = dS^T q / sqrt(width)` and
//! `dq = dS k / sqrt(width)`. The scheme is that of Dao et al. (2022, arXiv:2205.14135) with whole rows of scores instead of
//! blocks of keys, as a row of a few hundred tokens is short.
//!
//! A row of scores with NaN, or with nothing but minus infinity, gives NaN, as a softmax does.

use rayon::prelude::*;

use crate::gemm::with_scratch;
use crate::simd;
use products::{Factor, Product, round_rows};
use rows::{COLUMNS, Place, copy_rows, copy_transposed, row_products};

mod products;
mod rows;
mod softmax;

pub use softmax::Row;

/// Maximum number of values of a block of scores: 192 KiB, of which the backward pass holds two in the cache of a core.
const BLOCK: usize = 48 << 10;

/// Attention over `qkv`, `[batch, tokens, 3, heads, width]`, with `shape` = `[batch, tokens, heads, width]`, which is also that
/// of `output`. What [`gradients`] needs is written to `rows`, `[batch, heads, tokens]`.
///
/// Costs `4 batch heads tokens^2 width` operations and as many exponentials as there are scores.
///
/// # Panics
/// If a length does not fit the shape.
pub fn forward(qkv: &[f32], shape: [usize; 4], output: &mut [f32], rows: Option<&mut [Row]>) {
    let sizes = Sizes::new(shape);
    let [batch, tokens, heads, width] = shape;
    let row = heads * width;
    let n_rows = batch * heads * tokens;
    assert_eq!([qkv.len(), output.len()], [3 * batch * tokens * row, batch * tokens * row], "lengths for {shape:?}");
    let mut unwanted = Vec::new();
    let rows = rows.unwrap_or_else(|| {
        unwanted.resize(n_rows, Row::default());
        &mut unwanted
    });
    assert_eq!(rows.len(), n_rows, "number of rows of scores for {shape:?}");
    if output.is_empty() {
        return;
    }
    let samples = output.par_chunks_mut(tokens * row).zip(rows.par_chunks_mut(heads * tokens));
    samples.zip(qkv.par_chunks(3 * tokens * row)).for_each(|((output, rows), qkv)| {
        let outputs = by_head(output, heads, width, tokens).into_par_iter().zip(rows.par_chunks_mut(tokens));
        outputs.enumerate().for_each(|(head, (mut output, rows))| {
            sizes.head(qkv, head).forward(&mut output, rows);
        });
    });
}

/// The gradient `d_qkv`, overwritten, with respect to `qkv`, given that with respect to the output; `output` and `rows`
/// are those of [`forward`]. Costs two and a half times as much.
///
/// # Panics
/// If a length does not fit the shape.
pub fn gradients(qkv: &[f32], output: &[f32], rows: &[Row], d_output: &[f32], shape: [usize; 4], d_qkv: &mut [f32]) {
    let sizes = Sizes::new(shape);
    let [batch, tokens, heads, width] = shape;
    let row = heads * width;
    let n = batch * tokens * row;
    assert_eq!([qkv.len(), d_qkv.len()], [3 * n; 2], "lengths of qkv and its gradient for {shape:?}");
    assert_eq!([output.len(), d_output.len()], [n; 2], "lengths of the output and its gradient for {shape:?}");
    assert_eq!(rows.len(), batch * heads * tokens, "number of rows of scores for {shape:?}");
    if n == 0 {
        return;
    }
    let saved = output.par_chunks(tokens * row).zip(rows.par_chunks(heads * tokens));
    let given = d_output.par_chunks(tokens * row).zip(qkv.par_chunks(3 * tokens * row));
    let samples = d_qkv.par_chunks_mut(3 * tokens * row).zip(saved).zip(given);
    samples.for_each(|((d_qkv, (output, rows)), (d_output, qkv))| {
        let heads_of_sample = by_head(d_qkv, heads, width, 3 * tokens);
        heads_of_sample.into_par_iter().enumerate().for_each(|(head, mut d_qkv)| {
            let rows = &rows[head * tokens..(head + 1) * tokens];
            sizes.head(qkv, head).gradients(output, rows, d_output, &mut d_qkv);
        });
    });
}

/// The rows of `width` numbers that each head has in a sample, in the order of the sample.
fn by_head(sample: &mut [f32], heads: usize, width: usize, rows: usize) -> Vec<Vec<&mut [f32]>> {
    let mut of_heads: Vec<_> = (0..heads).map(|_| Vec::with_capacity(rows)).collect();
    for row in sample.chunks_exact_mut(heads * width) {
        for (of_head, piece) in of_heads.iter_mut().zip(row.chunks_exact_mut(width)) {
            of_head.push(piece);
        }
    }
    of_heads
}

/// Sizes of a head and of the buffers for it. Rows of a buffer that a product takes in tiles are padded to whole tiles, columns
/// to whole vectors; the padding is zero where it could affect a result.
#[derive(Clone, Copy)]
struct Sizes {
    tokens: usize,
    heads: usize,
    width: usize,
    /// Columns of a buffer with a row for each token, query or key.
    columns: usize,
    /// Columns of a buffer with a number for each token in a row; no fewer than `token_rows`.
    token_columns: usize,
    /// Rows of a result with one for each token.
    token_rows: usize,
    /// Queries of a block, whole tiles.
    block: usize,
    scale: f32,
}

impl Sizes {
    fn new([_, tokens, heads, width]: [usize; 4]) -> Self {
        let token_rows = round_rows(tokens);
        let token_columns = token_rows.next_multiple_of(COLUMNS);
        let blocks = (tokens * token_columns).div_ceil(BLOCK).clamp(1, tokens.max(1));
        #[expect(clippy::cast_possible_truncation, reason = "scores are in single precision")]
        let scale = (width as f64).sqrt().recip() as f32;
        let (columns, block) = (width.next_multiple_of(COLUMNS), round_rows(tokens.div_ceil(blocks)));
        Self { tokens, heads, width, columns, token_columns, token_rows, block, scale }
    }

    fn head<'a>(&'a self, qkv: &'a [f32], index: usize) -> Head<'a> {
        Head { sizes: self, qkv, index }
    }
}

/// One head of one sample.
struct Head<'a> {
    sizes: &'a Sizes,
    /// Of the whole sample, `[tokens, 3, heads, width]`.
    qkv: &'a [f32],
    index: usize,
}

impl<'a> Head<'a> {
    /// Where the queries (part 0), keys (1) or values (2) of this head are.
    fn part(&self, part: usize) -> Place<'a> {
        let Sizes { heads, width, .. } = *self.sizes;
        Place { data: &self.qkv[(part * heads + self.index) * width..], stride: 3 * heads * width, width }
    }

    /// Where this head is in an array `[tokens, heads, width]`.
    fn of_output(&self, data: &'a [f32]) -> Place<'a> {
        let Sizes { heads, width, .. } = *self.sizes;
        Place { data: &data[self.index * width..], stride: heads * width, width }
    }

    fn forward(&self, output: &mut [&mut [f32]], of_rows: &mut [Row]) {
        let Sizes { tokens, columns, token_columns, block, scale, width, .. } = *self.sizes;
        let lengths =
            [width * token_columns, tokens * columns, block * columns, block * token_columns, block * columns];
        with_scratch(lengths, |[keys, values, queries, scores, mixed]| {
            copy_transposed(self.part(1), tokens, keys, token_columns);
            copy_rows(self.part(2), 0..tokens, 1.0, values, columns);
            for first in (0..tokens).step_by(block) {
                let range = first..(first + block).min(tokens);
                let (n, rows) = (range.len(), round_rows(range.len()));
                copy_rows(self.part(0), range.clone(), scale, queries, columns);
                queries[n * columns..rows * columns].fill(0.0);
                simd::run(Product {
                    left: Factor::along(queries, columns),
                    right: Factor::along(keys, token_columns),
                    steps: width,
                    output: scores,
                    output_stride: token_columns,
                    rows,
                    columns: token_columns,
                    add: false,
                });
                let of_rows = &mut of_rows[range.clone()];
                simd::run(softmax::Exponentials { scores, stride: token_columns, tokens, rows: of_rows });
                simd::run(Product {
                    left: Factor::along(scores, token_columns),
                    right: Factor::along(values, columns),
                    steps: tokens,
                    output: mixed,
                    output_stride: columns,
                    rows,
                    columns,
                    add: false,
                });
                let rows = output[range].iter_mut().zip(mixed.chunks_exact(columns));
                for ((output, mixed), &[_, inverse]) in rows.zip(&*of_rows) {
                    for (output, &mixed) in output.iter_mut().zip(mixed) {
                        *output = mixed * inverse;
                    }
                }
            }
        });
    }

    /// `d_qkv` has the rows of this head, three for each token.
    fn gradients(&self, output: &'a [f32], of_rows: &[Row], d_output: &'a [f32], d_qkv: &mut [&mut [f32]]) {
        let Sizes { tokens, columns, token_columns, token_rows, block, scale, width, .. } = *self.sizes;
        let (of_tokens, of_block) = (token_rows * columns, block * columns);
        let across = width * token_columns;
        let lengths = [across, across, of_tokens, of_tokens, of_tokens];
        let of_scores = block * token_columns;
        let block_lengths = [of_block, of_block, of_block, of_scores, of_scores];
        with_scratch(lengths, |[keys_across, values_across, keys, d_keys, d_values]| {
            copy_transposed(self.part(1), tokens, keys_across, token_columns);
            copy_transposed(self.part(2), tokens, values_across, token_columns);
            copy_rows(self.part(1), 0..tokens, scale, keys, columns);
            with_scratch(block_lengths, |[queries, given, d_queries, weights, d_scores]| {
                for first in (0..tokens).step_by(block) {
                    let range = first..(first + block).min(tokens);
                    let (n, rows) = (range.len(), round_rows(range.len()));
                    copy_rows(self.part(0), range.clone(), scale, queries, columns);
                    copy_rows(self.of_output(d_output), range.clone(), 1.0, given, columns);
                    for padded in [&mut *queries, &mut *given] {
                        padded[n * columns..rows * columns].fill(0.0);
                    }
                    let mut sums = [0.0; BLOCK / COLUMNS];
                    let sums = &mut sums[..n];
                    row_products(self.of_output(output), range.clone(), given, columns, sums);
                    for (left, right, output) in
                        [(&*queries, &*keys_across, &mut *weights), (&*given, &*values_across, &mut *d_scores)]
                    {
                        simd::run(Product {
                            left: Factor::along(left, columns),
                            right: Factor::along(right, token_columns),
                            steps: width,
                            output,
                            output_stride: token_columns,
                            rows,
                            columns: token_columns,
                            add: false,
                        });
                    }
                    let of_rows = &of_rows[range.clone()];
                    simd::run(softmax::Backward {
                        weights,
                        d_scores,
                        stride: token_columns,
                        tokens,
                        rows: of_rows,
                        sums,
                    });
                    for (left, right, output) in
                        [(&*weights, &*given, &mut *d_values), (&*d_scores, &*queries, &mut *d_keys)]
                    {
                        simd::run(Product {
                            left: Factor::across(left, token_columns),
                            right: Factor::along(right, columns),
                            steps: n,
                            output,
                            output_stride: columns,
                            rows: token_rows,
                            columns,
                            add: first > 0,
                        });
                    }
                    simd::run(Product {
                        left: Factor::along(d_scores, token_columns),
                        right: Factor::along(keys, columns),
                        steps: tokens,
                        output: d_queries,
                        output_stride: columns,
                        rows,
                        columns,
                        add: false,
                    });
                    for (token, row) in range.zip(d_queries.chunks_exact(columns)) {
                        d_qkv[3 * token].copy_from_slice(&row[..width]);
                    }
                }
            });
            let rows = d_keys.chunks_exact(columns).zip(d_values.chunks_exact(columns));
            for (d_qkv, (d_key, d_value)) in d_qkv.chunks_exact_mut(3).zip(rows) {
                d_qkv[1].copy_from_slice(&d_key[..width]);
                d_qkv[2].copy_from_slice(&d_value[..width]);
            }
        });
    }
}

#[cfg(test)]
mod tests;
