//! Large products, whose factors are packed once for all threads.
//!
//! For each block of the sum the threads first pack both factors, each a few pieces, and then compute tasks, each of which reads the
//! pieces of its rows and of its columns. Tasks that pack for themselves ([`multiply`](super::multiply)) copy each factor as often as
//! the other one is divided. The copies are never larger than the factors.

use std::ops::Range;

use rayon::prelude::*;

use super::tile::{Block, Panel, TileSize, part};
use super::{Operand, Options, SLACK, Shifted, pack_left, pack_right, sum_blocks, tasks, with_scratch};
use crate::blocks::Blocks;
use crate::simd;

/// Multiplications per thread from which packing together takes less time than waiting for one another.
const WORTHWHILE: usize = 1 << 21;
/// Rows or columns for all threads together, below which tasks copy little twice.
const FEW: usize = 1024;

/// Whether a product is computed in this way.
pub(super) fn pays([m, n, k]: [usize; 3]) -> bool {
    let threads = rayon::current_num_threads();
    threads > 1 && m.min(n) * threads >= FEW && m * n * k >= WORTHWHILE * threads
}

/// Writes the product to `rows`, or adds it to them, and adds the bias.
pub(super) fn multiply(
    rows: Vec<&mut [f32]>,
    [n, k]: [usize; 2],
    left: &impl Operand,
    right: &impl Operand,
    options: Options,
) {
    let m = rows.len();
    let [row_parts, column_parts] = divide(m, n);
    let mut tasks = tasks(rows, n, row_parts, column_parts);
    let of_first_rows = tasks.iter().take_while(|task| task.rows.start == 0);
    let columns: Vec<Range<usize>> = of_first_rows.map(|task| task.columns.clone()).collect();
    let blocks = sum_blocks(k);
    let longest = k.div_ceil(blocks.len());
    let width = TileSize::in_use().columns;
    let offsets: Vec<usize> = (0..longest).map(|step| step * width).collect();
    let of_rows = m.div_ceil(row_parts) * longest + SLACK;
    let of_columns = columns[0].len().next_multiple_of(width) * longest + SLACK;
    with_scratch([row_parts * of_rows, columns.len() * of_columns], |[left_pieces, right_pieces]| {
        for range in blocks {
            let pack_rows =
                |(index, piece): (usize, &mut [f32])| pack_left(left, range.clone(), part(m, row_parts, index), piece);
            let pack_columns = |(piece, columns): (&mut [f32], &Range<usize>)| {
                let right = Shifted { operand: right, by: columns.start };
                pack_right(&right, range.clone(), 0..columns.len(), columns.len(), piece)
            };
            let (row_panels, panels): (Vec<usize>, Vec<Vec<Panel>>) = rayon::join(
                || left_pieces.par_chunks_mut(of_rows).take(row_parts).enumerate().map(pack_rows).collect(),
                || right_pieces.par_chunks_mut(of_columns).zip(&columns).map(pack_columns).collect(),
            );
            tasks.par_iter_mut().enumerate().for_each(|(index, task)| {
                let [row, column] = [index / columns.len(), index % columns.len()];
                simd::run(Block {
                    left: &left_pieces[row * of_rows..],
                    rows: 0..task.rows.len(),
                    row_panels: row_panels[row],
                    right: &right_pieces[column * of_columns..],
                    offsets: &offsets[..range.len()],
                    panels: &panels[column],
                    output: &mut task.output,
                    add: options.add || range.start > 0,
                    far: true,
                });
                if range.end == k {
                    task.add(options.bias);
                }
            });
        }
    });
}

/// The numbers of parts of rows and columns: as many rows as half of the cache of a core holds and columns for the other half, and the
/// same number of tasks for every thread, at least two.
fn divide(m: usize, n: usize) -> [usize; 2] {
    let (size, blocks, threads) = (TileSize::in_use(), Blocks::in_use(), rayon::current_num_threads());
    let row_parts = m.div_ceil(blocks.rows);
    let fewest = n.div_ceil(blocks.columns / 2);
    let column_parts = (2 * threads).div_ceil(row_parts).max(fewest).min(n.div_ceil(4 * size.columns));
    let equal = (row_parts..row_parts + threads).find(|parts| (parts * column_parts).is_multiple_of(threads));
    [equal.unwrap_or(row_parts).min(m.div_ceil(size.rows)), column_parts]
}
