//! Scores integrated over time with censoring weights: ISBS, ISLL, ISS, and the reweighted RSBS and RISL.
//!
//! ```text
//! weight at each time:  w_i(t) = 1{T_i <= t, event} / G(T_i) + 1{T_i > t} / G(t)       ISBS, ISLL, ISS
//! weight of a subject:  w_i    = 1{event} / G(T_i) at every t                           RSBS, RISL
//! score = average over t of  1/n sum over i of  w_i(t) loss(S_i(t), 1{T_i > t})
//! loss: Brier (1{T > t} - S)^2, log -log(probability of what happened, at least 0.001), absolute |1{T > t} - S|
//! ```
//!
//! Sources: Graf et al. (1999); Schmid et al. (2011) for the absolute loss; Sonabend et al. (2022), "Flexible group
//! fairness metrics for survival analysis", appendix B, equations 1 and 2, for RSBS and RISL, which are proper. Equation
//! 2 lacks a minus sign, so that RISL there is the negative of a loss; and the equations integrate over a window, where
//! `mlr3proba` (the software of that paper) and we divide by its length.
//! Golden values: `mlr3proba` 0.8.9 and, for the reweighted scores, 0.8.0 (`proper = TRUE`), by its formulas. Its C++
//! gives a survivor the weight 0 before the first training time; there G = 1, so the weight is 1 here and in the
//! golden values. Given times are used as they are; `mlr3proba` itself moves them to observed times.

use serde::{Deserialize, Serialize};

use crate::scores::brier_convention::{BrierConvention, check_ties};
use crate::scores::integration_rule::IntegrationRule;
use crate::scores::ipcw_losses::{IpcwLosses, MLR3PROBA_FLOOR, PointLoss, Weighting, mean_over_time};
use crate::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};

/// The loss of a prediction S(t), given whether the sample is free of the event after t.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeLoss {
    /// Squared distance (`graf`).
    Brier,
    /// -log of the probability of what happened, that probability not below 0.001 (`logloss`).
    Log,
    /// Absolute distance (`schmid`); not proper.
    Absolute,
}

/// Where the censoring weight of a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreWeights {
    /// 1/G(T) for an event by t, 1/G(t) for a survivor (`proper = FALSE`).
    PerTime,
    /// 1/G(T) for every sample with an event, at every t; 0 for the censored, who stay in n (`proper = TRUE`).
    PerSubject,
}

/// A score integrated over time: which loss, which weights, which average over time.
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::scores::{BrierConvention, IntegratedScoreRule};
/// use ndarray::array;
///
/// // Two events without censoring, S = 0.25 and 0.5 from time 1 on; at t = 1 one is dead, at t = 3 both.
/// let outcomes = Outcomes::new(vec![1.0, 3.0], vec![true, true])?;
/// let curves = SurvivalCurves::new(vec![1.0], array![[0.25], [0.5]])?;
/// let censoring = BrierConvention::Mlr3proba.censoring_curve(&outcomes)?;
/// let rsbs = IntegratedScoreRule::RSBS.score(&outcomes, &curves, &censoring, Reading::Step, &[1.0, 3.0])?;
/// assert_eq!(rsbs.value, (0.0625 + 0.25) / 2.0);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegratedScoreRule {
    /// Loss at one time.
    pub loss: TimeLoss,
    /// Censoring weights.
    pub weights: ScoreWeights,
    /// Average over time.
    pub average: IntegrationRule,
}

/// The value of an [`IntegratedScoreRule`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct IntegratedScore {
    /// The score, >= 0; lower is better.
    pub value: f64,
    /// Pairs of sample and time left out of the mean because G = 0 at a time that the sample survived.
    pub n_without_weight: usize,
}

impl IntegratedScoreRule {
    /// Integrated survival Brier score, `surv.graf`.
    pub const ISBS: Self = Self::new(TimeLoss::Brier, ScoreWeights::PerTime);
    /// Integrated survival log loss, `surv.intlogloss`.
    pub const ISLL: Self = Self::new(TimeLoss::Log, ScoreWeights::PerTime);
    /// Integrated survival absolute loss, `surv.schmid`.
    pub const ISS: Self = Self::new(TimeLoss::Absolute, ScoreWeights::PerTime);
    /// Reweighted survival Brier score (equation 1), `surv.graf` with `proper = TRUE`; also called RISBS.
    pub const RSBS: Self = Self::new(TimeLoss::Brier, ScoreWeights::PerSubject);
    /// Reweighted integrated survival log loss (equation 2), `surv.intlogloss` with `proper = TRUE`; also called RISLL.
    pub const RISL: Self = Self::new(TimeLoss::Log, ScoreWeights::PerSubject);

