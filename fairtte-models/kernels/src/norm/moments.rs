//! Mean and variance of one channel, in one pass over memory.
//!
//! A block of about 4096 values fits into the first-level cache and is read twice: for its mean, then for the sum of
//! squares about it. Blocks are merged in double precision by the formulas of Chan, Golub and `LeVeque` (1983),
//! Algorithms for computing the sample variance, doi:10.1080/00031305.1983.10483115. Neither a mean far greater than
//! the deviation nor a long sum costs precision. Squares that overflow or underflow in single precision are computed
//! again in double precision.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use rayon::prelude::*;

use crate::simd::lanes::{last_lanes, load_last, masked, total};
use crate::simd::{self, Kernel, Vectors};
use crate::tasks::units_per_task;

/// A part of one channel: the values that are read, and those that are written.
pub(crate) struct Segment<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) values: &'a mut [f32],
}

/// Number of values that are added in single precision before they are added to a total.
pub(crate) const BLOCK: usize = 1 << 12;
/// A channel of more values is divided among threads, in pieces of this size.
pub(crate) const LARGE: usize = 1 << 17;
pub(crate) const PIECE: usize = 1 << 15;

/// Count, mean and sum of squares about the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    pub(crate) count: f64,
    pub(crate) mean: f64,
    pub(crate) squares: f64,
}

impl Moments {
    /// Mean and variance 0.
    pub(crate) fn of_nothing() -> Self {
        Self { count: 1.0, mean: 0.0, squares: 0.0 }
    }

    /// Moments of both sets together.
    #[inline(always)]
    pub(crate) fn merge(self, other: Self) -> Self {
        let count = self.count + other.count;
        if count == 0.0 {
            return self;
        }
        let step = other.mean - self.mean;
        let mean = self.mean + step * (other.count / count);
        let between = step * step * (self.count * other.count / count);
        Self { count, mean, squares: self.squares + other.squares + between }
    }

    /// Moments of values from the sums of their differences from `about` and of the squares of these.
    #[inline(always)]
    pub(crate) fn about(count: f64, about: f64, sum: f64, squares: f64) -> Self {
        let shift = sum / count;
        Self { count, mean: about + shift, squares: (squares - sum * shift).max(0.0) }
    }

    /// Biased variance.
    pub(crate) fn variance(self) -> f64 {
        self.squares / self.count
    }

    /// Whether single precision was enough for the squares; `epsilon` is what the variance will be added to.
    pub(crate) fn is_ordinary(self, epsilon: f64) -> bool {
        self.variance() < 1e30 && self.variance() + epsilon > 1e-30
    }
}

/// Moments of a channel; see [`Moments::is_ordinary`] for `epsilon`.
pub(crate) fn moments(segments: &[Segment], epsilon: f64) -> Moments {
    let length = segments.first().map_or(0, |segment| segment.x.len());
    let result = if length * segments.len() > LARGE {
        let pieces = segments.par_chunks(units_per_task(segments.len(), length, PIECE));
        let pieces: Vec<Moments> = pieces.map(|segments| simd::run(OfSegments { segments })).collect();
        pieces.into_iter().fold(Moments::default(), Moments::merge)
    } else {
        simd::run(OfSegments { segments })
    };
    if result.is_ordinary(epsilon) {
        return result;
    }
    in_double_precision(segments.iter().flat_map(|segment| segment.x.iter().copied()))
}

/// Moments by two passes in double precision.
pub(crate) fn in_double_precision(values: impl Iterator<Item = f32> + Clone) -> Moments {
    let (mut count, mut sum) = (0.0, 0.0);
    for value in values.clone() {
        count += 1.0;
        sum += f64::from(value);
    }
    let mean = sum / count;
    Moments { count, mean, squares: values.map(|value| (f64::from(value) - mean).powi(2)).sum() }
}

struct OfSegments<'a, 'b> {
    segments: &'a [Segment<'b>],
}

impl Kernel for OfSegments<'_, '_> {
    type Output = Moments;

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) -> Moments {
        let mut result = Moments::default();
        let length = self.segments.first().map_or(0, |segment| segment.x.len());
        if length >= BLOCK {
            for segment in self.segments {
                for block in segment.x.chunks(BLOCK) {
                    result = result.merge(block_moments(simd, std::iter::once(block)));
                }
            }
        } else {
            for block in self.segments.chunks(units_per_task(self.segments.len(), length, BLOCK)) {
                result = result.merge(block_moments(simd, block.iter().map(|segment| segment.x)));
            }
        }
        result
    }
}

/// Moments of the values of a few short slices.
#[inline(always)]
fn block_moments<'a, S: Vectors>(simd: S, slices: impl Iterator<Item = &'a [f32]> + Clone) -> Moments {
    let zero = simd.splat_f32s(0.0);
    let mut count = 0;
    let mut sums = [zero; 4];
    for slice in slices.clone() {
        count += slice.len();
        let (fours, rest) = pulp::as_arrays::<4, _>(S::as_simd_f32s(slice).0);
        for four in fours {
            for lane in 0..4 {
                sums[lane] = simd.add_f32s(sums[lane], four[lane]);
            }
        }
        for (sum, &vector) in sums.iter_mut().zip(rest) {
            *sum = simd.add_f32s(*sum, vector);
        }
        let rest = slice.len() % S::F32_LANES;
        if rest != 0 {
            sums[3] = simd.add_f32s(sums[3], masked(simd, last_lanes(simd, rest), load_last(simd, slice)));
        }
    }
    let count = count as f64;
    #[expect(clippy::cast_possible_truncation, reason = "any number near the mean will do")]
    let near = (total_of(simd, sums) / count) as f32;
    let mean = simd.splat_f32s(near);
    let mut sums = [zero; 4];
    let mut squares = [zero; 4];
    for slice in slices {
        let (fours, rest) = pulp::as_arrays::<4, _>(S::as_simd_f32s(slice).0);
        for four in fours {
            for lane in 0..4 {
                let difference = simd.sub_f32s(four[lane], mean);
                sums[lane] = simd.add_f32s(sums[lane], difference);
                squares[lane] = simd.multiply_add(difference, difference, squares[lane]);
            }
        }
        for (lane, &vector) in rest.iter().enumerate() {
            let difference = simd.sub_f32s(vector, mean);
            sums[lane] = simd.add_f32s(sums[lane], difference);
            squares[lane] = simd.multiply_add(difference, difference, squares[lane]);
        }
        let rest = slice.len() % S::F32_LANES;
        if rest != 0 {
            let difference = simd.sub_f32s(load_last(simd, slice), mean);
            let difference = masked(simd, last_lanes(simd, rest), difference);
            sums[3] = simd.add_f32s(sums[3], difference);
            squares[3] = simd.multiply_add(difference, difference, squares[3]);
        }
    }
    Moments::about(count, f64::from(near), total_of(simd, sums), total_of(simd, squares))
}

#[inline(always)]
fn total_of<S: Vectors>(simd: S, sums: [S::f32s; 4]) -> f64 {
    total(simd, simd.add_f32s(simd.add_f32s(sums[0], sums[1]), simd.add_f32s(sums[2], sums[3])))
}
