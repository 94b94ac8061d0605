//! Counts of the training part by group and outcome.

use fairtte_data::{Loader, Sampling};
use fairtte_metrics::{GroupId, Groups};
use fairtte_survival::CutPoints;

use super::subgroup_rebalancing::sampling_weights;
use crate::FairnessError;

/// Group and outcome of every training sample, from which sampling, weights and strata are computed.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingCells {
    /// Name of the attribute.
    pub attribute: String,
    /// Names of its levels.
    pub levels: Vec<String>,
    /// Group of every training sample, `[n]`.
    pub groups: Vec<Option<GroupId>>,
    /// Event indicator of every training sample, `[n]`.
    pub event: Vec<bool>,
    /// Cut point of the outcome of every training sample, `[n]`: events round up, censorings down.
    pub interval: Vec<usize>,
    /// Number of cut points.
    pub n_cut_points: usize,
}

impl TrainingCells {
    /// Groups and outcomes of the rows `train` of a loader, which was made with the membership of `groups`; `None` without
    /// groups.
    ///
    /// # Errors
    /// [`FairnessError::Metric`] for invalid outcomes, [`FairnessError::Survival`] for a negative time.
    pub fn of(
        groups: Option<&Groups>,
        loader: &Loader<'_>,
        train: &[usize],
        cut_points: &CutPoints,
    ) -> Result<Self, FairnessError> {
        let outcomes = loader.cohort().outcomes(train)?;
        Ok(Self {
            attribute: groups.map_or_else(String::new, |groups| groups.attribute().to_owned()),
            levels: groups.map_or_else(Vec::new, |groups| groups.levels().to_vec()),
            groups: train.iter().map(|row| loader.groups()[*row]).collect(),
            event: outcomes.event().to_vec(),
            interval: cut_points.targets("training", outcomes.time(), outcomes.event())?.intervals.index,
            n_cut_points: cut_points.n(),
        })
    }

    /// Number of training samples in each group.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.levels.len()];
        for group in self.groups.iter().flatten() {
            counts[group.index()] += 1;
        }
        counts
    }

    /// The sampling of `balanced-sampler`: every group is drawn equally often, with replacement, as by
    /// `subgroup-rebalancing`; a sample without a group keeps its share. Otherwise every sample is drawn once.
    pub(crate) fn sampling(&self, balanced: bool) -> Sampling {
        if !balanced {
            return Sampling::Shuffled;
        }
        let of_sample: Vec<Option<usize>> = self.groups.iter().map(|group| group.map(GroupId::index)).collect();
        Sampling::Weighted(sampling_weights(&of_sample))
    }

    /// Share of each group among the samples that have one, as they are drawn.
    pub(crate) fn shares(&self, balanced: bool) -> Vec<f64> {
        let counts = self.counts();
        let weights: Vec<f64> =
            counts.iter().map(|n| if balanced { f64::from(u8::from(*n > 0)) } else { *n as f64 }).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }

    /// # Errors
    /// [`FairnessError::NoGroups`] if no sample has a group.
    pub(crate) fn require_groups(&self, strategy: &'static str) -> Result<(), FairnessError> {
        if self.groups.iter().all(Option::is_none) {
            return Err(FairnessError::NoGroups { strategy, attribute: self.attribute.clone() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_what_is_drawn() {
        let groups = [Some(0), Some(2), None, Some(2), Some(2)].map(|group| group.map(GroupId));
        let cells = TrainingCells {
            attribute: "sex".to_owned(),
            levels: ["F", "M", "other"].map(str::to_owned).to_vec(),
            groups: groups.to_vec(),
            event: vec![true; 5],
            interval: vec![0; 5],
            n_cut_points: 2,
        };
        assert_eq!(cells.counts(), [1, 0, 3]);
        assert_eq!(cells.shares(false), [0.25, 0.0, 0.75]);
        assert_eq!(cells.shares(true), [0.5, 0.0, 0.5]);
    }
}
