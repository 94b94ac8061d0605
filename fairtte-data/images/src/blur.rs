//! Gaussian blur of pictures and volumes.
//!
//! One pass per axis with the weights `exp(-x^2 / (2 sigma^2))`, divided by their sum, for whole x from -r to r with
//! `r = floor(4 sigma + 0.5)`. Beyond an edge the picture is continued by its mirror image, the edge pixel included
//! (`d c b a | a b c d | d c b a`), so that a constant picture is unchanged and the mean is kept.
//! These are the definitions of `scipy.ndimage.gaussian_filter(image, sigma)` with its defaults (`mode="reflect"`,
//! `truncate=4.0`), which the recorded values of the tests come from (scipy 1.17.1). Channels are not mixed.

use crate::{InvalidSetting, Settings};

/// Widest blur that a setting may ask for, in pixels; wider ones remove all structure of a stored picture.
pub(crate) const WIDEST: f64 = 100.0;

/// A Gaussian of one width for every axis.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianBlur {
    sigma: f64,
    /// Weights at distance 0, 1, .., radius.
    weights: Vec<f32>,
}

impl GaussianBlur {
    /// The blur with the standard deviation `sigma`, in pixels (voxels).
    ///
    /// # Errors
    /// [`InvalidSetting`] unless `sigma` is in (0, 100].
    pub fn new(sigma: f64) -> Result<Self, InvalidSetting> {
        if !(sigma > 0.0 && sigma <= WIDEST) {
            return Err(InvalidSetting::new(Settings::Blur, "blur", sigma, "a number of pixels in (0, 100]"));
        }
        Ok(Self::of(sigma))
    }

    /// The blur of a `sigma` that was checked to be in (0, 100].
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "radius <= 400, weights in [0, 1]")]
    pub(crate) fn of(sigma: f64) -> Self {
        let radius = (4.0 * sigma + 0.5).floor() as usize;
        let bell = |x: usize| {
            let z = x as f64 / sigma;
            (-0.5 * z * z).exp()
        };
        let total = bell(0) + 2.0 * (1..=radius).map(bell).sum::<f64>();
        Self { sigma, weights: (0..=radius).map(|x| (bell(x) / total) as f32).collect() }
    }

    /// The standard deviation in pixels.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// The radius: number of pixels on each side that contribute.
    pub fn radius(&self) -> usize {
        self.weights.len() - 1
    }

    /// Blurs `image` in place; `shape` is `[channels, height, width]` or `[channels, depth, height, width]`.
    ///
    /// Cost: pixels x axes x (2 radius + 1) multiplications.
    ///
    /// # Panics
    /// If the length of `image` is not the product of `shape`.
    pub fn apply(&self, image: &mut [f32], shape: &[usize]) {
        assert_eq!(image.len(), shape.iter().product::<usize>(), "one intensity per pixel and channel");
        let mut blurred = vec![0.0; image.len()];
        let mut padded = Vec::new();
        for (axis, &n) in shape.iter().enumerate().skip(1).filter(|(_, n)| **n > 1) {
            let inner: usize = shape[axis + 1..].iter().product();
            for (line, out) in image.chunks_exact(n * inner).zip(blurred.chunks_exact_mut(n * inner)) {
                if inner == 1 {
                    self.along_line(line, out, &mut padded);
                } else {
                    self.across_rows(line, out, inner);
                }
            }
            image.copy_from_slice(&blurred);
        }
    }

    /// Blurs one line of neighbouring pixels; `padded` is memory for the line and its mirror images.
    fn along_line(&self, line: &[f32], out: &mut [f32], padded: &mut Vec<f32>) {
        let (radius, n) = (self.radius(), line.len());
        padded.clear();
        padded.extend((0..radius).map(|i| line[mirrored(i, radius, n)]));
        padded.extend_from_slice(line);
        padded.extend((n + radius..n + 2 * radius).map(|i| line[mirrored(i, radius, n)]));
        for (blurred, pixel) in out.iter_mut().zip(line) {
            *blurred = self.weights[0] * pixel;
        }
        for (distance, weight) in self.weights.iter().enumerate().skip(1) {
            let (before, after) = (&padded[radius - distance..], &padded[radius + distance..]);
            for ((blurred, before), after) in out.iter_mut().zip(before).zip(after) {
                *blurred += weight * (before + after);
            }
        }
    }

    /// Blurs across rows of `inner` pixels each: the pixels of a row are not mixed.
    fn across_rows(&self, rows: &[f32], out: &mut [f32], inner: usize) {
        let n = rows.len() / inner;
        let row = |i: usize| &rows[i * inner..(i + 1) * inner];
        let radius = self.radius();
        for (i, out) in out.chunks_exact_mut(inner).enumerate() {
            for (blurred, pixel) in out.iter_mut().zip(row(i)) {
                *blurred = self.weights[0] * pixel;
            }
            for (distance, weight) in self.weights.iter().enumerate().skip(1) {
                let before = row(mirrored(i + radius - distance, radius, n));
                let after = row(mirrored(i + radius + distance, radius, n));
                for ((blurred, before), after) in out.iter_mut().zip(before).zip(after) {
                    *blurred += weight * (before + after);
                }
            }
        }
    }
}

