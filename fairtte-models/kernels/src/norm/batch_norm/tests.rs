#![expect(clippy::float_cmp, reason = "these results are exact")]

use super::*;
use crate::arrays::{assert_near, on_any_number_of_threads, random};

const EPSILON: f64 = 1e-5;
const ALL: [Activation; 5] =
    [Activation::Identity, Activation::Relu, Activation::Silu, Activation::Gelu, Activation::Sigmoid];

/// Batch, channels, plane: rows of features, small, odd and large planes, one channel, one sample, more than one piece.
const SHAPES: [[usize; 3]; 14] = [
    [8, 3, 1],
    [33, 130, 1],
    [200, 64, 1],
    [5, 70, 4],
    [3, 5, 15],
    [3, 5, 16],
    [2, 7, 49],
    [4, 3, 196],
    [1, 1, 1000],
    [1, 3, 5001],
    [2, 2, 12_544],
    [1, 1, 140_001],
    [16, 1, 12_544],
    [2, 1, 70_000],
];

fn activation(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Gelu => {
            let (mut term, mut sum, mut k) = (x, x, 1.0);
            while term.abs() > 1e-18 {
                k += 2.0;
                term *= x * x / k;
                sum += term;
            }
            x * (0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt())
        }
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
    }
}

fn slope(curve: Activation, x: f64) -> f64 {
    if curve == Activation::Relu {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let step = 1e-5;
    (activation(curve, x + step) - activation(curve, x - step)) / (2.0 * step)
}

struct Sample {
    x: Vec<f32>,
    dy: Vec<f32>,
    gamma: Vec<f32>,
    beta: Vec<f32>,
    shape: [usize; 3],
}

impl Sample {
    fn new(shape: [usize; 3]) -> Self {
        let [batch, channels, plane] = shape;
        let length = batch * channels * plane;
        // Every channel has its own mean and deviation.
        let x = random(1, length).into_iter().enumerate().map(|(place, x)| {
            let channel = (place / plane % channels) as f32;
            2.0 + channel + x * (0.5 + channel / 10.0)
        });
        let gamma = random(3, channels).iter().map(|gamma| 1.0 + gamma / 2.0).collect();
        Self { x: x.collect(), dy: random(2, length), gamma, beta: random(4, channels), shape }
    }

    fn layer(&self, activation: Activation) -> Layer<'_> {
        Layer { plane: self.shape[2], gamma: &self.gamma, beta: &self.beta, activation }
    }

    fn places(&self, channel: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        let [batch, channels, plane] = self.shape;
        (0..batch).flat_map(move |n| (0..plane).map(move |place| (n * channels + channel) * plane + place))
    }

    /// Mean and biased variance of a channel in double precision.
    fn statistics(&self, channel: usize) -> (f64, f64) {
        let values = self.places(channel).map(|place| f64::from(self.x[place]));
        let count = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / count;
        (mean, values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / count)
    }
}

/// y, dx, `d_gamma` and `d_beta` in double precision, with the statistics given.
fn expected(sample: &Sample, curve: Activation, statistics: &[(f64, f64)], frozen: bool) -> [Vec<f64>; 4] {
    let channels = sample.shape[1];
    let mut results = [vec![0.0; sample.x.len()], vec![0.0; sample.x.len()], vec![0.0; channels], vec![0.0; channels]];
    for channel in 0..channels {
        let (mean, deviation) = (statistics[channel].0, (statistics[channel].1 + EPSILON).sqrt());
        let (gamma, beta) = (f64::from(sample.gamma[channel]), f64::from(sample.beta[channel]));
        let h = |place: usize| (f64::from(sample.x[place]) - mean) / deviation;
        let mut count = 0.0;
        for place in sample.places(channel) {
            let q = f64::from(sample.dy[place]) * slope(curve, h(place) * gamma + beta);
            results[0][place] = activation(curve, h(place) * gamma + beta);
            results[1][place] = q;
            results[2][channel] += q * h(place);
            results[3][channel] += q;
            count += 1.0;
        }
        for place in sample.places(channel) {
            let means = if frozen { 0.0 } else { results[3][channel] + h(place) * results[2][channel] };
            results[1][place] = gamma / deviation * (results[1][place] - means / count);
        }
    }
    results
}

