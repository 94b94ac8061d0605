//! The patches of a picture or volume under a kernel, as a factor of a product that is packed from the input itself.
//!
//! A column of the factor is a place of the kernel, a row a channel and an element of the kernel. Consecutive places
//! are in one row of the input, so a piece of a row of the factor is a few runs of values copied from the input and of
//! zeros from the padding. The runs are the same for all channels and are computed once for each panel.

use std::ops::Range;

use crate::gemm::{Operand, PanelLanes, Strided, TOGETHER, copy_run, pack_each};
use crate::simd::prefetch::{ROWS_AHEAD, prefetch_run};
use crate::simd::vectorized;

/// The factor, for the places `pixels` of `first_sample` and of the samples after it.
pub(crate) struct Patches<'a> {
    /// `[batch, channels, size]`.
    pub source: &'a [f32],
    pub channels: usize,
    pub size: [usize; 3],
    /// Extent of the places of the kernel.
    pub grid: [usize; 3],
    /// Steps in the input from one place to the next.
    pub stride: [usize; 3],
    /// The offset of each element of the kernel, relative to its place times `stride`.
    pub taps: &'a [[isize; 3]],
    pub first_sample: usize,
    pub pixels: Range<usize>,
}

/// All positions in a box, the last axis fastest.
pub(super) fn positions(extent: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [depth, height, width] = extent;
    (0..depth).flat_map(move |d| (0..height).flat_map(move |h| (0..width).map(move |w| [d, h, w])))
}

/// A piece of a row of the factor.
#[derive(Clone, Copy, Debug)]
struct Run {
    to: usize,
    count: usize,
    /// Where it is in the first channel; `None` for zeros.
    from: Option<usize>,
}

/// The runs of all elements of the kernel: those of element `i` end at `ends[i]`.
#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
    ends: Vec<usize>,
}

