//! Step 9: survival curves of any rows, as host arrays (later steps do not use burn). Also the fit of the baseline of the
//! Cox heads on the outputs of a trained network.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Batch;
use burn::tensor::Device;
use fairtte_data::loader::Ahead;
use fairtte_data::{Cohort, Loader, Sampling};
use fairtte_metrics::Outcomes;
use fairtte_models::computes_on_host;
use fairtte_survival::{Baseline, CutPoints, PredictionGrid, SurvivalHead, Targets};
use ndarray::{Array2, Axis, concatenate, s};

use crate::FairnessError;
use crate::strategies::Strategy;

/// Most samples of a batch.
const BATCH_SIZE: usize = 64;
/// Most values in the inputs of a batch: 64 pictures of 3 x 224 x 224.
const BATCH_VALUES: usize = BATCH_SIZE * 3 * 224 * 224;

/// Samples of a batch, each of `n_values` values. Volumes come in fewer at a time, because what the layers need grows with the values:
/// a training on few volumes at a time has no memory for 64 at its first validation. It follows from the shape alone, so that a
/// prediction does not depend on the batch size of the training.
pub(crate) fn batch_size(n_values: usize) -> usize {
    (BATCH_VALUES / n_values.max(1)).clamp(1, BATCH_SIZE)
}

/// What the outputs of a network mean.
#[derive(Clone, Copy, Debug)]
pub struct Outputs<'a> {
    /// Loss and prediction rule.
    pub head: &'a dyn SurvivalHead,
    /// Time grid fitted on the training part.
    pub cut_points: &'a CutPoints,
}

impl<'a> Outputs<'a> {
    /// The rule for curves at the times of `grid`.
    pub fn on(&self, grid: &'a PredictionGrid) -> CurveRule<'a> {
        CurveRule { head: self.head, grid }
    }
}

/// How outputs are converted to curves.
#[derive(Clone, Copy, Debug)]
pub struct CurveRule<'a> {
    /// What the outputs mean.
    pub head: &'a dyn SurvivalHead,
    /// Times of the curves.
    pub grid: &'a PredictionGrid,
}

/// A part of the data as a trained network sees it: in order, without augmentation, in evaluation mode.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationPart<'a> {
    /// Pixels and outcomes.
    pub loader: &'a Loader<'a>,
    /// Rows of the part.
    pub rows: &'a [usize],
    /// Outcomes of these rows.
    pub outcomes: &'a Outcomes,
    /// What the outputs mean.
    pub outputs: Outputs<'a>,
    /// Device without autodiff.
    pub device: &'a Device,
    /// Set when a pass over the part is to end early.
    pub stop: Option<&'a AtomicBool>,
}

/// The data that a strategy may use between its steps.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The training part.
    pub train: EvaluationPart<'a>,
    /// The validation part.
    pub validation: EvaluationPart<'a>,
    /// Names of the groups that the strategy works on.
    pub levels: &'a [String],
}

impl<'a> Parts<'a> {
    /// What the outputs mean.
    pub fn outputs(&self) -> Outputs<'a> {
        self.train.outputs
    }
}

impl EvaluationPart<'_> {
    /// Passes every batch to `read`, in the order of the rows.
    ///
    /// # Errors
    /// [`FairnessError::Interrupted`], of which the trainer knows the place, if a stop was requested;
    /// [`FairnessError::Model`] if the pixels do not form a batch, and the errors of `read`.
    pub fn for_each_batch(
        &self,
        mut read: impl FnMut(&Batch) -> Result<(), FairnessError>,
    ) -> Result<(), FairnessError> {
        in_batches(self.loader, self.rows, self.device, |batch| {
            if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(FairnessError::Interrupted { epoch: 0, step: 0, n_steps: 0 });
            }
            read(batch)
        })
    }

    /// Survival of the part at the times of `grid`, `[rows, n_times]`; no state changes.
    ///
    /// # Errors
    /// As [`predict`] and [`for_each_batch`](Self::for_each_batch).
    pub(crate) fn survival(
        &self,
        strategy: &dyn Strategy,
        grid: &PredictionGrid,
    ) -> Result<Array2<f64>, FairnessError> {
        let (rule, mut blocks) = (self.outputs.on(grid), Vec::new());
        self.for_each_batch(|batch| {
            blocks.push(strategy.predict(batch, &rule)?);
            Ok(())
        })?;
        Ok(stacked(&blocks))
    }
}

