//! Area under the receiver operating characteristic, with the variance and the paired test of `DeLong`.
//!
//! AUC = P(positive above negative) + 1/2 P(equal). Source of the variance: `DeLong`, `DeLong` & Clarke-Pearson (1988),
//! <https://doi.org/10.2307/2531595>; by midranks in O(n log n): Sun & Xu (2014), <https://doi.org/10.1109/LSP.2014.2337313>.
//! It treats samples as independent: with several samples per subject it is too small.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::classification::ClassPredictions;
use crate::statistics::normal_upper;

/// An AUC with the variance of `DeLong`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeLong {
    /// In [0, 1].
    pub auc: f64,
    /// Of the estimate, >= 0.
    pub variance: f64,
}

/// Two models on the same samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeLongTest {
    /// AUC of the first minus that of the second.
    pub difference: f64,
    /// Of the difference.
    pub variance: f64,
    /// Difference divided by its standard error.
    pub z: f64,
    /// Two-sided p value of equal AUCs.
    pub p_value: f64,
}

/// The AUC; ties count 1/2. O(n log n).
///
/// ```
/// use fairtte_metrics::classification::{ClassPredictions, auc};
///
/// let predictions = ClassPredictions::new(vec![0.1, 0.4, 0.4, 0.8], vec![false, false, true, true])?;
/// assert_eq!(auc(&predictions), Ok(0.875));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NoSamples`], [`MetricError::OneClass`].
pub fn auc(predictions: &ClassPredictions) -> Result<f64, MetricError> {
    let (n_positive, n_negative) = predictions.both_classes()?;
    let (mut above, mut twice) = (0.0, 0.0);
    for (_, positive, negative) in predictions.runs() {
        twice += negative * (2.0 * above + positive);
        above += positive;
    }
    Ok(twice / (2.0 * n_positive * n_negative))
}

/// The AUC with its variance. O(n log n).
///
/// # Errors
/// Those of [`auc`]; [`MetricError::TooFewSamples`] unless there are two samples of each class.
pub fn delong(predictions: &ClassPredictions) -> Result<DeLong, MetricError> {
    let auc = auc(predictions)?;
    Ok(DeLong { auc, variance: Placements::new(predictions)?.variance() })
}

/// The test of equal AUCs of two models on the same samples. O(n log n).
///
/// # Errors
/// Those of [`delong`]; [`MetricError::LengthMismatch`] and [`MetricError::InvalidSetting`] unless the classes are the same;
/// also if the difference does not vary.
pub fn delong_test(first: &ClassPredictions, second: &ClassPredictions) -> Result<DeLongTest, MetricError> {
    first.check_same_classes(second)?;
    let difference = auc(first)? - auc(second)?;
    let (a, b) = (Placements::new(first)?, Placements::new(second)?);
    let variance = a.minus(&b).variance();
    if variance <= 0.0 {
        let (setting, value) = ("variance of the difference of two AUCs", variance.to_string());
        return Err(MetricError::InvalidSetting { setting, value, expected: "models that rank differently" });
    }
    let z = difference / variance.sqrt();
    Ok(DeLongTest { difference, variance, z, p_value: (2.0 * normal_upper(z.abs())).min(1.0) })
}

/// For every positive sample the share of negatives below it, for every negative that of positives above it; ties 1/2.
struct Placements {
    positive: Vec<f64>,
    negative: Vec<f64>,
}

impl Placements {
    fn new(predictions: &ClassPredictions) -> Result<Self, MetricError> {
        let (n_positive, n_negative) = predictions.both_classes()?;
        if n_positive < 2.0 || n_negative < 2.0 {
            let n = predictions.n_positive().min(predictions.n() - predictions.n_positive());
            return Err(MetricError::TooFewSamples { n, expected: 2 });
        }
        let (mut positive, mut negative) = (Vec::new(), Vec::new());
        let mut of_probability = Vec::new();
        let (mut above, mut seen) = (0.0, 0.0);
        for (p, positives, negatives) in predictions.runs() {
            let below = n_negative - seen - negatives;
            of_probability.push((p, (below + 0.5 * negatives) / n_negative, (above + 0.5 * positives) / n_positive));
            above += positives;
            seen += negatives;
        }
        for (p, is_positive) in predictions.probability().iter().zip(predictions.positive()) {
            let place = of_probability.partition_point(|run| run.0 > *p);
            if *is_positive { positive.push(of_probability[place].1) } else { negative.push(of_probability[place].2) }
        }
        Ok(Self { positive, negative })
    }

    fn minus(&self, other: &Self) -> Self {
        let minus = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect();
        Self { positive: minus(&self.positive, &other.positive), negative: minus(&self.negative, &other.negative) }
    }

    fn variance(&self) -> f64 {
        let of_mean = |shares: &[f64]| {
            let n = shares.len() as f64;
            let mean = shares.iter().sum::<f64>() / n;
            shares.iter().map(|share| (share - mean) * (share - mean)).sum::<f64>() / (n - 1.0) / n
        };
        of_mean(&self.positive) + of_mean(&self.negative)
    }
}
