//! Cumulative incidence from one model per cause.
//!
//! Each cause has a model of its own, fitted to the outcomes in which events of other causes are censorings: such a model is
//! right about the hazard among those free of every event, `H_k(t | x) = -log S_k(t | x)`. The incidence takes all of them
//! together, because an event of any cause ends the risk of the others:
//!
//! ```text
//! F_k(t | x) = sum over event times u <= t of  S(u-) (1 - exp(-h(u))) h_k(u) / h(u),   S(t) = exp(-sum over k of H_k(t | x))
//! ```
//!
//! with `h_k(u)` the step of `H_k` at u and h the sum of all `h_k`. A step is treated as if the hazards were constant since the last
//! event time, so that `F_1 + F_2 + .. + S = 1` exactly, and F = 1 - S of the model itself if there is one cause. The plain form
//! `S(u-) h_k(u)` differs by terms of the order of the steps and can exceed 1.
//! Sources: Benichou & Gail (1990), doi:10.2307/2532098; Cheng, Fine & Wei (1998), doi:10.2307/2534008. Golden values: Cox
//! models of lifelines 0.30.3 per cause, combined by the formula in `NumPy` (`tests/golden/cause_specific.json`); coefficients and hazards
//! of `CSC` of riskRegression (`tests/golden/r.R`).

use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves};
use fairtte_metrics::{Outcomes, SurvivalCurves};
use ndarray::{Array2, Axis, Slice};
use serde::{Deserialize, Serialize};

use crate::{ClassicalError, SurvivalEstimator, SurvivalModel};

/// S at which a cumulative hazard is taken as infinite: e^-700, the smallest that a logarithm is taken of.
const LEAST_SURVIVAL: f64 = 1e-304;
/// Samples whose curves of all causes, at every event time, are in memory together.
const ROWS: usize = 256;

/// One fitted model per cause, of any estimator: Cox models give the usual cause-specific Cox model.
///
/// ```
/// use fairtte_classical::{CauseSpecific, CoxSettings};
/// use fairtte_metrics::competing::CompetingOutcomes;
/// use ndarray::Array2;
///
/// // The higher the covariate, the more often the cause is 2.
/// let covariates = Array2::from_shape_fn((90, 1), |(row, _)| row as f64 / 90.0);
/// let times = (0..90).map(|row| 1.0 + f64::from(row * 37 % 90) / 10.0).collect();
/// let outcomes = CompetingOutcomes::new(times, (0..90).map(|row| if row % 7 < 6 - row / 15 { 1 } else { 2 }).collect())?;
/// let model = CauseSpecific::fit(&CoxSettings::default(), &covariates, &outcomes)?;
/// let curves = model.incidence_curves(&covariates, 1, &[5.0, 9.5])?;
/// let incidence = curves.incidence();
/// assert!(incidence[[0, 1]] > 0.7 && incidence[[89, 1]] < 0.3);
/// # Ok::<(), fairtte_classical::ClassicalError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CauseSpecific<M> {
    models: Vec<M>,
    /// Different event times of all causes, ascending.
    event_times: Vec<f64>,
}

impl<M: SurvivalModel> CauseSpecific<M> {
    /// Fits `estimator` to covariates `[n, p]` once per cause.
    ///
    /// # Errors
    /// Those of the estimator; [`ClassicalError::NoEvents`] for a cause without events.
    pub fn fit<E: SurvivalEstimator<Model = M>>(
        estimator: &E,
        covariates: &Array2<f64>,
        outcomes: &CompetingOutcomes,
    ) -> Result<Self, ClassicalError> {
        Self::fit_each(outcomes, |_, of_cause| estimator.fit(covariates, of_cause))
    }

    /// Fits with `fit` a model to every cause, given with its outcomes.
    ///
    /// # Errors
    /// Those of `fit`.
    pub(super) fn fit_each(
        outcomes: &CompetingOutcomes,
        fit: impl Fn(u32, &Outcomes) -> Result<M, ClassicalError>,
    ) -> Result<Self, ClassicalError> {
        let of_cause = |cause| fit(cause, &outcomes.of_cause(cause)?);
        let models = (1..=outcomes.n_causes()).map(of_cause).collect::<Result<_, _>>()?;
        let events = outcomes.time().iter().zip(outcomes.cause()).filter(|(_, cause)| **cause > 0);
        let mut event_times: Vec<f64> = events.map(|(time, _)| *time).collect();
        event_times.sort_by(f64::total_cmp);
        event_times.dedup();
        Ok(Self { models, event_times })
    }

    /// The models, by cause; the first is that of cause 1.
    pub fn models(&self) -> &[M] {
        &self.models
    }

