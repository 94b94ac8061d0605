#![expect(clippy::float_cmp, reason = "these results are exact")]

use super::*;
use crate::arrays::{assert_near, on_any_number_of_threads, random};

/// The window read row by row, as `PyTorch` documents it.
fn expected(
    x: &[f32],
    size: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
) -> Vec<(f32, u32)> {
    let firsts = |axis: usize| (0..=size[axis] + 2 * padding[axis] - kernel[axis]).step_by(stride[axis]);
    let mut results = Vec::new();
    for (top, left) in firsts(0).flat_map(|top| firsts(1).map(move |left| (top, left))) {
        let mut greatest: Option<(f32, u32)> = None;
        for row in top..top + kernel[0] {
            for column in left..left + kernel[1] {
                let inside = (padding[0]..padding[0] + size[0]).contains(&row)
                    && (padding[1]..padding[1] + size[1]).contains(&column);
                if !inside {
                    continue;
                }
                let place = (row - padding[0]) * size[1] + column - padding[1];
                if greatest.is_none_or(|(value, _)| x[place] > value || x[place].is_nan()) {
                    greatest = Some((x[place], u32::try_from(place).expect("a small plane")));
                }
            }
        }
        results.push(greatest.expect("a window meets the picture"));
    }
    results
}

#[test]
fn maxima_places_and_gradients_are_right_on_any_number_of_threads() {
    for (size, kernel, stride, padding) in [
        ([1, 1], [1; 2], [1; 2], [0; 2]),
        ([1, 1], [3; 2], [2; 2], [1; 2]),
        ([7, 5], [3; 2], [2; 2], [1; 2]),
        ([8, 33], [3; 2], [2; 2], [1; 2]),
        ([112, 112], [3; 2], [2; 2], [1; 2]),
        ([9, 9], [2; 2], [2; 2], [0; 2]),
        ([10, 7], [3; 2], [1; 2], [1; 2]),
        ([11, 13], [5; 2], [3; 2], [2; 2]),
        ([6, 6], [2; 2], [4; 2], [0; 2]),
        ([9, 30], [3, 1], [2, 1], [1, 0]),
        ([8, 5], [1, 3], [1, 2], [0, 1]),
        ([10, 33], [2, 5], [3, 2], [1, 2]),
    ] {
        let planes = 5;
        let plane = size[0] * size[1];
        // Few distinct values, so that there are ties, and special values.
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

#[test]
#[should_panic(expected = "a window that fits into the padded picture")]
fn a_window_that_is_larger_than_the_padded_picture_is_refused() {
    let _ = maximum_size([4, 1], [3, 4], [1, 1], [0, 1]);
}
