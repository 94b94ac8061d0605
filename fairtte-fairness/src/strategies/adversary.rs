//! The second network of the adversarial strategies: it maps a representation to one output per group.
//!
//! `Linear(n_inputs, width)`, an activation, `Linear(width, n_groups)`. Weights are uniform on +-1/sqrt(`fan_in`) from the
//! stream `weights/NAME` of the run, biases start at 0. Its input is that of the classifier, after dropout.

use burn::module::Module;
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::activation::{leaky_relu, log_softmax, relu};
use burn::tensor::{Device, Tensor};
use fairtte_metrics::GroupId;
use fairtte_models::initialise;
use rand_chacha::ChaCha8Rng;

use super::batch_cells::BatchCells;
use super::numbers::constant;
use super::{Idle, Warns, Watch};
use crate::trainable::Trainable;
use crate::{LearnerSpec, OptimiserConfig};

/// The activation between the two layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// max(x, 0).
    Relu,
    /// max(x, 0.2 x): the slope of `TensorFlow`'s `leaky_relu`, which the code of Madras et al. uses.
    LeakyRelu,
}

/// Shape of an adversary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdversarySpec {
    /// Length of its input.
    pub n_inputs: usize,
    /// Width of its hidden layer.
    pub width: usize,
    /// Activation after the hidden layer.
    pub activation: Activation,
    /// Number of groups.
    pub n_groups: usize,
}

/// A network that predicts the group.
#[derive(Module, Debug)]
pub struct Adversary {
    hidden: Linear,
    output: Linear,
    #[module(skip)]
    activation: Activation,
}

impl AdversarySpec {
    /// The network `name`, with its own stream of weights and Adam with its own step size: no weight decay, clipping as for
    /// the network that predicts.
    pub(crate) fn trainable(&self, spec: &LearnerSpec, name: &str, learning_rate: f64) -> Trainable<Adversary> {
        let adversary = Adversary::drawn(self, spec.weights(name), &spec.device.clone().autodiff());
        let gradient_clip = spec.optimiser.gradient_clip;
        Trainable::new(adversary, &OptimiserConfig { learning_rate, weight_decay: 0.0, gradient_clip })
    }
}

impl Adversary {
    /// Builds the network and draws its weights from `stream`.
    pub fn drawn(spec: &AdversarySpec, stream: ChaCha8Rng, device: &Device) -> Self {
        let linear = |from, to| LinearConfig::new(from, to).with_initializer(Initializer::Zeros).init(device);
        let AdversarySpec { n_inputs, width, activation, n_groups } = *spec;
        initialise(Self { hidden: linear(n_inputs, width), output: linear(width, n_groups), activation }, stream)
    }

    /// Inputs `[n, n_inputs]` -> logits `[n, n_groups]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let hidden = self.hidden.forward(x);
        self.output.forward(match self.activation {
            Activation::Relu => relu(hidden),
            Activation::LeakyRelu => leaky_relu(hidden, 0.2),
        })
    }
}

/// Mean cross-entropy of the samples in a cell: logits `[batch, n_groups]` -> `[1]`.
pub(crate) fn cross_entropy(logits: Tensor<2>, cells: &BatchCells) -> Tensor<1> {
    let own = cells.own(log_softmax(logits, 1)); // [batch]
    mean_over_cells(own.neg(), cells)
}

/// Mean of sum over groups of p log p over the samples in a cell: logits `[batch, n_groups]` -> `[1]`, from -ln(`n_groups`)
/// (no information on the group) to 0 (certain).
pub(crate) fn negative_entropy(logits: Tensor<2>, cells: &BatchCells) -> Tensor<1> {
    let log = log_softmax(logits, 1);
    let of_sample = (log.clone().exp() * log).sum_dim(1).flatten(0, 1); // [batch]
    mean_over_cells(of_sample, cells)
}

/// The position of a cross-entropy between that of the best constant guess (0) and certainty (1); negative if it is worse
/// than the guess.
pub(crate) fn advantage(cross_entropy: f64, of_guess: f64) -> f64 {
    1.0 - cross_entropy / of_guess
}

/// Mean over the samples of a batch that have a group of -log of its `shares`: the cross-entropy of a guess by these
/// shares.
pub(crate) fn guess(groups: &[Option<GroupId>], shares: &[f64]) -> f64 {
    let known: Vec<f64> = groups.iter().flatten().map(|group| -shares[group.index()].ln()).collect();
    known.iter().sum::<f64>() / known.len().max(1) as f64
}

/// The mean advantage over an epoch below which an adversary counts as no better than guessing.
pub(crate) const NO_ADVANTAGE: f64 = 0.02;

/// The watch on an adversary whose advantage is the term `term`.
pub(crate) fn idle_adversary(term: &str, means: &'static str, change: &'static str) -> Watch {
    let (terms, idle) = (vec![term.to_owned()], Idle::Below(NO_ADVANTAGE));
    Watch { name: "idle-adversary", terms, idle, warns: Warns::Throughout, means, change }
}

/// Every sample in a cell has weight 1/n. (Not a division of the sum by n: burn 0.22.1 rounds the divisor's inverse to `f32` in
/// the backward pass, which the worked cases in `f64` show.)
fn mean_over_cells(of_sample: Tensor<1>, cells: &BatchCells) -> Tensor<1> {
    let n = cells.coefficients(|_, _| 1.0).iter().sum::<f64>().max(1.0);
    let shares = cells.coefficients(|_, _| 1.0 / n);
    let shares = constant(shares, of_sample.dims(), &of_sample);
    (of_sample * shares).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advantage_is_counted_from_the_guess_by_shares() {
        let groups = [Some(GroupId(0)), None, Some(GroupId(1)), Some(GroupId(1))];
        let of_guess = guess(&groups, &[0.25, 0.75]);
        assert!((of_guess + (0.25_f64.ln() + 2.0 * 0.75_f64.ln()) / 3.0).abs() < 1e-15, "{of_guess}");
        assert!(guess(&[None], &[0.25, 0.75]).abs() <= 0.0);
        for (of_adversary, expected) in [(0.0, 1.0), (0.5, 0.0), (0.125, 0.75), (1.0, -1.0)] {
            assert!((advantage(of_adversary, 0.5) - expected).abs() < 1e-15, "{of_adversary}");
        }
    }
}
