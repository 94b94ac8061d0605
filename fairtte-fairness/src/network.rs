//! Steps 6 and 7 in one module: encoder and classifier.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use fairtte_models::{Batch, EncoderConfig, ImageEncoder, Noise, initialise};
use fairtte_survival::{Classifier, ClassifierConfig};
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
    /// Shape and start of the layers that the head reads (`ClassifierConfig::for_head`).
    pub classifier: ClassifierConfig,
}

/// Pixels to what a head reads.
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
    /// What the head reads: `[batch, n_outputs]`, or one column per query time.
    pub outputs: Tensor<2>,
}

impl SurvivalNetwork {
    /// Builds the network and draws its weights from `stream`.
    pub fn new(spec: &NetworkSpec, stream: ChaCha8Rng, device: &Device) -> Self {
        let encoder = spec.encoder.build(spec.channels, device);
        let classifier = Classifier::new(&spec.classifier, spec.encoder.n_representation(), device);
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

    /// Feeds the pixels of `batch`; `query` are the times (in the unit of the cohort) of a head that reads times, empty for
    /// the others.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read them.
    pub fn forward(&self, batch: &Batch, query: &[f64], noise: &mut Noise) -> Result<Forward, FairnessError> {
        let representation = self.encoder.forward(batch.pixels.clone(), noise)?;
        Ok(Forward { outputs: self.classifier.forward(representation.clone(), query), representation })
    }
}
