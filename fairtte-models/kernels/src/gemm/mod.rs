//! Products of matrices in single precision, and the blocked loops that the convolutions share with them.
//!
//! Method: the result is divided into tasks (blocks of rows and columns) that threads work on; a task runs through the sum in
//! blocks, copies the piece of each factor that a block needs into panels ([`pack`]) that stay in the caches of its core, and
//! multiplies panels in registers ([`tile`]). A factor is anything that can be packed ([`Operand`]), so a convolution is a
//! product whose right factor is never in memory. In a large product of two matrices the tasks share what is packed ([`shared`]).
//! Every element of the result is summed in the order of the steps, blocks of which depend on the number of steps only: neither
//! the division into tasks nor the number of threads changes a bit.
//!
//! After K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34(3), 2008, and the BLIS
//! papers; written for this project.

mod pack;
mod planes;
mod shared;
mod tile;

use std::cell::RefCell;
use std::ops::Range;
use std::slice::SliceIndex;

use rayon::prelude::*;

pub(super) use pack::{
    Operand, PanelLanes, SLACK, Strided, TOGETHER, copy_run, pack_each, transpose, transpose_squares,
};
pub(super) use planes::{Division, PlaneTask, finish, plane_tasks};
pub(super) use tile::{Block, Panel, TileSize, evenly, part, parts, row_panels};

use crate::activation::Activation;
use crate::blocks::Blocks;
use crate::simd;
use crate::simd::prefetch::LINE;

/// Maximum number of steps of the sum in one block: 32 columns of that many steps and a panel of the left factor fit
/// into 48 KiB.
pub(super) const KC: usize = 320;

/// The blocks of a sum of `steps` steps. They decide the last bits: every product of a layer in one way or another has the same.
pub(super) fn sum_blocks(steps: usize) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
    let blocks = steps.div_ceil(KC);
    (0..blocks).map(move |block| tile::part(steps, blocks, block))
}

/// A matrix in memory, with any distance between rows and between columns, so that transposing needs no copy.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// The values, from the first of the matrix.
    pub data: &'a [f32],
    /// Distance from one row to the next.
    pub row_stride: usize,
    /// Distance from one column to the next.
    pub column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix of `columns` columns with its rows one after the other.
    pub fn new(data: &'a [f32], columns: usize) -> Self {
        Self { data, row_stride: columns, column_stride: 1 }
    }

    /// The transposed matrix, over the same values.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { data: self.data, row_stride: self.column_stride, column_stride: self.row_stride }
    }

    fn holds(&self, rows: usize, columns: usize) -> bool {
        rows == 0 || columns == 0 || (rows - 1) * self.row_stride + (columns - 1) * self.column_stride < self.data.len()
    }
}

/// How a product writes its result, and on which threads it is computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Adds the product to the result, instead of overwriting it.
    pub add: bool,
    /// One value for each column, added to every row.
    pub bias: Option<&'a [f32]>,
    /// Uses the threads of the current rayon pool; otherwise only the calling one.
    pub parallel: bool,
}

/// `c[m, n] (+)= a[m, k] * b[k, n] (+ bias)`; `c` has its rows `row_stride` apart, of which the first `n` are written.
///
/// Costs `2 m n k` operations.
///
/// # Panics
/// If a slice is too short for its matrix.
#[expect(clippy::many_single_char_names, reason = "the usual names of a matrix product")]
pub fn product(c: &mut [f32], row_stride: usize, sizes: [usize; 3], a: Matrix, b: Matrix, options: Options) {
    let [m, n, k] = sizes;
    if m == 0 || n == 0 {
        return;
    }
    assert!(n <= row_stride && (m - 1) * row_stride + n <= c.len(), "the result does not hold {m} x {n} numbers");
    assert!(a.holds(m, k) && b.holds(k, n), "a factor does not hold its {m} x {k} or {k} x {n} numbers");
    assert!(options.bias.is_none_or(|bias| bias.len() == n), "the bias does not have {n} numbers");
    let left = Strided { data: a.data, lane_stride: a.row_stride, step_stride: a.column_stride };
    let right = Strided { data: b.data, lane_stride: b.column_stride, step_stride: b.row_stride };
    let rows: Vec<&mut [f32]> = c.chunks_mut(row_stride).take(m).map(|row| &mut row[..n]).collect();
    if options.parallel && shared::pays(sizes) {
        return shared::multiply(rows, [n, k], &left, &right, options);
    }
    let threads = if options.parallel { rayon::current_num_threads() } else { 1 };
    let [row_parts, column_parts] = if threads == 1 { [1, 1] } else { divide(m, n, k, 2 * threads) };
    let tasks = tasks(rows, n, row_parts, column_parts);
    let work = |mut task: Task| {
        let left = Shifted { operand: &left, by: task.rows.start };
        let right = Shifted { operand: &right, by: task.columns.start };
        multiply(k, &left, &right, task.rows.len(), &mut task.output, options.add);
        task.add(options.bias);
    };
    if threads == 1 { tasks.into_iter().for_each(work) } else { tasks.into_par_iter().for_each(work) }
}

