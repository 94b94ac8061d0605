//! Copies of pieces of the factors in the order in which the innermost loops read them.

use std::ops::Range;

use crate::simd::lanes::LONGEST;
use crate::simd::prefetch::{LINE, ROWS_AHEAD, prefetch, prefetch_run};
use crate::simd::{self, Kernel, Vectors, vectorized};

/// A factor of a product, which can be packed into panels. A *step* is an index of the sum, a *lane* a row of the
/// left factor or a column of the right one.
pub(crate) trait Operand: Sync {
    /// Writes the panel `[steps][width]`, with 0 in the lanes beyond `lanes`; `panel` is [`SLACK`] longer than that.
    fn pack(&self, steps: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [f32]);

    /// Writes several panels, in ascending order, each as [`pack`](Self::pack) does.
    fn pack_panels(&self, steps: Range<usize>, panels: &[PanelLanes], packed: &mut [f32]) {
        pack_each(self, steps, panels, packed);
    }
}

/// Writes panels one after the other.
pub(crate) fn pack_each(
    operand: &(impl Operand + ?Sized),
    steps: Range<usize>,
    panels: &[PanelLanes],
    packed: &mut [f32],
) {
    for PanelLanes { lanes, width, first } in panels.iter().cloned() {
        operand.pack(steps.clone(), lanes, width, &mut packed[first..]);
    }
}

/// The lanes of a panel, their number with those that are 0, and where the panel begins.
#[derive(Clone, Debug)]
pub(crate) struct PanelLanes {
    pub lanes: Range<usize>,
    pub width: usize,
    pub first: usize,
}

/// Elements after a panel that packing may overwrite, so that it can copy whole vectors.
pub(crate) const SLACK: usize = 64;

/// A factor in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a> {
    pub data: &'a [f32],
    pub lane_stride: usize,
    pub step_stride: usize,
}

impl Operand for Strided<'_> {
    fn pack(&self, steps: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [f32]) {
        let Self { data, lane_stride, step_stride } = *self;
        let data = &data[lanes.start * lane_stride + steps.start * step_stride..];
        if lane_stride == 1 {
            let of_panel = [PanelLanes { lanes: 0..lanes.len(), width, first: 0 }];
            vectorized!(copy_panels(data, step_stride, steps.len(), &of_panel, panel));
        } else if step_stride == 1 {
            transpose(data, lane_stride, steps.len(), lanes.len(), width, panel);
        } else {
            for (step, panel) in panel.chunks_exact_mut(width).take(steps.len()).enumerate() {
                panel.fill(0.0);
                let data = data[step * step_stride..].iter().step_by(lane_stride);
                for (panel, &value) in panel.iter_mut().zip(data.take(lanes.len())) {
                    *panel = value;
                }
            }
        }
    }

    fn pack_panels(&self, steps: Range<usize>, panels: &[PanelLanes], packed: &mut [f32]) {
        if self.lane_stride != 1 {
            return pack_each(self, steps, panels, packed);
        }
        let data = &self.data[steps.start * self.step_stride..];
        for panels in panels.chunks(TOGETHER) {
            vectorized!(copy_panels(data, self.step_stride, steps.len(), panels, packed));
        }
    }
}

/// Panels that are copied together, so that a row is read in longer pieces.
pub(crate) const TOGETHER: usize = 8;
/// Rows by which a copy to several panels runs ahead with its requests, at least.
const AHEAD: usize = 2;

/// Copies `steps` rows, `stride` apart, to several panels.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn copy_panels(data: &[f32], stride: usize, steps: usize, panels: &[PanelLanes], packed: &mut [f32]) {
    let all = panels.first().map_or(0, |panel| panel.lanes.start)..panels.last().map_or(0, |panel| panel.lanes.end);
    let ahead = (ROWS_AHEAD / panels.len().max(1)).max(AHEAD);
    for step in 0..steps {
        prefetch_run(data, (step + ahead) * stride + all.start, all.len());
        for PanelLanes { lanes, width, first } in panels {
            let (from, to) = (step * stride + lanes.start, first + step * width);
            if to + lanes.len().next_multiple_of(CHUNK) <= first + steps * width {
                copy_run(data, from, packed, to, lanes.len());
            } else {
                // Behind the panel is the next one, whose first steps are there already.
                packed[to..to + lanes.len()].copy_from_slice(&data[from..from + lanes.len()]);
            }
            packed[to + lanes.len()..to + width].fill(0.0);
        }
    }
}

/// Values of a piece of [`copy_run`].
const CHUNK: usize = 16;

