#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#![expect(clippy::cast_possible_truncation, reason = "exponents, and a number that single precision rounds")]

use super::*;
use crate::simd::{self, Kernel, Vectors};

/// A function of this module over a slice, so that it runs on the instruction set in use.
struct Over<'a> {
    function: Function,
    values: &'a mut [f32],
}

#[derive(Clone, Copy, PartialEq)]
enum Function {
    ExpOfNonpositive,
    ExpOfAny,
    Logistic,
    Complement,
    Distribution,
    Density,
}

impl Kernel for Over<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let (vectors, rest) = S::as_mut_simd_f32s(self.values);
        assert!(rest.is_empty(), "tests take whole vectors");
        for vector in vectors {
            *vector = match self.function {
                Function::ExpOfNonpositive => exp_of_nonpositive(simd, *vector),
                Function::ExpOfAny => exp_of_any(simd, *vector),
                Function::Logistic => logistic(simd, *vector).0,
                Function::Complement => logistic(simd, *vector).1,
                Function::Distribution => normal(simd, *vector).0,
                Function::Density => normal(simd, *vector).1,
            };
        }
    }
}

fn over(function: Function, x: &[f32]) -> Vec<f32> {
    let mut values = x.to_vec();
    values.resize(x.len().div_ceil(64) * 64, 0.0);
    simd::run(Over { function, values: &mut values });
    values.truncate(x.len());
    values
}

/// Upper tail of the normal distribution: the series of the error function near zero, the continued fraction far from it.
fn tail(a: f64) -> f64 {
    let density = (-0.5 * a * a).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if a < 3.0 {
        let (mut term, mut sum, mut k) = (a, a, 1.0);
        while term > 1e-18 * sum {
            k += 2.0;
            term *= a * a / k;
            sum += term;
        }
        return 0.5 - density * sum;
    }
    let fraction = (1..200).rev().fold(a, |rest, k| a + f64::from(k) / rest);
    density / fraction
}

fn exact(function: Function, x: f64) -> f64 {
    let logistic = |x: f64| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
    match function {
        Function::ExpOfNonpositive | Function::ExpOfAny => x.exp(),
        Function::Logistic => logistic(x),
        Function::Complement => logistic(-x),
        Function::Distribution => {
            if x < 0.0 {
                tail(-x)
            } else {
                1.0 - tail(x)
            }
        }
        Function::Density => (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt(),
    }
}

/// Distance in units of the last place of the result, of which the smallest is the smallest subnormal number.
fn distance(value: f32, exact: f64) -> f64 {
    let magnitude = exact.abs().max(f64::from(f32::MIN_POSITIVE));
    let unit = 2f64.powi(magnitude.log2().floor() as i32 - 23);
    (f64::from(value) - exact).abs() / unit
}

/// Every 509th number of the given sign, over all exponents, below `limit`.
fn sweep(negative: bool, limit: f32) -> Vec<f32> {
    let sign = u32::from(negative) << 31;
    (0..limit.to_bits()).step_by(509).map(|bits| f32::from_bits(bits | sign)).collect()
}

fn worst(function: Function, x: &[f32]) -> (f64, f32) {
    let values = over(function, x);
    let distances = x.iter().zip(values).map(|(&x, value)| (distance(value, exact(function, f64::from(x))), x));
    distances.fold((0.0, 0.0), |worst, here| if here.0 > worst.0 { here } else { worst })
}

#[test]
fn functions_are_within_a_few_units_in_the_last_place() {
    for (function, below, above, bound) in [
        (Function::ExpOfNonpositive, 120.0, 0.0, 1.6),
        (Function::ExpOfAny, 87.67, 88.37, 1.6),
        (Function::Logistic, 120.0, 120.0, 3.0),
        (Function::Complement, 120.0, 120.0, 3.0),
        (Function::Distribution, 16.0, 16.0, 7.0),
        (Function::Density, 16.0, 16.0, 3.0),
    ] {
        for (negative, limit) in [(true, below), (false, above)] {
            let (units, at) = worst(function, &sweep(negative, limit));
            assert!(units <= bound, "function {} at {at:e}: {units} units", function as u8);
        }
    }
}

#[test]
fn special_arguments_give_limits_and_nan_stays() {
    let x = [f32::NEG_INFINITY, -1e30, -104.0, 0.0, -0.0, 89.0, 1e30, f32::INFINITY];
    assert_eq!(over(Function::ExpOfNonpositive, &x[..5]), [0.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(over(Function::ExpOfAny, &x), [0.0, 0.0, 0.0, 1.0, 1.0, f32::INFINITY, f32::INFINITY, f32::INFINITY]);
    // Between the last arguments with a normal 2^n and the limits nothing is negative, nor NaN.
    let ends = over(Function::ExpOfAny, &[-89.0, -88.0, -87.7, 88.4, 88.6, 88.72]);
    assert_eq!(ends, [0.0, 0.0, 0.0, f32::INFINITY, f32::INFINITY, f32::INFINITY]);
    assert_eq!(over(Function::Logistic, &x), [0.0, 0.0, 0.0, 0.5, 0.5, 1.0, 1.0, 1.0]);
    assert_eq!(over(Function::Complement, &x)[5..], [2.227_363_6e-39_f64 as f32, 0.0, 0.0]);
    assert_eq!(over(Function::Distribution, &x), [0.0, 0.0, 0.0, 0.5, 0.5, 1.0, 1.0, 1.0]);
    let density = over(Function::Density, &x);
    assert_eq!(density, [0.0, 0.0, 0.0, 0.398_942_3, 0.398_942_3, 0.0, 0.0, 0.0]);
    for function in [Function::ExpOfNonpositive, Function::ExpOfAny, Function::Logistic, Function::Complement] {
        assert!(over(function, &[f32::NAN])[0].is_nan());
    }
    for function in [Function::Distribution, Function::Density] {
        assert!(over(function, &[f32::NAN])[0].is_nan());
    }
}
