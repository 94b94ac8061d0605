//! Elastic deformation (Simard, Steinkraus & Platt 2003, "Best practices for convolutional neural networks applied to
//! visual document analysis", section 2), for pictures and volumes.
//!
//! Every pixel and axis gets a number drawn uniformly from -1 to 1; the numbers of an axis are convolved with a Gaussian
//! of standard deviation `sigma` (`GaussianBlur`, mirrored at the edges) and multiplied by `alpha`: `u(x)`, in pixels. The
//! new image has at x the intensity of the old one at `x + u(x)`, clamped to the image, by linear interpolation. This is
//! `scipy.ndimage.map_coordinates(image, x + u, order=1, mode="nearest")`. All channels move alike. With a rotation the
//! rotated image is deformed, in the same interpolation; outside the stored image it is 0.
//!
//! Far from the edges the standard deviation of `u` is about `alpha / sqrt(3) * (2 sigma sqrt(pi))^(-k/2)` for k axes:
//! `0.163 alpha / sigma` in pictures, `0.0865 alpha / sigma^1.5` in volumes. Neighbouring displacements differ by about
//! `sd / (sqrt(2) sigma)` per pixel; from about 0.5 on the image folds over itself in places.
//!
//! Simard and others describe the field of pictures; the third axis is the same rule. Cost of a draw: pixels x axes^2 x
//! (8 sigma + 1) multiplications.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::resample::{Turn, neighbours};
use super::settings::ElasticConfig;
use crate::GaussianBlur;

/// A displacement in pixels for every stored pixel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Displacement {
    /// `[axes, ..]` in the order of the stored image: height and width, or depth, height and width.
    pub(super) field: Vec<f32>,
}

/// The two neighbours along every axis and the weights of the second.
type Cell = ([[usize; 2]; 3], [f32; 3]);

impl Displacement {
    /// A random field for images of size `stored`.
    pub(super) fn draw(config: ElasticConfig, stored: &[usize], rng: &mut ChaCha8Rng) -> Self {
        let shape: Vec<usize> = std::iter::once(stored.len()).chain(stored.iter().copied()).collect();
        let mut field: Vec<f32> = (0..shape.iter().product()).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect();
        GaussianBlur::of(config.sigma).apply(&mut field, &shape);
        #[expect(clippy::cast_possible_truncation, reason = "at most 10000")]
        let alpha = config.alpha as f32;
        for value in &mut field {
            *value *= alpha;
        }
        Self { field }
    }

    /// Fills `target`, `[channels, ..]` of the second size, from `source`, `[channels, ..]` of the first; `source_of` is the
    /// stored row and column of a row and column of the target, whose first slice is `first_slice`.
    pub(super) fn apply(
        &self,
        [from, to]: [[usize; 3]; 2],
        first_slice: usize,
        source_of: &dyn Fn(usize, usize) -> [usize; 2],
        turn: &Turn,
        source: &[f32],
        target: &mut [f32],
    ) {
        let (n_from, n_to) = (from.iter().product::<usize>(), to.iter().product::<usize>());
        let [depth, height, width] = to;
        let mut at = 0;
        for slice in 0..depth {
            for row in 0..height {
                for column in 0..width {
                    let [row, column] = source_of(row, column);
                    let cell = self.cell(from, [first_slice + slice, row, column], turn);
                    for (image, out) in source.chunks_exact(n_from).zip(target.chunks_exact_mut(n_to)) {
                        out[at] = cell.as_ref().map_or(0.0, |cell| value(image, from, cell));
                    }
                    at += 1;
                }
            }
        }
    }

    /// The cell of stored pixels that `place` shows; `None` outside the image.
    fn cell(&self, extent: [usize; 3], place: [usize; 3], turn: &Turn) -> Option<Cell> {
        let (deep, [row, column]) = self.moved(extent, place, turn);
        let (slices, deeper) = neighbours(deep, extent[0])?;
        let (rows, lower) = neighbours(row, extent[1])?;
        let (columns, further) = neighbours(column, extent[2])?;
        Some(([slices, rows, columns], [deeper, lower, further]))
    }

    /// The row and column of the stored picture that `place` shows.
    pub(super) fn place(&self, extent: [usize; 3], place: [usize; 3], turn: &Turn) -> [f64; 2] {
        self.moved(extent, place, turn).1
    }

