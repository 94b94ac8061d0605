//! Products whose left factor, the weights, is packed once for all samples.

use std::ops::Range;

use super::Layer;
use crate::activation::Activation;
use crate::blocks::Blocks;
use crate::gemm::{self, Block, Operand, Output, Panel, SLACK, Strided, TileSize, sum_blocks};
use crate::simd::{self, vectorized};

/// Number of values that are finished together: half of a first-level cache.
const FEW: usize = 1 << 12;

/// Columns of the panels of `samples` planes.
pub(super) fn columns_of([samples, plane]: [usize; 2]) -> usize {
    (samples * plane).next_multiple_of(TileSize::in_use().columns)
}

/// Packs all columns of a right factor, block by block of the sum; returns the panels of each block.
pub(super) fn pack_right(
    operand: &impl Operand,
    steps: usize,
    [samples, plane]: [usize; 2],
    packed: &mut [f32],
) -> Vec<Vec<Panel>> {
    let columns = columns_of([samples, plane]);
    let of_block = |steps: Range<usize>| {
        let packed = &mut packed[steps.start * columns..];
        gemm::pack_right(operand, steps, 0..samples * plane, plane, packed)
    };
    sum_blocks(steps).map(of_block).collect()
}

/// A layer that is a product, its weights packed: for each group of outputs, for each block of the sum.
pub(super) struct Product<'a> {
    weights: &'a [f32],
    bias: &'a [f32],
    steps: usize,
    rows: usize,
    /// Outputs of a group.
    group: usize,
}

impl<'a> Product<'a> {
    /// `packed` is [`SLACK`] longer than the weights.
    pub fn new(layer: &Layer<'a>, [steps, rows]: [usize; 2], group: usize, packed: &'a mut [f32]) -> Self {
        let left = Strided { data: layer.weights, lane_stride: steps, step_stride: 1 };
        let mut at = 0;
        for outputs in gemm::parts(rows, group) {
            for steps in sum_blocks(steps) {
                let piece = &mut packed[at..];
                gemm::pack_left(&left, steps.clone(), outputs.clone(), piece);
                if let Some(scale) = layer.scale {
                    scale_panels(&scale[outputs.clone()], steps.len(), piece);
                }
                at += outputs.len() * steps.len();
            }
        }
        Self { weights: packed, bias: layer.bias, steps, rows, group }
    }

    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The outputs of a group, their weights and their bias.
    fn group(&self, index: usize) -> (Range<usize>, &[f32], Option<&[f32]>) {
        let first = index * self.group;
        let outputs = first..(first + self.group).min(self.rows);
        let weights = &self.weights[first * self.steps..outputs.end * self.steps];
        (outputs.clone(), weights, Some(&self.bias[outputs]))
    }

    /// The outputs of a group for columns that [`pack_right`] packed; `rows` are the planes of all outputs of a sample, then those
    /// of the next.
    pub fn forward_group(
        &self,
        index: usize,
        right: &[f32],
        panels: &[Vec<Panel>],
        activation: Activation,
        rows: Vec<&mut [f32]>,
    ) {
        let (outputs, weights, bias) = self.group(index);
        let segment = rows.first().map_or(0, |row| row.len());
        let columns = columns_of([rows.len() / outputs.len(), segment]);
        let mut output = Output { segment, n_rows: outputs.len(), rows };
        let [panels] = panels else {
            for (steps, panels) in sum_blocks(self.steps).zip(panels) {
                let right = &right[steps.start * columns..];
                multiply(weights, &outputs, steps, right, panels, &mut output);
            }
            return output.finish(bias, activation, &..);
        };
        if output.rows.len() > outputs.len() {
            multiply(weights, &outputs, 0..self.steps, right, panels, &mut output);
            return output.finish(bias, activation, &..);
        }
        // The sums of one sample in one block: a few columns are finished while they are in the first cache.
        let width = TileSize::in_use().columns;
        for panels in panels.chunks((FEW / outputs.len() / width).max(1)) {
            multiply(weights, &outputs, 0..self.steps, right, panels, &mut output);
            let columns = |panel: &Panel| panel.column..panel.column + panel.count;
            let places = panels.first().map_or(0, |panel| columns(panel).start)
                ..panels.last().map_or(0, |panel| columns(panel).end);
            output.finish(bias, activation, &places);
        }
    }

    /// All outputs, for columns that are packed on the way.
    pub fn forward_packing(
        &self,
        right: &impl Operand,
        [samples, plane]: [usize; 2],
        activation: Activation,
        rows: Vec<&mut [f32]>,
    ) {
        let (outputs, weights, bias) = self.group(0);
        let columns = samples * plane;
        let most_columns = Blocks::in_use().columns;
        let mut output = Output { segment: plane, n_rows: outputs.len(), rows };
        let longest = sum_blocks(self.steps).map(|steps| steps.len()).max().unwrap_or(0);
        let length = most_columns.min(columns_of([samples, plane])) * longest + SLACK;
        gemm::with_scratch([length], |[packed]| {
            for columns in gemm::parts(columns, most_columns) {
                for steps in sum_blocks(self.steps) {
                    let panels = gemm::pack_right(right, steps.clone(), columns.clone(), plane, packed);
                    multiply(weights, &outputs, steps, packed, &panels, &mut output);
                }
            }
        });
        output.finish(bias, activation, &..);
    }
}

/// One block of the sum, for packed weights of these outputs.
fn multiply(
    weights: &[f32],
    outputs: &Range<usize>,
    steps: Range<usize>,
    right: &[f32],
    panels: &[Panel],
    output: &mut Output,
) {
    let width = TileSize::in_use().columns;
    let offsets: Vec<usize> = (0..steps.len()).map(|step| step * width).collect();
    simd::run(Block {
        left: &weights[steps.start * outputs.len()..steps.end * outputs.len()],
        rows: 0..outputs.len(),
        row_panels: outputs.len().div_ceil(TileSize::in_use().rows),
        right,
        offsets: &offsets,
        panels,
        output,
        add: steps.start > 0,
        far: false,
    });
}

/// Multiplies the rows of panels that [`gemm::pack_left`] packed by their factors.
fn scale_panels(scale: &[f32], steps: usize, packed: &mut [f32]) {
    for panel in gemm::row_panels(scale.len()) {
        let rows = &scale[panel.clone()];
        vectorized!(multiply_rows(rows, &mut packed[panel.start * steps..panel.end * steps]));
    }
}

/// Multiplies every row by the factors.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn multiply_rows(factors: &[f32], rows: &mut [f32]) {
    for row in rows.chunks_exact_mut(factors.len()) {
        row.iter_mut().zip(factors).for_each(|(value, factor)| *value *= factor);
    }
}
