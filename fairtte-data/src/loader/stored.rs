//! Images of a batch as they are stored, for a device that scales them itself: a quarter of the bytes of a picture in single
//! precision, half of those of a volume, and no arithmetic on the host.

use fairtte_images::StoredValue;

/// The images of a batch as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The values one after the other, `[batch, stored channels, ..]`, four of 8 bits or two of 16 bits in a word, the first in
    /// the lowest bits; the last word is filled up with 0.
    pub words: Vec<i32>,
    /// Bits of a value: 8 of a picture, 16 of a volume.
    pub bits: usize,
    /// Channels of a stored image; a volume has one, which is repeated for a model that wants more.
    pub n_channels: usize,
    /// `(factor, offset)` per channel of the model, by which a value becomes an intensity: `value * factor + offset`.
    pub scale: Vec<(f32, f32)>,
}

/// The words of `n` values that `fill` writes, if it returns `true`.
pub(super) fn words<V: StoredValue>(n: usize, fill: impl FnOnce(&mut [V]) -> bool) -> Option<Vec<i32>> {
    let per_word = 32 / V::BITS;
    let mut words = vec![0_i32; n.div_ceil(per_word)];
    let filled = fill(&mut bytemuck::cast_slice_mut(&mut words)[..n]);
    if cfg!(target_endian = "big") {
        // There the first value is in the highest bits.
        for word in &mut words {
            *word = if V::BITS == 8 { word.swap_bytes() } else { word.rotate_left(16) };
        }
    }
    filled.then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_packed_from_the_lowest_bits_on() {
        fn of<V: StoredValue>(values: &[V]) -> Vec<i32> {
            let write = |place: &mut [V]| {
                place.copy_from_slice(values);
                true
            };
            words(values.len(), write).unwrap_or_default()
        }
        assert_eq!(of(&[1_u8, 2, 3, 255, 7]), [i32::from_be_bytes([255, 3, 2, 1]), 7]);
        assert_eq!(of(&[1_u16, 0xffff, 9]), [i32::from_be_bytes([255, 255, 0, 1]), 9]);
        assert!(of::<u8>(&[]).is_empty());
        assert!(words::<u8>(3, |_| false).is_none());
    }
}
