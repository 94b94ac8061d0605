//! One survival network with its optimiser: the building block of the strategies.

use std::path::Path;

use crate::Batch;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use fairtte_data::write_atomically;
use fairtte_metrics::seeds::stream;
use fairtte_models::{ImageEncoder, Noise, initialise};
use fairtte_survival::{Baseline, SurvivalError};
use ndarray::Array2;
use rand_chacha::ChaCha8Rng;

use crate::FairnessError;
use crate::explain::Traced;
use crate::export::Export;
use crate::network::{Forward, NetworkSpec, SurvivalNetwork, on_host};
use crate::predict::{CurveRule, EvaluationPart, fit_baseline, survival};
use crate::pretrained::{FromFile, Pretrained};
use crate::strategies::{Saved, StepContext};
use crate::trainable::{Descent, OptimiserConfig, Trainable, read};

/// What a strategy needs to build its networks.
#[derive(Clone, Debug)]
pub struct LearnerSpec {
    /// Shape of the network.
    pub network: NetworkSpec,
    /// Settings of its optimiser.
    pub optimiser: OptimiserConfig,
    /// Seed of the run; each network draws its weights from a stream of its own name.
    pub seed: u64,
    /// Device without autodiff.
    pub device: Device,
    /// Initial weights of the backbone, in place of randomly drawn ones.
    pub pretrained: Option<Pretrained>,
}

impl LearnerSpec {
    /// The stream from which the weights of network `name` are drawn.
    pub fn weights(&self, name: &str) -> ChaCha8Rng {
        stream(self.seed, &format!("weights/{name}"), &[])
    }

    /// Checks the settings of network and optimiser.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] or [`FairnessError::Model`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        self.optimiser.validate()?;
        Ok(self.network.encoder.validate()?)
    }
}

/// A network whose encoder can be initialised with the weights of a file.
pub trait EncoderNetwork: Module {
    /// The part up to the representation.
    fn encoder(&self) -> &ImageEncoder;

    /// The same network with another encoder.
    #[must_use]
    fn with_encoder(self, encoder: ImageEncoder) -> Self;

    /// What the classifier reads, without dropout, `[batch, n_features]`. Call it on `valid()` of a network.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read the batch.
    fn representation(&self, batch: &Batch) -> Result<Tensor<2>, FairnessError> {
        Ok(self.encoder().before_dropout(batch.pixels.clone(), &mut Noise::Off)?)
    }
}

/// A network that predicts alone: its outputs are the input of the head.
pub trait PredictingNetwork: EncoderNetwork {
    /// Input of the head in evaluation mode, `[batch, n_outputs]` or one column per query time. Call it on `valid()` of a
    /// network, or on a frozen one for outputs in the graph of the pixels.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read the batch.
    fn evaluated(&self, batch: &Batch, query: &[f64]) -> Result<Tensor<2>, FairnessError>;

    /// What prediction needs of the network and its baseline.
    ///
    /// # Errors
    /// [`FairnessError::Model`] for a parameter without a name outside this program.
    fn export(&self, baseline: Option<&Baseline>) -> Result<Export, FairnessError>;
}

/// A network and its optimiser, with the baseline hazard that belongs to its weights if the head needs one.
pub struct Learner<N = SurvivalNetwork> {
    trainable: Trainable<N>,
    baseline: Option<Baseline>,
    from_file: Option<FromFile>,
}

impl<N> std::fmt::Debug for Learner<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Learner").field("trainable", &self.trainable).finish_non_exhaustive()
    }
}

impl<N: EncoderNetwork> Learner<N> {
    /// Combines an optimiser and a network with freshly drawn weights, whose encoder takes the weights of the file if
    /// there is one.
    ///
    /// # Errors
    /// As [`LearnerSpec::validate`]; [`FairnessError::Model`] if the weights of the file do not fit.
    pub fn with_network(spec: &LearnerSpec, drawn: impl FnOnce(&Device) -> N) -> Result<Self, FairnessError> {
        spec.validate()?;
        let mut network = drawn(&spec.device.clone().autodiff());
        let mut from_file = None;
        if let Some(pretrained) = &spec.pretrained {
            let (encoder, from) = pretrained.load(network.encoder().clone())?;
            network = network.with_encoder(encoder);
            from_file = Some(from);
        }
        Ok(Self { trainable: Trainable::new(network, &spec.optimiser), baseline: None, from_file })
    }

