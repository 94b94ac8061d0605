//! The stage of a task: a padded copy of the part of the input that it sees, sorted by the remainder of the place by the stride.

use std::ops::Range;

/// How the stage of a task is laid out: `[channel][remainder][depth][height][pitch]`.
pub(super) struct Layout {
    /// Of every element of the kernel: its remainder and its distance in depth, height and width.
    pub remainders: Vec<[usize; 3]>,
    pub shifts: Vec<[usize; 3]>,
    /// The remainders that occur.
    pub used: Vec<[usize; 3]>,
    /// Quotient by the stride of the first tap along each axis.
    pub low: [isize; 3],
    /// The extent of the stage beyond that of the places.
    pub extra: [usize; 3],
}

impl Layout {
    pub fn new(taps: &[[isize; 3]], stride: [usize; 3]) -> Self {
        let by_axis = |tap: &[isize; 3], map: fn(isize, isize) -> isize| -> [isize; 3] {
            std::array::from_fn(|axis| map(tap[axis], stride[axis].cast_signed()))
        };
        let quotients: Vec<[isize; 3]> = taps.iter().map(|tap| by_axis(tap, isize::div_euclid)).collect();
        let remainders = taps.iter().map(|tap| by_axis(tap, isize::rem_euclid).map(isize::unsigned_abs));
        let remainders: Vec<[usize; 3]> = remainders.collect();
        let extreme = |axis: usize, largest: bool| {
            let along = quotients.iter().map(|quotient| quotient[axis]);
            if largest { along.max() } else { along.min() }.unwrap_or(0)
        };
        let low = std::array::from_fn(|axis| extreme(axis, false));
        let extra = std::array::from_fn(|axis| (extreme(axis, true) - extreme(axis, false)).unsigned_abs());
        let shift = |quotient: &[isize; 3]| std::array::from_fn(|axis| (quotient[axis] - low[axis]).unsigned_abs());
        let shifts = quotients.iter().map(shift).collect();
        let mut used = remainders.clone();
        used.sort_unstable();
        used.dedup();
        Self { remainders, shifts, used, low, extra }
    }

    /// The offset of the values of every element of the kernel, for each of `channels` channels, where those of a remainder are
    /// `volume` values and `at` is the offset of a place among them.
    pub fn offsets(&self, channels: usize, volume: usize, at: impl Fn([usize; 3]) -> usize) -> Vec<usize> {
        let of_tap = |(remainder, shift): (&[usize; 3], &[usize; 3])| {
            let index = self.used.iter().position(|used| used == remainder).unwrap_or(0);
            index * volume + at(*shift)
        };
        let taps: Vec<usize> = self.remainders.iter().zip(&self.shifts).map(of_tap).collect();
        let channel = self.used.len() * volume;
        (0..channels).flat_map(|index| taps.iter().map(move |tap| index * channel + tap)).collect()
    }
}

/// The part of the input that a task sees.
pub(super) struct Stage {
    /// First place of the task in depth, height and width.
    pub first: [usize; 3],
    /// Places of the task in depth and height.
    pub out: [usize; 2],
    /// Depth and height of the stage.
    pub extent: [usize; 2],
    pub pitch: usize,
}

impl Stage {
    pub fn new(layout: &Layout, [depths, heights]: [Range<usize>; 2], width: usize) -> Self {
        Self {
            first: [depths.start, heights.start, 0],
            out: [depths.len(), heights.len()],
            extent: [depths.len() + layout.extra[0], heights.len() + layout.extra[1]],
            pitch: width + layout.extra[2],
        }
    }

    pub fn volume(&self) -> usize {
        self.extent[0] * self.extent[1] * self.pitch
    }

    /// Number of values of one channel.
    pub fn channel(&self, layout: &Layout) -> usize {
        layout.used.len() * self.volume()
    }
}
