//! The loss of the worst group on top of the plain mean; a toy.
//!
//! Acts on the objective: mean `l_i` + weight * max over groups of `L_g`, the mean loss of group g in the batch. Needs the
//! attribute in training only. Censored samples are part of `L_g` if the head gives them a loss.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `weight` | 1 | >= 0 | weight of the loss of the worst group |

use burn::tensor::Tensor;
use fairtte_fairness::strategies::{
    GroupMeans, Objective, ObjectiveStrategy, StrategySettings, Terms, TrainingCells, Value,
};
use fairtte_fairness::{FairnessError, LearnerSpec, Strategy};
use serde::{Deserialize, Serialize};

/// The table `[strategy.worst-group]`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct WorstGroupConfig {
    /// Weight of the worst group, at least 0.
    pub weight: f64,
}

impl Default for WorstGroupConfig {
    fn default() -> Self {
        Self { weight: 1.0 }
    }
}

impl StrategySettings for WorstGroupConfig {
    fn name(&self) -> &'static str {
        "worst-group"
    }

    fn summary(&self) -> &'static str {
        "the loss of the worst group is added to the mean loss (an example)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        if self.weight >= 0.0 && self.weight.is_finite() {
            return Ok(());
        }
        let expected = "a finite number >= 0".to_owned();
        Err(FairnessError::Setting { key: "weight", value: self.weight.to_string(), expected })
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        self.validate()?;
        ObjectiveStrategy::boxed(WorstGroup { weight: self.weight, n_groups: cells.levels.len() }, spec)
    }
}

/// The objective.
#[derive(Debug)]
pub struct WorstGroup {
    weight: f64,
    n_groups: usize,
}

impl Objective for WorstGroup {
    fn name(&self) -> &'static str {
        "worst-group"
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        let groups = GroupMeans::new(terms.groups, terms.counted, self.n_groups);
        let mean = |members: &Vec<usize>| -> Tensor<1> {
            let of = |i: &usize| terms.losses.clone().narrow(0, *i, 1);
            Tensor::cat(members.iter().map(of).collect(), 0).mean()
        };
        let means: Vec<Tensor<1>> = groups.members.iter().filter(|members| !members.is_empty()).map(mean).collect();
        let mut objective = terms.mean();
        if !means.is_empty() {
            objective = objective + Tensor::cat(means, 0).max() * self.weight;
        }
        Ok(Value { objective, absent_groups: groups.n_absent(), terms: Vec::new(), unread: Vec::new() })
    }
}
