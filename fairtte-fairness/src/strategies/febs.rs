//! Fair error-bound scaling (Tian et al. 2024, `FairSeg`, ICLR, section 5): as published where masks are predicted, elsewhere an
//! adaptation.
//!
//! *Masks, as published* (equations 2 and 3). `D_g` is the Dice loss of group g summed over the classes, all pixels of its samples
//! in the batch in one sum, and `W_g` = tanh((min over groups of D / `D_g`)^gamma), without gradient. The probabilities of a sample
//! are multiplied by the W of its group inside its Dice loss; cross-entropy is as it is, and the objective is the mean. The group
//! with the smallest D has W = tanh(1) = 0.76, as a sample without the attribute. The source prints the sum of W over all groups
//! as the factor; with its "corresponding to a particular attribute" that is read as the W of the own group. By equation 1 a W below
//! 1 raises the Dice loss of a mask that is found from 0 to (1 - W)^2 / (1 + W^2). 1e-8 is added to every `D_g`. A method that
//! weighs the losses of groups themselves is `group-dro`.
//!
//! *Times and classes.* Acts on the weights of the losses. With `L_g` the mean loss of group g in the batch,
//! `W_g` = tanh((min over groups of L / `L_g`)^gamma), `v_g` = 1 / `W_g` divided by its mean over the samples, without gradient;
//! loss = mean `v_g(i)` `l_i`: the group with the larger loss gets more weight. Needs the attribute in training only.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `gamma` | 1 | [0, 100] | strength; source 1; 0 is the plain mean, but of masks W = tanh(1) for every group |
//! | `decay` | 0 | [0, 1) | `L_g` = decay * its earlier value + (1 - decay) * that of the batch, from the first batch with the group on; 0.9 suits small batches |
//! | `weigh-by` | `loss` | `loss`, `likelihood` | what weights are computed from: `likelihood` for heads whose losses depend on when events happen; not for masks |
//!
//! With masks `decay` is that of `D_g`.
//!
//! *Adaptation.* The source multiplies predicted scores by W inside the Dice loss, where a smaller W means a larger loss for
//! a group that does worse. A likelihood has no such scores, and W as weight of the loss would favour the group that does
//! best; its inverse keeps the direction. 1e-8 is added to every `L_g`, and a negative one counts as 0.
//! A group without a sample with a loss term is left out of minimum and mean (the released code leaves 0 there, and then
//! NaN). Samples without the attribute have weight 1. With the Cox heads `L_g` is the mean over the events of the group.
//! There and with `deephit` `L_g` depends on when the events of the group happen, by the size of the risk sets and the
//! number of pairs: with `weigh-by = "loss"` the weight goes to groups with early events, whether fitted badly or not.
//! `likelihood` (`weigh_by.rs`) removes that from the weights. Golden values: our worked cases `golden/febs.json`; of masks torch,
//! in the test.

use fairtte_metrics::GroupId;
use fairtte_survival::Segmentation;
use serde::{Deserialize, Serialize};

use super::groups::{GroupMeans, unmoved_weights, weight_terms, weighted_sum};
use super::objective::{Objective, Terms, Value};
use super::{ExpectedBatch, ObjectiveStrategy, Strategy, StrategySettings, TrainingCells, Watch, WeighBy};
use crate::{FairnessError, LearnerSpec, check};

/// The constant added to the mean loss of a group.
const EPSILON: f64 = 1e-8;

