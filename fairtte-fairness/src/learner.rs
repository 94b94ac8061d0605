//! One network with its optimiser: the piece from which strategies are put together.

use std::path::Path;

use burn::module::Module as _;
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Device, Tensor};
use fairtte_data::write_atomically;
use fairtte_metrics::seeds::stream;
use fairtte_models::{Batch, Noise};
use fairtte_survival::{Baseline, SurvivalError};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::gradients::clip_by_global_norm;
use crate::network::{Forward, NetworkSpec, SurvivalNetwork};
use crate::predict::{CurveRule, TrainingPart};
use crate::pretrained::{FromFile, Pretrained};
use crate::strategies::{Saved, StepContext};
use crate::{FairnessError, check};

/// Settings of `AdamW` (Loshchilov & Hutter 2019; betas 0.9 and 0.999, epsilon 1e-8).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OptimiserConfig {
    /// Step size, above 0. The paper searches 1e-4 to 1e-3.
    pub learning_rate: f64,
    /// Decoupled weight decay, at least 0. The paper searches 1e-6 to 1e-4.
    pub weight_decay: f64,
    /// Largest joint L2 norm of all gradients; 0 = no clipping.
    pub gradient_clip: f64,
}

impl Default for OptimiserConfig {
    fn default() -> Self {
        Self { learning_rate: 1e-3, weight_decay: 1e-5, gradient_clip: 5.0 }
    }
}

impl OptimiserConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        let Self { learning_rate, weight_decay, gradient_clip } = *self;
        let positive = learning_rate > 0.0 && learning_rate.is_finite();
        check("optimiser.learning-rate", learning_rate, positive, "a finite number > 0")?;
        let not_negative = |x: f64| x >= 0.0 && x.is_finite();
        check("optimiser.weight-decay", weight_decay, not_negative(weight_decay), "a finite number >= 0")?;
        check("optimiser.gradient-clip", gradient_clip, not_negative(gradient_clip), "a finite number >= 0 (0 = off)")
    }
}

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
    /// Weights that the backbone begins with, in place of drawn ones.
    pub pretrained: Option<Pretrained>,
}

/// A network and its optimiser, with the baseline hazard that belongs to its weights if the head needs one.
pub struct Learner {
    network: SurvivalNetwork,
    baseline: Option<Baseline>,
    optimiser: ModuleOptimizer,
    config: OptimiserConfig,
    from_file: Option<FromFile>,
}

impl std::fmt::Debug for Learner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Learner").field("config", &self.config).finish_non_exhaustive() // the optimiser has no Debug
    }
}

impl Learner {
    /// Builds the network `name` with freshly drawn weights.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] or [`FairnessError::Model`] if a setting is outside its range.
    pub fn new(spec: &LearnerSpec, name: &str) -> Result<Self, FairnessError> {
        spec.optimiser.validate()?;
        spec.network.encoder.validate()?;
        let device = spec.device.clone().autodiff();
        let weights = stream(spec.seed, &format!("weights/{name}"), &[]);
        let drawn = SurvivalNetwork::new(&spec.network, weights, &device);
        let (network, from_file) = match &spec.pretrained {
            Some(pretrained) => drawn.with_pretrained(pretrained).map(|(network, from)| (network, Some(from)))?,
            None => (drawn, None),
        };
        let (optimiser, config) = (adamw(&spec.optimiser), spec.optimiser);
        Ok(Self { network, baseline: None, optimiser, config, from_file })
    }

    #[cfg(test)]
    pub(crate) fn network(&self) -> &SurvivalNetwork {
        &self.network
    }

    /// Training pass with dropout from `noise`; `query` are the times of a head that reads times
    /// ([`StepContext::query_times`]).
    ///
    /// # Errors
    /// As [`SurvivalNetwork::forward`].
    pub fn forward(&self, batch: &Batch, query: &[f64], noise: &mut Noise) -> Result<Forward, FairnessError> {
        self.network.forward(batch, query, noise)
    }

    /// One optimiser step down the gradient of `loss` (`[1]`); gives the gradient norm before clipping.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] if the loss or its gradient is not finite; the weights are then untouched.
    pub fn descend(&mut self, loss: &Tensor<1>, context: &StepContext<'_>) -> Result<f64, FairnessError> {
        let value = f64::from(loss.clone().into_scalar::<f32>());
        context.require_finite("the loss", value)?;
        let mut gradients = GradientsParams::from_grads(loss.backward(), &self.network);
        let largest = (self.config.gradient_clip > 0.0).then_some(self.config.gradient_clip);
        let norm = clip_by_global_norm(&self.network, &mut gradients, largest);
        context.require_finite("the gradient norm", norm)?;
        let rate = self.config.learning_rate;
        let two_rates = self.from_file.as_ref().and_then(|from_file| Some((from_file, from_file.head_learning_rate?)));
        if let Some((from_file, head_rate)) = two_rates {
            let of_file = from_file.split(self.network.encoder(), &self.network, &mut gradients);
            self.network = self.optimiser.step(rate, self.network.clone(), of_file);
            self.network = self.optimiser.step(head_rate, self.network.clone(), gradients);
        } else {
            self.network = self.optimiser.step(rate, self.network.clone(), gradients);
        }
        Ok(norm)
    }

