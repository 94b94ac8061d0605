//! Which parts of an input a predicted risk depends on: maps of single samples for a trained network in evaluation mode.
//!
//! The explained number is the risk at a time, `r(x) = 1 - S(t | x)`, read from the predicted curve. Two methods:
//!
//! | method | value of a pixel | source | file |
//! |---|---|---|---|
//! | occlusion | mean of `r(x) - r(x with a patch replaced)` over the patches that cover it | Zeiler & Fergus 2014 (arXiv 1311.2901), section 4.2 | `occlusion.rs` |
//! | integrated gradients | `(x - x0) * mean of dr/dx` on the line from `x0` to `x` | Sundararajan, Taly & Yan 2017 (arXiv 1703.01365), eq. 1 and 3 | `integrated.rs` |
//!
//! Both files are about any function of an input; this one and `trace.rs` say what the function is. A map says what the
//! network's prediction depends on, not what the disease is: Adebayo et al. 2018 (arXiv 1810.03292) propose to compare it
//! with the map of a network with random weights (`Predictor::randomise`).

mod integrated;
mod occlusion;
mod trace;

use burn::tensor::Device;
use fairtte_data::HostBatch;
use fairtte_metrics::{Reading, SurvivalCurves};
use ndarray::Array2;

pub use self::integrated::{Attribution, integrated_gradients};
pub use self::occlusion::{Occlusion, Patches, occlude};
pub use self::trace::Traced;
use crate::predict::{CurveRule, of_cause};
use crate::strategies::Strategy;
use crate::{Batch, FairnessError};

/// The explained number: 1 - S at a time of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RiskAt {
    /// In the time unit of the training; at most the last time of the grid.
    pub horizon: f64,
    /// How a curve is read between its times.
    pub reading: Reading,
}

impl RiskAt {
    /// The risk of every curve, `[n, n_times]` at `times` -> `[n]`; of several causes that of the event.
    ///
    /// # Errors
    /// [`FairnessError::Metric`] if the curves are none.
    pub fn of(self, times: &[f64], survival: &Array2<f64>) -> Result<Vec<f64>, FairnessError> {
        let curves = SurvivalCurves::new(times.to_vec(), of_cause(survival, 0, times.len()))?;
        Ok(curves.all_at(self.horizon, self.reading).into_iter().map(|survival| 1.0 - survival).collect())
    }
}

/// Risks of a batch, `[batch]`.
///
/// # Errors
/// As [`Strategy::predict`].
pub fn risks(
    strategy: &dyn Strategy,
    batch: HostBatch,
    rule: &CurveRule<'_>,
    at: RiskAt,
    device: &Device,
) -> Result<Vec<f64>, FairnessError> {
    at.of(rule.grid.times(), &strategy.predict(&Batch::from_host(batch, device)?, rule)?)
}

/// Risks of a batch, `[batch]`, and their gradients for the inputs, in the order of `batch.pixels`.
///
/// From the outputs of the networks to the inputs by burn's autodiff; from the outputs to the risk, which is the head's own
/// rule in `f64` outside burn, by central differences (relative error about 1e-6). So the gradient is that of the risk
/// that `fairtte predict` states, for every head and combination of networks.
///
/// # Errors
/// As [`Strategy::traced`] and [`Strategy::predict`].
pub fn risks_and_gradients(
    strategy: &dyn Strategy,
    batch: HostBatch,
    rule: &CurveRule<'_>,
    at: RiskAt,
    device: &Device,
) -> Result<(Vec<f64>, Vec<f32>), FairnessError> {
    let mut batch = Batch::from_host(batch, &device.clone().autodiff())?;
    batch.pixels = batch.pixels.require_grad();
    let traced = strategy.traced(&batch, rule)?;
    let (risks, weights) = traced.derivatives(rule, at)?;
    Ok((risks, traced.pull_back(&weights, &batch.pixels)))
}