    /// The score with trapezoids over time (`method = 2`).
    pub const fn new(loss: TimeLoss, weights: ScoreWeights) -> Self {
        Self { loss, weights, average: IntegrationRule::Trapezoid }
    }

    /// The same score with another average over time; `method = 1` is [`IntegrationRule::PlainMean`].
    #[must_use]
    pub const fn averaged_by(self, average: IntegrationRule) -> Self {
        Self { average, ..self }
    }

    /// The score of `curves` over `times`; the default of `mlr3proba` are the [`unique_times`] of the evaluated sample.
    ///
    /// `censoring` is fitted with flipped ties ([`BrierConvention::censoring_curve`] of `Mlr3proba`) and holds its last
    /// value; before the first grid point S = 1; where G = 0 at an event it is read as 0.001. A single time gives the
    /// score at that time. Cost: O(n) per time.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if outcomes and curves differ in length, [`MetricError::NoSamples`] without
    /// samples, [`MetricError::EmptyGrid`] or [`MetricError::InvalidGrid`] for the times,
    /// [`MetricError::InvalidSetting`] for a refinement factor of 0 or a censoring curve with other ties,
    /// [`MetricError::NoWeight`] if every sample is left out at a time, [`MetricError::EmptyWindow`] as
    /// [`IntegrationRule::average`].
    pub fn score(
        self,
        outcomes: &Outcomes,
        curves: &SurvivalCurves,
        censoring: &CensoringCurve,
        reading: Reading,
        times: &[f64],
    ) -> Result<IntegratedScore, MetricError> {
        check_ties(BrierConvention::Mlr3proba, censoring)?;
        let loss = match self.loss {
            TimeLoss::Brier => PointLoss::Squared,
            TimeLoss::Log => PointLoss::Log { floor: MLR3PROBA_FLOOR },
            TimeLoss::Absolute => PointLoss::Absolute,
        };
        let weighting = match self.weights {
            ScoreWeights::PerTime => Weighting::PerTime(BrierConvention::Mlr3proba),
            ScoreWeights::PerSubject => Weighting::PerSubject,
        };
        let losses = IpcwLosses::new(weighting, loss, outcomes, curves, censoring, reading, times)?;
        // There is nothing to integrate over at a single time; `mlr3proba` then reports the score at that time.
        let average = if times.len() == 1 { IntegrationRule::PlainMean } else { self.average };
        let mean = mean_over_time(&losses, average, times)?;
        Ok(IntegratedScore { value: mean.value, n_without_weight: mean.n_without_weight })
    }
}

