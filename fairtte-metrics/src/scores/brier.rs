//! Brier score of survival predictions and its integral over time (IBS).
//!
//! ```text
//! BS(t) = 1/n * sum over i of  S_i(t)^2 1{T_i <= t, event} / G(T_i)  +  (1 - S_i(t))^2 1{T_i > t} / G(t)
//! ```
//!
//! A sample censored by t adds nothing. IBS = trapezoid integral of BS over the times, divided by their range.
//! Source: Graf et al. (1999), <https://doi.org/10.1002/(SICI)1097-0258(19990915/30)18:17/18%3C2529::AID-SIM274%3E3.0.CO;2-5>;
//! `FairTTE`, Definition 5, prints (1 - S^2), a misprint of (1 - S)^2.
//! Convention and golden values: `scikit-survival` 0.28.0 `brier_score`, `integrated_brier_score`: G right-continuous
//! from the training sample; where G = 0 the weight is 0. Such samples are counted in our result. Other packages'
//! conventions: [`brier_score_by`](crate::scores::brier_score_by).

use serde::{Deserialize, Serialize};

use crate::curves::SurvivalCurves;
use crate::estimators::censoring::CensoringCurve;
use crate::reading::Reading;
use crate::scores::brier_convention::{BrierConvention, check_ties};
use crate::scores::integration_rule::IntegrationRule;
use crate::scores::ipcw_losses::{IpcwLosses, PointLoss, Term, Weighting};
use crate::weights::check_weights;
use crate::{MetricError, Outcomes};

/// BS(t) at every time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BrierScore {
    /// Evaluation times.
    pub times: Vec<f64>,
    /// BS at each time, >= 0; lower is better. Weights can lift it above 1.
    pub values: Vec<f64>,
    /// Samples at each time that should have counted but have no weight, because the censoring curve is 0.
    pub n_without_weight: Vec<usize>,
}

