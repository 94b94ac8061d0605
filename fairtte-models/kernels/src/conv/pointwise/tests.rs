//! Convolutions by one element against plain loops in double precision.

use super::*;
use crate::arrays::{on_any_number_of_threads, random};

fn shape(batch: usize, inputs: usize, outputs: usize, size: [usize; 3]) -> ConvShape {
    ConvShape { batch, inputs, outputs, size, kernel: [1; 3], stride: [1; 3], padding: [0; 3], groups: 1 }
}

fn shapes() -> Vec<ConvShape> {
    vec![
        shape(1, 1, 1, [1, 1, 1]),
        shape(5, 7, 3, [1, 1, 1]),
        shape(16, 96, 4, [1, 1, 1]),
        shape(16, 20, 80, [1, 1, 1]),
        shape(1, 3, 5, [1, 1, 7]),
        shape(7, 30, 50, [1, 7, 7]),
        shape(33, 4, 13, [1, 2, 2]),
        // Two blocks of the sum and of the rows, in tasks that have all rows (on up to two threads) or share what is packed.
        shape(33, 330, 170, [1, 4, 4]),
        shape(9, 170, 330, [1, 2, 2]),
        // Panels that end within a sample, tasks of which the last is smaller.
        shape(41, 17, 30, [1, 5, 5]),
        shape(6, 33, 10, [1, 23, 23]),
        shape(2, 16, 96, [1, 25, 31]),
        shape(1, 40, 24, [1, 56, 56]),
        shape(3, 24, 14, [3, 5, 6]),
        shape(2, 1, 6, [1, 33, 32]),
        shape(2, 9, 1, [1, 16, 16]),
    ]
}

/// Output and gradients by the kernels.
fn compute(shape: &ConvShape, x: &[f32], w: &[f32], dy: &[f32]) -> [Vec<f32>; 3] {
    let [mut y, mut dx, mut dw] = [dy.len(), x.len(), w.len()].map(|length| vec![f32::NAN; length]);
    forward(x, w, None, Activation::Identity, shape, &mut y);
    input_gradient(w, dy, shape, &mut dx);
    weight_gradient(x, dy, shape, &mut dw);
    [y, dx, dw]
}

fn arrays(shape: &ConvShape) -> [Vec<f32>; 3] {
    let [x, w, y] = shape.lengths();
    [random(1, x), random(2, w), random(3, y)]
}

fn close(what: &str, shape: &ConvShape, found: f32, terms: impl Iterator<Item = (f32, f32)>) {
    let (mut sum, mut size) = (0.0, 0.0);
    for (a, b) in terms {
        let term = f64::from(a) * f64::from(b);
        sum += term;
        size += term.abs();
    }
    assert!((f64::from(found) - sum).abs() <= 1e-6 * size, "{what} of {shape:?}: {found} instead of {sum}");
}

#[test]
fn output_and_gradients_are_products_of_matrices() {
    for shape in shapes() {
        let ConvShape { batch, inputs, outputs, .. } = shape;
        let plane = shape.input_plane();
        let [x, w, dy] = arrays(&shape);
        let [y, dx, dw] = compute(&shape, &x, &w, &dy);
        let from = |sample: usize, channel: usize, pixel: usize| (sample * inputs + channel) * plane + pixel;
        let to = |sample: usize, channel: usize, pixel: usize| (sample * outputs + channel) * plane + pixel;
        for sample in 0..batch {
            for pixel in 0..plane {
                for o in 0..outputs {
                    let terms = (0..inputs).map(|i| (x[from(sample, i, pixel)], w[o * inputs + i]));
                    close("output", &shape, y[to(sample, o, pixel)], terms);
                }
                for i in 0..inputs {
                    let terms = (0..outputs).map(|o| (dy[to(sample, o, pixel)], w[o * inputs + i]));
                    close("gradient of the input", &shape, dx[from(sample, i, pixel)], terms);
                }
            }
        }
        for (o, i) in (0..outputs).flat_map(|o| (0..inputs).map(move |i| (o, i))) {
            let places = (0..batch).flat_map(|sample| (0..plane).map(move |pixel| (sample, pixel)));
            let terms = places.map(|(sample, pixel)| (dy[to(sample, o, pixel)], x[from(sample, i, pixel)]));
            close("gradient of the weights", &shape, dw[o * inputs + i], terms);
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for shape in shapes() {
        let [x, w, dy] = arrays(&shape);
        on_any_number_of_threads(|| compute(&shape, &x, &w, &dy));
    }
}

#[test]
fn bias_and_activation_follow_the_sums() {
    for shape in shapes() {
        let [x, w, _] = arrays(&shape);
        let bias = random(4, shape.outputs);
        let length = shape.lengths()[2];
        let [mut plain, mut finished] = [vec![0.0; length], vec![0.0; length]];
        forward(&x, &w, None, Activation::Identity, &shape, &mut plain);
        forward(&x, &w, Some(&bias), Activation::Relu, &shape, &mut finished);
        for (index, (plain, finished)) in plain.iter().zip(&finished).enumerate() {
            let expected = (plain + bias[index / shape.output_plane() % shape.outputs]).max(0.0);
            assert!((finished - expected).abs() <= 1e-6, "{shape:?} at {index}: {finished} instead of {expected}");
        }
    }
}

#[test]
fn what_is_not_a_number_stays_at_its_place() {
    for shape in shapes() {
        let [mut x, w, dy] = arrays(&shape);
        let plane = shape.input_plane();
        x[plane / 2] = f32::NAN;
        let [y, dx, dw] = compute(&shape, &x, &w, &dy);
        for (index, y) in y.iter().enumerate() {
            let sees = index / (plane * shape.outputs) == 0 && index % plane == plane / 2;
            assert_eq!(y.is_nan(), sees, "output of {shape:?} at {index}");
        }
        assert!(dx.iter().all(|dx| dx.is_finite()));
        for (index, dw) in dw.iter().enumerate() {
            assert_eq!(dw.is_nan(), index % shape.inputs == 0, "gradient of {shape:?} at {index}");
        }
    }
}
