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
//! from the training sample; where G = 0 the weight is 0. Such samples are counted in our result.

use crate::bootstrap::check_weights;
use crate::censoring::CensoringCurve;
use crate::curves::{SurvivalCurves, check_grid};
use crate::integrate::trapezoid_weights;
use crate::reading::Reading;
use crate::{MetricError, Outcomes};

/// BS(t) at every time.
#[derive(Clone, Debug, PartialEq)]
pub struct BrierScore {
    /// Evaluation times.
    pub times: Vec<f64>,
    /// BS at each time, >= 0; lower is better. Weights can lift it above 1.
    pub values: Vec<f64>,
    /// Samples at each time that should have counted but have weight 0, because the censoring curve is 0.
    pub n_without_weight: Vec<usize>,
}

/// Brier score of `curves` at every one of `times`, with weights from `censoring` (fitted on training data).
///
/// Cost: O(n) per time.
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes, Reading, SurvivalCurves, brier_score};
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
    let weights = GrafWeights::new(outcomes, curves, censoring, reading, times)?;
    let n = outcomes.n() as f64;
    let (mut values, mut n_without_weight) = (Vec::new(), Vec::new());
    for &t in times {
        let losses = weights.losses(t, &curves.all_at(t, reading))?;
        values.push(losses.iter().flatten().sum::<f64>() / n);
        n_without_weight.push(losses.iter().filter(|loss| loss.is_none()).count());
    }
    Ok(BrierScore { times: times.to_vec(), values, n_without_weight })
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
        let weights = GrafWeights::new(outcomes, curves, censoring, reading, times)?;
        if times.len() < 2 {
            return Err(MetricError::TooFewTimes { n_times: times.len() });
        }
        let range = times[times.len() - 1] - times[0];
        let mut subject_integrals = vec![0.0; outcomes.n()];
        for (&t, width) in times.iter().zip(trapezoid_weights(times)) {
            let losses = weights.losses(t, &curves.all_at(t, reading))?;
            for (integral, loss) in subject_integrals.iter_mut().zip(losses) {
                *integral += width / range * loss.unwrap_or(0.0);
            }
        }
        Ok(Self { subject_integrals })
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

/// The parts of the weights that do not depend on the evaluation time.
struct GrafWeights<'a> {
    outcomes: &'a Outcomes,
    censoring: &'a CensoringCurve,
    /// G at the time of every event; of no use for the censored.
    survival_at_event: Vec<Result<f64, MetricError>>,
}

impl<'a> GrafWeights<'a> {
    fn new(
        outcomes: &'a Outcomes,
        curves: &SurvivalCurves,
        censoring: &'a CensoringCurve,
        reading: Reading,
        times: &[f64],
    ) -> Result<Self, MetricError> {
        curves.check_rows(outcomes.n())?;
        reading.validate()?;
        check_grid(times)?;
        if outcomes.n() == 0 {
            return Err(MetricError::NoSamples);
        }
        let survival_at_event = outcomes.time().iter().map(|time| censoring.at(*time)).collect();
        Ok(Self { outcomes, censoring, survival_at_event })
    }

    /// Loss of every sample at time `t`, `[n]`; `None` where the censoring curve is 0.
    fn losses(&self, t: f64, survival: &[f64]) -> Result<Vec<Option<f64>>, MetricError> {
        let at_t = self.censoring.at(t);
        let weigh = |loss: f64, g: f64| (g > 0.0).then(|| loss / g);
        let mut losses = Vec::with_capacity(survival.len());
        for (row, s) in survival.iter().enumerate() {
            let (time, event) = (self.outcomes.time()[row], self.outcomes.event()[row]);
            losses.push(if time > t {
                weigh((1.0 - s) * (1.0 - s), at_t.clone()?)
            } else if event {
                weigh(s * s, self.survival_at_event[row].clone()?)
            } else {
                Some(0.0)
            });
        }
        Ok(losses)
    }
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
}
