//! Converts one image file, or the folder of a DICOM series, to the pixels a model sees: decode, scale to \[0, 1\],
//! resize, convert the channels.

use std::fs::File;
use std::io::{self, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::mask::prepare_mask;
use super::picture::{Kind, decode_picture_for};
use super::{Fault, ImageConfig, Undecodable, decode_picture, decode_volume_file, resize_picture, resize_volume};

/// Pixels of one image, quantised for the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pixels {
    /// A picture, `[channels, height, width]`; intensity = value / 255.
    Picture(Vec<u8>),
    /// A volume, `[depth, height, width]` (one channel, whatever the configured number: volumes are gray);
    /// intensity = value / 65535, an error of at most 1/131070 of the volume's range.
    Volume(Vec<u16>),
}

/// Reads, decodes and resizes the image at `path`.
///
/// # Errors
/// Every failure has a reason code; a damaged file never causes a panic.
pub fn prepare_image(path: &Path, config: &ImageConfig) -> Result<Pixels, Undecodable> {
    // Third-party decoders work on arbitrary bytes here. A panic in one of them would abort a long run because of one
    // damaged file, so it becomes an exclusion like every other failure.
    catch_unwind(AssertUnwindSafe(|| prepare(path, config)))
        .unwrap_or_else(|_| Err(Undecodable::new(Fault::Unreadable, "the decoder stopped on an internal error")))
}

fn prepare(path: &Path, config: &ImageConfig) -> Result<Pixels, Undecodable> {
    if config.is_mask {
        return Ok(Pixels::Picture(prepare_mask(path, config)?));
    }
    if config.is_volume() {
        let volume = decode_volume_file(path, &config.volume, &config.limits)?;
        let size = [config.size[0], config.size[1], config.size[2]];
        let resized = resize_volume(volume, size, config.volume.resample);
        return Ok(Pixels::Volume(resized.iter().map(|intensity| quantise(*intensity)).collect()));
    }
    if path.is_dir() {
        let detail = "the path is a folder, expected a picture because image.size has two entries";
        return Err(Undecodable::new(Fault::Unopened, detail));
    }
    let unopened = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Undecodable::new(Fault::Missing, "there is no such file"),
        _ => Undecodable::new(Fault::Unopened, error.to_string()),
    };
    let mut file = File::open(path).map_err(unopened)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unopened)?;
    let [height, width] = [config.size[0], config.size[1]];
    let mut picture = if config.exact {
        decode_picture(&bytes, &config.limits)?
    } else {
        decode_picture_for(&bytes, &config.limits, height, width)?
    };
    if config.channels == 1 {
        picture = picture.into_gray();
    }
    let picture = resize_picture(picture, height, width);
    Ok(Pixels::Picture(planes(&picture.pixels, picture.channels, config.channels)))
}

/// An intensity in \[0, 1\] as a 16-bit number.
fn quantise(intensity: f32) -> u16 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=65535")]
    let quantised = (intensity * 65_535.0).round().clamp(0.0, 65_535.0) as u16;
    quantised
}

/// `[pixels, from]` to `[to, pixels]`: gray is repeated, colour is split into channels.
fn planes(pixels: &[u8], from: usize, to: usize) -> Vec<u8> {
    if from != 3 {
        return pixels.repeat(to);
    }
    let mut planes = Vec::with_capacity(pixels.len() / 3 * to);
    for channel in 0..to {
        planes.extend(pixels.chunks_exact(3).map(|pixel| pixel[channel]));
    }
    planes
}

/// The kind of image according to the first bytes, for sentences like "the file is a PNG picture".
pub(super) fn sniff(bytes: &[u8]) -> Option<&'static str> {
    let starts = |signature: &[u8]| bytes.starts_with(signature);
    let nifti = |header: [u8; 4]| starts(&header) && bytes.get(344..347).is_some_and(|magic| magic == b"n+1");
    if let Some(kind) = Kind::announced(bytes) {
        return Some(kind.described());
    }
    match bytes {
        _ if starts(b"\x1f\x8b") => Some("a gzipped file, probably a NIfTI volume"),
        _ if nifti(348_i32.to_le_bytes()) || nifti(348_i32.to_be_bytes()) => Some("a NIfTI volume"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_taken_apart_and_gray_is_repeated() {
        assert_eq!(planes(&[10, 20, 33, 255, 254, 253], 3, 3), [10, 255, 20, 254, 33, 253]);
        assert_eq!(planes(&[7, 8], 1, 3), [7, 8, 7, 8, 7, 8]);
        assert_eq!(planes(&[7, 8], 1, 1), [7, 8]);
    }

    #[test]
    fn quantised_intensities_are_off_by_half_a_step_at_most() {
        for intensity in [0.0_f32, 1.0, 0.123_456, 0.999_99] {
            let back = f32::from(quantise(intensity)) / 65_535.0;
            assert!((back - intensity).abs() <= 0.51 / 65_535.0, "{intensity} became {back}");
        }
    }
}
