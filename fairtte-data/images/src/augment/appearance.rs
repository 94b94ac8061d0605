//! Changes of the intensities of an augmented image: blur, brightness, contrast, cutout.
//!
//! Blur is [`GaussianBlur`] (scipy's `gaussian_filter`, `mode="reflect"`) in the size of the model. Brightness and
//! contrast are torchvision's `adjust_brightness` and `adjust_contrast` with factors drawn uniformly, always in this order:
//! `f x` and `f x + (1 - f) mean`, each cut to \[0, 1\]; `mean` is that of the whole image, of colour pictures that of
//! `0.2989 red + 0.587 green + 0.114 blue`. Cutout (`DeVries` & Taylor 2017, arXiv 1708.04552) sets squares, in volumes
//! cuboids, of the scaled image to 0, which is the training mean with `intensity = "standardise"` and the mean of the image
//! with `per-image`; their centres are uniform over all pixels, so that a hole near an edge is partly outside, as in the
//! paper.

use std::ops::Range;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::{Augmentation, Draw, extent, offset};
use crate::GaussianBlur;

/// Shares of red, green and blue in the brightness of a pixel, torchvision's `rgb_to_grayscale`.
const LUMA: [f64; 3] = [0.2989, 0.587, 0.114];

impl Augmentation {
    /// Blurs `image`, `[channels, ..]` in the size of the model with intensities in \[0, 1\], and changes its brightness and
    /// contrast.
    pub(crate) fn recolour(&self, draw: &Draw, image: &mut [f32]) {
        let n: usize = self.size.iter().product();
        let n_channels = image.len() / n;
        if let Some(sigma) = draw.blur {
            let shape: Vec<usize> = std::iter::once(n_channels).chain(self.size.iter().copied()).collect();
            GaussianBlur::of(sigma).apply(image, &shape);
        }
        if let Some(factor) = draw.brightness {
            blend(image, factor, 0.0);
        }
        if let Some(factor) = draw.contrast {
            let mean = |channel: &[f32]| channel.iter().copied().map(f64::from).sum::<f64>() / n as f64;
            let means: Vec<f64> = image.chunks_exact(n).map(mean).collect();
            let mean = if let [red, green, blue] = means[..] {
                LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue
            } else {
                means.iter().sum::<f64>() / n_channels as f64
            };
            blend(image, factor, mean);
        }
    }

    /// A hole of a `share` of every side around a random pixel, cut at the edges.
    pub(super) fn hole(&self, share: f64, rng: &mut ChaCha8Rng) -> [Range<usize>; 3] {
        let extent = extent(&self.size);
        std::array::from_fn(|axis| {
            // The depth of a picture is whole.
            if axis == 0 && self.size.len() == 2 {
                return 0..1;
            }
            let n = extent[axis];
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the side of an image")]
            let side = ((share * n as f64).round() as usize).max(1);
            let centre = offset(rng.random_range(0..n as u64));
            // Counted from one side before the image, so that no difference is negative.
            let begin = centre + n - side / 2;
            begin.saturating_sub(n)..(begin + side - n).min(n)
        })
    }

    /// Sets the holes of `image`, `[channels, ..]` as scaled for the model, to 0.
    pub(crate) fn cut(&self, draw: &Draw, image: &mut [f32]) {
        let [depth, height, width] = extent(&self.size);
        for hole in &draw.holes {
            for channel in image.chunks_exact_mut(depth * height * width) {
                for slice in hole[0].clone() {
                    for row in hole[1].clone() {
                        let begin = (slice * height + row) * width;
                        channel[begin + hole[2].start..begin + hole[2].end].fill(0.0);
                    }
                }
            }
        }
    }
}

