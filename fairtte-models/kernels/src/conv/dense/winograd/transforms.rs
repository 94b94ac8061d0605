//! Transforms of input, filter and output: `G w G'`, `B' x B` and `A' m A` in the names of the paper.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use std::marker::PhantomData;
use std::ops::Range;

use super::tiling::{LARGEST, Place, Tiling, both_sides, columns_apart};
use super::work::Tiles;
use crate::gemm::{self, copy_run};
use crate::simd::lanes::{LONGEST, first_lanes, load, masked, store, total};
use crate::simd::prefetch::prefetch_run;
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
        /// Kernels that are transposed together: their taps are as many whole vectors.
        const TOGETHER: usize = LONGEST;
        /// Inputs whose kernels are requested ahead.
        const AHEAD: usize = 4;
        let Self { weights, strides, inputs, depth, steps, mirrored, outputs, mut places, .. } = self;
        let count = outputs.len();
        let parts = (inputs * depth).div_ceil(steps);
        // `[kernel][tap][output]`, with one vector after the last.
        let mut taps = [0.0; (TOGETHER * TAPS + 1) * LONGEST];
        let mut components = [0.0; LARGEST * LARGEST * LONGEST];
        for (slice, input) in (0..depth).flat_map(|slice| (0..inputs).map(move |input| (slice, input))) {
            let mut first = 0;
            if depth == 1 && !mirrored {
                // The kernels of an output follow one another in the order in which they are transformed.
                if input % TOGETHER == 0 {
                    let kernels = &weights[outputs.start * strides[0] + input * TAPS..];
                    let steps = (inputs - input).min(TOGETHER) * TAPS;
                    gemm::transpose(kernels, strides[0], steps, count, count, &mut taps);
                }
                first = input % TOGETHER * TAPS * count;
            } else {
                let from = if mirrored { depth - 1 - slice } else { slice };
                let place = outputs.start * strides[0] + input * strides[1] + from * TAPS;
                if mirrored {
                    // The kernels of the outputs follow one another, and those of the next input are on another page.
                    prefetch_run(weights, place + AHEAD * strides[1], count * strides[0]);
                }
                for lane in 0..count {
                    let kernel = &weights[place + lane * strides[0]..][..TAPS];
                    for tap in 0..TAPS {
                        taps[tap * count + lane] = if mirrored { kernel[TAPS - 1 - tap] } else { kernel[tap] };
                    }
                }
            }
            for lane in (0..count).step_by(S::F32_LANES) {
                let from = Place { values: &taps[first + lane..], columns: columns_apart(count), row: 3 * count };
                both_sides::<T::Filter, S>(simd, from, &mut components[lane..], [T::SEEN * LONGEST, LONGEST]);
            }
            let step = slice * inputs + input;
            let (part, at) = (step / steps, step % steps * count);
            for index in 0..T::COMPONENTS {
                // The values after those of a step are those of the next, which are not yet there.
                copy_run(&components, index * LONGEST, places[index * parts + part], at, count);
            }
        }
    }
}

/// Number of values that [`InputTransform`] and [`OutputTransform`] need as working memory.
pub(super) fn lines<T: Tiling>(tiles: &Tiles) -> usize {
    // Of the input the lines that the tiles see and a padded row, of the output two lines for each row of a tile.
    (T::PLACES * tiles.rows + 3).max(2 * T::PLACES) * T::PLACES * piece(tiles)
}

/// Number of values of a row whose places have the same remainder by the edge of a tile, rounded up to whole vectors.
fn piece(tiles: &Tiles) -> usize {
    (tiles.columns + 1).next_multiple_of(LONGEST) + LONGEST
}

/// `B' x B` of the tiles in some slices of an input.
pub(super) struct InputTransform<'a, T> {
    pub tiling: PhantomData<T>,
    /// The slices without their padding, each `[height][width]`; values between and after them are those of others.
    pub source: &'a [f32],
    /// Number of slices.
    pub depth: usize,
    /// Distance from a slice to the next in the source.
    pub distance: usize,
    /// Distance to the input that is transformed next.
    pub next: usize,
    pub size: [usize; 2],
    pub padding: [usize; 2],
    /// First row of a padded slice that the tiles see.
    pub first: usize,
    pub tiles: &'a Tiles,
    /// [`lines`] values of working memory, not necessarily initialised.
    pub lines: &'a mut [f32],
    /// `[component][depth][row][column]`; up to one vector after each is overwritten.
    pub target: &'a mut [f32],
}

