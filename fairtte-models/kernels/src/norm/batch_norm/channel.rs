//! One channel of all samples, as layers of whole tensors and those that are computed together with others take it.

use rayon::prelude::*;

use crate::activation::Curve;
use crate::norm::batch_norm::planes::{Finish, Normalise, Sums};
use crate::norm::batch_norm::{Affine, Backward, Channel};
use crate::norm::moments::{LARGE, Moments, PIECE, Segment, moments};
use crate::simd;
use crate::tasks::units_per_task;

/// The parts of channel `channel`, which has index `index` in the group that `parts` contains of every sample.
pub(crate) fn segments<'a>(
    x: &'a [f32],
    channels: usize,
    plane: usize,
    channel: usize,
    index: usize,
    parts: &'a mut [&mut [f32]],
) -> Vec<Segment<'a>> {
    let planes = parts.iter_mut().enumerate().map(|(sample, part)| {
        (&x[(sample * channels + channel) * plane..][..plane], &mut part[index * plane..][..plane])
    });
    if plane <= PIECE {
        return planes.map(|(x, values)| Segment { x, values }).collect();
    }
    let pieces = planes.flat_map(|(x, values)| x.chunks(PIECE).zip(values.chunks_mut(PIECE)));
    pieces.map(|(x, values)| Segment { x, values }).collect()
}

/// The moments of a channel from its planes.
pub(crate) fn measure<'a>(planes: impl Iterator<Item = &'a [f32]>, epsilon: f64) -> Moments {
    let pieces = planes.flat_map(|plane| plane.chunks(PIECE));
    moments(&pieces.map(|x| Segment { x, values: &mut [] }).collect::<Vec<_>>(), epsilon)
}

/// A plane after the norm and the activation.
pub(crate) fn normalise_plane<C: Curve>(x: &[f32], affine: Affine, curve: C, values: &mut [f32]) {
    simd::run(Normalise { segments: &mut [Segment { x, values }], affine, curve });
}

/// The channel after the norm and the activation.
pub(crate) fn normalise<C: Curve>(segments: &mut [Segment], affine: Affine, curve: C) {
    divided(segments, |segments| simd::run(Normalise { segments, affine, curve }));
}

/// Sums of q and of q h; the gradient of the output in `values` becomes that of `x`. The channel has `count` values.
pub(crate) fn backward<C: Curve>(
    segments: &mut [Segment],
    channel: Channel,
    count: f64,
    frozen: bool,
    curve: C,
) -> [f64; 2] {
    let parts = divided(segments, |segments| simd::run(Sums { segments, channel, curve }));
    let sums = parts.into_iter().fold([0.0; 2], |sums, part| [sums[0] + part[0], sums[1] + part[1]]);
    let backward = Backward::new(channel, sums, count, frozen);
    divided(segments, |segments| simd::run(Finish { segments, channel, backward, curve }));
    sums
}

/// Results of `compute` over the pieces of a channel: on all threads if it is a large one.
fn divided<R: Send>(segments: &mut [Segment], compute: impl Fn(&mut [Segment]) -> R + Send + Sync) -> Vec<R> {
    let length = segments.first().map_or(0, |segment| segment.x.len());
    if length * segments.len() <= LARGE {
        return vec![compute(segments)];
    }
    segments.par_chunks_mut(units_per_task(segments.len(), length, PIECE)).map(&compute).collect()
}