    /// The slice, and the row and column, that `place` shows.
    fn moved(&self, extent: [usize; 3], place: [usize; 3], turn: &Turn) -> (f64, [f64; 2]) {
        let n: usize = extent.iter().product();
        let index = (place[0] * extent[1] + place[1]) * extent[2] + place[2];
        // A picture has no field along the depth.
        let without = 3 - self.field.len() / n;
        let moved: [f64; 3] = std::array::from_fn(|axis| {
            let by = if axis < without { 0.0 } else { self.field[(axis - without) * n + index] };
            (place[axis] as f64 + f64::from(by)).clamp(0.0, extent[axis] as f64 - 1.0)
        });
        (moved[0], turn.place(moved[1], moved[2]))
    }
}

/// The intensity in a cell, linear along every axis.
fn value(image: &[f32], [_, height, width]: [usize; 3], ([slices, rows, columns], weights): &Cell) -> f32 {
    let between = |[first, second]: [f32; 2], weight: f32| first + (second - first) * weight;
    let line = |slice: usize, row: usize| {
        let begin = (slice * height + row) * width;
        between(columns.map(|column| image[begin + column]), weights[2])
    };
    let plane = |slice: usize| between(rows.map(|row| line(slice, row)), weights[1]);
    if slices[0] == slices[1] { plane(slices[0]) } else { between(slices.map(plane), weights[0]) }
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::super::{Augmentation, AugmentationConfig, Draw};
    use super::*;
    use crate::ImageConfig;
    use fairtte_metrics::seeds::stream;

    fn images(size: &[usize], crop: Option<Vec<usize>>) -> Augmentation {
        let image = ImageConfig { size: size.to_vec(), ..ImageConfig::default() };
        Augmentation::new(&AugmentationConfig { crop, ..Default::default() }, &image, "generic")
            .expect("valid settings")
    }

    /// `(((29 i + 7 k) mod 31) - 15) / 6` for pixel i and axis k, as in the script that recorded the values.
    fn recorded_field(n: usize, axes: usize) -> Displacement {
        let value = |k: usize, i: usize| (((29 * i + 7 * k) % 31) as f32 - 15.0) / 6.0;
        Displacement { field: (0..axes).flat_map(|k| (0..n).map(move |i| value(k, i))).collect() }
    }

    fn deformed(size: &[usize], displacement: Displacement, angle: f64, source: &[f32]) -> Vec<f32> {
        let augmentation = images(size, None);
        let draw = Draw { angle, displacement: Some(displacement), ..augmentation.centre() };
        let mut target = vec![f32::NAN; source.len()];
        augmentation.apply(&draw, source, &mut target);
        target
    }

    fn picture() -> Vec<f32> {
        let value = |y: usize, x: usize| (7 * y + 3 * x + (x * y) % 4) as f32 / 64.0;
        (0..5).flat_map(|y| (0..6).map(move |x| value(y, x))).collect()
    }

    fn same(found: &[f32], expected: &[f32]) {
        for (found, expected) in found.iter().zip(expected) {
            assert_abs_diff_eq!(*found, *expected, epsilon = 3e-7);
        }
    }

    /// scipy 1.17.1, numpy 2.4.6, float64: `map_coordinates(image, x + u, order=1, prefilter=False)` with
    /// `mode="nearest"`; with a rotation of 10 degrees x + u is clipped to the image, then turned about its centre, and
    /// `mode="constant", cval=0`.
    #[test]
    fn deformed_images_are_those_of_scipy_for_the_same_field() {
        #[rustfmt::skip]
        let plain = [
            0.0, 0.255_208_3, 0.218_75, 0.230_902_8, 0.401_041_7, 0.359_375, 0.281_25, 0.294_270_8,
            0.296_875, 0.257_812_5, 0.25, 0.234_375, 0.072_916_7, 0.062_5, 0.054_687_5, 0.085_937_5,
            0.554_687_5, 0.585_937_5, 0.437_5, 0.437_5, 0.640_625, 0.661_458_3, 0.640_625, 0.619_791_7,
            0.473_958_3, 0.479_166_7, 0.477_430_6, 0.468_75, 0.453_125, 0.451_388_9,
        ];
        #[rustfmt::skip]
        let turned = [
            0.0, 0.0, 0.173_977_7, 0.199_205, 0.0, 0.0, 0.274_214_9, 0.302_997_8,
            0.309_827_9, 0.290_687_1, 0.308_665_2, 0.0, 0.041_348_2, 0.039_815_7, 0.0, 0.0,
            0.535_961_7, 0.0, 0.0, 0.0, 0.0, 0.0, 0.651_102_8, 0.629_838,
            0.435_779_6, 0.457_921_9, 0.466_914_8, 0.470_283, 0.470_667_9, 0.482_711_8,
        ];
        same(&deformed(&[5, 6], recorded_field(30, 2), 0.0, &picture()), &plain);
        same(&deformed(&[5, 6], recorded_field(30, 2), 10.0, &picture()), &turned);
        let volume: Vec<f32> = (0..90).map(|i| ((37 * i + 11) % 101) as f32 / 100.0).collect();
        let found = deformed(&[3, 5, 6], recorded_field(90, 3), 0.0, &volume);
        #[rustfmt::skip]
        same(&found[..12], &[
            0.11, 0.275, 0.521_666_7, 0.771_666_7, 0.511_666_7, 0.666_944_4, 0.67, 0.606_666_7,
            0.687_777_8, 0.306_666_7, 0.24, 0.173_333_3,
        ]);
        same(&found[84..], &[0.89, 0.67, 0.413_333_3, 0.663_333_3, 0.728_333_3, 0.731_666_7]);
    }

    #[test]
    fn without_displacement_nothing_moves_and_a_constant_image_stays_constant() {
        let random = |sigma, alpha, size: &[usize]| {
            Displacement::draw(ElasticConfig { alpha, sigma }, size, &mut stream(1, "elastic", &[]))
        };
        assert_eq!(deformed(&[5, 6], random(2.0, 0.0, &[5, 6]), 0.0, &picture()), picture());
        let strong = random(1.0, 30.0, &[4, 5, 6]);
        assert!(strong.field.iter().any(|by| by.abs() > 2.0));
        for value in deformed(&[4, 5, 6], strong, 0.0, &[0.3; 120]) {
            assert_abs_diff_eq!(value, 0.3, epsilon = 1e-7);
        }
    }

    /// A deformed window is the window of the deformed image, mirrored or not.
    #[test]
    fn crop_and_flip_come_after_the_deformation() {
        let whole = deformed(&[5, 6], recorded_field(30, 2), 5.0, &picture());
        let window = images(&[5, 6], Some(vec![2, 3]));
        let displacement = Some(recorded_field(30, 2));
        let draw = Draw { begin: vec![2, 1], angle: 5.0, displacement, mirror_width: true, ..window.centre() };
        let mut target = vec![f32::NAN; 6];
        window.apply(&draw, &picture(), &mut target);
        let expected = [(2, 3), (2, 2), (2, 1), (3, 3), (3, 2), (3, 1)].map(|(y, x)| whole[y * 6 + x]);
        assert_eq!(target, expected);
    }

    #[test]
    fn every_channel_moves_alike() {
        let plane = deformed(&[5, 6], recorded_field(30, 2), 0.0, &picture());
        assert_eq!(deformed(&[5, 6], recorded_field(30, 2), 0.0, &picture().repeat(3)), plane.repeat(3));
    }

    /// The closed form of the header, far from the edges.
    #[test]
    fn the_size_of_the_displacements_is_that_of_smoothed_uniform_noise() {
        for (size, axes) in [(vec![200, 200], 2_i32), (vec![40, 40, 40], 3)] {
            let (alpha, sigma) = (20.0, 2.0);
            let drawn = Displacement::draw(ElasticConfig { alpha, sigma }, &size, &mut stream(1, "elastic", &[]));
            let n: usize = size.iter().product();
            assert_eq!(drawn.field.len(), n * size.len());
            let inside = (0..n).filter(|at| {
                let mut rest = *at;
                size.iter().rev().all(|side| {
                    let place = rest % side;
                    rest /= side;
                    (8..side - 8).contains(&place)
                })
            });
            let values: Vec<f64> = inside
                .flat_map(|at| (0..size.len()).map(move |axis| axis * n + at))
                .map(|at| f64::from(drawn.field[at]))
                .collect();
            let deviation = (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt();
            let expected =
                alpha / 3.0_f64.sqrt() * (2.0 * sigma * std::f64::consts::PI.sqrt()).powf(-f64::from(axes) / 2.0);
            assert!((deviation / expected - 1.0).abs() < 0.05, "{deviation} {expected}");
        }
    }
}
