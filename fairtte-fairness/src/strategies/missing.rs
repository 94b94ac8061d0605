//! Predictions for samples without the attribute, by methods that read it at prediction.

use fairtte_metrics::{GroupId, SampleId};
use serde::{Deserialize, Serialize};

use crate::FairnessError;

/// The prediction for a sample without the attribute (or of a group absent from training), by methods that read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MissingAttribute {
    /// The mean of the curves of all groups, weighed by their shares.
    #[default]
    Average,
    /// None: an error that names the sample.
    Refuse,
}

impl MissingAttribute {
    /// Checks that every sample has a group that `is_known`.
    ///
    /// # Errors
    /// [`FairnessError::NoGroupToPredict`] naming the first that has none, if such samples are refused.
    pub(super) fn admit(
        self,
        strategy: &'static str,
        key: &'static str,
        samples: &[SampleId],
        is_known: impl Fn(usize) -> bool,
    ) -> Result<(), FairnessError> {
        match (0..samples.len()).find(|i| !is_known(*i)) {
            Some(i) if self == Self::Refuse => {
                Err(FairnessError::NoGroupToPredict { strategy, sample: samples[i].clone(), key })
            }
            _ => Ok(()),
        }
    }
}

/// The group of a sample, if it is one that has a weight.
pub(super) fn known(group: Option<GroupId>, weights: &[f64]) -> Option<usize> {
    group.map(GroupId::index).filter(|g| weights.get(*g).is_some_and(|weight| *weight > 0.0))
}
