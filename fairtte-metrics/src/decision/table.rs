//! The weighted 2 x 2 table of a decision, and what is read from it.

use serde::{Deserialize, Serialize};

use crate::weights::check_weights;
use crate::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};

/// A risk that falls short of the threshold by less than this reaches it: 1 - 0.9 is a little below 0.1 in binary.
const ROUNDING: f64 = 1e-12;

/// Who was called positive at a threshold of the predicted risk, and how often that was right.
///
/// The four shares are weighted for censoring and add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DecisionTable {
    /// The time by which the event is predicted.
    pub horizon: f64,
    /// The predicted risk at or above which a sample is called positive, in (0, 1).
    pub threshold: f64,
    /// Samples.
    pub n: u64,
    /// Samples called positive, whether or not their outcome is known.
    pub n_positive: u64,
    /// Samples that are censored by the horizon, so that their outcome is unknown.
    pub n_unknown: u64,
    /// Sum of the censoring weights divided by `n`; near 1, and 1 without censoring.
    pub weight: f64,
    /// Share of cases called positive.
    pub true_positive: f64,
    /// Share of controls called positive.
    pub false_positive: f64,
    /// Share of cases called negative.
    pub false_negative: f64,
    /// Share of controls called negative.
    pub true_negative: f64,
}

/// The decisions that `curves` make at `threshold` by `horizon`, with weights from `censoring` (fitted on training data).
///
/// Cost: O(n log L) for a censoring curve of L times.
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::decision::decision_table;
/// use ndarray::array;
///
/// // Two events by time 2, of which the risks are 0.75 and 0.25; two samples are free of it, with 0.5 and 0.125.
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true; 4])?;
/// let curves = SurvivalCurves::new(vec![2.0], array![[0.25], [0.75], [0.5], [0.875]])?;
/// let no_censoring = CensoringCurve::fit(&outcomes, CensoringTies::default())?;
/// let table = decision_table(&outcomes, &curves, &no_censoring, Reading::Step, 2.0, 0.5)?;
/// assert_eq!((table.sensitivity()?, table.specificity()?, table.positive_predictive_value()?), (0.5, 0.5, 0.5));
/// // One of four is a true and one a false positive, and odds of 1 weigh both alike.
/// assert_eq!((table.net_benefit(), table.net_benefit_of_all()), (0.0, 0.0));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if outcomes and curves differ in length, [`MetricError::NoSamples`] without samples,
/// [`MetricError::InvalidSetting`] for a horizon that is not a finite number > 0, a threshold outside (0, 1) or a
/// refinement factor of 0; [`MetricError::BeyondCensoringCurve`] or [`MetricError::ZeroCensoringSurvival`] if a weight is
/// needed where G is unknown or 0; [`MetricError::NoControls`] if no sample is observed after the horizon although samples are
/// censored by then.
pub fn decision_table(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    horizon: f64,
    threshold: f64,
) -> Result<DecisionTable, MetricError> {
    curves.check_rows(outcomes.n())?;
    let risk = risks(curves, reading, horizon)?;
    PreparedDecisions::new(outcomes, risk, censoring, horizon)?.weighted(&vec![1; outcomes.n()], threshold)
}

/// The share of samples called positive at `threshold` by `horizon`, in [0, 1]. No outcome enters, so no weight does; O(n).
///
/// # Errors
/// [`MetricError::NoSamples`] without samples; [`MetricError::InvalidSetting`] as in [`decision_table`].
pub fn selection_rate(
    curves: &SurvivalCurves,
    reading: Reading,
    horizon: f64,
    threshold: f64,
) -> Result<f64, MetricError> {
    PreparedSelection::new(risks(curves, reading, horizon)?, threshold)?.weighted(&vec![1; curves.n()])
}

impl DecisionTable {
    /// The share of the cases that is called positive, in [0, 1]: true positive rate, recall.
    ///
    /// # Errors
    /// [`MetricError::NoCases`] without an event by the horizon.
    pub fn sensitivity(&self) -> Result<f64, MetricError> {
        let cases = self.true_positive + self.false_negative;
        share(self.true_positive, cases).ok_or(MetricError::NoCases { time: self.horizon })
    }