    /// The network with its present weights, on the device with autodiff.
    pub fn network(&self) -> &N {
        self.trainable.module()
    }

    /// Replaces the network.
    pub fn replace(&mut self, network: N) {
        self.trainable.replace(network);
    }

    /// Gradients of `loss` (`[1]`) for the parameters of this network.
    pub fn gradients(&self, loss: &Tensor<1>, context: &StepContext<'_>) -> GradientsParams {
        self.trainable.gradients(loss, context)
    }

    /// Gradients of `loss` (`[1]`) with its value and their norm; the weights stay.
    pub(crate) fn gradients_reading(
        &self,
        loss: &Tensor<1>,
        context: &StepContext<'_>,
    ) -> Result<(GradientsParams, Descent), FairnessError> {
        self.trainable.gradients_reading(loss, &[], context)
    }

    /// Makes one step along `gradients` and returns their norm before clipping.
    ///
    /// # Errors
    /// As [`Trainable::update`].
    pub fn update(&mut self, gradients: GradientsParams, context: &StepContext<'_>) -> Result<f64, FairnessError> {
        let apart = two_rates(self.from_file.as_ref());
        self.trainable.update_apart(gradients, context, apart)
    }

    /// Makes one optimiser step down the gradient of `loss` (`[1]`) and returns the gradient norm before clipping.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] if the loss or its gradient is not finite; the weights are then unchanged.
    pub fn descend(&mut self, loss: &Tensor<1>, context: &StepContext<'_>) -> Result<f64, FairnessError> {
        Ok(self.descend_reading(loss, &[], context)?.norm)
    }

    /// As [`descend`](Self::descend); the values `also` (`[1]` each) are read to the host in the same transfer.
    ///
    /// # Errors
    /// As [`descend`](Self::descend); also if one of these values is not finite.
    pub fn descend_reading(
        &mut self,
        loss: &Tensor<1>,
        also: &[Tensor<1>],
        context: &StepContext<'_>,
    ) -> Result<Descent, FairnessError> {
        let apart = two_rates(self.from_file.as_ref());
        self.trainable.descend_reading(loss, also, context, apart)
    }

    /// Curves from the `outputs` of a frozen network at query times, which stay in the graph of its inputs.
    ///
    /// # Errors
    /// [`FairnessError::Survival`] if the head needs a baseline and none was fitted; those of `outputs`.
    pub(crate) fn traced_by<'a>(
        &'a self,
        rule: &CurveRule<'_>,
        outputs: impl FnOnce(&[f64]) -> Result<Tensor<2>, FairnessError>,
    ) -> Result<Traced<'a>, FairnessError> {
        self.require_baseline(rule)?;
        let outputs = outputs(self.baseline.as_ref().map_or(&[][..], Baseline::times))?;
        let curves = |values: &[Array2<f32>], rule: &CurveRule<'_>| {
            Ok(rule.head.survival(values[0].view(), rule.grid, self.baseline.as_ref())?)
        };
        Ok(Traced::new(vec![outputs], curves))
    }

    /// Survival from the `outputs` of a network in evaluation mode at query times, `[batch, n_times]`.
    ///
    /// # Errors
    /// As [`traced_by`](Self::traced_by).
    pub(crate) fn survival_by(
        &self,
        rule: &CurveRule<'_>,
        outputs: impl FnOnce(&[f64]) -> Result<Array2<f32>, FairnessError>,
    ) -> Result<Array2<f64>, FairnessError> {
        self.require_baseline(rule)?;
        survival(rule, self.baseline.as_ref(), outputs)
    }

    fn require_baseline(&self, rule: &CurveRule<'_>) -> Result<(), FairnessError> {
        if rule.head.needs_baseline() && self.baseline.is_none() {
            return Err(SurvivalError::NoBaseline { head: rule.head.name() }.into());
        }
        Ok(())
    }

    /// The baseline that was fitted for the present weights.
    pub fn baseline(&self) -> Option<&Baseline> {
        self.baseline.as_ref()
    }

    /// Draws all weights of rank 2 and above afresh; norms, biases and the baseline stay.
    pub fn randomise(&mut self, stream: ChaCha8Rng) {
        let network = self.trainable.module().clone();
        self.trainable.replace(initialise(network, stream));
    }

    /// Keeps the baseline that was fitted for the present weights.
    pub fn set_baseline(&mut self, baseline: Option<Baseline>) {
        self.baseline = baseline;
    }

    /// Writes `<name>.weights.bpk`, `<name>.baseline.json` if there is a baseline and, for [`Saved::Everything`],
    /// `<name>.optimiser.bpk` into `folder`.
    ///
    /// # Errors
    /// [`FairnessError::Data`] if a file cannot be written.
    pub fn save(&self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        self.trainable.save(folder, name, what)?;
        if let Some(baseline) = &self.baseline {
            let path = folder.join(format!("{name}.baseline.json"));
            write_atomically(&path, |file| Ok(serde_json::to_writer(file, baseline)?))?;
        }
        Ok(())
    }

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// [`FairnessError::Checkpoint`] naming the file if it cannot be read or does not fit this network.
    pub fn load(&mut self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        self.trainable.load(folder, name, what)?;
        if let Some(from_file) = &self.from_file {
            let network = self.trainable.module().clone();
            let encoder = from_file.frozen(network.encoder().clone()); // a record does not store what is frozen
            self.trainable.replace(network.with_encoder(encoder));
        }
        let path = folder.join(format!("{name}.baseline.json"));
        self.baseline = if path.exists() {
            let unusable =
                |e: serde_json::Error| FairnessError::Checkpoint { path: path.clone(), reason: e.to_string() };
            Some(serde_json::from_slice(&read(&path)?).map_err(unusable)?)
        } else {
            None
        };
        Ok(())
    }
}

