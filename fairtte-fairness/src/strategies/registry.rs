//! Which strategies there are: one line each; and how one from outside this crate joins them.

use std::sync::Arc;

use fairtte_survival::{Additions, NoSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::compared::n_trained_groups;
use super::{ExpectedBatch, Strategy, StrategySettings, TrainingCells};
use crate::{FairnessError, LearnerSpec, TrainingConfig};

static ADDITIONS: Additions<dyn StrategySettings> = Additions::new();

fairtte_survival::registry! {
    /// The registry of strategies; in run files `[strategy.erm]`, `[strategy.group-dro]`, ..
    StrategyConfig: a "strategy" with StrategySettings, others in ADDITIONS;
    "erm" Erm(NoSettings),
    "subgroup-rebalancing" SubgroupRebalancing(super::SubgroupRebalancingConfig),
    "group-dro" GroupDro(super::GroupDroConfig),
    "domain-independent" DomainIndependent(super::DomainIndependentConfig),
    "controlled-attribute" ControlledAttribute(super::ControlledAttributeConfig),
    "sam" Sam(super::SamConfig),
    "swad" Swad(super::SwadConfig),
    "recalibration" Recalibration(super::RecalibrationConfig),
    "laftr" Laftr(super::LaftrConfig),
    "cfair" Cfair(super::CfairConfig),
    "lnl" Lnl(super::LnlConfig),
    "odr" Odr(super::OdrConfig),
    "fair-representation" FairRepresentation(super::FairRepresentationConfig),
    "end" End(super::EndConfig),
    "dro-chi-square" DroChiSquare(super::DroChiSquareConfig),
    "febs" Febs(super::FebsConfig),
}

impl Default for StrategyConfig {
    fn default() -> Self {
        Self::Erm(NoSettings::default())
    }
}

impl StrategyConfig {
    /// Whether training reads the groups of the samples.
    pub fn needs_groups(&self) -> bool {
        self.settings().needs_groups()
    }

    /// As [`StrategySettings::models_causes`].
    pub fn models_causes(&self) -> bool {
        self.settings().models_causes()
    }

    /// As [`StrategySettings::models_masks`].
    pub fn models_masks(&self) -> bool {
        self.settings().models_masks()
    }

    /// Names of the strategies of this crate that work where events have several causes.
    pub fn of_causes() -> Vec<&'static str> {
        Self::that(Self::models_causes)
    }

    /// Names of the strategies of this crate that work where masks are predicted.
    pub fn of_masks() -> Vec<&'static str> {
        Self::that(Self::models_masks)
    }

    fn that(holds: impl Fn(&Self) -> bool) -> Vec<&'static str> {
        let models = |name: &&str| {
            let strategy: Result<Self, _> = serde_json::from_value(serde_json::json!({ *name: {} }));
            strategy.is_ok_and(|strategy| holds(&strategy))
        };
        Self::NAMES.iter().copied().filter(models).collect()
    }

    /// As [`StrategySettings::validate`].
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the setting, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        self.settings().validate()
    }

    /// As [`StrategySettings::check_batches`].
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the setting, its value and what was expected.
    pub fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        self.settings().check_batches(expected)
    }

    /// As [`StrategySettings::training_notes`].
    pub fn training_notes(&self, training: &TrainingConfig, n_steps: usize) -> Vec<String> {
        self.settings().training_notes(training, n_steps)
    }

    /// As [`StrategySettings::build`].
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] if groups are needed and no
    /// training sample has one, [`FairnessError::OneGroup`] if they are compared and all training samples are in one.
    pub fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        if self.settings().compares_groups() {
            n_trained_groups(cells, self.settings().name())?;
        }
        self.build_trained(spec, cells)
    }

    /// The strategy of a model that was trained, whose weights replace those that are drawn here. A model of one group, which earlier
    /// versions trained, still predicts.
    pub(crate) fn build_trained(
        &self,
        spec: &LearnerSpec,
        cells: &TrainingCells,
    ) -> Result<Box<dyn Strategy>, FairnessError> {
        self.settings().build(spec, cells)
    }
}

/// Makes a strategy of another crate known: `[strategy.NAME]` with its settings is accepted in run files from now on, in
/// this process, and [`StrategyConfig::catalogue`] lists it. Registering the same settings again changes nothing.
///
/// # Errors
/// [`FairnessError::Setting`] if a strategy of this crate has the name.
pub fn register<S>() -> Result<(), FairnessError>
where
    S: StrategySettings + Default + Serialize + DeserializeOwned + 'static,
{
    let (name, summary) = (S::default().name(), S::default().summary());
    let is_new = !StrategyConfig::NAMES.contains(&name);
    crate::check("strategy", name, is_new, "a name that no strategy of fairtte-fairness has")?;
    ADDITIONS.add(name, summary, |settings: S| Arc::new(settings));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    #[test]
    fn the_name_in_the_registry_is_the_name_of_the_settings() {
        for name in StrategyConfig::NAMES {
            let strategy: StrategyConfig = serde_json::from_value(serde_json::json!({ name: {} })).unwrap();
            assert_eq!(strategy.name(), name);
        }
    }
}