    /// The share of the controls that is called negative, in [0, 1]: true negative rate.
    ///
    /// # Errors
    /// [`MetricError::NoControls`] if no sample is observed after the horizon.
    pub fn specificity(&self) -> Result<f64, MetricError> {
        self.of_controls(self.true_negative)
    }

    /// The share of the controls that is called positive, in [0, 1]: 1 - specificity.
    ///
    /// # Errors
    /// As [`specificity`](Self::specificity).
    pub fn false_positive_rate(&self) -> Result<f64, MetricError> {
        self.of_controls(self.false_positive)
    }

    /// The probability of the event by the horizon of a sample called positive, in [0, 1]: PPV, precision.
    ///
    /// # Errors
    /// [`MetricError::NoDecision`] if no sample with a known outcome is called positive.
    pub fn positive_predictive_value(&self) -> Result<f64, MetricError> {
        let positives = self.true_positive + self.false_positive;
        share(self.true_positive, positives).ok_or_else(|| self.nobody("positive"))
    }

    /// The probability to be free of the event at the horizon of a sample called negative, in [0, 1]: NPV.
    ///
    /// # Errors
    /// [`MetricError::NoDecision`] if no sample with a known outcome is called negative.
    pub fn negative_predictive_value(&self) -> Result<f64, MetricError> {
        let negatives = self.true_negative + self.false_negative;
        share(self.true_negative, negatives).ok_or_else(|| self.nobody("negative"))
    }

    /// The share of all samples that is called positive, in [0, 1]; without weights.
    pub fn selection_rate(&self) -> f64 {
        self.n_positive as f64 / self.n as f64
    }

    /// The probability of the event by the horizon, in [0, 1].
    pub fn event_rate(&self) -> f64 {
        self.true_positive + self.false_negative
    }

    /// The net benefit of treating those called positive, at most the event rate: true minus false positives per sample, a
    /// false one counted with the odds of the threshold (Vickers & Elkin 2006). Treating none has 0.
    pub fn net_benefit(&self) -> f64 {
        self.true_positive - self.false_positive * odds(self.threshold)
    }

    /// The net benefit of treating everybody.
    pub fn net_benefit_of_all(&self) -> f64 {
        self.event_rate() - (self.false_positive + self.true_negative) * odds(self.threshold)
    }

    fn of_controls(&self, part: f64) -> Result<f64, MetricError> {
        share(part, self.false_positive + self.true_negative).ok_or(MetricError::NoControls { time: self.horizon })
    }

    fn nobody(&self, called: &'static str) -> MetricError {
        MetricError::NoDecision { called, threshold: self.threshold, time: self.horizon }
    }
}

/// `part` of `whole`, unless that is 0.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// What a false positive costs in true positives.
fn odds(threshold: f64) -> f64 {
    threshold / (1.0 - threshold)
}

/// What is known of a sample at the horizon, with its censoring weight.
#[derive(Clone, Copy, Debug)]
enum Known {
    Case(f64),
    Control(f64),
    Nothing,
}

/// Weights and predictions of all samples at one horizon, for any threshold and any weights of the rows.
#[derive(Clone, Debug)]
pub(crate) struct PreparedDecisions {
    horizon: f64,
    risk: Vec<f64>,
    known: Vec<Known>,
}

impl PreparedDecisions {
    /// Of the predicted risks by `horizon`, one per outcome.
    pub(crate) fn new(
        outcomes: &Outcomes,
        risk: Vec<f64>,
        censoring: &CensoringCurve,
        horizon: f64,
    ) -> Result<Self, MetricError> {
        let known = outcomes.time().iter().zip(outcomes.event()).map(|(&time, &event)| match (time > horizon, event) {
            (true, _) => censoring.weight_at(horizon).map(Known::Control),
            (false, true) => censoring.weight_before(time).map(Known::Case),
            (false, false) => Ok(Known::Nothing),
        });
        Ok(Self { horizon, risk, known: known.collect::<Result<_, _>>()? })
    }

