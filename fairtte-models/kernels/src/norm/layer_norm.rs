//! Layer normalisation: each row is scaled to mean 0 and variance 1, then a scale and a shift for each column (Ba,
//! Kiros and Hinton, 2016, arXiv:1607.06450).
//!
//! Forward, with the biased variance: `y = (x - mean) / sqrt(variance + epsilon) * gamma + beta`. Backward, with the normed
//! row `n` and `g = gamma dy`: `dx = (g - mean(g) - n mean(g n)) / sqrt(variance + epsilon)`, `d_gamma = sum(dy n)`,
//! `d_beta = sum(dy)`, where the means are over a row and the sums over all rows.
//!
//! The variance comes from a second pass over the row, which is then in the cache, so a large mean costs no precision.
//! A row is summed in partial sums of a few hundred numbers, which are added in double precision; columns are summed
//! over blocks of rows fixed by the shape.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use rayon::prelude::*;

use crate::linear::{add_blocks, block_of_rows};
use crate::simd::{self, Kernel, Vectors};

/// Number of values added in single precision, in at least 16 sums, before the sums continue in double precision.
const PARTIAL: usize = 4096;

/// Rows that a pass processes one after the other, so that the CPU overlaps the long chains of operations that end each
/// sum.
const GROUP: usize = 4;

/// Norms each row of `x` (`[rows, width]`) into `y`; the mean of each row and the inverse of `sqrt(variance +
/// epsilon)`, which [`gradients`] needs, are written to `statistics`.
///
/// # Panics
/// If the width is 0 or lengths do not fit it.
pub fn forward(
    x: &[f32],
    width: usize,
    gamma: &[f32],
    beta: &[f32],
    epsilon: f64,
    y: &mut [f32],
    statistics: Option<[&mut [f32]; 2]>,
) {
    let rows = check(x, width, gamma);
    assert_eq!(beta.len(), width, "length of beta");
    assert_eq!(x.len(), y.len(), "lengths of input and output");
    let mut unwanted = Vec::new();
    let [mean, inverse_deviation] = statistics.unwrap_or_else(|| {
        unwanted.resize(2 * rows, 0.0);
        unwanted.split_at_mut(rows).into()
    });
    assert_eq!([mean.len(), inverse_deviation.len()], [rows; 2], "lengths of the statistics");
    let block = block_of_rows(width);
    let input = x.par_chunks(block * width).zip(y.par_chunks_mut(block * width));
    let statistics = mean.par_chunks_mut(block).zip(inverse_deviation.par_chunks_mut(block));
    input.zip(statistics).for_each(|((x, y), (mean, inverse_deviation))| {
        simd::run(Forward { x, width, gamma, beta, epsilon, y, mean, inverse_deviation });
    });
}

/// Turns the gradient with respect to `y` into that with respect to `x`, in place, and writes those with respect to
/// `gamma` and `beta`. `mean` and `inverse_deviation` are those of [`forward`].
///
/// # Panics
/// If the width is 0 or lengths do not fit it.
#[expect(clippy::too_many_arguments, reason = "slices with different roles")]
pub fn gradients(
    x: &[f32],
    width: usize,
    gamma: &[f32],
    mean: &[f32],
    inverse_deviation: &[f32],
    gradient: &mut [f32],
    d_gamma: &mut [f32],
    d_beta: &mut [f32],
) {
    let rows = check(x, width, gamma);
    assert_eq!([mean.len(), inverse_deviation.len()], [rows; 2], "lengths of the statistics");
    assert_eq!(x.len(), gradient.len(), "lengths of input and gradient");
    assert_eq!([d_gamma.len(), d_beta.len()], [width; 2], "lengths of the parameters' gradients");
    let block = block_of_rows(width);
    let mut sums = vec![0.0; rows.div_ceil(block) * 2 * width];
    let input = x.par_chunks(block * width).zip(gradient.par_chunks_mut(block * width));
    let statistics = mean.par_chunks(block).zip(inverse_deviation.par_chunks(block));
    input.zip(statistics).zip(sums.par_chunks_mut(2 * width)).for_each(|(((x, gradient), statistics), sums)| {
        let (mean, inverse_deviation) = statistics;
        simd::run(Gradients { x, width, gamma, mean, inverse_deviation, gradient, sums });
    });
    let mut both = vec![0.0; 2 * width];
    add_blocks(&sums, &mut both);
    let (of_gamma, of_beta) = both.split_at(width);
    d_gamma.copy_from_slice(of_gamma);
    d_beta.copy_from_slice(of_beta);
}

/// The number of rows.
fn check(x: &[f32], width: usize, gamma: &[f32]) -> usize {
    assert!(width > 0, "rows without values have no mean");
    assert_eq!(x.len() % width, 0, "the input is not made of rows of {width}");
    assert_eq!(gamma.len(), width, "length of gamma");
    x.len() / width
}