/// The numbers of parts of rows and columns for `wanted` tasks, with little packed twice and no task too small.
pub(super) fn divide(m: usize, n: usize, k: usize, wanted: usize) -> [usize; 2] {
    let size = TileSize::in_use();
    let worthwhile = (m * n * k / 200_000).clamp(1, wanted);
    let column_parts = n.div_ceil(4 * size.columns).min(worthwhile).max(n.div_ceil(Blocks::in_use().columns));
    let row_parts = worthwhile.div_ceil(column_parts).min(m.div_ceil(2 * size.rows)).max(1);
    [row_parts, column_parts]
}

/// A block of the result and its destination.
pub(super) struct Task<'c> {
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    pub output: Output<'c>,
}

impl Task<'_> {
    /// Adds the value of each column.
    fn add(&mut self, bias: Option<&[f32]>) {
        let Some(bias) = bias.map(|bias| &bias[self.columns.clone()]) else { return };
        for row in &mut self.output.rows {
            row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
        }
    }
}

/// Divides a result of given rows into tasks.
pub(super) fn tasks(rows: Vec<&mut [f32]>, n: usize, row_parts: usize, column_parts: usize) -> Vec<Task<'_>> {
    let m = rows.len();
    let width = TileSize::in_use().columns;
    let segment = n.div_ceil(column_parts).next_multiple_of(width).min(n);
    let mut tasks = Vec::with_capacity(row_parts * column_parts);
    let mut rows = rows.into_iter();
    for part in 0..row_parts {
        let range = tile::part(m, row_parts, part);
        let first = tasks.len();
        for columns in (0..n).step_by(segment) {
            let output = Output { segment, n_rows: range.len(), rows: Vec::with_capacity(range.len()) };
            tasks.push(Task { rows: range.clone(), columns: columns..(columns + segment).min(n), output });
        }
        for row in rows.by_ref().take(range.len()) {
            for (task, piece) in tasks[first..].iter_mut().zip(row.chunks_mut(segment)) {
                task.output.rows.push(piece);
            }
        }
    }
    tasks
}

/// The destination of the result of a task: its columns are divided into segments of `segment` columns (the last may be
/// shorter), and `rows` holds the rows of the first segment, then those of the second.
pub(super) struct Output<'c> {
    pub segment: usize,
    pub n_rows: usize,
    pub rows: Vec<&'c mut [f32]>,
}

impl Output<'_> {
    /// Columns of all segments.
    pub fn columns(&self) -> usize {
        self.rows.iter().step_by(self.n_rows).map(|row| row.len()).sum()
    }

    /// Adds the bias of each of the `n_rows` rows to some places of every segment, and applies the activation.
    pub fn finish(
        &mut self,
        bias: Option<&[f32]>,
        activation: Activation,
        places: &(impl SliceIndex<[f32], Output = [f32]> + Clone),
    ) {
        for (index, row) in self.rows.iter_mut().enumerate() {
            finish(&mut row[places.clone()], bias.map(|bias| bias[index % self.n_rows]), activation);
        }
    }
}

/// A factor that begins at another lane.
pub(super) struct Shifted<'a, O> {
    pub operand: &'a O,
    pub by: usize,
}

impl<O: Operand> Operand for Shifted<'_, O> {
    fn pack(&self, steps: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [f32]) {
        self.operand.pack(steps, lanes.start + self.by..lanes.end + self.by, width, panel);
    }

    fn pack_panels(&self, steps: Range<usize>, panels: &[PanelLanes], packed: &mut [f32]) {
        let shifted = |panel: &PanelLanes| {
            let lanes = panel.lanes.start + self.by..panel.lanes.end + self.by;
            PanelLanes { lanes, ..*panel }
        };
        self.operand.pack_panels(steps, &panels.iter().map(shifted).collect::<Vec<_>>(), packed);
    }
}