    /// The table of the sample in which row `i` occurs `weights[i]` times; O(n).
    pub(crate) fn weighted(&self, weights: &[u32], threshold: f64) -> Result<DecisionTable, MetricError> {
        check_threshold(threshold)?;
        check_weights(weights, self.known.len())?;
        let (mut n, mut n_positive, mut n_unknown) = (0_u64, 0_u64, 0_u64);
        // Of cases and of controls: those called negative, those called positive.
        let (mut cases, mut controls) = ([0.0; 2], [0.0; 2]);
        for ((known, risk), &copies) in self.known.iter().zip(&self.risk).zip(weights) {
            let (copies, positive) = (u64::from(copies), usize::from(reaches(*risk, threshold)));
            n += copies;
            n_positive += copies * positive as u64;
            match known {
                Known::Case(weight) => cases[positive] += weight * copies as f64,
                Known::Control(weight) => controls[positive] += weight * copies as f64,
                Known::Nothing => n_unknown += copies,
            }
        }
        if n == 0 {
            return Err(MetricError::NoSamples);
        }
        if n_unknown > 0 && controls[0] + controls[1] <= 0.0 {
            return Err(MetricError::NoControls { time: self.horizon });
        }
        let sum = cases[0] + cases[1] + controls[0] + controls[1];
        Ok(DecisionTable {
            horizon: self.horizon,
            threshold,
            n,
            n_positive,
            n_unknown,
            weight: sum / n as f64,
            true_positive: cases[1] / sum,
            false_positive: controls[1] / sum,
            false_negative: cases[0] / sum,
            true_negative: controls[0] / sum,
        })
    }

    pub(crate) fn n(&self) -> usize {
        self.risk.len()
    }
}

/// Who is called positive, for any weights of the rows.
#[derive(Clone, Debug)]
pub(crate) struct PreparedSelection {
    positive: Vec<bool>,
}

impl PreparedSelection {
    /// Of predicted risks.
    pub(crate) fn new(risk: Vec<f64>, threshold: f64) -> Result<Self, MetricError> {
        check_threshold(threshold)?;
        Ok(Self { positive: risk.into_iter().map(|risk| reaches(risk, threshold)).collect() })
    }

    /// The share of the sample in which row `i` occurs `weights[i]` times; O(n).
    pub(crate) fn weighted(&self, weights: &[u32]) -> Result<f64, MetricError> {
        check_weights(weights, self.positive.len())?;
        let n: u64 = weights.iter().copied().map(u64::from).sum();
        if n == 0 {
            return Err(MetricError::NoSamples);
        }
        let called = self.positive.iter().zip(weights).filter(|(positive, _)| **positive);
        Ok(called.map(|(_, weight)| u64::from(*weight)).sum::<u64>() as f64 / n as f64)
    }

    pub(crate) fn n_positive(&self) -> usize {
        self.positive.iter().filter(|positive| **positive).count()
    }
}

fn reaches(risk: f64, threshold: f64) -> bool {
    risk >= threshold - ROUNDING
}

/// Predicted risk by the horizon, `[n]`.
pub(crate) fn risks(curves: &SurvivalCurves, reading: Reading, horizon: f64) -> Result<Vec<f64>, MetricError> {
    reading.validate()?;
    if !(horizon.is_finite() && horizon > 0.0) {
        let (setting, value) = ("horizon", horizon.to_string());
        return Err(MetricError::InvalidSetting { setting, value, expected: "a finite number > 0" });
    }
    Ok(curves.risk_at(horizon, reading))
}

/// Returns an error unless `threshold` is in (0, 1).
fn check_threshold(threshold: f64) -> Result<(), MetricError> {
    if threshold > 0.0 && threshold < 1.0 {
        return Ok(());
    }
    let (setting, value) = ("threshold", threshold.to_string());
    Err(MetricError::InvalidSetting { setting, value, expected: "a number between 0 and 1" })
}

#[cfg(test)]
mod tests;
