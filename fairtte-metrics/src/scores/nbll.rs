//! Negative binomial log-likelihood of survival predictions over time (`pycox`), and its integral.
//!
//! ```text
//! nbll(t) = - sum over i of  w_i(t) (1{T_i <= t, event} log(1 - S_i(t)) + 1{T_i > t} log S_i(t))  /  sum of w_i(t)
//! ```
//!
//! The weights are those of [`BrierConvention::Pycox`]: 1/G(T-) for events by t, 1/G(t) for survivors, G flipped. S is
//! moved into [1e-7, 1 - 1e-7]. Source: Graf et al. (1999); Kvamme & Borgan (2019), arXiv:1912.08581, section 3.1.2.
//! Golden values: `pycox` 0.3.0 `EvalSurv.integrated_nbll`, with Simpson's rule of `SciPy` 1.17.1.

use serde::{Deserialize, Serialize};

use crate::scores::brier_convention::{BrierConvention, check_ties};
use crate::scores::integration_rule::IntegrationRule;
use crate::scores::ipcw_losses::{IpcwLosses, PointLoss, Weighting, mean_over_time};
use crate::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};

/// How far from 0 and 1 a probability is kept.
const CLIP: f64 = 1e-7;

/// The negative binomial log-likelihood at every time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Nbll {
    /// Evaluation times.
    pub times: Vec<f64>,
    /// Its value at each time, in nats, >= 0; lower is better.
    pub values: Vec<f64>,
}

/// The negative binomial log-likelihood of `curves` at every one of `times`; O(n) per time.
///
/// `censoring` is fitted with flipped ties ([`BrierConvention::censoring_curve`] of `Pycox`).
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::scores::{BrierConvention, nbll};
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 3.0], vec![true, true])?;
/// let curves = SurvivalCurves::new(vec![1.0], array![[0.25], [0.5]])?;
/// let censoring = BrierConvention::Pycox.censoring_curve(&outcomes)?;
/// let found = nbll(&outcomes, &curves, &censoring, Reading::Step, &[2.0])?;
/// assert!((found.values[0] - -(0.75_f64.ln() + 0.5_f64.ln()) / 2.0).abs() < 1e-15);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// As [`brier_score_by`](crate::scores::brier_score_by) with [`BrierConvention::Pycox`].
pub fn nbll(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<Nbll, MetricError> {
    let score = losses(outcomes, curves, censoring, reading, times)?.score_over(times)?;
    Ok(Nbll { times: score.times, values: score.values })
}

/// The negative binomial log-likelihood averaged over `times` by `rule`; `pycox` uses [`IntegrationRule::Simpson`].
///
/// # Errors
/// Those of [`nbll`], and [`MetricError::TooFewTimes`] for a single time under a rule that needs two.
pub fn integrated_nbll(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    rule: IntegrationRule,
    times: &[f64],
) -> Result<f64, MetricError> {
    Ok(mean_over_time(&losses(outcomes, curves, censoring, reading, times)?, rule, times)?.value)
}

fn losses<'a>(
    outcomes: &'a Outcomes,
    curves: &'a SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<IpcwLosses<'a>, MetricError> {
    check_ties(BrierConvention::Pycox, censoring)?;
    let (weighting, loss) = (Weighting::PerTime(BrierConvention::Pycox), PointLoss::ClippedLog { clip: CLIP });
    IpcwLosses::new(weighting, loss, outcomes, curves, censoring, reading, times)
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::array;

    use super::*;

    #[test]
    fn a_certain_prediction_that_was_wrong_costs_sixteen_nats_not_infinity() {
        let outcomes = Outcomes::new(vec![1.0, 3.0], vec![true, true]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], array![[1.0], [0.0]]).unwrap();
        let censoring = BrierConvention::Pycox.censoring_curve(&outcomes).unwrap();
        let at_two = nbll(&outcomes, &curves, &censoring, Reading::Step, &[2.0]).unwrap();
        assert_abs_diff_eq!(at_two.values[0], -(CLIP.ln()), epsilon = 1e-8);
        let rule = IntegrationRule::Simpson;
        let integrated = integrated_nbll(&outcomes, &curves, &censoring, Reading::Step, rule, &[1.5, 2.0, 2.5]);
        assert_abs_diff_eq!(integrated.unwrap(), at_two.values[0], epsilon = 1e-12);
    }
}
