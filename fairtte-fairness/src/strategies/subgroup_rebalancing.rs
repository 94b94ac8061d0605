//! Subgroup rebalancing (Kamiran & Calders 2012, Knowl. Inf. Syst. 33; Idrissi et al. 2022; the paper's D.2.2).
//!
//! Acts on sampling (`mode = "resample"`) or on the loss (`mode = "reweigh"`); needs the attribute in training only.
//! Resampling: `w_i` = 1 / (K `n_cell(i)`) over the K non-empty cells, n draws with replacement per epoch.
//! Reweighing: `w_i` = P(g) P(d) / P(g, d) as loss weights, the definition in Kamiran & Calders; the paper describes
//! resampling. A sample without the attribute keeps its natural share 1/n, and the cells share the rest.
//!
//! | setting | default | values |
//! |---|---|---|
//! | `by` | `group` | `group`, `event`, `group-x-event`: what makes a cell (resampling) |
//! | `mode` | `resample` | `resample`, `reweigh` |
//!
//! Survival: only training is rebalanced. Cut points come from the unsampled training part; the pairs of `DeepHit` are
//! those of the resampled batch. Heads whose censored samples have no loss (the Cox heads) average over the others. Golden values: our worked cases `golden/subgroup_rebalancing.json`.

use std::collections::BTreeMap;

use fairtte_data::Sampling;
use fairtte_metrics::GroupId;
use serde::{Deserialize, Serialize};

use super::groups::weighted_sum;
use super::objective::{Objective, Terms, Value};
use super::{StrategyConfig, TrainingCells};
use crate::{FairnessError, check};

/// What makes a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Where the weights act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RebalancingMode {
    /// On sampling.
    #[default]
    Resample,
    /// On the loss.
    Reweigh,
}

/// Settings of subgroup rebalancing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SubgroupRebalancingConfig {
    /// What makes a cell (resampling).
    pub by: Cells,
    /// Where the weights act.
    pub mode: RebalancingMode,
}

impl SubgroupRebalancingConfig {
    /// Checks that no setting is without effect.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] if `by` is set for reweighing, whose weights are those of group x event.
    pub fn validate(&self) -> Result<(), FairnessError> {
        let has_effect = self.mode == RebalancingMode::Resample || self.by == Cells::Group;
        let expected = "no value with mode = \"reweigh\", whose weights are those of group and event";
        check("strategy.subgroup-rebalancing.by", format!("{:?}", self.by), has_effect, expected)
    }
}

/// Every cell is drawn equally often, or weighs as if group and event were independent.
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
        if StrategyConfig::SubgroupRebalancing(*config).needs_groups() {
            cells.require_groups("subgroup-rebalancing")?;
        }
        Ok(match config.mode {
            RebalancingMode::Resample => Self {
                sampling: Sampling::Weighted(sampling_weights(config.by, &cells.groups, &cells.event)),
                weights: BTreeMap::new(),
            },
            RebalancingMode::Reweigh => {
                Self { sampling: Sampling::Shuffled, weights: loss_weights(&cells.groups, &cells.event) }
            }
        })
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
            let cells = terms.groups.iter().zip(&terms.targets.event);
            let weight = |(group, event): (&Option<GroupId>, &bool)| {
                group.and_then(|g| self.weights.get(&(g, *event))).copied().unwrap_or(1.0)
            };
            weighted_sum(&terms.losses, cells.map(weight).collect()) / terms.n_counted() as f64
        };
        Ok(Value { objective, absent_groups: 0, terms: Vec::new(), unread: Vec::new() })
    }
}

/// Sampling weight of every sample, summing to 1.
fn sampling_weights(by: Cells, groups: &[Option<GroupId>], event: &[bool]) -> Vec<f64> {
    let cell = |(group, event): (&Option<GroupId>, &bool)| match by {
        Cells::Group => group.map(|g| (g.0, false)),
        Cells::Event => Some((0, *event)),
        Cells::GroupXEvent => group.map(|g| (g.0, *event)),
    };
    let cells: Vec<_> = groups.iter().zip(event).map(cell).collect();
    let mut counts = BTreeMap::new();
    for cell in cells.iter().flatten() {
        *counts.entry(*cell).or_insert(0_usize) += 1;
    }
    let n_known: usize = counts.values().sum();
    let n = cells.len() as f64;
    let share_of_cell = n_known as f64 / n / counts.len() as f64;
    let weight = |cell: &Option<(u32, bool)>| cell.map_or(1.0 / n, |cell| share_of_cell / counts[&cell] as f64);
    cells.iter().map(weight).collect()
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
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    #![expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
    use super::*;
    use approx::assert_relative_eq;
    use serde_json::Value as Json;

    fn groups(codes: &[u32]) -> Vec<Option<GroupId>> {
        codes.iter().map(|code| Some(GroupId(*code))).collect()
    }

    #[test]
    fn sampling_weights_are_those_of_the_worked_cases() {
        let golden: Json = serde_json::from_str(include_str!("../../tests/golden/subgroup_rebalancing.json")).unwrap();
        let mut n_compared = 0;
        for case in golden["cases"].as_array().unwrap() {
            let (inputs, expected) = (&case["inputs"], &case["expected"]["sampling_weight"]);
            let Some(expected) = expected.as_array() else { continue };
            let codes: Vec<u32> = serde_json::from_value(inputs["group"].clone()).unwrap();
            let event: Vec<u8> = serde_json::from_value(inputs["event"].clone()).unwrap();
            let event: Vec<bool> = event.iter().map(|e| *e == 1).collect();
            let by: Cells = serde_json::from_value(inputs["by"].clone()).unwrap();
            let weights = sampling_weights(by, &groups(&codes), &event);
            for (found, expected) in weights.iter().zip(expected) {
                assert_relative_eq!(*found, expected.as_f64().unwrap(), max_relative = 1e-9);
                n_compared += 1;
            }
        }
        println!("subgroup rebalancing: {n_compared} sampling weights compared");
        assert!(n_compared >= 30, "only {n_compared} compared");
    }

    #[test]
    fn a_sample_without_the_attribute_keeps_its_natural_share() {
        let groups = [Some(GroupId(0)), Some(GroupId(0)), Some(GroupId(1)), None];
        let weights = sampling_weights(Cells::Group, &groups, &[true, false, true, false]);
        assert_relative_eq!(weights[3], 0.25);
        assert_relative_eq!(weights[2], 0.375);
        assert_relative_eq!(weights.iter().sum::<f64>(), 1.0);
    }

    #[test]
    fn reweighing_makes_group_and_event_independent() {
        let groups = groups(&[0, 0, 0, 0, 1, 1]);
        let event = [true, true, true, false, true, false];
        let weights = loss_weights(&groups, &event);
        // 4/6 of the samples are in group 0 and 4/6 have the event: 3 samples stand for 6 * 16/36.
        assert_relative_eq!(weights[&(GroupId(0), true)], 16.0 / 18.0);
        let total = |event_is: bool| -> f64 {
            let cells = groups.iter().zip(&event).filter(|(g, d)| **g == Some(GroupId(1)) && **d == event_is);
            cells.map(|(g, d)| weights[&(g.unwrap(), *d)]).sum()
        };
        assert_relative_eq!(total(true) / (total(true) + total(false)), 4.0 / 6.0);
    }
}
