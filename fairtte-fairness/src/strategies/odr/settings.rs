//! Settings of ODR, and the schedule of its weights.

use serde::{Deserialize, Serialize};

use super::Odr;
use crate::strategies::{Strategy, StrategySettings, TrainingCells};
use crate::{FairnessError, LearnerSpec, check, check_not_negative, check_positive};

/// Settings of ODR.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OdrConfig {
    /// Weight of the entropy on the target code, at least 0.
    pub lambda_entropy: f64,
    /// Weight of the distances to the priors, at least 0.
    pub lambda_orthogonality: f64,
    /// Factor of `lambda_entropy` per `schedule_epochs`, above 0.
    pub gamma_entropy: f64,
    /// Factor of `lambda_orthogonality` per `schedule_epochs`, above 0.
    pub gamma_orthogonality: f64,
    /// Epochs after which a weight has changed by its factor, above 0.
    pub schedule_epochs: f64,
    /// Length of each code, 2 to 65,536.
    pub code: usize,
    /// Step size of the group classifier, above 0.
    pub classifier_learning_rate: f64,
    /// Draw every group equally often.
    pub balanced_sampler: bool,
}

impl Default for OdrConfig {
    fn default() -> Self {
        Self {
            lambda_entropy: 0.1,
            lambda_orthogonality: 0.001,
            gamma_entropy: 1.0,
            gamma_orthogonality: 1.0,
            schedule_epochs: 20.0,
            code: 32,
            classifier_learning_rate: 1e-3,
            balanced_sampler: false,
        }
    }
}

impl StrategySettings for OdrConfig {
    fn name(&self) -> &'static str {
        "odr"
    }

    fn summary(&self) -> &'static str {
        "two orthogonal codes, one for the task and one for the group (Sarhan et al. 2020)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        check_not_negative("lambda-entropy", self.lambda_entropy)?;
        check_not_negative("lambda-orthogonality", self.lambda_orthogonality)?;
        check_positive("gamma-entropy", self.gamma_entropy)?;
        check_positive("gamma-orthogonality", self.gamma_orthogonality)?;
        check_positive("schedule-epochs", self.schedule_epochs)?;
        let is_scheduled =
            [self.gamma_entropy, self.gamma_orthogonality].iter().any(|gamma| gamma.total_cmp(&1.0).is_ne());
        let has_effect = is_scheduled || self.schedule_epochs.total_cmp(&Self::default().schedule_epochs).is_eq();
        check(
            "schedule-epochs",
            self.schedule_epochs,
            has_effect,
            "no value where gamma-entropy and gamma-orthogonality are 1",
        )?;
        check_positive("classifier-learning-rate", self.classifier_learning_rate)?;
        let in_range = (2..=65_536).contains(&self.code);
        check("code", self.code, in_range, "a whole number from 2 to 65536")
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Odr::new(self, spec, cells)?))
    }
}

impl OdrConfig {
    /// The weights when each training sample was seen `epochs` times on average.
    pub(super) fn weights(&self, epochs: f64) -> Weights {
        let scale = self.schedule_epochs;
        Weights {
            entropy: scheduled(self.lambda_entropy, self.gamma_entropy, epochs, scale),
            orthogonality: scheduled(self.lambda_orthogonality, self.gamma_orthogonality, epochs, scale),
        }
    }
}

/// Weights of the two terms at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights {
    pub(super) entropy: f64,
    pub(super) orthogonality: f64,
}

/// lambda gamma^(t / `t_s`).
fn scheduled(lambda: f64, gamma: f64, time: f64, scale: f64) -> f64 {
    lambda * gamma.powf(time / scale)
}
