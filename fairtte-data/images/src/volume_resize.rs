//! Resizes volumes.
//!
//! `antialiased`: a triangle filter, linear interpolation when enlarging, widened to the footprint of a target voxel
//! when shrinking, so that nothing between the sampled points is lost. Separable: first every slice, then along the
//! depth, where the slices laid out as the rows of one picture of `depth` rows need a vertical pass only.
//!
//! `trilinear`: linear interpolation between the eight nearest voxels without smoothing, as in
//! `torch.nn.functional.interpolate(mode="trilinear", align_corners=False)` and `scipy.ndimage.zoom(order=1,
//! mode="nearest", grid_mode=True)`. The centre of target voxel `i` of `n` is at `(i + 1/2) from / n - 1/2` of the
//! source, clamped to it at the edges. Detail finer than the target resolution aliases.

use fast_image_resize::Resizer;
use fast_image_resize::pixels::F32;
use serde::{Deserialize, Serialize};

use super::Volume;
use super::resize::resize;

/// How a volume is resized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Resampling {
    /// Triangle filter as wide as a target voxel: shrinking averages.
    #[default]
    Antialiased,
    /// Linear between the eight nearest voxels, as in PyTorch: shrinking samples.
    Trilinear,
}

/// Resizes `volume` to `[depth, height, width]`.
///
/// Cost: one pass over the source (`antialiased`) or eight reads per target voxel (`trilinear`).
///
/// ```
/// use fairtte_images::{Resampling, Volume, resize_volume};
///
/// let volume = Volume { size: [2, 1, 1], voxels: vec![0.0, 1.0] };
/// let larger = resize_volume(volume, [4, 1, 1], Resampling::Trilinear);
/// assert_eq!(larger, [0.0, 0.25, 0.75, 1.0]);
/// ```
///
/// # Panics
/// If `volume.voxels` does not have the size of `volume.size`, or a side is 0 or above 2^32.
pub fn resize_volume(volume: Volume, size: [usize; 3], resampling: Resampling) -> Vec<f32> {
    match resampling {
        Resampling::Antialiased => antialiased(volume, size),
        Resampling::Trilinear => trilinear(&volume, size),
    }
}

fn antialiased(mut volume: Volume, [depth, height, width]: [usize; 3]) -> Vec<f32> {
    let [from_depth, from_height, from_width] = volume.size;
    let mut resizer = Resizer::new();
    let mut slices = Vec::with_capacity(from_depth * height * width);
    for slice in volume.voxels.chunks_exact_mut(from_height * from_width) {
        slices.extend(resize_plane(&mut resizer, slice, [from_height, from_width], [height, width]));
    }
    // [from_depth, height * width] -> [depth, height * width]
    resize_plane(&mut resizer, &mut slices, [from_depth, height * width], [depth, height * width])
}

/// `[height, width]` floats to another height and width.
fn resize_plane(resizer: &mut Resizer, plane: &mut [f32], from: [usize; 2], to: [usize; 2]) -> Vec<f32> {
    let mut values = vec![0_f32; to[0] * to[1]];
    resize::<F32>(resizer, (bytemuck::cast_slice_mut(plane), from), (bytemuck::cast_slice_mut(&mut values), to));
    values
}

fn trilinear(volume: &Volume, size: [usize; 3]) -> Vec<f32> {
    let [_, height, width] = volume.size;
    let [along_depth, along_height, along_width] = [0, 1, 2].map(|axis| neighbours(volume.size[axis], size[axis]));
    let mut resized = Vec::with_capacity(size.iter().product());
    for (z, next_z, far_z) in &along_depth {
        for (y, next_y, far_y) in &along_height {
            let row = |z: usize, y: usize| &volume.voxels[(z * height + y) * width..][..width];
            let rows = [row(*z, *y), row(*z, *next_y), row(*next_z, *y), row(*next_z, *next_y)];
            resized.extend(along_width.iter().map(|(x, next_x, far_x)| {
                let [near, near_below, deep, deep_below] = rows.map(|row| between(row[*x], row[*next_x], *far_x));
                between(between(near, near_below, *far_y), between(deep, deep_below, *far_y), *far_z)
            }));
        }
    }
    resized
}