    /// The models, to be changed.
    pub(super) fn models_mut(&mut self) -> &mut [M] {
        &mut self.models
    }

    /// Cumulative incidence of `cause` at the times of `grid` of samples with these covariates `[n, p]`, `[n, n_times]`.
    ///
    /// # Errors
    /// Those of the models for covariates and grid; [`ClassicalError::Metric`] for a cause that does not exist.
    pub fn incidence_curves(
        &self,
        covariates: &Array2<f64>,
        cause: u32,
        grid: &[f64],
    ) -> Result<IncidenceCurves, ClassicalError> {
        let place = self.place(cause)?;
        let (incidence, _) = self.curves(covariates, grid, place)?;
        Ok(IncidenceCurves::new(grid.to_vec(), incidence)?)
    }

    /// Probability of being free of every event at the times of `grid`, `[n, n_times]`.
    ///
    /// # Errors
    /// Those of the models for covariates and grid.
    pub fn event_free_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        let (_, free) = self.curves(covariates, grid, 0)?;
        Ok(SurvivalCurves::new(grid.to_vec(), free)?)
    }

    /// The last event time of any cause; 0 without an event.
    pub(super) fn last_time(&self) -> f64 {
        self.event_times.last().copied().unwrap_or(0.0)
    }

    fn place(&self, cause: u32) -> Result<usize, ClassicalError> {
        let n_causes = u32::try_from(self.models.len()).unwrap_or(u32::MAX);
        if (1..=n_causes).contains(&cause) {
            Ok(cause as usize - 1)
        } else {
            Err(fairtte_metrics::MetricError::UnknownCause { cause, n_causes }.into())
        }
    }

    /// Incidence of the cause at `place`, and the probability of no event, at the times of `grid`. O(n L) for L event times; the
    /// curves of the models are in memory for some samples at a time.
    fn curves(
        &self,
        covariates: &Array2<f64>,
        grid: &[f64],
        place: usize,
    ) -> Result<(Array2<f64>, Array2<f64>), ClassicalError> {
        // A grid that is none is refused before it is used.
        SurvivalCurves::new(grid.to_vec(), Array2::ones((0, grid.len())))?;
        // The event times passed at each time of the grid.
        let passed: Vec<usize> = grid.iter().map(|time| self.event_times.partition_point(|at| at <= time)).collect();
        let n = covariates.nrows();
        let (mut incidence, mut free) = (Array2::zeros((n, grid.len())), Array2::ones((n, grid.len())));
        // A block without samples as well, whose columns are checked like those of others.
        for first in (0..n.max(1)).step_by(ROWS) {
            let rows = first..n.min(first + ROWS);
            let block = covariates.slice_axis(Axis(0), Slice::from(rows.clone())).to_owned();
            let at_events = |model: &M| model.survival_curves(&block, &self.event_times);
            let survival: Result<Vec<SurvivalCurves>, ClassicalError> = self.models.iter().map(at_events).collect();
            let survival = survival.map_err(|error| error.after_rows(first))?;
            for (in_block, row) in rows.enumerate() {
                let hazard =
                    |model: usize, time: usize| -survival[model].survival()[[in_block, time]].max(LEAST_SURVIVAL).ln();
                for (column, (of_cause, of_none)) in self.course(hazard, place, &passed).into_iter().enumerate() {
                    incidence[[row, column]] = of_cause;
                    free[[row, column]] = of_none;
                }
            }
        }
        Ok((incidence, free))
    }

    /// Of one sample, with the cumulative `hazard` of a model at an event time, the incidence of the cause at `place` and the probability
    /// of no event after as many event times as `passed` says, ascending.
    fn course(&self, hazard: impl Fn(usize, usize) -> f64, place: usize, passed: &[usize]) -> Vec<(f64, f64)> {
        let (mut so_far, mut probability) = (0.0, 1.0_f64);
        let mut found = Vec::with_capacity(passed.len());
        for time in 0..=self.event_times.len() {
            while passed.get(found.len()) == Some(&time) {
                found.push((f64::min(so_far, 1.0), probability));
            }
            if time == self.event_times.len() {
                break;
            }
            let step = |model: usize| {
                let before = if time == 0 { 0.0 } else { hazard(model, time - 1) };
                (hazard(model, time) - before).max(0.0)
            };
            let of_all: f64 = (0..self.models.len()).map(step).sum();
            if of_all > 0.0 {
                so_far += probability * -(-of_all).exp_m1() * step(place) / of_all;
                probability *= (-of_all).exp();
            }
        }
        found
    }
}