impl<T: Tiling> Kernel for InputTransform<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(mut self, simd: S) {
        /// Rows of tiles at or above which the copies that bring them together take less time than they save.
        const FEWEST: usize = 4;
        // Short rows of tiles share a vector, also those of slices that follow one another.
        let together = LONGEST / self.tiles.columns;
        let (lines, target) = (std::mem::take(&mut self.lines), std::mem::take(&mut self.target));
        if together >= FEWEST {
            for slices in gemm::parts(self.depth, together) {
                self.short_rows(simd, slices, together, lines, target);
            }
        } else {
            (0..self.depth).for_each(|slice| self.long_rows(simd, slice, lines, target));
        }
    }
}

impl<T: Tiling> InputTransform<'_, T> {
    /// Copies the row of a slice at so many rows after the first, with its padding: so many values. Up to one vector after them is
    /// overwritten.
    #[inline(always)]
    fn pad(&self, slice: usize, index: usize, count: usize, to: &mut [f32]) {
        const ZEROS: [f32; LONGEST] = [0.0; LONGEST];
        let ([height, width], [above, left]) = (self.size, self.padding);
        match (self.first + index).checked_sub(above).filter(|&row| row < height) {
            Some(row) => {
                let from = slice * self.distance + row * width;
                prefetch_run(self.source, from + self.next, width);
                copy_run(&ZEROS, 0, to, 0, left);
                copy_run(self.source, from, to, left, width);
                copy_run(&ZEROS, 0, to, left + width, count - left - width);
            }
            None => to[..count].fill(0.0),
        }
    }

    /// Transforms a slice row by row of tiles.
    #[inline(always)]
    fn long_rows<S: Vectors>(&self, simd: S, slice: usize, lines: &mut [f32], target: &mut [f32]) {
        let Tiles { rows, columns, stride, .. } = *self.tiles;
        let piece = piece(self.tiles);
        let line = T::PLACES * piece;
        let (padded, lines) = lines.split_at_mut(line);
        let whole = T::PLACES * (columns + 1).next_multiple_of(LONGEST);
        for (index, line) in lines.chunks_exact_mut(line).take(T::PLACES * rows + 2).enumerate() {
            self.pad(slice, index, T::PLACES * (columns + 1), padded);
            divide(simd, [T::PLACES; 2], &padded[..whole], line, piece);
        }
        // The columns of tile t are at the places from t times its edge.
        let mut places = [0; LARGEST];
        for (index, place) in places.iter_mut().enumerate() {
            *place = index % T::PLACES * piece + index / T::PLACES;
        }
        for row in 0..rows {
            for at in (0..columns).step_by(S::F32_LANES) {
                let from = Place { values: &lines[row * T::PLACES * line + at..], columns: places, row: line };
                let target = &mut target[(slice * rows + row) * columns + at..];
                both_sides::<T::Input, S>(simd, from, target, [T::SEEN * stride, stride]);
            }
        }
    }

    /// Transforms some slices with so many rows of tiles in a vector.
    #[inline(always)]
    fn short_rows<S: Vectors>(
        &self,
        simd: S,
        slices: Range<usize>,
        together: usize,
        planes: &mut [f32],
        target: &mut [f32],
    ) {
        let Tiles { rows, columns, stride, .. } = *self.tiles;
        let seen = T::PLACES * rows + 2;
        let pitch = T::PLACES * (columns + 1);
        let padded_rows = slices.clone().flat_map(|slice| (0..seen).map(move |index| (slice, index)));
        for (at, (slice, index)) in padded_rows.enumerate() {
            self.pad(slice, index, pitch, &mut planes[at * pitch..]);
        }
        let mut joined = [0.0; (LARGEST + 1) * LONGEST];
        let mut lines = [0.0; LARGEST * LARGEST * LONGEST];
        for group in gemm::parts(slices.len() * rows, together) {
            let mut starts = [0; LONGEST];
            for (start, row) in starts.iter_mut().zip(group.clone()) {
                *start = (row / rows * seen + row % rows * T::PLACES) * pitch;
            }
            let count = group.len() * columns;
            for (index, line) in lines.chunks_exact_mut(LARGEST * LONGEST).take(T::SEEN).enumerate() {
                // The columns of the tiles, and the first two of the tiles after them.
                for (first, pieces) in [(0, T::PLACES), (T::PLACES, 2)] {
                    for (at, start) in starts[..group.len()].iter().enumerate() {
                        let to = at * T::PLACES * columns;
                        copy_run(planes, start + index * pitch + first, &mut joined, to, T::PLACES * columns);
                    }
                    let joined = &joined[..T::PLACES * count.next_multiple_of(S::F32_LANES)];
                    divide(simd, [T::PLACES, pieces], joined, &mut line[first * LONGEST..], LONGEST);
                }
            }
            for at in (0..count).step_by(S::F32_LANES) {
                let from = Place { values: &lines[at..], columns: columns_apart(LONGEST), row: LARGEST * LONGEST };
                let target = &mut target[(slices.start * rows + group.start) * columns + at..];
                both_sides::<T::Input, S>(simd, from, target, [T::SEEN * stride, stride]);
            }
        }
    }
}

