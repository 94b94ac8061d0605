//! Settings of controlling for the attribute.

use serde::{Deserialize, Serialize};

use super::{ControlledAttribute, NAME};
use crate::strategies::{Strategy, StrategySettings, TrainingCells};
use crate::{FairnessError, LearnerSpec, check_at_least};

/// What is done with a group with too few events for a network of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SmallGroup {
    /// It is an error that names the group.
    #[default]
    Refuse,
    /// It is left out, and the shares of the others are scaled to sum to 1.
    Drop,
}

/// Settings of controlling for the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ControlledAttributeConfig {
    /// Training events that a group needs, at least 2.
    pub min_events: usize,
    /// What is done with a group with fewer.
    pub small_group: SmallGroup,
}

impl Default for ControlledAttributeConfig {
    fn default() -> Self {
        Self { min_events: 10, small_group: SmallGroup::Refuse }
    }
}

impl StrategySettings for ControlledAttributeConfig {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "one network per group, whose curves are averaged (Pope & Sydnor 2011)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        check_at_least("min-events", self.min_events, 2)
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(ControlledAttribute::new(self, spec, cells)?))
    }
}
