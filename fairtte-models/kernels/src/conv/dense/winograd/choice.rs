//! Which convolutions are computed in tiles, and in which.

use super::tiling::{FourByFour, Tiling, TwoByTwo};
use super::{grid, of_pictures};
use crate::conv::{ConvKind, ConvShape};
use crate::simd::lanes::LONGEST;

/// A size of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Edge {
    Two,
    Four,
}

/// The tiles of a convolution, or of the gradient of the input of one; `None` where the plain sum is expected to be as fast.
///
/// Estimates of the time on a processor with AVX-512 are compared. They depend on the shape alone, and so do the bits of the result.
pub(in super::super) fn tiles(shape: &ConvShape) -> Option<Edge> {
    /// Time of a product of the plain sum, in percent of that of a product of transformed values; and where the samples of a batch are
    /// innermost.
    const PLAIN: [usize; 2] = [115, 85];
    let [two, four] = [is_possible::<TwoByTwo>(shape), is_possible::<FourByFour>(shape)];
    let [_, height, width] = shape.output();
    let innermost = of_pictures(shape) && width <= 4;
    let plain = slices(shape) * 9 * height * width * pairs(shape) * PLAIN[usize::from(innermost)] / 100;
    let times = [
        (two, time::<TwoByTwo>(shape), Edge::Two),
        // The smaller tiles have the smaller rounding errors.
        (four, time::<FourByFour>(shape), Edge::Four),
    ];
    let possible = times.into_iter().filter(|&(possible, time, _)| possible && time < plain);
    possible.min_by_key(|&(_, time, _)| time).map(|(_, _, edge)| edge)
}

/// The tiles of the gradient of the weights, which are summed over the whole batch.
pub(in super::super) fn tiles_of_weights(shape: &ConvShape) -> Option<Edge> {
    /// Numbers of tiles of a batch below which transforms cost as much as they save. With 16 of 4 x 4 places the gradient for 64 channels
    /// took 0.5 of the time and that for 512 0.8, with 8 of them that for 256 as long.
    const LEAST: [usize; 2] = [24, 16];
    if of_pictures(shape) && shape.inputs <= LONGEST {
        // Half of the right factor would be empty (`weights::CHANNELS`), which the fewer products of volumes alone make up for.
        return None;
    }
    let enough = |tiles: usize, least: usize| slices(shape) * tiles >= least;
    if is_possible::<FourByFour>(shape) && enough(tiles_of_slice::<FourByFour>(shape), LEAST[1]) {
        Some(Edge::Four)
    } else if is_possible::<TwoByTwo>(shape) && enough(tiles_of_slice::<TwoByTwo>(shape), LEAST[0]) {
        Some(Edge::Two)
    } else {
        None
    }
}

/// Whether [`tiles`] are taken.
pub(crate) fn pays(shape: &ConvShape) -> bool {
    tiles(shape).is_some()
}

/// Whether these tiles can be taken, and save enough products.
fn is_possible<T: Tiling>(shape: &ConvShape) -> bool {
    /// Number of channels below which transforms cost more than they save.
    const FEW: usize = 16;
    /// Maximum number of values in the transforms of all kernels, which can be in memory together: 64 MiB.
    const MOST: usize = 1 << 24;
    let ConvShape { inputs, outputs, kernel, stride, padding, .. } = *shape;
    let known = kernel[1..] == [3, 3] && stride == [1; 3] && padding[1..].iter().all(|&zeros| zeros <= 2);
    let [_, height, width] = shape.output();
    // The parts of tiles beyond the edge are computed in vain.
    let full = 5 * T::COMPONENTS * tiles_of_slice::<T>(shape) <= 27 * height * width;
    let fits = T::COMPONENTS * inputs * outputs * kernel[0] <= MOST;
    known && full && fits && inputs >= FEW && outputs >= FEW && shape.kind() == Some(ConvKind::Dense)
}

/// Estimated time, in products of [`LONGEST`] values of one channel.
fn time<T: Tiling>(shape: &ConvShape) -> usize {
    let [rows, columns] = grid::<T>(shape);
    let of_slice = rows * columns.div_ceil(LONGEST) * T::TRANSFORMS * LONGEST
        + T::COMPONENTS * tiles_of_slice::<T>(shape) * pairs(shape);
    slices(shape) * of_slice + pairs(shape) * T::FILTER * LONGEST
}

/// Pairs of a channel with an output and a slice of the kernel.
fn pairs(shape: &ConvShape) -> usize {
    shape.outputs * shape.kernel[0]
}

/// Slices of all samples.
fn slices(shape: &ConvShape) -> usize {
    shape.batch * shape.output()[0]
}

/// Tiles of a slice.
fn tiles_of_slice<T: Tiling>(shape: &ConvShape) -> usize {
    grid::<T>(shape).into_iter().product()
}