/// The index in a line of `n` pixels of the position `i - offset`, mirrored at the edges as often as needed.
fn mirrored(i: usize, offset: usize, n: usize) -> usize {
    let period = 2 * n;
    // Whole periods are added first, so that the difference is never negative.
    let place = (i + period * offset.div_ceil(period) - offset) % period;
    if place < n { place } else { period - 1 - place }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    /// Value `i` is `((37 i + 11) mod 101) / 100`, as in the script that recorded the values.
    fn picture(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((37 * i + 11) % 101) as f32 / 100.0).collect()
    }

    /// Shape, sigma, the first 12 values and the last 3 of `scipy.ndimage.gaussian_filter(picture, sigma)` on float32.
    #[test]
    fn blurred_values_are_those_of_scipy_1_17_1() {
        #[expect(clippy::type_complexity, reason = "a list of recorded cases")]
        let cases: [(&[usize], f64, [f32; 12], [f32; 3]); 4] = [
            (
                &[5, 6],
                1.0,
                [
                    0.326_072_2,
                    0.441_612_2,
                    0.485_832_27,
                    0.486_797_7,
                    0.570_518_7,
                    0.646_635_95,
                    0.417_746_84,
                    0.462_947_16,
                    0.456_215_62,
                    0.492_403_8,
                    0.553_483_7,
                    0.533_537_57,
                ],
                [0.384_602_93, 0.432_578, 0.541_486_26],
            ),
            (
                &[5, 6],
                0.4,
                [
                    0.133_026_66,
                    0.486_429_63,
                    0.779_782,
                    0.257_226_62,
                    0.586_433_7,
                    0.903_982,
                    0.324_944_44,
                    0.640_851_44,
                    0.118_294_95,
                    0.411_648_3,
                    0.740_849_14,
                    0.204_998_8,
                ],
                [0.070_218_146, 0.363_573_55, 0.716_973_5],
            ),
            (
                &[3, 4],
                3.0,
                [
                    0.458_887_07,
                    0.460_666_66,
                    0.463_174_13,
                    0.464_940_37,
                    0.458_638_94,
                    0.460_418_25,
                    0.462_925_82,
                    0.464_691_97,
                    0.458_384_13,
                    0.460_163_7,
                    0.462_671_22,
                    0.464_437_45,
                ],
                [0.460_163_7, 0.462_671_22, 0.464_437_45],
            ),
            (
                &[3, 4, 5],
                0.8,
                [
                    0.402_100_15,
                    0.493_990_72,
                    0.513_510_47,
                    0.442_641_32,
                    0.522_455_16,
                    0.545_252_2,
                    0.489_896_86,
                    0.471_410_9,
                    0.417_963_62,
                    0.445_931_8,
                    0.592_776_95,
                    0.508_048_2,
                ],
                [0.609_869_4, 0.517_726_84, 0.585_015_65],
            ),
        ];
        for (size, sigma, first, last) in cases {
            let n: usize = size.iter().product();
            let mut image = picture(n);
            let shape: Vec<usize> = std::iter::once(1).chain(size.iter().copied()).collect();
            GaussianBlur::new(sigma).unwrap().apply(&mut image, &shape);
            let found = image[..12].iter().chain(&image[n - 3..]);
            for (found, expected) in found.zip(first.iter().chain(&last)) {
                assert_abs_diff_eq!(found, expected, epsilon = 3e-7);
            }
        }
    }

    #[test]
    fn channels_do_not_mix() {
        let blur = GaussianBlur::new(1.3).unwrap();
        let (mut first, mut both) = (picture(30), picture(60));
        let mut second = both[30..].to_vec();
        blur.apply(&mut both, &[2, 5, 6]);
        blur.apply(&mut first, &[1, 5, 6]);
        blur.apply(&mut second, &[1, 5, 6]);
        assert_eq!(both[..30], first);
        assert_eq!(both[30..], second);
    }

    #[test]
    fn a_blur_much_wider_than_the_picture_leaves_its_mean() {
        let mut image = picture(12);
        let mean = image.iter().sum::<f32>() / 12.0;
        let blur = GaussianBlur::new(40.0).unwrap();
        assert_eq!(blur.radius(), 160);
        blur.apply(&mut image, &[1, 3, 4]);
        assert!(image.iter().all(|value| (value - mean).abs() < 1e-5), "{image:?}");
    }

    #[test]
    fn a_constant_picture_and_a_picture_of_one_pixel_stay_what_they_are() {
        let blur = GaussianBlur::new(2.0).unwrap();
        let mut image = vec![0.25; 7 * 9];
        blur.apply(&mut image, &[1, 7, 9]);
        assert!(image.iter().all(|value| (value - 0.25).abs() < 1e-6));
        let mut pixel = [0.75];
        blur.apply(&mut pixel, &[1, 1, 1]);
        assert_abs_diff_eq!(pixel[0], 0.75, epsilon = 0.0);
    }

    #[test]
    fn mirrors_stand_at_both_edges() {
        let places: Vec<usize> = (0..12).map(|i| mirrored(i, 4, 3)).collect();
        assert_eq!(places, [2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1]);
        assert_eq!((0..5).map(|i| mirrored(i, 2, 1)).collect::<Vec<_>>(), [0; 5]);
    }

    #[test]
    fn a_width_out_of_range_is_refused() {
        for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY, 100.5] {
            let message = GaussianBlur::new(sigma).unwrap_err().to_string();
            assert!(message.starts_with("blur is") && message.ends_with("(0, 100]"), "{message}");
        }
    }
}
