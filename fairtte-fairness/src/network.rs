//! Steps 6 and 7 in one module: encoder and classifier.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use fairtte_models::{Batch, EncoderConfig, ImageEncoder, Noise, initialise};
use fairtte_survival::Classifier;
use rand_chacha::ChaCha8Rng;

use crate::FairnessError;
use crate::pretrained::{FromFile, Pretrained};

/// Everything that fixes the shape of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSpec {
    /// Backbone, length of the representation, dropout.
    pub encoder: EncoderConfig,
    /// Input channels.
    pub channels: usize,
    /// Number of cut points.
    pub n_intervals: usize,
    /// Logits at which the output layer starts, `[n_intervals]`; 0 if not given.
    pub output_bias: Option<Vec<f64>>,
}

/// Pixels to logits.
#[derive(Module, Debug)]
pub struct SurvivalNetwork {
    encoder: ImageEncoder,
    classifier: Classifier,
}

/// What one forward pass gives.
#[derive(Clone, Debug)]
pub struct Forward {
    /// What the classifier reads, `[batch, representation]`.
    pub representation: Tensor<2>,
    /// One output per cut point, `[batch, n_intervals]`.
    pub logits: Tensor<2>,
}

impl SurvivalNetwork {
    /// Builds the network and draws its weights from `stream`.
    pub fn new(spec: &NetworkSpec, stream: ChaCha8Rng, device: &Device) -> Self {
        let encoder = spec.encoder.build(spec.channels, device);
        let classifier = Classifier::new(spec.encoder.n_representation(), Classifier::HIDDEN, spec.n_intervals, device);
        let classifier = match &spec.output_bias {
            Some(logits) => classifier.starting_at(logits),
            None => classifier,
        };
        initialise(Self { encoder, classifier }, stream)
    }

    /// The same network with its backbone's weights from a file, and what came from there.
    ///
    /// # Errors
    /// As [`Pretrained::load`].
    pub(crate) fn with_pretrained(self, pretrained: &Pretrained) -> Result<(Self, FromFile), FairnessError> {
        let (encoder, from_file) = pretrained.load(self.encoder)?;
        Ok((Self { encoder, ..self }, from_file))
    }

    /// The same network with the weights that stay cut off from gradients.
    pub(crate) fn frozen(self, from_file: &FromFile) -> Self {
        Self { encoder: from_file.frozen(self.encoder), ..self }
    }

    pub(crate) fn encoder(&self) -> &ImageEncoder {
        &self.encoder
    }

    /// Feeds the pixels of `batch`.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read them.
    pub fn forward(&self, batch: &Batch, noise: &mut Noise) -> Result<Forward, FairnessError> {
        let representation = self.encoder.forward(batch.pixels.clone(), noise)?;
        Ok(Forward { logits: self.classifier.forward(representation.clone()), representation })
    }
}