/// Settings of fair error-bound scaling.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FebsConfig {
    /// Strength, in [0, 100]; 0 is the plain mean of losses, and of masks the factor tanh(1) for every group.
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
        "FairSeg's scaling (Tian et al. 2024): of masks as published, elsewhere more weight for groups with a larger loss"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let Self { gamma, decay, .. } = *self;
        check("gamma", gamma, (0.0..=100.0).contains(&gamma), "a number in [0, 100]")?;
        check("decay", decay, (0.0..1.0).contains(&decay), "a number in [0, 1)")
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn models_masks(&self) -> bool {
        true
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        let Some(masks) = expected.head.of_masks() else { return Ok(()) };
        let is_read = self.weigh_by == WeighBy::Loss;
        check("weigh-by", "likelihood", is_read, "loss where masks are predicted: the scaling reads the Dice loss")?;
        let scales = masks.dice_factor() > 0.0;
        let expected = "a head with a dice above 0, because the scaling is inside the Dice loss";
        check("gamma", self.gamma, scales, expected)
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        let mut febs = Febs::new(self, cells)?;
        febs.of_masks = spec.network.classifier.pixel_classes.is_some();
        ObjectiveStrategy::boxed(febs, spec)
    }
}

/// Gives more weight to groups with a larger loss.
#[derive(Clone, Debug)]
pub struct Febs {
    config: FebsConfig,
    levels: Vec<String>,
    /// Mean loss of every group so far, if earlier batches count; `None` before the first batch with the group.
    running: Vec<Option<f64>>,
    /// Whether masks are predicted: the weights are then the published ones, whose largest is tanh(1).
    of_masks: bool,
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
        let (levels, running) = (cells.levels.clone(), vec![None; cells.levels.len()]);
        Ok(Self { config: *config, levels, running, of_masks: false })
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

impl Febs {
    /// The published form: the probabilities of a sample are scaled inside its Dice loss.
    fn value_of_masks(&mut self, head: &Segmentation, terms: &Terms<'_>) -> Value {
        let present = GroupMeans::new(terms.groups, terms.counted, self.levels.len());
        let losses = head.group_losses(terms.outputs.clone(), terms.targets, &present.members);
        let weights = published(&self.with_past(losses), self.config.gamma);
        let of_sample = |group: &Option<GroupId>| group.and_then(|group| weights[group.index()]).unwrap_or(LARGEST);
        let scale: Vec<f64> = terms.groups.iter().map(of_sample).collect();
        let losses = head.scaled_losses(terms.outputs.clone(), terms.targets, Some(&scale));
        Value {
            objective: losses.sum() / terms.n_counted() as f64,
            absent_groups: present.n_absent(),
            terms: weight_terms(&self.levels, weights),
            unread: Vec::new(),
        }
    }
}

impl Objective for Febs {
    fn name(&self) -> &'static str {
        "febs"
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        if let Some(head) = terms.context.outputs.head.of_masks() {
            return Ok(self.value_of_masks(head, terms));
        }
        let present = GroupMeans::new(terms.groups, terms.counted, self.levels.len());
        let losses = terms.weigh_by(self.config.weigh_by);
        let (coefficients, weights) = self.coefficients(&losses, &present, terms.counted);
        Ok(Value {
            objective: weighted_sum(&terms.losses, coefficients),
            absent_groups: present.n_absent(),
            terms: weight_terms(&self.levels, weights),
            unread: Vec::new(),
        })
    }

    fn watches(&self) -> Vec<Watch> {
        let means = "no weight of a group ever differed from equal weights by 5 % on the mean over an epoch, so the losses of the \
                     groups had no effect";
        let change = "raise `gamma`, unless the groups are fitted alike";
        let equal = if self.of_masks { LARGEST } else { 1.0 };
        vec![unmoved_weights(self.levels.iter(), equal, means, change)]
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

/// W of the group with the smallest loss, tanh(1).
const LARGEST: f64 = 0.761_594_155_955_764_9;

/// `W_g` of every group from its Dice loss, as published; `None` for a group that is absent.
fn published(losses: &[Option<f64>], gamma: f64) -> Vec<Option<f64>> {
    let smallest = losses.iter().flatten().copied().fold(f64::INFINITY, f64::min) + EPSILON;
    losses.iter().map(|loss| loss.map(|loss| (smallest / (loss + EPSILON)).powf(gamma).tanh())).collect()
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
