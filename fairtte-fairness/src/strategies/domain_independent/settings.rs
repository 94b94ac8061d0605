//! Settings of domain independence.

use serde::{Deserialize, Serialize};

use super::{DomainIndependent, KEY, NAME};
use crate::strategies::{MissingAttribute, Strategy, StrategySettings, TrainingCells};
use crate::{FairnessError, LearnerSpec, check};

/// How the classifiers of all groups are combined for prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DomainInference {
    /// The curve of the mean output.
    #[default]
    MeanLogits,
    /// The mean curve.
    MeanSurvival,
    /// The mean curve, weighed by the training shares of the groups.
    ShareWeighted,
    /// The curve of the mean output, weighed by the training shares of the groups.
    ShareWeightedLogits,
    /// The curve of the classifier of the sample's group.
    OwnGroup,
}

impl DomainInference {
    /// Whether outputs, not curves, are averaged.
    pub(super) fn averages_outputs(self) -> bool {
        matches!(self, Self::MeanLogits | Self::ShareWeightedLogits)
    }
}

/// Settings of domain independence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DomainIndependentConfig {
    /// How the classifiers of all groups are combined for prediction.
    pub inference: DomainInference,
    /// What `own-group` predicts for a sample without the attribute.
    pub missing_attribute: MissingAttribute,
}

impl StrategySettings for DomainIndependentConfig {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "one encoder, one classifier per group (Wang et al. 2020)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let has_effect =
            self.missing_attribute == MissingAttribute::Average || self.inference == DomainInference::OwnGroup;
        check(KEY, "refuse", has_effect, "average, unless inference = \"own-group\"")
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(DomainIndependent::new(self, spec, cells)?))
    }
}
