//! From the representation to one output per cut point (paper, Table A2: `Linear(64, 16)`, `Linear(16, n_class)`).
//!
//! Table A2 lists no activation anywhere; between the two layers stands a `ReLU`, without which they would be one.

use burn::module::Module;
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

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

    /// Representation `[batch, representation]` -> logits `[batch, n_intervals]`.
    pub fn forward(&self, representation: Tensor<2>) -> Tensor<2> {
        self.output.forward(relu(self.hidden.forward(representation)))
    }
}