/// Rows `0..n_rows` of `left` times the columns of `right` that `output` has, over `steps` steps, on this thread.
pub(super) fn multiply(
    steps: usize,
    left: &impl Operand,
    right: &impl Operand,
    n_rows: usize,
    output: &mut Output,
    add: bool,
) {
    if steps == 0 {
        if !add {
            output.rows.iter_mut().for_each(|row| row.fill(0.0));
        }
        return;
    }
    let columns = output.columns();
    let width = TileSize::in_use().columns;
    let blocks = sum_blocks(steps);
    let longest = steps.div_ceil(blocks.len());
    let offsets: Vec<usize> = (0..longest).map(|step| step * width).collect();
    let Blocks { rows: most_rows, columns: most_columns, .. } = Blocks::in_use();
    let lanes = [most_rows.min(n_rows), most_columns.min(columns).next_multiple_of(width)];
    with_scratch(lanes.map(|lanes| lanes * longest + SLACK), |[left_panels, right_panels]| {
        for from in (0..columns).step_by(most_columns) {
            let end = (from + most_columns).min(columns);
            for range in blocks.clone() {
                let panels = pack_right(right, range.clone(), from..end, output.segment, right_panels);
                let row_blocks = n_rows.div_ceil(most_rows);
                for rows in (0..row_blocks).map(|index| tile::part(n_rows, row_blocks, index)) {
                    let row_panels = pack_left(left, range.clone(), rows.clone(), left_panels);
                    simd::run(Block {
                        left: left_panels,
                        rows,
                        row_panels,
                        right: right_panels,
                        offsets: &offsets[..range.len()],
                        panels: &panels,
                        output,
                        add: add || range.start > 0,
                        far: true,
                    });
                }
            }
        }
    });
}

/// Packs rows of the left factor as consecutive panels; returns their number.
pub(super) fn pack_left(left: &impl Operand, steps: Range<usize>, rows: Range<usize>, panels: &mut [f32]) -> usize {
    let of_panel = |panel: Range<usize>| PanelLanes {
        width: panel.len(),
        first: panel.start * steps.len(),
        lanes: rows.start + panel.start..rows.start + panel.end,
    };
    let row_panels: Vec<PanelLanes> = row_panels(rows.len()).map(of_panel).collect();
    left.pack_panels(steps.clone(), &row_panels, panels);
    row_panels.len()
}

/// Packs columns of the right factor as consecutive panels, whose results are in segments of `segment` columns.
pub(super) fn pack_right(
    right: &impl Operand,
    steps: Range<usize>,
    columns: Range<usize>,
    segment: usize,
    packed: &mut [f32],
) -> Vec<Panel> {
    let width = TileSize::in_use().columns;
    let of_panel = |(index, lanes): (usize, Range<usize>)| PanelLanes {
        lanes: columns.start + lanes.start..columns.start + lanes.end,
        width,
        first: index * width * steps.len(),
    };
    let lanes: Vec<PanelLanes> = tile::parts(columns.len(), width).enumerate().map(of_panel).collect();
    right.pack_panels(steps.clone(), &lanes, packed);
    let panel = |PanelLanes { lanes, first, .. }: PanelLanes| Panel {
        first,
        segment: lanes.start / segment,
        column: lanes.start % segment,
        count: lanes.len(),
    };
    lanes.into_iter().map(panel).collect()
}

/// Values of the largest buffer that a thread keeps: 128 MiB, more than the layers of the networks need.
const MOST_KEPT: usize = 1 << 25;

thread_local! {
    /// The buffers of [`with_scratch`] that are not in use.
    static SCRATCH: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` on buffers of this thread, which begin at cache lines and have unspecified values.
pub(super) fn with_scratch<R, const N: usize>(lengths: [usize; N], work: impl FnOnce([&mut [f32]; N]) -> R) -> R {
    // The buffer is taken and not borrowed, because `work` may itself request buffers, which are then others.
    let mut buffer = SCRATCH.with_borrow_mut(Vec::pop).unwrap_or_default();
    let rounded = lengths.map(|length| length.next_multiple_of(LINE));
    let needed = rounded.iter().sum::<usize>() + LINE;
    if buffer.len() < needed {
        buffer = vec![0.0; needed];
    }
    let start = buffer.as_ptr().align_offset(LINE * size_of::<f32>());
    let mut rest = buffer.get_mut(start..).unwrap_or_default();
    let slices = rounded.map(|length| {
        let (slice, behind) = std::mem::take(&mut rest).split_at_mut(length);
        // This exposes kernels that read what they have not written.
        #[cfg(test)]
        slice.fill(f32::NAN);
        rest = behind;
        slice
    });
    let result = work(slices);
    if buffer.len() <= MOST_KEPT {
        SCRATCH.with_borrow_mut(|buffers| buffers.push(buffer));
    }
    result
}

#[cfg(test)]
mod tests;
