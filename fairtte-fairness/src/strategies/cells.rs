//! Counts of the training part by group and outcome.

use std::collections::BTreeMap;

use fairtte_data::{Loader, Sampling};
use fairtte_metrics::{GroupId, Groups};
use fairtte_survival::CutPoints;
use serde::{Deserialize, Serialize};

use super::subgroup_rebalancing::sampling_weights;
use crate::FairnessError;
use crate::predict::targets_of;

/// Group and outcome of every training sample, from which sampling, weights and strata are computed.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingCells {
    /// Name of the attribute.
    pub attribute: String,
    /// Names of its levels.
    pub levels: Vec<String>,
    /// Group of every training sample, `[n]`.
    pub groups: Vec<Option<GroupId>>,
    /// Event indicator of every training sample, `[n]`; an event of another cause is none.
    pub event: Vec<bool>,
    /// Cut point of the outcome of every training sample, `[n]`: events of any cause round up, censorings down.
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
        let outcomes = loader.cohort().outcomes_of_event(train)?;
        Ok(Self {
            attribute: groups.map_or_else(String::new, |groups| groups.attribute().to_owned()),
            levels: groups.map_or_else(Vec::new, |groups| groups.levels().to_vec()),
            groups: train.iter().map(|row| loader.groups()[*row]).collect(),
            event: outcomes.event().to_vec(),
            interval: targets_of("training", loader.cohort(), train, cut_points)?.intervals.index,
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

    /// Number of training samples with an event in each group.
    pub(crate) fn event_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.levels.len()];
        for group in self.groups.iter().zip(&self.event).filter(|(_, event)| **event).filter_map(|(group, _)| *group) {
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

/// [`TrainingCells`] in counts: what a trained model keeps of the training part in place of its samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CellCounts {
    /// Name of the attribute; empty without groups.
    pub attribute: String,
    /// Names of its levels.
    pub levels: Vec<String>,
    /// Number of cut points.
    pub n_cut_points: usize,
    /// Number of training samples in every cell that has any: group, event, interval, samples.
    counts: Vec<(Option<usize>, bool, usize, usize)>,
}

impl From<&TrainingCells> for CellCounts {
    fn from(cells: &TrainingCells) -> Self {
        let mut counts: BTreeMap<(Option<usize>, bool, usize), usize> = BTreeMap::new();
        for ((group, event), interval) in cells.groups.iter().zip(&cells.event).zip(&cells.interval) {
            *counts.entry((group.map(GroupId::index), *event, *interval)).or_default() += 1;
        }
        Self {
            attribute: cells.attribute.clone(),
            levels: cells.levels.clone(),
            n_cut_points: cells.n_cut_points,
            counts: counts.into_iter().map(|((group, event, interval), n)| (group, event, interval, n)).collect(),
        }
    }
}

impl CellCounts {
    /// The cells, in another order of the samples.
    pub(crate) fn expand(&self) -> TrainingCells {
        let all = || self.counts.iter().flat_map(|cell| std::iter::repeat_n(cell, cell.3));
        let group = |group: Option<usize>| group.and_then(|index| u32::try_from(index).ok()).map(GroupId);
        TrainingCells {
            attribute: self.attribute.clone(),
            levels: self.levels.clone(),
            groups: all().map(|cell| group(cell.0)).collect(),
            event: all().map(|cell| cell.1).collect(),
            interval: all().map(|cell| cell.2).collect(),
            n_cut_points: self.n_cut_points,
        }
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

    #[test]
    fn counts_keep_everything_but_the_order_of_the_samples() {
        let cells = TrainingCells {
            attribute: "sex".to_owned(),
            levels: ["F", "M"].map(str::to_owned).to_vec(),
            groups: [Some(1), None, Some(0), Some(1)].map(|group| group.map(GroupId)).to_vec(),
            event: vec![true, false, true, true],
            interval: vec![2, 0, 1, 2],
            n_cut_points: 3,
        };
        let sorted = |cells: &TrainingCells| {
            let rows = (0..cells.event.len()).map(|i| (cells.groups[i], cells.event[i], cells.interval[i]));
            let mut rows: Vec<_> = rows.collect();
            rows.sort_unstable();
            rows
        };
        let counts = CellCounts::from(&cells);
        let expanded = counts.expand();
        assert_eq!(sorted(&expanded), sorted(&cells));
        assert_eq!((expanded.levels.clone(), expanded.n_cut_points), (cells.levels.clone(), 3));
        assert_eq!(CellCounts::from(&expanded), counts);
    }
}