/// The distinct observed times, events and censorings, in order: the default evaluation times of `mlr3proba`.
pub fn unique_times(outcomes: &Outcomes) -> Vec<f64> {
    let mut times = outcomes.time().to_vec();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::array;

    use super::*;

    /// An event at 1, a censoring at 2, an event at 3; S = 0.5, 0.8, 0.6 from time 1.5 on.
    fn case() -> (Outcomes, SurvivalCurves, CensoringCurve) {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, false, true]).unwrap();
        let curves = SurvivalCurves::new(vec![1.5], array![[0.5], [0.8], [0.6]]).unwrap();
        let censoring = BrierConvention::Mlr3proba.censoring_curve(&outcomes).unwrap();
        (outcomes, curves, censoring)
    }

    fn score(rule: IntegratedScoreRule, times: &[f64]) -> f64 {
        let (outcomes, curves, censoring) = case();
        rule.score(&outcomes, &curves, &censoring, Reading::Step, times).unwrap().value
    }

    #[test]
    fn the_scores_at_one_time_match_values_worked_out_by_hand() {
        // G = 1 before 2, then 1/2. At t = 2: event S = 0.5 (weight 1), censored, survivor S = 0.6 (weight 2).
        assert_abs_diff_eq!(score(IntegratedScoreRule::ISBS, &[2.0]), (0.25 + 2.0 * 0.16) / 3.0, epsilon = 1e-15);
        assert_abs_diff_eq!(score(IntegratedScoreRule::ISS, &[2.0]), (0.5 + 2.0 * 0.4) / 3.0, epsilon = 1e-15);
        let log = -(0.5_f64.ln() + 2.0 * 0.6_f64.ln()) / 3.0;
        assert_abs_diff_eq!(score(IntegratedScoreRule::ISLL, &[2.0]), log, epsilon = 1e-15);
        // Reweighted at t = 1.7, where per-time weights are all 1: the event at 3 already has weight 1/G(3) = 2.
        assert_abs_diff_eq!(score(IntegratedScoreRule::RSBS, &[1.7]), (0.25 + 2.0 * 0.16) / 3.0, epsilon = 1e-15);
        assert_abs_diff_eq!(score(IntegratedScoreRule::ISBS, &[1.7]), (0.25 + 0.04 + 0.16) / 3.0, epsilon = 1e-15);
    }

    #[test]
    fn before_the_grid_survival_is_one_so_a_death_there_costs_the_whole_log_loss() {
        assert_abs_diff_eq!(score(IntegratedScoreRule::ISBS, &[1.0]), 1.0 / 3.0, epsilon = 1e-15);
        assert_abs_diff_eq!(score(IntegratedScoreRule::RISL, &[1.0]), 1000.0_f64.ln() / 3.0, epsilon = 1e-12);
    }

    #[test]
    fn the_averages_over_time_are_trapezoids_or_a_plain_mean() {
        let at = |t| score(IntegratedScoreRule::RSBS, &[t]);
        let (a, b, c) = (at(1.0), at(2.0), at(5.0));
        let trapezoid = (0.5 * (a + b) + 1.5 * (b + c)) / 4.0;
        assert_abs_diff_eq!(score(IntegratedScoreRule::RSBS, &[1.0, 2.0, 5.0]), trapezoid, epsilon = 1e-15);
        let plain = IntegratedScoreRule::RSBS.averaged_by(IntegrationRule::PlainMean);
        assert_abs_diff_eq!(score(plain, &[1.0, 2.0, 5.0]), (a + b + c) / 3.0, epsilon = 1e-15);
    }

    #[test]
    fn survivors_without_a_weight_leave_the_mean_and_are_counted() {
        let (outcomes, curves, _) = case();
        let train = Outcomes::new(vec![0.5, 1.5], vec![true, false]).unwrap();
        let censoring = BrierConvention::Mlr3proba.censoring_curve(&train).unwrap();
        let rule = IntegratedScoreRule::ISBS.averaged_by(IntegrationRule::PlainMean);
        // At t = 1 all three count (1, 0, 0: before the grid); at t = 2 the survivor is left out: 0.25, 0.
        let found = rule.score(&outcomes, &curves, &censoring, Reading::Step, &[1.0, 2.0]).unwrap();
        assert_abs_diff_eq!(found.value, (1.0 + 0.25) / 5.0, epsilon = 1e-15);
        assert_eq!(found.n_without_weight, 1);
        let nobody = Outcomes::new(vec![9.0], vec![true]).unwrap();
        let found = rule.score(&nobody, &curves.select(&[0]), &censoring, Reading::Step, &[2.0]);
        assert_eq!(found, Err(MetricError::NoWeight { time: 2.0 }));
    }

    #[test]
    fn unique_times_are_sorted_and_distinct() {
        let outcomes = Outcomes::new(vec![3.0, 1.0, 3.0, 0.0], vec![true, false, false, true]).unwrap();
        assert_eq!(unique_times(&outcomes), [0.0, 1.0, 3.0]);
    }

    #[test]
    fn a_censoring_curve_with_other_ties_is_refused() {
        let (outcomes, curves, _) = case();
        let censoring = BrierConvention::RiskRegression.censoring_curve(&outcomes).unwrap();
        let found = IntegratedScoreRule::ISBS.score(&outcomes, &curves, &censoring, Reading::Step, &[2.0]);
        assert!(matches!(found, Err(MetricError::InvalidSetting { .. })), "{found:?}");
    }
}
