//! Chi-square distributionally robust optimisation for survival models (Hu & Chen 2022, ML4H, PMLR 193; 2024, JMLR;
//! Hashimoto et al. 2018, ICML).
//!
//! Acts on the objective: the largest mean loss of any subpopulation of at least a share alpha,
//! inf over eta of C sqrt(mean (`l_i` - eta)_+^2) + eta with C^2 = 2 (1/alpha - 1)^2 + 1. alpha = 1 is the plain mean.
//! No attribute, neither in training nor for prediction.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `alpha` | 0.8 | (0, 1] | smallest share of a subpopulation; the source searches 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5 |
//! | `weigh-by` | `loss` | `loss`, `likelihood` | what weights are computed from: `likelihood` for heads whose losses depend on when events happen |
//!
//! eta is exact (sorting and a closed form between two losses; the source searches it in [min - 1000, max]) and has no
//! gradient, so that the value is a weighted mean of the losses. If C^2 is not below the number of losses, the value is their
//! maximum: alpha is rejected where C^2 >= the number of losses that a batch is expected to have, which with the Cox
//! heads is the batch size times the event rate of the training part. It may still happen in a smaller last batch or
//! one with few events; the report contains the number of losses with weight.
//! Survival: losses must not depend on each other. With heads whose losses do (`deephit`, the Cox heads) the batch is split
//! into two halves with the same share of events, samples are ranked (risk sets formed, controls drawn) against the other
//! half only, and the values of both halves are added; gradients flow through both. There C^2 must be below half of that number.
//! The halves change with every step. Only samples with a loss term enter: with the Cox heads the events.
//! With these heads a loss depends on when its event happens, by the size of the risk set and the number of pairs: with
//! `weigh-by = "loss"` the worst subpopulation is that of early events, whether fitted badly or not. `likelihood`
//! (`weigh_by.rs`) determines it by the likelihood and minimises its weighted mean loss.
//! Where we differ from the released code: its ranking term ignores whether the first of a pair had an event.
//! Golden values: our worked cases `golden/chi_square_dro.json`.

mod optimum;

use fairtte_metrics::seeds::stream;
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use self::optimum::optimum;
use super::groups::weighted_sum;
use super::objective::{Objective, Terms, Value};
use super::{ExpectedBatch, ObjectiveStrategy, StepContext, Strategy, StrategySettings, TrainingCells, WeighBy};
use crate::{FairnessError, LearnerSpec, check};

/// Settings of chi-square DRO.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DroChiSquareConfig {
    /// Smallest share of a subpopulation, in (0, 1].
    pub alpha: f64,
    /// What weights are computed from.
    pub weigh_by: WeighBy,
}

impl Default for DroChiSquareConfig {
    fn default() -> Self {
        Self { alpha: 0.8, weigh_by: WeighBy::Loss }
    }
}

impl StrategySettings for DroChiSquareConfig {
    fn name(&self) -> &'static str {
        "dro-chi-square"
    }

    fn summary(&self) -> &'static str {
        "the worst subpopulation of a given size, without groups (Hu & Chen 2022, 2024)"
    }

    fn needs_groups(&self) -> bool {
        false
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let in_range = self.alpha > 0.0 && self.alpha <= 1.0 && self.squared_radius().is_finite();
        check("alpha", self.alpha, in_range, "a number > 0 and <= 1")
    }

    /// Refuses an alpha for which the value would be the largest of the losses that a batch is expected to have (that a half
    /// of it is, if the head's losses depend on the batch), whatever the others are.
    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        let ExpectedBatch { size, head, share_with_loss } = *expected;
        let rounded = |x: f64| (x * 1e4).round() / 1e4;
        let squared_radius = self.squared_radius();
        let (n, part) = if head.depends_on_batch() {
            (size / 2, format!("half of batch-size {size}, as head {} is split", head.name()))
        } else {
            (size, format!("batch-size {size}"))
        };
        let n_losses = n as f64 * share_with_loss;
        let number = if share_with_loss < 1.0 {
            let (n_losses, share) = (rounded(n_losses), rounded(100.0 * share_with_loss));
            format!("the {n_losses} events expected in {part} ({share} % of the training samples have one)")
        } else {
            part
        };
        let expected = format!(
            "an alpha with 2 (1/alpha - 1)^2 + 1 (here {}) below {number}: \
             otherwise only the largest loss of a batch would count",
            rounded(squared_radius)
        );
        let in_range = squared_radius < n_losses || squared_radius <= 1.0;
        check("alpha", self.alpha, in_range, &expected)
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, _cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        ObjectiveStrategy::boxed(DroChiSquare::new(self)?, spec)
    }
}

