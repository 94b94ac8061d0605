//! Fair error-bound scaling (Tian et al. 2024, `FairSeg`, ICLR, section 5), an adaptation.
//!
//! Acts on the weights of the losses. With `L_g` the mean loss of group g in the batch,
//! `W_g` = tanh((min over groups of L / `L_g`)^gamma), `v_g` = 1 / `W_g` divided by its mean over the samples, without gradient;
//! loss = mean `v_g(i)` `l_i`: the group with the larger loss gets more weight. Needs the attribute in training only.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `gamma` | 1 | [0, 100] | strength; 0 is the plain mean; source 1 |
//! | `decay` | 0 | [0, 1) | `L_g` = decay * its earlier value + (1 - decay) * that of the batch, from the first batch with the group on; 0.9 suits small batches |
//! | `weigh-by` | `loss` | `loss`, `likelihood` | what weights are computed from: `likelihood` for heads whose losses depend on when events happen |
//!
//! *Adaptation.* The source multiplies predicted scores by W inside the Dice loss, where a smaller W means a larger loss for
//! a group that does worse. A likelihood has no such scores, and W as weight of the loss would favour the group that does
//! best; its inverse keeps the direction. 1e-8 is added to every `L_g`, and a negative one counts as 0.
//! A group without a sample with a loss term is left out of minimum and mean (the released code leaves 0 there, and then
//! NaN). Samples without the attribute have weight 1. With the Cox heads `L_g` is the mean over the events of the group.
//! There and with `deephit` `L_g` depends on when the events of the group happen, by the size of the risk sets and the
//! number of pairs: with `weigh-by = "loss"` the weight goes to groups with early events, whether fitted badly or not.
//! `likelihood` (`weigh_by.rs`) removes that from the weights. Golden values: our worked cases `golden/febs.json`.

use serde::{Deserialize, Serialize};

use super::groups::{GroupMeans, unmoved_weights, weight_term, weighted_sum};
use super::objective::{Objective, Terms, Value};
use super::{ObjectiveStrategy, Strategy, StrategySettings, TrainingCells, Watch, WeighBy};
use crate::{FairnessError, LearnerSpec, check};

/// The constant added to the mean loss of a group.
const EPSILON: f64 = 1e-8;

/// Settings of fair error-bound scaling.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FebsConfig {
    /// Strength, in [0, 100]; 0 is the plain mean.
    pub gamma: f64,
    /// Share of the earlier mean losses in the present ones, in [0, 1).
    pub decay: f64,
    /// What weights are computed from.
    pub weigh_by: WeighBy,
}

impl Default for FebsConfig {
    fn default() -> Self {
        Self { gamma: 1.0, decay: 0.0, weigh_by: WeighBy::Loss }
    }
}

impl StrategySettings for FebsConfig {
    fn name(&self) -> &'static str {
        "febs"
    }

    fn summary(&self) -> &'static str {
        "groups with a larger loss get more weight, an adaptation of FairSeg's scaling (Tian et al. 2024)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let Self { gamma, decay, .. } = *self;
        check("gamma", gamma, (0.0..=100.0).contains(&gamma), "a number in [0, 100]")?;
        check("decay", decay, (0.0..1.0).contains(&decay), "a number in [0, 1)")
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        ObjectiveStrategy::boxed(Febs::new(self, cells)?, spec)
    }
}

/// Gives more weight to groups with a larger loss.
#[derive(Clone, Debug)]
pub struct Febs {
    config: FebsConfig,
    levels: Vec<String>,
    /// Mean loss of every group so far, if earlier batches count; `None` before the first batch with the group.
    running: Vec<Option<f64>>,
}

