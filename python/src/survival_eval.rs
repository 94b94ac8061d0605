//! What `SurvivalEvaluator` of `SurvivalEVAL` computes from curves, by the conventions of that package.

use fairtte_metrics::calibration::{DCalibrationConvention, OwnTimeReading, d_calibration};
use fairtte_metrics::rank::{AucConvention, ConventionTd, TiedPairs, auc_td_with, concordance_td_with};
use fairtte_metrics::scores::{
    BrierConvention, IntegrationRule, brier_score_by, integrated_brier_score_by, survival_evaluator_curves,
};
use fairtte_metrics::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};
use numpy::{IntoPyArray as _, PyArray2};
use pyo3::prelude::*;

use crate::arrays::{Flags, Matrix, Numbers, outcomes};
use crate::errors::{Names, metric_error, of_metric};
use crate::pool::compute;

const NAMES: Names =
    Names { survival: "pred_survs", times: "time_coordinates", time: "event_times", risk: "pred_survs" };

/// Curves and outcomes as the evaluator is given them.
#[pyclass(frozen)]
pub(crate) struct SurvivalEvaluator {
    curves: SurvivalCurves,
    outcomes: Outcomes,
    train: Option<Outcomes>,
}

#[pymethods]
impl SurvivalEvaluator {
    /// # Errors
    /// `MetricError` for arguments that do not fit together.
    #[new]
    #[pyo3(signature = (survival, times, time, event, train=None))]
    fn new(
        survival: Matrix<'_>,
        times: Numbers<'_>,
        time: Numbers<'_>,
        event: Flags<'_>,
        train: Option<(Numbers<'_>, Flags<'_>)>,
    ) -> PyResult<Self> {
        let of_train = |(time, event): (Numbers<'_>, Flags<'_>)| {
            outcomes(&time, &event, Names { time: "train_event_times", ..NAMES })
        };
        let (outcomes, train) = (outcomes(&time, &event, NAMES)?, train.map(of_train).transpose()?);
        let curves = SurvivalCurves::new(times.as_array().to_vec(), survival.to_rows());
        let curves = curves.map_err(|error| of_metric(&error, NAMES))?;
        if curves.n() != outcomes.n() {
            let message = format!("pred_survs has {} rows, expected {}, as event_times", curves.n(), outcomes.n());
            return Err(metric_error(message));
        }
        Ok(Self { curves, outcomes, train })
    }

    /// The time-dependent concordance, and the sums whose ratio it is.
    ///
    /// # Errors
    /// `MetricError` for unknown `ties` and without comparable pairs.
    fn concordance_td(&self, py: Python<'_>, ties: &str, threads: Option<usize>) -> PyResult<(f64, f64, f64)> {
        let ties = match ties {
            "none" => TiedPairs::Dropped,
            "risk" => TiedPairs::Predictions,
            "time" => TiedPairs::Times,
            "all" => TiedPairs::All,
            other => return Err(metric_error(format!("ties is \"{other}\", expected none, risk, time or all"))),
        };
        let (curves, outcomes) = (self.curves.clone(), self.outcomes.clone());
        let found = compute(py, threads, move |_| {
            concordance_td_with(&outcomes, &curves, Reading::LinearFromOne, ConventionTd::SurvivalEval(ties))
        })?;
        let c = found.map_err(|error| of_metric(&error, NAMES))?;
        Ok((c.value, c.numerator, c.denominator))
    }

    /// The cumulative/dynamic AUC at `time`.
    ///
    /// # Errors
    /// `MetricError` without cases, controls or, if it is `weighted`, a training sample.
    fn auc(&self, py: Python<'_>, time: f64, weighted: bool, threads: Option<usize>) -> PyResult<f64> {
        let convention = if weighted { AucConvention::SurvivalEval } else { AucConvention::SurvivalEvalNaive };
        let (curves, outcomes) = (self.curves.clone(), self.outcomes.clone());
        let train = self.fitted_on(weighted)?;
        let found = compute(py, threads, move |_| -> Result<f64, MetricError> {
            let censoring = CensoringCurve::fit(&train, fairtte_metrics::CensoringTies::EventsFirst)?;
            let reading = Reading::LinearFromOne;
            let auc = auc_td_with(&outcomes, &curves, &censoring, reading, &[time], convention)?;
            auc.values.into_iter().next().unwrap_or(Err(MetricError::EmptyGrid))
        })?;
        found.map_err(|error| of_metric(&error, NAMES))
    }