/// `factor x + (1 - factor) towards`, cut to \[0, 1\].
#[expect(clippy::cast_possible_truncation, reason = "intensities are f32")]
fn blend(image: &mut [f32], factor: f64, towards: f64) {
    let (factor, constant) = (factor as f32, ((1.0 - factor) * towards) as f32);
    for value in image {
        *value = (*value * factor + constant).clamp(0.0, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::super::{AugmentationConfig, BlurConfig, CutoutConfig};
    use super::*;
    use crate::ImageConfig;
    use fairtte_metrics::seeds::stream;

    fn images(size: &[usize], config: &AugmentationConfig) -> Augmentation {
        let image = ImageConfig { size: size.to_vec(), ..ImageConfig::default() };
        Augmentation::new(config, &image, "generic").expect("valid settings")
    }

    fn recoloured(size: &[usize], change: impl Fn(&mut Draw), image: &[f32]) -> Vec<f32> {
        let augmentation = images(size, &AugmentationConfig::default());
        let mut draw = augmentation.centre();
        change(&mut draw);
        let mut image = image.to_vec();
        augmentation.recolour(&draw, &mut image);
        image
    }

    fn close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert_abs_diff_eq!(*found, *expected, epsilon = 1e-6);
        }
    }

    /// On paper. Brightness of red, green and blue: 0.2989 * 0.3 + 0.587 * 0.5 + 0.114 * 0.9 = 0.48577.
    #[test]
    fn brightness_and_contrast_are_those_worked_by_hand() {
        let colour = [0.2, 0.4, 0.5, 0.5, 0.8, 1.0];
        close(&recoloured(&[1, 2], |draw| draw.brightness = Some(1.5), &colour), &[0.3, 0.6, 0.75, 0.75, 1.0, 1.0]);
        let halved = [0.342_885, 0.442_885, 0.492_885, 0.492_885, 0.642_885, 0.742_885];
        close(&recoloured(&[1, 2], |draw| draw.contrast = Some(0.5), &colour), &halved);
        // One channel: mean 0.4; 0.4 + 2 (x - 0.4), of which -0.2 and 1.2 are cut.
        let grey = [0.1, 0.3, 0.8, 0.4];
        close(&recoloured(&[2, 2], |draw| draw.contrast = Some(2.0), &grey), &[0.0, 0.2, 1.0, 0.4]);
        // First 0.5 x, then twice the distance from the new mean 0.2.
        let both = |draw: &mut Draw| (draw.brightness, draw.contrast) = (Some(0.5), Some(2.0));
        close(&recoloured(&[2, 2], both, &grey), &[0.0, 0.1, 0.6, 0.2]);
    }

    #[test]
    fn a_constant_image_stays_constant_under_blur_and_contrast() {
        let constant = [0.3_f32; 60];
        for size in [vec![5, 6], vec![2, 5, 6]] {
            let found = recoloured(&size, |draw| (draw.blur, draw.contrast) = (Some(1.5), Some(1.7)), &constant);
            close(&found, &constant);
        }
    }

    /// Its values are recorded from scipy in `blur.rs`; here the shape: two channels are not mixed, slices are.
    #[test]
    fn a_blur_is_that_of_the_shift_in_the_size_of_the_model() {
        let image: Vec<f32> = (0..60).map(|i| ((37 * i + 11) % 101) as f32 / 100.0).collect();
        for (size, shape) in [(vec![5, 6], vec![2, 5, 6]), (vec![2, 5, 6], vec![1, 2, 5, 6])] {
            let mut expected = image.clone();
            GaussianBlur::of(0.8).apply(&mut expected, &shape);
            assert_eq!(recoloured(&size, |draw| draw.blur = Some(0.8), &image), expected);
        }
    }

    #[test]
    fn a_hole_has_its_area_inside_and_less_at_the_edges() {
        let cutout = Some(CutoutConfig { holes: 1, size: 0.25 });
        let pictures = images(&[16, 24], &AugmentationConfig { cutout, ..Default::default() });
        let (mut whole, mut corner) = (0, 0);
        for epoch in 0..300 {
            let draw = pictures.draw(&|name| stream(1, name, &[epoch]));
            let mut image = vec![1.0; 3 * 16 * 24];
            pictures.cut(&draw, &mut image);
            let area = image.iter().filter(|value| **value == 0.0).count();
            let [_, rows, columns] = &draw.holes[0];
            assert_eq!(area, 3 * rows.len() * columns.len());
            assert!(rows.end <= 16 && columns.end <= 24);
            // 4 x 6 pixels around the centre, cut where it is nearer to an edge than 2 or 3.
            let is_inside = rows.start > 0 && rows.end < 16 && columns.start > 0 && columns.end < 24;
            assert!((2..=4).contains(&rows.len()) && (3..=6).contains(&columns.len()), "{rows:?} {columns:?}");
            if is_inside {
                assert_eq!(area, 3 * 4 * 6);
                whole += 1;
            }
            corner += usize::from(rows.start == 0 && columns.start == 0);
        }
        // Centres with a margin: 11 of 16 rows and 17 of 24 columns, a share of 0.487; four standard deviations are 0.115.
        assert!((112..=181).contains(&whole), "{whole}");
        assert!(corner > 0);
    }

    #[test]
    fn holes_of_a_volume_are_cuboids_and_several_are_independent() {
        let cutout = Some(CutoutConfig { holes: 2, size: 0.5 });
        let volumes = images(&[4, 8, 8], &AugmentationConfig { cutout, ..Default::default() });
        let mut rng = stream(2, "holes", &[]);
        let holes: Vec<_> = (0..200).map(|_| volumes.hole(0.5, &mut rng)).collect();
        assert!(holes.iter().all(|[slices, rows, columns]| slices.len() <= 2 && rows.len() <= 4 && columns.len() <= 4));
        assert!(holes.iter().any(|hole| hole.iter().map(Range::len).product::<usize>() == 2 * 4 * 4));
        let draw = volumes.draw(&|name| stream(1, name, &[2]));
        assert!(draw.holes.len() == 2 && draw.holes[0] != draw.holes[1]);
        let mut volume = vec![1.0; 256];
        volumes.cut(&Draw { holes: vec![[1..3, 2..6, 0..4]], ..draw }, &mut volume);
        let cut: Vec<usize> = (0..256).filter(|at| volume[*at] == 0.0).collect();
        let expected: Vec<usize> =
            (1..3).flat_map(|d| (2..6).flat_map(move |h| (0..4).map(move |w| (d * 8 + h) * 8 + w))).collect();
        assert_eq!(cut, expected);
    }

    #[test]
    fn drawn_factors_fill_their_ranges() {
        let blur = Some(BlurConfig { probability: 0.25, sigma: [0.5, 2.0] });
        let config = AugmentationConfig { brightness: 0.2, contrast: 0.4, blur, ..Default::default() };
        let pictures = images(&[8, 8], &config);
        let draws: Vec<Draw> = (0..400).map(|epoch| pictures.draw(&|name| stream(3, name, &[epoch]))).collect();
        let range = |of: &dyn Fn(&Draw) -> Option<f64>| {
            let values: Vec<f64> = draws.iter().filter_map(of).collect();
            let (min, max) = values.iter().fold((f64::MAX, f64::MIN), |(min, max), x| (min.min(*x), max.max(*x)));
            (values.len(), min, max)
        };
        let within = |(n, min, max): (usize, f64, f64), low: f64, high: f64| {
            let margin = 0.05 * (high - low);
            assert!(min >= low && min < low + margin && max <= high && max > high - margin, "{min} {max}");
            n
        };
        assert_eq!(within(range(&|draw| draw.brightness), 0.8, 1.2), 400);
        assert_eq!(within(range(&|draw| draw.contrast), 0.6, 1.4), 400);
        // 400 draws of probability 1/4: mean 100, four standard deviations are 35.
        let blurred = within(range(&|draw| draw.blur), 0.5, 2.0);
        assert!((65..=135).contains(&blurred), "{blurred}");
    }
}
