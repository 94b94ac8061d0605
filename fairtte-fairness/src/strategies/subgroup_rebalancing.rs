//! Subgroup rebalancing (Kamiran & Calders 2012, Knowl. Inf. Syst. 33; Idrissi et al. 2022; the paper's D.2.2).
//!
//! Acts on sampling (`mode = "resample"`, `"oversample"`) or on the loss (`mode = "reweigh"`); needs the attribute in training
//! only, and not at all with `by = "event"`, which is MEDFAIR's resampling by class.
//! Resampling: `w_i` = 1 / (K `n_cell(i)`) over the K non-empty cells, n draws with replacement per epoch.
//! Oversampling: every cell as often as the largest, by full copies of its samples and, for the rest, samples drawn without
//! replacement: exact counts, and an epoch of K times the largest cell.
//! Reweighing: `w_i` = P(g) P(d) / P(g, d) as loss weights, the definition in Kamiran & Calders; the paper describes
//! resampling. A sample without the attribute keeps its natural share 1/n (comes once), and the cells share the rest. A
//! cell without a sample is ignored.
//!
//! | setting | default | values |
//! |---|---|---|
//! | `by` | `group` | `group`, `event`, `group-x-event`: what makes a cell (resampling, oversampling) |
//! | `mode` | `resample` | `resample`, `oversample`, `reweigh` |
//!
//! Survival: only training is rebalanced. Cut points come from the unsampled training part; the pairs of `DeepHit` are
//! those of the resampled batch. Heads whose censored samples have no loss (the Cox heads) average over the others.
//! Golden values: our worked cases `golden/subgroup_rebalancing.json`.

use std::collections::BTreeMap;

use fairtte_data::Sampling;
use fairtte_metrics::GroupId;
use serde::{Deserialize, Serialize};

use super::groups::weighted_sum;
use super::objective::{Objective, Terms, Value};
use super::{ObjectiveStrategy, Strategy, StrategySettings, TrainingCells};
use crate::{FairnessError, LearnerSpec, check, written};

/// What makes a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cells {
    /// The group.
    #[default]
    Group,
    /// The event indicator.
    Event,
    /// Both.
    GroupXEvent,
}

/// Where the weights are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RebalancingMode {
    /// On sampling.
    #[default]
    Resample,
    /// On the loss.
    Reweigh,
    /// On sampling, with exact counts.
    Oversample,
}

/// Settings of subgroup rebalancing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SubgroupRebalancingConfig {
    /// The definition of the cells (resampling, oversampling).
    pub by: Cells,
    /// Where the weights are applied.
    pub mode: RebalancingMode,
}

impl StrategySettings for SubgroupRebalancingConfig {
    fn name(&self) -> &'static str {
        "subgroup-rebalancing"
    }

    fn summary(&self) -> &'static str {
        "every group (or group x event) is drawn equally often (Kamiran & Calders 2012)"
    }

    fn needs_groups(&self) -> bool {
        self.by != Cells::Event || self.mode == RebalancingMode::Reweigh
    }

    /// Cells of group and event are two also with one group.
    fn compares_groups(&self) -> bool {
        self.by == Cells::Group
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let has_effect = self.mode != RebalancingMode::Reweigh || self.by == Cells::Group;
        let expected = "no value with mode = \"reweigh\", whose weights are those of group and event";
        check("by", written(self.by), has_effect, expected)
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        ObjectiveStrategy::boxed(SubgroupRebalancing::new(self, cells)?, spec)
    }
}

/// Draws every cell equally often, or weights it as if group and event were independent.
#[derive(Clone, Debug)]
pub struct SubgroupRebalancing {
    sampling: Sampling,
    /// Loss weight of (group, event) when reweighing.
    weights: BTreeMap<(GroupId, bool), f64>,
}