/// Sums of values of both signs are also compared relative to the square root of their count, since they may cancel.
fn assert_all_near(what: &str, shape: [usize; 3], results: &[Vec<f32>], expected: &[Vec<f64>; 4], tolerance: f64) {
    let root = ((shape[0] * shape[2]) as f64).sqrt();
    for (name, (result, expected)) in ["y", "dx", "d_gamma", "d_beta"].iter().zip(results.iter().zip(expected)) {
        let greatest = expected.iter().fold(1e-30, |greatest: f64, value| greatest.max(value.abs()));
        let slack = if name.starts_with("d_") { (root / greatest).max(1.0) } else { 1.0 };
        assert_near(&format!("{name} of {what} at {shape:?}"), result, expected, tolerance * slack);
    }
}

#[test]
fn results_and_gradients_are_those_of_the_formulas_on_any_number_of_threads() {
    for shape in SHAPES {
        let sample = Sample::new(shape);
        let [_, channels, _] = shape;
        let statistics: Vec<(f64, f64)> = (0..channels).map(|channel| sample.statistics(channel)).collect();
        let curves = if sample.x.len() > 100_000 { &ALL[1..3] } else { &ALL[..] };
        for &curve in curves {
            let results = on_any_number_of_threads(|| {
                let (mut y, mut dx) = (vec![f32::NAN; sample.x.len()], sample.dy.clone());
                let layer = sample.layer(curve);
                let measured = forward(&sample.x, &layer, EPSILON, &mut y);
                let of_parameters = gradients(&sample.x, &layer, measured.normalisation(), &mut dx);
                let mut again = vec![f32::NAN; sample.x.len()];
                repeat(&sample.x, &layer, measured.applied(), &mut again);
                let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert!(bits(&again) == bits(&y), "{curve:?} at {shape:?}, repeated");
                let Statistics { mean, variance, .. } = measured;
                [y, dx, of_parameters.gamma, of_parameters.beta, mean, variance]
            });
            let expected = expected(&sample, curve, &statistics, false);
            assert_all_near(&format!("{curve:?}"), shape, &results, &expected, 1e-5);
            let means: Vec<f64> = statistics.iter().map(|statistic| statistic.0).collect();
            let variances: Vec<f64> = statistics.iter().map(|statistic| statistic.1).collect();
            assert_near("means", &results[4], &means, 1e-7);
            assert_near("variances", &results[5], &variances, 1e-6);
        }
    }
}

#[test]
fn a_scale_and_a_shift_are_constants_of_the_gradients() {
    for shape in SHAPES {
        let sample = Sample::new(shape);
        // Equivalent to channels that are already normalised.
        let statistics = vec![(0.0, 1.0 - EPSILON); shape[1]];
        for curve in [Activation::Identity, Activation::Relu, Activation::Silu] {
            let results = on_any_number_of_threads(|| {
                let (mut y, mut dx) = (vec![f32::NAN; sample.x.len()], sample.dy.clone());
                let layer = sample.layer(curve);
                apply(&sample.x, &layer, &mut y);
                let of_parameters = apply_gradients(&sample.x, &layer, &mut dx);
                [y, dx, of_parameters.gamma, of_parameters.beta]
            });
            let mut expected = expected(&sample, curve, &statistics, true);
            if curve == Activation::Relu {
                // A value that rounding moves across the corner is correct on either side.
                for (result, expected) in results[1].iter().zip(&mut expected[1]) {
                    if (*expected == 0.0) != (*result == 0.0) {
                        *expected = f64::from(*result);
                    }
                }
            }
            assert_all_near(&format!("frozen {curve:?}"), shape, &results, &expected, 2e-5);
        }
    }
}

