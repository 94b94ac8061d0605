//! Masks as a model reads them: the class of every pixel in the size of its images, by the nearest neighbour, so that no class
//! arises that the mask does not have.

use std::io::{self, Write};
use std::path::Path;

use image::ImageEncoder as _;

use super::{Fault, ImageConfig, Undecodable, read_label_map};

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

/// Labels of `[height, width]` as a gray PNG picture of 8 bits, written to `file`.
///
/// # Errors
/// Those of `file`.
///
/// # Panics
/// If there is not one label per pixel.
pub fn encode_mask(file: impl Write, labels: &[u8], [height, width]: [usize; 2]) -> io::Result<()> {
    assert_eq!(labels.len(), height * width, "one label per pixel");
    let side = |side: usize| u32::try_from(side).expect("an image side below 2^32");
    let encoder = image::codecs::png::PngEncoder::new(file);
    encoder.write_image(labels, side(width), side(height), image::ExtendedColorType::L8).map_err(io::Error::other)
}

/// Replaces every label by that of the table at its place.
pub fn map_labels(labels: &mut [u8], table: &[u8; 256]) {
    for label in labels {
        *label = table[usize::from(*label)];
    }
}

/// Reads the mask at `path` as labels of 8 bits in the size of the settings.
pub(super) fn prepare_mask(path: &Path, config: &ImageConfig) -> Result<Vec<u8>, Undecodable> {
    let map = read_label_map(path, &config.limits)?;
    let [height, width] = map.extents[..] else {
        let detail = "the mask is a volume, expected a picture because image.size has two entries";
        return Err(Undecodable::new(Fault::WrongDimensions, detail));
    };
    let byte = |label: &i32| {
        let detail = || format!("the mask has the value {label}, expected values from 0 to 255");
        u8::try_from(*label).map_err(|_| Undecodable::new(Fault::Unsupported, detail()))
    };
    let labels = map.labels.iter().map(byte).collect::<Result<Vec<u8>, _>>()?;
    Ok(resize_labels(&labels, [height, width], [config.size[0], config.size[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_that_was_written_is_read_again() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.png");
        encode_mask(std::fs::File::create(&path)?, &[0, 1, 255, 7, 0, 2], [2, 3])?;
        let found = read_label_map(&path, &crate::Limits::default()).map_err(|refused| refused.detail)?;
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
