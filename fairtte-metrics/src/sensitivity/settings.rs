//! What is tilted, how far, and what the imputation is based on.

use serde::{Deserialize, Serialize};

use crate::resampling::bootstrap::MAX_REPLICATES;
use crate::{Groups, MetricError};

const LARGEST_DELTA: f64 = 50.0;
const MOST_IMPUTATIONS: usize = 10_000;

/// The model of the event time from which the time after censoring is drawn, fitted to the evaluated sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ImputationModel {
    /// In every group a Cox model of its own, with its own baseline hazard, of log(-log S) at the horizon, S the predicted
    /// survival: the prediction may be wrong in level and in strength, and in every group in another way.
    #[default]
    Cox,
    /// Kaplan-Meier in every group and, within it, in `n` strata of the predicted risk at the horizon (quantiles over all
    /// samples). Assumes no form of the dependence on the prediction between strata, and none within a stratum.
    RiskStrata {
        /// Number of strata, from 2 to 100.
        n: usize,
    },
    /// Kaplan-Meier in every group. The imputed times do not depend on the prediction: right for observed survival, but rank
    /// metrics and scores are drawn towards those of a model without discrimination.
    KaplanMeier,
    /// The evaluated model's own curve. It assumes that the evaluated model is true, so the completed data flatter it:
    /// calibration and scores improve with every imputed time. Only for comparison with the other models.
    Predicted,
}

/// The group whose censored samples are tilted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TiltedGroup {
    /// Name of the attribute.
    pub attribute: String,
    /// Name of the level.
    pub level: String,
}

/// Settings of [`sensitivity`](crate::sensitivity::sensitivity). Keys in a file are written in kebab-case; unknown keys are
/// errors. Seed, level of intervals, metrics and times are those of the evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SensitivitySettings {
    /// Logarithms of the hazard ratio of the censored, ascending, each in [-50, 50], 0 among them. Default: -1.5 to 1.5 in
    /// steps of 0.5, hazard ratios from 0.22 to 4.5.
    pub deltas: Vec<f64>,
    /// The group whose drop-outs are tilted, the others being imputed with delta = 0; then only its attribute is analysed.
    /// Default: the drop-outs of all groups are tilted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<TiltedGroup>,
    /// The imputation model. Default: `cox`.
    pub model: ImputationModel,
    /// Imputations behind every estimate, from 2 to 10,000. Default 20.
    pub imputations: usize,
    /// Bootstrap draws behind the intervals, at most 1,000,000; each is imputed twice; 0 = no intervals. Default 200.
    pub replicates: usize,
    /// The end of follow-up, > 0: samples observed up to it are not imputed, and no time beyond it is. Default: the earliest of
    /// the last observed times of the groups that have a model of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub administrative: Option<f64>,
}

impl Default for SensitivitySettings {
    fn default() -> Self {
        Self {
            deltas: vec![-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5],
            group: None,
            model: ImputationModel::default(),
            imputations: 20,
            replicates: 200,
            administrative: None,
        }
    }
}

impl SensitivitySettings {
    /// Checks all settings but the names of the group.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] with the first bad setting.
    pub fn validate(&self) -> Result<(), MetricError> {
        let invalid = |setting, value: String, expected| Err(MetricError::InvalidSetting { setting, value, expected });
        let ascending = self.deltas.windows(2).all(|pair| pair[0] < pair[1]);
        let within = self.deltas.iter().all(|delta| delta.abs() <= LARGEST_DELTA);
        if !(ascending && within && self.zero().is_some()) {
            let expected = "ascending numbers in [-50, 50] with 0 among them";
            return invalid("sensitivity.deltas", format!("{:?}", self.deltas), expected);
        }
        if !(2..=MOST_IMPUTATIONS).contains(&self.imputations) {
            let expected = "a whole number from 2 to 10000";
            return invalid("sensitivity.imputations", self.imputations.to_string(), expected);
        }
        if self.replicates > MAX_REPLICATES {
            let expected = "a whole number from 0 to 1000000";
            return invalid("sensitivity.replicates", self.replicates.to_string(), expected);
        }
        if let Some(end) = self.administrative.filter(|end| !(end.is_finite() && *end > 0.0)) {
            return invalid("sensitivity.administrative", end.to_string(), "a finite number > 0");
        }
        match self.model {
            ImputationModel::RiskStrata { n } if !(2..=100).contains(&n) => {
                invalid("sensitivity.model.risk-strata.n", n.to_string(), "a whole number from 2 to 100")
            }
            _ => Ok(()),
        }
    }

    /// The place of 0 among the deltas.
    pub(crate) fn zero(&self) -> Option<usize> {
        self.deltas.iter().position(|delta| delta.abs() <= 0.0)
    }

    /// Whether a sample of this row is tilted if it drops out, `[n]`.
    ///
    /// # Errors
    /// [`MetricError::UnknownAttribute`] and [`MetricError::UnknownLevel`] for a group that is not there.
    pub(crate) fn tilted(&self, groups: &[Groups], n: usize) -> Result<Vec<bool>, MetricError> {
        let Some(TiltedGroup { attribute, level }) = &self.group else { return Ok(vec![true; n]) };
        let Some(of_attribute) = groups.iter().find(|groups| groups.attribute() == attribute) else {
            let known = groups.iter().map(Groups::attribute).collect::<Vec<_>>().join(", ");
            return Err(MetricError::UnknownAttribute { attribute: attribute.clone(), known });
        };
        let Some(place) = of_attribute.levels().iter().position(|known| known == level) else {
            let known = of_attribute.levels().join(", ");
            return Err(MetricError::UnknownLevel { attribute: attribute.clone(), level: level.clone(), known });
        };
        Ok(of_attribute.membership().iter().map(|group| group.is_some_and(|group| group.index() == place)).collect())
    }
}
