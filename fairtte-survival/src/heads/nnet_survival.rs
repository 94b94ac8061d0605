//! Nnet-survival, also called logistic hazard (Gensheimer & Narasimhan 2019; the paper's D.1.3).
//!
//! `h_m` = `sigmoid(phi_m)` is the probability of the event in interval m given survival up to it.
//! `l_i` = sum_{m <= `q_i`} `softplus(phi_m)` - `d_i` phi_{`q_i}`: Bernoulli terms up to `q_i`, the last one with the event as its
//! outcome (a censored sample includes the term of surviving its own interval). `S(cut_j)` = prod_{m <= j} (1 - `h_m`).
//! A sample's term does not depend on the rest of the batch.
//! Golden values: pycox 0.3.0 `nll_logistic_hazard`.

use burn::tensor::Tensor;
use burn::tensor::activation::log_sigmoid;
use ndarray::{Array2, ArrayView2};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{HeadSettings, NoSettings, SurvivalHead, indicator};
use crate::{Baseline, CutPoints, IntervalTargets, PredictionGrid, SurvivalError, Targets};

/// The settings of a head or strategy that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct NnetSurvivalConfig(NoSettings);

impl HeadSettings for NnetSurvivalConfig {
    fn name(&self) -> &'static str {
        "nnet-survival"
    }

    fn summary(&self) -> &'static str {
        "hazard in each interval, also known as logistic hazard (Gensheimer & Narasimhan 2019)"
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(Box::new(NnetSurvival))
    }
}

/// Hazard in each interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct NnetSurvival;

impl SurvivalHead for NnetSurvival {
    fn name(&self) -> &'static str {
        "nnet-survival"
    }

    fn n_outputs(&self, cut_points: &CutPoints) -> usize {
        cut_points.n()
    }

    fn subject_losses(&self, logits: Tensor<2>, targets: &Targets, _stream: &mut ChaCha8Rng) -> Tensor<1> {
        let [batch, width] = logits.dims();
        let IntervalTargets { index, event } = &targets.intervals;
        let up_to = indicator(batch, width, &logits, |i, m| m <= index[i]);
        let at_event = indicator(batch, width, &logits, |i, m| event[i] && m == index[i]);
        let terms = softplus(logits.clone()) * up_to - logits * at_event; // [batch, n_intervals]
        terms.sum_dim(1).flatten(0, 1)
    }

    fn survival(
        &self,
        logits: ArrayView2<'_, f32>,
        grid: &PredictionGrid,
        _baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError> {
        let mut survival = Array2::zeros(logits.dim());
        for (row, mut curve) in logits.rows().into_iter().zip(survival.rows_mut()) {
            let mut cumulative = 0.0; // -log S
            for (s, x) in curve.iter_mut().zip(row) {
                cumulative += softplus_of(*x);
                *s = (-cumulative).exp();
            }
        }
        Ok(grid.refine(survival))
    }

    fn starting_outputs(&self, hazard: &[f64]) -> Option<Vec<f64>> {
        Some(hazard.iter().map(|h| h.ln() - (-h).ln_1p()).collect())
    }
}

/// log(1 + exp(x)) without overflow, and with its gradient of 1/2 at 0, where `relu` and `abs` have none.
pub(super) fn softplus(x: Tensor<2>) -> Tensor<2> {
    -log_sigmoid(-x)
}

/// As [`softplus`], of one output, in `f64`.
pub(super) fn softplus_of(x: f32) -> f64 {
    let x = f64::from(x);
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}
