//! Settings of `CFair`.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::Cfair;
use super::losses::task_coefficients;
use crate::strategies::groups::weighted_sum;
use crate::strategies::{ExpectedBatch, Strategy, StrategySettings, StratumConfig, TrainingCells};
use crate::{FairnessError, LearnerSpec, check_not_negative};

/// How the task loss is weighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CfairMode {
    /// All strata have the same weight.
    #[default]
    Cfair,
    /// The plain mean.
    CfairEo,
}

impl CfairMode {
    /// Task loss of `losses`, `[batch]`, whose plain mean is `plain`, `[1]`.
    pub(super) fn task(
        self,
        losses: &Tensor<1>,
        plain: &Tensor<1>,
        strata: &[Option<usize>],
        counted: &[bool],
    ) -> Tensor<1> {
        match self {
            Self::Cfair => weighted_sum(losses, task_coefficients(strata, counted)),
            Self::CfairEo => plain.clone(),
        }
    }
}

/// What lambda scales.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CfairScaling {
    /// The gradient that reaches the encoder; that of the adversaries is not scaled.
    #[default]
    Reversal,
    /// The loss of the adversaries, and thereby both gradients.
    Both,
}

impl CfairScaling {
    /// Factors of the reversed gradient that reaches the encoder, and of the adversaries' loss before that.
    pub(super) fn factors(self, lambda: f64) -> (f64, f64) {
        match self {
            Self::Reversal => (lambda, 1.0),
            Self::Both => (1.0, lambda),
        }
    }
}

/// The source of the weights of an adversary's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CfairWeights {
    /// The cells of the batch.
    #[default]
    Batch,
    /// The cells of the training part.
    Training,
}

/// Settings of `CFair`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CfairConfig {
    /// How the task loss is weighted.
    pub mode: CfairMode,
    /// Weight of the adversaries, at least 0.
    pub lambda: f64,
    /// What lambda scales.
    pub scaling: CfairScaling,
    /// The source of the weights of an adversary's samples.
    pub weights: CfairWeights,
    /// What takes the place of the class.
    pub stratum: StratumConfig,
    /// Draw every group equally often.
    pub balanced_sampler: bool,
}

impl Default for CfairConfig {
    fn default() -> Self {
        Self {
            mode: CfairMode::default(),
            lambda: 0.1,
            scaling: CfairScaling::default(),
            weights: CfairWeights::default(),
            stratum: StratumConfig::default(),
            balanced_sampler: false,
        }
    }
}

impl StrategySettings for CfairConfig {
    fn name(&self) -> &'static str {
        "cfair"
    }

    fn summary(&self) -> &'static str {
        "one adversary per stratum through gradient reversal, balanced errors (Zhao et al. 2020)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        check_not_negative("lambda", self.lambda)?;
        self.stratum.validate()
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        self.stratum.check_head(expected.head)
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Cfair::new(self, spec, cells)?))
    }
}
