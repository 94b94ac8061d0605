//! PMF: a probability for each interval and one for surviving the grid (Kvamme & Borgan 2021, section 3.1.1; the paper's
//! D.1.1 prints it without the last).
//!
//! f = `softmax(phi_0` .. phi_{L-1}, 0); the appended zero logit is survival beyond the grid.
//! `l_i` = -log `f(q_i)` for an event, -log sum_{m > `q_i`} f(m) for a censoring, so the sum is never empty.
//! `S(cut_j)` = sum_{m > j} f(m). A sample's term does not depend on the rest of the batch.
//! Golden values: pycox 0.3.0 `nll_pmf`.

use burn::tensor::Tensor;
use ndarray::{Array2, ArrayView2, s};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{HeadSettings, NEVER, NoSettings, SurvivalHead, log_sum_exp, mask};
use crate::{Baseline, CutPoints, PredictionGrid, SurvivalError, Targets};

/// The settings of a head or strategy that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct PmfConfig(NoSettings);

impl HeadSettings for PmfConfig {
    fn name(&self) -> &'static str {
        "pmf"
    }

    fn summary(&self) -> &'static str {
        "probability mass over the intervals (Kvamme & Borgan 2021)"
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(Box::new(Pmf))
    }
}

/// Probability mass over the intervals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pmf;

impl SurvivalHead for Pmf {
    fn name(&self) -> &'static str {
        "pmf"
    }

    fn n_outputs(&self, cut_points: &CutPoints) -> usize {
        cut_points.n()
    }

    fn subject_losses(&self, logits: Tensor<2>, targets: &Targets, _stream: &mut ChaCha8Rng) -> Tensor<1> {
        negative_log_likelihood(pad(logits), targets, 1)
    }

    fn survival(
        &self,
        logits: ArrayView2<'_, f32>,
        grid: &PredictionGrid,
        _baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError> {
        Ok(grid.refine(without_events(&logits, 1)))
    }

    fn starting_outputs(&self, hazard: &[f64]) -> Option<Vec<f64>> {
        Some(logits_of(hazard))
    }
}

/// log f(m) - log of the probability of surviving the grid, whose logit is 0.
pub(super) fn logits_of(hazard: &[f64]) -> Vec<f64> {
    let mut log_survival = 0.0;
    let log_mass: Vec<f64> = hazard
        .iter()
        .map(|h| {
            let log_mass = log_survival + h.ln();
            log_survival += (-h).ln_1p();
            log_mass
        })
        .collect();
    log_mass.into_iter().map(|log_mass| log_mass - log_survival).collect()
}

/// Appends the zero logit of surviving the grid: `[batch, n_intervals]` -> `[batch, n_intervals + 1]`.
pub(super) fn pad(logits: Tensor<2>) -> Tensor<2> {
    let zeros = Tensor::zeros([logits.dims()[0], 1], (&logits.device(), logits.dtype()));
    Tensor::cat(vec![logits, zeros], 1)
}

/// Negative logarithm of the probability of the observation: interval q of its cause for an event, all intervals after q of
/// every cause for a censored sample, and for an event of a cause that is not among them. `padded` holds the intervals of
/// `n_causes` causes, one block after the other, and the logit of surviving the grid.
pub(super) fn negative_log_likelihood(padded: Tensor<2>, targets: &Targets, n_causes: usize) -> Tensor<1> {
    let [batch, width] = padded.dims();
    let n_intervals = (width - 1) / n_causes;
    let ruled_out = mask(batch, width, &padded.device(), |i, column| {
        let (q, cause) = (targets.intervals.index[i], targets.causes[i]);
        if (1..=n_causes).contains(&cause) {
            column != (cause - 1) * n_intervals + q
        } else {
            column + 1 < width && column % n_intervals <= q
        }
    });
    log_sum_exp(padded.clone()) - log_sum_exp(padded.mask_fill(ruled_out, NEVER))
}

/// 1 minus the cumulative mass of every cause at the cut points, one block after the other: summed from the tail, so that small
/// probabilities keep their digits.
pub(super) fn without_events(logits: &ArrayView2<'_, f32>, n_causes: usize) -> Array2<f64> {
    let n_intervals = logits.ncols() / n_causes;
    let mut curves = Array2::zeros(logits.dim());
    for (row, mut blocks) in logits.rows().into_iter().zip(curves.rows_mut()) {
        let largest = row.iter().map(|x| f64::from(*x)).fold(0.0, f64::max);
        let weights: Vec<f64> = row.iter().map(|x| (f64::from(*x) - largest).exp()).collect();
        let survives = (-largest).exp();
        let totals: Vec<f64> = weights.chunks(n_intervals).map(|cause| cause.iter().sum()).collect();
        for cause in 0..n_causes {
            let own = cause * n_intervals..(cause + 1) * n_intervals;
            let others: f64 = (0..n_causes).filter(|other| *other != cause).map(|other| totals[other]).sum();
            let mut curve = blocks.slice_mut(s![own.clone()]);
            let mut tail = survives + others;
            for (s, weight) in curve.iter_mut().zip(&weights[own]).rev() {
                *s = tail;
                tail += weight;
            }
            curve.mapv_inplace(|s| s / tail); // the whole sum: 1 at most
        }
    }
    curves
}
