//! Curves of several models on one grid, and the folds of a cross-validation as one prediction.

use std::collections::{BTreeMap, HashMap};

use fairtte_data::predictions::{CurveRepairs, PredictionTable, match_predictions};
use fairtte_data::{Cohort, DataError};
use fairtte_metrics::{EvaluationSettings, Reading, SurvivalCurves};
use ndarray::{Array1, Array2, Axis, concatenate};

use crate::CliError;
use crate::baseline::{MOST_VALUES, of_density};
use crate::scored::Scored;

/// Times that curves of any number of samples may have.
const FEWEST_TIMES: usize = 100;

/// The times of all grids, up to the last that every one has.
pub(crate) fn common_times<'a>(grids: impl Iterator<Item = &'a [f64]>) -> Vec<f64> {
    let grids: Vec<&[f64]> = grids.collect();
    let end = grids.iter().filter_map(|grid| grid.last()).copied().fold(f64::INFINITY, f64::min);
    let mut times: Vec<f64> = grids.concat().into_iter().filter(|time| *time <= end).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}

/// Evenly chosen ones of `times`, the first and the last among them, so that `n` curves have at most 20 million values; at least 100.
fn thinned(mut times: Vec<f64>, n: usize) -> Vec<f64> {
    let most = (MOST_VALUES / n.max(1)).max(FEWEST_TIMES);
    let step = times.len().div_ceil(most).max(1);
    let last = times.len().saturating_sub(1);
    let mut place = 0..;
    times.retain(|_| place.next().is_some_and(|place: usize| place.is_multiple_of(step) || place == last));
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
/// metrics with these `settings` read curves, up to 20 million values of all curves, and the times `also`: there each curve is that of its
/// fold. Where a metric of the density is asked for, which depends on the times, none are added.
///
/// # Errors
/// [`CliError::Data`] if predictions lack a row.
pub(crate) fn pooled(
    cohort: &Cohort,
    folds: &[FoldRows<'_>],
    settings: &EvaluationSettings,
    also: &[f64],
) -> Result<(Vec<usize>, PredictionTable), CliError> {
    let n = folds.iter().map(|fold| fold.rows.len()).sum();
    let mut grid = thinned(common_times(folds.iter().map(|fold| &fold.predictions.grid[..])), n);
    let (rows, table) = on_grid(cohort, folds, &grid)?;
    if folds.iter().all(|fold| fold.predictions.grid == grid) || !of_density(settings).is_empty() {
        return Ok((rows, table));
    }
    grid.extend(also);
    // No group is needed for the times.
    let settings = EvaluationSettings { reference: BTreeMap::new(), ..settings.clone() };
    let scored = Scored::of_rows(table, cohort, &[], rows.clone(), &rows)?;
    on_grid(cohort, folds, &scored.with_times_read(grid, &settings)?)
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
    fn times_of_many_curves_are_thinned_and_keep_their_ends() {
        let times: Vec<f64> = (0..=450).map(f64::from).collect();
        assert_eq!(thinned(times.clone(), 1_000), times);
        let few = thinned(times, 1_000_000);
        assert_eq!((few.len(), few[0], few[1], few[few.len() - 1]), (91, 0.0, 5.0, 450.0));
        assert!(thinned(Vec::new(), 5).is_empty());
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
