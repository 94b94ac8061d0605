#![expect(clippy::float_cmp, reason = "these results are exact")]

use super::*;
use crate::arrays::{assert_near, on_any_number_of_threads, random};

pub(super) fn shape(
    batch: usize,
    channels: usize,
    [height, width]: [usize; 2],
    side: usize,
    stride: usize,
    padding: usize,
) -> ConvShape {
    ConvShape {
        batch,
        inputs: channels,
        outputs: channels,
        size: [1, height, width],
        kernel: [1, side, side],
        stride: [1, stride, stride],
        padding: [0, padding, padding],
        groups: channels,
    }
}

const SHAPES: [(usize, usize, [usize; 2], usize, usize, usize); 32] = [
    (1, 2, [1, 1], 3, 1, 1),
    (1, 2, [1, 1], 5, 2, 2),
    (2, 3, [7, 7], 3, 1, 1),
    (2, 3, [7, 7], 5, 1, 2),
    (3, 2, [14, 14], 5, 2, 2),
    (1, 40, [14, 14], 5, 1, 2),
    (2, 3, [15, 13], 3, 2, 1),
    (2, 3, [13, 15], 5, 2, 2),
    (1, 2, [17, 33], 3, 1, 1),
    (1, 2, [33, 17], 3, 2, 1),
    (2, 2, [56, 57], 3, 2, 1),
    (1, 3, [28, 29], 5, 1, 2),
    (1, 2, [9, 9], 3, 1, 0),
    (1, 2, [9, 10], 3, 2, 0),
    (1, 2, [9, 8], 3, 1, 2),
    (1, 2, [9, 11], 5, 2, 4),
    (1, 2, [11, 9], 5, 1, 3),
    (1, 2, [12, 31], 5, 2, 1),
    (2, 2, [10, 12], 3, 3, 1),
    (1, 2, [13, 12], 5, 4, 2),
    (2, 2, [112, 112], 3, 1, 1),
    (70, 2, [3, 3], 3, 2, 1),
    (2, 37, [7, 7], 5, 1, 2),
    (3, 33, [4, 4], 5, 1, 2),
    (3, 20, [2, 2], 3, 1, 1),
    (2, 17, [8, 8], 3, 1, 1),
    (3, 35, [4, 4], 5, 2, 2),
    (2, 16, [16, 15], 5, 2, 2),
    (1, 300, [8, 7], 3, 2, 1),
    (2, 19, [1, 19], 5, 2, 3),
    (700, 3, [4, 4], 3, 1, 1),
    (1, 2, [300, 401], 5, 2, 2),
];

/// y, dx and dw by the definition, tap by tap, in double precision.
pub(super) fn expected(x: &[f32], w: &[f32], dy: &[f32], shape: &ConvShape) -> [Vec<f64>; 3] {
    let ([_, height, width], [_, output_height, output_width]) = (shape.size, shape.output());
    let (side, stride, padding) = (shape.kernel[1], shape.stride[1], shape.padding[1]);
    let mut results = [vec![0.0; dy.len()], vec![0.0; x.len()], vec![0.0; w.len()]];
    for index in 0..shape.batch * shape.inputs {
        for output in 0..output_height * output_width {
            for tap in 0..side * side {
                let row = (output / output_width * stride + tap / side).checked_sub(padding);
                let column = (output % output_width * stride + tap % side).checked_sub(padding);
                let (Some(row), Some(column)) = (row, column) else { continue };
                if row >= height || column >= width {
                    continue;
                }
                let input = index * height * width + row * width + column;
                let output = index * output_height * output_width + output;
                let tap = index % shape.inputs * side * side + tap;
                results[0][output] += f64::from(x[input]) * f64::from(w[tap]);
                results[1][input] += f64::from(dy[output]) * f64::from(w[tap]);
                results[2][tap] += f64::from(dy[output]) * f64::from(x[input]);
            }
        }
    }
    results
}

#[test]
fn results_and_gradients_are_those_of_the_definition_on_any_number_of_threads() {
    for (batch, channels, size, side, stride, padding) in SHAPES {
        let shape = shape(batch, channels, size, side, stride, padding);
        let [input, weights, output] = shape.lengths();
        let (x, w, dy) = (random(1, input), random(2, weights), random(3, output));
        let results = on_any_number_of_threads(|| {
            let mut results = vec![vec![f32::NAN; output], vec![f32::NAN; input], vec![f32::NAN; weights]];
            let [y, dx, dw] = &mut results[..] else { unreachable!("three results") };
            forward(&x, &w, None, Activation::Identity, &shape, y);
            gradients(&x, &w, &dy, &shape, Some(dx), Some(dw));
            results
        });
        let expected = expected(&x, &w, &dy, &shape);
        for (what, (result, expected)) in ["y", "dx", "dw"].into_iter().zip(results.iter().zip(&expected)) {
            assert_near(&format!("{what} of {shape:?}"), result, expected, 3e-6);
        }
        let (mut dx, mut dw) = (vec![f32::NAN; input], vec![f32::NAN; weights]);
        gradients(&x, &w, &dy, &shape, Some(&mut dx), None);
        gradients(&x, &w, &dy, &shape, None, Some(&mut dw));
        assert_eq!([dx, dw], results[1..], "one gradient alone is the same");
    }
}

