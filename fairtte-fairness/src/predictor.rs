//! A trained model away from its training: what was fitted, and a network with its weights that predicts any samples.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::Device;
use fairtte_data::{HostBatch, Loader};
use fairtte_metrics::GroupId;
use fairtte_models::EncoderConfig;
use fairtte_survival::{ClassifierConfig, CutPoints, HeadConfig, PredictionGrid, SurvivalHead};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{hashes_below, require_hashes};
use crate::explain::{self, Attribution, Occlusion, Patches, RiskAt, integrated_gradients, occlude};
use crate::features::{Layer, features};
use crate::predict::{CurveRule, batch_size, of_cause, predict, predict_blocks};
use crate::strategies::{CellCounts, Saved, Strategy, StrategyConfig};
use crate::{Export, FairnessError, LearnerSpec, NetworkSpec, OptimiserConfig};

/// What prediction needs of a training besides settings and weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FittedModel {
    /// Channels of the images, or columns of the features.
    pub channels: usize,
    /// The time grid of the training.
    pub cut_points: CutPoints,
    /// Times of predicted curves, in the time unit of the training.
    pub grid: PredictionGrid,
    /// Shape of the classifier.
    pub classifier: ClassifierConfig,
    /// Sizes of the training groups.
    pub cells: CellCounts,
    /// The number of the event and those of the other causes whose incidence the network predicts, in the order of its outputs;
    /// empty for one kind of event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<u32>,
}

/// The settings of a training that determine its networks.
#[derive(Clone, Copy, Debug)]
pub struct ModelSettings<'a> {
    /// Network up to the representation.
    pub encoder: &'a EncoderConfig,
    /// Loss and prediction rule.
    pub head: &'a HeadConfig,
    /// Training strategy.
    pub strategy: &'a StrategyConfig,
}

/// Writes the weights with which `strategy` predicts into `folder` and returns the BLAKE3 hash of every file, by its
/// path in the folder.
///
/// # Errors
/// [`FairnessError::Data`] or [`FairnessError::Checkpoint`] if a file cannot be written.
pub fn write_weights(strategy: &mut dyn Strategy, folder: &Path) -> Result<BTreeMap<String, String>, FairnessError> {
    std::fs::create_dir_all(folder).map_err(|error| crate::checkpoint::failed(folder, &error))?;
    strategy.save(folder, Saved::Weights)?;
    hashes_below(folder)
}

/// A trained model that predicts.
pub struct Predictor {
    strategy: Box<dyn Strategy>,
    head: Box<dyn SurvivalHead>,
    grid: PredictionGrid,
    device: Device,
}

impl std::fmt::Debug for Predictor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Predictor").field("strategy", &self.strategy.name()).finish_non_exhaustive()
    }
}

impl Predictor {
    /// The model whose weights [`write_weights`] wrote into `folder`, with the hashes that it returned.
    ///
    /// # Errors
    /// [`FairnessError::Checkpoint`] if a file is missing, has changed or does not fit, and what the settings of network,
    /// head and strategy refuse.
    pub fn load(
        settings: &ModelSettings<'_>,
        fitted: &FittedModel,
        folder: &Path,
        hashes: &BTreeMap<String, String>,
        device: &Device,
    ) -> Result<Self, FairnessError> {
        require_hashes(folder, hashes)?;
        let spec = LearnerSpec {
            network: NetworkSpec {
                encoder: settings.encoder.clone(),
                channels: fitted.channels,
                classifier: fitted.classifier.clone(),
            },
            optimiser: OptimiserConfig::default(),
            seed: 0, // the weights that it draws are replaced
            device: device.clone(),
            pretrained: None,
        };
        let mut strategy = settings.strategy.build_trained(&spec, &fitted.cells.expand())?;
        strategy.load(folder, Saved::Weights)?;
        let head = settings.head.build_for(fitted.causes.len())?;
        Ok(Self { strategy, head, grid: fitted.grid.clone(), device: device.clone() })
    }

    /// Times of the curves, in the time unit of the training.
    pub fn times(&self) -> &[f64] {
        self.grid.times()
    }

    /// Whether curves depend on the group of a sample.
    pub fn needs_group(&self) -> bool {
        self.strategy.needs_group_to_predict()
    }