struct Forward<'a> {
    x: &'a [f32],
    width: usize,
    gamma: &'a [f32],
    beta: &'a [f32],
    epsilon: f64,
    y: &'a mut [f32],
    mean: &'a mut [f32],
    inverse_deviation: &'a mut [f32],
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { x, width, gamma, beta, epsilon, y, mean, inverse_deviation } = self;
        let rows = x.chunks(GROUP * width).zip(y.chunks_mut(GROUP * width));
        for ((x, y), (mean, inverse_deviation)) in
            rows.zip(mean.chunks_mut(GROUP).zip(inverse_deviation.chunks_mut(GROUP)))
        {
            for (x, mean) in x.chunks_exact(width).zip(&mut *mean) {
                *mean = narrowed(sum(simd, x) / width as f64);
            }
            let statistics = mean.iter_mut().zip(&mut *inverse_deviation);
            for (x, (mean, inverse_deviation)) in x.chunks_exact(width).zip(statistics) {
                let [distances, squares] = moments(simd, x, *mean);
                // The rounding error of a mean far above the deviation in single precision is computed from the small
                // distances.
                let lost = distances / width as f64;
                *mean = narrowed(f64::from(*mean) + lost);
                let variance = (squares / width as f64 - lost * lost).max(0.0);
                *inverse_deviation = narrowed((variance + epsilon).sqrt().recip());
            }
            let statistics = mean.iter().zip(inverse_deviation);
            for ((x, y), (&mean, inverse)) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).zip(statistics) {
                normed(simd, x, [mean, *inverse], gamma, beta, y);
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "results are in single precision")]
#[inline(always)]
fn narrowed(value: f64) -> f32 {
    value as f32
}

/// Sum of a row.
#[inline(always)]
fn sum<S: Vectors>(simd: S, row: &[f32]) -> f64 {
    let mut total = 0.0;
    for piece in row.chunks(PARTIAL) {
        let (vectors, rest) = S::as_simd_f32s(piece);
        let (quads, single) = vectors.as_chunks::<4>();
        let mut sums = [simd.splat_f32s(0.0); 4];
        for quad in quads {
            for (sum, &x) in sums.iter_mut().zip(quad) {
                *sum = simd.add_f32s(*sum, x);
            }
        }
        for &x in single {
            sums[0] = simd.add_f32s(sums[0], x);
        }
        total += joined(simd, sums);
        for &x in rest {
            total += f64::from(x);
        }
    }
    total
}

/// Sums of a row's distances from `mean` and of their squares.
#[inline(always)]
fn moments<S: Vectors>(simd: S, row: &[f32], mean: f32) -> [f64; 2] {
    let means = simd.splat_f32s(mean);
    let [mut distances, mut squares] = [0.0; 2];
    for piece in row.chunks(PARTIAL) {
        let (vectors, rest) = S::as_simd_f32s(piece);
        let (quads, single) = vectors.as_chunks::<4>();
        let mut of_distances = [simd.splat_f32s(0.0); 4];
        let mut of_squares = of_distances;
        for quad in quads {
            for (&x, (sum, of_squares)) in quad.iter().zip(of_distances.iter_mut().zip(&mut of_squares)) {
                let distance = simd.sub_f32s(x, means);
                *sum = simd.add_f32s(*sum, distance);
                *of_squares = simd.multiply_add(distance, distance, *of_squares);
            }
        }
        for &x in single {
            let distance = simd.sub_f32s(x, means);
            of_distances[0] = simd.add_f32s(of_distances[0], distance);
            of_squares[0] = simd.multiply_add(distance, distance, of_squares[0]);
        }
        distances += joined(simd, of_distances);
        squares += joined(simd, of_squares);
        for &x in rest {
            let distance = x - mean;
            distances += f64::from(distance);
            squares += f64::from(distance * distance);
        }
    }
    [distances, squares]
}

#[inline(always)]
fn joined<S: Vectors>(simd: S, sums: [S::f32s; 4]) -> f64 {
    let [a, b, c, d] = sums;
    f64::from(simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d))))
}

#[inline(always)]
fn normed<S: Vectors>(
    simd: S,
    x: &[f32],
    [mean, inverse_deviation]: [f32; 2],
    gamma: &[f32],
    beta: &[f32],
    y: &mut [f32],
) {
    let [(x, x_rest), (gamma, gamma_rest), (beta, beta_rest)] = [x, gamma, beta].map(|slice| S::as_simd_f32s(slice));
    let (y, y_rest) = S::as_mut_simd_f32s(y);
    let [means, inverses] = [simd.splat_f32s(mean), simd.splat_f32s(inverse_deviation)];
    for ((y, &x), (&gamma, &beta)) in y.iter_mut().zip(x).zip(gamma.iter().zip(beta)) {
        let normed = simd.mul_f32s(simd.sub_f32s(x, means), inverses);
        *y = simd.multiply_add(normed, gamma, beta);
    }
    for ((y, x), (gamma, beta)) in y_rest.iter_mut().zip(x_rest).zip(gamma_rest.iter().zip(beta_rest)) {
        *y = (x - mean) * inverse_deviation * gamma + beta;
    }
}

