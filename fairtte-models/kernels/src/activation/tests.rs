#![expect(clippy::float_cmp, reason = "these results are exact")]

use super::*;
use crate::arrays::{on_any_number_of_threads, random};

const ALL: [Activation; 5] =
    [Activation::Identity, Activation::Relu, Activation::Silu, Activation::Gelu, Activation::Sigmoid];

/// Distribution function of the normal distribution by the series of the error function.
fn below(x: f64) -> f64 {
    let (mut term, mut sum, mut k) = (x, x, 1.0);
    while term.abs() > 1e-19 {
        k += 2.0;
        term *= x * x / k;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

fn exact(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Gelu => x * below(x),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
    }
}

#[test]
fn values_and_gradients_are_those_of_the_formulas_on_any_number_of_threads() {
    for length in [0, 1, 5, 16, 33, 100_003] {
        let x: Vec<f32> = random(1, length).iter().map(|x| 6.0 * x).collect();
        let dy = random(2, length);
        for activation in ALL {
            let results = on_any_number_of_threads(|| {
                let (mut y, mut dx) = (vec![f32::NAN; length], dy.clone());
                forward(activation, &x, &mut y);
                gradient(activation, &x, &mut dx);
                vec![y, dx]
            });
            for (place, &x) in x.iter().enumerate() {
                let x = f64::from(x);
                let error = (f64::from(results[0][place]) - exact(activation, x)).abs();
                assert!(error < 2e-6, "{activation:?} of {x}: error {error:e}");
                // The corner of ReLU is at 0 exactly.
                let step = if activation == Activation::Relu { 1e-3 * x.abs() } else { 1e-4 };
                let slope = (exact(activation, x + step) - exact(activation, x - step)) / (2.0 * step);
                let error = (f64::from(results[1][place]) - f64::from(dy[place]) * slope).abs();
                assert!(error < 2e-6, "gradient of {activation:?} at {x}: error {error:e}");
            }
        }
    }
}

#[test]
fn in_place_gives_the_same_bits() {
    let x = random(3, 1001);
    for activation in ALL {
        let (mut y, mut values) = (vec![0.0; x.len()], x.clone());
        forward(activation, &x, &mut y);
        in_place(activation, &mut values);
        assert_eq!(y, values);
    }
}

/// `PyTorch` 2.9.0 on these arguments, `F.relu`, `F.silu`, `F.gelu`, `torch.sigmoid`, with the gradient of the sum. Two entries
/// are exact instead: `PyTorch` gives NaN for GELU of infinity and 0 for the slope of the logistic function at 20.
#[test]
fn special_values_are_those_of_pytorch() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    let x = [-INF, -1e30, -20.0, -1.0, -0.0, 0.0, 1.0, 20.0, 1e30, INF, NAN];
    let silu = [NAN, 0.0, -4.122_307_5e-8, -0.268_941_43, 0.0, 0.0, 0.731_058_6, 20.0, 1e30, INF, NAN];
    let d_silu = [NAN, 0.0, -3.916_192e-8, 0.072_329_484, 0.5, 0.5, 0.927_670_54, 1.0, 1.0, NAN, NAN];
    let gelu = [NAN, 0.0, 0.0, -0.158_655_26, 0.0, 0.0, 0.841_344_7, 20.0, 1e30, INF, NAN];
    let d_gelu = [NAN, 0.0, 0.0, -0.083_315_43, 0.5, 0.5, 1.083_315_4, 1.0, 1.0, NAN, NAN];
    let sigmoid = [0.0, 0.0, 2.061_153_7e-9, 0.268_941_43, 0.5, 0.5, 0.731_058_6, 1.0, 1.0, 1.0, NAN];
    let d_sigmoid = [0.0, 0.0, 2.061_153_7e-9, 0.196_611_94, 0.25, 0.25, 0.196_611_93, 2.061_153_7e-9, 0.0, 0.0, NAN];
    let relu = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 20.0, 1e30, INF, NAN];
    let slopes_of_relu = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    for (activation, values, slopes) in [
        (Activation::Relu, relu, slopes_of_relu),
        (Activation::Silu, silu, d_silu),
        (Activation::Gelu, gelu, d_gelu),
        (Activation::Sigmoid, sigmoid, d_sigmoid),
    ] {
        let (mut y, mut dx) = (x, [1.0; 11]);
        in_place(activation, &mut y);
        gradient(activation, &x, &mut dx);
        for ((results, expected), what) in [(y, values), (dx, slopes)].into_iter().zip(["value", "slope"]) {
            for ((result, expected), x) in results.into_iter().zip(expected).zip(x) {
                let equal = result == expected || (result - expected).abs() <= 1e-6 * expected.abs();
                let same = equal || (result.is_nan() && expected.is_nan());
                assert!(same, "{what} of {activation:?} at {x:e}: {result:e}, expected {expected:e}");
            }
        }
    }
    let mut infinite = [INF, INF];
    gradient(Activation::Relu, &[-1.0, NAN], &mut infinite);
    assert_eq!(infinite, [0.0, INF], "ReLU selects, it does not multiply by zero");
}
