//! Planes of samples as a right factor: a column is a place, a step is a channel.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use std::ops::Range;

use crate::gemm::Operand;
use crate::simd::lanes::{load, load_rest, store};
use crate::simd::{self, Kernel, Vectors};

/// `[samples, channels, plane]`, perhaps each plane times its own factor.
pub(super) struct Planes<'a> {
    pub source: &'a [f32],
    pub channels: usize,
    pub plane: usize,
    /// `[samples, channels]`; empty without factors.
    pub factors: &'a [f32],
}

/// Columns of a panel that are in one sample.
struct Run {
    to: usize,
    count: usize,
    /// Where they are in the first channel of their sample.
    from: usize,
    /// Where the factors of the sample begin.
    factors: usize,
}

impl Operand for Planes<'_> {
    fn pack(&self, steps: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [f32]) {
        let mut runs = Vec::with_capacity(2);
        let mut at = lanes.start;
        while at < lanes.end {
            let (sample, place) = (at / self.plane, at % self.plane);
            let count = (self.plane - place).min(lanes.end - at);
            let from = sample * self.channels * self.plane + place;
            runs.push(Run { to: at - lanes.start, count, from, factors: sample * self.channels });
            at += count;
        }
        let (planes, runs, count) = (self, &runs[..], lanes.len());
        if self.factors.is_empty() {
            simd::run(Pack::<false> { planes, runs, steps, count, width, panel });
        } else {
            simd::run(Pack::<true> { planes, runs, steps, count, width, panel });
        }
    }
}

struct Pack<'a, const SCALED: bool> {
    planes: &'a Planes<'a>,
    runs: &'a [Run],
    steps: Range<usize>,
    /// Columns of the panel that there are.
    count: usize,
    width: usize,
    panel: &'a mut [f32],
}

impl<const SCALED: bool> Kernel for Pack<'_, SCALED> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { planes, runs, steps, count, width, panel } = self;
        let &Planes { source, plane, factors, .. } = planes;
        for (index, step) in steps.enumerate() {
            for run in runs {
                let from = run.from + step * plane;
                let factor = if SCALED { factors[run.factors + step] } else { 1.0 };
                let factor = simd.splat_f32s(factor);
                // Whole vectors: what is written after the run comes later, or is after the panel.
                for done in (0..run.count).step_by(S::F32_LANES) {
                    let rest = &source[from + done..];
                    let vector = if rest.len() >= S::F32_LANES { load(simd, rest, 0) } else { load_rest(simd, rest) };
                    let vector = if SCALED { simd.mul_f32s(vector, factor) } else { vector };
                    store(simd, panel, index * width + run.to + done, vector);
                }
            }
            if count < width {
                panel[index * width + count..(index + 1) * width].fill(0.0);
            }
        }
    }
}