struct Gradients<'a> {
    x: &'a [f32],
    width: usize,
    gamma: &'a [f32],
    mean: &'a [f32],
    inverse_deviation: &'a [f32],
    gradient: &'a mut [f32],
    /// Sums of `dy n`, then of `dy`, over the rows of this block; zeros on entry.
    sums: &'a mut [f32],
}

impl Kernel for Gradients<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { x, width, gamma, mean, inverse_deviation, gradient, sums } = self;
        let (of_gamma, of_beta) = sums.split_at_mut(width);
        let rows = x.chunks_exact(width).zip(gradient.chunks_exact_mut(width));
        for ((x, gradient), (&mean, &inverse_deviation)) in rows.zip(mean.iter().zip(inverse_deviation)) {
            let statistics = [mean, inverse_deviation];
            let [first, second] = gather(simd, x, statistics, gamma, gradient, [&mut *of_gamma, &mut *of_beta]);
            let means = [narrowed(first / width as f64), narrowed(second / width as f64)];
            spread(simd, x, statistics, gamma, means, gradient);
        }
    }
}

/// Sums of `g` and of `g n` over a row, whose `dy n` and `dy` are added to `columns`.
#[inline(always)]
fn gather<S: Vectors>(
    simd: S,
    x: &[f32],
    [mean, inverse_deviation]: [f32; 2],
    gamma: &[f32],
    gradient: &[f32],
    columns: [&mut [f32]; 2],
) -> [f64; 2] {
    let [means, inverses] = [simd.splat_f32s(mean), simd.splat_f32s(inverse_deviation)];
    let mut totals = [0.0; 2];
    let [of_gamma, of_beta] = columns.map(|slice| slice.chunks_mut(PARTIAL));
    let input = x.chunks(PARTIAL).zip(gamma.chunks(PARTIAL)).zip(gradient.chunks(PARTIAL));
    for (((x, gamma), gradient), (of_gamma, of_beta)) in input.zip(of_gamma.zip(of_beta)) {
        let [(x, x_rest), (gamma, gamma_rest), (gradient, rest)] = [x, gamma, gradient].map(|s| S::as_simd_f32s(s));
        let [(of_gamma, gamma_sums), (of_beta, beta_sums)] = [of_gamma, of_beta].map(|s| S::as_mut_simd_f32s(s));
        let mut sums = [[simd.splat_f32s(0.0); 4]; 2];
        let input = x.iter().zip(gamma).zip(gradient).zip(of_gamma.iter_mut().zip(of_beta));
        for (index, (((&x, &gamma), &dy), (of_gamma, of_beta))) in input.enumerate() {
            let normed = simd.mul_f32s(simd.sub_f32s(x, means), inverses);
            *of_gamma = simd.multiply_add(dy, normed, *of_gamma);
            *of_beta = simd.add_f32s(*of_beta, dy);
            let scaled = simd.mul_f32s(dy, gamma);
            let part = index % 4;
            sums[0][part] = simd.add_f32s(sums[0][part], scaled);
            sums[1][part] = simd.multiply_add(scaled, normed, sums[1][part]);
        }
        totals[0] += joined(simd, sums[0]);
        totals[1] += joined(simd, sums[1]);
        let input = x_rest.iter().zip(gamma_rest).zip(rest).zip(gamma_sums.iter_mut().zip(beta_sums));
        for (((x, gamma), dy), (of_gamma, of_beta)) in input {
            let normed = (x - mean) * inverse_deviation;
            *of_gamma += dy * normed;
            *of_beta += dy;
            totals[0] += f64::from(dy * gamma);
            totals[1] += f64::from(dy * gamma * normed);
        }
    }
    totals
}

/// Turns `dy` of a row into `dx`, given the means of `g` and `g n`.
#[inline(always)]
fn spread<S: Vectors>(
    simd: S,
    x: &[f32],
    [mean, inverse_deviation]: [f32; 2],
    gamma: &[f32],
    [first, second]: [f32; 2],
    gradient: &mut [f32],
) {
    let [(x, x_rest), (gamma, gamma_rest)] = [x, gamma].map(|slice| S::as_simd_f32s(slice));
    let (gradient, rest) = S::as_mut_simd_f32s(gradient);
    let [means, inverses] = [simd.splat_f32s(mean), simd.splat_f32s(inverse_deviation)];
    let [firsts, seconds] = [simd.splat_f32s(first), simd.splat_f32s(second)];
    for (gradient, (&x, &gamma)) in gradient.iter_mut().zip(x.iter().zip(gamma)) {
        let normed = simd.mul_f32s(simd.sub_f32s(x, means), inverses);
        let common = simd.multiply_add(normed, seconds, firsts);
        let own = simd.sub_f32s(simd.mul_f32s(*gradient, gamma), common);
        *gradient = simd.mul_f32s(own, inverses);
    }
    for (gradient, (x, gamma)) in rest.iter_mut().zip(x_rest.iter().zip(gamma_rest)) {
        let normed = (x - mean) * inverse_deviation;
        *gradient = (*gradient * gamma - (normed * second + first)) * inverse_deviation;
    }
}

#[cfg(test)]
mod tests;
