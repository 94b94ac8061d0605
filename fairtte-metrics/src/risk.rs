//! One risk score per sample, the input of rank metrics that do not depend on time.

use crate::MetricError;

/// Risk scores of `n` samples: finite numbers, higher = the event is expected earlier.
///
/// Only their order counts (and, for tied predictions, differences below a tolerance). A predicted time or a survival
/// probability becomes a risk by its negative.
///
/// ```
/// use fairtte_metrics::{MetricError, Risk};
///
/// assert_eq!(Risk::new(vec![0.3, -1.0])?.n(), 2);
/// assert_eq!(Risk::new(vec![0.3, f64::INFINITY]), Err(MetricError::InvalidRisk { row: 1, risk: f64::INFINITY }));
/// # Ok::<(), MetricError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Risk {
    risk: Vec<f64>,
}

impl Risk {
    /// Checks and keeps one score per sample.
    ///
    /// # Errors
    /// [`MetricError::InvalidRisk`] if a score is not finite.
    pub fn new(risk: Vec<f64>) -> Result<Self, MetricError> {
        match risk.iter().position(|score| !score.is_finite()) {
            Some(row) => Err(MetricError::InvalidRisk { row, risk: risk[row] }),
            None => Ok(Self { risk }),
        }
    }

    /// The scores, `[n]`.
    pub fn values(&self) -> &[f64] {
        &self.risk
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.risk.len()
    }

    /// The rows at `index`, in that order; a row may be taken more than once.
    ///
    /// # Panics
    /// If an index is not below [`n`](Self::n).
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        Self { risk: index.iter().map(|&row| self.risk[row]).collect() }
    }

    pub(crate) fn check_rows(&self, n: usize) -> Result<(), MetricError> {
        if self.n() == n {
            return Ok(());
        }
        Err(MetricError::LengthMismatch { what: "risk scores", found: self.n(), expected: n })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_must_be_finite_and_one_per_sample() {
        assert!(matches!(Risk::new(vec![f64::NAN]), Err(MetricError::InvalidRisk { row: 0, .. })));
        let risk = Risk::new(vec![1.0, 2.0, 3.0]).unwrap();
        assert_eq!(risk.select(&[2, 0, 2]).values(), [3.0, 1.0, 3.0]);
        assert!(matches!(risk.check_rows(2), Err(MetricError::LengthMismatch { found: 3, expected: 2, .. })));
    }
}