    /// The Brier score at `times`, `[k]`.
    ///
    /// # Errors
    /// `MetricError` where a weight does not exist, and if it is `weighted` without a training sample.
    fn brier(&self, py: Python<'_>, times: Numbers<'_>, weighted: bool, threads: Option<usize>) -> PyResult<Vec<f64>> {
        let (train, convention) = (self.fitted_on(weighted)?, of_weights(weighted));
        let (curves, outcomes, times) = (self.curves.clone(), self.outcomes.clone(), times.as_array().to_vec());
        let found = compute(py, threads, move |_| -> Result<Vec<f64>, MetricError> {
            let (read, censoring) = (survival_evaluator_curves(&curves, &times)?, convention.censoring_curve(&train)?);
            Ok(brier_score_by(convention, &outcomes, &read, &censoring, Reading::Step, &times)?.values)
        })?;
        found.map_err(|error| of_metric(&error, NAMES))
    }

    /// The Brier score averaged over `times` by trapezoids.
    ///
    /// # Errors
    /// Those of the scores at each time.
    fn integrated_brier(
        &self,
        py: Python<'_>,
        times: Numbers<'_>,
        weighted: bool,
        threads: Option<usize>,
    ) -> PyResult<f64> {
        let (train, convention) = (self.fitted_on(weighted)?, of_weights(weighted));
        let (curves, outcomes, times) = (self.curves.clone(), self.outcomes.clone(), times.as_array().to_vec());
        let found = compute(py, threads, move |_| -> Result<f64, MetricError> {
            let (read, censoring) = (survival_evaluator_curves(&curves, &times)?, convention.censoring_curve(&train)?);
            let (rule, step) = (IntegrationRule::Trapezoid, Reading::Step);
            integrated_brier_score_by(convention, rule, &outcomes, &read, &censoring, step, &times)
        })?;
        found.map_err(|error| of_metric(&error, NAMES))
    }

    /// p value of D-calibration, and the mass of every bin from the highest probabilities to the lowest.
    ///
    /// # Errors
    /// `MetricError` for the number of bins.
    fn d_calibration(&self, py: Python<'_>, n_bins: usize, threads: Option<usize>) -> PyResult<(f64, Vec<f64>)> {
        let (curves, outcomes) = (self.curves.clone(), self.outcomes.clone());
        let found = compute(py, threads, move |_| {
            let (reading, convention) = (OwnTimeReading::LinearFromOne, DCalibrationConvention::Survivaleval);
            d_calibration(&outcomes, &curves, reading, n_bins, convention)
        })?;
        let found = found.map_err(|error| of_metric(&error, NAMES))?;
        Ok((found.p_value, found.mass.into_iter().rev().collect()))
    }

    /// The curves at `times`, `[n, k]`.
    ///
    /// # Errors
    /// `MetricError` for times that do not increase.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        times: Numbers<'_>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (curves, times) = (self.curves.clone(), times.as_array().to_vec());
        let found = compute(py, threads, move |_| survival_evaluator_curves(&curves, &times))?;
        Ok(found.map_err(|error| of_metric(&error, NAMES))?.into_survival().into_pyarray(py))
    }
}

impl SurvivalEvaluator {
    /// The sample of the censoring curve, which unweighted scores do not read.
    fn fitted_on(&self, weighted: bool) -> PyResult<Outcomes> {
        match &self.train {
            Some(train) => Ok(train.clone()),
            None if weighted => {
                Err(metric_error("train_event_times is None, expected the training sample for weights"))
            }
            None => Ok(self.outcomes.clone()),
        }
    }
}

fn of_weights(weighted: bool) -> BrierConvention {
    if weighted { BrierConvention::SurvivalEval } else { BrierConvention::SurvivalEvalUnweighted }
}
