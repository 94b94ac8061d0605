//! From the representation to one output per cut point (paper, Table A2: `Linear(64, 16)`, `Linear(16, n_class)`).
//!
//! The output layer may start at given logits: with the marginal distribution of the training part there, the first
//! epochs need not find it. It matters for the heads with a mass at time 0 (`pmf`, `deephit`): started at equal masses,
//! the little that is left there after a short training orders early events the wrong way round.
//!
//! Table A2 lists no activation anywhere; between the two layers stands a `ReLU`, without which they would be one.

use burn::module::Module;
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};

/// Two linear layers with a `ReLU` between them.
#[derive(Module, Debug)]
pub struct Classifier {
    hidden: Linear,
    output: Linear,
}

impl Classifier {
    /// Width of the hidden layer in the paper.
    pub const HIDDEN: usize = 16;

    /// Builds the layers; weights are still to be drawn.
    pub fn new(representation: usize, hidden: usize, n_intervals: usize, device: &Device) -> Self {
        let linear = |from, to| LinearConfig::new(from, to).with_initializer(Initializer::Zeros).init(device);
        Self { hidden: linear(representation, hidden), output: linear(hidden, n_intervals) }
    }

    /// The same layers with the output layer starting at `logits`, `[n_intervals]`.
    #[must_use]
    pub fn starting_at(mut self, logits: &[f64]) -> Self {
        self.output.bias = self.output.bias.map(|bias| {
            #[expect(clippy::cast_possible_truncation, reason = "biases are f32")]
            let values: Vec<f32> = logits.iter().map(|logit| *logit as f32).collect();
            let shape = [values.len()];
            bias.map(|old| {
                let start = Tensor::from_data(TensorData::new(values, shape), &old.device());
                start.set_require_grad(old.is_require_grad())
            })
        });
        self
    }

    /// Representation `[batch, representation]` -> logits `[batch, n_intervals]`.
    pub fn forward(&self, representation: Tensor<2>) -> Tensor<2> {
        self.output.forward(relu(self.hidden.forward(representation)))
    }
}
