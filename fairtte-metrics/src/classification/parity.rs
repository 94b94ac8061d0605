//! Criteria of fairness from the rates of groups at a threshold.
//!
//! Equal opportunity for class y: 1 - the largest difference of P(called positive | y, group); equalised odds: the mean of
//! both (MEDFAIR: Zong, Yang & Hospedales 2023, <https://arxiv.org/abs/2210.01725>, for two groups). Demographic parity:
//! largest minus smallest, and smallest divided by largest, share called positive, as in `fairlearn`.
//! Underdiagnosis: Seyyed-Kalantari et al. (2021), <https://doi.org/10.1038/s41591-021-01595-0>.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::classification::Confusion;

/// Which error leaves a patient without care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Underdiagnosis {
    /// The class is a disease, and it is missed: false negative rate.
    #[default]
    MissedDisease,
    /// The class is "no finding", and it is called where there is one: false positive rate.
    CalledNoFinding,
}

impl Underdiagnosis {
    /// The rate, in [0, 1].
    ///
    /// # Errors
    /// [`MetricError::OneClass`] without a sample of the class that it needs.
    pub fn rate(self, counts: &Confusion) -> Result<f64, MetricError> {
        match self {
            Self::MissedDisease => counts.false_negative_rate(),
            Self::CalledNoFinding => counts.false_positive_rate(),
        }
    }
}

/// The rates of one group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupRates {
    /// Of the negative samples, called positive.
    pub false_positive: f64,
    /// Of the positive samples, called negative.
    pub false_negative: f64,
    /// Of all samples, called positive.
    pub selection: f64,
}

impl GroupRates {
    /// Those of the counts.
    ///
    /// # Errors
    /// [`MetricError::OneClass`] unless both classes are there.
    pub fn of(counts: &Confusion) -> Result<Self, MetricError> {
        Ok(Self {
            false_positive: counts.false_positive_rate()?,
            false_negative: counts.false_negative_rate()?,
            selection: counts.selection_rate()?,
        })
    }
}

/// The criteria of one attribute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Parity {
    /// 1 - largest difference of false positive rates; 1 = equal.
    pub equal_opportunity_negative: f64,
    /// 1 - largest difference of true positive rates; 1 = equal.
    pub equal_opportunity_positive: f64,
    /// Mean of the two.
    pub equalised_odds: f64,
    /// Largest minus smallest share called positive; 0 = equal.
    pub demographic_parity_difference: f64,
    /// Smallest divided by largest share; 1 = equal, `None` if no sample is called positive.
    pub demographic_parity_ratio: Option<f64>,
}

impl Parity {
    /// Of two or more groups.
    ///
    /// ```
    /// use fairtte_metrics::classification::{GroupRates, Parity};
    ///
    /// let of = |false_positive, false_negative, selection| GroupRates { false_positive, false_negative, selection };
    /// let parity = Parity::of(&[of(0.25, 0.5, 0.25), of(0.5, 0.25, 0.5)])?;
    /// assert_eq!((parity.equalised_odds, parity.demographic_parity_ratio), (0.75, Some(0.5)));
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] with fewer than two groups.
    pub fn of(groups: &[GroupRates]) -> Result<Self, MetricError> {
        if groups.len() < 2 {
            let (setting, value) = ("number of groups to compare", groups.len().to_string());
            return Err(MetricError::InvalidSetting { setting, value, expected: "at least 2" });
        }
        let ends = |rate: fn(&GroupRates) -> f64| {
            let rates = groups.iter().map(rate);
            rates.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), rate| (low.min(rate), high.max(rate)))
        };
        let equality = |(low, high): (f64, f64)| 1.0 - (high - low);
        let (low, high) = ends(|group| group.selection);
        let negative = equality(ends(|group| group.false_positive));
        let positive = equality(ends(|group| group.false_negative));
        Ok(Self {
            equal_opportunity_negative: negative,
            equal_opportunity_positive: positive,
            equalised_odds: 0.5 * (negative + positive),
            demographic_parity_difference: high - low,
            demographic_parity_ratio: (high > 0.0).then(|| low / high),
        })
    }
}
