//! Calibration of probabilities: the expected calibration error in bins, and the calibration line.
//!
//! Expected calibration error: sum over bins of the share of samples times |mean confidence - share that is right|; Naeini,
//! Cooper & Hauskrecht (2015), <https://doi.org/10.1609/aaai.v29i1.9602>, Guo et al. (2017), <https://arxiv.org/abs/1706.04599>.
//! It is above 0 also for calibrated probabilities, more so in small samples. Calibration line: logistic regression of the
//! class on the logit of the probability; slope 1 and intercept 0 are calibrated. The calibration intercept ("in the large") is
//! that of a line of slope 1: Cox (1958), <https://doi.org/10.1093/biomet/45.3-4.562>; Van Calster et al. (2019),
//! <https://doi.org/10.1186/s12916-019-1466-7>.

use serde::{Deserialize, Serialize};

use super::logistic::{Cell, Positives, fit, mean_and_deviation};
use crate::MetricError;
use crate::classification::ClassPredictions;
use crate::resampling::bootstrap::quantile;

const MOST_BINS: usize = 1000;

/// Where the bins of the confidence end; a value on an edge is in the lower bin, as in scikit-learn's `calibration_curve`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bins {
    /// Of equal width over [0, 1].
    #[default]
    EqualWidth,
    /// At the quantiles of the confidence (interpolated, as in numpy).
    EqualMass,
}

/// What the bins are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BinConfidence {
    /// The probability of the positive class, against the share of positive samples.
    #[default]
    Positive,
    /// The larger of the probabilities of the two classes, against the share for which that class is right (at 1/2 the
    /// positive one).
    Predicted,
}

/// How the expected calibration error is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CalibrationError {
    /// Number of bins, from 1 to 1,000. Default 15.
    pub n_bins: usize,
    /// `equal-width` (default) or `equal-mass`.
    pub bins: Bins,
    /// `positive` (default) or `predicted`.
    pub confidence: BinConfidence,
}

impl Default for CalibrationError {
    fn default() -> Self {
        Self { n_bins: 15, bins: Bins::default(), confidence: BinConfidence::default() }
    }
}

impl CalibrationError {
    /// Checks the number of bins.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`].
    pub fn validate(self) -> Result<(), MetricError> {
        if (1..=MOST_BINS).contains(&self.n_bins) {
            return Ok(());
        }
        let (setting, value) = ("number of bins", self.n_bins.to_string());
        Err(MetricError::InvalidSetting { setting, value, expected: "a whole number from 1 to 1000" })
    }

    /// The confidence of one sample, and whether it is right.
    pub(super) fn of(self, p: f64, positive: bool) -> (f64, bool) {
        match self.confidence {
            BinConfidence::Predicted if p < 0.5 => (1.0 - p, !positive),
            _ => (p, positive),
        }
    }

    /// The bin of a confidence between equal edges.
    pub(super) fn equal_width(self, confidence: f64) -> usize {
        let inner = 1..self.n_bins;
        let edge = |k: usize| k as f64 * (1.0 / self.n_bins as f64);
        // The nearest edges, since the product may round to either side.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number in [0, n_bins]")]
        let near = (confidence * self.n_bins as f64) as usize;
        let first = near.saturating_sub(1).max(inner.start);
        (first..(near + 2).min(inner.end)).filter(|k| edge(*k) < confidence).max().unwrap_or(first - 1)
    }
}

