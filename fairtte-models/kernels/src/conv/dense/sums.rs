//! Divides the gradient of the weights, a sum over places, among threads.
//!
//! A unit is the weights of some blocks of input channels and of some output channels. Where there are few units, the places are
//! divided too, into parts that are summed separately and added in a fixed order. The parts depend on the shape only, and so do the
//! bits of the result.

use std::ops::Range;

use rayon::prelude::*;

use crate::conv::ConvShape;
use crate::gemm;

/// Maximum number of values of all partial sums together.
const PARTIAL_SUMS: usize = 1 << 20;
/// Values of a sum that a thread adds up before it takes others.
const PIECE: usize = 1 << 14;
/// Tasks that a large sum is divided into.
const TASKS: usize = 16;
/// Minimum number of output channels of a task, which copies all inputs that they see.
pub(super) const LEAST_ROWS: usize = 64;

/// A method of summing over places, which are grouped into bands.
pub(super) trait WeightSum: Sync {
    fn shape(&self) -> &ConvShape;

    /// Input channels of a block.
    fn block_channels(&self) -> usize;

    /// Number of blocks.
    fn blocks(&self) -> usize {
        self.shape().inputs.div_ceil(self.block_channels())
    }

    /// Numbers of groups that the blocks of input channels and the output channels are divided into, where the places are in so many
    /// parts. No bit depends on them.
    fn groups(&self, parts: usize) -> [usize; 2] {
        let blocks = self.blocks();
        [blocks, TASKS.div_ceil(blocks * parts).min(self.shape().outputs.div_ceil(LEAST_ROWS))]
    }

    /// Number of bands.
    fn bands(&self) -> usize;

    /// Number of values of the sum for an output channel of a unit of `channels` input channels.
    fn numbers(&self, channels: usize) -> usize;

    /// Writes the sum over `bands` for some input and output channels.
    fn run(&self, bands: Range<usize>, channels: Range<usize>, outputs: Range<usize>, sums: &mut [f32]);

    /// Writes the sum over all bands to the weights; returns whether it can be used.
    fn finish(&self, unit: Unit, sums: &[f32]) -> bool;
}

/// Some input and output channels, and where their weights are.
pub(super) struct Unit<'a> {
    pub channels: Range<usize>,
    pub outputs: Range<usize>,
    /// For each output channel, `[channels][taps]`.
    pub rows: Vec<&'a mut [f32]>,
}

/// Sums everything into `dw`, `[outputs, inputs, kernel]`; returns `false` if the result cannot be used, in which case
/// the values of `dw` are unspecified.
pub(super) fn sum_weights(sum: &impl WeightSum, dw: &mut [f32]) -> bool {
    let ConvShape { inputs, outputs, .. } = *sum.shape();
    let length = |unit: &Unit| unit.outputs.len() * sum.numbers(unit.channels.len());
    let whole = outputs * sum.numbers(inputs);
    let parts = TASKS.div_ceil(sum.blocks()).min(PARTIAL_SUMS / whole).min(sum.bands()).max(1);
    let units = units(sum, dw, sum.groups(parts));
    if parts == 1 {
        let run = |unit: Unit| {
            gemm::with_scratch([length(&unit)], |[sums]| {
                sum.run(0..sum.bands(), unit.channels.clone(), unit.outputs.clone(), sums);
                sum.finish(unit, sums)
            })
        };
        return units.into_par_iter().all(run);
    }
    let mut partial = vec![0.0; parts * units.iter().map(length).sum::<usize>()];
    let mut work = Vec::with_capacity(parts * units.len());
    let mut rest = &mut partial[..];
    for (unit, part) in units.iter().flat_map(|unit| (0..parts).map(move |part| (unit, part))) {
        let (sums, behind) = std::mem::take(&mut rest).split_at_mut(length(unit));
        rest = behind;
        work.push((unit, gemm::part(sum.bands(), parts, part), sums));
    }
    work.into_par_iter().for_each(|(unit, bands, sums)| {
        sum.run(bands, unit.channels.clone(), unit.outputs.clone(), sums);
    });
    let mut rest = &mut partial[..];
    let mut work = Vec::with_capacity(units.len());
    for unit in units {
        let length = length(&unit);
        let (sums, behind) = std::mem::take(&mut rest).split_at_mut(parts * length);
        rest = behind;
        work.push((unit, length, sums));
    }
    let add_up = |(unit, length, sums): (Unit, usize, &mut [f32])| {
        let (total, others) = sums.split_at_mut(length);
        total.par_chunks_mut(PIECE).enumerate().for_each(|(index, total)| {
            for other in others.chunks_exact(length) {
                total.iter_mut().zip(&other[index * PIECE..]).for_each(|(total, other)| *total += other);
            }
        });
        sum.finish(unit, total)
    };
    work.into_par_iter().all(add_up)
}

/// The weights in groups of blocks of input channels and of output channels.
fn units<'c>(sum: &impl WeightSum, dw: &'c mut [f32], [of_channels, of_outputs]: [usize; 2]) -> Vec<Unit<'c>> {
    let ConvShape { inputs, outputs, .. } = *sum.shape();
    let (taps, block) = (sum.shape().taps(), sum.block_channels());
    let mut units = Vec::new();
    for outputs in (0..of_outputs).map(|index| gemm::part(outputs, of_outputs, index)) {
        for blocks in (0..of_channels).map(|index| gemm::part(sum.blocks(), of_channels, index)) {
            let channels = blocks.start * block..(blocks.end * block).min(inputs);
            units.push(Unit { channels, outputs: outputs.clone(), rows: Vec::with_capacity(outputs.len()) });
        }
    }
    for (output, mut row) in dw.chunks_exact_mut(inputs * taps).enumerate() {
        let group = units.chunks_exact_mut(of_channels).find(|group| group[0].outputs.contains(&output));
        for unit in group.into_iter().flatten() {
            let (piece, rest) = row.split_at_mut(unit.channels.len() * taps);
            unit.rows.push(piece);
            row = rest;
        }
    }
    units
}
