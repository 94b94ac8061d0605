//! Steps 6 and 7 in one module: encoder and classifier, or of masks the decoder of a U-Net.
//!
//! The representation of a network of masks is the mean over space of the smallest map, the pooled bottleneck: what methods that act
//! on representations read. The decoder reads the maps themselves.

use crate::Batch;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use fairtte_models::{EncoderConfig, ImageEncoder, Noise, UnetDecoder, initialise};
use fairtte_survival::{Baseline, Classifier, ClassifierConfig};
use ndarray::Array2;
use rand_chacha::ChaCha8Rng;

use crate::FairnessError;
use crate::export::Export;
use crate::learner::{EncoderNetwork, PredictingNetwork};

/// The configuration that determines the shape of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSpec {
    /// Backbone, length of the representation, dropout.
    pub encoder: EncoderConfig,
    /// Input channels.
    pub channels: usize,
    /// Shape and start of the layers that the head reads (`ClassifierConfig::for_head`).
    pub classifier: ClassifierConfig,
}

/// The network that maps pixels to the input of a head: an encoder with a classifier, or with a decoder of masks.
#[derive(Module, Debug)]
pub struct SurvivalNetwork {
    encoder: ImageEncoder,
    /// From the representation; `None` of a network of masks. No enum, so that the names of the tensors do not tell of masks.
    classifier: Option<Classifier>,
    /// From the maps of the backbone; `None` of every other network.
    decoder: Option<UnetDecoder>,
}

/// The result of one forward pass.
#[derive(Clone, Debug)]
pub struct Forward {
    /// [`representation`](Self::representation) before its dropout.
    pub before_dropout: Tensor<2>,
    /// Input of the classifier, `[batch, representation]`.
    pub representation: Tensor<2>,
    /// Input of the head: `[batch, n_outputs]`, one column per query time, or of masks `[batch, n_classes n_pixels]`.
    pub outputs: Tensor<2>,
}

impl SurvivalNetwork {
    /// Builds the network and draws its weights from `stream`.
    pub fn new(spec: &NetworkSpec, stream: ChaCha8Rng, device: &Device) -> Self {
        let encoder = spec.encoder.build(spec.channels, device);
        let classifier = || Classifier::new(&spec.classifier, spec.encoder.n_representation(), device);
        let decoder = spec.classifier.pixel_classes.map(|n_classes| UnetDecoder::new(n_classes, device));
        let classifier = decoder.is_none().then(classifier);
        initialise(Self { encoder, classifier, decoder }, stream)
    }

    /// Feeds the pixels of `batch`; `query` are the times (in the unit of the cohort) of a head that reads times, empty for
    /// the others.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read them.
    pub fn forward(&self, batch: &Batch, query: &[f64], noise: &mut Noise) -> Result<Forward, FairnessError> {
        let (before_dropout, maps) = if self.decoder.is_some() {
            let (representation, maps) = self.encoder.with_maps(batch.pixels.clone())?;
            (representation, Some(maps))
        } else {
            (self.encoder.before_dropout(batch.pixels.clone(), noise)?, None)
        };
        let representation = self.encoder.dropped(before_dropout.clone(), noise);
        let outputs = match (&self.decoder, maps, &self.classifier) {
            (Some(decoder), Some(maps), _) => decoder.forward(maps).flatten(1, 3),
            (_, _, Some(classifier)) => classifier.forward(representation.clone(), query),
            _ => unreachable!("a network has a classifier or a decoder"),
        };
        Ok(Forward { before_dropout, representation, outputs })
    }

    /// The layers from the representation to the outputs; `None` of a network of masks.
    pub fn classifier(&self) -> Option<&Classifier> {
        self.classifier.as_ref()
    }

    /// Outputs in evaluation mode, `[batch, n_outputs]` or one column per query time. Call it on `valid()` of a network.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn outputs(&self, batch: &Batch, query: &[f64]) -> Result<Array2<f32>, FairnessError> {
        Ok(on_host(self.evaluated(batch, query)?))
    }
}

impl EncoderNetwork for SurvivalNetwork {
    fn encoder(&self) -> &ImageEncoder {
        &self.encoder
    }

    fn with_encoder(self, encoder: ImageEncoder) -> Self {
        Self { encoder, ..self }
    }
}

impl PredictingNetwork for SurvivalNetwork {
    fn evaluated(&self, batch: &Batch, query: &[f64]) -> Result<Tensor<2>, FairnessError> {
        Ok(self.forward(batch, query, &mut Noise::Off)?.outputs)
    }

    fn export(&self, baseline: Option<&Baseline>) -> Result<Export, FairnessError> {
        Export::of_network(self, baseline)
    }
}

/// The values of `outputs`, `[batch, n]`, in host memory.
pub(crate) fn on_host(outputs: Tensor<2>) -> Array2<f32> {
    let shape = outputs.dims();
    let values = outputs.into_data().iter::<f32>().collect();
    Array2::from_shape_vec(shape, values).expect("a tensor fills its shape")
}
