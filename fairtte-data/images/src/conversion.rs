//! From stored values to the intensities a model sees.
//!
//! Without transformation or augmentation a stored byte is looked up in a table of 256 intensities. Otherwise the image
//! becomes intensities in \[0, 1\] first, is transformed and augmented, and is scaled at the end; only holes are cut into
//! the scaled image.

use crate::augment::{Augmentation, Draw};
use crate::{StoredPixels, full_scale};

/// `(intensity - mean) / standard_deviation` of stored images, with what changes them before.
#[derive(Debug)]
pub struct Conversion {
    /// The intensity of each of the 256 values, per channel; empty for volumes.
    tables: Vec<[f32; 256]>,
    /// From stored values to transformed intensities, per channel.
    from_stored: Vec<(f32, f32)>,
    /// From intensities in \[0, 1\] to transformed intensities, per channel.
    from_unit: Vec<(f32, f32)>,
    per_image: bool,
    full_scale: f64,
    /// `[channels, ..]` of one image in the store.
    stored_shape: Vec<usize>,
    n_channels: usize,
}

/// A change of intensities in \[0, 1\], whose shape is the second argument.
pub type Transform<'t> = &'t dyn Fn(&mut [f32], &[usize]);

/// Buffers of one thread, reused between images.
#[derive(Debug, Default)]
pub struct Scratch {
    unit: Vec<f32>,
}

impl Conversion {
    /// For images stored as `[channels, height, width]` (8 bits) or `[1, depth, height, width]` (16 bits) and a model that takes as
    /// many channels as there are means; a volume is repeated for every channel. `per_image` also scales each image by its own
    /// mean and standard deviation.
    ///
    /// # Panics
    /// Unless there is one standard deviation per mean, and one mean per stored channel of a picture.
    pub fn new(stored_shape: &[usize], mean: &[f64], standard_deviation: &[f64], per_image: bool) -> Self {
        let is_volume = stored_shape.len() == 4;
        assert_eq!(mean.len(), standard_deviation.len(), "a mean and a standard deviation per channel");
        assert!(is_volume || mean.len() == stored_shape[0], "a mean per stored channel");
        let full_scale = full_scale(stored_shape);
        let affine = |full_scale: f64| {
            let channels = mean.iter().zip(standard_deviation);
            channels.map(move |(mean, deviation)| (1.0 / (full_scale * deviation), -mean / deviation))
        };
        let table =
            |(factor, offset): (f64, f64)| std::array::from_fn(|value| single((value as f64).mul_add(factor, offset)));
        let singles = |full_scale: f64| affine(full_scale).map(|(factor, offset)| (single(factor), single(offset)));
        Self {
            tables: if is_volume { Vec::new() } else { affine(full_scale).map(table).collect() },
            from_stored: singles(full_scale).collect(),
            from_unit: singles(1.0).collect(),
            per_image,
            full_scale,
            stored_shape: stored_shape.to_vec(),
            n_channels: mean.len(),
        }
    }

    /// Whether every image has a scaling of its own.
    pub fn is_per_image(&self) -> bool {
        self.per_image
    }

    /// `(factor, offset)` per channel from stored values to transformed intensities.
    pub fn scale_of_stored(&self) -> &[(f32, f32)] {
        &self.from_stored
    }

    /// Fills `image`, `[channels, ..]` in the size of the model. `transform` changes intensities in \[0, 1\] of the given shape, that of
    /// the stored image, before the augmentation; without both, stored values are only scaled.
    ///
    /// # Panics
    /// If `stored`, `image` or the augmentation are of another size than this conversion.
    pub fn convert(
        &self,
        stored: StoredPixels<'_>,
        transform: Option<Transform<'_>>,
        augmentation: Option<(&Augmentation, &Draw)>,
        scratch: &mut Scratch,
        image: &mut [f32],
    ) {
        let (stored_size, size) = match augmentation {
            Some((augmentation, _)) => (augmentation.stored_size(), augmentation.size()),
            None => (&self.stored_shape[1..], &self.stored_shape[1..]),
        };
        assert_eq!(stored_size, &self.stored_shape[1..], "the augmentation is for images of the stored size");
        assert_eq!(
            stored.n_values(),
            self.stored_shape.iter().product::<usize>(),
            "one stored value per pixel and channel"
        );
        assert_eq!(
            image.len(),
            self.n_channels * size.iter().product::<usize>(),
            "one intensity per pixel and channel"
        );
        if transform.is_none() && augmentation.is_none() {
            self.unchanged(stored, image);
        } else {
            self.changed(stored, transform, augmentation, &mut scratch.unit, image);
        }
        if self.per_image {
            image.chunks_exact_mut(image.len() / self.n_channels).for_each(standardise);
        }
        if let Some((augmentation, draw)) = augmentation {
            augmentation.cut(draw, image);
        }
    }

