//! Step 7: what the logits mean, and the loss that follows from it. One file per head.
//!
//! Every loss is unreduced, `[batch]`, so that a strategy can weigh or group it, and computed in log space without any
//! epsilon. pycox adds 1e-7 inside its logarithms; the golden values agree to about that.

mod deephit;
mod nnet_survival;
mod pmf;

use std::fmt::Debug;

use burn::tensor::{Bool, Device, Tensor, TensorData};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use crate::{IntervalTargets, SurvivalError};

pub use deephit::{DeepHit, DeepHitConfig};
pub use nnet_survival::NnetSurvival;
pub use pmf::Pmf;

/// Loss and prediction rule of a discrete-time model over `n_intervals` cut points.
pub trait SurvivalHead: Debug + Send + Sync {
    /// Name in run files.
    fn name(&self) -> &'static str;

    /// Loss of every sample: logits `[batch, n_intervals]` -> `[batch]`. The batch loss is the mean.
    fn subject_losses(&self, logits: Tensor<2>, targets: &IntervalTargets) -> Tensor<1>;

    /// Survival at every cut point: logits `[n, n_intervals]` -> `[n, n_intervals]` in `f64`, non-increasing, in [0, 1].
    fn survival(&self, logits: ArrayView2<'_, f32>) -> Array2<f64>;

    /// Logits at which every subject is predicted `hazard`, `[n_intervals]`, each in (0, 1): where the output layer
    /// starts, so that training begins with the marginal distribution (see [`marginal_hazard`]).
    fn logits_of(&self, hazard: &[f64]) -> Vec<f64>;

    /// Whether a sample's loss depends on the other samples of its batch.
    fn depends_on_batch(&self) -> bool {
        false
    }
}

/// Share of the samples at risk that have their event in each interval, `[n_intervals]`, strictly inside (0, 1).
///
/// A twentieth of an event and a tenth of a sample are added to each interval, so that one without events (the first,
/// which is time 0) gets a small hazard and not 0. Cost O(n + `n_intervals`).
///
/// # Panics
/// If an index is not below `n_intervals`.
pub fn marginal_hazard(targets: &IntervalTargets, n_intervals: usize) -> Vec<f64> {
    let (mut events, mut leaving) = (vec![0_usize; n_intervals], vec![0_usize; n_intervals]);
    for (&index, &event) in targets.index.iter().zip(&targets.event) {
        leaving[index] += 1;
        events[index] += usize::from(event);
    }
    let mut at_risk = targets.index.len();
    let hazard = events.into_iter().zip(leaving).map(|(events, leaving)| {
        let hazard = (events as f64 + 0.05) / (at_risk as f64 + 0.1);
        at_risk -= leaving;
        hazard
    });
    hazard.collect()
}

/// Settings for a head without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// The registry of heads; in run files `[head.pmf]`, `[head.deephit]`, `[head.nnet-survival]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HeadConfig {
    /// Probability mass over the intervals.
    Pmf(NoSettings),
    /// Probability mass with a ranking term.
    #[serde(rename = "deephit")]
    DeepHit(DeepHitConfig),
    /// Hazard in each interval.
    NnetSurvival(NoSettings),
}

impl Default for HeadConfig {
    fn default() -> Self {
        Self::NnetSurvival(NoSettings::default())
    }
}

impl HeadConfig {
    /// Name and one-line summary of every head.
    pub const CATALOGUE: [(&'static str, &'static str); 3] = [
        ("pmf", "probability mass over the intervals (Kvamme & Borgan 2021)"),
        ("deephit", "probability mass with a ranking term (Lee et al. 2018)"),
        ("nnet-survival", "hazard in each interval, also known as logistic hazard (Gensheimer & Narasimhan 2019)"),
    ];

    /// Checks the settings and builds the head.
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] naming the key, its value and its range.
    pub fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(match self {
            Self::Pmf(_) => Box::new(Pmf),
            Self::DeepHit(config) => Box::new(DeepHit::new(config)?),
            Self::NnetSurvival(_) => Box::new(NnetSurvival),
        })
    }
}

/// `[batch, width]` mask, `true` where `select(sample, column)`.
fn mask(batch: usize, width: usize, device: &Device, select: impl Fn(usize, usize) -> bool) -> Tensor<2, Bool> {
    let bits: Vec<bool> = (0..batch).flat_map(|i| (0..width).map(move |m| (i, m))).map(|(i, m)| select(i, m)).collect();
    Tensor::from_data(TensorData::new(bits, [batch, width]), device)
}

/// log sum exp over the columns: `[batch, width]` -> `[batch]`, without overflow.
fn log_sum_exp(x: Tensor<2>) -> Tensor<1> {
    let largest = x.clone().detach().max_dim(1); // [batch, 1]
    let sum = (x - largest.clone()).exp().sum_dim(1);
    (sum.log() + largest).flatten(0, 1)
}