impl DroChiSquareConfig {
    /// C^2, at least 1.
    fn squared_radius(self) -> f64 {
        2.0 * (1.0 / self.alpha - 1.0).powi(2) + 1.0
    }
}

/// Minimises the loss of the worst subpopulation of a given share.
#[derive(Clone, Copy, Debug)]
pub struct DroChiSquare {
    config: DroChiSquareConfig,
}

impl DroChiSquare {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range.
    pub fn new(config: &DroChiSquareConfig) -> Result<Self, FairnessError> {
        config.validate()?;
        Ok(Self { config: *config })
    }

    /// Derivative of the value by every loss, `[batch]`: one problem over the samples with a loss term, or one in each
    /// half.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] for a loss that is not finite.
    fn weights(
        self,
        losses: &[f64],
        counted: &[bool],
        half: Option<&[bool]>,
        context: &StepContext<'_>,
    ) -> Result<Vec<f64>, FairnessError> {
        let mut weights = vec![0.0; losses.len()];
        for side in if half.is_some() { &[false, true][..] } else { &[false] } {
            let is_in = |i: &usize| counted[*i] && half.is_none_or(|half| half[*i] == *side);
            let members: Vec<usize> = (0..losses.len()).filter(is_in).collect();
            let of_members: Vec<f64> = members.iter().map(|i| losses[*i]).collect();
            for loss in &of_members {
                context.require_finite("the loss of a sample", *loss)?;
            }
            if !members.is_empty() {
                let found = optimum(&of_members, self.config.squared_radius());
                for (i, weight) in members.iter().zip(found.weights) {
                    weights[*i] = weight;
                }
            }
        }
        Ok(weights)
    }
}

impl Objective for DroChiSquare {
    fn name(&self) -> &'static str {
        "dro-chi-square"
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        self.config.check_batches(expected)
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        let (context, targets) = (terms.context, terms.targets);
        let half = context.outputs.head.depends_on_batch().then(|| halves(&targets.event, context));
        let losses = match &half {
            None => terms.losses.clone(),
            Some(half) => context.losses_against_other_half(terms.outputs.clone(), targets, half),
        };
        let by = self.config.weigh_by.of(&losses, &terms.outputs, (targets, half.as_deref()), context);
        let weights = self.weights(&by, terms.counted, half.as_deref(), context)?;
        let n_weighted = weights.iter().filter(|weight| **weight > 0.0).count();
        Ok(Value {
            objective: weighted_sum(&losses, weights),
            absent_groups: 0,
            terms: vec![("losses with weight".to_owned(), n_weighted as f64)],
            unread: Vec::new(),
        })
    }
}

/// Two halves of a batch that differ by at most one sample and one event, `[batch]`; drawn anew for every step.
fn halves(event: &[bool], context: &StepContext<'_>) -> Vec<bool> {
    let mut order: Vec<usize> = (0..event.len()).collect();
    order.shuffle(&mut stream(context.seed, "halves", &[context.epoch as u64, context.step as u64]));
    order.sort_by_key(|i| !event[*i]); // stable: events first, each kind in its random order
    let mut half = vec![false; event.len()];
    for i in order.iter().skip(1).step_by(2) {
        half[*i] = true;
    }
    half
}

#[cfg(test)]
#[path = "../../../tests/inside/dro_chi_square.rs"]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test may panic; counts are worth seeing")]
mod tests;