    /// Survival in evaluation mode, `[batch, n_times]`; `batch` lives on the device without autodiff.
    ///
    /// # Errors
    /// As [`SurvivalNetwork::forward`]; [`FairnessError::Survival`] if the head needs a baseline and none was fitted.
    pub fn survival(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        if rule.head.needs_baseline() && self.baseline.is_none() {
            return Err(SurvivalError::NoBaseline { head: rule.head.name() }.into());
        }
        let query = self.baseline.as_ref().map_or(&[][..], Baseline::times);
        let outputs = outputs(&self.network.valid(), batch, query)?;
        Ok(rule.head.survival(outputs.view(), rule.grid, self.baseline.as_ref())?)
    }

    /// Fits the baseline for the present weights, in evaluation mode; nothing to do for heads without one.
    /// Cost: one pass over the training part.
    ///
    /// # Errors
    /// As [`SurvivalNetwork::forward`]; [`FairnessError::Survival`] if an output is not finite.
    pub fn fit_baseline(&mut self, part: &TrainingPart<'_>) -> Result<(), FairnessError> {
        let Some(mut fit) = part.head.baseline_fit(part.outcomes) else { return Ok(()) };
        let (network, query) = (self.network.valid(), fit.times().to_vec());
        part.for_each_batch(|batch| {
            fit.add(&outputs(&network, batch, &query)?.view(), &batch.time, &batch.event);
            Ok(())
        })?;
        self.baseline = Some(fit.finish()?);
        Ok(())
    }

    /// Writes `<name>.weights.bpk`, `<name>.baseline.json` if there is a baseline and, for [`Saved::Everything`],
    /// `<name>.optimiser.bpk` into `folder`.
    ///
    /// # Errors
    /// [`FairnessError::Data`] if a file cannot be written.
    pub fn save(&self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        let encode = |path: &Path, reason: String| FairnessError::Checkpoint { path: path.to_owned(), reason };
        let weights = folder.join(format!("{name}.weights.bpk"));
        let bytes = self.network.clone().into_record().into_bytes().map_err(|e| encode(&weights, e.to_string()))?;
        write_atomically(&weights, |file| std::io::Write::write_all(file, &bytes))?;
        if let Some(baseline) = &self.baseline {
            let path = folder.join(format!("{name}.baseline.json"));
            write_atomically(&path, |file| Ok(serde_json::to_writer(file, baseline)?))?;
        }
        if what == Saved::Everything {
            let optimiser = folder.join(format!("{name}.optimiser.bpk"));
            let bytes = self.optimiser.into_bytes().map_err(|e| encode(&optimiser, e.to_string()))?;
            write_atomically(&optimiser, |file| std::io::Write::write_all(file, &bytes))?;
        }
        Ok(())
    }

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// [`FairnessError::Checkpoint`] naming the file if it cannot be read or does not fit this network.
    pub fn load(&mut self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        let weights = folder.join(format!("{name}.weights.bpk"));
        let unusable = |path: &Path, reason: String| FairnessError::Checkpoint { path: path.to_owned(), reason };
        let record = ModuleRecord::from_bytes(read(&weights)?).map_err(|e| unusable(&weights, e.to_string()))?;
        let loaded = self.network.clone().try_load_record(record).map_err(|e| unusable(&weights, e.to_string()))?;
        self.network = match &self.from_file {
            Some(from_file) => loaded.frozen(from_file), // a record says nothing of what stays
            None => loaded,
        };
        let baseline = folder.join(format!("{name}.baseline.json"));
        self.baseline = if baseline.exists() {
            let loaded = serde_json::from_slice(&read(&baseline)?);
            Some(loaded.map_err(|e| unusable(&baseline, e.to_string()))?)
        } else {
            None
        };
        if what == Saved::Everything {
            let path = folder.join(format!("{name}.optimiser.bpk"));
            let loaded = adamw(&self.config).from_bytes(read(&path)?);
            self.optimiser = loaded.map_err(|e| unusable(&path, e.to_string()))?;
        }
        Ok(())
    }
}

/// Outputs of a network in evaluation mode, `[batch, n_outputs]` or one column per query time.
fn outputs(network: &SurvivalNetwork, batch: &Batch, query: &[f64]) -> Result<Array2<f32>, FairnessError> {
    let outputs = network.forward(batch, query, &mut Noise::Off)?.outputs;
    let shape = outputs.dims();
    let values = outputs.into_data().try_to_vec::<f32>().expect("outputs are f32");
    Ok(Array2::from_shape_vec(shape, values).expect("a tensor fills its shape"))
}

fn adamw(config: &OptimiserConfig) -> ModuleOptimizer {
    #[expect(clippy::cast_possible_truncation, reason = "burn takes the weight decay in f32")]
    let weight_decay = config.weight_decay as f32;
    AdamWConfig::new().with_epsilon(1e-8).with_weight_decay(weight_decay).init()
}

fn read(path: &Path) -> Result<Bytes, FairnessError> {
    let bytes = std::fs::read(path)
        .map_err(|error| FairnessError::Checkpoint { path: path.to_owned(), reason: error.to_string() })?;
    Ok(Bytes::from_bytes_vec(bytes))
}
