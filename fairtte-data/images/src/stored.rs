//! Pixels as they are kept between decoding and the model: whole numbers of 8 or 16 bits.

use crate::augment::{Augmentation, Draw};

/// The pixels of one image as they are stored; intensities in \[0, 1\] are value / 255 or value / 65535.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StoredPixels<'a> {
    /// A picture, `[channels, height, width]`.
    Picture(&'a [u8]),
    /// A volume, `[depth, height, width]`.
    Volume(&'a [u16]),
}

/// The stored value of intensity 1, of images of `stored_shape`: `[channels, height, width]` or `[1, depth, height, width]`.
pub fn full_scale(stored_shape: &[usize]) -> f64 {
    if stored_shape.len() == 4 { f64::from(u16::MAX) } else { f64::from(u8::MAX) }
}

impl StoredPixels<'_> {
    /// Number of values.
    pub fn n_values(self) -> usize {
        match self {
            Self::Picture(pixels) => pixels.len(),
            Self::Volume(voxels) => voxels.len(),
        }
    }

    /// Sum and sum of squares of the values of each of `n_channels` channels.
    ///
    /// # Panics
    /// If there are no channels, or fewer values than channels.
    pub fn sums(self, n_channels: usize) -> Vec<(u128, u128)> {
        match self {
            Self::Picture(pixels) => sums(pixels, n_channels),
            Self::Volume(voxels) => sums(voxels, n_channels),
        }
    }
}

fn sums<T: Copy + Into<u64>>(pixels: &[T], n_channels: usize) -> Vec<(u128, u128)> {
    // One image has fewer than 2^32 pixels of at most 2^16, so 64 bits are enough for its sums.
    let of_channel = |channel: &[T]| {
        let (sum, squares) = channel.iter().fold((0_u64, 0_u64), |(sum, squares), pixel| {
            let pixel: u64 = (*pixel).into();
            (sum + pixel, squares + pixel * pixel)
        });
        (u128::from(sum), u128::from(squares))
    };
    pixels.chunks_exact(pixels.len() / n_channels).map(of_channel).collect()
}

/// A type of stored values: `u8` of pictures, `u16` of volumes.
pub trait StoredValue: bytemuck::Pod + Send + Sync {
    /// Bits of a value.
    const BITS: usize;

    /// Of stored pixels that have this width.
    fn of(stored: StoredPixels<'_>) -> Option<&[Self]>;

    /// Fills `target`, `[channels, ..]` in the size of the model, from `source`, `[channels, ..]` as stored, by a draw that
    /// [keeps the values](Augmentation::keeps_values): cut and mirrored.
    ///
    /// # Panics
    /// If the slices are shorter than these sizes.
    // Not a default method: that would be compiled in the crate that calls it, without optimisation in a development build.
    fn cut(augmentation: &Augmentation, draw: &Draw, source: &[Self], target: &mut [Self]);
}

impl StoredValue for u8 {
    const BITS: usize = 8;

    fn of(stored: StoredPixels<'_>) -> Option<&[Self]> {
        if let StoredPixels::Picture(pixels) = stored { Some(pixels) } else { None }
    }

    fn cut(augmentation: &Augmentation, draw: &Draw, source: &[Self], target: &mut [Self]) {
        augmentation.apply_straight(draw, source, target);
    }
}

impl StoredValue for u16 {
    const BITS: usize = 16;

    fn of(stored: StoredPixels<'_>) -> Option<&[Self]> {
        if let StoredPixels::Volume(voxels) = stored { Some(voxels) } else { None }
    }

    fn cut(augmentation: &Augmentation, draw: &Draw, source: &[Self], target: &mut [Self]) {
        augmentation.apply_straight(draw, source, target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_each_channel() {
        assert_eq!(StoredPixels::Picture(&[1, 2, 3, 255, 0, 4]).sums(3), [(3, 5), (258, 65_034), (4, 16)]);
        assert_eq!(StoredPixels::Volume(&[65_535, 65_535]).sums(1), [(131_070, 8_589_672_450)]);
    }
}