impl Febs {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] if no training sample has a
    /// group.
    pub fn new(config: &FebsConfig, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        cells.require_groups("febs")?;
        Ok(Self { config: *config, levels: cells.levels.clone(), running: vec![None; cells.levels.len()] })
    }

    /// Updates the running mean losses of the groups with those of a batch and returns them; `None` for an absent group.
    fn with_past(&mut self, means: Vec<Option<f64>>) -> Vec<Option<f64>> {
        let decay = self.config.decay;
        let join = |(running, mean): (&mut Option<f64>, Option<f64>)| {
            let mean = mean?;
            *running = Some(running.map_or(mean, |past| decay * past + (1.0 - decay) * mean));
            *running
        };
        self.running.iter_mut().zip(means).map(join).collect()
    }

    /// The coefficient of every sample's loss, `[batch]`, and the weights of the groups.
    fn coefficients(&mut self, losses: &[f64], present: &GroupMeans, counted: &[bool]) -> (Vec<f64>, Vec<Option<f64>>) {
        let means = self.with_past(present.of(losses));
        let weights = weights(&means, &present.counts(), self.config.gamma, EPSILON);
        let n = counted.iter().filter(|counted| **counted).count().max(1) as f64;
        let mut coefficients: Vec<f64> = counted.iter().map(|counted| if *counted { 1.0 / n } else { 0.0 }).collect();
        for (members, weight) in present.members.iter().zip(&weights) {
            if let Some(weight) = weight {
                for i in members {
                    coefficients[*i] *= weight;
                }
            }
        }
        (coefficients, weights)
    }
}

impl Objective for Febs {
    fn name(&self) -> &'static str {
        "febs"
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        let present = GroupMeans::new(terms.groups, terms.counted, self.levels.len());
        let losses = terms.weigh_by(self.config.weigh_by);
        let (coefficients, weights) = self.coefficients(&losses, &present, terms.counted);
        let named = self.levels.iter().zip(weights);
        Ok(Value {
            objective: weighted_sum(&terms.losses, coefficients),
            absent_groups: present.n_absent(),
            terms: named.filter_map(|(level, weight)| Some((weight_term(level), weight?))).collect(),
            unread: Vec::new(),
        })
    }

    fn watches(&self) -> Vec<Watch> {
        let means = "no weight of a group ever differed from equal weights by 5 % on the mean over an epoch, so the losses of the \
                     groups had no effect";
        let change = "raise strategy.febs.gamma, unless the groups are fitted alike";
        vec![unmoved_weights(self.levels.iter(), 1.0, means, change)]
    }

    /// For every group whether it has occurred, and its mean loss.
    fn state(&self) -> Vec<f64> {
        self.running.iter().flat_map(|mean| [f64::from(u8::from(mean.is_some())), mean.unwrap_or(0.0)]).collect()
    }

    fn restore(&mut self, state: &[f64]) -> bool {
        let fits = state.len() == 2 * self.running.len();
        if fits {
            self.running = state.chunks_exact(2).map(|group| (group[0] > 0.0).then_some(group[1])).collect();
        }
        fits
    }
}

/// `v_g` of every group from its mean loss and number of samples, both `None` and 0 for a group that is absent.
///
/// In logarithms: 1 / tanh(x) is 1 / x below exp(-20), to the last digit, and may overflow there.
fn weights(means: &[Option<f64>], counts: &[usize], gamma: f64, epsilon: f64) -> Vec<Option<f64>> {
    let losses: Vec<Option<f64>> = means.iter().map(|mean| mean.map(|mean| mean.max(0.0) + epsilon)).collect();
    let smallest = losses.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let log_inverse = |loss: f64| {
        let log_ratio = gamma * (smallest / loss).ln();
        if log_ratio < -20.0 { -log_ratio } else { -log_ratio.exp().tanh().ln() }
    };
    let logs: Vec<Option<f64>> = losses.into_iter().map(|loss| loss.map(log_inverse)).collect();
    let largest = logs.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let scaled: Vec<Option<f64>> = logs.into_iter().map(|log| log.map(|log| (log - largest).exp())).collect();
    let n: usize = counts.iter().sum();
    let total: f64 = scaled.iter().zip(counts).filter_map(|(v, n)| v.map(|v| v * *n as f64)).sum();
    scaled.into_iter().map(|v| v.map(|v| v * n as f64 / total)).collect()
}

#[cfg(test)]
#[path = "../../tests/inside/febs.rs"]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test may panic; counts are worth seeing")]
mod tests;
