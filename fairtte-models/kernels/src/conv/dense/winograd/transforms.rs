//! Transforms of input, filter and output: `G w G'`, `B' x B` and `A' m A` in the names of the paper.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use std::marker::PhantomData;
use std::ops::Range;

use super::tiling::{LARGEST, Place, Tiling, both_sides, columns_apart};
use super::work::Tiles;
use crate::gemm;
use crate::simd::lanes::{LONGEST, load, store};
use crate::simd::{Kernel, Vectors};

/// `G w G'` of the kernels of some outputs.
pub(in super::super) struct FilterTransform<'a, T> {
    pub tiling: PhantomData<T>,
    pub weights: &'a [f32],
    /// Distance from an output to the next, and from an input to the next.
    pub strides: [usize; 2],
    pub inputs: usize,
    pub depth: usize,
    /// Steps of a part.
    pub steps: usize,
    /// Whether a kernel is read from its last number to its first.
    pub mirrored: bool,
    /// At most [`LONGEST`].
    pub outputs: Range<usize>,
    /// `[component][part]`, each `[steps][outputs]`.
    pub places: Vec<&'a mut [f32]>,
}

impl<T: Tiling> Kernel for FilterTransform<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        const TAPS: usize = 9;
        let Self { weights, strides, inputs, depth, steps, mirrored, outputs, mut places, .. } = self;
        let count = outputs.len();
        let parts = (inputs * depth).div_ceil(steps);
        let (mut taps, mut components) = ([0.0; TAPS * LONGEST], [0.0; LARGEST * LARGEST * LONGEST]);
        for (slice, input) in (0..depth).flat_map(|slice| (0..inputs).map(move |input| (slice, input))) {
            let from = if mirrored { depth - 1 - slice } else { slice };
            for (lane, output) in outputs.clone().enumerate() {
                let kernel = &weights[output * strides[0] + input * strides[1] + from * TAPS..][..TAPS];
                for (tap, taps) in taps.chunks_exact_mut(LONGEST).enumerate() {
                    taps[lane] = if mirrored { kernel[TAPS - 1 - tap] } else { kernel[tap] };
                }
            }
            for lane in (0..count).step_by(S::F32_LANES) {
                let from = Place { values: &taps[lane..], columns: columns_apart(LONGEST), row: 3 * LONGEST };
                both_sides::<T::Filter, S>(simd, from, &mut components[lane..], [T::SEEN * LONGEST, LONGEST]);
            }
            let step = slice * inputs + input;
            let (part, at) = (step / steps, step % steps * count);
            for (index, component) in components.as_chunks::<LONGEST>().0.iter().enumerate().take(T::COMPONENTS) {
                let place = &mut places[index * parts + part][at..];
                // The values behind those of a step are those of the next, which are not yet there.
                match place.first_chunk_mut::<LONGEST>() {
                    Some(place) => *place = *component,
                    None => place[..count].copy_from_slice(&component[..count]),
                }
            }
        }
    }
}

/// Number of values that [`InputTransform`] and [`OutputTransform`] need as working memory.
pub(super) fn lines<T: Tiling>(tiles: &Tiles) -> usize {
    (T::PLACES * tiles.rows + 3) * T::PLACES * piece(tiles)
}

/// Number of values of a row whose places have the same remainder by the edge of a tile, rounded up to whole vectors.
fn piece(tiles: &Tiles) -> usize {
    (tiles.columns + 1).next_multiple_of(LONGEST) + LONGEST
}

/// `B' x B` of the tiles in a slice of an input.
pub(super) struct InputTransform<'a, T> {
    pub tiling: PhantomData<T>,
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

impl<T: Tiling> Kernel for InputTransform<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { source, size: [height, width], padding, first, tiles, lines, target, .. } = self;
        let piece = piece(tiles);
        let line = T::PLACES * piece;
        let (padded, lines) = lines.split_at_mut(line);
        let padded = &mut padded[..T::PLACES * (tiles.columns + 1).next_multiple_of(LONGEST)];
        padded.fill(0.0);
        for (index, line) in lines.chunks_exact_mut(line).take(T::PLACES * tiles.rows + 2).enumerate() {
            let row = (first + index).checked_sub(padding[0]).filter(|&row| row < height);
            let place = &mut padded[padding[1]..padding[1] + width];
            match row {
                Some(row) => place.copy_from_slice(&source[row * width..(row + 1) * width]),
                None => place.fill(0.0),
            }
            divide(simd, T::PLACES, padded, line, piece);
        }
        // The columns of tile t are at the places from t times its edge.
        let mut columns = [0; LARGEST];
        for (place, column) in columns.iter_mut().enumerate() {
            *column = place % T::PLACES * piece + place / T::PLACES;
        }
        for row in 0..tiles.rows {
            for at in (0..tiles.columns).step_by(S::F32_LANES) {
                let from = Place { values: &lines[row * T::PLACES * line + at..], columns, row: line };
                let target = &mut target[row * tiles.columns + at..];
                both_sides::<T::Input, S>(simd, from, target, [T::SEEN * tiles.stride, tiles.stride]);
            }
        }
    }
}