/// Copies `count` values in whole vectors where there is room: values after the copy may be overwritten, so runs are
/// copied in ascending order.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
pub(crate) fn copy_run(source: &[f32], from: usize, target: &mut [f32], to: usize, count: usize) {
    let mut done = 0;
    while done < count {
        let (from, to) = (from + done, to + done);
        if let (Some(source), Some(target)) = (source.get(from..from + CHUNK), target.get_mut(to..to + CHUNK)) {
            target.copy_from_slice(source);
        } else {
            let left = (count - done).min(CHUNK);
            for (target, &source) in target[to..to + left].iter_mut().zip(&source[from..from + left]) {
                *target = source;
            }
        }
        done += CHUNK;
    }
}

/// Writes `lanes` rows of `steps` numbers, `stride` apart, as `[steps][width]`, with 0 in the lanes beyond. Values
/// after the last row may be overwritten.
pub(crate) fn transpose(data: &[f32], stride: usize, steps: usize, lanes: usize, width: usize, panel: &mut [f32]) {
    simd::run(Transpose { data, stride, steps, lanes, width, panel, exact: true });
}

/// [`transpose`] that works in whole squares where there is room: the lanes beyond, and a vector of rows after the last, may be
/// overwritten with any of the data.
pub(crate) fn transpose_squares(
    data: &[f32],
    stride: usize,
    steps: usize,
    lanes: usize,
    width: usize,
    panel: &mut [f32],
) {
    simd::run(Transpose { data, stride, steps, lanes, width, panel, exact: false });
}

struct Transpose<'a> {
    data: &'a [f32],
    stride: usize,
    steps: usize,
    lanes: usize,
    width: usize,
    panel: &'a mut [f32],
    /// Whether nothing else is written than the values and the zeros of lanes beyond.
    exact: bool,
}

/// Cache lines by which transposing runs ahead in each of its rows.
const LINES_AHEAD: usize = 4;

impl Kernel for Transpose<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { data, stride, steps, lanes, width, panel, exact } = self;
        let length = S::F32_LANES;
        for step in (0..steps).step_by(length) {
            let steps = (steps - step).min(length);
            // The last lanes first: whole vectors are written, and what they write over the end of a row comes later.
            for first in (0..width.div_ceil(length)).rev().map(|index| index * length) {
                let lanes = lanes.saturating_sub(first).min(length);
                let data = data.get(first * stride + step..).unwrap_or_default();
                let panel = &mut panel[step * width + first..];
                let complete = !exact || steps == length && lanes >= (width - first).min(length);
                if complete && reaches(data, stride, lanes, length) && reaches(panel, width, length, length) {
                    whole_square(simd, data, stride, lanes, panel, width);
                } else {
                    any_square(simd, data, stride, [lanes, steps], panel, width);
                }
            }
        }
    }
}

/// Whether `rows` rows, `stride` apart, have `length` values each.
fn reaches(values: &[f32], stride: usize, rows: usize, length: usize) -> bool {
    rows > 0 && (rows - 1) * stride + length <= values.len()
}

/// Transposes a square of which all values can be read and written; lanes beyond `lanes` are unspecified.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn whole_square<S: Vectors>(simd: S, data: &[f32], stride: usize, lanes: usize, panel: &mut [f32], width: usize) {
    let mut square: [S::f32s; LONGEST] = std::array::from_fn(|lane| {
        if lane >= S::F32_LANES {
            return simd.splat_f32s(0.0);
        }
        let from = lane.min(lanes - 1) * stride;
        prefetch(data, from + LINES_AHEAD * LINE);
        whole::<S>(&data[from..])
    });
    simd.transpose(&mut square);
    for (step, &row) in square.iter().enumerate().take(S::F32_LANES) {
        S::as_mut_simd_f32s(&mut panel[step * width..][..S::F32_LANES]).0[0] = row;
    }
}

/// Transposes a square of which some lanes or steps are missing: the lanes are 0, the steps are not written.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn any_square<S: Vectors>(
    simd: S,
    data: &[f32],
    stride: usize,
    [lanes, steps]: [usize; 2],
    panel: &mut [f32],
    width: usize,
) {
    let mut square = [simd.splat_f32s(0.0); LONGEST];
    let length = S::F32_LANES;
    let readable = reaches(data, stride, lanes, length);
    for (lane, row) in square.iter_mut().enumerate().take(lanes) {
        let data = &data[lane * stride..];
        *row = if readable { whole::<S>(data) } else { simd.partial_load_f32s(data) };
    }
    simd.transpose(&mut square);
    let writable = reaches(panel, width, steps, length);
    for (step, &row) in square.iter().enumerate().take(steps) {
        let panel = &mut panel[step * width..];
        if writable {
            S::as_mut_simd_f32s(&mut panel[..length]).0[0] = row;
        } else {
            simd.partial_store_f32s(panel, row);
        }
    }
}

#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn whole<S: Vectors>(data: &[f32]) -> S::f32s {
    S::as_simd_f32s(&data[..S::F32_LANES]).0[0]
}
