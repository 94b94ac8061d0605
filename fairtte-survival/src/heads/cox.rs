//! Cox proportional hazards with a network for the log risk: `DeepSurv` (Katzman et al. 2018, BMC Med. Res. Methodol. 18,
//! eq. 4; Faraggi & Simon 1995).
//!
//! One output g. With D the d events at time t and R the samples of the batch at risk at t, the loss of an event i in D
//! is
//! Breslow: `l_i` = log `sum_R` exp(g) - `g_i`;
//! Efron: `l_i` = (1/d) sum_{l < d} log(`sum_R` exp(g) - (l/d) `sum_D` exp(g)) - `g_i`.
//! The sum over events is the negative log partial likelihood of the batch (with Efron's rule one of several tied events may
//! have a negative term). A censored sample has loss 0 and is not counted;
//! a batch without an event has loss 0. Every term depends on the rest of its batch. Without ties both rules agree.
//! S(t) = exp(-H0(t) exp(g)), a step at every training event time; H0 is fitted on the training part (`baseline.rs`).
//! A loss grows with its risk set: where all risks are equal it is the logarithm of the number at risk, so early events have
//! large losses and late events small ones, however well they are fitted. Methods that weight by losses can use `m_i` =
//! `l_i` - `l_i`(equal risks) + log n, n the samples of the batch (`misfits`). `l_i`(equal risks) - `l_i` is the gain
//! of the event over the null model; its mean over events is the information gain of explained randomness (Kent &
//! O'Quigley 1988, Biometrika 75, 525; O'Quigley, Xu & Stare 2005, Stat. Med. 24, 479), whose limit for large risk sets
//! does not depend on their size. A small risk set still allows less gain. The term log n keeps the scale of a loss,
//! and keeps `m_i` above 0 unless a risk is n times the mean.
//! A constant added to all outputs changes neither losses nor curves, so the output layer has no bias.
//!
//! Where we differ from pycox 0.3.0: tied events are ordered at random there (and 1e-7 is added inside the logarithm).
//! Golden values: pycox without ties; R survival 3.5.3 and lifelines 0.30.3 with ties.

use burn::tensor::Tensor;
use fairtte_metrics::Outcomes;
use ndarray::{Array2, ArrayView2};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::partial_likelihood::{Comparison, RiskSets, comparisons, event_indicator};
use super::{Comparators, HeadSettings, SurvivalHead};
use crate::baseline::{Baseline, BaselineFit, TiedTimes};
use crate::{CutPoints, PredictionGrid, SurvivalError, Targets};

/// Settings of the Cox head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CoxConfig {
    /// How tied events are handled, in the loss and in the baseline.
    pub ties: TiedTimes,
}

impl HeadSettings for CoxConfig {
    fn name(&self) -> &'static str {
        "cox"
    }

    fn summary(&self) -> &'static str {
        "log risk with a baseline fitted on the training part, also known as DeepSurv (Katzman et al. 2018)"
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(Box::new(Cox::new(self)))
    }
}

/// Log risk with a baseline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cox {
    ties: TiedTimes,
}

impl Cox {
    /// Builds the head.
    pub fn new(config: &CoxConfig) -> Self {
        Self { ties: config.ties }
    }

    fn risk_sets(self, targets: &Targets, comparators: Comparators<'_>) -> RiskSets {
        let mut sets = RiskSets::new(targets.n());
        for Comparison { cases, tied, at_risk, .. } in comparisons(targets, comparators) {
            // With Breslow's rule the rows of tied events would be equal, so one row represents them all.
            let n_rows = if self.ties == TiedTimes::Efron { tied.len() } else { 1 };
            let share = 1.0 / n_rows as f64;
            let mut weights: Vec<(usize, f64)> = at_risk.iter().map(|sample| (*sample, 0.0)).collect();
            for rank in 0..n_rows {
                for (sample, weight) in &mut weights {
                    if tied.binary_search(sample).is_ok() {
                        *weight = (-(rank as f64 * share)).ln_1p();
                    }
                }
                sets.push(0, &weights, cases.iter().map(|i| (*i, share)).collect());
            }
        }
        sets
    }

    fn losses(self, outputs: Tensor<2>, targets: &Targets, comparators: Comparators<'_>) -> Tensor<1> {
        let sets = self.risk_sets(targets, comparators);
        if sets.n_rows() == 0 {
            return (outputs * 0.0).flatten(0, 1);
        }
        Self::losses_of(&sets, outputs, targets)
    }

    fn losses_of(sets: &RiskSets, outputs: Tensor<2>, targets: &Targets) -> Tensor<1> {
        let own = outputs.clone().flatten(0, 1) * event_indicator(targets, &outputs);
        sets.spread(sets.terms(sets.rows(outputs))) - own
    }
}

impl SurvivalHead for Cox {
    fn name(&self) -> &'static str {
        "cox"
    }

    fn n_outputs(&self, _cut_points: &CutPoints) -> usize {
        1
    }

    fn subject_losses(&self, outputs: Tensor<2>, targets: &Targets, _stream: &mut ChaCha8Rng) -> Tensor<1> {
        self.losses(outputs, targets, Comparators::Batch)
    }

    /// The risk set of an event is the event itself and the samples at risk in the other half.
    fn losses_against_other_half(
        &self,
        outputs: Tensor<2>,
        targets: &Targets,
        half: &[bool],
        _stream: &mut ChaCha8Rng,
    ) -> Tensor<1> {
        self.losses(outputs, targets, Comparators::OtherHalf(half))
    }

    /// `l_i` - `l_i`(equal risks) + log n: with Breslow's rule -log of the risk of the event relative to n times the
    /// mean over its risk set, which does not depend on the size of the set.
    fn misfits(
        &self,
        outputs: Tensor<2>,
        targets: &Targets,
        half: Option<&[bool]>,
        _stream: &mut ChaCha8Rng,
    ) -> Tensor<1> {
        let sets = self.risk_sets(targets, Comparators::of(half));
        if sets.n_rows() == 0 {
            return (outputs * 0.0).flatten(0, 1);
        }
        sets.misfits(Self::losses_of(&sets, outputs, targets))
    }

    fn counted(&self, targets: &Targets) -> Vec<bool> {
        targets.event.clone()
    }

    fn survival(
        &self,
        outputs: ArrayView2<'_, f32>,
        grid: &PredictionGrid,
        baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError> {
        let baseline = baseline.ok_or(SurvivalError::NoBaseline { head: self.name() })?;
        let cumulative = baseline.log_cumulative();
        let at = |time: &f64| baseline.n_until(*time).checked_sub(1).map_or(f64::NEG_INFINITY, |k| cumulative[k]);
        let log_cumulative: Vec<f64> = grid.times().iter().map(at).collect();
        Ok(Array2::from_shape_fn((outputs.nrows(), grid.times().len()), |(row, k)| {
            (-(log_cumulative[k] + f64::from(outputs[[row, 0]])).exp()).exp()
        }))
    }

    fn starting_outputs(&self, _hazard: &[f64]) -> Option<Vec<f64>> {
        None
    }

    fn depends_on_batch(&self) -> bool {
        true
    }

    fn needs_baseline(&self) -> bool {
        true
    }

    fn baseline_fit(&self, train: &Outcomes) -> Option<BaselineFit> {
        Some(BaselineFit::new(train, self.ties, false))
    }
}