    fn unchanged(&self, stored: StoredPixels<'_>, image: &mut [f32]) {
        match stored {
            StoredPixels::Picture(pixels) => {
                let n = pixels.len() / self.n_channels;
                let channels = image.chunks_exact_mut(n).zip(pixels.chunks_exact(n)).zip(&self.tables);
                for ((channel, pixels), table) in channels {
                    for (intensity, pixel) in channel.iter_mut().zip(pixels) {
                        *intensity = table[usize::from(*pixel)];
                    }
                }
            }
            StoredPixels::Volume(voxels) => {
                // A volume is stored once and repeated for every channel.
                for (channel, (factor, offset)) in image.chunks_exact_mut(voxels.len()).zip(&self.from_stored) {
                    for (intensity, voxel) in channel.iter_mut().zip(voxels) {
                        *intensity = f32::from(*voxel) * factor + offset;
                    }
                }
            }
        }
    }

    fn changed(
        &self,
        stored: StoredPixels<'_>,
        transform: Option<Transform<'_>>,
        augmentation: Option<(&Augmentation, &Draw)>,
        unit: &mut Vec<f32>,
        image: &mut [f32],
    ) {
        unit.clear();
        let step = single(1.0 / self.full_scale);
        match stored {
            StoredPixels::Picture(pixels) => unit.extend(pixels.iter().map(|pixel| f32::from(*pixel) * step)),
            StoredPixels::Volume(voxels) => unit.extend(voxels.iter().map(|voxel| f32::from(*voxel) * step)),
        }
        if let Some(transform) = transform {
            transform(unit, &self.stored_shape);
        }
        // [channels, ..] as stored: for a volume one channel, which is repeated below.
        let n_stored = image.len() / self.n_channels * self.stored_shape[0];
        match augmentation {
            Some((augmentation, draw)) => {
                augmentation.apply(draw, unit, &mut image[..n_stored]);
                augmentation.recolour(draw, &mut image[..n_stored]);
            }
            None => image[..n_stored].copy_from_slice(unit),
        }
        let n = image.len() / self.n_channels;
        for channel in self.stored_shape[0]..self.n_channels {
            image.copy_within(..n, channel * n);
        }
        for (channel, (factor, offset)) in image.chunks_exact_mut(n).zip(&self.from_unit) {
            for intensity in channel {
                *intensity = *intensity * factor + offset;
            }
        }
    }
}

/// To mean 0 and (population) standard deviation 1; a constant channel becomes 0.
fn standardise(channel: &mut [f32]) {
    let n = channel.len() as f64;
    let mean = channel.iter().copied().map(f64::from).sum::<f64>() / n;
    let variance = channel.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / n;
    let deviation = variance.sqrt();
    // Below the resolution of a 16-bit store the spread is rounding error.
    let factor = if deviation > 1e-6 { 1.0 / deviation } else { 1.0 };
    for value in channel {
        *value = single((f64::from(*value) - mean) * factor);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "models compute in f32")]
fn single(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    fn converted(conversion: &Conversion, stored: StoredPixels<'_>, n: usize) -> Vec<f32> {
        let mut image = vec![f32::NAN; n];
        conversion.convert(stored, None, None, &mut Scratch::default(), &mut image);
        image
    }

    #[test]
    fn a_byte_is_divided_by_255_and_scaled_by_its_channel() {
        let conversion = Conversion::new(&[3, 1, 2], &[0.0, 0.5, 0.2], &[1.0, 0.5, 0.1], false);
        let found = converted(&conversion, StoredPixels::Picture(&[0, 255, 0, 255, 51, 102]), 6);
        for (found, expected) in found.iter().zip([0.0, 1.0, -1.0, 1.0, 0.0, 2.0]) {
            assert_abs_diff_eq!(*found, expected, epsilon = 1e-6);
        }
    }

    #[test]
    fn a_volume_is_repeated_for_every_channel_also_after_a_change() {
        let conversion = Conversion::new(&[1, 1, 1, 2], &[0.0, 0.5], &[1.0, 0.5], false);
        let stored = StoredPixels::Volume(&[0, 65_535]);
        assert_eq!(converted(&conversion, stored, 4), [0.0, 1.0, -1.0, 1.0]);
        let halve = |intensities: &mut [f32], shape: &[usize]| {
            assert_eq!(shape, [1, 1, 1, 2]);
            for value in intensities {
                *value *= 0.5;
            }
        };
        let mut image = [f32::NAN; 4];
        conversion.convert(stored, Some(&halve), None, &mut Scratch::default(), &mut image);
        for (found, expected) in image.iter().zip([0.0, 0.5, -1.0, 0.0]) {
            assert_abs_diff_eq!(*found, expected, epsilon = 1e-6);
        }
    }

    #[test]
    #[should_panic(expected = "one stored value per pixel and channel")]
    fn an_image_of_another_size_is_refused() {
        converted(&Conversion::new(&[1, 2, 2], &[0.0], &[1.0], false), StoredPixels::Picture(&[1, 2, 3]), 4);
    }
}