    /// Name of the strategy.
    pub fn strategy(&self) -> &'static str {
        self.strategy.name()
    }

    /// Survival of `rows` at [`times`](Self::times), `[rows, n_times]`; of several causes 1 minus the incidence of the event.
    ///
    /// # Errors
    /// As [`predict`].
    pub fn survival(&self, loader: &Loader<'_>, rows: &[usize]) -> Result<Array2<f64>, FairnessError> {
        Ok(of_cause(&self.curves(loader, rows)?, 0, self.times().len()))
    }

    /// As [`survival`](Self::survival), of all causes that the network predicts, `[rows, n_causes n_times]`
    /// ([`of_cause`](crate::of_cause)).
    ///
    /// # Errors
    /// As [`predict`].
    pub fn curves(&self, loader: &Loader<'_>, rows: &[usize]) -> Result<Array2<f64>, FairnessError> {
        predict(self.strategy.as_ref(), loader, rows, &self.rule(), &self.device)
    }

    /// As [`survival`](Self::survival), but by the network that was trained on `group` alone, whose number is its place among the
    /// levels of the training; `None` if the strategy has no such network.
    ///
    /// # Errors
    /// As [`predict`].
    pub fn survival_by(
        &self,
        group: GroupId,
        loader: &Loader<'_>,
        rows: &[usize],
    ) -> Result<Option<Array2<f64>>, FairnessError> {
        let rule = self.rule();
        let found = predict_blocks(loader, rows, &self.device, |batch| self.strategy.predict_by(group, batch, &rule))?;
        Ok(found.map(|curves| of_cause(&curves, 0, self.times().len())))
    }

    /// What prediction needs of the model, for other programs.
    ///
    /// # Errors
    /// As [`Strategy::export`].
    pub fn export(&self) -> Result<Export, FairnessError> {
        self.strategy.export()
    }

    /// Features of `rows` at `layer`, `[rows, n_features]`.
    ///
    /// # Errors
    /// As [`features`].
    pub fn features(&self, loader: &Loader<'_>, rows: &[usize], layer: Layer) -> Result<Array2<f32>, FairnessError> {
        features(loader, rows, &self.device, |batch| self.strategy.features(batch, layer))
    }

    /// Risks of a batch, `[batch]`.
    ///
    /// # Errors
    /// As [`explain::risks`].
    pub fn risks(&self, batch: HostBatch, at: RiskAt) -> Result<Vec<f64>, FairnessError> {
        explain::risks(self.strategy.as_ref(), batch, &self.rule(), at, &self.device)
    }

    /// By how much the risk of the one sample of a batch falls where each patch of its input is replaced by `fill`.
    ///
    /// # Errors
    /// As [`explain::risks`].
    pub fn occlusion(
        &self,
        sample: &HostBatch,
        fill: &[f32],
        patches: &Patches,
        at: RiskAt,
    ) -> Result<Occlusion, FairnessError> {
        occlude(&sample.pixels, fill, patches, batch_size(sample.pixels.len()), |inputs| {
            self.risks(with_inputs(sample, &inputs), at)
        })
    }

    /// Integrated gradients of the risk of the one sample of a batch, from the input `baseline`, in blocks of `block` inputs.
    ///
    /// # Errors
    /// As [`explain::risks_and_gradients`].
    pub fn integrated_gradients(
        &self,
        sample: &HostBatch,
        baseline: &[f32],
        steps: usize,
        block: usize,
        at: RiskAt,
    ) -> Result<Attribution, FairnessError> {
        let (strategy, rule) = (self.strategy.as_ref(), self.rule());
        integrated_gradients(&sample.pixels, baseline, steps, block, |inputs| {
            explain::risks_and_gradients(strategy, with_inputs(sample, &inputs), &rule, at, &self.device)
        })
    }

    /// Draws all weights of the networks afresh (norms, biases and baselines stay): the control with which an explanation is
    /// compared (Adebayo et al. 2018, model parameter randomisation).
    pub fn randomise(&mut self, seed: u64) {
        for mut part in self.strategy.parts() {
            part.randomise(seed);
        }
    }

    fn rule(&self) -> CurveRule<'_> {
        CurveRule { head: self.head.as_ref(), grid: &self.grid }
    }
}

/// Other inputs of the one sample of a batch.
fn with_inputs(sample: &HostBatch, inputs: &[Vec<f32>]) -> HostBatch {
    let n = inputs.len();
    HostBatch {
        rows: vec![sample.rows[0]; n],
        sample_ids: vec![sample.sample_ids[0].clone(); n],
        pixels: inputs.concat(),
        stored: None,
        shape: std::iter::once(n).chain(sample.shape.iter().skip(1).copied()).collect(),
        time: vec![sample.time[0]; n],
        event: vec![sample.event[0]; n],
        competing: vec![sample.competing[0]; n],
        groups: vec![sample.groups[0]; n],
        masks: sample.masks.as_ref().map(|labels| labels.repeat(n)),
    }
}
