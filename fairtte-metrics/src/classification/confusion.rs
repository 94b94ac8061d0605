//! Who is called positive at a threshold of the probability, and the threshold with the highest F1.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::classification::ClassPredictions;

/// Counts at a threshold; in a bootstrap replicate a sample counts as often as it was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Confusion {
    /// Positive samples called positive.
    pub true_positive: f64,
    /// Negative samples called positive.
    pub false_positive: f64,
    /// Positive samples called negative.
    pub false_negative: f64,
    /// Negative samples called negative.
    pub true_negative: f64,
}

/// A threshold chosen by F1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BestThreshold {
    /// One of the probabilities.
    pub threshold: f64,
    /// The F1 that it has on the samples it was chosen on: too good for these.
    pub f1: f64,
}

/// The counts at `threshold` in [0, 1]: positive from a probability equal to it on. O(n).
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::InvalidSetting`] for a threshold outside [0, 1].
pub fn confusion(predictions: &ClassPredictions, threshold: f64) -> Result<Confusion, MetricError> {
    check_threshold(threshold)?;
    predictions.check_any()?;
    let mut found = Confusion { true_positive: 0.0, false_positive: 0.0, false_negative: 0.0, true_negative: 0.0 };
    for (p, positive) in predictions.probability().iter().zip(predictions.positive()) {
        *match (*p >= threshold, *positive) {
            (true, true) => &mut found.true_positive,
            (true, false) => &mut found.false_positive,
            (false, true) => &mut found.false_negative,
            (false, false) => &mut found.true_negative,
        } += 1.0;
    }
    Ok(found)
}

pub(crate) fn check_threshold(threshold: f64) -> Result<(), MetricError> {
    if (0.0..=1.0).contains(&threshold) {
        return Ok(());
    }
    let (setting, expected) = ("threshold", "a number in [0, 1]");
    Err(MetricError::InvalidSetting { setting, value: threshold.to_string(), expected })
}

/// The probability at or above which F1 is highest, the highest of several. MEDFAIR chooses it on the validation part (it prints
/// "minimum F1"). O(n log n).
///
/// ```
/// use fairtte_metrics::classification::{ClassPredictions, best_f1_threshold};
///
/// let predictions = ClassPredictions::new(vec![0.1, 0.2, 0.3, 0.4], vec![false, true, false, true])?;
/// // 0.4: precision 1, recall 1/2, F1 2/3; 0.2: precision 2/3, recall 1, F1 4/5.
/// assert_eq!(best_f1_threshold(&predictions)?.threshold, 0.2);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::OneClass`].
pub fn best_f1_threshold(predictions: &ClassPredictions) -> Result<BestThreshold, MetricError> {
    let (n_positive, _) = predictions.both_classes()?;
    let (mut hits, mut called) = (0.0, 0.0);
    let mut best = BestThreshold { threshold: 1.0, f1: -1.0 };
    for (threshold, positive, negative) in predictions.runs() {
        hits += positive;
        called += positive + negative;
        let f1 = 2.0 * hits / (called + n_positive);
        if f1 > best.f1 {
            best = BestThreshold { threshold, f1 };
        }
    }
    Ok(best)
}

impl Confusion {
    fn n_positive(&self) -> f64 {
        self.true_positive + self.false_negative
    }

    fn n_negative(&self) -> f64 {
        self.false_positive + self.true_negative
    }

    fn n(&self) -> f64 {
        self.n_positive() + self.n_negative()
    }

    /// Why a number that needs one of the classes does not exist.
    fn one_class(&self) -> MetricError {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of samples")]
        let [n_positive, n] = [self.n_positive() as usize, self.n() as usize];
        if n == 0 { MetricError::NoSamples } else { MetricError::OneClass { n_positive, n } }
    }

    fn divided(&self, number: f64, by: f64) -> Result<f64, MetricError> {
        if by > 0.0 { Ok(number / by) } else { Err(self.one_class()) }
    }

    /// Share of samples called what they are.
    ///
    /// # Errors
    /// [`MetricError::NoSamples`], as for all of them.
    pub fn accuracy(&self) -> Result<f64, MetricError> {
        self.divided(self.true_positive + self.true_negative, self.n())
    }

    /// Mean of true positive and true negative rate.
    ///
    /// # Errors
    /// [`MetricError::OneClass`].
    pub fn balanced_accuracy(&self) -> Result<f64, MetricError> {
        Ok(1.0 - 0.5 * (self.false_negative_rate()? + self.false_positive_rate()?))
    }

    /// 2 TP / (2 TP + FP + FN): the harmonic mean of precision and recall.
    ///
    /// # Errors
    /// [`MetricError::OneClass`] without a positive sample.
    pub fn f1(&self) -> Result<f64, MetricError> {
        if self.n_positive() <= 0.0 {
            return Err(self.one_class());
        }
        self.divided(2.0 * self.true_positive, 2.0 * self.true_positive + self.false_positive + self.false_negative)
    }

    /// Share of negative samples called positive.
    ///
    /// # Errors
    /// [`MetricError::OneClass`] without a negative sample.
    pub fn false_positive_rate(&self) -> Result<f64, MetricError> {
        self.divided(self.false_positive, self.n_negative())
    }

    /// Share of positive samples called negative.
    ///
    /// # Errors
    /// [`MetricError::OneClass`] without a positive sample.
    pub fn false_negative_rate(&self) -> Result<f64, MetricError> {
        self.divided(self.false_negative, self.n_positive())
    }

    /// Share of samples called positive.
    ///
    /// # Errors
    /// [`MetricError::NoSamples`].
    pub fn selection_rate(&self) -> Result<f64, MetricError> {
        self.divided(self.true_positive + self.false_positive, self.n())
    }
}
