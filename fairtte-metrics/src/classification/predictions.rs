//! Probabilities of a binary class with what was observed.

use crate::MetricError;

/// The predicted probability of the positive class and the observed class of `n` samples.
///
/// ```
/// use fairtte_metrics::MetricError;
/// use fairtte_metrics::classification::ClassPredictions;
///
/// assert_eq!(ClassPredictions::new(vec![0.2, 0.9], vec![false, true])?.n_positive(), 1);
/// let refused = ClassPredictions::new(vec![0.2, 1.5], vec![false, true]).map_err(|error| error.to_string());
/// assert_eq!(refused.err().as_deref(), Some("probability of row 1 is 1.5, expected a number in [0, 1]"));
/// # Ok::<(), MetricError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClassPredictions {
    probability: Vec<f64>,
    positive: Vec<bool>,
}

impl ClassPredictions {
    /// Checks and keeps both, `[n]`; -0.0 is kept as 0.0.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if the lengths differ, [`MetricError::InvalidNumber`] if a probability is not a number
    /// in [0, 1].
    pub fn new(mut probability: Vec<f64>, positive: Vec<bool>) -> Result<Self, MetricError> {
        if probability.len() != positive.len() {
            let (found, expected) = (positive.len(), probability.len());
            return Err(MetricError::LengthMismatch { what: "classes", found, expected });
        }
        if let Some(row) = probability.iter().position(|p| !(0.0..=1.0).contains(p)) {
            let (what, expected) = ("probability", "a number in [0, 1]");
            return Err(MetricError::InvalidNumber { what, row, value: probability[row], expected });
        }
        for p in &mut probability {
            *p += 0.0;
        }
        Ok(Self { probability, positive })
    }

    /// Predicted probability of the positive class, `[n]`.
    pub fn probability(&self) -> &[f64] {
        &self.probability
    }

    /// Whether the sample is of the positive class, `[n]`.
    pub fn positive(&self) -> &[bool] {
        &self.positive
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.probability.len()
    }

    /// Samples of the positive class.
    pub fn n_positive(&self) -> usize {
        self.positive.iter().filter(|positive| **positive).count()
    }

    /// The rows at `index`, in that order; a row may be taken more than once.
    ///
    /// # Panics
    /// If an index is not below [`n`](Self::n).
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        Self {
            probability: index.iter().map(|row| self.probability[*row]).collect(),
            positive: index.iter().map(|row| self.positive[*row]).collect(),
        }
    }

    /// Checks that both have the same classes, row by row.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`], [`MetricError::InvalidSetting`] with the first row that differs.
    pub(crate) fn check_same_classes(&self, other: &Self) -> Result<(), MetricError> {
        if other.n() != self.n() {
            let (found, expected) = (other.n(), self.n());
            return Err(MetricError::LengthMismatch { what: "probabilities of another model", found, expected });
        }
        if let Some(row) = (0..self.n()).find(|row| self.positive[*row] != other.positive[*row]) {
            let (setting, value) = ("classes of another model", format!("different in row {row}"));
            return Err(MetricError::InvalidSetting { setting, value, expected: "those of the first model" });
        }
        Ok(())
    }

    pub(super) fn check_any(&self) -> Result<(), MetricError> {
        if self.n() == 0 { Err(MetricError::NoSamples) } else { Ok(()) }
    }

    /// Numbers of positive and negative samples.
    ///
    /// # Errors
    /// [`MetricError::NoSamples`], [`MetricError::OneClass`].
    pub(super) fn both_classes(&self) -> Result<(f64, f64), MetricError> {
        self.check_any()?;
        let (n, n_positive) = (self.n(), self.n_positive());
        if n_positive == 0 || n_positive == n {
            return Err(MetricError::OneClass { n_positive, n });
        }
        Ok((n_positive as f64, (n - n_positive) as f64))
    }

    /// Rows by falling probability.
    pub(crate) fn falling(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.n()).collect();
        order.sort_by(|a, b| self.probability[*b].total_cmp(&self.probability[*a]));
        order
    }

    /// By falling distinct probability: it, and the positive and negative samples that have it.
    pub(crate) fn runs(&self) -> Vec<(f64, f64, f64)> {
        let mut runs: Vec<(f64, f64, f64)> = Vec::new();
        for row in self.falling() {
            let p = self.probability[row];
            if runs.last().is_none_or(|run| run.0.total_cmp(&p).is_ne()) {
                runs.push((p, 0.0, 0.0));
            }
            if let Some(run) = runs.last_mut() {
                if self.positive[row] { run.1 += 1.0 } else { run.2 += 1.0 }
            }
        }
        runs
    }
}