impl Patches<'_> {
    fn runs(&self, places: Range<usize>) -> Runs {
        let [_, height, width] = self.grid;
        let plane = self.size.iter().product::<usize>();
        let mut result = Runs::default();
        for &tap in self.taps {
            let first = result.runs.len();
            let mut at = places.start;
            while at < places.end {
                let sample = self.first_sample + at / self.pixels.len();
                let in_sample = at % self.pixels.len();
                let pixel = self.pixels.start + in_sample;
                let position = [pixel / (width * height), pixel / width % height, pixel % width];
                let count = (width - position[2]).min(places.end - at).min(self.pixels.len() - in_sample);
                let base = sample * self.channels * plane;
                self.row(&mut result.runs, first, position, tap, at - places.start, count, base);
                at += count;
            }
            result.ends.push(result.runs.len());
        }
        result
    }

    /// Adds the runs of `count` places of one row of the grid.
    #[expect(clippy::too_many_arguments, reason = "one step of a loop, separate because of its length")]
    fn row(
        &self,
        runs: &mut Vec<Run>,
        first: usize,
        place: [usize; 3],
        tap: [isize; 3],
        to: usize,
        count: usize,
        base: usize,
    ) {
        let [depth, height, width] = self.size;
        let at = |axis: usize| (place[axis] * self.stride[axis]).checked_add_signed(tap[axis]);
        let mut push = |to: usize, count: usize, from: Option<usize>| {
            if count == 0 {
                return;
            }
            if let Some(last) = runs[first..].last_mut() {
                let follows = match (last.from, from) {
                    (Some(last_from), Some(from)) => self.stride[2] == 1 && last_from + last.count == from,
                    (None, None) => true,
                    _ => false,
                };
                if follows {
                    last.count += count;
                    return;
                }
            }
            runs.push(Run { to, count, from });
        };
        let (Some(d), Some(h)) = (at(0).filter(|&d| d < depth), at(1).filter(|&h| h < height)) else {
            return push(to, count, None);
        };
        let stride = self.stride[2];
        let start = (place[2] * stride).cast_signed() + tap[2];
        let before = start.min(0).unsigned_abs().div_ceil(stride).min(count);
        let start = start + (before * stride).cast_signed();
        let room = (width.cast_signed() - start).max(0).unsigned_abs().div_ceil(stride);
        let inside = room.min(count - before);
        push(to, before, None);
        if inside > 0 {
            push(to + before, inside, Some(base + (d * height + h) * width + start.unsigned_abs()));
        }
        push(to + before + inside, count - before - inside, None);
    }

    /// Writes rows `rows` of the factor, for the places of `runs`, `pitch` apart.
    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn gather(&self, rows: Range<usize>, runs: &Runs, pitch: usize, target: &mut [f32]) {
        let plane = self.size.iter().product::<usize>();
        let n_taps = self.taps.len();
        let (mut channel, mut tap) = (rows.start / n_taps, rows.start % n_taps);
        for row in 0..rows.len() {
            let first = if tap == 0 { 0 } else { runs.ends[tap - 1] };
            for run in &runs.runs[first..runs.ends[tap]] {
                let to = row * pitch + run.to;
                match run.from {
                    None => target[to..to + run.count].fill(0.0),
                    Some(from) if self.stride[2] == 1 => {
                        prefetch_run(self.source, from + (channel + ROWS_AHEAD) * plane, run.count);
                        copy_run(self.source, from + channel * plane, target, to, run.count);
                    }
                    Some(from) => {
                        let source = self.source[from + channel * plane..].iter().step_by(self.stride[2]);
                        for (target, &source) in target[to..to + run.count].iter_mut().zip(source) {
                            *target = source;
                        }
                    }
                }
            }
            tap += 1;
            if tap == n_taps {
                (channel, tap) = (channel + 1, 0);
            }
        }
    }

    /// The rows of the factor are pieces of the planes: the kernel has one element, and its places are those of the input.
    fn is_input(&self) -> bool {
        self.taps == [[0; 3]] && self.stride == [1; 3] && self.grid == self.size
    }

    /// Where these places are in the first channel, if one sample has all of them.
    fn in_sample(&self, lanes: Range<usize>) -> Option<usize> {
        let (first, last) = (lanes.start / self.pixels.len(), (lanes.end - 1) / self.pixels.len());
        let plane = self.size.iter().product::<usize>();
        let base = (self.first_sample + first) * self.channels * plane + self.pixels.start;
        (first == last).then(|| base + lanes.start % self.pixels.len())
    }
}

impl Operand for Patches<'_> {
    fn pack_panels(&self, steps: Range<usize>, panels: &[PanelLanes], packed: &mut [f32]) {
        if !self.is_input() {
            return pack_each(self, steps, panels, packed);
        }
        let plane = self.size.iter().product::<usize>();
        for panels in panels.chunks(TOGETHER) {
            let (start, end) = (panels[0].lanes.start, panels[panels.len() - 1].lanes.end);
            let Some(from) = self.in_sample(start..end) else {
                pack_each(self, steps.clone(), panels, packed);
                continue;
            };
            let source = Strided { data: &self.source[from..], lane_stride: 1, step_stride: plane };
            let shifted =
                |panel: &PanelLanes| PanelLanes { lanes: panel.lanes.start - start..panel.lanes.end - start, ..*panel };
            source.pack_panels(steps.clone(), &panels.iter().map(shifted).collect::<Vec<_>>(), packed);
        }
    }

    fn pack(&self, steps: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [f32]) {
        let mut runs = self.runs(lanes.clone());
        if lanes.len() < width {
            let mut padded = Runs::default();
            let mut first = 0;
            for end in runs.ends {
                padded.runs.extend_from_slice(&runs.runs[first..end]);
                padded.runs.push(Run { to: lanes.len(), count: width - lanes.len(), from: None });
                padded.ends.push(padded.runs.len());
                first = end;
            }
            runs = padded;
        }
        vectorized!(self.gather(steps.clone(), &runs, width, panel));
    }
}
