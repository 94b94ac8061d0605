//! Transforms of input, filter and output: `G w G'`, `B' x B` and `A' m A` in the names of the paper.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use std::ops::Range;

use super::Tiles;
use crate::simd::lanes::{LONGEST, load, store};
use crate::simd::{Kernel, Vectors};

/// Components of a transformed tile.
pub(super) const COMPONENTS: usize = 16;

/// The kernels of a convolution.
#[derive(Clone, Copy)]
pub(super) struct FilterTransform<'a> {
    pub weights: &'a [f32],
    /// Distance from an output to the next, and from an input to the next.
    pub strides: [usize; 2],
    pub inputs: usize,
    pub depth: usize,
    /// Steps of a part.
    pub steps: usize,
    /// Whether a kernel is read from its last number to its first.
    pub mirrored: bool,
}

impl FilterTransform<'_> {
    /// Writes those of some outputs, at most [`LONGEST`], transformed: to places `[component][part]`, each `[steps][outputs]`.
    #[inline(always)]
    pub fn write(self, outputs: Range<usize>, places: &mut [&mut [f32]]) {
        const TAPS: usize = 9;
        let Self { weights, strides, inputs, depth, steps, mirrored } = self;
        let count = outputs.len();
        let parts = (inputs * depth).div_ceil(steps);
        for (slice, input) in (0..depth).flat_map(|slice| (0..inputs).map(move |input| (slice, input))) {
            let mut taps = [[0.0; LONGEST]; TAPS];
            let from = if mirrored { depth - 1 - slice } else { slice };
            for (lane, output) in outputs.clone().enumerate() {
                let kernel = &weights[output * strides[0] + input * strides[1] + from * TAPS..][..TAPS];
                for (tap, taps) in taps.iter_mut().enumerate() {
                    taps[lane] = if mirrored { kernel[TAPS - 1 - tap] } else { kernel[tap] };
                }
            }
            let step = slice * inputs + input;
            let (part, at) = (step / steps, step % steps * count);
            let of_part = places.iter_mut().skip(part).step_by(parts);
            for (place, component) in of_part.zip(&transformed_filters(&taps)) {
                place[at..at + count].copy_from_slice(&component[..count]);
            }
        }
    }
}

/// `G w G'` of kernels side by side.
#[inline(always)]
fn transformed_filters(taps: &[[f32; LONGEST]; 9]) -> [[f32; LONGEST]; COMPONENTS] {
    let mut rows = [[[0.0; LONGEST]; 3]; 4];
    for column in 0..3 {
        let [a, b, c, d] = halves(&taps[column], &taps[3 + column], &taps[6 + column]);
        rows[0][column] = a;
        rows[1][column] = b;
        rows[2][column] = c;
        rows[3][column] = d;
    }
    let mut component = [[0.0; LONGEST]; COMPONENTS];
    for (component, [a, b, c]) in component.chunks_exact_mut(4).zip(&rows) {
        component.copy_from_slice(&halves(a, b, c));
    }
    component
}

/// `G` times a column.
#[inline(always)]
fn halves(a: &[f32; LONGEST], b: &[f32; LONGEST], c: &[f32; LONGEST]) -> [[f32; LONGEST]; 4] {
    let [mut sum, mut difference] = [[0.0; LONGEST]; 2];
    for lane in 0..LONGEST {
        let outer = 0.5 * (a[lane] + c[lane]);
        sum[lane] = outer + 0.5 * b[lane];
        difference[lane] = outer - 0.5 * b[lane];
    }
    [*a, sum, difference, *c]
}

/// Number of values that [`InputTransform`] and [`OutputTransform`] need as working memory.
pub(super) fn lines(tiles: &Tiles) -> usize {
    (2 * tiles.rows + 2) * 2 * half_line(tiles)
}

/// Number of values at even places of a row, or at odd ones, rounded up to whole vectors.
fn half_line(tiles: &Tiles) -> usize {
    (tiles.columns + 1).next_multiple_of(LONGEST) + LONGEST
}

/// `B' x B` of the tiles in a slice of an input.
pub(super) struct InputTransform<'a> {
    /// The slice without its padding, `[height][width]`.
    pub source: &'a [f32],
    pub size: [usize; 2],
    pub padding: [usize; 2],
    /// First row of the padded slice that the tiles see.
    pub first: usize,
    pub tiles: &'a Tiles,
    /// [`lines`] values of working memory, not necessarily initialised.
    pub lines: &'a mut [f32],
    /// `[component][row][column]`; up to one vector after each is overwritten.
    pub target: &'a mut [f32],
}

impl Kernel for InputTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { source, size: [height, width], padding, first, tiles, lines, target } = self;
        let half = half_line(tiles);
        for (index, line) in lines.chunks_exact_mut(2 * half).take(2 * tiles.rows + 2).enumerate() {
            let row = (first + index).checked_sub(padding[0]).filter(|&row| row < height);
            let row = row.map_or(&[][..], |row| &source[row * width..(row + 1) * width]);
            let (even, odd) = line.split_at_mut(half);
            part(row, padding[1], even, odd);
        }
        for row in 0..tiles.rows {
            for at in (0..tiles.columns).step_by(S::F32_LANES) {
                // The columns of a tile are at places 2t, 2t + 1, 2t + 2 and 2t + 3 of its four lines.
                let from = 2 * row * 2 * half + at;
                let columns = [from, from + half, from + 1, from + half + 1];
                let target = &mut target[row * tiles.columns + at..];
                transform_input(simd, lines, columns, 2 * half, target, tiles.stride);
            }
        }
    }
}

