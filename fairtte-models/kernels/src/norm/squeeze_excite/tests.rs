use super::*;
use crate::arrays::{on_any_number_of_threads, random};

const EPSILON: f64 = 1e-5;

/// Batch, channels, channels that are squeezed to, plane: small, odd and large planes, several blocks and pieces.
const SHAPES: [[usize; 4]; 9] = [
    [5, 3, 1, 1],
    [3, 17, 4, 4],
    [3, 5, 2, 15],
    [2, 7, 3, 16],
    [4, 40, 10, 49],
    [2, 3, 1, 196],
    [3, 2, 2, 5001],
    [2, 2, 1, 12_544],
    [1, 2, 1, 70_000],
];

/// The parameters and the gradient of the output.
struct Sample {
    x: Vec<f32>,
    dy: Vec<f32>,
    of_norm: [Vec<f32>; 2],
    squeeze: [Vec<f32>; 2],
    excite: [Vec<f32>; 2],
    plane: usize,
}

impl Sample {
    fn new([batch, channels, narrow, plane]: [usize; 4]) -> Self {
        let mut x = random(1, batch * channels * plane);
        x.iter_mut().enumerate().for_each(|(place, x)| *x = *x * 3.0 + (place / plane % channels) as f32);
        let gamma = random(2, channels).into_iter().map(|gamma| gamma + 1.5).collect();
        Self {
            dy: random(3, x.len()),
            x,
            of_norm: [gamma, random(4, channels)],
            squeeze: [random(5, narrow * channels), random(6, narrow)],
            excite: [random(7, narrow * channels), random(8, channels)],
            plane,
        }
    }

    fn layer(&self, activation: Activation) -> SqueezeExcite<'_> {
        fn dense([weight, bias]: &[Vec<f32>; 2]) -> Dense<'_> {
            Dense { weight, bias }
        }
        let [gamma, beta] = &self.of_norm;
        SqueezeExcite {
            layer: Layer { plane: self.plane, gamma, beta, activation },
            squeeze: dense(&self.squeeze),
            excite: dense(&self.excite),
        }
    }

    /// Output and gradients of the layers one after the other.
    fn one_by_one(&self, activation: Activation) -> Vec<Vec<f32>> {
        let layer = self.layer(activation);
        let (plane, planes) = (self.plane, self.x.len() / self.plane);
        let [mut h, mut y] = [(); 2].map(|()| vec![0.0; self.x.len()]);
        let statistics = batch_norm::forward(&self.x, &layer.layer, EPSILON, &mut h);
        let mut means = vec![0.0; planes];
        pooling::average(&h, plane, &mut means);
        let kept = layer.gates(means);
        let gates = activated(Activation::Sigmoid, &kept.excited);
        gate::forward(&h, plane, &gates, &mut y);
        let (mut dx, mut d_gates) = (self.dy.clone(), vec![0.0; planes]);
        gate::gradients(&h, plane, &gates, &mut dx, &mut d_gates);
        activation::gradient(Activation::Sigmoid, &kept.excited, &mut d_gates);
        let (d_means, [squeeze, excite]) = layer.of_gates(kept.kept(), &d_gates);
        let mut of_means = vec![0.0; self.x.len()];
        pooling::average_gradient(&d_means, plane, &mut of_means);
        dx.iter_mut().zip(&of_means).for_each(|(dx, of_mean)| *dx += of_mean);
        let norm = batch_norm::gradients(&self.x, &layer.layer, statistics.normalisation(), &mut dx);
        let mut all = vec![y, dx, norm.gamma, norm.beta, statistics.mean, statistics.variance];
        all.extend(squeeze.into_iter().chain(excite));
        all
    }

    /// The same by one layer, whose gradients take y or not.
    fn together(&self, activation: Activation, with_output: bool) -> Vec<Vec<f32>> {
        let layer = self.layer(activation);
        let (mut y, mut again, mut dx) = (vec![f32::NAN; self.x.len()], vec![f32::NAN; self.x.len()], self.dy.clone());
        let (statistics, gates) = forward(&self.x, &layer, EPSILON, &mut y);
        repeat(&self.x, &layer.layer, statistics.applied(), &gates.excited, &mut again);
        assert!(y.iter().zip(&again).all(|(y, again)| y.to_bits() == again.to_bits()), "repeated");
        let measured = (statistics.normalisation(), statistics.applied());
        let found = gradients(&self.x, &layer, measured, gates.kept(), with_output.then_some(&*y), &mut dx);
        let mut all = vec![y, dx, found.norm.gamma, found.norm.beta, statistics.mean, statistics.variance];
        all.extend(found.squeeze.into_iter().chain(found.excite));
        all
    }
}

#[test]
fn the_layer_has_the_bits_of_its_parts_one_after_the_other_on_any_number_of_threads() {
    for shape in SHAPES {
        let sample = Sample::new(shape);
        for (activation, with_output) in
            [(Activation::Silu, false), (Activation::Silu, true), (Activation::Relu, false), (Activation::Relu, true)]
        {
            let found = on_any_number_of_threads(|| sample.together(activation, with_output));
            let expected = sample.one_by_one(activation);
            // Gradients of a few biases may cancel: those of both layers on the means have one scale.
            let of_gates = expected[6..].concat();
            for (what, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let scale = if what < 6 { expected } else { &of_gates };
                let what = format!("result {what} at {shape:?}, {activation:?}, with y: {with_output}");
                assert!(found.iter().all(|value| value.is_finite()), "{what}");
                // Without y the order of all sums is the same, but in planes that have no whole vector.
                if with_output || sample.plane < features::LIMIT {
                    let scale = scale.iter().fold(1e-30, |scale: f32, value| scale.max(value.abs()));
                    let error = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs() / scale);
                    let error = error.fold(0.0, f32::max);
                    assert!(error <= 2e-6, "{what}: {error:e} apart");
                } else {
                    assert!(found == expected, "{what}");
                }
            }
        }
    }
}

#[test]
fn nan_stays_in_its_channel_of_the_norm_and_reaches_the_gates_of_its_sample() {
    let mut sample = Sample::new([2, 3, 2, 49]);
    sample.x[50] = f32::NAN; // Sample 0, channel 1.
    let expected = sample.one_by_one(Activation::Silu);
    for with_output in [false, true] {
        for (found, expected) in sample.together(Activation::Silu, with_output).iter().zip(&expected) {
            let nan = |values: &[f32]| values.iter().map(|value| value.is_nan()).collect::<Vec<_>>();
            assert_eq!(nan(found), nan(expected));
        }
    }
}

#[test]
#[should_panic(expected = "lengths of weights and biases")]
fn weights_of_another_length_are_refused() {
    let sample = Sample::new([1, 3, 1, 4]);
    let layer = SqueezeExcite { squeeze: Dense { weight: &[0.0; 2], bias: &[0.0] }, ..sample.layer(Activation::Silu) };
    let _ = forward(&sample.x, &layer, EPSILON, &mut sample.x.clone());
}
