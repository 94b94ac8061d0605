//! The loss of the worst group on top of the plain mean; a toy.
//!
//! Acts on the objective: mean `l_i` + weight * max over groups of `L_g`, the mean loss of group g in the batch. Needs the
//! attribute in training only. Censored samples are part of `L_g` if the head gives them a loss.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `weight` | 1 | >= 0 | weight of the loss of the worst group |

use burn::tensor::Tensor;
use fairtte_fairness::FairnessError;
use fairtte_fairness::strategies::{GroupMeans, Objective, Terms, TrainingCells, Value};

#[derive(Clone, Copy, Debug)]
pub struct WorstGroupConfig {
    pub weight: f64,
}

#[derive(Debug)]
pub struct WorstGroup {
    weight: f64,
    n_groups: usize,
}

impl WorstGroup {
    pub fn new(config: WorstGroupConfig, cells: &TrainingCells) -> Result<Self, FairnessError> {
        let WorstGroupConfig { weight } = config;
        if weight >= 0.0 && weight.is_finite() {
            return Ok(Self { weight, n_groups: cells.levels.len() });
        }
        let (key, expected) = ("weight", "a finite number >= 0".to_owned());
        Err(FairnessError::Setting { key, value: weight.to_string(), expected })
    }
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
