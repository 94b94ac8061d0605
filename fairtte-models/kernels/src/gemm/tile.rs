//! The innermost loops of every product: a tile of the result held in registers while the sum runs over packed panels.
//!
//! A panel of the left factor is `[steps][rows]`, one of the right factor `[steps][2 vectors]`; one step loads two vectors,
//! broadcasts each value of the left panel to a vector, and adds `rows * 2` products. The number of rows is fixed when
//! the code is compiled (so that the sums stay in registers) and chosen when it runs: the rows of a product are divided
//! evenly, so that 64 rows become 13 + 13 + 13 + 13 + 12 rather than 14 + 14 + 14 + 14 + 8.

use std::ops::Range;

use super::Output;
use crate::simd::prefetch::{ROWS_AHEAD, prefetch_run};
use crate::simd::{self, Kernel, Vectors};

/// Most rows of a tile on any instruction set.
const MR: usize = 14;
/// Vectors side by side in a tile.
const VECTORS: usize = 2;
/// Most columns of a tile on any instruction set.
const NR: usize = 16 * VECTORS;

/// The size of a tile, which fits into registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileSize {
    pub rows: usize,
    pub columns: usize,
    /// Columns of a vector.
    pub lanes: usize,
}

impl TileSize {
    /// The size for the instruction set in use.
    pub fn in_use() -> Self {
        struct Ask;
        impl Kernel for Ask {
            type Output = TileSize;
            fn run_on<S: Vectors>(self, _: S) -> TileSize {
                TileSize { rows: most_rows::<S>(), columns: VECTORS * S::F32_LANES, lanes: S::F32_LANES }
            }
        }
        simd::run(Ask)
    }
}

/// 32 registers hold 14 x 2 sums, two vectors of the right factor and one value of the left; 16 hold 6 x 2.
const fn most_rows<S: Vectors>() -> usize {
    if S::REGISTER_COUNT >= 32 && S::F32_LANES > 4 { MR } else { 6 }
}

/// The rows of part `index` when `rows` are divided evenly into `parts`.
pub(crate) fn part(rows: usize, parts: usize, index: usize) -> Range<usize> {
    rows * index / parts..rows * (index + 1) / parts
}

/// Ranges of `step`, the last of which may be shorter.
pub(crate) fn parts(whole: usize, step: usize) -> impl ExactSizeIterator<Item = Range<usize>> + Clone + use<> {
    (0..whole).step_by(step).map(move |from| from..(from + step).min(whole))
}

/// The step of at most `most` that gives the fewest [`parts`], as equal as possible; at least 1.
pub(crate) fn evenly(whole: usize, most: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most.clamp(1, whole)))
}

/// The rows of the panels of a left factor of so many rows, one panel after the other.
pub(crate) fn row_panels(rows: usize) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
    let panels = rows.div_ceil(TileSize::in_use().rows);
    (0..panels).map(move |index| part(rows, panels, index))
}

/// Columns of the right factor side by side, at most as many as a tile has, and the destination of their results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    /// Index of the first column in the right factor, less the offset of the step.
    pub first: usize,
    pub segment: usize,
    pub column: usize,
    pub count: usize,
}

/// One block of the sum for a block of the result.
pub(crate) struct Block<'a, 'b, 'c> {
    /// Panels of the left factor one after the other: the rows divided evenly into `row_panels`.
    pub left: &'a [f32],
    pub rows: Range<usize>,
    pub row_panels: usize,
    /// Values of the right factor; those of a panel begin at its `first` plus the offset of the step.
    pub right: &'a [f32],
    pub offsets: &'a [usize],
    pub panels: &'a [Panel],
    pub output: &'b mut Output<'c>,
    /// Whether the result is added to `output`.
    pub add: bool,
    /// Whether `output` is probably in no cache.
    pub far: bool,
}

impl Kernel for Block<'_, '_, '_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { left, rows, row_panels, right, offsets, panels, output, add, far } = self;
        // The panels of the inner loop pass through the first-level cache for every panel of the outer loop. Rows of a result that is in
        // no cache are written from end to end, since each is in other pages of memory; otherwise the larger panels stay, those of the
        // right factor.
        let [outer, inner] = if far { [row_panels, panels.len()] } else { [panels.len(), row_panels] };
        for (outer, inner) in (0..outer).flat_map(|outer| (0..inner).map(move |inner| (outer, inner))) {
            let (index, panel) = if far { (outer, panels[inner]) } else { (inner, panels[outer]) };
            let part = part(rows.len(), row_panels, index);
            let left = &left[part.start * offsets.len()..part.end * offsets.len()];
            let Panel { first, segment, column, count } = panel;
            let right = Right { data: &right[first..], offsets };
            let split = column + count > output.segment;
            let place = Place { row: rows.start + part.start, segment, column, count, split };
            if far {
                request(output, place, part.len());
            }
            any_rows(simd, part.len(), left, right, output, place, add);
        }
    }
}

/// A panel of the right factor.
#[derive(Clone, Copy)]
struct Right<'a> {
    data: &'a [f32],
    offsets: &'a [usize],
}

/// The destination of a tile.
#[derive(Clone, Copy)]
struct Place {
    row: usize,
    segment: usize,
    column: usize,
    count: usize,
    /// Whether the segment ends before the tile does.
    split: bool,
}

