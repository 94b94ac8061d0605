//! Decision curves: the net benefit of a model at every threshold, beside treating all and treating none.

use serde::{Deserialize, Serialize};

use super::table::{PreparedDecisions, risks};
use crate::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};

/// The net benefit at one threshold; that of treating none is 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NetBenefit {
    /// The predicted risk at or above which a sample is treated, in (0, 1).
    pub threshold: f64,
    /// Of treating those that the model calls positive.
    pub model: f64,
    /// Of treating everybody.
    pub treat_all: f64,
}

/// The net benefit of `curves` at every one of `thresholds`, by `horizon`; Vickers & Elkin (2006).
///
/// Cost: O(n) per threshold.
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::decision::decision_curve;
/// use ndarray::array;
///
/// // One of two has the event by time 1; the model is right about both.
/// let outcomes = Outcomes::new(vec![1.0, 2.0], vec![true, true])?;
/// let curves = SurvivalCurves::new(vec![1.0], array![[0.125], [0.875]])?;
/// let censoring = CensoringCurve::fit(&outcomes, CensoringTies::default())?;
/// let curve = decision_curve(&outcomes, &curves, &censoring, Reading::Step, 1.0, &[0.2, 0.5])?;
/// assert_eq!([curve[0].model, curve[1].model], [0.5, 0.5]);
/// assert_eq!([curve[0].treat_all, curve[1].treat_all], [0.375, 0.0]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`decision_table`](crate::decision::decision_table).
pub fn decision_curve(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    reading: Reading,
    horizon: f64,
    thresholds: &[f64],
) -> Result<Vec<NetBenefit>, MetricError> {
    curves.check_rows(outcomes.n())?;
    PreparedDecisions::new(outcomes, risks(curves, reading, horizon)?, censoring, horizon)?.curve(thresholds)
}

impl PreparedDecisions {
    pub(crate) fn curve(&self, thresholds: &[f64]) -> Result<Vec<NetBenefit>, MetricError> {
        let ones = vec![1; self.n()];
        let at = |&threshold: &f64| {
            let table = self.weighted(&ones, threshold)?;
            Ok(NetBenefit { threshold, model: table.net_benefit(), treat_all: table.net_benefit_of_all() })
        };
        thresholds.iter().map(at).collect()
    }
}

/// The whole percents from the one at or below the smallest risk to the one at or above the largest, within 1 % and 99 %:
/// beyond them the model treats all or none.
pub(crate) fn curve_thresholds((low, high): (f64, f64)) -> Vec<f64> {
    let percents = (1..=99_u8).map(|percent| f64::from(percent) / 100.0);
    let (first, last) = (((low * 100.0).floor() / 100.0).min(0.99), ((high * 100.0).ceil() / 100.0).max(0.01));
    percents.filter(|threshold| (first..=last).contains(threshold)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_enclose_the_predicted_risks() {
        assert_eq!(curve_thresholds((0.021, 0.0545)), [0.02, 0.03, 0.04, 0.05, 0.06]);
        assert_eq!(curve_thresholds((0.0, 1.0)).len(), 99);
        assert_eq!(curve_thresholds((0.995, 0.999)), [0.99]);
        assert_eq!(curve_thresholds((0.0, 0.0)), [0.01]);
        assert_eq!(curve_thresholds((1.0, 1.0)), [0.99]);
    }
}
