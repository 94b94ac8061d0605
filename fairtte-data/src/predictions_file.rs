//! `predictions.parquet`: survival curves of samples on a grid of times, the seam between training and evaluation.
//!
//! Columns: `sample_id`, then one column of numbers per grid time whose name is the time as the shortest decimal that
//! reads back as the same number (`0`, `0.5`, `13`); the cell is the predicted probability S(t) of no event up to that
//! time. Curves from any outside model can be scored by writing a `.csv` of the same columns.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use fairtte_metrics::SampleId;
use ndarray::{Array2, ArrayView2};

use crate::DataError;
use crate::cohort::Cohort;
use crate::error::Place;
use crate::table::{ColumnValues, Table, write_csv, write_parquet};

/// Samples, grid of times, and survival `[n_samples, n_times]`.
pub type PredictionTable = (Vec<SampleId>, Vec<f64>, Array2<f64>);

/// Writes survival curves, atomically; Parquet, or CSV if `path` ends so. The same curves give the same bytes.
///
/// `survival` is `[n_samples, n_times]` with values in \[0, 1\]; `grid` holds `n_times` ascending times >= 0 in the time
/// unit of the cohort.
///
/// # Errors
/// [`DataError::ShapeMismatch`], [`DataError::InvalidGrid`], [`DataError::InvalidSurvival`],
/// [`DataError::UnmatchedSample`] if a sample appears twice, [`DataError::Write`].
#[expect(clippy::needless_pass_by_value, reason = "a view is a reference already")]
pub fn write_predictions(
    path: &Path,
    samples: &[SampleId],
    grid: &[f64],
    survival: ArrayView2<'_, f64>,
) -> Result<(), DataError> {
    for (what, found, expected) in
        [("rows of survival", survival.nrows(), samples.len()), ("columns of survival", survival.ncols(), grid.len())]
    {
        if found != expected {
            return Err(DataError::ShapeMismatch { what, found, expected });
        }
    }
    let names: Vec<String> = grid.iter().map(f64::to_string).collect();
    check_grid(path, &names, grid)?;
    let mut seen = HashSet::with_capacity(samples.len());
    if let Some(sample) = samples.iter().find(|sample| !seen.insert(*sample)) {
        return Err(DataError::UnmatchedSample { sample: sample.to_string(), problem: "is predicted twice" });
    }
    for ((row, column), &value) in survival.indexed_iter() {
        if !is_probability(value) {
            return Err(DataError::InvalidSurvival {
                sample: samples[row].to_string(),
                time: names[column].clone(),
                value: value.to_string(),
                place: None,
            });
        }
    }
    let curves = survival.columns().into_iter().map(|values| ColumnValues::Number(values.to_vec()));
    let ids = ("sample_id".to_owned(), ColumnValues::text(samples));
    let columns = std::iter::once(ids).chain(names.into_iter().zip(curves)).collect();
    if path.extension().is_some_and(|ending| ending == "csv") {
        return write_csv(path, columns);
    }
    write_parquet(path, columns, &[])
}

/// Reads survival curves: the samples in the order of the file, the grid, and the values `[n_samples, n_times]`.
///
/// # Errors
/// [`DataError::MissingColumn`] without `sample_id`, [`DataError::InvalidGrid`] naming a column that is no time,
/// [`DataError::InvalidCell`] for a row without sample, [`DataError::DuplicateSample`],
/// [`DataError::InvalidSurvival`] naming column and row, and what [`Table::read`] returns.
pub fn read_predictions(path: &Path) -> Result<PredictionTable, DataError> {
    let table = Table::read(path)?;
    let samples = read_samples(&table)?;
    let names: Vec<String> = table.names().into_iter().filter(|name| *name != "sample_id").map(str::to_owned).collect();
    let parse = |name: &String| {
        let invalid = || invalid_grid(path, name, "its name is no number");
        name.trim().parse::<f64>().map_err(|_| invalid())
    };
    let grid = names.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    check_grid(path, &names, &grid)?;
    let mut survival = Array2::zeros((samples.len(), grid.len()));
    for (column, name) in names.iter().enumerate() {
        for (row, cell) in table.numbers(name)?.into_iter().enumerate() {
            survival[[row, column]] = match cell {
                Ok(value) if is_probability(value) => value,
                other => {
                    let text = other.map_or_else(|text| text, |value| value.to_string());
                    return Err(DataError::InvalidSurvival {
                        sample: samples[row].to_string(),
                        time: name.clone(),
                        value: if text.is_empty() { "empty".to_owned() } else { text },
                        place: Some(table.place(row)),
                    });
                }
            };
        }
    }
    Ok((samples, grid, survival))
}

/// For every sample of `cohort` at `rows`, the row of its prediction. Other samples of the cohort may be predicted too.
///
/// # Errors
/// [`DataError::UnmatchedSample`] naming the first evaluated sample without a prediction, or the first prediction of a
/// sample that is not in `cohort` at all.
pub fn match_predictions(cohort: &Cohort, rows: &[usize], predicted: &[SampleId]) -> Result<Vec<usize>, DataError> {
    let unmatched = |sample: &SampleId, problem| DataError::UnmatchedSample { sample: sample.to_string(), problem };
    let known: HashSet<&SampleId> = cohort.samples.iter().map(|sample| &sample.sample_id).collect();
    if let Some(stranger) = predicted.iter().find(|id| !known.contains(id)) {
        return Err(unmatched(stranger, "is predicted but is not in the cohort"));
    }
    let row_of: HashMap<&SampleId, usize> = predicted.iter().enumerate().map(|(row, id)| (id, row)).collect();
    let find = |row: &usize| {
        let id = &cohort.samples[*row].sample_id;
        let missing = || unmatched(id, "has no prediction, expected one for every evaluated sample");
        row_of.get(id).copied().ok_or_else(missing)
    };
    rows.iter().map(find).collect()
}

fn read_samples(table: &Table) -> Result<Vec<SampleId>, DataError> {
    let cells = table.text("sample_id")?;
    let mut first_rows = HashMap::with_capacity(cells.len());
    let mut samples = Vec::with_capacity(cells.len());
    for (index, cell) in cells.into_iter().enumerate() {
        let place: Place = table.place(index);
        let Some(sample) = cell else {
            return Err(DataError::InvalidCell {
                column: "sample_id".to_owned(),
                sample: format!("row {}", place.row),
                value: "empty".to_owned(),
                expected: "the name of a sample",
                place,
            });
        };
        if let Some(first_row) = first_rows.insert(sample.clone(), place.row) {
            return Err(DataError::DuplicateSample { sample, place, first_row });
        }
        samples.push(SampleId::new(sample));
    }
    Ok(samples)
}

fn check_grid(path: &Path, names: &[String], grid: &[f64]) -> Result<(), DataError> {
    if grid.is_empty() {
        return Err(invalid_grid(path, "sample_id", "no column of survival follows it"));
    }
    for (i, &time) in grid.iter().enumerate() {
        if !(time.is_finite() && time >= 0.0) {
            return Err(invalid_grid(path, &names[i], "its name is no finite number >= 0"));
        }
        if i > 0 && grid[i - 1] >= time {
            return Err(invalid_grid(path, &names[i], "its time is not above the time of the column before"));
        }
    }
    Ok(())
}

fn invalid_grid(path: &Path, column: &str, problem: &'static str) -> DataError {
    DataError::InvalidGrid { column: column.to_owned(), path: path.to_owned(), problem }
}

fn is_probability(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}