/// The largest relative error of y and of the variance, for one channel of values made by `value`.
fn errors(plane: usize, epsilon: f64, value: impl Fn(f32) -> f32) -> (f64, f64) {
    let mut sample = Sample::new([4, 1, plane]);
    for (x, noise) in sample.x.iter_mut().zip(random(9, 4 * plane)) {
        *x = value(noise);
    }
    let (mean, variance) = sample.statistics(0);
    let mut y = vec![0.0; sample.x.len()];
    (sample.gamma, sample.beta) = (vec![1.0], vec![0.0]);
    let measured = forward(&sample.x, &sample.layer(Activation::Identity), epsilon, &mut y);
    let exact = sample.x.iter().map(|&x| (f64::from(x) - mean) / (variance + epsilon).sqrt());
    let error = exact.zip(&y).map(|(exact, &y)| (exact - f64::from(y)).abs()).fold(0.0, f64::max);
    (error, (f64::from(measured.variance[0]) / variance - 1.0).abs())
}

#[test]
fn a_mean_far_above_the_deviation_and_extreme_numbers_cost_no_digits() {
    for plane in [1, 9, 300, 20_000] {
        let (error, variance) = errors(plane, EPSILON, |noise| 1e4 + 0.017 * noise);
        assert!(error < 1e-5 && variance < 1e-6, "a large mean, planes of {plane}: {error:e}, {variance:e}");
        // Squares overflow; PyTorch's sums are double precision. The variance itself is above the greatest
        // single-precision number.
        let (error, _) = errors(plane, EPSILON, |noise| 1e25 * noise);
        assert!(error < 1e-5, "large numbers, planes of {plane}: {error:e}");
        // Squares underflow.
        let (error, _) = errors(plane, 1e-60, |noise| 1e-25 * noise);
        assert!(error < 1e-5, "tiny numbers, planes of {plane}: {error:e}");
    }
}

#[test]
fn gradients_of_large_numbers_are_finite_and_right() {
    for plane in [1, 300] {
        let mut sample = Sample::new([4, 1, plane]);
        sample.x.iter_mut().for_each(|x| *x *= 1e25);
        let statistics = [sample.statistics(0)];
        (sample.gamma, sample.beta) = (vec![1.0], vec![0.5]);
        let (mut y, mut dx) = (vec![0.0; sample.x.len()], sample.dy.clone());
        let curve = Activation::Silu;
        let measured = forward(&sample.x, &sample.layer(curve), EPSILON, &mut y);
        let of_parameters = gradients(&sample.x, &sample.layer(curve), measured.normalisation(), &mut dx);
        let expected = expected(&sample, curve, &statistics, false);
        let scaled: Vec<f32> = dx.iter().map(|dx| dx * 1e25).collect();
        let expected_scaled: Vec<f64> = expected[1].iter().map(|dx| dx * 1e25).collect();
        assert_near("dx", &scaled, &expected_scaled, 1e-5);
        assert_near("d_gamma", &of_parameters.gamma, &expected[2], 1e-5);
    }
}

#[test]
fn a_constant_channel_gives_beta_and_nan_stays_in_its_channel() {
    for plane in [1, 49, 5000] {
        let mut x = vec![3.0; 2 * 3 * plane];
        x[plane] = f32::NAN;
        let mut y = vec![0.0; x.len()];
        let layer = Layer { plane, gamma: &[2.0; 3], beta: &[0.25; 3], activation: Activation::Relu };
        let measured = forward(&x, &layer, EPSILON, &mut y);
        assert_eq!(measured.variance[0], 0.0);
        for (place, y) in y.iter().enumerate() {
            let channel = place / plane % 3;
            assert!(if channel == 1 { y.is_nan() } else { *y == 0.25 }, "plane {plane}, place {place}: {y}");
        }
        let mut dx = vec![1.0; x.len()];
        let of_parameters = gradients(&x, &layer, measured.normalisation(), &mut dx);
        assert!(dx[..plane].iter().all(|dx| dx.abs() < 1e-3) && dx[plane..2 * plane].iter().all(|dx| dx.is_nan()));
        assert_eq!([of_parameters.gamma[0], of_parameters.beta[0]], [0.0, 2.0 * plane as f32]);
    }
}

