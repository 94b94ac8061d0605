//! Settings of the recalibration by group.

use serde::{Deserialize, Serialize};

use super::{NAME, Recalibration};
use crate::strategies::{ExpectedBatch, MissingAttribute, NETWORK, Strategy, StrategySettings, TrainingCells};
use crate::{FairnessError, Learner, LearnerSpec, check, check_at_least, check_positive, written};

/// The map that is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RecalibrationMethod {
    /// S^a, so that expected events equal observed ones.
    #[default]
    Oe,
    /// A shift of the logits of the hazards.
    HazardIntercept,
    /// The distribution of F at the observed times.
    Quantile,
    /// Of a class: intercept and slope of the logit (Platt 1999).
    Platt,
    /// Of a class: isotonic regression (Zadrozny & Elkan 2002).
    Isotonic,
}

/// Settings of the recalibration by group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RecalibrationConfig {
    /// The map that is fitted.
    pub method: RecalibrationMethod,
    /// Events added on both sides of `oe`, above 0.
    pub prior: f64,
    /// Penalty of the shifts of `hazard-intercept`, above 0.
    pub ridge: f64,
    /// One shift per group in place of one per interval.
    pub shared: bool,
    /// Validation events that `quantile` needs in each group with validation rows, at least 1.
    pub min_events: usize,
    /// The prediction for a sample without the attribute.
    pub missing_attribute: MissingAttribute,
}

impl Default for RecalibrationConfig {
    fn default() -> Self {
        let (method, missing_attribute) = (RecalibrationMethod::default(), MissingAttribute::default());
        Self { method, prior: 1.0, ridge: 1.0, shared: false, min_events: 50, missing_attribute }
    }
}

impl StrategySettings for RecalibrationConfig {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "as erm, then the curves of each group are recalibrated on the validation part"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let Self { method, prior, ridge, shared, min_events, .. } = *self;
        check_positive("prior", prior)?;
        check_positive("ridge", ridge)?;
        check_at_least("min-events", min_events, 1)?;
        let default = Self::default();
        let only = |other, is_default, key, value: String| {
            let expected = format!("no value without method = \"{}\"", written(other));
            check(key, value, method == other || is_default, &expected)
        };
        let (oe, intercept) = (RecalibrationMethod::Oe, RecalibrationMethod::HazardIntercept);
        let is_same = |a: f64, b: f64| a.total_cmp(&b).is_eq();
        only(oe, is_same(prior, default.prior), "prior", prior.to_string())?;
        only(intercept, is_same(ridge, default.ridge), "ridge", ridge.to_string())?;
        only(intercept, !shared, "shared", shared.to_string())?;
        let is_default = min_events == default.min_events;
        let value = min_events.to_string();
        only(RecalibrationMethod::Quantile, is_default, "min-events", value)
    }

    /// The map of one group is of use as well.
    fn compares_groups(&self) -> bool {
        false
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        let of_class = matches!(self.method, RecalibrationMethod::Platt | RecalibrationMethod::Isotonic);
        let fits = of_class == expected.head.predicts_class();
        let wanted = if of_class {
            "oe, hazard-intercept or quantile: the head predicts survival curves"
        } else {
            "platt or isotonic: the head predicts a class"
        };
        check("method", written(self.method), fits, wanted)
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Recalibration::new(self, Learner::new(spec, NETWORK)?, cells)?))
    }
}
