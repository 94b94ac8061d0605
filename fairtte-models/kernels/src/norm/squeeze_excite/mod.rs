//! Batch normalisation, activation, and squeeze and excitation of `[batch, channels, plane]` as one layer, and its gradients.
//!
//! y = h g with h the values after batch norm and activation, and g = logistic(E a(S m + s) + e) of each sample and channel, where m
//! are the means of h over the plane, S and E the weights of squeeze and excite, s and e their biases and a the activation (Hu, Shen and
//! Sun, 2018, doi:10.1109/CVPR.2018.00745). In the layers one after the other h is written once and read twice, and the two parts of its
//! gradient are written and added; here neither exists: h is computed again in registers wherever it is read, from x, which
//! the gradients need anyway. All values have the bits of the layers one after the other, except for gradients that are computed
//! with the help of y.

#![expect(clippy::cast_possible_truncation, reason = "sums are in double precision, results in single")]

mod planes;

use rayon::prelude::*;

use crate::activation::{self, Activation, Curve, Identity, with_curve};
use crate::conv::{self, ConvShape};
use crate::norm::batch_norm::{
    self, Applied, Layer, Normalisation, Statistics, TASK, backward_planes, channel, features,
};
use crate::norm::moments::{Moments, PIECE};
use crate::norm::squeeze_excite::planes::{Gated, Means, Products, ScaleAndShift};
use crate::tasks::{by_channels, units_per_task};
use crate::{bias, gate, pooling, simd};

/// The weights of a layer on the means, `[outputs, inputs]`, and its bias.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a> {
    /// One row for each output.
    pub weight: &'a [f32],
    /// One value for each output.
    pub bias: &'a [f32],
}

/// The layer over `[batch, channels, plane]`.
#[derive(Clone, Copy, Debug)]
pub struct SqueezeExcite<'a> {
    /// Batch norm with the activation, which squeeze has too.
    pub layer: Layer<'a>,
    /// From the means of the channels.
    pub squeeze: Dense<'a>,
    /// To the gates of the channels, before the logistic function.
    pub excite: Dense<'a>,
}

/// What the gates were computed from, for [`gradients`] and [`repeat`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gates {
    /// `[batch, channels]`: means after the activation.
    pub means: Vec<f32>,
    /// `[batch, narrow]`: squeeze before its activation.
    pub squeezed: Vec<f32>,
    /// `[batch, channels]`: excite before the logistic function.
    pub excited: Vec<f32>,
}

/// The values of [`Gates`], wherever they are.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// See [`Gates::means`].
    pub means: &'a [f32],
    /// See [`Gates::squeezed`].
    pub squeezed: &'a [f32],
    /// See [`Gates::excited`].
    pub excited: &'a [f32],
}

impl Gates {
    /// What [`gradients`] needs.
    pub fn kept(&self) -> Kept<'_> {
        Kept { means: &self.means, squeezed: &self.squeezed, excited: &self.excited }
    }
}

/// Gradients of the parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterGradients {
    /// Of gamma and beta.
    pub norm: batch_norm::ParameterGradients,
    /// Of the weight and the bias of squeeze.
    pub squeeze: [Vec<f32>; 2],
    /// Of the weight and the bias of excite.
    pub excite: [Vec<f32>; 2],
}

