//! Masks of a cohort: written, compared with their images, and their values as classes.

use std::path::Path;

use fairtte_images::{ImageConfig, encode_mask, read_label_map};
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use super::{ImageStore, StoredPixels};
use crate::cohort::Cohort;
use crate::{DataError, write_atomically};

/// Height over width of a mask may differ from that of its image by this share, and by one pixel.
const SAME_SHAPE: f64 = 0.01;

/// Writes labels of `[height, width]` as a gray PNG picture of 8 bits, atomically.
///
/// # Errors
/// [`DataError::Write`] naming `path`.
///
/// # Panics
/// If there is not one label per pixel.
pub fn write_mask(path: &Path, labels: &[u8], size: [usize; 2]) -> Result<(), DataError> {
    write_atomically(path, |file| encode_mask(file, labels, size))
}

/// Checks that every mask has the proportions of its image, so that both are the same part of the eye or body: `masks` has the
/// samples of `cohort` with the files of their masks. Files that cannot be read, and images whose format does not say their size
/// in front (DICOM), are not compared.
///
/// # Errors
/// [`DataError::Mask`] naming the first sample whose mask has other proportions.
///
/// # Cost
/// One mask and the beginning of one image per sample.
pub fn check_mask_shapes(cohort: &Cohort, masks: &Cohort, config: &ImageConfig) -> Result<(), DataError> {
    let differs = |row: usize| -> Option<DataError> {
        let (image, mask) = (&cohort.samples[row].image, &masks.samples[row].image);
        let reader = image::ImageReader::open(image).ok()?.with_guessed_format().ok()?;
        let (width, height) = reader.into_dimensions().ok()?;
        let map = read_label_map(mask, &config.limits).ok()?;
        let &[mask_height, mask_width] = &map.extents[..] else { return None };
        let fits = |height: u32, width: u32| {
            let expected = mask_width as f64 * f64::from(height) / f64::from(width.max(1));
            (mask_height as f64 - expected).abs() <= 1.0_f64.max(SAME_SHAPE * expected)
        };
        // A photograph may be stored turned.
        if fits(height, width) || fits(width, height) {
            return None;
        }
        let detail = format!(
            "it has {mask_height} x {mask_width} pixels and its image {height} x {width}, expected the same proportions"
        );
        let sample = cohort.samples[row].sample_id.as_str().to_owned();
        Some(DataError::Mask { which: "true", sample, detail, path: mask.clone() })
    };
    (0..cohort.n()).into_par_iter().find_map_first(differs).map_or(Ok(()), Err)
}

/// The number of the class of every value of a pixel, `[256]`: the place of the value among `values`.
///
/// # Errors
/// [`DataError::Mask`] naming the first sample of `masks` (with the files of masks) that has a pixel of another value.
pub fn classes_of_values(store: &ImageStore, masks: &Cohort, values: &[u8]) -> Result<[u8; 256], DataError> {
    let mut table = [0; 256];
    let mut is_known = [false; 256];
    for (class, value) in (0_u8..).zip(values) {
        table[usize::from(*value)] = class;
        is_known[usize::from(*value)] = true;
    }
    let wrong = |row: usize| {
        let sample = &masks.samples[row];
        let StoredPixels::Picture(labels) = store.pixels(store.position(&sample.sample_id)?) else { return None };
        let other = labels.iter().find(|label| !is_known[usize::from(**label)])?;
        let known: Vec<String> = values.iter().map(u8::to_string).collect();
        let detail = format!("a pixel is {other}, expected one of {}", known.join(", "));
        let (path, sample) = (sample.image.clone(), sample.sample_id.as_str().to_owned());
        Some(DataError::Mask { which: "true", sample, detail, path })
    };
    (0..masks.n()).into_par_iter().find_map_first(wrong).map_or(Ok(table), Err)
}
