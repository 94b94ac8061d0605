//! Scaled times, as a network reads them: (t - mean) / standard deviation of the training times, or of log(1 + t).
//!
//! pycox's `LabTransCoxTime`: the deviation divides by n; `log_duration` is off by default. Censored times count like
//! event times. Fitted on the training part only. Golden values: pycox 0.3.0.

use fairtte_metrics::Outcomes;
use serde::{Deserialize, Serialize};

use crate::SurvivalError;

/// Mean and standard deviation of the training times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "Written")]
pub struct TimeScale {
    mean: f64,
    deviation: f64,
    log: bool,
}

/// The form of a scale in a file, before it is checked.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    mean: f64,
    deviation: f64,
    log: bool,
}

impl TryFrom<Written> for TimeScale {
    type Error = String;

    fn try_from(Written { mean, deviation, log }: Written) -> Result<Self, String> {
        if mean.is_finite() && deviation > 0.0 && deviation.is_finite() {
            return Ok(Self { mean, deviation, log });
        }
        let expected = "finite numbers, the second above 0";
        Err(format!("the scale of times has mean {mean} and deviation {deviation}, expected {expected}"))
    }
}

impl TimeScale {
    /// Fits the scale on the times of `train`, in the unit of the cohort. Cost O(n).
    ///
    /// # Errors
    /// [`SurvivalError::TimesAllEqual`] if they do not vary.
    pub fn fit(train: &Outcomes, log: bool) -> Result<Self, SurvivalError> {
        let time = train.time().first().copied().unwrap_or(0.0);
        if train.time().iter().all(|other| other.total_cmp(&time).is_eq()) {
            return Err(SurvivalError::TimesAllEqual { part: "training", n: train.n(), time });
        }
        let value = |time: f64| if log { time.ln_1p() } else { time };
        let n = train.n() as f64;
        let mean = train.time().iter().map(|t| value(*t)).sum::<f64>() / n;
        let variance = train.time().iter().map(|t| (value(*t) - mean).powi(2)).sum::<f64>() / n;
        let deviation = variance.sqrt();
        if deviation > 0.0 && deviation.is_finite() {
            return Ok(Self { mean, deviation, log });
        }
        Err(SurvivalError::TimesAllEqual { part: "training", n: train.n(), time })
    }

    /// The scaled time.
    pub fn scale(&self, time: f64) -> f64 {
        let value = if self.log { time.ln_1p() } else { time };
        (value - self.mean) / self.deviation
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    // Computed by hand: times 1, 2, 3, 6 have mean 3 and variance 14 / 4.
    #[test]
    fn training_times_get_mean_0_and_deviation_1() {
        let train = Outcomes::new(vec![1.0, 2.0, 3.0, 6.0], vec![true, false, true, true]).unwrap();
        let scale = TimeScale::fit(&train, false).unwrap();
        assert!((scale.scale(6.0) - 3.0 / 3.5_f64.sqrt()).abs() < 1e-15);
        let logarithms = TimeScale::fit(&train, true).unwrap();
        assert!(train.time().iter().map(|t| logarithms.scale(*t)).sum::<f64>().abs() < 1e-14);
    }

    #[test]
    fn a_file_that_is_no_scale_is_refused() {
        let read = |text: &str| serde_json::from_str::<TimeScale>(text).map_err(|error| error.to_string());
        let scale = read(r#"{"mean": 3.0, "deviation": 2.0, "log": false}"#).unwrap();
        assert!((scale.scale(7.0) - 2.0).abs() < 1e-15);
        assert_eq!(read(&serde_json::to_string(&scale).unwrap()).unwrap(), scale);
        // Every scaled time would be infinite, or no number.
        let zero = read(r#"{"mean": 3.0, "deviation": 0.0, "log": false}"#).unwrap_err();
        assert!(zero.starts_with("the scale of times has mean 3 and deviation 0, expected finite numbers"), "{zero}");
        assert!(read(r#"{"mean": 3.0, "deviation": -1.0, "log": false}"#).is_err());
        assert!(read(r#"{"mean": 3.0, "deviation": 2.0, "log": false, "unit": 1}"#).unwrap_err().contains("unit"));
    }

    #[test]
    fn equal_times_have_no_scale() {
        let train = Outcomes::new(vec![0.1; 3], vec![true, false, true]).unwrap();
        let error = TimeScale::fit(&train, false).unwrap_err();
        let expected = "all times of the training part are 0.1 (samples: 3), expected at least two different times";
        assert_eq!(error.to_string(), expected);
    }
}
