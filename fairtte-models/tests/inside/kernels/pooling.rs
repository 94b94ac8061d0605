#![expect(clippy::float_cmp, reason = "these results are exact")]

use super::*;
use crate::kernels::arrays::{assert_near, on_any_number_of_threads, random};

/// The window read row by row, as `PyTorch` documents it.
fn expected(x: &[f32], [height, width]: [usize; 2], kernel: usize, stride: usize, padding: usize) -> Vec<(f32, u32)> {
    let mut results = Vec::new();
    for top in (0..=height + 2 * padding - kernel).step_by(stride) {
        for left in (0..=width + 2 * padding - kernel).step_by(stride) {
            let mut greatest: Option<(f32, u32)> = None;
            for row in top..top + kernel {
                for column in left..left + kernel {
                    let inside =
                        (padding..padding + height).contains(&row) && (padding..padding + width).contains(&column);
                    if !inside {
                        continue;
                    }
                    let place = (row - padding) * width + column - padding;
                    if greatest.is_none_or(|(value, _)| x[place] > value || x[place].is_nan()) {
                        greatest = Some((x[place], u32::try_from(place).expect("a small plane")));
                    }
                }
            }
            results.push(greatest.expect("a window meets the picture"));
        }
    }
    results
}

#[test]
fn maxima_places_and_gradients_are_right_on_any_number_of_threads() {
    for (size, kernel, stride, padding) in [
        ([1, 1], 1, 1, 0),
        ([1, 1], 3, 2, 1),
        ([7, 5], 3, 2, 1),
        ([8, 33], 3, 2, 1),
        ([112, 112], 3, 2, 1),
        ([9, 9], 2, 2, 0),
        ([10, 7], 3, 1, 1),
        ([11, 13], 5, 3, 2),
        ([6, 6], 2, 4, 0),
    ] {
        let planes = 5;
        let plane = size[0] * size[1];
        // Few different numbers, so that there are ties, and special ones.
        let mut x: Vec<f32> = random(1, planes * plane).iter().map(|x| (x * 4.0).round()).collect();
        x[0] = f32::NAN;
        x[plane..2 * plane].fill(f32::NEG_INFINITY);
        x[3 * plane - 1] = f32::INFINITY;
        let output_plane: usize = maximum_size(size, kernel, stride, padding).iter().product();
        let dy = random(2, planes * output_plane);
        let mut indices = vec![0; dy.len()];
        let mut y = vec![0.0; dy.len()];
        maximum(&x, planes, size, kernel, stride, padding, &mut y, Some(&mut indices));
        let results = on_any_number_of_threads(|| {
            let (mut y, mut dx, mut indices) = (vec![0.0; dy.len()], vec![f32::NAN; x.len()], vec![0; dy.len()]);
            maximum(&x, planes, size, kernel, stride, padding, &mut y, None);
            maximum(&x, planes, size, kernel, stride, padding, &mut y, Some(&mut indices));
            maximum_gradient(&dy, &indices, plane, output_plane, &mut dx);
            vec![y, dx]
        });
        let mut dx = vec![0.0f64; x.len()];
        for (index, x) in x.chunks_exact(plane).enumerate() {
            for (place, (value, source)) in expected(x, size, kernel, stride, padding).into_iter().enumerate() {
                let at = index * output_plane + place;
                let same = y[at] == value || (y[at].is_nan() && value.is_nan());
                assert!(same, "{size:?}: {} at {place}, expected {value}", y[at]);
                assert_eq!(indices[at], source, "{size:?} at {place}");
                dx[index * plane + source as usize] += f64::from(dy[at]);
            }
        }
        assert_near("gradient of maxima", &results[1], &dx, 1e-6);
    }
}

#[test]
fn means_and_their_gradients_are_right_on_any_number_of_threads() {
    for (planes, plane) in [(1, 1), (3, 7), (5, 16), (300, 49), (2, 100_003)] {
        let (x, dy) = (random(1, planes * plane), random(2, planes));
        let results = on_any_number_of_threads(|| {
            let (mut y, mut dx) = (vec![f32::NAN; planes], vec![f32::NAN; x.len()]);
            average(&x, plane, &mut y);
            average_gradient(&dy, plane, &mut dx);
            vec![y, dx]
        });
        let means: Vec<f64> =
            x.chunks_exact(plane).map(|x| x.iter().map(|&x| f64::from(x)).sum::<f64>() / plane as f64).collect();
        assert_near("means", &results[0], &means, 1e-5);
        let spread: Vec<f64> = (0..x.len()).map(|place| f64::from(dy[place / plane]) / plane as f64).collect();
        assert_near("gradient of means", &results[1], &spread, 1e-6);
    }
}
