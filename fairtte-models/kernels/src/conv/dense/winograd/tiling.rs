//! The transforms of tiles: the matrices `A`, `B` and `G` of the paper and their transposes.
//!
//! They follow from the points at which the polynomials of a filter and a tile are multiplied (Cook and Toom), which also decide the
//! rounding error. All are exact in single precision but `G` of [`FourByFour`].

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use crate::simd::Vectors;
use crate::simd::lanes::{LONGEST, load, store};

/// Largest number of rows and columns of a matrix.
pub(super) const LARGEST: usize = 6;

/// A size of tiles, with its transforms.
pub(in super::super) trait Tiling: Copy + Send + Sync {
    /// Places of the output in a tile, along each axis.
    const PLACES: usize;
    /// Places of the input that a tile depends on, along each axis.
    const SEEN: usize = Self::PLACES + 2;
    /// Components of a transformed tile.
    const COMPONENTS: usize = Self::SEEN * Self::SEEN;
    /// Time of the transforms of input and output of tiles side by side in a vector, in products of vectors.
    const TRANSFORMS: usize;
    /// Time of the transform of a filter, in products of vectors.
    const FILTER: usize;
    /// `B'`, of the input.
    type Input: Matrix;
    /// `G`, of a filter.
    type Filter: Matrix;
    /// `A'`, of the sums.
    type Output: Matrix;
    /// `A`, of the output's gradient.
    type Gradient: Matrix;
    /// `G'`, of the sums for the gradient of a filter.
    type Weights: Matrix;
}

/// A matrix that is applied to columns side by side in a vector.
pub(in super::super) trait Matrix {
    const ROWS: usize;
    const COLUMNS: usize;

    /// The matrix times a column, whose values are `stride` apart; those of the result are `to` apart.
    fn times<S: Vectors>(simd: S, column: &[f32], stride: usize, result: &mut [f32], to: usize);
}

/// Tiles side by side in vectors, in memory.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub values: &'a [f32],
    /// Where the columns begin.
    pub columns: [usize; LARGEST],
    /// Distance from a row to the next.
    pub row: usize,
}

/// Writes `M x M'` of the tiles in a vector; rows and columns of the result are `to` apart.
#[inline(always)]
pub(super) fn both_sides<M: Matrix, S: Vectors>(simd: S, from: Place, target: &mut [f32], to: [usize; 2]) {
    let mut between = [0.0; LARGEST * LARGEST * LONGEST];
    for (index, first) in from.columns.into_iter().take(M::COLUMNS).enumerate() {
        let column = &mut between[index * LONGEST..];
        M::times(simd, &from.values[first..], from.row, column, M::COLUMNS * LONGEST);
    }
    for row in 0..M::ROWS {
        let column = &between[row * M::COLUMNS * LONGEST..];
        M::times(simd, column, LONGEST, &mut target[row * to[0]..], to[1]);
    }
}

/// Where columns `stride` apart begin.
#[inline(always)]
pub(super) fn columns_apart(stride: usize) -> [usize; LARGEST] {
    [0, stride, 2 * stride, 3 * stride, 4 * stride, 5 * stride]
}

/// `factor * value + plus`.
#[inline(always)]
fn times<S: Vectors>(simd: S, factor: f32, value: S::f32s, plus: S::f32s) -> S::f32s {
    simd.multiply_add(simd.splat_f32s(factor), value, plus)
}

/// `factor * value`.
#[inline(always)]
fn scaled<S: Vectors>(simd: S, factor: f32, value: S::f32s) -> S::f32s {
    simd.mul_f32s(simd.splat_f32s(factor), value)
}