#[test]
fn gradients_keep_their_digits_at_a_mean_far_above_the_deviation() {
    for plane in [1, 9, 300, 20_000] {
        for curve in [Activation::Identity, Activation::Silu] {
            let mut sample = Sample::new([40, 2, plane]);
            for (x, noise) in sample.x.iter_mut().zip(random(9, 80 * plane)) {
                *x = 1e4 + 0.017 * noise;
            }
            // All of one sign, so that an offset common to all h shows in the sums of q h.
            sample.dy.iter_mut().for_each(|dy| *dy = 1.0 + *dy / 4.0);
            let statistics = [sample.statistics(0), sample.statistics(1)];
            let (mut y, mut dx) = (vec![0.0; sample.x.len()], sample.dy.clone());
            let measured = forward(&sample.x, &sample.layer(curve), EPSILON, &mut y);
            let of_parameters = gradients(&sample.x, &sample.layer(curve), measured.normalisation(), &mut dx);
            let results = [y, dx, of_parameters.gamma, of_parameters.beta];
            let expected = expected(&sample, curve, &statistics, false);
            // The mean of many values is exact to some 1e-8 deviations; its rounding error was a twentieth of a
            // deviation.
            assert_all_near("a large mean", sample.shape, &results, &expected, 3e-5);
        }
    }
}

#[test]
fn nothing_gives_nothing() {
    for (channels, plane) in [(3, 0), (3, 1), (3, 49), (0, 5), (0, 0)] {
        let (gamma, beta) = (vec![1.0; channels], vec![0.5; channels]);
        let layer = Layer { plane, gamma: &gamma, beta: &beta, activation: Activation::Silu };
        let measured = forward(&[], &layer, EPSILON, &mut []);
        let zeros = vec![0.0; channels];
        assert_eq!([&measured.mean, &measured.variance, &measured.offset], [&zeros; 3]);
        let expected = ParameterGradients { gamma: zeros.clone(), beta: zeros };
        assert_eq!(gradients(&[], &layer, measured.normalisation(), &mut []), expected);
        apply(&[], &layer, &mut []);
        assert_eq!(apply_gradients(&[], &layer, &mut []), expected);
    }
}

#[test]
#[should_panic(expected = "whole samples of 0 channels of 4")]
fn values_without_a_channel_are_refused() {
    let layer = Layer { plane: 4, gamma: &[], beta: &[], activation: Activation::Silu };
    apply(&[1.0; 4], &layer, &mut [0.0; 4]);
}

#[test]
fn millions_of_numbers_are_summed_to_their_last_digits() {
    for [batch, plane] in [[2_500_003, 1], [50_001, 50], [2, 1_250_001]] {
        let count = batch * plane;
        let x: Vec<f32> = random(1, count).iter().map(|x| x + 3.0).collect();
        let layer = Layer { plane, gamma: &[1.0], beta: &[0.0], activation: Activation::Identity };
        let (mut y, mut dx) = (vec![0.0; count], x.iter().map(|x| 0.3 + x / 10.0).collect::<Vec<f32>>());
        let exact = |value: &dyn Fn(f64) -> f64| x.iter().map(|&x| value(f64::from(x))).sum::<f64>();
        let mean = exact(&|x| x) / count as f64;
        let variance = exact(&|x| (x - mean).powi(2)) / count as f64;
        let q: f64 = dx.iter().map(|&q| f64::from(q)).sum();
        let q_h: f64 = dx.iter().zip(&x).map(|(&q, &x)| f64::from(q) * (f64::from(x) - mean)).sum();
        let measured = forward(&x, &layer, EPSILON, &mut y);
        let of_parameters = gradients(&x, &layer, measured.normalisation(), &mut dx);
        assert!((f64::from(measured.mean[0]) / mean - 1.0).abs() < 1e-7, "mean of {batch} x {plane}");
        assert!((f64::from(of_parameters.beta[0]) / q - 1.0).abs() < 1e-6, "d_beta of {batch} x {plane}");
        let q_h = q_h / (variance + EPSILON).sqrt();
        assert!((f64::from(of_parameters.gamma[0]) / q_h - 1.0).abs() < 1e-6, "d_gamma of {batch} x {plane}");
    }
}