/// Fits the baseline hazard on `part` for a network whose `outputs` at query times are `[batch, n_outputs]` or
/// `[batch, n_times]`; `None` for heads without one. Cost: one pass over the part.
///
/// # Errors
/// The errors of `outputs`; [`FairnessError::Survival`] if an output is not finite.
pub fn fit_baseline(
    part: &EvaluationPart<'_>,
    mut outputs: impl FnMut(&Batch, &[f64]) -> Result<Array2<f32>, FairnessError>,
) -> Result<Option<Baseline>, FairnessError> {
    let Some(mut fit) = part.outputs.head.baseline_fit(part.outcomes) else { return Ok(None) };
    let query = fit.times().to_vec();
    part.for_each_batch(|batch| {
        fit.add(&outputs(batch, &query)?.view(), &batch.time, &batch.event);
        Ok(())
    })?;
    Ok(Some(fit.finish()?))
}

/// Survival at the times of the rule, `[batch, n_times]`, of a network whose `outputs` at query times are given.
///
/// # Errors
/// The errors of `outputs`; [`FairnessError::Survival`] if the head needs a baseline and there is none.
pub fn survival(
    rule: &CurveRule<'_>,
    baseline: Option<&Baseline>,
    outputs: impl FnOnce(&[f64]) -> Result<Array2<f32>, FairnessError>,
) -> Result<Array2<f64>, FairnessError> {
    let query = baseline.map_or(&[][..], Baseline::times);
    Ok(rule.head.survival(outputs(query)?.view(), rule.grid, baseline)?)
}

/// The targets of the rows of a cohort, with the causes of their events; `part` is named in errors.
///
/// # Errors
/// [`FairnessError::Metric`] for invalid outcomes, [`FairnessError::Survival`] for a negative time.
pub fn targets_of(
    part: &'static str,
    cohort: &Cohort,
    rows: &[usize],
    cut_points: &CutPoints,
) -> Result<Targets, FairnessError> {
    let outcomes = cohort.outcomes_of_event(rows)?;
    Ok(cut_points.targets_of_causes(part, outcomes.time(), outcomes.event(), &cohort.competing(rows))?)
}

/// The block of one cause, counted from 0, of curves `[n, n_causes n_times]`: all of them where there is one kind of event.
pub fn of_cause(curves: &Array2<f64>, cause: usize, n_times: usize) -> Array2<f64> {
    curves.slice(s![.., cause * n_times..(cause + 1) * n_times]).to_owned()
}

/// Survival at the times of the grid, `[rows, n_times]`, in the order of `rows`; no state changes. Of several causes 1 minus the
/// incidence of each, one block after the other ([`of_cause`]).
///
/// # Errors
/// [`FairnessError::Model`] if the backbone cannot read the pixels, [`FairnessError::Survival`] if the head needs a baseline
/// and none was fitted.
///
/// # Panics
/// Never: all blocks share one grid.
pub fn predict(
    strategy: &dyn Strategy,
    loader: &Loader<'_>,
    rows: &[usize],
    rule: &CurveRule<'_>,
    device: &Device,
) -> Result<Array2<f64>, FairnessError> {
    let found = predict_blocks(loader, rows, device, |batch| strategy.predict(batch, rule).map(Some))?;
    Ok(found.expect("every block has curves"))
}

/// Passes what [`Strategy::predict`] gives for every batch of `rows` to `read`, in their order: for predictions that are too large to
/// be kept, as those of masks are.
///
/// # Errors
/// As [`predict`], and those of `read`.
pub fn predict_in_batches(
    strategy: &dyn Strategy,
    loader: &Loader<'_>,
    rows: &[usize],
    rule: &CurveRule<'_>,
    device: &Device,
    mut read: impl FnMut(&Batch, &Array2<f64>) -> Result<(), FairnessError>,
) -> Result<(), FairnessError> {
    in_batches(loader, rows, device, |batch| read(batch, &strategy.predict(batch, rule)?))
}