/// Divides a row, of whole vectors for each of the `edge` pieces of a line, by the remainders of the places by `edge`, 2 or 4; writes
/// all pieces or the first two.
#[inline(always)]
fn divide<S: Vectors>(simd: S, [edge, pieces]: [usize; 2], row: &[f32], line: &mut [f32], piece: usize) {
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
        if pieces == edge {
            store(simd, line, 2 * piece + at, third);
            store(simd, line, 3 * piece + at, fourth);
        }
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

/// `sum` plus zero times the first `count` values, which is a NaN if one of them is a NaN or an infinity. Whole vectors are read.
#[inline(always)]
pub(super) fn add_zero_times<S: Vectors>(simd: S, values: &[f32], count: usize, mut sum: S::f32s) -> S::f32s {
    for at in (0..count).step_by(S::F32_LANES) {
        let value = load(simd, values, at);
        let left = count - at;
        let value = if left < S::F32_LANES { masked(simd, first_lanes(simd, left), value) } else { value };
        sum = simd.multiply_add(value, simd.splat_f32s(0.0), sum);
    }
    sum
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
        let line = T::PLACES * piece;
        let (joined, lines) = lines.split_at_mut(T::PLACES * line);
        // Short rows of tiles share a vector, also those of slices that follow one another.
        let together = (LONGEST / tiles.columns).max(1);
        let mut sum = simd.splat_f32s(0.0);
        for rows in gemm::parts(tiles.depth * tiles.rows, together) {
            let (from, count) = (rows.start * tiles.columns, rows.len() * tiles.columns);
            for at in (0..count).step_by(S::F32_LANES) {
                let from = Place { values: &sums[from + at..], columns: columns_apart(stride), row: T::SEEN * stride };
                both_sides::<T::Output, S>(simd, from, &mut lines[at..], [line, piece]);
            }
            for (joined, parts) in joined.chunks_exact_mut(line).zip(lines.chunks_exact(line)) {
                unite(simd, T::PLACES, parts, piece, &mut joined[..T::PLACES * count.next_multiple_of(LONGEST)]);
            }
            for (index, row) in rows.enumerate() {
                let band = &mut *bands[row / tiles.rows];
                let first = T::PLACES * (row % tiles.rows) * width;
                // The last tiles may reach beyond the edge.
                for (place, joined) in joined.chunks_exact(line).take((band.len() - first) / width).enumerate() {
                    let joined = &joined[index * T::PLACES * tiles.columns..];
                    copy_run(joined, 0, band, first + place * width, width);
                    sum = add_zero_times(simd, joined, width, sum);
                }
            }
        }
        total(simd, sum) == 0.0
    }
}
