//! The imputation: which samples share a model, the models of one draw, and the times drawn from them.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use crate::resampling::bootstrap::quantile;
use crate::sensitivity::hazard::{StratumModel, draw_predicted};
use crate::sensitivity::{ImputationModel, SensitivitySettings};
use crate::{Groups, MetricError, Outcomes, Reading, SurvivalCurves};

/// Beyond these a predicted survival is read as if it were they, so that log(-log S) is finite.
const SMALLEST: f64 = 1e-10;

/// What is known of the samples before any draw.
pub(super) struct Sample<'a> {
    /// Up to `end`: who is observed for longer is censored there.
    pub(super) outcomes: &'a Outcomes,
    pub(super) curves: &'a SurvivalCurves,
    pub(super) reading: Reading,
    /// log(-log S) at the horizon, `[n]`; zeros if the model does not use it.
    pub(super) prediction: Vec<f64>,
    pub(super) tilted: Vec<bool>,
    pub(super) end: f64,
}

impl Sample<'_> {
    /// Whether the sample is censored before the end.
    fn is_dropout(&self, row: usize) -> bool {
        !self.outcomes.event()[row] && self.outcomes.time()[row] < self.end
    }
}

/// Which samples share a model. Strata with fewer events than `min_events` take the model of their group, groups with
/// fewer that of the whole sample.
pub(super) struct Strata {
    model: ImputationModel,
    /// The place in `pools` of every sample, `[n]`.
    pool_of: Vec<usize>,
    /// The samples that a model is fitted to, `[n]` each.
    pools: Vec<Vec<bool>>,
    /// By level: whether the samples of the level have a model of their own.
    pub(super) own: Vec<bool>,
}

impl Strata {
    pub(super) fn new(
        (outcomes, prediction): (&Outcomes, &[f64]),
        groups: Option<&Groups>,
        model: ImputationModel,
        min_events: usize,
    ) -> Self {
        let n = outcomes.n();
        let mut strata = Self { model, pool_of: vec![0; n], pools: vec![vec![true; n]], own: vec![] };
        // A model without any event is none, whatever the settings.
        let needed = min_events.max(1);
        for level in 0..groups.map_or(0, |groups| groups.levels().len()) {
            let of_level = |row: usize| groups.is_some_and(|g| g.membership()[row].is_some_and(|l| l.index() == level));
            let own = strata.add((0..n).map(of_level).collect(), outcomes, needed);
            strata.own.push(own);
        }
        if let ImputationModel::RiskStrata { n: n_strata } = model {
            let bounds = bounds(prediction, n_strata);
            for pool in 0..strata.pools.len() {
                for stratum in 0..n_strata {
                    let members = (0..n).map(|row| {
                        strata.pool_of[row] == pool
                            && bounds.partition_point(|bound| *bound < prediction[row]) == stratum
                    });
                    strata.add(members.collect(), outcomes, needed);
                }
            }
        }
        strata
    }

    /// Gives the members a model of their own if they have enough events.
    fn add(&mut self, members: Vec<bool>, outcomes: &Outcomes, needed: usize) -> bool {
        let n_events = members.iter().zip(outcomes.event()).filter(|(member, event)| **member && **event).count();
        if n_events < needed {
            return false;
        }
        let place = self.pools.len();
        for (pool, _) in self.pool_of.iter_mut().zip(&members).filter(|(_, member)| **member) {
            *pool = place;
        }
        self.pools.push(members);
        true
    }

    /// The models of a draw, by pool; `None` where no sample needs it or the draw has no sample for it.
    ///
    /// # Errors
    /// [`MetricError::ImputationModel`] if there is none.
    pub(super) fn fit(&self, sample: &Sample<'_>, drawn: &[usize]) -> Result<Models, MetricError> {
        let mut models = vec![None; self.pools.len()];
        if self.model == ImputationModel::Predicted {
            return Ok(Models(models));
        }
        for (pool, members) in self.pools.iter().enumerate().filter(|(pool, _)| self.pool_of.contains(pool)) {
            let rows: Vec<usize> = drawn.iter().copied().filter(|row| members[*row]).collect();
            if rows.is_empty() {
                continue;
            }
            let outcomes = sample.outcomes.select(&rows);
            models[pool] = Some(match self.model {
                ImputationModel::Cox => {
                    StratumModel::cox(&outcomes, &rows.iter().map(|row| sample.prediction[*row]).collect::<Vec<_>>())?
                }
                _ => StratumModel::kaplan_meier(&outcomes)?,
            });
        }
        Ok(Models(models))
    }

    /// The same for the completion of all samples, drawn or not.
    ///
    /// # Errors
    /// [`MetricError::ImputationModel`] also if nobody is drawn of those whose model a drop-out needs.
    pub(super) fn fit_for_all(&self, sample: &Sample<'_>, drawn: &[usize]) -> Result<Models, MetricError> {
        let models = self.fit(sample, drawn)?;
        let has_none = |row: usize| sample.is_dropout(row) && models.0[self.pool_of[row]].is_none();
        if self.model != ImputationModel::Predicted && (0..sample.outcomes.n()).any(has_none) {
            return Err(MetricError::ImputationModel { reason: "a draw has nobody of a group with drop-outs" });
        }
        Ok(models)
    }

    /// The drawn samples with an outcome up to the end of follow-up for all of them; `exponentials` has one per drawn sample.
    pub(super) fn complete(
        &self,
        sample: &Sample<'_>,
        models: &Models,
        drawn: &[usize],
        delta: f64,
        exponentials: &[f64],
    ) -> Result<Outcomes, MetricError> {
        let completed = drawn.iter().zip(exponentials).map(|(&row, &exponential)| {
            let (time, event) = (sample.outcomes.time()[row], sample.outcomes.event()[row]);
            if !sample.is_dropout(row) {
                return (time, event);
            }
            let delta = if sample.tilted[row] { delta } else { 0.0 };
            let drawn = if self.model == ImputationModel::Predicted {
                let curve = (sample.curves, sample.reading, row);
                draw_predicted(curve, (time, sample.end), delta, exponential)
            } else {
                let model = models.0[self.pool_of[row]].as_ref();
                model.and_then(|model| model.draw(time, sample.prediction[row], delta, exponential))
            };
            drawn.filter(|time| *time <= sample.end).map_or((sample.end, false), |time| (time, true))
        });
        let (time, event) = completed.unzip();
        Outcomes::new(time, event)
    }
}

/// The models of one draw, by pool.
pub(super) struct Models(Vec<Option<StratumModel>>);

/// Draws from the exponential distribution with mean 1.
pub(super) fn exponentials(rng: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
    (0..n).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect()
}

/// The inner bounds of strata with about equally many values.
fn bounds(values: &[f64], n_strata: usize) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (1..n_strata).map(|k| quantile(&sorted, k as f64 / n_strata as f64)).collect()
}

/// log(-log S) at the horizon of every sample, for the models that use it.
///
/// # Errors
/// Why there is no horizon.
pub(super) fn predictions(
    curves: &SurvivalCurves,
    reading: Reading,
    horizon: &Result<f64, MetricError>,
    settings: &SensitivitySettings,
) -> Result<Vec<f64>, MetricError> {
    match settings.model {
        ImputationModel::Cox | ImputationModel::RiskStrata { .. } => {
            let survival = curves.all_at(horizon.clone()?, reading);
            Ok(survival.into_iter().map(|s| (-s.clamp(SMALLEST, 1.0 - SMALLEST).ln()).ln()).collect())
        }
        ImputationModel::KaplanMeier | ImputationModel::Predicted => Ok(vec![0.0; curves.n()]),
    }
}
