//! Curves of several models on one grid, and the folds of a cross-validation as one prediction.

use std::collections::HashMap;

use fairtte_data::predictions::{CurveRepairs, PredictionTable, match_predictions};
use fairtte_data::{Cohort, DataError};
use fairtte_metrics::{EvaluationSettings, Reading, SurvivalCurves};
use ndarray::{Array1, Array2, Axis, concatenate};

use crate::CliError;
use crate::scored::Scored;

/// The times of all grids, up to the last that every one has.
pub(crate) fn common_times<'a>(grids: impl Iterator<Item = &'a [f64]>) -> Vec<f64> {
    let grids: Vec<&[f64]> = grids.collect();
    let end = grids.iter().filter_map(|grid| grid.last()).copied().fold(f64::INFINITY, f64::min);
    let mut times: Vec<f64> = grids.concat().into_iter().filter(|time| *time <= end).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}

/// Curves on their grid, read at the times of another.
///
/// # Errors
/// [`DataError`] if they are no survival curves.
pub(crate) fn at_times(
    own: &[f64],
    block: Array2<f64>,
    grid: &[f64],
    reading: Reading,
) -> Result<Array2<f64>, DataError> {
    if own == grid {
        return Ok(block);
    }
    let curves = SurvivalCurves::new(own.to_vec(), block)?;
    let mut read = Array2::zeros((curves.n(), grid.len()));
    for (time, mut column) in grid.iter().zip(read.columns_mut()) {
        column.assign(&Array1::from(curves.all_at(*time, reading)));
    }
    Ok(read)
}

/// Rows of a cohort with the predictions that contain them.
pub(crate) struct FoldRows<'a> {
    pub(crate) rows: &'a [usize],
    pub(crate) predictions: &'a PredictionTable,
    pub(crate) reading: Reading,
}

/// The fold of every row; `Err` with the row and both folds if a row is in two.
pub(crate) fn fold_of_rows<'a>(
    folds: impl Iterator<Item = &'a [usize]>,
) -> Result<HashMap<usize, usize>, (usize, [usize; 2])> {
    let mut fold_of = HashMap::new();
    for (fold, rows) in folds.enumerate() {
        for row in rows {
            if let Some(other) = fold_of.insert(*row, fold) {
                return Err((*row, [other, fold]));
            }
        }
    }
    Ok(fold_of)
}

/// The curves of all folds in the order of the cohort, with their rows, on the times of all grids. No row may be in two folds.
///
/// On that grid a curve of another one would be read between its points as a curve of that grid. So it also has the times at which
/// metrics with these `settings` read curves, as many as fit into the memory, and the times `also`: there each curve is that of its fold.
///
/// # Errors
/// [`CliError::Data`] if predictions lack a row.
pub(crate) fn pooled(
    cohort: &Cohort,
    folds: &[FoldRows<'_>],
    settings: &EvaluationSettings,
    also: &[f64],
) -> Result<(Vec<usize>, PredictionTable), CliError> {
    let mut grid = common_times(folds.iter().map(|fold| &fold.predictions.grid[..]));
    let (rows, table) = on_grid(cohort, folds, &grid)?;
    if folds.iter().all(|fold| fold.predictions.grid == grid) {
        return Ok((rows, table));
    }
    grid.extend(also);
    let scored = Scored::of_rows(table, cohort, &[], rows.clone(), &rows)?;
    on_grid(cohort, folds, &scored.with_times_read(grid, settings)?)
}

fn on_grid(cohort: &Cohort, folds: &[FoldRows<'_>], grid: &[f64]) -> Result<(Vec<usize>, PredictionTable), CliError> {
    let (mut rows, mut blocks) = (Vec::<usize>::new(), Vec::new());
    for FoldRows { rows: of_fold, predictions, reading } in folds {
        let order = match_predictions(cohort, of_fold, &predictions.samples)?;
        let curves = predictions.survival.select(Axis(0), &order);
        blocks.push(at_times(&predictions.grid, curves, grid, *reading)?);
        rows.extend(*of_fold);
    }
    let views: Vec<_> = blocks.iter().map(|block| block.view()).collect();
    let all = concatenate(Axis(0), &views).map_err(|error| CliError::Bug(error.to_string()))?;
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|position| rows[*position]);
    let rows: Vec<usize> = order.iter().map(|position| rows[*position]).collect();
    let samples = rows.iter().map(|row| cohort.samples[*row].sample_id.clone()).collect();
    let repairs = CurveRepairs::default();
    Ok((rows, PredictionTable { samples, grid: grid.to_vec(), survival: all.select(Axis(0), &order), repairs }))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
    use ndarray::array;

    use super::*;

    #[test]
    fn grids_are_joined_up_to_the_last_time_that_all_have() {
        let grids = [vec![0.0, 1.0, 4.0], vec![0.0, 2.0, 3.0]];
        assert_eq!(common_times(grids.iter().map(Vec::as_slice)), [0.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_curve_is_read_between_its_times() {
        let read = at_times(&[0.0, 2.0], array![[1.0, 0.5]], &[0.0, 1.0, 2.0], Reading::Linear).unwrap();
        assert_eq!(read, array![[1.0, 0.75, 0.5]]);
        let same = array![[1.0, 0.5]];
        assert_eq!(at_times(&[0.0, 2.0], same.clone(), &[0.0, 2.0], Reading::Step).unwrap(), same);
    }

    #[test]
    fn rows_of_folds_are_put_in_the_order_of_the_cohort() {
        assert_eq!(fold_of_rows([&[0, 3][..], &[1]].into_iter()), Ok(HashMap::from([(0, 0), (3, 0), (1, 1)])));
        assert_eq!(fold_of_rows([&[0, 3][..], &[1, 3]].into_iter()), Err((3, [0, 1])));
    }
}