impl SqueezeExcite<'_> {
    fn check(&self, x: &[f32], output: &[f32]) {
        self.layer.check(x, output);
        let (channels, narrow) = (self.layer.channels(), self.squeeze.bias.len());
        let lengths = [self.squeeze.weight.len(), self.excite.weight.len(), self.excite.bias.len()];
        assert_eq!(lengths, [narrow * channels, narrow * channels, channels], "lengths of weights and biases");
        assert!(!x.is_empty() && narrow > 0, "values, and a channel to squeeze to");
    }

    /// As convolutions of planes of one value: squeeze and excite.
    fn shapes(&self, batch: usize) -> [ConvShape; 2] {
        let (channels, narrow) = (self.layer.channels(), self.squeeze.bias.len());
        let of = |inputs, outputs| ConvShape {
            batch,
            inputs,
            outputs,
            size: [1; 3],
            kernel: [1; 3],
            stride: [1; 3],
            padding: [0; 3],
            groups: 1,
        };
        [of(channels, narrow), of(narrow, channels)]
    }

    fn gates(&self, means: Vec<f32>) -> Gates {
        let [squeeze, excite] = self.shapes(means.len() / self.layer.channels());
        let dense = |x: &[f32], layer: &Dense, shape: &ConvShape| {
            let mut y = vec![0.0; shape.batch * shape.outputs];
            conv::forward(x, layer.weight, Some(layer.bias), Activation::Identity, shape, &mut y);
            y
        };
        let squeezed = dense(&means, &self.squeeze, &squeeze);
        let excited = dense(&activated(self.layer.activation, &squeezed), &self.excite, &excite);
        Gates { means, squeezed, excited }
    }

    /// The gradients of the means, and of the weights and biases of both layers, from that of excite before the logistic function.
    fn of_gates(&self, kept: Kept, d_excited: &[f32]) -> (Vec<f32>, [[Vec<f32>; 2]; 2]) {
        let shapes = self.shapes(kept.means.len() / self.layer.channels());
        let pulled = |x: &[f32], layer: &Dense, shape: &ConvShape, dy: &[f32]| {
            let [mut dx, mut d_weight, mut d_bias] =
                [x.len(), layer.weight.len(), layer.bias.len()].map(|length| vec![0.0; length]);
            conv::gradients(x, layer.weight, dy, shape, Some(&mut dx), Some(&mut d_weight));
            bias::gradient(dy, shape.outputs, 1, &mut d_bias);
            (dx, [d_weight, d_bias])
        };
        let squeezed = activated(self.layer.activation, kept.squeezed);
        let (mut d_squeezed, of_excite) = pulled(&squeezed, &self.excite, &shapes[1], d_excited);
        activation::gradient(self.layer.activation, kept.squeezed, &mut d_squeezed);
        let (d_means, of_squeeze) = pulled(kept.means, &self.squeeze, &shapes[0], &d_squeezed);
        (d_means, [of_squeeze, of_excite])
    }
}

fn activated(activation: Activation, values: &[f32]) -> Vec<f32> {
    let mut values = values.to_vec();
    activation::in_place(activation, &mut values);
    values
}

/// Writes y; returns the statistics of `x` and what the gates were computed from.
///
/// # Panics
/// If the lengths do not fit together, or there are no values.
pub fn forward(x: &[f32], layer: &SqueezeExcite, epsilon: f64, y: &mut [f32]) -> (Statistics, Gates) {
    layer.check(x, y);
    let norm = &layer.layer;
    let (statistics, means) = if norm.plane < features::LIMIT {
        let statistics = batch_norm::forward(x, norm, epsilon, y);
        let mut means = vec![0.0; x.len() / norm.plane];
        pooling::average(y, norm.plane, &mut means);
        (statistics, means)
    } else {
        with_curve!(norm.activation, curve => measure(x, norm, epsilon, curve))
    };
    let gates = layer.gates(means);
    repeat(x, norm, statistics.applied(), &gates.excited, y);
    (statistics, gates)
}

/// As [`forward`] of the same `x`, with the same bits, from the [`Statistics`] and [`Gates::excited`] that it returned.
///
/// # Panics
/// If the lengths do not fit together.
pub fn repeat(x: &[f32], layer: &Layer, applied: Applied, excited: &[f32], y: &mut [f32]) {
    layer.check(x, y);
    let (plane, channels) = (layer.plane, layer.channels());
    assert_eq!(excited.len() * plane, x.len(), "a gate for every sample and channel");
    let gates = activated(Activation::Sigmoid, excited);
    if plane < features::LIMIT {
        batch_norm::repeat(x, layer, applied, y);
        return gate::forward_in_place(y, plane, &gates);
    }
    let planes = units_per_task(gates.len(), plane, PIECE);
    let inputs = x.par_chunks(planes * plane).zip(gates.par_chunks(planes));
    y.par_chunks_mut(planes * plane).zip(inputs).enumerate().for_each(|(task, (y, (x, gates)))| {
        for (index, (y, (x, &gate))) in y.chunks_exact_mut(plane).zip(x.chunks_exact(plane).zip(gates)).enumerate() {
            let affine = applied.of((task * planes + index) % channels);
            with_curve!(layer.activation, curve => simd::run(Gated { x, affine, curve, gate, y }));
        }
    });
}

