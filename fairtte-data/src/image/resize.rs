//! Resizing with a triangle filter: (bi- or tri-) linear interpolation when enlarging, widened to the footprint of a
//! target pixel when shrinking, so that nothing between the sampled points is lost (antialiased).

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use super::Picture;

fn options() -> ResizeOptions {
    ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear)).use_alpha(false)
}

/// Resizes `picture` to `height` x `width` pixels; the channels stay.
///
/// # Panics
/// If `picture.pixels` does not have `height * width * channels` entries, or a side is 0 or above 2^32.
pub fn resize_picture(picture: &Picture, height: usize, width: usize) -> Picture {
    let kind = if picture.channels == 3 { PixelType::U8x3 } else { PixelType::U8 };
    let source = ImageRef::new(side(picture.width), side(picture.height), &picture.pixels, kind);
    let source = source.expect("the buffer has the size of the picture");
    let mut target = Image::new(side(width), side(height), kind);
    Resizer::new().resize(&source, &mut target, &options()).expect("both sides have the same pixel type");
    Picture { width, height, channels: picture.channels, pixels: target.into_vec() }
}

fn side(extent: usize) -> u32 {
    u32::try_from(extent).expect("an image side below 2^32")
}

#[cfg(test)]
pub(super) mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    /// Triangle filter along one axis, written out from its definition: the target pixel centred at
    /// `(i + 1/2) scale - 1/2` takes every source pixel within `max(scale, 1)` of it with a weight that falls linearly.
    pub(in crate::image) fn triangle(source: &[f64], n: usize) -> Vec<f64> {
        let scale = source.len() as f64 / n as f64;
        let support = scale.max(1.0);
        let target = |i: usize| {
            let centre = (i as f64 + 0.5) * scale - 0.5;
            let weight = |j: usize| (1.0 - (j as f64 - centre).abs() / support).max(0.0);
            let total: f64 = (0..source.len()).map(weight).sum();
            source.iter().enumerate().map(|(j, value)| weight(j) * value).sum::<f64>() / total
        };
        (0..n).map(target).collect()
    }

    /// Made-up intensities in [0, 1).
    pub(in crate::image) fn wave(i: usize) -> f32 {
        #[expect(clippy::cast_possible_truncation, reason = "a made-up intensity")]
        let value = (((i * 37) % 101) as f64 / 101.0) as f32;
        value
    }

    #[test]
    fn a_picture_is_filtered_with_the_same_triangle() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
        let pixels: Vec<u8> = (0..12).map(|i| (wave(i) * 255.0) as u8).collect();
        let picture = Picture { width: 12, height: 1, channels: 1, pixels: pixels.clone() };
        let line: Vec<f64> = pixels.iter().copied().map(f64::from).collect();
        for width in [5, 12, 30] {
            let resized = resize_picture(&picture, 1, width);
            for (pixel, expected) in resized.pixels.iter().zip(triangle(&line, width)) {
                assert_abs_diff_eq!(f64::from(*pixel), expected, epsilon = 1.0);
            }
        }
    }

    #[test]
    fn a_fine_chequerboard_shrinks_to_gray_and_not_to_black_or_white() {
        let pixels = (0..64 * 64).map(|i| if (i % 64 + i / 64) % 2 == 0 { 0 } else { 255 }).collect();
        let small = resize_picture(&Picture { width: 64, height: 64, channels: 1, pixels }, 8, 8);
        assert!(small.pixels.iter().all(|pixel| (124..=131).contains(pixel)), "{:?}", small.pixels);
    }
}
