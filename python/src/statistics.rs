//! Tests of several models over several settings, and the choice of a run: the functions of `statistics` and `selection`.

use fairtte_metrics::selection::{RunTable, SelectionCriterion, select_run};
use fairtte_metrics::statistics::{
    Adjustment, CliqueRule, RangeQuantile, RankTable, RankTies, SignedRankSettings, adjust_p_values,
    critical_difference,
};
use fairtte_metrics::{Direction, MetricError, statistics};
use numpy::{IntoPyArray as _, PyArray2};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::arrays::{Matrix, Numbers};
use crate::errors::{Names, metric_error, of_metric};
use crate::pool::compute;
use crate::settings::without_place;

fn refused(error: MetricError) -> PyErr {
    match error {
        MetricError::InvalidPValue { index, value } => {
            metric_error(format!("p_values[{index}] is {value}, expected a number in [0, 1]"))
        }
        error => of_metric(&error, Names::default()),
    }
}

/// A value from JSON, or what it should be.
fn read<T: DeserializeOwned>(name: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json)
        .map_err(|error| metric_error(format!("{name} is {json}: {}", without_place(&error.to_string()))))
}

/// What `test` makes of the values of models, on the pool.
fn of_table<T: Send + 'static>(
    py: Python<'_>,
    values: &Matrix<'_>,
    higher_is_better: bool,
    test: impl FnOnce(&RankTable) -> Result<T, MetricError> + Send + 'static,
) -> PyResult<T> {
    let direction = if higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
    let values = values.to_rows(py)?;
    compute(py, None, move |_| test(&RankTable::new(values, direction)?))?.map_err(refused)
}

/// Chi-square, its degrees and p; F of Iman and Davenport with its degrees and p, absent where F is infinite or does not
/// exist; average ranks.
type Friedman = (f64, usize, f64, Option<(f64, (usize, usize), f64)>, Vec<f64>);

/// Friedman's test of values `[n_settings, n_models]`, with the tie correction if `ties` is `"corrected"`.
///
/// # Errors
/// `MetricError` for values that are not finite, fewer than two models or no setting, and if all models tie everywhere.
#[pyfunction]
pub(crate) fn friedman(py: Python<'_>, values: Matrix<'_>, higher_is_better: bool, ties: &str) -> PyResult<Friedman> {
    let ties: RankTies = read("ties", ties)?;
    of_table(py, &values, higher_is_better, move |table| {
        let test = statistics::friedman(table, ties)?;
        let f = match statistics::iman_davenport(table, ties) {
            Ok(test) => Some((test.f, test.degrees, test.p_value)),
            Err(MetricError::PerfectAgreement { .. } | MetricError::TooSmallComparison { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok((test.chi_square, test.degrees, test.p_value, f, table.average_ranks()))
    })
}

/// Nemenyi's p values of all pairs of models, `[n_models, n_models]`.
///
/// # Errors
/// As [`friedman`].
#[pyfunction]
pub(crate) fn nemenyi<'py>(
    py: Python<'py>,
    values: Matrix<'_>,
    higher_is_better: bool,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let p_values = of_table(py, &values, higher_is_better, |table| Ok(statistics::nemenyi(table)))?;
    Ok(p_values.into_pyarray(py))
}

/// Average ranks `[n_models]`, the critical difference at `alpha`, and the groups of models that are not apart.
///
/// # Errors
/// As [`friedman`], and for `alpha` outside [1e-100, 1).
#[pyfunction]
pub(crate) fn rank_groups(
    py: Python<'_>,
    values: Matrix<'_>,
    higher_is_better: bool,
    alpha: f64,
) -> PyResult<(Vec<f64>, f64, Vec<Vec<usize>>)> {
    of_table(py, &values, higher_is_better, move |table| {
        let quantile = RangeQuantile::Exact;
        let apart = critical_difference(table.n_models(), table.n_data_sets(), alpha, quantile)?;
        let groups = statistics::cliques(table, alpha, CliqueRule::RankInterval(quantile))?;
        Ok((table.average_ranks(), apart, groups))
    })
}

/// Wilcoxon's signed-rank test, its settings as JSON: `SignedRankTest` as JSON.
///
/// # Errors
/// `MetricError` for values that differ in number or are not finite, and where the test does not exist.
#[pyfunction]
pub(crate) fn wilcoxon(
    py: Python<'_>,
    first: Numbers<'_>,
    second: Numbers<'_>,
    alternative: &str,
    zeros: &str,
    method: &str,
) -> PyResult<String> {
    let settings = SignedRankSettings {
        alternative: read("alternative", alternative)?,
        zeros: read("zeros", zeros)?,
        method: read("method", method)?,
    };
    let (first, second) = (first.as_array().to_vec(), second.as_array().to_vec());
    let test = compute(py, None, move |_| statistics::wilcoxon_signed_rank(&first, &second, &settings))?;
    let test = test.map_err(refused)?;
    serde_json::to_string(&test).map_err(|error| metric_error(error.to_string()))
}

/// p values adjusted by `method`, in the order given.
///
/// # Errors
/// `MetricError` for a value outside [0, 1].
#[pyfunction]
pub(crate) fn adjust(py: Python<'_>, p_values: Numbers<'_>, method: &str) -> PyResult<Vec<f64>> {
    let method: Adjustment = read("method", method)?;
    let p_values = p_values.as_array().to_vec();
    compute(py, None, move |_| adjust_p_values(&p_values, method))?.map_err(refused)
}

/// The choice among the runs of `RunTable` by `SelectionCriterion`, both JSON: `Selection` as JSON.
///
/// # Errors
/// `MetricError` for names that repeat, numbers out of range and a criterion that does not fit.
#[pyfunction]
pub(crate) fn select(py: Python<'_>, runs: &str, criterion: &str) -> PyResult<String> {
    let runs: RunTable = read("runs", runs)?;
    let criterion: SelectionCriterion = read("the criterion", criterion)?;
    let found = compute(py, None, move |_| select_run(&runs, criterion))?.map_err(refused)?;
    serde_json::to_string(&found).map_err(|error| metric_error(error.to_string()))
}