/// Divides a row, of whole vectors for each of the `edge` pieces of a line, by the remainders of the places by `edge`, 2 or 4.
#[inline(always)]
fn divide<S: Vectors>(simd: S, edge: usize, row: &[f32], line: &mut [f32], piece: usize) {
    for at in (0..row.len() / edge).step_by(S::F32_LANES) {
        let from = edge * at;
        let [even, odd] = simd.deinterleave([load(simd, row, from), load(simd, row, from + S::F32_LANES)]);
        if edge == 2 {
            store(simd, line, at, even);
            store(simd, line, piece + at, odd);
            continue;
        }
        let from = from + 2 * S::F32_LANES;
        let [more_even, more_odd] = simd.deinterleave([load(simd, row, from), load(simd, row, from + S::F32_LANES)]);
        let [first, third] = simd.deinterleave([even, more_even]);
        let [second, fourth] = simd.deinterleave([odd, more_odd]);
        store(simd, line, at, first);
        store(simd, line, piece + at, second);
        store(simd, line, 2 * piece + at, third);
        store(simd, line, 3 * piece + at, fourth);
    }
}

/// The reverse of [`divide`].
#[inline(always)]
fn unite<S: Vectors>(simd: S, edge: usize, line: &[f32], piece: usize, row: &mut [f32]) {
    for at in (0..row.len() / edge).step_by(S::F32_LANES) {
        let [first, second] = [load(simd, line, at), load(simd, line, piece + at)];
        if edge == 2 {
            let [a, b] = simd.interleave([first, second]);
            store(simd, row, edge * at, a);
            store(simd, row, edge * at + S::F32_LANES, b);
            continue;
        }
        let [third, fourth] = [load(simd, line, 2 * piece + at), load(simd, line, 3 * piece + at)];
        let [even, more_even] = simd.interleave([first, third]);
        let [odd, more_odd] = simd.interleave([second, fourth]);
        let of_pairs = [simd.interleave([even, odd]), simd.interleave([more_even, more_odd])];
        for (index, &vector) in of_pairs.as_flattened().iter().enumerate() {
            store(simd, row, edge * at + index * S::F32_LANES, vector);
        }
    }
}

/// The largest bits of the magnitudes of values, which are those of a NaN or an infinity if there is one.
#[inline(always)]
pub(super) fn largest_bits(values: &[f32]) -> u32 {
    values.iter().fold(0, |largest, value| largest.max(value.abs().to_bits()))
}

/// `A' m A` of the tiles in some slices of an output; returns whether all values are finite.
pub(super) struct OutputTransform<'a, 'b, 'c, T> {
    pub tiling: PhantomData<T>,
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

impl<T: Tiling> Kernel for OutputTransform<'_, '_, '_, T> {
    type Output = bool;

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) -> bool {
        let Self { sums, stride, tiles, lines, width, bands, .. } = self;
        let piece = piece(tiles);
        let (joined, lines) = lines.split_at_mut(T::PLACES * piece);
        // Short rows of tiles share a vector, also those of slices that follow one another.
        let together = (LONGEST / tiles.columns).max(1);
        let mut largest = 0;
        for rows in gemm::parts(tiles.depth * tiles.rows, together) {
            let (from, count) = (rows.start * tiles.columns, rows.len() * tiles.columns);
            for at in (0..count).step_by(S::F32_LANES) {
                let from = Place { values: &sums[from + at..], columns: columns_apart(stride), row: T::SEEN * stride };
                both_sides::<T::Output, S>(simd, from, &mut lines[at..], [T::PLACES * piece, piece]);
            }
            let joined = &mut joined[..T::PLACES * count.next_multiple_of(LONGEST)];
            for (place, line) in lines.chunks_exact(T::PLACES * piece).take(T::PLACES).enumerate() {
                unite(simd, T::PLACES, line, piece, joined);
                for (row, joined) in rows.clone().zip(joined.chunks_exact(T::PLACES * tiles.columns)) {
                    let band = &mut bands[row / tiles.rows];
                    let first = (T::PLACES * (row % tiles.rows) + place) * width;
                    // The last tiles may reach beyond the edge.
                    if let Some(target) = band.get_mut(first..first + width) {
                        target.copy_from_slice(&joined[..width]);
                        largest = largest.max(largest_bits(target));
                    }
                }
            }
        }
        largest < f32::INFINITY.to_bits()
    }
}
