//! The metrics of scikit-survival and pycox, by the conventions of these packages.

use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::rank::{
    AucConvention, ConventionTd, TieTest, TiedPairs, TiedPredictions, UnoConvention, auc_of_risks, concordance_td_with,
    harrell_concordance, uno_concordance,
};
use fairtte_metrics::scores::{BrierConvention, brier_score_by, integrated_brier_score_by, integrated_nbll, nbll};
use fairtte_metrics::{CensoringCurve, CensoringTies, MetricError, Outcomes, Reading, Risk, SurvivalCurves};
use ndarray::Axis;
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use crate::arrays::{Flags, Matrix, Numbers, outcomes};
use crate::errors::{Names, of_metric};
use crate::pool::{Threads, compute};

/// Times and events of the training sample.
type Train<'py> = (Numbers<'py>, Flags<'py>);

fn train_and_test(
    train: &Train<'_>,
    time: &Numbers<'_>,
    event: &Flags<'_>,
    names: Names,
) -> PyResult<(Outcomes, Outcomes)> {
    let train = outcomes(&train.0, &train.1, Names { time: "survival_train", ..names })?;
    Ok((train, outcomes(time, event, names)?))
}

/// Harrell's C: value, concordant, discordant, pairs tied in risk, pairs tied in time.
///
/// # Errors
/// `MetricError` for invalid input or without comparable pairs.
#[pyfunction]
#[pyo3(signature = (event, time, estimate, near, threads=None))]
pub(crate) fn harrell(
    py: Python<'_>,
    event: Flags<'_>,
    time: Numbers<'_>,
    estimate: Numbers<'_>,
    near: bool,
    threads: Option<Threads>,
) -> PyResult<(f64, u64, u64, u64, u64)> {
    let names = Names { time: "event_time", ..Names::default() };
    let outcomes = outcomes(&time, &event, names)?;
    let risk = Risk::new(estimate.as_array().to_vec()).map_err(|error| of_metric(&error, names))?;
    let test = if near { TieTest::Near } else { TieTest::Exact };
    let found = compute(py, threads, move |_| harrell_concordance(&outcomes, &risk, test, TiedPairs::default()))?;
    let c = found.map_err(|error| of_metric(&error, names))?;
    Ok((c.value, c.n_concordant, c.n_discordant, c.n_tied_predictions, c.n_tied_events))
}

/// Uno's C with the convention of scikit-survival: value, concordant, discordant, tied in risk.
///
/// # Errors
/// `MetricError` for invalid input, without comparable pairs or without a weight.
#[pyfunction]
#[pyo3(signature = (train, event, time, estimate, tau=None, threads=None))]
pub(crate) fn uno(
    py: Python<'_>,
    train: Train<'_>,
    event: Flags<'_>,
    time: Numbers<'_>,
    estimate: Numbers<'_>,
    tau: Option<f64>,
    threads: Option<Threads>,
) -> PyResult<(f64, u64, u64, u64)> {
    let names = Names { time: "survival_test", ..Names::default() };
    let (train, outcomes) = train_and_test(&train, &time, &event, names)?;
    let risk = Risk::new(estimate.as_array().to_vec()).map_err(|error| of_metric(&error, names))?;
    let found = compute(py, threads, move |_| {
        let censoring = CensoringCurve::fit(&train, CensoringTies::EventsFirst)?;
        uno_concordance(&outcomes, &risk, &censoring, tau, UnoConvention::ScikitSurvival)
    })?;
    let c = found.map_err(|error| of_metric(&error, names))?;
    Ok((c.value, c.n_concordant, c.n_discordant, c.n_tied_predictions))
}

/// The cumulative/dynamic AUC of risks `[n, k]` at k times and its mean weighted by the drop of survival.
///
/// Risks of one time are scaled to curves: only their order and ties count.
///
/// # Errors
/// `MetricError` for invalid input, or the reason of the first time without an AUC.
#[pyfunction]
#[pyo3(signature = (train, event, time, estimate, times, threads=None))]
pub(crate) fn cumulative_dynamic_auc(
    py: Python<'_>,
    train: Train<'_>,
    event: Flags<'_>,
    time: Numbers<'_>,
    estimate: PyReadonlyArray2<'_, f64>,
    times: Numbers<'_>,
    threads: Option<Threads>,
) -> PyResult<(Vec<f64>, f64)> {
    let names = Names { time: "survival_test", ..Names::default() };
    let (train, outcomes) = train_and_test(&train, &time, &event, names)?;
    let (estimate, times) = (estimate.as_array().to_owned(), times.as_array().to_vec());
    let found = compute(py, threads, move |_| -> Result<(Vec<f64>, f64), MetricError> {
        let censoring = CensoringCurve::fit(&train, CensoringTies::EventsFirst)?;
        // scikit-survival weighs all events, also those after the last of the times.
        for (time, event) in outcomes.time().iter().zip(outcomes.event()) {
            if *event {
                AucConvention::ScikitSurvival.case_weight(&censoring, *time)?;
            }
        }
        let values = auc_of_risks(&outcomes, &estimate, &censoring, &times)?;
        let survival = KaplanMeier::fit(&outcomes)?;
        let mean = values.drop_weighted_mean(&survival)?;
        Ok((values.values.into_iter().collect::<Result<_, _>>()?, mean))
    })?;
    found.map_err(|error| of_metric(&error, names))
}

