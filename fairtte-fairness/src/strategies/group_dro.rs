//! Group distributionally robust optimisation (Sagawa et al. 2020, Algorithm 1, arXiv 1911.08731; the paper's D.2.1).
//!
//! Acts on the objective; needs the attribute in training only. Per step, with `L_g` the mean loss of group g in the batch:
//! `w_g` <- `w_g` exp(eta (`L_g` + C / `sqrt(n_g)`)), normalise, then minimise `sum_g` `w_g` `L_g` (weights without
//! gradient, `L_g` without the adjustment, `n_g` the training count). Weights are kept as logarithms: large losses do
//! not overflow.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `eta` | 0.1 | > 0 | step size of the group weights; source 0.01, the paper searches 1e-3 to 1e-1 |
//! | `adjustment` | 0 | >= 0 | C, generalisation adjustment (section 3.3 of the source searches 0 to 5) |
//! | `absent` | `unit` | `unit`, `hold` | a group absent from the batch gets factor 1, or keeps its normalised weight |
//! | `balanced-sampler` | true | | draw every group equally often, as the released code does |
//! | `weigh-by` | `loss` | `loss`, `likelihood` | what weights are computed from: `likelihood` for heads whose losses depend on when events happen |
//!
//! After t steps a weight has changed by exp(eta t times the difference of the losses): eta must be such that this
//! exponent is of order 1, or the weights stay equal, which `subgroup-rebalancing` achieves as well. 300 steps at a
//! difference of 0.3 need an eta above 0.01, and a gain once observed there was that of equal weights. The log contains
//! the weights. With `unit` and positive losses a rare group would lose weight in every batch without it, hence the
//! sampler. Survival: `L_g` is the mean survival loss, censored samples included, except with the Cox heads, where a
//! censored sample has no loss: a group without an event in the batch counts as absent. Samples without the attribute
//! train the task with weight 1/n each. With the Cox heads and `deephit` a group's loss depends on when its events
//! happen, by the size of the risk sets and the number of pairs: with `weigh-by = "loss"` the weights then go to groups
//! with early events, whether fitted badly or not. `likelihood` (`weigh_by.rs`) removes that from the weights, not from
//! the objective. Golden values: our worked cases `golden/group_dro.json`.

use fairtte_data::Sampling;
use fairtte_metrics::GroupId;
use serde::{Deserialize, Serialize};

use super::groups::{GroupMeans, unmoved_weights, weight_terms, weighted_sum};
use super::numbers::log_sum_exp;
use super::objective::{Objective, Terms, Value};
use super::{ObjectiveStrategy, Strategy, StrategySettings, TrainingCells, Watch, WeighBy};
use crate::{FairnessError, LearnerSpec, check_not_negative, check_positive};

/// What happens to the weight of a group without a sample in the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AbsentGroup {
    /// Factor 1, then all weights are normalised (Algorithm 1).
    #[default]
    Unit,
    /// It is held; the groups in the batch share the mass that they had.
    Hold,
}

/// Settings of Group DRO.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GroupDroConfig {
    /// Step size of the group weights, above 0.
    pub eta: f64,
    /// Generalisation adjustment C, at least 0.
    pub adjustment: f64,
    /// What happens to the weight of an absent group.
    pub absent: AbsentGroup,
    /// Draw every group equally often.
    pub balanced_sampler: bool,
    /// What weights are computed from.
    pub weigh_by: WeighBy,
}

impl Default for GroupDroConfig {
    fn default() -> Self {
        Self { eta: 0.1, adjustment: 0.0, absent: AbsentGroup::Unit, balanced_sampler: true, weigh_by: WeighBy::Loss }
    }
}

impl StrategySettings for GroupDroConfig {
    fn name(&self) -> &'static str {
        "group-dro"
    }

    fn summary(&self) -> &'static str {
        "groups with a larger loss gain weight (Sagawa et al. 2020)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let Self { eta, adjustment, .. } = *self;
        check_positive("eta", eta)?;
        check_not_negative("adjustment", adjustment)
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn models_masks(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        ObjectiveStrategy::boxed(GroupDro::new(self, cells)?, spec)
    }
}

/// Increases the weight of groups with a larger loss.
#[derive(Clone, Debug)]
pub struct GroupDro {
    eta: f64,
    absent: AbsentGroup,
    /// C / `sqrt(n_g)` of every group.
    adjustments: Vec<f64>,
    /// Logarithms of the weights, which sum to 1.
    log_weights: Vec<f64>,
    levels: Vec<String>,
    sampling: Sampling,
    weigh_by: WeighBy,
}

