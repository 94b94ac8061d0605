//! The tables of the experiment: means by share, regression on the share, rank correlations, with Holm's adjustment.

use std::collections::BTreeMap;

use fairtte_metrics::MetricError;
use fairtte_metrics::statistics::{Adjustment, LinearFit, adjust_p_values, linear_fit, spearman, spearman_p_value};
use serde::{Deserialize, Serialize};

use super::{Biasing, CellResult, Measure};
use crate::ClassicalError;

/// The tables of all results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Analysis {
    /// By method and measure, in the order in which they come in the results.
    pub measures: Vec<MeasureSummary>,
    /// Results behind it.
    pub n_cells: usize,
}

/// A measure under a method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MeasureSummary {
    /// How a half was biased.
    pub method: Biasing,
    /// The measure.
    pub measure: Measure,
    /// By share, ascending: a row of the paper's Table 2.
    pub shares: Vec<ShareSummary>,
    /// F = alpha + beta sigma of the means over tables, and the rank correlation of the means with sigma.
    pub of_means: Option<Trend>,
    /// The same of the values of all tables at all shares, which is what the stars of the paper's Table 1 come from.
    pub of_tables: Option<Trend>,
    /// Rank correlation of F and sigma within every table, in the order in which they come.
    pub tables: Vec<TableCorrelation>,
}

/// Mean over tables of F at a share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ShareSummary {
    /// The share, sigma.
    pub share: f64,
    /// Mean over tables of each table's mean over repeats; `None` if no table has a value.
    pub mean: Option<f64>,
    /// Each table's mean over its repeats with a value.
    pub values: Vec<(String, f64)>,
    /// Repeats without a value, over all tables.
    pub n_undefined: usize,
}

/// A regression on sigma, and a rank correlation with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Trend {
    /// The line.
    pub line: LinearFit,
    /// p of the slope, adjusted by Holm over the measures of the method.
    pub slope_p_holm: f64,
    /// Spearman's correlation; `None` if F is constant.
    pub rho: Option<f64>,
    /// p of the correlation, adjusted likewise.
    pub rho_p_holm: Option<f64>,
}

/// Rank correlation of F and sigma in a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TableCorrelation {
    /// The table.
    pub table: String,
    /// Spearman's correlation of the shares and their means over repeats; `None` with fewer than three, or if constant.
    pub rho: Option<f64>,
    /// Its p value, adjusted by Holm over the tables.
    pub p_holm: Option<f64>,
}

/// The tables of `results`, whose order does not matter for the numbers. What is missing (an interrupted run) is left out of the
/// means; a share that a table has no value at has no row in the regressions.
///
/// # Errors
/// [`ClassicalError::Metric`] if values are so large that sums overflow.
pub fn analyse(results: &[CellResult]) -> Result<Analysis, ClassicalError> {
    let mut order: Vec<(Biasing, Measure)> = Vec::new();
    for (result, losses) in results.iter().flat_map(|result| result.losses.iter().map(move |of| (result, of))) {
        let pair = (result.cell.method, losses.measure);
        if !order.contains(&pair) {
            order.push(pair);
        }
    }
    order.sort_by_key(|(method, _)| *method);
    let summaries = order.into_iter().map(|(method, measure)| summary(results, method, measure));
    let mut measures = summaries.collect::<Result<Vec<_>, MetricError>>()?;
    for method in Biasing::ALL {
        let mut of_method: Vec<&mut MeasureSummary> = measures.iter_mut().filter(|of| of.method == method).collect();
        adjust(&mut of_method.iter_mut().filter_map(|of| of.of_means.as_mut()).collect::<Vec<_>>())?;
        adjust(&mut of_method.iter_mut().filter_map(|of| of.of_tables.as_mut()).collect::<Vec<_>>())?;
    }
    Ok(Analysis { measures, n_cells: results.len() })
}

/// Names of the tables in the order in which they come.
fn table_names<'a>(results: &'a [CellResult]) -> Vec<&'a str> {
    let mut names: Vec<&'a str> = Vec::new();
    for result in results {
        if !names.contains(&result.table.as_str()) {
            names.push(&result.table);
        }
    }
    names
}

