//! What `SurvivalEvaluator` of `SurvivalEVAL` computes from curves, by the conventions of that package.

use fairtte_metrics::calibration::{
    BinVariance, DCalibrationConvention, ObservedRisk, OneCalibrationSettings, OwnTimeReading, RiskBinning,
    d_calibration, integrated_calibration, one_calibration,
};
use fairtte_metrics::rank::{AucConvention, ConventionTd, TiedPairs, auc_td_with, concordance_td_with};
use fairtte_metrics::scores::{
    BrierConvention, IntegrationRule, brier_score_by, integrated_brier_score_by, survival_evaluator_curves,
};
use fairtte_metrics::{CensoringCurve, MetricError, Outcomes, Reading, SurvivalCurves};
use numpy::{IntoPyArray as _, PyArray2};
use pyo3::prelude::*;

use crate::arrays::{Flags, Matrix, Numbers, outcomes};
use crate::errors::{Names, metric_error, of_metric};
use crate::pool::{Threads, compute};

const NAMES: Names =
    Names { survival: "pred_survs", times: "time_coordinates", time: "event_times", risk: "pred_survs" };
/// Of what is computed at times that are asked for.
const AT_TARGETS: Names = Names { times: "target_times", ..NAMES };

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
    #[pyo3(signature = (survival, times, time, event, train=None, threads=None))]
    fn new(
        py: Python<'_>,
        survival: Matrix<'_>,
        times: Numbers<'_>,
        time: Numbers<'_>,
        event: Flags<'_>,
        train: Option<(Numbers<'_>, Flags<'_>)>,
        threads: Option<Threads>,
    ) -> PyResult<Self> {
        let of_train = |(time, event): (Numbers<'_>, Flags<'_>)| {
            outcomes(&time, &event, Names { time: "train_event_times", ..NAMES })
        };
        let (outcomes, train) = (outcomes(&time, &event, NAMES)?, train.map(of_train).transpose()?);
        let (times, rows) = (times.as_array().to_vec(), survival.to_rows(py)?);
        let curves = compute(py, threads, move |_| SurvivalCurves::new(times, rows))?;
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
    fn concordance_td(&self, py: Python<'_>, ties: &str, threads: Option<Threads>) -> PyResult<(f64, f64, f64)> {
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
    fn auc(&self, py: Python<'_>, time: f64, weighted: bool, threads: Option<Threads>) -> PyResult<f64> {
        let convention = if weighted { AucConvention::SurvivalEval } else { AucConvention::SurvivalEvalNaive };
        let (curves, outcomes) = (self.curves.clone(), self.outcomes.clone());
        let train = self.fitted_on(weighted)?;
        let found = compute(py, threads, move |_| -> Result<f64, MetricError> {
            let censoring = CensoringCurve::fit(&train, fairtte_metrics::CensoringTies::EventsFirst)?;
            let reading = Reading::LinearFromOne;
            let auc = auc_td_with(&outcomes, &curves, &censoring, reading, &[time], convention)?;
            auc.values.into_iter().next().unwrap_or(Err(MetricError::EmptyGrid))
        })?;
        found.map_err(|error| of_metric(&error, AT_TARGETS))
    }

    /// The Brier score at `times`, `[k]`.
    ///
    /// # Errors
    /// `MetricError` where a weight does not exist, and if it is `weighted` without a training sample.
    fn brier(
        &self,
        py: Python<'_>,
        times: Numbers<'_>,
        weighted: bool,
        threads: Option<Threads>,
    ) -> PyResult<Vec<f64>> {
        let (train, convention) = (self.fitted_on(weighted)?, of_weights(weighted));
        let (curves, outcomes, times) = (self.curves.clone(), self.outcomes.clone(), times.as_array().to_vec());
        let found = compute(py, threads, move |_| -> Result<Vec<f64>, MetricError> {
            let (read, censoring) = (survival_evaluator_curves(&curves, &times)?, convention.censoring_curve(&train)?);
            Ok(brier_score_by(convention, &outcomes, &read, &censoring, Reading::Step, &times)?.values)
        })?;
        found.map_err(|error| of_metric(&error, AT_TARGETS))
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
        threads: Option<Threads>,
    ) -> PyResult<f64> {
        let (train, convention) = (self.fitted_on(weighted)?, of_weights(weighted));
        let (curves, outcomes, times) = (self.curves.clone(), self.outcomes.clone(), times.as_array().to_vec());
        let found = compute(py, threads, move |_| -> Result<f64, MetricError> {
            let (read, censoring) = (survival_evaluator_curves(&curves, &times)?, convention.censoring_curve(&train)?);
            let (rule, step) = (IntegrationRule::Trapezoid, Reading::Step);
            integrated_brier_score_by(convention, rule, &outcomes, &read, &censoring, step, &times)
        })?;
        found.map_err(|error| of_metric(&error, AT_TARGETS))
    }

    /// p value of D-calibration, and the mass of every bin from the highest probabilities to the lowest.
    ///
    /// # Errors
    /// `MetricError` for the number of bins.
    fn d_calibration(&self, py: Python<'_>, n_bins: usize, threads: Option<Threads>) -> PyResult<(f64, Vec<f64>)> {
        let (curves, outcomes) = (self.curves.clone(), self.outcomes.clone());
        let found = compute(py, threads, move |_| {
            let (reading, convention) = (OwnTimeReading::LinearFromOne, DCalibrationConvention::Survivaleval);
            d_calibration(&outcomes, &curves, reading, n_bins, convention)
        })?;
        let found = found.map_err(|error| of_metric(&error, NAMES))?;
        Ok((found.p_value, found.mass.into_iter().rev().collect()))
    }

    /// p value of the calibration at `time`, and the observed and the expected risk of every bin that has samples. `by_width` makes bins
    /// of equal width, otherwise of equal size; `left_out` leaves out those censored before, otherwise the Kaplan-Meier curve of the
    /// bin counts them; `adjusted` takes the variance of the observed risk, otherwise that of the expected one.
    ///
    /// # Errors
    /// `MetricError` for the number of bins, and where the p value does not exist.
    #[pyo3(signature = (time, n_bins, by_width, left_out, adjusted, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "the package calls it with all of them")]
    fn one_calibration(
        &self,
        py: Python<'_>,
        time: f64,
        n_bins: usize,
        by_width: bool,
        left_out: bool,
        adjusted: bool,
        threads: Option<Threads>,
    ) -> PyResult<(f64, Vec<f64>, Vec<f64>)> {
        let settings = OneCalibrationSettings {
            n_bins,
            binning: if by_width { RiskBinning::EqualWidth } else { RiskBinning::EqualSize },
            observed: if left_out { ObservedRisk::Uncensored } else { ObservedRisk::KaplanMeier },
            variance: if adjusted { BinVariance::Estimated } else { BinVariance::ExpectedBinomial },
        };
        let (curves, outcomes) = (self.curves.clone(), self.outcomes.clone());
        let found = compute(py, threads, move |_| -> Result<_, MetricError> {
            let read = survival_evaluator_curves(&curves, &[time])?;
            let found = one_calibration(&outcomes, &read, time, Reading::Step, settings)?;
            let (observed, expected) = found.bins.iter().map(|bin| (bin.observed, bin.expected)).unzip();
            Ok((found.p_value?, observed, expected))
        })?;
        found.map_err(|error| of_metric(&error, AT_TARGETS))
    }

    /// The mean square of mean predicted curve minus Kaplan-Meier curve over time 0 and the event times, by trapezoids.
    ///
    /// # Errors
    /// `MetricError` without an event above 0, and for an event after the last time of the curves.
    fn km_calibration(&self, py: Python<'_>, threads: Option<Threads>) -> PyResult<f64> {
        let (curves, outcomes) = (self.curves.clone(), self.outcomes.clone());
        let events = outcomes.time().iter().zip(outcomes.event()).filter_map(|(time, event)| event.then_some(*time));
        let mut times: Vec<f64> = events.chain([0.0]).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        let last = self.curves.grid().last().copied().unwrap_or(0.0);
        if let Some(beyond) = times.iter().find(|time| **time > last) {
            let message = format!(
                "an event is at {beyond}, after the last of time_coordinates ({last}), expected curves up to it"
            );
            return Err(metric_error(message));
        }
        let found =
            compute(py, threads, move |_| integrated_calibration(&outcomes, &curves, Reading::LinearFromOne, &times))?;
        Ok(found.map_err(|error| of_metric(&error, NAMES))?.squared)
    }

    /// The curves at `times`, `[n, k]`.
    ///
    /// # Errors
    /// `MetricError` for times that do not increase.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        times: Numbers<'_>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (curves, times) = (self.curves.clone(), times.as_array().to_vec());
        let found = compute(py, threads, move |_| survival_evaluator_curves(&curves, &times))?;
        Ok(found.map_err(|error| of_metric(&error, AT_TARGETS))?.into_survival().into_pyarray(py))
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
