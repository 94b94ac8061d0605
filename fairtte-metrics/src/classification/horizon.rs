//! A class made from times: the event by a horizon.
//!
//! The habit of the field leaves out the samples censored before the horizon. Positive samples are left out less often than
//! negative ones (an event ends the observation, the absence of one takes the whole time), and if censoring depends on the
//! risk, the AUC of those who stay is biased. The cumulative/dynamic AUC with weights 1 / G uses all samples.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::classification::{ClassPredictions, auc};
use crate::rank::{AucConvention, auc_td_with};
use crate::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};

/// The classes of those whose outcome by the horizon is known.
#[derive(Clone, Debug, PartialEq)]
pub struct HorizonClasses {
    /// The horizon, in the unit of the data set.
    pub horizon: f64,
    /// Rows with a class, ascending.
    pub rows: Vec<usize>,
    /// Whether each of them had the event by the horizon, `[rows]`.
    pub positive: Vec<bool>,
    /// Samples censored before the horizon or at it, which have no class.
    pub n_left_out: usize,
}

/// The AUC of the class beside the one with weights for censoring.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HorizonAuc {
    /// Of those with a class.
    pub naive: f64,
    /// Cumulative/dynamic, of all samples.
    pub weighted: f64,
}

/// The class "event by `horizon`": positive with an event by then, negative if followed beyond it, none if censored by then.
/// O(n).
///
/// ```
/// use fairtte_metrics::Outcomes;
/// use fairtte_metrics::classification::binary_at_horizon;
///
/// let outcomes = Outcomes::new(vec![100.0, 200.0, 400.0, 900.0], vec![true, false, true, false])?;
/// let classes = binary_at_horizon(&outcomes, 365.0)?;
/// assert_eq!((classes.rows, classes.positive, classes.n_left_out), (vec![0, 2, 3], vec![true, false, false], 1));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::InvalidSetting`] for a horizon that is not a finite number > 0.
pub fn binary_at_horizon(outcomes: &Outcomes, horizon: f64) -> Result<HorizonClasses, MetricError> {
    if !(horizon.is_finite() && horizon > 0.0) {
        let (setting, value) = ("horizon", horizon.to_string());
        return Err(MetricError::InvalidSetting { setting, value, expected: "a finite number > 0" });
    }
    let (mut rows, mut positive) = (Vec::new(), Vec::new());
    for (row, (time, event)) in outcomes.time().iter().zip(outcomes.event()).enumerate() {
        if *time > horizon || *event {
            rows.push(row);
            positive.push(*time <= horizon);
        }
    }
    let n_left_out = outcomes.n() - rows.len();
    Ok(HorizonClasses { horizon, rows, positive, n_left_out })
}

/// Curves of one time: 1 minus the probabilities of the event by `horizon`.
pub(crate) fn curves_at(horizon: f64, probability: &[f64]) -> Result<SurvivalCurves, MetricError> {
    let survival = Array2::from_shape_fn((probability.len(), 1), |(row, _)| 1.0 - probability[row]);
    SurvivalCurves::new(vec![horizon], survival)
}

impl HorizonClasses {
    /// The probabilities of all samples, restricted to those with a class.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if rows are missing, and those of [`ClassPredictions::new`].
    pub fn predictions(&self, probability: &[f64]) -> Result<ClassPredictions, MetricError> {
        let (found, expected) = (probability.len(), self.rows.len() + self.n_left_out);
        if found != expected {
            return Err(MetricError::LengthMismatch { what: "probabilities", found, expected });
        }
        ClassPredictions::new(self.rows.iter().map(|row| probability[*row]).collect(), self.positive.clone())
    }

    /// The AUC of those with a class, and that of all with weights: cases 1 / G(T-), controls 1 / G(t)
    /// ([`AucConvention::RiskRegression`]). `censoring` is fitted on the training sample; without censoring by the horizon
    /// both are the same. O(n log n).
    ///
    /// # Errors
    /// Those of [`predictions`](Self::predictions), [`auc`] and [`auc_td_with`].
    pub fn auc(
        &self,
        outcomes: &Outcomes,
        probability: &[f64],
        censoring: &CensoringCurve,
    ) -> Result<HorizonAuc, MetricError> {
        let naive = auc(&self.predictions(probability)?)?;
        let curves = curves_at(self.horizon, probability)?;
        let times = [self.horizon];
        let found = auc_td_with(outcomes, &curves, censoring, Reading::Step, &times, AucConvention::RiskRegression)?;
        let weighted = found.values.into_iter().next().unwrap_or(Err(MetricError::NoSamples))?;
        Ok(HorizonAuc { naive, weighted })
    }
}
