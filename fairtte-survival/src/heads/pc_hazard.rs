//! PC-Hazard: a hazard that is constant within each interval (Kvamme & Borgan 2021, section 3.2; Friedman 1982).
//!
//! One output less than cut points: softplus(`phi_m`) is the cumulative hazard over interval m, from cut m to cut m + 1.
//! With k the interval of the time and f the fraction of that interval before the time,
//! `l_i` = sum_{m < k} softplus(`phi_m`) + f softplus(`phi_k`) - `d_i` log softplus(`phi_k`).
//! As in pycox the hazard is per interval and not per unit of time: a constant of the data is left out of the loss.
//! `S(cut_j)` = exp(-sum_{m < j} softplus(`phi_m`)), exponential between cut points regardless of the interpolation
//! rule; S(0) = 1.
//! A sample's term does not depend on the rest of the batch; one with time 0 has none and is not counted.
//! Golden values: pycox 0.3.0 `nll_pc_hazard_loss`, `PCHazard.predict_surv`, `LabTransPCHazard`.

use burn::tensor::Tensor;
use ndarray::{Array2, ArrayView2};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::nnet_survival::{softplus, softplus_of};
use super::{HeadSettings, NoSettings, SurvivalHead, constant, indicator};
use crate::baseline::Baseline;
use crate::{CutPoints, PredictionGrid, SurvivalError, Targets};

/// Below this value, log softplus(x) equals x to `f32` precision.
const LINEAR_BELOW: f32 = -15.0;

/// The settings of a head or strategy that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct PcHazardConfig(NoSettings);

impl HeadSettings for PcHazardConfig {
    fn name(&self) -> &'static str {
        "pc-hazard"
    }

    fn summary(&self) -> &'static str {
        "constant hazard within each interval (Kvamme & Borgan 2021)"
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(Box::new(PcHazard))
    }
}

/// Constant hazard within each interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct PcHazard;

impl SurvivalHead for PcHazard {
    fn name(&self) -> &'static str {
        "pc-hazard"
    }

    fn n_outputs(&self, cut_points: &CutPoints) -> usize {
        cut_points.n() - 1
    }

    fn subject_losses(&self, outputs: Tensor<2>, targets: &Targets, _stream: &mut ChaCha8Rng) -> Tensor<1> {
        let [batch, width] = outputs.dims();
        let pieces = &targets.pieces;
        let share = |i: usize, m: usize| match m.cmp(&pieces.index[i]) {
            std::cmp::Ordering::Less => 1.0,
            std::cmp::Ordering::Equal => pieces.fraction[i],
            std::cmp::Ordering::Greater => 0.0,
        };
        let exposure: Vec<f64> = (0..batch * width).map(|at| share(at / width, at % width)).collect();
        let exposure = constant(exposure, [batch, width], &outputs);
        let at_event = indicator(batch, width, &outputs, |i, m| pieces.event[i] && m == pieces.index[i]);
        let terms = softplus(outputs.clone()) * exposure - log_softplus(outputs) * at_event; // [batch, n_intervals]
        terms.sum_dim(1).flatten(0, 1)
    }

    fn counted(&self, targets: &Targets) -> Vec<bool> {
        targets.time.iter().map(|time| *time > 0.0).collect()
    }

    fn survival(
        &self,
        outputs: ArrayView2<'_, f32>,
        grid: &PredictionGrid,
        _baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError> {
        let mut cumulative = Array2::zeros((outputs.nrows(), outputs.ncols() + 1));
        for (row, mut hazards) in outputs.rows().into_iter().zip(cumulative.rows_mut()) {
            let mut sum = 0.0;
            for (hazard, x) in hazards.iter_mut().skip(1).zip(row) {
                sum += softplus_of(*x);
                *hazard = sum;
            }
        }
        Ok(grid.lines(&cumulative).mapv_into(|h| (-h).exp()))
    }

    fn starts_at_one(&self) -> bool {
        true
    }

    /// The hazard at time 0, which this head cannot have, is left out.
    fn starting_outputs(&self, hazard: &[f64]) -> Option<Vec<f64>> {
        let inverse_softplus = |h: &f64| (-(-h).ln_1p()).exp_m1().ln(); // of the cumulative hazard -log(1 - h)
        Some(hazard.iter().skip(1).map(inverse_softplus).collect())
    }
}

/// log(log(1 + exp(x))), with gradient 1 where the inner logarithm leaves `f32`.
fn log_softplus(x: Tensor<2>) -> Tensor<2> {
    softplus(x.clone().clamp_min(LINEAR_BELOW)).log() + (x - LINEAR_BELOW).clamp_max(0.0)
}
