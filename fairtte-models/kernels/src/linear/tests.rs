use super::*;
use crate::activation::Activation;
use crate::arrays::{on_any_number_of_threads, random};

/// Rows, inputs and outputs.
const SIZES: [[usize; 3]; 8] =
    [[1, 1, 1], [16, 64, 16], [1, 300, 5], [7, 3, 1], [197, 48, 33], [300, 17, 130], [0, 4, 3], [65, 1, 70]];

fn close(found: &[f32], expected: &[f64], size: usize, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - expected).abs();
        assert!(error <= 1e-7 * (size as f64 + 4.0), "{what} at {at}: {found} instead of {expected}");
    }
}

#[test]
fn rows_are_weighted_sums_and_the_bias() {
    for [rows, inputs, outputs] in SIZES {
        let (x, weight, bias) = (random(1, rows * inputs), random(2, inputs * outputs), random(3, outputs));
        for with_bias in [false, true] {
            let mut expected = vec![0.0; rows * outputs];
            for row in 0..rows {
                for output in 0..outputs {
                    let mut sum = if with_bias { f64::from(bias[output]) } else { 0.0 };
                    for input in 0..inputs {
                        sum += f64::from(x[row * inputs + input]) * f64::from(weight[input * outputs + output]);
                    }
                    expected[row * outputs + output] = sum;
                }
            }
            let mut y = vec![f32::NAN; rows * outputs];
            let sizes = [rows, inputs, outputs];
            forward(&x, &weight, sizes, with_bias.then_some(&bias[..]), Activation::Identity, &mut y);
            close(&y, &expected, inputs, &format!("{sizes:?}"));
            forward(&x, &weight, sizes, with_bias.then_some(&bias[..]), Activation::Relu, &mut y);
            let expected: Vec<f64> = expected.iter().map(|y| y.max(0.0)).collect();
            close(&y, &expected, inputs, &format!("relu of {sizes:?}"));
        }
    }
}

#[test]
fn gradients_are_the_sums_of_the_chain_rule() {
    for sizes @ [rows, inputs, outputs] in SIZES {
        let (x, weight, dy) = (random(1, rows * inputs), random(2, inputs * outputs), random(3, rows * outputs));
        let [mut dx, mut d_weight, mut d_bias] =
            [vec![0.0; rows * inputs], vec![0.0; inputs * outputs], vec![0.0; outputs]];
        for row in 0..rows {
            for output in 0..outputs {
                let dy = f64::from(dy[row * outputs + output]);
                d_bias[output] += dy;
                for input in 0..inputs {
                    dx[row * inputs + input] += dy * f64::from(weight[input * outputs + output]);
                    d_weight[input * outputs + output] += dy * f64::from(x[row * inputs + input]);
                }
            }
        }
        let mut found = [dx.len(), d_weight.len(), d_bias.len()].map(|length| vec![f32::NAN; length]);
        let [of_x, of_weight, of_bias] = &mut found;
        gradients(&x, &weight, &dy, sizes, Some(of_x), Some(of_weight), Some(of_bias));
        close(of_x, &dx, outputs, "dx");
        close(of_weight, &d_weight, rows, "d_weight");
        close(of_bias, &d_bias, rows, "d_bias");
        let mut alone = vec![f32::NAN; d_weight.len()];
        gradients(&x, &weight, &dy, sizes, None, Some(&mut alone), None);
        assert_eq!(&alone, of_weight);
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let sizes @ [rows, inputs, outputs] = [530, 70, 150];
    let (x, weight, dy) = (random(1, rows * inputs), random(2, inputs * outputs), random(3, rows * outputs));
    let bias = random(4, outputs);
    on_any_number_of_threads(|| {
        let [mut y, mut dx, mut d_weight, mut d_bias] =
            [rows * outputs, rows * inputs, inputs * outputs, outputs].map(|length| vec![0.0; length]);
        forward(&x, &weight, sizes, Some(&bias), Activation::Gelu, &mut y);
        gradients(&x, &weight, &dy, sizes, Some(&mut dx), Some(&mut d_weight), Some(&mut d_bias));
        [y, dx, d_weight, d_bias]
    });
}

#[test]
fn long_columns_are_summed_to_their_last_digits() {
    let rows = 100_000;
    let values: Vec<f32> = random(1, 2 * rows).iter().map(|x| x + 1.0).collect();
    let mut sums = [0.0; 2];
    column_sums(&values, &mut sums);
    for (column, sum) in sums.into_iter().enumerate() {
        let expected: f64 = values.iter().skip(column).step_by(2).map(|&x| f64::from(x)).sum();
        assert!((f64::from(sum) / expected - 1.0).abs() < 3e-7, "{sum} instead of {expected}");
    }
}

#[test]
fn no_number_stays_in_its_row_or_column() {
    let sizes @ [rows, inputs, outputs] = [20, 9, 37];
    let (mut x, weight, mut dy) = (random(1, rows * inputs), random(2, inputs * outputs), random(3, rows * outputs));
    x[3 * inputs + 2] = f32::NAN;
    let mut y = vec![0.0; rows * outputs];
    forward(&x, &weight, sizes, None, Activation::Relu, &mut y);
    for (at, y) in y.iter().enumerate() {
        assert_eq!(y.is_nan(), at / outputs == 3, "output {at}");
    }
    dy[5 * outputs + 8] = f32::INFINITY;
    let mut d_bias = vec![0.0; outputs];
    gradients(&x, &weight, &dy, sizes, None, None, Some(&mut d_bias));
    for (at, value) in d_bias.iter().enumerate() {
        assert_eq!(*value == f32::INFINITY, at == 8, "bias {at}");
    }
}

#[test]
fn millions_of_rows_are_summed_to_their_last_digits() {
    let sizes @ [rows, inputs, outputs] = [2_500_003, 2, 3];
    // Values of one sign, which expose an error that every addition makes in the same direction.
    let (x, dy) = (vec![0.7; rows * inputs], vec![0.3; rows * outputs]);
    let (mut d_weight, mut d_bias) = (vec![f32::NAN; inputs * outputs], vec![f32::NAN; outputs]);
    gradients(&x, &[0.0; 6], &dy, sizes, None, Some(&mut d_weight), Some(&mut d_bias));
    let of_weight = rows as f64 * f64::from(0.7_f32) * f64::from(0.3_f32);
    assert!(d_weight.iter().all(|&x| (f64::from(x) / of_weight - 1.0).abs() < 1e-5), "{d_weight:?}, not {of_weight}");
    let of_bias = rows as f64 * f64::from(0.3_f32);
    assert!(d_bias.iter().all(|&x| (f64::from(x) / of_bias - 1.0).abs() < 3e-6), "{d_bias:?}, not {of_bias}");
}