/// The curves of `rows` by what predicts a batch; `None` if it has none for one.
pub(crate) fn predict_blocks(
    loader: &Loader<'_>,
    rows: &[usize],
    device: &Device,
    mut of: impl FnMut(&Batch) -> Result<Option<Array2<f64>>, FairnessError>,
) -> Result<Option<Array2<f64>>, FairnessError> {
    let mut blocks = Vec::new();
    let mut has_all = true;
    while_batches(loader, rows, device, n_ahead(device), |batch| {
        let found = of(batch)?;
        has_all = found.is_some();
        blocks.extend(found);
        Ok(has_all)
    })?;
    Ok(has_all.then(|| stacked(&blocks)))
}

/// Passes every batch of `rows` to `read`, in their order and without augmentation.
///
/// # Errors
/// [`FairnessError::Data`] and [`FairnessError::Model`] if the rows do not form batches, and the first error of `read`.
pub(crate) fn in_batches(
    loader: &Loader<'_>,
    rows: &[usize],
    device: &Device,
    mut read: impl FnMut(&Batch) -> Result<(), FairnessError>,
) -> Result<(), FairnessError> {
    while_batches(loader, rows, device, n_ahead(device), |batch| read(batch).map(|()| true))
}

/// Batches that are made while the device computes; none where it is the processors of the host that compute.
fn n_ahead(device: &Device) -> usize {
    if computes_on_host(device) { 0 } else { 2 }
}

/// As [`in_batches`], up to the first batch for which `read` returns false; `n_ahead` batches are made before they are read.
fn while_batches(
    loader: &Loader<'_>,
    rows: &[usize],
    device: &Device,
    n_ahead: usize,
    mut read: impl FnMut(&Batch) -> Result<bool, FairnessError>,
) -> Result<(), FairnessError> {
    let size = batch_size(loader.n_values());
    let batches = loader.batches(rows, size, &Sampling::Sequential, 0, 0)?;
    let batches = if computes_on_host(device) { batches } else { batches.as_stored() };
    let places = 0..batches.rows().count();
    std::thread::scope(|scope| {
        for host in Ahead::new(batches, places, n_ahead, scope) {
            if !read(&Batch::from_host(host, device)?)? {
                break;
            }
        }
        Ok(())
    })
}

/// Blocks of rows on one grid below each other.
fn stacked(blocks: &[Array2<f64>]) -> Array2<f64> {
    let views: Vec<_> = blocks.iter().map(|block| block.view()).collect();
    if views.is_empty() { Array2::zeros((0, 0)) } else { concatenate(Axis(0), &views).expect("one grid") }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use fairtte_survival::HeadConfig;

    use super::*;
    use crate::strategies::table::World;

    #[test]
    fn a_batch_of_large_inputs_has_fewer_samples() {
        assert_eq!([7, 3 * 224 * 224].map(batch_size), [64, 64]);
        assert_eq!([48 * 64 * 64, 96 * 128 * 128, 3 * 512 * 512].map(batch_size), [49, 6, 12]);
        assert_eq!([0, 1 << 24, usize::MAX].map(batch_size), [64, 1, 1]);
    }

    #[test]
    fn batches_made_ahead_are_those_made_in_turn_and_a_pass_ends_where_it_is_told() {
        let world = World::new(&HeadConfig::default());
        let rows: Vec<usize> = (0..180).rev().collect();
        let read = |n_ahead: usize, most: usize| {
            let mut seen = Vec::new();
            let keep = |batch: &Batch| {
                seen.push(batch.rows.clone());
                Ok(seen.len() < most)
            };
            while_batches(&world.loader(), &rows, &world.device, n_ahead, keep).unwrap();
            seen
        };
        let in_turn = read(0, 9);
        assert_eq!(in_turn.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 52]);
        assert_eq!(in_turn.concat(), rows);
        assert_eq!(read(2, 9), in_turn);
        assert_eq!([read(0, 1), read(2, 1)], [in_turn[..1].to_vec(), in_turn[..1].to_vec()]);
    }
}