/// Requests the destination of a tile, which is written when its sums are done: rows of a result are far apart, and no processor
/// foresees which follow.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn request(output: &Output<'_>, place: Place, rows: usize) {
    let Place { row, segment, column, count, .. } = place;
    let first = segment * output.n_rows + row;
    for output in &output.rows[first..first + rows] {
        prefetch_run(output, column, count);
    }
}

/// Chooses the code for the number of rows.
#[inline(always)]
fn any_rows<S: Vectors>(
    simd: S,
    rows: usize,
    left: &[f32],
    right: Right<'_>,
    output: &mut Output<'_>,
    place: Place,
    add: bool,
) {
    macro_rules! choose {
        ($($rows:literal)*) => {
            match rows {
                $($rows if $rows <= most_rows::<S>() => {
                    if place.count > S::F32_LANES {
                        Tile::<S, $rows, VECTORS> { simd, left, right, output, place, add }.compute();
                    } else {
                        Tile::<S, $rows, 1> { simd, left, right, output, place, add }.compute();
                    }
                })*
                _ => unreachable!("a tile has 1 to {} rows", most_rows::<S>()),
            }
        };
    }
    choose!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

/// A tile of `ROWS` rows and `WIDTH` vectors.
struct Tile<'a, 'b, 'c, S, const ROWS: usize, const WIDTH: usize> {
    simd: S,
    left: &'a [f32],
    right: Right<'a>,
    output: &'b mut Output<'c>,
    place: Place,
    add: bool,
}

impl<S: Vectors, const ROWS: usize, const WIDTH: usize> Tile<'_, '_, '_, S, ROWS, WIDTH> {
    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn compute(self) {
        // A tile needs nearly all of 16 registers. Among the code of other sizes the compiler keeps a sum in memory in some builds (one
        // codegen unit), for which every step waits: products then took 1.4 to 1.65 times as long.
        if S::REGISTER_COUNT <= 16 { self.apart() } else { self.inlined() }
    }

    /// The same in a function of its own.
    #[inline(never)]
    fn apart(self) {
        self.simd.vectorize(self);
    }

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn inlined(self) {
        let sums = sums::<S, ROWS, WIDTH>(self.simd, self.left, self.right);
        store(self.simd, &sums, self.output, self.place, self.add);
    }
}

impl<S: Vectors, const ROWS: usize, const WIDTH: usize> pulp::WithSimd for Tile<'_, '_, '_, S, ROWS, WIDTH> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn with_simd<T: pulp::Simd>(self, _: T) {
        self.inlined();
    }
}

/// The sums of a tile over the steps of two panels.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn sums<S: Vectors, const ROWS: usize, const WIDTH: usize>(
    simd: S,
    left: &[f32],
    right: Right<'_>,
) -> [[S::f32s; WIDTH]; ROWS] {
    let (left, _) = left.as_chunks::<ROWS>();
    let mut sums = [[simd.splat_f32s(0.0); WIDTH]; ROWS];
    for (index, (left, &offset)) in left.iter().zip(right.offsets).enumerate() {
        if let Some(&ahead) = right.offsets.get(index + ROWS_AHEAD) {
            prefetch_run(right.data, ahead, WIDTH * S::F32_LANES);
        }
        let (right, _) = S::as_simd_f32s(&right.data[offset..offset + WIDTH * S::F32_LANES]);
        let right: [S::f32s; WIDTH] = std::array::from_fn(|index| right[index]);
        for (sums, &left) in sums.iter_mut().zip(left) {
            let left = simd.splat_f32s(left);
            for (sum, &right) in sums.iter_mut().zip(&right) {
                *sum = simd.multiply_add(left, right, *sum);
            }
        }
    }
    sums
}

/// Writes a tile, or adds it to the existing values.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn store<S: Vectors, const ROWS: usize, const WIDTH: usize>(
    simd: S,
    sums: &[[S::f32s; WIDTH]; ROWS],
    output: &mut Output<'_>,
    place: Place,
    add: bool,
) {
    let Place { row, segment, column, count, split } = place;
    if split || count != WIDTH * S::F32_LANES {
        let mut buffer = [[0.0; NR]; ROWS];
        for (buffer, sums) in buffer.iter_mut().zip(sums) {
            let (buffer, _) = S::as_mut_simd_f32s(buffer);
            buffer[..WIDTH].copy_from_slice(sums);
        }
        return store_pieces(&buffer, output, place, add);
    }
    let first = segment * output.n_rows + row;
    for (output, sums) in output.rows[first..first + ROWS].iter_mut().zip(sums) {
        let (output, _) = S::as_mut_simd_f32s(&mut output[column..column + WIDTH * S::F32_LANES]);
        for (output, &sum) in output.iter_mut().zip(sums) {
            *output = if add { simd.add_f32s(*output, sum) } else { sum };
        }
    }
}

/// Writes a tile whose columns do not fill their vectors or belong to several segments.
#[inline(never)]
fn store_pieces(buffer: &[[f32; NR]], output: &mut Output<'_>, place: Place, add: bool) {
    let Place { row, mut segment, mut column, count, .. } = place;
    let mut done = 0;
    while done < count {
        let length = (count - done).min(output.segment - column);
        let first = segment * output.n_rows + row;
        for (output, buffer) in output.rows[first..].iter_mut().zip(buffer) {
            let output = &mut output[column..column + length];
            for (output, &sum) in output.iter_mut().zip(&buffer[done..done + length]) {
                *output = if add { *output + sum } else { sum };
            }
        }
        done += length;
        segment += 1;
        column = 0;
    }
}
