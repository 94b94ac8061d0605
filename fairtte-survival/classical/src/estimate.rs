//! A number that a fit has estimated.

use fairtte_metrics::statistics::normal_quantile;
use serde::{Deserialize, Serialize};

/// An estimate with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Its standard error; `None` where the model gives none.
    pub standard_error: Option<f64>,
}

impl Estimate {
    /// Lower and upper end of the Wald interval, value -/+ z standard errors; `None` without standard error or for a level
    /// outside (0, 1).
    pub fn interval(&self, level: f64) -> Option<(f64, f64)> {
        let error = self.standard_error.filter(|_| level > 0.0 && level < 1.0)?;
        let reach = normal_quantile(f64::midpoint(1.0, level)) * error;
        Some((self.value - reach, self.value + reach))
    }

    /// Exponential of the value with those of the ends of its interval: a ratio of times, odds or scales.
    pub fn ratio(&self, level: f64) -> Option<(f64, f64, f64)> {
        self.interval(level).map(|(lower, upper)| (self.value.exp(), lower.exp(), upper.exp()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_reach_196_hundredths_of_a_standard_error() {
        let estimate = Estimate { value: 1.0, standard_error: Some(0.5) };
        let (lower, upper) = estimate.interval(0.95).unwrap_or_default();
        assert!((lower - (1.0 - 0.979_981_992_270_027)).abs() < 1e-14, "{lower}");
        assert!((upper - (1.0 + 0.979_981_992_270_027)).abs() < 1e-14, "{upper}");
        assert_eq!(estimate.ratio(0.95), Some((1.0_f64.exp(), lower.exp(), upper.exp())));
        for level in [0.0, 1.0, -0.1, f64::NAN] {
            assert_eq!(estimate.interval(level), None, "{level}");
        }
        assert_eq!(Estimate { value: 1.0, standard_error: None }.interval(0.95), None);
    }
}