/// Brier score of `curves` at every one of `times`, with weights from `censoring` (fitted on training data).
///
/// Cost: O(n) per time.
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::scores::brier_score;
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 3.0], vec![true, true])?;
/// let curves = SurvivalCurves::new(vec![1.0], array![[0.25], [0.5]])?;
/// let no_censoring = CensoringCurve::fit(&outcomes, CensoringTies::default())?;
/// let brier = brier_score(&outcomes, &curves, &no_censoring, Reading::Step, &[2.0])?;
/// assert_eq!(brier.values, [(0.25 * 0.25 + 0.5 * 0.5) / 2.0]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if outcomes and curves differ in length, [`MetricError::NoSamples`] without samples,
/// [`MetricError::EmptyGrid`] or [`MetricError::InvalidGrid`] for the times, [`MetricError::InvalidSetting`] for a
/// refinement factor of 0, [`MetricError::BeyondCensoringCurve`] if a weight is needed where G is unknown.
pub fn brier_score(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<BrierScore, MetricError> {
    losses(outcomes, curves, censoring, reading, times)?.score_over(times)
}

/// The integrated Brier score of `curves` over `times`: trapezoids divided by the range; lower is better.
///
/// # Errors
/// Those of [`brier_score`], and [`MetricError::TooFewTimes`] for a single time.
pub fn integrated_brier_score(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<f64, MetricError> {
    PreparedBrier::new(outcomes, curves, censoring, reading, times)?.weighted(&vec![1; outcomes.n()])
}

/// The integrated Brier score, ready for any number of weight vectors.
///
/// The score is a mean over samples, so each sample's integral over time is all that needs to be kept.
#[derive(Clone, Debug)]
pub struct PreparedBrier {
    subject_integrals: Vec<f64>,
}

impl PreparedBrier {
    /// Integrates every sample's loss over time; O(n L) time and O(n) memory for L times.
    ///
    /// # Errors
    /// As [`integrated_brier_score`].
    pub fn new(
        outcomes: &Outcomes,
        curves: &SurvivalCurves,
        censoring: &CensoringCurve,
        reading: Reading,
        times: &[f64],
    ) -> Result<Self, MetricError> {
        Self::from_losses(&losses(outcomes, curves, censoring, reading, times)?, IntegrationRule::Trapezoid, times)
    }

    /// The same at the single time `time`, without an integral; O(n).
    ///
    /// # Errors
    /// As [`integrated_brier_score`].
    pub fn at(
        outcomes: &Outcomes,
        curves: &SurvivalCurves,
        censoring: &CensoringCurve,
        reading: Reading,
        time: f64,
    ) -> Result<Self, MetricError> {
        let times = [time];
        Self::from_losses(&losses(outcomes, curves, censoring, reading, &times)?, IntegrationRule::PlainMean, &times)
    }

    /// The same for another convention that is a mean over samples, with its own
    /// [integration rule](BrierConvention::integration_rule).
    ///
    /// # Errors
    /// As [`integrated_brier_score_by`](crate::scores::integrated_brier_score_by), and [`MetricError::InvalidSetting`]
    /// for `Pycox` and `Mlr3proba`, whose divisor depends on which samples were drawn.
    pub fn by(
        convention: BrierConvention,
        outcomes: &Outcomes,
        curves: &SurvivalCurves,
        censoring: &CensoringCurve,
        reading: Reading,
        times: &[f64],
    ) -> Result<Self, MetricError> {
        if matches!(convention, BrierConvention::Pycox | BrierConvention::Mlr3proba) {
            return Err(MetricError::InvalidSetting {
                setting: "convention of a prepared Brier score",
                value: convention.to_string(),
                expected: "one that is a mean over samples: scikit-survival, survivaleval or riskregression",
            });
        }
        check_ties(convention, censoring)?;
        let weighting = Weighting::PerTime(convention);
        let losses = IpcwLosses::new(weighting, PointLoss::Squared, outcomes, curves, censoring, reading, times)?;
        Self::from_losses(&losses, convention.integration_rule(), times)
    }

    pub(crate) fn from_losses(
        losses: &IpcwLosses<'_>,
        rule: IntegrationRule,
        times: &[f64],
    ) -> Result<Self, MetricError> {
        let mut subject_integrals = vec![0.0; losses.n()];
        let weights = rule.weights(times)?;
        losses.visit(times, |row, k, term| {
            if let Term::Counted { loss, weight } = term {
                subject_integrals[row] += loss * weight * weights[k];
            }
        })?;
        Ok(Self { subject_integrals })
    }

    /// `value` if it can be a mean of squared errors of probabilities.
    ///
    /// # Errors
    /// [`MetricError::ScoreAboveOne`] with the sample that adds most, named by `name`.
    pub(crate) fn check_at_most_one(&self, value: f64, name: impl Fn(usize) -> String) -> Result<f64, MetricError> {
        // NaN cannot occur: weights and losses are finite.
        if value <= 1.0 {
            return Ok(value);
        }
        let total: f64 = self.subject_integrals.iter().sum();
        let largest = self.subject_integrals.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let (row, most) = largest.ok_or(MetricError::NoSamples)?;
        Err(MetricError::ScoreAboveOne { value, subject: name(row), percent: 100.0 * most / total })
    }

    /// What every sample adds to the score before the division by their number.
    pub(crate) fn subject_integrals(&self) -> &[f64] {
        &self.subject_integrals
    }

    /// The score of the sample in which row `i` occurs `weights[i]` times; O(n).
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if there is not one weight per sample, [`MetricError::NoSamples`] if all weights
    /// are 0.
    pub fn weighted(&self, weights: &[u32]) -> Result<f64, MetricError> {
        check_weights(weights, self.subject_integrals.len())?;
        let n: u64 = weights.iter().copied().map(u64::from).sum();
        if n == 0 {
            return Err(MetricError::NoSamples);
        }
        let terms = self.subject_integrals.iter().zip(weights);
        Ok(terms.map(|(integral, weight)| integral * f64::from(*weight)).sum::<f64>() / n as f64)
    }
}

/// Squared losses by the convention of this file.
fn losses<'a>(
    outcomes: &'a Outcomes,
    curves: &'a SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    times: &[f64],
) -> Result<IpcwLosses<'a>, MetricError> {
    let weighting = Weighting::PerTime(BrierConvention::ScikitSurvival);
    IpcwLosses::new(weighting, PointLoss::Squared, outcomes, curves, censoring, reading, times)
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::array;

    use super::*;
    use crate::CensoringTies;

    fn case() -> (Outcomes, SurvivalCurves) {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true, false, true, true]).unwrap();
        let survival = array![[0.5, 0.2], [0.9, 0.7], [0.6, 0.5], [0.8, 0.1]];
        (outcomes, SurvivalCurves::new(vec![1.0, 3.0], survival).unwrap())
    }

    #[test]
    fn events_are_weighted_at_their_time_and_survivors_at_the_evaluation_time() {
        // G of this sample: 1 until 2, then 2/3.
        let (outcomes, curves) = case();
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::default()).unwrap();
        let brier = brier_score(&outcomes, &curves, &censoring, Reading::Step, &[1.0, 3.0]).unwrap();
        assert_abs_diff_eq!(brier.values[0], (0.25 + 0.01 + 0.16 + 0.04) / 4.0, epsilon = 1e-15);
        assert_abs_diff_eq!(brier.values[1], (0.04 + 0.25 * 1.5 + 0.81 * 1.5) / 4.0, epsilon = 1e-15);
        let integrated = integrated_brier_score(&outcomes, &curves, &censoring, Reading::Step, &[1.0, 3.0]).unwrap();
        assert_abs_diff_eq!(integrated, f64::midpoint(brier.values[0], brier.values[1]), epsilon = 1e-15);
    }

    #[test]
    fn a_zero_of_the_censoring_curve_gives_weight_zero_and_is_counted() {
        let (outcomes, curves) = case();
        let train = Outcomes::new(vec![0.5, 2.0], vec![true, false]).unwrap();
        let censoring = CensoringCurve::fit(&train, CensoringTies::default()).unwrap();
        let brier = brier_score(&outcomes, &curves, &censoring, Reading::Step, &[3.0]).unwrap();
        assert_abs_diff_eq!(brier.values[0], 0.04 / 4.0, epsilon = 1e-15);
        assert_eq!(brier.n_without_weight, [2]);
    }

    #[test]
    fn a_time_beyond_the_training_sample_and_a_single_time_are_refused() {
        let (outcomes, curves) = case();
        let train = Outcomes::new(vec![1.0, 2.5], vec![false, true]).unwrap();
        let censoring = CensoringCurve::fit(&train, CensoringTies::default()).unwrap();
        let beyond = brier_score(&outcomes, &curves, &censoring, Reading::Step, &[2.0, 3.0]);
        assert_eq!(beyond, Err(MetricError::BeyondCensoringCurve { time: 3.0, last: 2.5 }));
        let single = integrated_brier_score(&outcomes, &curves, &censoring, Reading::Step, &[2.0]);
        assert_eq!(single, Err(MetricError::TooFewTimes { n_times: 1 }));
    }

    #[test]
    fn a_prepared_score_of_another_convention_equals_its_integral() {
        let (outcomes, curves) = case();
        let times = [1.0, 2.5, 3.0];
        for convention in [BrierConvention::SurvivalEval, BrierConvention::RiskRegression] {
            let censoring = convention.censoring_curve(&outcomes).unwrap();
            let rule = convention.integration_rule();
            let expected = crate::scores::integrated_brier_score_by(
                convention,
                rule,
                &outcomes,
                &curves,
                &censoring,
                Reading::Step,
                &times,
            );
            let prepared = PreparedBrier::by(convention, &outcomes, &curves, &censoring, Reading::Step, &times);
            let found = prepared.unwrap().weighted(&[1; 4]).unwrap();
            assert_abs_diff_eq!(found, expected.unwrap(), epsilon = 1e-15);
        }
        let pycox = BrierConvention::Pycox;
        let censoring = pycox.censoring_curve(&outcomes).unwrap();
        let refused = PreparedBrier::by(pycox, &outcomes, &curves, &censoring, Reading::Step, &times);
        assert!(matches!(refused, Err(MetricError::InvalidSetting { .. })));
    }
}
