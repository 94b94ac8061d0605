//! Masks as a model reads them: the class of every pixel in the size of its images, by the nearest neighbour, so that no class
//! arises that the mask does not have.

use std::path::Path;

use image::ImageEncoder as _;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use super::{ImageConfig, ImageStore, StoredPixels, Undecodable, read_label_map};
use crate::cohort::{Cohort, Reason};
use crate::{DataError, write_atomically};

/// Height over width of a mask may differ from that of its image by this share, and by one pixel.
const SAME_SHAPE: f64 = 0.01;

/// The labels of a map of `from` `[height, width]` in the size `to`: every pixel has the label at its centre.
///
/// # Panics
/// If there is not one label per pixel, or a side is 0.
pub fn resize_labels<T: Copy>(labels: &[T], from: [usize; 2], to: [usize; 2]) -> Vec<T> {
    assert_eq!(labels.len(), from[0] * from[1], "one label per pixel");
    // floor((i + 1/2) from / to), in whole numbers.
    let places = |axis: usize| (0..to[axis]).map(move |i| (2 * i + 1) * from[axis] / (2 * to[axis]));
    let columns: Vec<usize> = places(1).collect();
    places(0).flat_map(|row| columns.iter().map(move |column| labels[row * from[1] + column])).collect()
}

/// Writes labels of `[height, width]` as a gray PNG picture of 8 bits, atomically.
///
/// # Errors
/// [`DataError::Write`] naming `path`.
///
/// # Panics
/// If there is not one label per pixel.
pub fn write_mask(path: &Path, labels: &[u8], [height, width]: [usize; 2]) -> Result<(), DataError> {
    assert_eq!(labels.len(), height * width, "one label per pixel");
    let side = |side: usize| u32::try_from(side).expect("an image side below 2^32");
    write_atomically(path, |file| {
        let encoder = image::codecs::png::PngEncoder::new(file);
        let written = encoder.write_image(labels, side(width), side(height), image::ExtendedColorType::L8);
        written.map_err(std::io::Error::other)
    })
}

/// Reads the mask at `path` as labels of 8 bits in the size of the settings.
pub(super) fn prepare_mask(path: &Path, config: &ImageConfig) -> Result<Vec<u8>, Undecodable> {
    let map = read_label_map(path, &config.limits)?;
    let [height, width] = map.extents[..] else {
        let detail = "the mask is a volume, expected a picture because image.size has two entries";
        return Err(Undecodable::new(Reason::ImageWrongDimensions, detail));
    };
    let byte = |label: &i32| {
        let detail = || format!("the mask has the value {label}, expected values from 0 to 255");
        u8::try_from(*label).map_err(|_| Undecodable::new(Reason::ImageUnsupported, detail()))
    };
    let labels = map.labels.iter().map(byte).collect::<Result<Vec<u8>, _>>()?;
    Ok(resize_labels(&labels, [height, width], [config.size[0], config.size[1]]))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_that_was_written_is_read_again() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.png");
        write_mask(&path, &[0, 1, 255, 7, 0, 2], [2, 3])?;
        let found = read_label_map(&path, &super::super::Limits::default()).map_err(|refused| refused.detail)?;
        assert_eq!((found.extents, found.labels), (vec![2, 3], vec![0, 1, 255, 7, 0, 2]));
        Ok(())
    }

    #[test]
    fn a_pixel_has_the_label_at_its_centre_and_no_other_label_arises() {
        // Centres of 2 columns of 5: 1.25 and 3.75.
        assert_eq!(resize_labels(&[0, 1, 2, 3, 4], [1, 5], [1, 2]), [1, 3]);
        // Centres of 3 of 2: 1/3, 1, 5/3.
        assert_eq!(resize_labels(&[7, 9], [1, 2], [1, 3]), [7, 9, 9]);
        assert_eq!(resize_labels(&[1, 2, 3, 4], [2, 2], [4, 4]), [1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4]);
        assert_eq!(resize_labels(&[1, 2, 3, 4, 5, 6], [2, 3], [2, 3]), [1, 2, 3, 4, 5, 6]);
        let labels: Vec<u8> = (0..12 * 10).map(|at| if at % 7 < 3 { 2 } else { 250 }).collect();
        assert!(resize_labels(&labels, [12, 10], [7, 9]).iter().all(|label| [2, 250].contains(label)));
    }
}
