//! The choice of a model per setting, strategy and metric, over all trials and kept epochs: the paper's rule (section 3,
//! F.3). The base is chosen first, by the best metric in the validation part; every other strategy has the smallest gap
//! between groups among its models that lose at most 5 % of the base's metric. The base is also chosen by the rule of the
//! others, because a strategy that does nothing would otherwise seem to trade utility for fairness.

use fairtte_metrics::Direction;
use fairtte_metrics::selection::{Measured, Run, RunTable, SelectionCriterion, select_run};

use super::points::{TrialPoints, Values};
use super::scores::METRICS;
use crate::CliError;

/// The direction of a metric of [`METRICS`].
pub(crate) fn direction(metric: usize) -> Direction {
    if METRICS[metric] == "ibs" { Direction::LowerIsBetter } else { Direction::HigherIsBetter }
}

/// A chosen model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    /// Place in the manifest, and the trial, counted from 0.
    pub(crate) place: usize,
    pub(crate) trial: usize,
    pub(crate) epoch: usize,
    pub(crate) validation: Values,
    pub(crate) test: Values,
    /// Models that it was chosen among.
    pub(crate) n_models: usize,
    /// Finished trials that they are of.
    pub(crate) n_trials: usize,
}

/// The model with the best metric in the validation part; `None` if the metric is undefined in all.
///
/// # Errors
/// [`CliError::Metric`] if a value is not finite.
pub(crate) fn best(pool: &[&TrialPoints], metric: usize) -> Result<Option<Chosen>, CliError> {
    pick(pool, metric, SelectionCriterion::BestUtility)
}

/// The model with the smallest gap among those that lose at most `tolerated_loss` of `base_utility`; `None` if none is.
///
/// # Errors
/// As [`best`].
pub(crate) fn fairest(
    pool: &[&TrialPoints],
    metric: usize,
    base_utility: f64,
    tolerated_loss: f64,
) -> Result<Option<Chosen>, CliError> {
    let criterion = SelectionCriterion::BestFairness { base_utility, tolerated_loss, no_skill: None };
    pick(pool, metric, criterion)
}

fn pick(pool: &[&TrialPoints], metric: usize, criterion: SelectionCriterion) -> Result<Option<Chosen>, CliError> {
    let models: Vec<(&TrialPoints, usize)> =
        pool.iter().flat_map(|trial| (0..trial.points.len()).map(|point| (*trial, point))).collect();
    if models.is_empty() {
        return Ok(None);
    }
    let measured = |value: Option<f64>| value.map_or_else(|| Measured::Undefined(String::new()), Measured::Value);
    let run = |(index, (trial, point)): (usize, &(&TrialPoints, usize))| {
        let values = &trial.points[*point].validation[metric];
        Run {
            run: index.to_string(),
            utility: measured(values.overall),
            group_utilities: Vec::new(),
            gap: measured(values.gap),
        }
    };
    let runs = models.iter().enumerate().map(run).collect();
    let table = RunTable { direction: direction(metric), groups: Vec::new(), runs };
    let Some(name) = select_run(&table, criterion)?.chosen else { return Ok(None) };
    let index: usize = name.parse().map_err(|_| CliError::Bug(format!("chosen \"{name}\", which is no model")))?;
    let (trial, point) = models[index];
    let point = &trial.points[point];
    Ok(Some(Chosen {
        place: trial.place,
        trial: trial.trial,
        epoch: point.epoch,
        validation: point.validation[metric].clone(),
        test: point.test[metric].clone(),
        n_models: models.len(),
        n_trials: pool.len(),
    }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::super::points::Point;
    use super::*;

    /// C^td and its gap in validation and test of every kept epoch.
    fn trial(trial: usize, points: &[(f64, f64, f64)]) -> TrialPoints {
        let values = |overall: f64, gap: f64| Values { overall: Some(overall), gap: Some(gap), ..Values::default() };
        let point = |(i, (overall, gap, test)): (usize, &(f64, f64, f64))| Point {
            epoch: i + 1,
            validation: [values(*overall, *gap), Values::default(), values(1.0 - overall, *gap)],
            test: [values(*test, 0.5), Values::default(), values(1.0 - test, 0.5)],
        };
        TrialPoints { place: 10 + trial, cell: 0, trial, points: points.iter().enumerate().map(point).collect() }
    }

    #[test]
    fn the_base_has_the_best_metric_and_the_others_the_smallest_gap_within_the_loss() {
        let base = [trial(0, &[(0.7, 0.2, 0.6), (0.8, 0.3, 0.61)]), trial(1, &[(0.79, 0.01, 0.7)])];
        let base: Vec<&TrialPoints> = base.iter().collect();
        let chosen = best(&base, 0).unwrap().unwrap();
        assert_eq!((chosen.place, chosen.epoch, chosen.n_models, chosen.n_trials), (10, 2, 3, 2));
        assert_eq!(chosen.test.overall, Some(0.61), "the test part of that epoch");
        // 5 % below 0.8 is 0.76.
        let others = [trial(2, &[(0.75, 0.0, 0.1), (0.765, 0.05, 0.2), (0.9, 0.06, 0.3)])];
        let others: Vec<&TrialPoints> = others.iter().collect();
        assert_eq!(fairest(&others, 0, 0.8, 0.05).unwrap().unwrap().epoch, 2);
        assert_eq!(fairest(&others, 0, 0.99, 0.05).unwrap(), None, "none is within 5 %");
        assert_eq!(best(&others, 1).unwrap(), None, "AUC^td is undefined in all");
        // IBS: lower is better, 5 % above 0.2 is 0.21.
        assert_eq!(best(&base, 2).unwrap().unwrap().epoch, 2);
        assert_eq!(fairest(&others, 2, 0.2, 0.05).unwrap().unwrap().epoch, 3);
        assert_eq!(best(&[], 0).unwrap(), None);
    }
}