fn between(near: f32, far: f32, share: f32) -> f32 {
    near + (far - near) * share
}

/// For each of `n` target voxels: the source voxel before it, the one after it, and the share of the latter.
fn neighbours(from: usize, n: usize) -> Vec<(usize, usize, f32)> {
    let scale = from as f64 / n as f64;
    let neighbour = |i: usize| {
        let centre = ((i as f64 + 0.5) * scale - 0.5).max(0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and `from`")]
        let before = (centre as usize).min(from - 1);
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1")]
        let share = (centre - before as f64) as f32;
        (before, (before + 1).min(from - 1), share)
    };
    (0..n).map(neighbour).collect()
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;
    use crate::resize::tests::{triangle, wave};

    #[test]
    fn each_axis_of_a_volume_is_filtered_with_the_antialiased_triangle() {
        for (axis, size) in [(0, [3, 4, 5]), (1, [10, 2, 5]), (2, [10, 4, 9])] {
            let from = [10, 4, 5];
            let voxels: Vec<f32> = (0..200).map(wave).collect();
            let resized = resize_volume(Volume { size: from, voxels: voxels.clone() }, size, Resampling::Antialiased);
            let at = |size: [usize; 3], i: [usize; 3]| (i[0] * size[1] + i[1]) * size[2] + i[2];
            for depth in 0..size[0] {
                for row in 0..size[1] {
                    for column in 0..size[2] {
                        let index = [depth, row, column];
                        let along = |j: usize| {
                            let mut source = index;
                            source[axis] = j;
                            f64::from(voxels[at(from, source)])
                        };
                        let line: Vec<f64> = (0..from[axis]).map(along).collect();
                        let expected = triangle(&line, size[axis])[index[axis]];
                        assert_abs_diff_eq!(f64::from(resized[at(size, index)]), expected, epsilon = 1e-5);
                    }
                }
            }
        }
    }

    /// Recorded from `scipy.ndimage.zoom(v, zoom, order=1, mode="nearest", grid_mode=True)`, scipy 1.17.1.
    #[test]
    fn plain_trilinear_values_are_those_of_scipy() {
        type Recorded = ([usize; 3], [([usize; 3], f64); 5], f64);
        let volume = Volume { size: [5, 4, 6], voxels: (0..120).map(wave).collect() };
        let recorded: [Recorded; 2] = [
            (
                [3, 2, 4],
                [
                    ([0, 0, 0], 0.371_287_13),
                    ([1, 1, 2], 0.269_801_98),
                    ([2, 1, 3], 0.472_772_28),
                    ([2, 0, 3], 0.285_066),
                    ([0, 1, 1], 0.441_831_69),
                ],
                0.486_265_816_287_616_1,
            ),
            (
                [7, 4, 9],
                [
                    ([0, 0, 0], 0.0),
                    ([1, 1, 2], 0.506_600_67),
                    ([6, 3, 8], 0.594_059_41),
                    ([2, 0, 3], 0.451_909_49),
                    ([0, 1, 1], 0.381_188_12),
                ],
                0.488_356_235_958_984_25,
            ),
        ];
        for (size, values, mean) in recorded {
            let resized = resize_volume(volume.clone(), size, Resampling::Trilinear);
            for ([z, y, x], value) in values {
                let found = f64::from(resized[(z * size[1] + y) * size[2] + x]);
                assert_abs_diff_eq!(found, value, epsilon = 1e-6);
            }
            let sum: f64 = resized.iter().copied().map(f64::from).sum();
            assert_abs_diff_eq!(sum / resized.len() as f64, mean, epsilon = 1e-6);
        }
    }

    #[test]
    fn a_volume_of_the_wanted_size_stays_as_it_is() {
        let volume = Volume { size: [2, 3, 4], voxels: (0..24).map(wave).collect() };
        for resampling in [Resampling::Antialiased, Resampling::Trilinear] {
            assert_eq!(resize_volume(volume.clone(), volume.size, resampling), volume.voxels);
        }
    }
}