#[test]
fn bias_and_activation_are_applied_behind() {
    let shape = shape(2, 5, [9, 11], 3, 1, 1);
    let [input, weights, output] = shape.lengths();
    let (x, w, bias) = (random(1, input), random(2, weights), random(3, 5));
    let (mut plain, mut y) = (vec![0.0; output], vec![0.0; output]);
    forward(&x, &w, None, Activation::Identity, &shape, &mut plain);
    forward(&x, &w, Some(&bias), Activation::Silu, &shape, &mut y);
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let expected: Vec<f64> =
        (0..output).map(|place| silu(f64::from(plain[place]) + f64::from(bias[place / 99 % 5]))).collect();
    assert_near("with bias and SiLU", &y, &expected, 2e-6);
}

#[test]
fn huge_numbers_and_nan_stay_where_they_belong() {
    let shape = shape(1, 2, [9, 9], 3, 1, 1);
    let mut x = vec![1.0; 162];
    x[0] = 1e38;
    x[40] = f32::NAN;
    x[100] = f32::INFINITY;
    let w = [0.5; 18];
    let mut y = vec![0.0; 162];
    forward(&x, &w, None, Activation::Identity, &shape, &mut y);
    assert_eq!(y[0], 5e37);
    let places: Vec<usize> = (0..162).filter(|&place| y[place].is_nan()).collect();
    assert_eq!(places, [30, 31, 32, 39, 40, 41, 48, 49, 50]);
    assert_eq!(y.iter().filter(|y| y.is_infinite()).count(), 9);
    let (mut dx, mut dw) = (vec![0.0; 162], vec![0.0; 18]);
    gradients(&x, &w, &[1.0; 162], &shape, Some(&mut dx), Some(&mut dw));
    assert!(dx.iter().all(|dx| dx.is_finite()) && dw[..9].iter().all(|dw| dw.is_nan()));
    assert!(dw[9..].iter().all(|dw| *dw == f32::INFINITY));
    let mut x = vec![1.0; 162];
    x[0] = f32::NAN;
    gradients(&x, &w, &[1.0; 162], &shape, None, Some(&mut dw));
    let taps: Vec<usize> = (0..18).filter(|&tap| dw[tap].is_nan()).collect();
    // Nothing but these sees the corner; another one sees 8 rows or columns of 9 where it reaches over an edge.
    assert_eq!(taps, [0, 1, 3, 4]);
    assert_eq!([dw[2], dw[5], dw[6], dw[7], dw[8]], [64.0, 72.0, 64.0, 72.0, 64.0]);
}

/// Values at the edge meet the zeros around the gradient of the output.
#[test]
fn what_is_not_finite_reaches_the_gradients_of_the_taps_that_see_it_and_no_others() {
    for (size, side, stride, padding) in
        [([9, 9], 3, 1, 1), ([9, 10], 5, 1, 2), ([11, 9], 5, 1, 3), ([18, 17], 3, 2, 1), ([20, 20], 5, 2, 2)]
    {
        let shape = shape(2, 2, size, side, stride, padding);
        let [input, weights, output] = shape.lengths();
        let (mut x, w, dy) = (random(1, input), random(2, weights), random(3, output));
        for place in 0..size[0] * size[1] {
            for odd in [f32::NAN, f32::INFINITY] {
                let number = std::mem::replace(&mut x[place], odd);
                let mut dw = vec![0.0; weights];
                gradients(&x, &w, &dy, &shape, None, Some(&mut dw));
                let [_, _, expected] = expected(&x, &w, &dy, &shape);
                for (tap, (&found, expected)) in dw.iter().zip(expected).enumerate() {
                    let found = f64::from(found);
                    let alike = if expected.is_finite() {
                        (found - expected).abs() < 1e-3
                    } else {
                        found == expected || found.is_nan() && expected.is_nan()
                    };
                    assert!(alike, "{shape:?}, {odd} at {place}: {found} at {tap} instead of {expected}");
                }
                x[place] = number;
            }
        }
    }
}

#[test]
fn a_kernel_sees_many_places_without_losing_digits() {
    // Added one after the other in single precision, this many equal values have an error in the fourth digit.
    for (batch, size) in [(1, [900, 900]), (20_000, [4, 4])] {
        let shape = shape(batch, 2, size, 3, 1, 1);
        let [input, weights, output] = shape.lengths();
        let mut dw = vec![0.0; weights];
        gradients(&vec![0.1; input], &vec![1.0; weights], &vec![0.1; output], &shape, None, Some(&mut dw));
        let expected = f64::from(0.1_f32) * f64::from(0.1_f32) * (output / 2) as f64;
        let error = (f64::from(dw[4]) / expected - 1.0).abs();
        assert!(error < 2e-5, "{size:?}: {} instead of {expected}", dw[4]);
    }
}
