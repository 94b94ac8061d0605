//! Settings of LAFTR.

use fairtte_metrics::GroupId;
use serde::{Deserialize, Serialize};

use super::Laftr;
use crate::strategies::batch_cells::BatchCells;
use crate::strategies::{ExpectedBatch, Strategy, StrategySettings, StratumConfig, StratumKind, TrainingCells};
use crate::{FairnessError, LearnerSpec, check, check_at_least, check_not_negative, check_positive, written};

/// The fairness criterion of the adversary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LaftrMode {
    /// Demographic parity: the adversary sees every sample.
    Dp,
    /// Equalised odds: it also reads the stratum, and every (group, stratum) cell has the same weight.
    #[default]
    Eqodd,
    /// Equal opportunity in stratum 0.
    Eqopp0,
    /// Equal opportunity in stratum 1.
    Eqopp1,
}

impl LaftrMode {
    /// The cells that count, of `n_groups` groups and `n_strata` strata. `strata` is not read for [`Dp`](Self::Dp).
    pub(super) fn cells(
        self,
        groups: &[Option<GroupId>],
        strata: &[Option<usize>],
        (n_groups, n_strata): (usize, usize),
    ) -> BatchCells {
        let only = |y: usize| -> Vec<_> { strata.iter().map(|stratum| (*stratum == Some(y)).then_some(0)).collect() };
        match self {
            Self::Dp => BatchCells::of_groups(groups, n_groups),
            Self::Eqodd => BatchCells::new(groups, strata, (n_groups, n_strata)),
            Self::Eqopp0 => BatchCells::new(groups, &only(0), (n_groups, 1)),
            Self::Eqopp1 => BatchCells::new(groups, &only(1), (n_groups, 1)),
        }
    }
}

/// Settings of LAFTR.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LaftrConfig {
    /// The fairness criterion of the adversary.
    pub mode: LaftrMode,
    /// Weight of the adversary, at least 0.
    pub gamma: f64,
    /// Steps of the adversary per batch, at least 1.
    pub aud_steps: usize,
    /// Step size of the adversary, above 0.
    pub adversary_learning_rate: f64,
    /// What takes the place of the class.
    pub stratum: StratumConfig,
    /// Draw every group equally often.
    pub balanced_sampler: bool,
}

impl Default for LaftrConfig {
    fn default() -> Self {
        let (mode, stratum) = (LaftrMode::default(), StratumConfig::default());
        Self { mode, gamma: 0.3, aud_steps: 5, adversary_learning_rate: 1e-3, stratum, balanced_sampler: false }
    }
}

impl StrategySettings for LaftrConfig {
    fn name(&self) -> &'static str {
        "laftr"
    }

    fn summary(&self) -> &'static str {
        "the representation is trained against an adversary that predicts the group (Madras et al. 2018)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let Self { mode, gamma, aud_steps, adversary_learning_rate: rate, stratum, .. } = *self;
        check_not_negative("gamma", gamma)?;
        check_at_least("aud-steps", aud_steps, 1)?;
        check_positive("adversary-learning-rate", rate)?;
        stratum.validate()?;
        let is_read = mode != LaftrMode::Dp || stratum == StratumConfig::default();
        check("stratum", written(stratum.kind), is_read, "no value with mode = \"dp\", which reads no stratum")?;
        let one_of_two = matches!(mode, LaftrMode::Eqopp0 | LaftrMode::Eqopp1);
        let fits = !one_of_two || stratum.kind != StratumKind::EventXBin;
        let expected = "dp or eqodd with stratum.kind = \"event-x-bin\": equal opportunity is within one of two strata";
        check("mode", written(mode), fits, expected)
    }

    fn models_masks(&self) -> bool {
        true
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        let fits = self.mode == LaftrMode::Dp || expected.head.of_masks().is_none();
        let expected_mode = "dp where masks are predicted: samples have no class within which parity could hold";
        check("mode", written(self.mode), fits, expected_mode)?;
        self.stratum.check_head(expected.head)
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Laftr::new(self, spec, cells)?))
    }
}