/// The expected calibration error, in [0, 1]; O(n), of bins of equal mass O(n log n).
///
/// # Errors
/// [`MetricError::NoSamples`]; those of [`CalibrationError::validate`].
pub fn expected_calibration_error(
    predictions: &ClassPredictions,
    settings: CalibrationError,
) -> Result<f64, MetricError> {
    settings.validate()?;
    predictions.check_any()?;
    let all = predictions.probability().iter().zip(predictions.positive());
    let confidence: Vec<(f64, bool)> = all.map(|(p, positive)| settings.of(*p, *positive)).collect();
    let mut edges = Vec::new();
    if settings.bins == Bins::EqualMass {
        let mut sorted: Vec<f64> = confidence.iter().map(|(confidence, _)| *confidence).collect();
        sorted.sort_by(f64::total_cmp);
        edges = (1..settings.n_bins).map(|k| quantile(&sorted, k as f64 / settings.n_bins as f64)).collect();
    }
    let mut sums = vec![0.0; settings.n_bins];
    for (confidence, right) in confidence {
        let bin = match settings.bins {
            Bins::EqualWidth => settings.equal_width(confidence),
            Bins::EqualMass => edges.partition_point(|edge| *edge < confidence),
        };
        sums[bin] += confidence - f64::from(u8::from(right));
    }
    Ok(sums.into_iter().map(f64::abs).sum::<f64>() / predictions.n() as f64)
}

/// The line of the logit of the observed class on that of the probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CalibrationLine {
    /// At a predicted logit of 0; 0 is calibrated.
    pub intercept: f64,
    /// 1 is calibrated, below 1 the probabilities are too extreme.
    pub slope: f64,
}

/// Slope and intercept of the calibration line; O(n) per Newton step.
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::OneClass`], [`MetricError::NoLogit`] with a probability of 0 or 1,
/// [`MetricError::SeparatedClasses`] if the likelihood has no maximum.
pub fn calibration_line(predictions: &ClassPredictions) -> Result<CalibrationLine, MetricError> {
    let (cells, positives) = cells(predictions)?;
    if !overlap(predictions) {
        return Err(MetricError::SeparatedClasses);
    }
    let [intercept, slope] = fit(&cells, positives, [0.0, 1.0], false).ok_or(MetricError::SeparatedClasses)?;
    Ok(CalibrationLine { intercept, slope })
}

/// The calibration intercept: that of a line of slope 1; above 0 the probabilities are too low. O(n) per Newton step.
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::OneClass`], [`MetricError::NoLogit`].
pub fn calibration_intercept(predictions: &ClassPredictions) -> Result<f64, MetricError> {
    let (cells, positives) = cells(predictions)?;
    Ok(fit(&cells, positives, [0.0, 1.0], true).ok_or(MetricError::SeparatedClasses)?[0])
}

pub(super) fn logit(p: f64) -> f64 {
    p.ln() - (-p).ln_1p()
}

/// Refuses probabilities without a logit.
pub(super) fn check_logits(predictions: &ClassPredictions) -> Result<(), MetricError> {
    predictions.both_classes()?;
    let n_certain = predictions.probability().iter().filter(|p| **p <= 0.0 || **p >= 1.0).count();
    if n_certain > 0 { Err(MetricError::NoLogit { n_certain, n: predictions.n() }) } else { Ok(()) }
}

/// Every sample in a cell of its own.
fn cells(predictions: &ClassPredictions) -> Result<(Vec<Cell>, Positives), MetricError> {
    check_logits(predictions)?;
    let cell = |p: &f64| Cell { centre: logit(*p), moments: [1.0, 0.0, 0.0, 0.0] };
    let cells: Vec<Cell> = predictions.probability().iter().map(cell).collect();
    let (origin, _) = mean_and_deviation(cells.iter().map(|cell| cell.centre));
    let mut positives = Positives { weight: 0.0, number: 0.0, origin };
    for (cell, _) in cells.iter().zip(predictions.positive()).filter(|(_, positive)| **positive) {
        positives.weight += 1.0;
        positives.number += cell.centre - origin;
    }
    Ok((cells, positives))
}

/// Whether a positive sample is above a negative one, and one below one: else the likelihood has no maximum.
pub(super) fn overlap(predictions: &ClassPredictions) -> bool {
    let ends = |class: bool| {
        let all = predictions.probability().iter().zip(predictions.positive());
        let of_class = all.filter(|(_, positive)| **positive == class);
        of_class.fold((1.0_f64, 0.0_f64), |(low, high), (p, _)| (low.min(*p), high.max(*p)))
    };
    let (positive, negative) = (ends(true), ends(false));
    positive.1 > negative.0 && negative.1 > positive.0
}
