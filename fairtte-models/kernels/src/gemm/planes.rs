//! Results with one plane for each sample and channel, `[batch, rows, plane]`, divided into tasks.

use std::ops::Range;

use super::{Output, divide, tile};
use crate::activation::{self, Activation};

/// A block of such a result: some channels of either whole planes of some samples or a piece of the planes of one sample.
pub(crate) struct PlaneTask<'c> {
    /// Channels.
    pub rows: Range<usize>,
    /// Samples.
    pub samples: Range<usize>,
    /// Places in the plane.
    pub pixels: Range<usize>,
    /// One segment for each sample.
    pub output: Output<'c>,
}

impl PlaneTask<'_> {
    /// Adds the bias of each channel and applies the activation.
    pub fn finish(&mut self, bias: Option<&[f32]>, activation: Activation) {
        self.output.finish(bias.map(|bias| &bias[self.rows.clone()]), activation, &..);
    }
}

/// Adds the bias of a channel to some of its places and applies the activation.
pub(crate) fn finish(places: &mut [f32], bias: Option<f32>, activation: Activation) {
    match bias {
        Some(bias) => activation::with_bias(activation, bias, places),
        None => activation::in_place(activation, places),
    }
}

/// How a result is divided into tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    /// Samples of a task.
    pub samples: usize,
    /// Places of a plane; all where a task has several samples.
    pub pixels: usize,
    /// Number of parts that the channels are divided into.
    pub row_parts: usize,
}

impl Division {
    /// The division of `[batch, rows, plane]` for a product of `steps` steps; with `whole`, planes are not divided.
    pub fn of([batch, rows, plane]: [usize; 3], steps: usize, whole: bool) -> Self {
        /// Number of columns below which packing costs a task more than it saves.
        const FEW: usize = 512;
        let wanted = 2 * rayon::current_num_threads();
        let [row_parts, column_parts] = divide(rows, batch * plane, steps, wanted);
        let columns = (batch * plane).div_ceil(column_parts);
        if whole || columns >= plane {
            return Self { samples: (columns / plane).clamp(1, batch), pixels: plane, row_parts };
        }
        let pieces = plane.div_ceil(columns.max(FEW.min(plane)));
        Self { samples: 1, pixels: plane.div_ceil(pieces).next_multiple_of(32).min(plane), row_parts }
    }
}

/// Divides `data`, `[batch, rows, plane]`, into tasks.
pub(crate) fn plane_tasks(
    data: &mut [f32],
    [batch, rows, plane]: [usize; 3],
    division: Division,
) -> Vec<PlaneTask<'_>> {
    let Division { samples: group, pixels: piece, row_parts } = division;
    let pieces = plane.div_ceil(piece);
    let mut tasks = Vec::new();
    for first in (0..batch).step_by(group) {
        for part in 0..row_parts {
            for from in (0..plane).step_by(piece) {
                let rows = tile::part(rows, row_parts, part);
                let samples = first..(first + group).min(batch);
                let pixels = from..(from + piece).min(plane);
                let count = rows.len() * samples.len();
                let output = Output { segment: pixels.len(), n_rows: rows.len(), rows: Vec::with_capacity(count) };
                tasks.push(PlaneTask { rows, samples, pixels, output });
            }
        }
    }
    let mut planes = data.chunks_exact_mut(plane);
    for sample in 0..batch {
        for part in 0..row_parts {
            let first = (sample / group * row_parts + part) * pieces;
            let count = tile::part(rows, row_parts, part).len();
            for plane in planes.by_ref().take(count) {
                for (task, piece) in tasks[first..first + pieces].iter_mut().zip(plane.chunks_mut(piece)) {
                    task.output.rows.push(piece);
                }
            }
        }
    }
    tasks
}
