//! The times at which a model predicts its curves.

use fairtte_metrics::Outcomes;
use fairtte_survival::{CutPoints, PredictionGrid, SurvivalHead};

use crate::CliError;
use crate::baseline::{OWN_TIMES, of_density, with_observed};
use crate::progress::say;
use crate::run_file::RunFile;

/// The times of a network that predicts `n` curves: the cut points with the points between them, and event times of the training part
/// `train` if the curves of its head step there. Of a class, or of masks, those of its one interval.
///
/// # Errors
/// [`CliError`] if the number of points per interval is outside its range.
pub(super) fn of_network(
    run: &RunFile,
    cut_points: &CutPoints,
    head: &dyn SurvivalHead,
    train: &Outcomes,
    n: usize,
) -> Result<PredictionGrid, CliError> {
    if !run.has_times() {
        return Ok(PredictionGrid::at_cut_points(cut_points));
    }
    let grid = if head.needs_baseline() { of_steps(run, cut_points, train, n)? } else { of_cuts(run, cut_points)? };
    Ok(grid.with_early(head, train))
}

/// The times of a model whose `n` curves step at the event times of the training part `train`: the cut points with the points between them,
/// and these event times. At the former alone the curves would be as coarse as those of a discrete head, and metrics would read them wrong
/// in between. Metrics of the density compare curves on the same times only: where they are wanted, no times are added.
///
/// # Errors
/// [`CliError`] if the number of points per interval is outside its range.
pub(super) fn of_steps(
    run: &RunFile,
    cut_points: &CutPoints,
    train: &Outcomes,
    n: usize,
) -> Result<PredictionGrid, CliError> {
    let grid = of_cuts(run, cut_points)?;
    if !of_density(&run.evaluation).is_empty() {
        return Ok(grid);
    }
    let events = train.time().iter().zip(train.event()).filter(|(_, event)| **event).map(|(time, _)| *time);
    let times = with_observed(grid.times().to_vec(), events.collect(), OWN_TIMES[1], n);
    let n_added = times.len() - grid.times().len();
    if n_added > 0 {
        say(format!("predicting at the times of the grid and {n_added} event times of the training part"));
    }
    Ok(PredictionGrid::at_times(times))
}

fn of_cuts(run: &RunFile, cut_points: &CutPoints) -> Result<PredictionGrid, CliError> {
    Ok(PredictionGrid::new(cut_points, run.time.points_per_interval, run.time.interpolation)?)
}
