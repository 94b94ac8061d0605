//! The choice of a model per setting, strategy and metric, over all trials and kept epochs: the paper's rule (section 3,
//! F.3). The base is chosen first, by the best metric in the validation part; every other strategy has the smallest gap
//! between groups among its models that lose at most 5 % of the base's metric. The base is also chosen by the rule of the
//! others, because a strategy that does nothing would otherwise seem to trade utility for fairness.
//! With another rule (those of MEDFAIR: the best metric, minimax Pareto, the distance to the optimum) the base is chosen as
//! every other strategy is.

use fairtte_metrics::MetricError;
use fairtte_metrics::selection::{Measured, Run, RunTable, SelectionCriterion, WorstGroup, select_run};

use super::points::{TrialPoints, Values};
use crate::CliError;
use crate::args::Rule;

/// A chosen model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    /// Place in the manifest, and the trial, counted from 0.
    pub(crate) place: usize,
    pub(crate) trial: usize,
    pub(crate) epoch: usize,
    /// A rule of the training that kept it.
    pub(crate) rule: String,
    pub(crate) validation: Values,
    pub(crate) test: Values,
    /// The AUC of the test part with weights for censoring, as of [`super::points::Point`].
    pub(crate) weighted: Values,
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

/// The model that a rule chooses; `base` = value of the base model and the tolerated loss, which only the paper's rule reads and
/// without which it chooses nothing.
///
/// # Errors
/// As [`best`].
pub(crate) fn by_rule(
    rule: Rule,
    pool: &[&TrialPoints],
    metric: usize,
    base: Option<(f64, f64)>,
) -> Result<Option<Chosen>, CliError> {
    match (rule, base) {
        (Rule::Fairest, None) => Ok(None),
        (Rule::Fairest, Some((base_utility, tolerated_loss))) => fairest(pool, metric, base_utility, tolerated_loss),
        (Rule::Overall, _) => best(pool, metric),
        (Rule::Minimax, _) => {
            pick(pool, metric, SelectionCriterion::MinimaxPareto { worst_group: WorstGroup::OfEachRun })
        }
        (Rule::Dto, _) => pick(pool, metric, SelectionCriterion::DistanceToOptimum),
    }
}

fn pick(pool: &[&TrialPoints], metric: usize, criterion: SelectionCriterion) -> Result<Option<Chosen>, CliError> {
    let models: Vec<(&TrialPoints, usize)> =
        pool.iter().flat_map(|trial| (0..trial.points.len()).map(|point| (*trial, point))).collect();
    let Some((first, _)) = models.first() else { return Ok(None) };
    let direction = first.measures.direction(metric);
    let n_groups = models.iter().map(|(trial, point)| trial.points[*point].validation[metric].groups.len()).max();
    let n_groups = n_groups.unwrap_or(0);
    let by_groups =
        matches!(criterion, SelectionCriterion::MinimaxPareto { .. } | SelectionCriterion::DistanceToOptimum);
    if by_groups && n_groups == 0 {
        return Ok(None);
    }
    let measured = |value: Option<f64>| value.map_or_else(|| Measured::Undefined(String::new()), Measured::Value);
    let run = |(index, (trial, point)): (usize, &(&TrialPoints, usize))| {
        let values = &trial.points[*point].validation[metric];
        Run {
            run: index.to_string(),
            utility: measured(values.overall),
            group_utilities: (0..n_groups).map(|g| measured(values.groups.get(g).copied().flatten())).collect(),
            gap: measured(values.gap),
        }
    };
    let runs = models.iter().enumerate().map(run).collect();
    let groups = (0..n_groups).map(|group| group.to_string()).collect();
    let found = match select_run(&RunTable { direction, groups, runs }, criterion) {
        // A distance is relative to the best value, which is 0 in a group.
        Err(MetricError::ZeroOptimum { .. }) => return Ok(None),
        found => found?,
    };
    let Some(name) = found.chosen else { return Ok(None) };
    let index: usize = name.parse().map_err(|_| CliError::Bug(format!("chosen \"{name}\", which is no model")))?;
    let (trial, point) = models[index];
    let point = &trial.points[point];
    Ok(Some(Chosen {
        place: trial.place,
        trial: trial.trial,
        epoch: point.epoch,
        rule: point.rule.clone(),
        validation: point.validation[metric].clone(),
        test: point.test[metric].clone(),
        weighted: point.weighted.clone(),
        n_models: models.len(),
        n_trials: pool.len(),
    }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::super::measures::Measures;
    use super::super::points::Point;
    use super::*;

    /// C^td and its gap in validation and test of every kept epoch.
    fn trial(trial: usize, points: &[(f64, f64, f64)]) -> TrialPoints {
        let values = |overall: f64, gap: f64| Values { overall: Some(overall), gap: Some(gap), ..Values::default() };
        let point = |(i, (overall, gap, test)): (usize, &(f64, f64, f64))| Point {
            epoch: i + 1,
            validation: [values(*overall, *gap), Values::default(), values(1.0 - overall, *gap)],
            test: [values(*test, 0.5), Values::default(), values(1.0 - test, 0.5)],
            ..Point::default()
        };
        let measures = Measures::Curves;
        TrialPoints {
            place: 10 + trial,
            cell: 0,
            trial,
            measures,
            points: points.iter().enumerate().map(point).collect(),
        }
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

    /// The rules on the AUC of two groups, worked by hand: the optimum is (0.9, 0.8); `c` is 0.05 / 0.9 and 0.05 / 0.8 from it, `b` is
    /// 0.2 / 0.9 and 0. Of the BCE, where lower is better, everything is mirrored.
    #[test]
    fn the_rules_of_medfair_choose_by_the_groups() {
        let values = |overall: f64, groups: [f64; 2]| Values {
            overall: Some(overall),
            gap: Some((groups[0] - groups[1]).abs()),
            groups: groups.map(Some).to_vec(),
            ..Values::default()
        };
        let rows = [(0.82, [0.9, 0.6]), (0.74, [0.7, 0.8]), (0.8, [0.85, 0.75]), (0.79, [0.74, 0.74])];
        let point = |(i, (overall, groups)): (usize, &(f64, [f64; 2]))| {
            let errors = values(1.0 - overall, groups.map(|value| 1.0 - value));
            let all = [values(*overall, *groups), Values::default(), errors];
            Point { epoch: i + 1, validation: all.clone(), test: all, ..Point::default() }
        };
        let points = rows.iter().enumerate().map(point).collect();
        let trial = TrialPoints { place: 0, cell: 0, trial: 0, measures: Measures::Class, points };
        let epoch = |rule, metric| by_rule(rule, &[&trial], metric, None).unwrap().map(|chosen| chosen.epoch);
        let of_auc = [Rule::Fairest, Rule::Overall, Rule::Minimax, Rule::Dto].map(|rule| epoch(rule, 0));
        assert_eq!(of_auc, [None, Some(1), Some(3), Some(3)]);
        assert_eq!([Rule::Overall, Rule::Minimax].map(|rule| epoch(rule, 2)), [Some(1), Some(3)]);
        assert_eq!(epoch(Rule::Minimax, 1), None, "no group has a balanced accuracy");
        let fairest = by_rule(Rule::Fairest, &[&trial], 0, Some((0.82, 0.05))).unwrap().unwrap();
        assert_eq!(fairest.epoch, 4, "the smallest gap among those above 0.779");
    }
}
