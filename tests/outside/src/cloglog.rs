//! Hazards in discrete time with the complementary log-log link: proportional hazards for grouped times (Prentice & Gloeckler
//! 1978, Biometrics 34, 57).
//!
//! `h_m` = 1 - exp(-exp(`x_m`)) is the probability of the event in interval m given survival up to it, so exp(`x_m`) is the
//! cumulative hazard over the interval: a constant added to all outputs of a subject multiplies its hazard at every time, for
//! any grid. With q the interval of the time, `l_i` = sum_{m < q} exp(`x_m`) - log `h_q` for an event, sum_{m <= q} exp(`x_m`)
//! for a censored sample. `S(cut_j)` = exp(-sum_{m <= j} exp(`x_m`)). A sample's term does not depend on the rest of the batch.
//! The source has one output per interval plus a linear predictor; here the network gives all of them. It has no settings.
//! Above an output of 30 (`h` is 1 in all its digits) exp continues as a straight line, so that losses stay finite.

use burn::tensor::{Bool, Tensor, TensorData};
use fairtte_survival::{
    Baseline, CutPoints, HeadSettings, IntervalTargets, PredictionGrid, SurvivalError, SurvivalHead, Targets,
};
use ndarray::{Array2, ArrayView2};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Below this output, the first terms of the series of log h in exp(x) are exact to `f32` precision.
const SERIES_BELOW: f32 = -3.0;
/// Above this output, exp continues as a straight line.
const LINE_ABOVE: f32 = 30.0;

/// The table `[head.cloglog]`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloglogConfig {}

impl HeadSettings for CloglogConfig {
    fn name(&self) -> &'static str {
        "cloglog"
    }

    fn summary(&self) -> &'static str {
        "hazard in each interval, complementary log-log link (Prentice & Gloeckler 1978; an example)"
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(Box::new(Cloglog))
    }
}

/// The head.
#[derive(Clone, Copy, Debug)]
pub struct Cloglog;

impl SurvivalHead for Cloglog {
    fn name(&self) -> &'static str {
        "cloglog"
    }

    fn n_outputs(&self, cut_points: &CutPoints) -> usize {
        cut_points.n()
    }

    fn subject_losses(&self, outputs: Tensor<2>, targets: &Targets, _stream: &mut ChaCha8Rng) -> Tensor<1> {
        let IntervalTargets { index, event } = &targets.intervals;
        let survived = where_true(&outputs, |i, m| m < index[i] || (m == index[i] && !event[i]));
        let ends = where_true(&outputs, |i, m| m == index[i] && event[i]);
        let terms = cumulative_hazard(outputs.clone()) * survived - log_hazard(outputs) * ends; // [batch, n_intervals]
        terms.sum_dim(1).flatten(0, 1)
    }

    fn survival(
        &self,
        outputs: ArrayView2<'_, f32>,
        grid: &PredictionGrid,
        _baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError> {
        let mut survival = Array2::zeros(outputs.dim());
        for (row, mut curve) in outputs.rows().into_iter().zip(survival.rows_mut()) {
            let mut cumulative = 0.0;
            for (s, x) in curve.iter_mut().zip(row) {
                cumulative += f64::from(*x).exp();
                *s = (-cumulative).exp();
            }
        }
        Ok(grid.refine(survival))
    }

    fn starting_outputs(&self, hazard: &[f64]) -> Option<Vec<f64>> {
        Some(hazard.iter().map(|h| (-(-h).ln_1p()).ln()).collect())
    }
}

/// 1 where `select(sample, interval)`, else 0.
fn where_true(like: &Tensor<2>, select: impl Fn(usize, usize) -> bool) -> Tensor<2> {
    let [batch, width] = like.dims();
    let bits: Vec<bool> = (0..batch * width).map(|at| select(at / width, at % width)).collect();
    let mask = Tensor::<2, Bool>::from_data(TensorData::new(bits, [batch, width]), &like.device());
    mask.float().cast(like.dtype())
}

/// exp(x), a straight line above [`LINE_ABOVE`].
fn cumulative_hazard(x: Tensor<2>) -> Tensor<2> {
    x.clone().clamp_max(LINE_ABOVE).exp() * ((x - LINE_ABOVE).clamp_min(0.0) + 1.0)
}

/// log(1 - exp(-exp(x))); below [`SERIES_BELOW`], where 1 - exp(..) loses its digits, x - c/2 + c^2/24 with c = exp(x).
fn log_hazard(x: Tensor<2>) -> Tensor<2> {
    let series = |x: Tensor<2>| {
        let c = x.clone().exp();
        x - c.clone() / 2.0 + c.clone() * c / 24.0
    };
    let below = series(x.clone().clamp_max(SERIES_BELOW));
    let at_bound = series(x.zeros_like() + SERIES_BELOW);
    let above = -cumulative_hazard(x.clamp_min(SERIES_BELOW));
    (-above.exp() + 1.0).log() + below - at_bound
}

#[cfg(test)]
mod tests;
