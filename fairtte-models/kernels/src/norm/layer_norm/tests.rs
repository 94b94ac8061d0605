#![expect(clippy::cast_possible_truncation, reason = "expected values are computed in double precision")]

use super::*;
use crate::arrays::{assert_close, on_any_number_of_threads, random, wide};

const EPSILON: f64 = 1e-6;
/// Rows and width.
const SIZES: [[usize; 2]; 9] = [[1, 1], [3, 2], [5, 7], [2, 16], [40, 64], [1, 5000], [67, 33], [300, 100], [0, 4]];

/// Each row normed, with its mean and inverse deviation, in double precision.
fn plain(x: &[f64], width: usize, gamma: &[f64], beta: &[f64]) -> [Vec<f64>; 3] {
    let [mut y, mut means, mut inverses] = [vec![], vec![], vec![]];
    for row in x.chunks(width) {
        let mean = row.iter().sum::<f64>() / width as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
        let inverse = 1.0 / (variance + EPSILON).sqrt();
        y.extend((0..width).map(|at| (row[at] - mean) * inverse * gamma[at] + beta[at]));
        means.push(mean);
        inverses.push(inverse);
    }
    [y, means, inverses]
}

/// The results of the kernels for an input and the gradient of the output: `y`, `dx`, `d_gamma` and `d_beta`.
fn run(x: &[f32], width: usize, gamma: &[f32], beta: &[f32], dy: &[f32]) -> [Vec<f32>; 4] {
    let rows = x.len() / width;
    let mut y = vec![f32::NAN; x.len()];
    let [mut mean, mut inverse] = [vec![f32::NAN; rows], vec![f32::NAN; rows]];
    forward(x, width, gamma, beta, EPSILON, &mut y, Some([&mut mean, &mut inverse]));
    let mut dx = dy.to_vec();
    let [mut d_gamma, mut d_beta] = [vec![f32::NAN; width], vec![f32::NAN; width]];
    gradients(x, width, gamma, &mean, &inverse, &mut dx, &mut d_gamma, &mut d_beta);
    [y, dx, d_gamma, d_beta]
}

#[test]
fn rows_are_normed_scaled_and_shifted() {
    for [rows, width] in SIZES {
        let (x, gamma, beta) = (random(1, rows * width), random(2, width), random(3, width));
        let [expected, means, inverses] = plain(&wide(&x), width, &wide(&gamma), &wide(&beta));
        let mut y = vec![f32::NAN; rows * width];
        let [mut mean, mut inverse] = [vec![f32::NAN; rows], vec![f32::NAN; rows]];
        forward(&x, width, &gamma, &beta, EPSILON, &mut y, Some([&mut mean, &mut inverse]));
        assert_close(&mean, &means, 2e-7, "mean");
        assert_close(&inverse, &inverses, 2e-6, "inverse deviation");
        assert_close(&y, &expected, 2e-6, &format!("{rows} rows of {width}"));
        let mut alone = vec![f32::NAN; rows * width];
        forward(&x, width, &gamma, &beta, EPSILON, &mut alone, None);
        assert_eq!(alone, y);
    }
}

#[test]
fn a_large_mean_costs_no_digits() {
    let width = 770;
    let x: Vec<f32> = random(1, 2 * width).iter().map(|x| (x * 64.0).round() + 1e6).collect();
    let (gamma, beta) = (vec![1.0; width], vec![0.0; width]);
    let mut y = vec![0.0; x.len()];
    forward(&x, width, &gamma, &beta, EPSILON, &mut y, None);
    let [expected, ..] = plain(&wide(&x), width, &wide(&gamma), &wide(&beta));
    assert_close(&y, &expected, 2e-3, "y"); // the mean itself is rounded to 1/16 of a unit
}

/// The slope of `sum(dy y)` along one input, from the formula in double precision.
fn slope(inputs: &[Vec<f64>; 3], width: usize, dy: &[f32], which: usize, at: usize) -> f64 {
    let step = 1e-5;
    let value = |by: f64| {
        let mut moved = inputs.clone();
        moved[which][at] += by;
        let [x, gamma, beta] = &moved;
        plain(x, width, gamma, beta)[0].iter().zip(dy).map(|(y, &dy)| y * f64::from(dy)).sum::<f64>()
    };
    (value(step) - value(-step)) / (2.0 * step)
}

#[test]
fn gradients_are_slopes() {
    for [rows, width] in [[3, 2], [5, 7], [2, 16], [4, 35], [70, 6]] {
        let (x, gamma, beta) = (random(1, rows * width), random(2, width), random(3, width));
        let dy = random(4, rows * width);
        let [_, dx, d_gamma, d_beta] = run(&x, width, &gamma, &beta, &dy);
        let inputs = [wide(&x), wide(&gamma), wide(&beta)];
        for (which, (found, tolerance)) in [(dx, 1e-4), (d_gamma, 1e-5), (d_beta, 1e-5)].into_iter().enumerate() {
            let expected: Vec<f64> = (0..found.len()).map(|at| slope(&inputs, width, &dy, which, at)).collect();
            let large = expected.iter().fold(1.0_f64, |large, x| large.max(x.abs()));
            let scaled: Vec<f32> = found.iter().map(|x| x / large as f32).collect();
            let expected: Vec<f64> = expected.iter().map(|x| x / large).collect();
            assert_close(&scaled, &expected, tolerance, &format!("input {which} of {rows} rows of {width}"));
        }
    }
}