impl GroupDro {
    /// Creates the strategy with equal weights for the groups that occur in training.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] if no training sample has a
    /// group.
    pub fn new(config: &GroupDroConfig, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        let GroupDroConfig { eta, adjustment, absent, balanced_sampler, weigh_by } = *config;
        cells.require_groups("group-dro")?;
        let counts = cells.counts();
        let n_present = counts.iter().filter(|n| **n > 0).count() as f64;
        let of_count = |n: &usize, present: f64, empty: f64| if *n > 0 { present } else { empty };
        Ok(Self {
            eta,
            absent,
            adjustments: counts.iter().map(|n| of_count(n, adjustment / (*n as f64).sqrt(), 0.0)).collect(),
            log_weights: counts.iter().map(|n| of_count(n, -n_present.ln(), f64::NEG_INFINITY)).collect(),
            levels: cells.levels.clone(),
            sampling: cells.sampling(balanced_sampler),
            weigh_by,
        })
    }

    /// The weights of all groups, summing to 1.
    fn weights(&self) -> Vec<f64> {
        self.log_weights.iter().map(|w| w.exp()).collect()
    }

    /// Algorithm 1, lines 5 and 6; `None` = absent from the batch.
    fn update(&mut self, mean_losses: &[Option<f64>]) {
        let moves = |g: usize| match self.absent {
            AbsentGroup::Unit => true,
            AbsentGroup::Hold => mean_losses[g].is_some(),
        };
        let log_mass = |weights: &[f64]| {
            log_sum_exp(weights.iter().enumerate().filter(|(g, _)| moves(*g)).map(|(_, weight)| *weight))
        };
        let before = log_mass(&self.log_weights);
        let mut weights = self.log_weights.clone();
        for (g, loss) in mean_losses.iter().enumerate() {
            weights[g] += loss.map_or(0.0, |loss| self.eta * (loss + self.adjustments[g]));
        }
        let after = log_mass(&weights);
        if before.is_finite() && after.is_finite() {
            for (g, weight) in weights.iter_mut().enumerate().filter(|(g, _)| moves(*g)) {
                *weight += before - after;
                self.log_weights[g] = *weight;
            }
        }
    }

    /// Updates the weights and returns the coefficient of every sample's loss, which carries no gradient, `[batch]`.
    fn coefficients(&mut self, losses: &[f64], counted: &[bool], groups: &[Option<GroupId>]) -> (Vec<f64>, usize) {
        let present = GroupMeans::new(groups, counted, self.log_weights.len());
        self.update(&present.of(losses));
        let counts = present.counts();
        let weights = self.weights();
        let n = counted.iter().filter(|counted| **counted).count().max(1) as f64;
        let share_known = present.n_known() as f64 / n;
        let of_group = |g: &GroupId| share_known * weights[g.index()] / counts[g.index()] as f64;
        let of_sample = |(group, counted): (&Option<GroupId>, &bool)| match group {
            _ if !counted => 0.0,
            Some(group) => of_group(group),
            None => 1.0 / n,
        };
        let coefficients = groups.iter().zip(counted).map(of_sample).collect();
        (coefficients, present.n_absent())
    }
}

impl Objective for GroupDro {
    fn name(&self) -> &'static str {
        "group-dro"
    }

    fn sampling(&self) -> Sampling {
        self.sampling.clone()
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        let losses = terms.weigh_by(self.weigh_by);
        let (coefficients, absent_groups) = self.coefficients(&losses, terms.counted, terms.groups);
        Ok(Value {
            objective: weighted_sum(&terms.losses, coefficients),
            absent_groups,
            terms: weight_terms(&self.levels, self.weights().into_iter().map(Some)),
            unread: Vec::new(),
        })
    }

    fn watches(&self) -> Vec<Watch> {
        // A group without a training sample has weight 0.
        let trained = self.levels.iter().zip(&self.log_weights).filter(|(_, w)| w.is_finite()).map(|(level, _)| level);
        let equal = 1.0 / trained.clone().count() as f64;
        let means = "no weight of a group ever differed from equal weights by 5 % on the mean over an epoch, so the losses \
                     of the groups had no lasting effect";
        let change = "raise `eta`: eta x steps x difference of the groups' losses must be of order 1; or lower it, if the \
                      weights in steps.jsonl go from one group to the other";
        vec![unmoved_weights(trained, equal, means, change)]
    }

    fn state(&self) -> Vec<f64> {
        // Logarithms, so that a resumed run continues bit-identically; JSON cannot represent minus infinity.
        self.log_weights.iter().map(|w| w.max(f64::MIN)).collect()
    }

    fn restore(&mut self, state: &[f64]) -> bool {
        let fits = state.len() == self.log_weights.len();
        if fits {
            self.log_weights = state.iter().map(|w| if *w > f64::MIN { *w } else { f64::NEG_INFINITY }).collect();
        }
        fits
    }
}

#[cfg(test)]
#[path = "../../tests/inside/group_dro.rs"]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test may panic; counts are worth seeing")]
mod tests;