/// `B' x B` of tiles side by side in a vector, whose columns begin at `columns` and have their four rows `line` apart; each
/// component is written `stride` after the previous one.
#[inline(always)]
pub(super) fn transform_input<S: Vectors>(
    simd: S,
    lines: &[f32],
    columns: [usize; 4],
    line: usize,
    target: &mut [f32],
    stride: usize,
) {
    let mut of_columns = [[simd.splat_f32s(0.0); 4]; 4];
    for (of_column, from) in of_columns.iter_mut().zip(columns) {
        let a = load(simd, lines, from);
        let b = load(simd, lines, from + line);
        let c = load(simd, lines, from + 2 * line);
        let d = load(simd, lines, from + 3 * line);
        *of_column = differences(simd, [a, b, c, d]);
    }
    let [a, b, c, d] = of_columns;
    for i in 0..4 {
        write_row(simd, i, differences(simd, [a[i], b[i], c[i], d[i]]), target, stride);
    }
}

/// Writes row `i` of a transformed tile.
#[inline(always)]
pub(super) fn write_row<S: Vectors>(simd: S, i: usize, row: [S::f32s; 4], target: &mut [f32], stride: usize) {
    for (j, value) in row.into_iter().enumerate() {
        store(simd, target, (4 * i + j) * stride, value);
    }
}

/// `B'` times a column.
#[inline(always)]
fn differences<S: Vectors>(simd: S, [a, b, c, d]: [S::f32s; 4]) -> [S::f32s; 4] {
    [simd.sub_f32s(a, c), simd.add_f32s(b, c), simd.sub_f32s(c, b), simd.sub_f32s(b, d)]
}

/// The values at even and at odd places of a row that has `padding` zeros before it and zeros after it.
#[inline(always)]
fn part(row: &[f32], padding: usize, even: &mut [f32], odd: &mut [f32]) {
    let zeros = padding.div_ceil(2);
    even[..zeros].fill(0.0);
    odd[..padding / 2].fill(0.0);
    let (even, odd) = (&mut even[zeros..], &mut odd[padding / 2..]);
    // After an odd number of zeros the row begins at an odd place.
    let (first, second) = if padding.is_multiple_of(2) { (even, odd) } else { (odd, even) };
    let (pairs, rest) = row.as_chunks::<2>();
    let count = pairs.len().min(first.len()).min(second.len());
    for ((first, second), pair) in first.iter_mut().zip(second.iter_mut()).zip(pairs) {
        *first = pair[0];
        *second = pair[1];
    }
    first[count..].fill(0.0);
    second[count..].fill(0.0);
    if let ([last], Some(first)) = (rest, first.get_mut(count)) {
        *first = *last;
    }
}

/// `A' m A` of the tiles in some slices of an output; returns whether all values are finite.
pub(super) struct OutputTransform<'a, 'b, 'c> {
    /// `[component][depth][row][column]`, with one vector after the last.
    pub sums: &'a [f32],
    /// Distance from a component to the next.
    pub stride: usize,
    pub tiles: &'a Tiles,
    /// [`lines`] values of working memory, not necessarily initialised.
    pub lines: &'a mut [f32],
    /// Places in a row of the output.
    pub width: usize,
    /// The rows of places of the task in each slice.
    pub bands: &'b mut [&'c mut [f32]],
}

impl Kernel for OutputTransform<'_, '_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) -> bool {
        let Self { sums, stride, tiles, lines, width, bands } = self;
        let half = half_line(tiles);
        let mut largest = 0;
        for (depth, band) in bands.iter_mut().enumerate() {
            for (row, pair) in band.chunks_mut(2 * width).enumerate() {
                let from = (depth * tiles.rows + row) * tiles.columns;
                for at in (0..tiles.columns).step_by(S::F32_LANES) {
                    let mut columns = [[simd.splat_f32s(0.0); 2]; 4];
                    for (j, column) in columns.iter_mut().enumerate() {
                        let a = load(simd, sums, j * stride + from + at);
                        let b = load(simd, sums, (4 + j) * stride + from + at);
                        let c = load(simd, sums, (8 + j) * stride + from + at);
                        let d = load(simd, sums, (12 + j) * stride + from + at);
                        *column = places(simd, [a, b, c, d]);
                    }
                    let [a, b, c, d] = columns;
                    for i in 0..2 {
                        let [even, odd] = places(simd, [a[i], b[i], c[i], d[i]]);
                        store(simd, lines, 2 * i * half + at, even);
                        store(simd, lines, (2 * i + 1) * half + at, odd);
                    }
                }
                for (target, line) in pair.chunks_mut(width).zip(lines.chunks_exact(2 * half)) {
                    let (even, odd) = line.split_at(half);
                    largest = largest.max(unite(even, odd, target));
                }
            }
        }
        largest < f32::INFINITY.to_bits()
    }
}

/// `A'` times a column.
#[inline(always)]
fn places<S: Vectors>(simd: S, [a, b, c, d]: [S::f32s; 4]) -> [S::f32s; 2] {
    [simd.add_f32s(simd.add_f32s(a, b), c), simd.sub_f32s(simd.sub_f32s(b, c), d)]
}

/// Writes values to even and to odd places; returns the largest bits of their magnitudes, which are those of a NaN or
/// an infinity if there is one.
#[inline(always)]
fn unite(even: &[f32], odd: &[f32], target: &mut [f32]) -> u32 {
    let (pairs, rest) = target.as_chunks_mut::<2>();
    let mut largest = 0;
    for ((pair, &even), &odd) in pairs.iter_mut().zip(even).zip(odd) {
        *pair = [even, odd];
        largest = largest.max(even.abs().to_bits()).max(odd.abs().to_bits());
    }
    if let ([last], Some(&even)) = (rest, even.get(pairs.len())) {
        *last = even;
        largest = largest.max(even.abs().to_bits());
    }
    largest
}