/// Separates the gradients of the weights from the file, if the other weights have their own step size.
fn two_rates<N: EncoderNetwork>(
    from_file: Option<&FromFile>,
) -> impl FnOnce(&N, &mut GradientsParams) -> Option<(GradientsParams, f64)> {
    let apart = from_file.and_then(|from_file| Some((from_file.clone(), from_file.head_learning_rate?)));
    move |network, gradients| {
        let (from_file, head_rate) = apart?;
        Some((from_file.split(network.encoder(), network, gradients), head_rate))
    }
}

impl Learner {
    /// Builds the network `name` with freshly drawn weights.
    ///
    /// # Errors
    /// As [`with_network`](Self::with_network).
    pub fn new(spec: &LearnerSpec, name: &str) -> Result<Self, FairnessError> {
        Self::with_network(spec, |device| SurvivalNetwork::new(&spec.network, spec.weights(name), device))
    }

    /// Training pass with dropout from `noise`; `query` are the times of a head that reads times
    /// ([`StepContext::query_times`]).
    ///
    /// # Errors
    /// As [`SurvivalNetwork::forward`].
    pub fn forward(&self, batch: &Batch, query: &[f64], noise: &mut Noise) -> Result<Forward, FairnessError> {
        self.network().forward(batch, query, noise)
    }
}

impl<N: PredictingNetwork> Learner<N> {
    /// Survival in evaluation mode, `[batch, n_times]`; `batch` is on the device without autodiff.
    ///
    /// # Errors
    /// As [`PredictingNetwork::evaluated`]; [`FairnessError::Survival`] if the head needs a baseline and none was fitted.
    pub fn survival(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        let network = self.network().valid();
        self.survival_by(rule, |query| Ok(on_host(network.evaluated(batch, query)?)))
    }

    /// As [`survival`](Self::survival) on a batch on a device with autodiff, with the outputs in the graph of its pixels.
    ///
    /// # Errors
    /// As [`survival`](Self::survival).
    pub fn traced<'a>(&'a self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Traced<'a>, FairnessError> {
        let network = self.network().clone().freeze();
        self.traced_by(rule, |query| network.evaluated(batch, query))
    }

    /// What prediction needs of the network and its baseline.
    ///
    /// # Errors
    /// [`FairnessError::Model`] for a parameter without a name outside this program.
    pub fn export(&self) -> Result<Export, FairnessError> {
        self.network().export(self.baseline())
    }

    /// Fits the baseline for the present weights, in evaluation mode; nothing to do for heads without one.
    /// Cost: one pass over the training part.
    ///
    /// # Errors
    /// As [`PredictingNetwork::evaluated`]; [`FairnessError::Survival`] if an output is not finite.
    pub fn fit_baseline(&mut self, part: &EvaluationPart<'_>) -> Result<(), FairnessError> {
        let network = self.network().valid();
        self.baseline = fit_baseline(part, |batch, query| Ok(on_host(network.evaluated(batch, query)?)))?;
        Ok(())
    }
}