/// The Brier score of estimates of survival `[n, k]` at k times; 1 minus a risk, they may rise from one time to the next.
///
/// # Errors
/// `MetricError` for invalid input or without a weight.
#[pyfunction]
#[pyo3(signature = (train, event, time, estimate, times, threads=None))]
pub(crate) fn brier_score(
    py: Python<'_>,
    train: Train<'_>,
    event: Flags<'_>,
    time: Numbers<'_>,
    estimate: Matrix<'_>,
    times: Numbers<'_>,
    threads: Option<Threads>,
) -> PyResult<Vec<f64>> {
    let names = Names { survival: "estimate", time: "survival_test", ..Names::default() };
    let (train, outcomes) = train_and_test(&train, &time, &event, names)?;
    let (rows, times) = (estimate.to_rows(py)?, times.as_array().to_vec());
    let found = compute(py, threads, move |_| -> Result<Vec<f64>, MetricError> {
        let convention = BrierConvention::ScikitSurvival;
        let censoring = convention.censoring_curve(&train)?;
        let score = |curves: &SurvivalCurves, times: &[f64]| {
            Ok(brier_score_by(convention, &outcomes, curves, &censoring, Reading::Step, times)?.values)
        };
        let falls = rows.rows().into_iter().all(|row| row.iter().zip(row.iter().skip(1)).all(|(s, next)| s >= next));
        if falls {
            return score(&SurvivalCurves::new(times.clone(), rows)?, &times);
        }
        let mut values = Vec::with_capacity(times.len());
        for (k, &time) in times.iter().enumerate() {
            let column = rows.column(k).to_owned().insert_axis(Axis(1));
            let in_place = |error| match error {
                MetricError::InvalidSurvival { row, value, .. } => {
                    MetricError::InvalidSurvival { row, column: k, value }
                }
                error => error,
            };
            values.extend(score(&SurvivalCurves::new(vec![time], column).map_err(in_place)?, &[time])?);
        }
        Ok(values)
    })?;
    found.map_err(|error| of_metric(&error, names))
}

/// What pycox's `EvalSurv` computes from curves, with G fitted on `censored` (default: the evaluated sample): `antolini`, `adj_antolini` (one
/// number), `brier`, `nbll` (one per time of `grid`), `ibs`, `inbll` (one number over `grid`).
///
/// # Errors
/// `MetricError` for invalid input or where a number does not exist.
#[pyfunction]
#[pyo3(signature = (what, survival, times, time, event, grid, pre, censored=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "the package calls it with all of them")]
pub(crate) fn pycox(
    py: Python<'_>,
    what: &str,
    survival: Matrix<'_>,
    times: Numbers<'_>,
    time: Numbers<'_>,
    event: Flags<'_>,
    grid: Numbers<'_>,
    pre: bool,
    censored: Option<Train<'_>>,
    threads: Option<Threads>,
) -> PyResult<Vec<f64>> {
    let names = Names { survival: "surv", times: "surv.index", time: "durations", ..Names::default() };
    let outcomes = outcomes(&time, &event, names)?;
    let of_censored = |(time, event): Train<'_>| self::outcomes(&time, &event, names);
    let censored = censored.map(of_censored).transpose()?.unwrap_or_else(|| outcomes.clone());
    let (rows, times, grid) = (survival.to_rows(py)?, times.as_array().to_vec(), grid.as_array().to_vec());
    let (what, convention) = (what.to_owned(), BrierConvention::Pycox);
    let reading = if pre { Reading::NextGridPoint } else { Reading::Step };
    let curves = compute(py, threads, move |_| SurvivalCurves::new(times, rows))?;
    let curves = curves.map_err(|error| of_metric(&error, names))?;
    let found = compute(py, threads, move |_| -> Result<Vec<f64>, MetricError> {
        let antolini = |convention| -> Result<f64, MetricError> {
            Ok(concordance_td_with(&outcomes, &curves, reading, convention)?.value)
        };
        let censoring = || convention.censoring_curve(&censored);
        match what.as_str() {
            "antolini" => Ok(vec![antolini(ConventionTd::Antolini(TiedPredictions::Strict))?]),
            "adj_antolini" => Ok(vec![antolini(ConventionTd::Adjusted)?]),
            "brier" => Ok(brier_score_by(convention, &outcomes, &curves, &censoring()?, reading, &grid)?.values),
            "nbll" => Ok(nbll(&outcomes, &curves, &censoring()?, reading, &grid)?.values),
            "ibs" => {
                let (rule, g) = (convention.integration_rule(), censoring()?);
                Ok(vec![integrated_brier_score_by(convention, rule, &outcomes, &curves, &g, reading, &grid)?])
            }
            _ => {
                let rule = convention.integration_rule();
                Ok(vec![integrated_nbll(&outcomes, &curves, &censoring()?, reading, rule, &grid)?])
            }
        }
    })?;
    found.map_err(|error| of_metric(&error, Names { times: "time_grid", ..names }))
}
