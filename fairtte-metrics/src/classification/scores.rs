//! Scores of probabilities that need no threshold, and one point of the receiver operating characteristic.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::classification::ClassPredictions;

/// How the true positive rate is read where no threshold has exactly the true negative rate requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RocReading {
    /// On the straight line between the neighbouring thresholds.
    #[default]
    Interpolated,
    /// The highest of the thresholds with at least this true negative rate.
    Step,
}

/// Average precision: the sum over thresholds of the rise of recall times precision, as in scikit-learn. O(n log n).
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::OneClass`] without a positive sample.
pub fn average_precision(predictions: &ClassPredictions) -> Result<f64, MetricError> {
    predictions.check_any()?;
    let n_positive = predictions.n_positive();
    if n_positive == 0 {
        return Err(MetricError::OneClass { n_positive, n: predictions.n() });
    }
    let (mut hits, mut called, mut sum) = (0.0, 0.0, 0.0);
    for (_, positive, negative) in predictions.runs() {
        hits += positive;
        called += positive + negative;
        sum += positive * hits / called;
    }
    Ok(sum / n_positive as f64)
}

/// The binary cross-entropy of one sample, in nats. Probabilities are kept 2^-52 away from 0 and 1, as in scikit-learn.
pub(super) fn entropy_of(probability: f64, positive: bool) -> f64 {
    let p = probability.clamp(f64::EPSILON, 1.0 - f64::EPSILON);
    if positive { -p.ln() } else { -(1.0 - p).ln() }
}

/// Squared distance of one probability from the class.
pub(super) fn square_of(probability: f64, positive: bool) -> f64 {
    let residual = probability - f64::from(u8::from(positive));
    residual * residual
}

/// Binary cross-entropy (log loss), mean per sample in nats; probabilities are kept 2^-52 away from 0 and 1, as in
/// scikit-learn. O(n).
///
/// # Errors
/// [`MetricError::NoSamples`].
pub fn cross_entropy(predictions: &ClassPredictions) -> Result<f64, MetricError> {
    mean(predictions, entropy_of)
}

/// Brier score: mean squared distance of the probability from the class, in [0, 1]. O(n).
///
/// # Errors
/// [`MetricError::NoSamples`].
pub fn brier_score(predictions: &ClassPredictions) -> Result<f64, MetricError> {
    mean(predictions, square_of)
}

fn mean(predictions: &ClassPredictions, of_sample: fn(f64, bool) -> f64) -> Result<f64, MetricError> {
    predictions.check_any()?;
    let all = predictions.probability().iter().zip(predictions.positive());
    Ok(all.map(|(p, positive)| of_sample(*p, *positive)).sum::<f64>() / predictions.n() as f64)
}

/// The true positive rate where the true negative rate is `tnr` in (0, 1), 0.8 in MEDFAIR (Zong, Yang & Hospedales 2023,
/// <https://arxiv.org/abs/2210.01725>). O(n log n).
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::OneClass`], [`MetricError::InvalidSetting`] for a rate outside (0, 1).
pub fn tpr_at_tnr(predictions: &ClassPredictions, tnr: f64, reading: RocReading) -> Result<f64, MetricError> {
    check_tnr(tnr)?;
    let (n_positive, n_negative) = predictions.both_classes()?;
    let most = most_false(tnr, n_negative);
    let (mut hits, mut falsely) = (0.0, 0.0);
    for (_, positive, negative) in predictions.runs() {
        if falsely + negative > most {
            return Ok(read_roc(
                [hits, falsely],
                [hits + positive, falsely + negative],
                (tnr, reading),
                [n_positive, n_negative],
            ));
        }
        hits += positive;
        falsely += negative;
    }
    Ok(1.0)
}

/// A rate that can be read.
pub(crate) fn check_tnr(tnr: f64) -> Result<(), MetricError> {
    if tnr > 0.0 && tnr < 1.0 {
        return Ok(());
    }
    let (setting, expected) = ("true negative rate", "a number between 0 and 1");
    Err(MetricError::InvalidSetting { setting, value: tnr.to_string(), expected })
}

/// Most false positives that leave the rate; 1 - 0.8 is a little below 0.2 in binary.
pub(super) fn most_false(tnr: f64, n_negative: f64) -> f64 {
    (1.0 - tnr) * n_negative * (1.0 + 1e-12) + 1e-12
}

/// The true positive rate between the last threshold with the rate and the first without it, each as true and false
/// positives.
pub(super) fn read_roc(
    last: [f64; 2],
    next: [f64; 2],
    (tnr, reading): (f64, RocReading),
    [n_positive, n_negative]: [f64; 2],
) -> f64 {
    let share = match reading {
        RocReading::Step => 0.0,
        RocReading::Interpolated => (((1.0 - tnr) * n_negative - last[1]) / (next[1] - last[1])).clamp(0.0, 1.0),
    };
    (last[0] + share * (next[0] - last[0])) / n_positive
}