impl SubgroupRebalancing {
    /// Computes the weights from the training part.
    ///
    /// # Errors
    /// [`FairnessError::NoGroups`] if groups are needed and no training sample has one.
    pub fn new(config: &SubgroupRebalancingConfig, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        if config.needs_groups() {
            cells.require_groups("subgroup-rebalancing")?;
        }
        let of_sample = cells_of(config.by, &cells.groups, &cells.event);
        let (sampling, weights) = match config.mode {
            RebalancingMode::Resample => (Sampling::Weighted(sampling_weights(&of_sample)), BTreeMap::new()),
            RebalancingMode::Oversample => (Sampling::Oversampled(of_sample), BTreeMap::new()),
            RebalancingMode::Reweigh => (Sampling::Shuffled, loss_weights(&cells.groups, &cells.event)),
        };
        Ok(Self { sampling, weights })
    }

    /// Loss weight of every sample of a batch when reweighing; 1 without the attribute.
    fn of_samples(&self, groups: &[Option<GroupId>], event: &[bool]) -> Vec<f64> {
        let weight = |(group, event): (&Option<GroupId>, &bool)| {
            group.and_then(|g| self.weights.get(&(g, *event))).copied().unwrap_or(1.0)
        };
        groups.iter().zip(event).map(weight).collect()
    }
}

impl Objective for SubgroupRebalancing {
    fn name(&self) -> &'static str {
        "subgroup-rebalancing"
    }

    fn sampling(&self) -> Sampling {
        self.sampling.clone()
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        let objective = if self.weights.is_empty() {
            terms.mean()
        } else {
            let weights = self.of_samples(terms.groups, &terms.targets.event);
            weighted_sum(&terms.losses, weights) / terms.n_counted() as f64
        };
        Ok(Value { objective, absent_groups: 0, terms: Vec::new(), unread: Vec::new() })
    }
}

/// Cell of every sample; `None` if its group is needed and unknown.
fn cells_of(by: Cells, groups: &[Option<GroupId>], event: &[bool]) -> Vec<Option<usize>> {
    let cell = |(group, event): (&Option<GroupId>, &bool)| match by {
        Cells::Group => group.map(GroupId::index),
        Cells::Event => Some(usize::from(*event)),
        Cells::GroupXEvent => group.map(|g| 2 * g.index() + usize::from(*event)),
    };
    groups.iter().zip(event).map(cell).collect()
}

/// Sampling weight of every sample, summing to 1.
pub(super) fn sampling_weights(cells: &[Option<usize>]) -> Vec<f64> {
    let mut counts = BTreeMap::new();
    for cell in cells.iter().flatten() {
        *counts.entry(*cell).or_insert(0_usize) += 1;
    }
    let n_known: usize = counts.values().sum();
    let n = cells.len() as f64;
    let share_of_cell = n_known as f64 / n / counts.len() as f64;
    cells.iter().map(|cell| cell.map_or(1.0 / n, |cell| share_of_cell / counts[&cell] as f64)).collect()
}

/// P(g) P(d) / P(g, d) of every non-empty cell, over the samples with a group.
fn loss_weights(groups: &[Option<GroupId>], event: &[bool]) -> BTreeMap<(GroupId, bool), f64> {
    let known: Vec<(GroupId, bool)> = groups.iter().zip(event).filter_map(|(g, d)| g.map(|g| (g, *d))).collect();
    let count = |select: &dyn Fn(&(GroupId, bool)) -> bool| known.iter().filter(|cell| select(cell)).count() as f64;
    let weight = |cell: &(GroupId, bool)| {
        let of_group = count(&|other| other.0 == cell.0);
        let of_event = count(&|other| other.1 == cell.1);
        of_group * of_event / (known.len() as f64 * count(&|other| other == cell))
    };
    let cells: std::collections::BTreeSet<_> = known.iter().copied().collect();
    cells.into_iter().map(|cell| (cell, weight(&cell))).collect()
}

#[cfg(test)]
#[path = "../../tests/inside/subgroup_rebalancing.rs"]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test may panic; counts are worth seeing")]
mod tests;