fn summary(results: &[CellResult], method: Biasing, measure: Measure) -> Result<MeasureSummary, MetricError> {
    let names = table_names(results);
    // By the bits of a share, which order as the shares do: none is negative. By table: values, and how many have none.
    let mut found: BTreeMap<u64, Vec<(Vec<f64>, usize)>> = BTreeMap::new();
    for result in results.iter().filter(|result| result.cell.method == method) {
        let losses = result.losses.iter().filter(|losses| losses.measure == measure);
        let table = names.iter().position(|name| *name == result.table).unwrap_or(0);
        for losses in losses {
            let of_share =
                found.entry(result.cell.share.to_bits()).or_insert_with(|| vec![Default::default(); names.len()]);
            match losses.difference() {
                Some(value) => of_share[table].0.push(value),
                None => of_share[table].1 += 1,
            }
        }
    }
    let shares: Vec<ShareSummary> =
        found.iter().map(|(bits, of)| of_share(f64::from_bits(*bits), of, &names)).collect();
    let with_mean = shares.iter().filter_map(|of| of.mean.map(|mean| (of.share, mean)));
    let of_means = trend(&with_mean.collect::<Vec<_>>())?;
    let rows = shares.iter().flat_map(|of| of.values.iter().map(|(_, value)| (of.share, *value)));
    let of_tables = trend(&rows.collect::<Vec<_>>())?;
    let tables = names.iter().map(|name| {
        let values = shares.iter().flat_map(|of| of.values.iter().map(move |(table, value)| (table, of.share, *value)));
        let pairs: Vec<(f64, f64)> =
            values.filter(|(table, ..)| *table == name).map(|(_, share, value)| (share, value)).collect();
        let (rho, p_holm) = correlation(&pairs)?;
        Ok(TableCorrelation { table: (*name).to_owned(), rho, p_holm })
    });
    let mut tables = tables.collect::<Result<Vec<_>, MetricError>>()?;
    holm(tables.iter_mut().filter_map(|of| of.p_holm.as_mut()))?;
    Ok(MeasureSummary { method, measure, shares, of_means, of_tables, tables })
}

fn of_share(share: f64, by_table: &[(Vec<f64>, usize)], names: &[&str]) -> ShareSummary {
    let mean = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let values: Vec<(String, f64)> = by_table
        .iter()
        .zip(names)
        .filter_map(|((values, _), name)| Some(((*name).to_owned(), mean(values)?)))
        .collect();
    let of_tables: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let n_undefined = by_table.iter().map(|(_, n)| n).sum();
    ShareSummary { share, mean: mean(&of_tables), values, n_undefined }
}

/// Line and rank correlation of points (sigma, F), p values not adjusted yet; `None` with fewer than three, or at one share.
fn trend(points: &[(f64, f64)]) -> Result<Option<Trend>, MetricError> {
    let (shares, values): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let Some(line) = linear_fit(&shares, &values)? else { return Ok(None) };
    let (rho, rho_p_holm) = correlation(points)?;
    Ok(Some(Trend { line, slope_p_holm: line.p_value, rho, rho_p_holm }))
}

/// Spearman's correlation of the points and its p value.
fn correlation(points: &[(f64, f64)]) -> Result<(Option<f64>, Option<f64>), MetricError> {
    let (shares, values): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let rho = spearman(&shares, &values)?.filter(|_| points.len() > 2);
    let p = rho.map(|rho| spearman_p_value(rho, points.len())).transpose()?.flatten();
    Ok((rho, p))
}

/// Adjusts the p values of the trends of one method.
fn adjust(trends: &mut [&mut Trend]) -> Result<(), MetricError> {
    holm(trends.iter_mut().map(|trend| &mut trend.slope_p_holm))?;
    holm(trends.iter_mut().filter_map(|trend| trend.rho_p_holm.as_mut()))
}

/// Replaces p values by those adjusted by Holm.
fn holm<'a>(p_values: impl Iterator<Item = &'a mut f64>) -> Result<(), MetricError> {
    let mut places: Vec<&mut f64> = p_values.collect();
    let plain: Vec<f64> = places.iter().map(|p| **p).collect();
    for (place, adjusted) in places.iter_mut().zip(adjust_p_values(&plain, Adjustment::Holm)?) {
        **place = adjusted;
    }
    Ok(())
}
