//! Resizing with a triangle filter: (bi- or tri-) linear interpolation when enlarging, widened to the footprint of a
//! target pixel when shrinking, so that nothing between the sampled points is lost (antialiased).

use fast_image_resize::images::TypedImage;
use fast_image_resize::pixels::{InnerPixel, U8, U8x3};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

use super::Picture;

/// Resizes `picture` to `height` x `width` pixels; the channels are kept.
///
/// # Panics
/// If `picture.pixels` does not have `height * width * channels` entries, or a side is 0 or above 2^32.
pub fn resize_picture(mut picture: Picture, height: usize, width: usize) -> Picture {
    let (from, to) = ([picture.height, picture.width], [height, width]);
    let mut pixels = vec![0; height * width * picture.channels];
    if picture.channels == 3 {
        resize::<U8x3>(&mut Resizer::new(), (&mut picture.pixels, from), (&mut pixels, to));
    } else {
        resize::<U8>(&mut Resizer::new(), (&mut picture.pixels, from), (&mut pixels, to));
    }
    Picture { width, height, channels: picture.channels, pixels }
}

/// Resizes the bytes of a picture of pixels `P` to those of another, each with its `[height, width]`; `source` is not
/// changed. The library is compiled for every type of pixel and of image that it is called with, so both are chosen for
/// few instances: the type of pixel is given explicitly, where dynamic dispatch takes them all, and the source is of the
/// type of the library's own buffer between the two passes, which can only be made of bytes that may change.
pub(super) fn resize<P: PixelTrait + InnerPixel>(
    resizer: &mut Resizer,
    (source, from): (&mut [u8], [usize; 2]),
    (target, to): (&mut [u8], [usize; 2]),
) {
    let source = TypedImage::<P>::from_buffer(side(from[1]), side(from[0]), source);
    let source = source.expect("the buffer has the size and the alignment of the picture");
    let target = TypedImage::<P>::from_buffer(side(to[1]), side(to[0]), target);
    let mut target = target.expect("the buffer has the size and the alignment of the picture");
    let triangle = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear)).use_alpha(false);
    resizer.resize_typed(&source, &mut target, &triangle).expect("no crop box leaves the picture");
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
    pub(crate) fn triangle(source: &[f64], n: usize) -> Vec<f64> {
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
    pub(crate) fn wave(i: usize) -> f32 {
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
            let resized = resize_picture(picture.clone(), 1, width);
            for (pixel, expected) in resized.pixels.iter().zip(triangle(&line, width)) {
                assert_abs_diff_eq!(f64::from(*pixel), expected, epsilon = 1.0);
            }
        }
    }

    #[test]
    fn a_fine_chequerboard_shrinks_to_gray_and_not_to_black_or_white() {
        let pixels = (0..64 * 64).map(|i| if (i % 64 + i / 64) % 2 == 0 { 0 } else { 255 }).collect();
        let small = resize_picture(Picture { width: 64, height: 64, channels: 1, pixels }, 8, 8);
        assert!(small.pixels.iter().all(|pixel| (124..=131).contains(pixel)), "{:?}", small.pixels);
    }
}