/// Statistics of `x`, and the means of the planes after norm and activation: the values of a channel are in the cache when they are
/// read again.
fn measure<C: Curve>(x: &[f32], layer: &Layer, epsilon: f64, curve: C) -> (Statistics, Vec<f32>) {
    let (channels, plane) = (layer.channels(), layer.plane);
    let batch = x.len() / layer.sample();
    let group = units_per_task(channels, batch * plane, TASK);
    let mut measured = vec![Moments::default(); channels];
    let mut means = vec![0.0; batch * channels];
    let tasks = by_channels(&mut means, channels, 1, group).into_par_iter().zip(measured.par_chunks_mut(group));
    tasks.enumerate().for_each(|(task, (mut means, measured))| {
        for (index, measured) in measured.iter_mut().enumerate() {
            let channel = task * group + index;
            *measured = channel::measure(layer.planes(x, channel), epsilon);
            let affine = layer.affine(channel, measured, epsilon);
            for (means, x) in means.iter_mut().zip(layer.planes(x, channel)) {
                means[index] = (simd::run(Means { x, affine, curve }) / plane as f64) as f32;
            }
        }
    });
    (Statistics::from_moments(&measured, layer, epsilon), means)
}

/// Gradients of [`forward`]: `gradient` contains that of y on entry and that of `x` on exit. With `y`, if that is at hand, one pass less
/// computes h again.
///
/// # Panics
/// If the lengths do not fit together, or there are no values.
pub fn gradients(
    x: &[f32],
    layer: &SqueezeExcite,
    measured: (Normalisation, Applied),
    kept: Kept,
    y: Option<&[f32]>,
    gradient: &mut [f32],
) -> ParameterGradients {
    layer.check(x, gradient);
    let ((normalisation, applied), norm, plane) = (measured, &layer.layer, layer.layer.plane);
    let gates = activated(Activation::Sigmoid, kept.excited);
    let d_excited = match y {
        Some(y) => from_output(y, plane, kept.excited, gradient),
        None => from_input(x, norm, applied, kept.excited, gradient),
    };
    let (d_means, [squeeze, excite]) = layer.of_gates(kept, &d_excited);
    if plane < features::LIMIT {
        for ((gradient, gate), d_mean) in gradient.chunks_exact_mut(plane).zip(&gates).zip(d_means) {
            for gradient in gradient {
                *gradient = *gradient * gate + d_mean / plane as f32;
            }
        }
        let norm = batch_norm::gradients(x, norm, normalisation, gradient);
        return ParameterGradients { norm, squeeze, excite };
    }
    let scale_and_shift = |place: usize, values: &mut [f32]| {
        simd::run(ScaleAndShift { factor: gates[place], shift: d_means[place] / plane as f32, values });
    };
    let channels = norm.normalised_by(normalisation);
    let sums = with_curve!(norm.activation, curve => {
        backward_planes(x, plane, &channels, false, curve, gradient, scale_and_shift)
    });
    ParameterGradients { norm: batch_norm::ParameterGradients::from_sums(&sums), squeeze, excite }
}

/// The gradient of excite before the logistic function from the output: that of the logistic function p is p (1 - p), and the sum of the
/// products of y = h p and `dy` over the plane has the first factor already.
fn from_output(y: &[f32], plane: usize, excited: &[f32], dy: &[f32]) -> Vec<f32> {
    assert_eq!(y.len(), dy.len(), "lengths of output and gradient");
    let unchanged = Applied { mean: &[0.0], scale: &[1.0], shift: &[0.0] };
    let sums = of_factors(y, plane, unchanged, Identity, dy);
    let others: Vec<f32> = excited.iter().map(|&excited| -excited).collect();
    sums.into_iter().zip(activated(Activation::Sigmoid, &others)).map(|(sum, other)| sum * other).collect()
}

/// The same from the input.
fn from_input(x: &[f32], norm: &Layer, applied: Applied, excited: &[f32], dy: &[f32]) -> Vec<f32> {
    let mut d_gates = with_curve!(norm.activation, curve => of_factors(x, norm.plane, applied, curve, dy));
    activation::gradient(Activation::Sigmoid, excited, &mut d_gates);
    d_gates
}

/// The sum over each plane of the products of `dy` and `x` after norm and activation.
fn of_factors<C: Curve>(x: &[f32], plane: usize, applied: Applied, curve: C, dy: &[f32]) -> Vec<f32> {
    let channels = applied.mean.len();
    let mut sums = vec![0.0; x.len() / plane];
    let planes = units_per_task(sums.len(), plane, PIECE);
    let inputs = x.par_chunks(planes * plane).zip(dy.par_chunks(planes * plane));
    sums.par_chunks_mut(planes).zip(inputs).enumerate().for_each(|(task, (sums, (x, dy)))| {
        let planes_of_task = x.chunks_exact(plane).zip(dy.chunks_exact(plane));
        for (index, (sum, (x, dy))) in sums.iter_mut().zip(planes_of_task).enumerate() {
            let affine = applied.of((task * planes + index) % channels);
            *sum = simd::run(Products { x, affine, curve, dy }) as f32;
        }
    });
    sums
}

#[cfg(test)]
mod tests;