/// Defines a matrix by the values of a column and those of the result.
macro_rules! matrix {
    (
        $(#[$documentation:meta])* $name:ident, $simd:ident, [$($from:ident)+] -> [$($to:expr),+ $(,)?]
        $(where $bound:pat_param = $value:expr)*
    ) => {
        $(#[$documentation])*
        #[derive(Clone, Copy)]
        pub(in super::super) struct $name;

        impl Matrix for $name {
            const ROWS: usize = [$(stringify!($to)),+].len();
            const COLUMNS: usize = [$(stringify!($from)),+].len();

            #[inline(always)]
            fn times<S: Vectors>($simd: S, column: &[f32], stride: usize, result: &mut [f32], to: usize) {
                let mut at = 0;
                $(
                    let $from = load($simd, column, at);
                    at += stride;
                )+
                let _ = at;
                $(let $bound = $value;)*
                let mut at = 0;
                $(
                    store($simd, result, at, $to);
                    at += to;
                )+
                let _ = at;
            }
        }
    };
}

/// F(2 x 2, 3 x 3): 16 products in place of 36, with the points 0, 1, -1 and infinity.
#[derive(Clone, Copy)]
pub(in super::super) struct TwoByTwo;

impl Tiling for TwoByTwo {
    const PLACES: usize = 2;
    const TRANSFORMS: usize = 250;
    const FILTER: usize = 35;
    type Input = Input2;
    type Filter = Filter2;
    type Output = Output2;
    type Gradient = Gradient2;
    type Weights = Weights2;
}

matrix!(
    /// `B'` of [`TwoByTwo`].
    Input2, simd, [a b c d] ->
    [simd.sub_f32s(a, c), simd.add_f32s(b, c), simd.sub_f32s(c, b), simd.sub_f32s(b, d)]
);

matrix!(
    /// `G` of [`TwoByTwo`].
    Filter2, simd, [a b c] ->
    [a, times(simd, 0.5, b, outer), times(simd, -0.5, b, outer), c]
    where outer = scaled(simd, 0.5, simd.add_f32s(a, c))
);

matrix!(
    /// `A'` of [`TwoByTwo`].
    Output2, simd, [a b c d] ->
    [simd.add_f32s(simd.add_f32s(a, b), c), simd.sub_f32s(simd.sub_f32s(b, c), d)]
);

matrix!(
    /// `A` of [`TwoByTwo`].
    Gradient2, simd, [a b] ->
    [a, simd.add_f32s(a, b), simd.sub_f32s(a, b), simd.neg_f32s(b)]
);

matrix!(
    /// `G'` of [`TwoByTwo`].
    Weights2, simd, [a b c d] ->
    [simd.add_f32s(a, sum), scaled(simd, 0.5, simd.sub_f32s(b, c)), simd.add_f32s(sum, d)]
    where sum = scaled(simd, 0.5, simd.add_f32s(b, c))
);

/// F(4 x 4, 3 x 3): 36 products in place of 144, with the points 0, P, -P, Q, -Q and infinity.
///
/// P = 5/8 and Q = 3/2 are among the pairs of sixteenths with the smallest rounding errors of output and gradients: less than half
/// of those with the points 0, 1, -1, 2, -2 and infinity of the paper.
#[derive(Clone, Copy)]
pub(in super::super) struct FourByFour;

impl Tiling for FourByFour {
    const PLACES: usize = 4;
    const TRANSFORMS: usize = 800;
    const FILTER: usize = 75;
    type Input = Input4;
    type Filter = Filter4;
    type Output = Output4;
    type Gradient = Gradient4;
    type Weights = Weights4;
}

/// The points and their powers, all exact.
const P: f32 = 0.625;
const Q: f32 = 1.5;
const P2: f32 = P * P;
const Q2: f32 = Q * Q;
const P3: f32 = P2 * P;
const Q3: f32 = Q2 * Q;
/// The products of the differences of 0, P and Q from the other points, except infinity.
const AT_0: f32 = P2 * Q2;
const AT_P: f32 = 2.0 * P2 * (P2 - Q2);
const AT_Q: f32 = 2.0 * Q2 * (Q2 - P2);
/// Rows of `G` for 0, P and Q; those for -P and -Q differ in the sign of the second value.
const G_0: f32 = 1.0 / AT_0;
const G_P: [f32; 3] = [1.0 / AT_P, P / AT_P, P2 / AT_P];
const G_Q: [f32; 3] = [1.0 / AT_Q, Q / AT_Q, Q2 / AT_Q];

matrix!(
    /// `B'` of [`FourByFour`]: for each point the polynomial that is 0 at the others, of whose even and odd parts -P and -Q share
    /// those of P and Q.
    Input4, simd, [a b c d e f] ->
    [
        times(simd, AT_0, a, times(simd, -P2 - Q2, c, e)),
        times(simd, P, odd_p, even_p),
        times(simd, -P, odd_p, even_p),
        times(simd, Q, odd_q, even_q),
        times(simd, -Q, odd_q, even_q),
        times(simd, AT_0, b, times(simd, -P2 - Q2, d, f)),
    ]
    where even_p = times(simd, -Q2, c, e)
    where odd_p = times(simd, -Q2, b, d)
    where even_q = times(simd, -P2, c, e)
    where odd_q = times(simd, -P2, b, d)
);

matrix!(
    /// `G` of [`FourByFour`].
    Filter4, simd, [a b c] ->
    [
        scaled(simd, G_0, a),
        times(simd, G_P[1], b, even_p),
        times(simd, -G_P[1], b, even_p),
        times(simd, G_Q[1], b, even_q),
        times(simd, -G_Q[1], b, even_q),
        c,
    ]
    where even_p = times(simd, G_P[2], c, scaled(simd, G_P[0], a))
    where even_q = times(simd, G_Q[2], c, scaled(simd, G_Q[0], a))
);

matrix!(
    /// `A'` of [`FourByFour`]: the powers of the points.
    Output4, simd, [a b c d e f] ->
    [
        simd.add_f32s(a, simd.add_f32s(sum_p, sum_q)),
        times(simd, P, difference_p, scaled(simd, Q, difference_q)),
        times(simd, P2, sum_p, scaled(simd, Q2, sum_q)),
        times(simd, P3, difference_p, times(simd, Q3, difference_q, f)),
    ]
    where (sum_p, difference_p) = (simd.add_f32s(b, c), simd.sub_f32s(b, c))
    where (sum_q, difference_q) = (simd.add_f32s(d, e), simd.sub_f32s(d, e))
);

matrix!(
    /// `A` of [`FourByFour`].
    Gradient4, simd, [a b c d] ->
    [
        a,
        simd.add_f32s(even_p, odd_p),
        simd.sub_f32s(even_p, odd_p),
        simd.add_f32s(even_q, odd_q),
        simd.sub_f32s(even_q, odd_q),
        d,
    ]
    where even_p = times(simd, P2, c, a)
    where odd_p = times(simd, P3, d, scaled(simd, P, b))
    where even_q = times(simd, Q2, c, a)
    where odd_q = times(simd, Q3, d, scaled(simd, Q, b))
);

matrix!(
    /// `G'` of [`FourByFour`].
    Weights4, simd, [a b c d e f] ->
    [
        times(simd, G_0, a, times(simd, G_P[0], sum_p, scaled(simd, G_Q[0], sum_q))),
        times(simd, G_P[1], difference_p, scaled(simd, G_Q[1], difference_q)),
        times(simd, G_P[2], sum_p, times(simd, G_Q[2], sum_q, f)),
    ]
    where (sum_p, difference_p) = (simd.add_f32s(b, c), simd.sub_f32s(b, c))
    where (sum_q, difference_q) = (simd.add_f32s(d, e), simd.sub_f32s(d, e))
);