#[test]
fn gradients_are_those_of_the_formula_in_double_precision() {
    for [rows, width] in SIZES {
        let (x, gamma, dy) = (random(1, rows * width), random(2, width), random(4, rows * width));
        let [_, dx, d_gamma, d_beta] = run(&x, width, &gamma, &random(3, width), &dy);
        let [normed, _, inverses] = plain(&wide(&x), width, &vec![1.0; width], &vec![0.0; width]);
        let [mut of_gamma, mut of_beta] = [vec![0.0; width], vec![0.0; width]];
        for (row, &inverse) in inverses.iter().enumerate() {
            let range = row * width..(row + 1) * width;
            let (n, dy) = (&normed[range.clone()], wide(&dy[range.clone()]));
            let g: Vec<f64> = dy.iter().zip(&gamma).map(|(dy, &gamma)| dy * f64::from(gamma)).collect();
            let mean_of_g = g.iter().sum::<f64>() / width as f64;
            let mean_of_product = g.iter().zip(n).map(|(g, n)| g * n).sum::<f64>() / width as f64;
            let expected: Vec<f64> =
                (0..width).map(|at| (g[at] - mean_of_g - n[at] * mean_of_product) * inverse).collect();
            // A row of one or two numbers has a deviation that may be small, and differences that cancel.
            assert_close(&dx[range], &expected, 1e-6 * inverse.max(5.0), &format!("dx of {rows} rows of {width}"));
            for at in 0..width {
                of_gamma[at] += dy[at] * n[at];
                of_beta[at] += dy[at];
            }
        }
        assert_close(&d_gamma, &of_gamma, 1e-5, "d_gamma");
        assert_close(&d_beta, &of_beta, 1e-5, "d_beta");
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    for [rows, width] in [[1000, 70], [3, 5000]] {
        let (x, gamma, beta) = (random(1, rows * width), random(2, width), random(3, width));
        let dy = random(4, rows * width);
        on_any_number_of_threads(|| run(&x, width, &gamma, &beta, &dy));
    }
}

#[test]
fn a_constant_row_gives_the_shift_and_no_number_stays_in_its_row() {
    let width = 21;
    let mut x = random(1, 4 * width);
    x[width..2 * width].fill(3.5);
    x[2 * width + 20] = f32::NAN;
    x[3 * width] = f32::INFINITY;
    let (gamma, beta) = (random(2, width), random(3, width));
    let [y, dx, d_gamma, d_beta] = run(&x, width, &gamma, &beta, &random(4, 4 * width));
    assert_eq!(y[width..2 * width], beta);
    for (at, (y, dx)) in y.iter().zip(&dx).enumerate() {
        assert_eq!(y.is_nan(), at >= 2 * width, "y at {at}");
        assert_eq!(dx.is_nan(), at >= 2 * width, "dx at {at}");
    }
    assert!(d_gamma.iter().all(|value| value.is_nan()));
    assert!(d_beta.iter().all(|value| value.is_finite()));
}

#[test]
fn a_constant_row_gives_beta_whatever_its_value() {
    for width in [7, 64, 768] {
        for value in [300.7_f32, 4097.3, 10_000.1, -1e6] {
            let (gamma, beta, mut y) = (vec![1.0; width], vec![0.25; width], vec![f32::NAN; width]);
            forward(&vec![value; width], width, &gamma, &beta, 1e-6, &mut y, None);
            assert!(y.iter().all(|&y| (y - 0.25).abs() < 1e-6), "{width} times {value}: {}", y[0]);
        }
    }
}

/// `PyTorch` 2.9.0 squares in single precision too: it is precise on these rows, but not on rows of 1e19 (zeros), of
/// 1e20 (NaN) and of 1e-25 (infinity).
#[test]
fn great_and_tiny_deviations_keep_the_digits_that_they_keep_in_pytorch() {
    let width = 50;
    for (size, tolerance) in [(1e17, 1e-6), (1e-15, 1e-6), (1e-20, 4e-5)] {
        let x: Vec<f32> = random(1, width).iter().map(|x| x * size).collect();
        let x = wide(&x);
        let mean = x.iter().sum::<f64>() / width as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
        let expected: Vec<f64> = x.iter().map(|x| (x - mean) / variance.sqrt()).collect();
        let (gamma, beta, mut y) = (vec![1.0; width], vec![0.0; width], vec![f32::NAN; width]);
        let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        forward(&x, width, &gamma, &beta, 1e-60, &mut y, None);
        assert_close(&y, &expected, tolerance, &format!("numbers of {size:e}"));
    }
}

#[test]
fn millions_of_rows_are_summed_to_their_last_digits() {
    let (rows, width) = (2_500_003_usize, 2);
    let x: Vec<f32> = (0..rows).flat_map(|row| [row as f32 % 7.0, row as f32 % 7.0 + 3.0]).collect();
    let [_, _, d_gamma, d_beta] = run(&x, width, &[1.0; 2], &[0.0; 2], &vec![0.3; x.len()]);
    let expected = rows as f64 * f64::from(0.3_f32);
    assert_close(&d_beta, &[expected; 2], 1e-6, "d_beta");
    assert_close(&d_gamma, &[-expected, expected], 1e-6, "d_gamma"); // epsilon is 1e-6 of the variance
}
