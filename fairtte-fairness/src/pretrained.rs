//! Networks initialised with the weights of a file: which weights are trained, and with which step size.
//!
//! | `freeze` | weights of the file | batch norm of the backbone |
//! |---|---|---|
//! | `none` | trained | batch statistics, running statistics updated |
//! | `batch-norm` | trained except scale and shift of batch norm | running statistics, fixed |
//! | `all-but-head` | fixed | running statistics, fixed |
//!
//! A frozen weight has no gradient, so neither the step nor the weight decay of `AdamW` changes it. With `all-but-head`
//! the backbone computes as in evaluation, without stochastic depth. What the file does not contain (the projection, the
//! classifier, a norm that its layout lacks) is always trained, with its own step size if `head-learning-rate` is
//! set: step sizes enter `AdamW` as one factor per parameter, so two groups are two steps on disjoint parameters.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use fairtte_models::weights::{Fit, Gray, Layout, WeightFile};
use serde::{Deserialize, Serialize};

use crate::{FairnessError, check, check_positive};

/// Which weights of a file are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Freeze {
    /// None.
    #[default]
    None,
    /// All of them: only what the file does not contain is trained.
    AllButHead,
    /// Scale, shift and running statistics of batch norm.
    BatchNorm,
}

/// Initial weights from a file, table `[pretrained]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PretrainedConfig {
    /// A file of weights: safetensors, or what `torch.save` wrote.
    pub path: PathBuf,
    /// SHA-256 of the file, 64 hexadecimal digits; written into the record of a run, and compared if it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Whose names the keys have. Default `auto`.
    #[serde(default)]
    pub layout: Layout,
    /// How the first convolution is adapted to another number of input channels. Default `auto`.
    #[serde(default)]
    pub gray: Gray,
    /// Which weights are frozen. Default `none`.
    #[serde(default)]
    pub freeze: Freeze,
    /// Step size of what the file does not contain, above 0. Default: that of the optimiser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_learning_rate: Option<f64>,
}

impl PretrainedConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        if let Some(rate) = self.head_learning_rate {
            check_positive("head-learning-rate", rate)?;
        }
        if let Some(hash) = &self.sha256 {
            let is_hash = hash.len() == 64 && hash.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
            check("sha256", hash, is_hash, "64 hexadecimal digits in lower case")?;
        }
        Ok(())
    }
}

/// The content of a file of weights, with the settings for its use.
#[derive(Clone, Debug)]
pub struct Pretrained {
    /// The file.
    pub file: Arc<WeightFile>,
    /// Settings.
    pub config: PretrainedConfig,
}

/// The parts of a network that came from a file; by name, since a parameter gets another identity when a checkpoint is
/// loaded.
#[derive(Clone, Debug)]
pub(crate) struct FromFile {
    names: HashSet<String>,
    pub(crate) freeze: Freeze,
    pub(crate) head_learning_rate: Option<f64>,
}

impl Pretrained {
    /// Compares the weights with a backbone.
    ///
    /// # Errors
    /// As [`Fit::new`].
    pub fn fit(&self, backbone: &fairtte_models::Backbone) -> Result<Fit<'_>, FairnessError> {
        Ok(Fit::new(&self.file, backbone, self.config.layout, self.config.gray)?)
    }

    /// Returns `encoder` with the weights of the file.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if they do not fit, [`FairnessError::Setting`] if there is nothing to freeze.
    pub(crate) fn load(
        &self,
        encoder: fairtte_models::ImageEncoder,
    ) -> Result<(fairtte_models::ImageEncoder, FromFile), FairnessError> {
        let fit = self.fit(encoder.backbone())?;
        let names = fit.matched().into_iter().map(str::to_owned).collect();
        let encoder = encoder.try_map_backbone(|backbone| fit.load(backbone))?;
        let (freeze, head_learning_rate) = (self.config.freeze, self.config.head_learning_rate);
        let from_file = FromFile { names, freeze, head_learning_rate };
        if freeze == Freeze::BatchNorm && !encoder.backbone().has_batch_norm() {
            let expected = format!("none or all-but-head: {} has no batch norm", encoder.backbone().kind().name());
            return Err(FairnessError::Setting { key: "freeze", value: "batch-norm".to_owned(), expected });
        }
        Ok((from_file.frozen(encoder), from_file))
    }
}

impl FromFile {
    /// Returns `encoder` with the frozen weights detached from gradients; to be called again after weights are loaded.
    pub(crate) fn frozen(&self, encoder: fairtte_models::ImageEncoder) -> fairtte_models::ImageEncoder {
        match self.freeze {
            Freeze::None => encoder,
            Freeze::AllButHead => encoder.frozen(&self.names),
            Freeze::BatchNorm => encoder.with_frozen_batch_norm(),
        }
    }

    /// Removes the gradients of the weights from the file from `gradients` and returns them.
    pub(crate) fn split<M: Module>(
        &self,
        encoder: &fairtte_models::ImageEncoder,
        module: &M,
        gradients: &mut GradientsParams,
    ) -> GradientsParams {
        let ids = encoder.backbone().parameter_ids(&self.names);
        let mut taken = Take { ids, from: gradients, taken: GradientsParams::new() };
        module.visit(&mut taken);
        taken.taken
    }
}

struct Take<'a> {
    ids: HashSet<ParamId>,
    from: &'a mut GradientsParams,
    taken: GradientsParams,
}

impl ModuleVisitor for Take<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.ids.contains(&param.id)
            && let Some(gradient) = self.from.remove::<D>(param.id)
        {
            self.taken.register(param.id, gradient);
        }
    }
}

#[cfg(test)]
#[path = "../tests/inside/pretrained.rs"]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
