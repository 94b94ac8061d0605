//! The network with two codes, their priors and their distances.

use burn::module::Module;
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use fairtte_models::{ImageEncoder, Noise, initialise};
use fairtte_survival::{Baseline, Classifier};

use crate::strategies::NETWORK;
use crate::strategies::numbers::constant;
use crate::{Batch, EncoderNetwork, Export, FairnessError, LearnerSpec, PredictingNetwork};

/// The network that maps pixels to two codes, and the target code to the input of a head.
#[derive(Module, Debug)]
pub struct OdrNetwork {
    pub(super) encoder: ImageEncoder,
    pub(super) classifier: Classifier,
    pub(super) target: CodeLayers,
    pub(super) sensitive: CodeLayers,
}

/// The layers that map a representation to the parameters of a code.
#[derive(Module, Debug)]
pub(super) struct CodeLayers {
    mean: Linear,
    log_var: Linear,
}

impl CodeLayers {
    pub(super) fn forward(&self, representation: Tensor<2>) -> Code {
        Code { mean: self.mean.forward(representation.clone()), log_var: self.log_var.forward(representation) }
    }
}

impl EncoderNetwork for OdrNetwork {
    fn encoder(&self) -> &ImageEncoder {
        &self.encoder
    }

    fn with_encoder(self, encoder: ImageEncoder) -> Self {
        Self { encoder, ..self }
    }

    fn representation(&self, batch: &Batch) -> Result<Tensor<2>, FairnessError> {
        self.target_mean(batch)
    }
}

impl PredictingNetwork for OdrNetwork {
    fn evaluated(&self, batch: &Batch, query: &[f64]) -> Result<Tensor<2>, FairnessError> {
        Ok(self.classifier.forward(self.target_mean(batch)?, query))
    }

    fn export(&self, baseline: Option<&Baseline>) -> Result<Export, FairnessError> {
        let Self { encoder, classifier, target, .. } = &self.valid();
        Export::of_code(encoder, &target.mean, classifier, baseline)
    }
}

impl OdrNetwork {
    pub(super) fn drawn(spec: &LearnerSpec, code: usize, device: &Device) -> Self {
        let representation = spec.network.encoder.n_representation();
        let linear = || LinearConfig::new(representation, code).with_initializer(Initializer::Zeros).init(device);
        let layers = || CodeLayers { mean: linear(), log_var: linear() };
        let network = Self {
            encoder: spec.network.encoder.build(spec.network.channels, device),
            classifier: Classifier::new(&spec.network.classifier, code, device),
            target: layers(),
            sensitive: layers(),
        };
        initialise(network, spec.weights(NETWORK))
    }

    /// Mean of the target code, which the head reads in evaluation, `[batch, code]`. Call it on `valid()` of a network.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read the pixels.
    pub fn target_mean(&self, batch: &Batch) -> Result<Tensor<2>, FairnessError> {
        let representation = self.encoder.forward(batch.pixels.clone(), &mut Noise::Off)?;
        Ok(self.target.forward(representation).value(None))
    }
}

/// Means of the priors of target and sensitive code: (0 .. 0, 1 .. 1) and (1 .. 1, 0 .. 0), which are orthogonal.
pub(super) fn prior_means(code: usize) -> [Vec<f64>; 2] {
    let first_half = |i: usize| i < code / 2;
    [(0..code).map(|i| f64::from(!first_half(i))).collect(), (0..code).map(|i| f64::from(first_half(i))).collect()]
}

/// A normal distribution for every sample, `[batch, code]` each.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) mean: Tensor<2>,
    pub(super) log_var: Tensor<2>,
}

impl Code {
    /// A draw in training, mean + exp(`log_var` / 2) noise entry by entry; the mean without noise.
    pub(super) fn value(&self, noise: Option<Tensor<2>>) -> Tensor<2> {
        let mean = self.mean.clone();
        match noise {
            Some(noise) => mean + (self.log_var.clone() / 2.0).exp() * noise,
            None => mean,
        }
    }

    /// KL(N(mean, exp(`log_var`)) || N(`prior_mean`, 1)) of every sample, `[batch]`:
    /// 1/2 sum over the code of exp(`log_var`) + (mean - `prior_mean`)^2 - 1 - `log_var`.
    pub(super) fn kl_to(&self, prior_mean: &[f64]) -> Tensor<1> {
        let prior = constant(prior_mean.to_vec(), [1, prior_mean.len()], &self.mean);
        let log_var = self.log_var.clone();
        let of_entry = log_var.clone().exp() + (self.mean.clone() - prior).square() - 1.0 - log_var;
        of_entry.sum_dim(1).flatten(0, 1) / 2.0
    }
}
