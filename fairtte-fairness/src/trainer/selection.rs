//! Selection of the epochs whose weights are used for prediction, without a second training.
//!
//! One rule per metric takes its best epoch (of equals the first). Three more take, per metric of the paper, the epoch with
//! the smallest gap between groups among those whose value is at most 5 % worse than the best of this run (the paper's
//! section 3 with the run itself as base model). The best may come late: which epochs are within 5 % of it is known only
//! at the end. What must be kept until then is the set of epochs that are within 5 % of the best so far and that no
//! other such epoch beats or equals in both value and gap: the limit only gets stricter, so an epoch beyond it is
//! never chosen later, and an epoch that beats another stays within the limit as long as the other does. The set is exact
//! and small.
//!
//! If epochs are kept for several attributes, the rules that compare groups exist once per attribute.
//!
//! The choice is a function of the validations alone. A rule ignores epochs in which its metric is undefined.

use std::collections::{BTreeMap, BTreeSet};

use fairtte_metrics::selection::{Measured, Run, RunStanding, RunTable, SelectionCriterion, select_run};
use fairtte_metrics::{Direction, MetricError};
use serde::{Deserialize, Serialize};

use crate::monitor::{Monitor, Validation};
use fairtte_records::Predicted;
pub use fairtte_records::TOLERATED_LOSS;

/// What makes an epoch the one of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Criterion {
    /// The best value.
    Best,
    /// The smallest gap among the epochs that lose at most 5 % of the best value.
    SmallestGap,
}

/// A rule by which an epoch is chosen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpochRule {
    /// What makes the epoch the one.
    pub criterion: Criterion,
    /// The metric that the rule reads.
    pub metric: Monitor,
    /// The attribute between whose groups it compares; without one, the groups of the training.
    pub attribute: Option<String>,
}

impl EpochRule {
    /// The best value of a metric that compares no groups, or of the worst group of the training.
    pub fn best(metric: Monitor) -> Self {
        Self { criterion: Criterion::Best, metric, attribute: None }
    }

    /// The smallest gap between the groups of the training.
    pub fn smallest_gap(metric: Monitor) -> Self {
        Self { criterion: Criterion::SmallestGap, metric, attribute: None }
    }

    /// All rules of a training on survival curves: eight without `attributes`, else four, and four per attribute.
    pub fn all(attributes: &[&str]) -> Vec<Self> {
        Self::of_task(Predicted::Curves, attributes)
    }

    /// All rules of a training: the best value of every metric, overall and in the worst group, and the smallest gap in each but
    /// the loss.
    pub fn of_task(predicted: Predicted, attributes: &[&str]) -> Vec<Self> {
        let monitors: Vec<Monitor> = Monitor::of_task(predicted).collect();
        let (worst, overall): (Vec<Monitor>, Vec<Monitor>) =
            monitors.into_iter().partition(|monitor| monitor.is_worst_group());
        let gaps: Vec<Self> = overall[1..].iter().copied().map(Self::smallest_gap).collect();
        let overall = overall.into_iter().map(Self::best);
        let of_groups: Vec<Self> = worst.into_iter().map(Self::best).chain(gaps).collect();
        let of = |name: &&str| {
            let name = (*name).to_owned();
            of_groups.iter().map(move |rule| Self { attribute: Some(name.clone()), ..rule.clone() }).collect::<Vec<_>>()
        };
        let of_groups =
            if attributes.is_empty() { of_groups.clone() } else { attributes.iter().flat_map(of).collect() };
        overall.into_iter().chain(of_groups).collect()
    }

    /// The rules for epochs that were scored so.
    fn of(epochs: &[&Validation]) -> Vec<Self> {
        let attributes = epochs.last().map(|epoch| &epoch.attributes).into_iter().flatten();
        let predicted = epochs.last().map_or(Predicted::Curves, |epoch| epoch.predicted());
        Self::of_task(predicted, &attributes.map(|of| of.attribute.as_str()).collect::<Vec<_>>())
    }

    /// Name in files: that of the metric, with `gap-` before it for the smallest gap and `@` with the attribute after it.
    pub fn name(&self) -> String {
        let gap = if self.criterion == Criterion::SmallestGap { "gap-" } else { "" };
        let of = self.attribute.as_ref().map(|name| format!("@{name}")).unwrap_or_default();
        format!("{gap}{}{of}", self.metric.name())
    }

    /// The metric of an epoch; absent where it is undefined.
    pub fn value(&self, epoch: &Validation) -> Option<f64> {
        epoch.value_for(self.metric, self.attribute.as_deref())
    }

    /// The gap of an epoch in the metric; absent where it is undefined.
    pub fn gap(&self, epoch: &Validation) -> Option<f64> {
        epoch.gap_for(self.metric, self.attribute.as_deref())
    }
}

/// The epoch that a rule chooses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Choice {
    /// Epoch, counted from 1.
    pub epoch: usize,
    /// Value of the metric in the validation part.
    pub value: f64,
    /// Gap between the groups in it; absent where it is undefined.
    pub gap: Option<f64>,
}

/// The epoch that each rule chooses; a rule whose metric is undefined in every epoch is left out.
///
/// # Errors
/// [`MetricError`] if a value is not finite.
pub fn choices(epochs: &[&Validation]) -> Result<BTreeMap<EpochRule, Choice>, MetricError> {
    let mut chosen = BTreeMap::new();
    for rule in EpochRule::of(epochs) {
        let index = match rule.criterion {
            Criterion::Best => best(&rule, epochs),
            Criterion::SmallestGap => tolerated(&rule, epochs)?.smallest,
        };
        if let Some(index) = index
            && let Some(value) = rule.value(epochs[index])
        {
            let gap = rule.gap(epochs[index]);
            chosen.insert(rule, Choice { epoch: index + 1, value, gap });
        }
    }
    Ok(chosen)
}

/// Epochs, counted from 1, that a rule chooses now or may choose when more epochs come.
pub(crate) fn needed(epochs: &[&Validation]) -> Result<BTreeSet<usize>, MetricError> {
    let mut kept = BTreeSet::new();
    for rule in EpochRule::of(epochs) {
        match rule.criterion {
            Criterion::Best => kept.extend(best(&rule, epochs)),
            Criterion::SmallestGap => kept.extend(tolerated(&rule, epochs)?.front),
        }
    }
    Ok(kept.into_iter().map(|index| index + 1).collect())
}

fn best(rule: &EpochRule, epochs: &[&Validation]) -> Option<usize> {
    let values = epochs.iter().enumerate().filter_map(|(index, epoch)| Some((index, rule.value(epoch)?)));
    let better =
        |best: (usize, f64), other: (usize, f64)| if rule.metric.is_better(other.1, best.1) { other } else { best };
    values.reduce(better).map(|(index, _)| index)
}

/// The epochs within the tolerated loss.
#[derive(Default)]
struct Tolerated {
    smallest: Option<usize>,
    /// Those that no other one beats or equals in value and gap.
    front: Vec<usize>,
}

fn tolerated(rule: &EpochRule, epochs: &[&Validation]) -> Result<Tolerated, MetricError> {
    let Some(best) = best(rule, epochs).and_then(|index| rule.value(epochs[index])) else {
        return Ok(Tolerated::default());
    };
    let measured = |value: Option<f64>| value.map_or_else(|| Measured::Undefined(String::new()), Measured::Value);
    let run = |(index, epoch): (usize, &&Validation)| Run {
        run: index.to_string(),
        utility: measured(rule.value(epoch)),
        group_utilities: Vec::new(),
        gap: measured(rule.gap(epoch)),
    };
    let runs = epochs.iter().enumerate().map(run).collect();
    let table = RunTable { direction: rule.metric.direction(), groups: Vec::new(), runs };
    let criterion =
        SelectionCriterion::BestFairness { base_utility: best, tolerated_loss: TOLERATED_LOSS, no_skill: None };
    let selection = select_run(&table, criterion)?;
    let index = |run: &str| run.parse::<usize>().expect("runs are named by their index");
    let eligible =
        selection.runs.iter().filter(|run| matches!(run.standing, RunStanding::Eligible | RunStanding::Chosen));
    let within: Vec<(usize, f64, f64)> =
        eligible.filter_map(|run| Some((index(&run.run), rule.value(epochs[index(&run.run)])?, run.value))).collect();
    let as_good = |a: f64, b: f64| match rule.metric.direction() {
        Direction::HigherIsBetter => a >= b,
        Direction::LowerIsBetter => a <= b,
    };
    // Of equals the first stays, as in the choice itself.
    let beats = |other: &(usize, f64, f64), one: &(usize, f64, f64)| {
        let equal = as_good(one.1, other.1) && one.2 <= other.2;
        other.0 != one.0 && as_good(other.1, one.1) && other.2 <= one.2 && (!equal || other.0 < one.0)
    };
    let front = within.iter().filter(|one| !within.iter().any(|other| beats(other, one))).map(|one| one.0).collect();
    Ok(Tolerated { smallest: selection.chosen.as_deref().map(index), front })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;
    use crate::monitor::{GroupValidation, Metrics, metrics_of};
    use fairtte_metrics::seeds::stream;
    use rand::RngExt as _;

    /// Overall values, and those of two groups: (C^td, AUC^td, IBS) each.
    fn epoch(overall: [Option<f64>; 3], groups: [[Option<f64>; 3]; 2]) -> Validation {
        let metrics = |values: [Option<f64>; 3]| -> Metrics {
            metrics_of([Monitor::CTd, Monitor::AucTd, Monitor::Ibs].into_iter().zip(values))
        };
        let group = |values| GroupValidation { metrics: metrics(values), ..Default::default() };
        Validation { metrics: metrics(overall), groups: groups.map(group).to_vec(), ..Validation::default() }
    }

    fn with_gap(c_td: f64, gap: f64) -> Validation {
        epoch([Some(c_td), None, None], [[Some(0.5), None, None], [Some(0.5 + gap), None, None]])
    }

    fn chosen(epochs: &[Validation], rule: &EpochRule) -> Option<usize> {
        choices(&epochs.iter().collect::<Vec<_>>()).unwrap().get(rule).map(|choice| choice.epoch)
    }

    #[test]
    fn the_smallest_gap_counts_only_near_the_best_value() {
        // 5 % below 0.8 is 0.76.
        let epochs = [with_gap(0.7, 0.0), with_gap(0.8, 0.25), with_gap(0.76, 0.0625), with_gap(0.78, 0.0625)];
        assert_eq!(chosen(&epochs, &EpochRule::smallest_gap(Monitor::CTd)), Some(4), "of equal gaps the better value");
        assert_eq!(chosen(&epochs, &EpochRule::best(Monitor::CTd)), Some(2));
        let kept = needed(&epochs.iter().collect::<Vec<_>>()).unwrap();
        // 1: the first best likelihood, which is 0 everywhere, and the first best worst group; 2 and 4: value against gap.
        assert_eq!(kept.into_iter().collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn the_rules_of_a_class_are_those_of_its_metrics() {
        let names = |attributes: &[&str]| -> Vec<String> {
            EpochRule::of_task(Predicted::Class, attributes).iter().map(EpochRule::name).collect()
        };
        let overall = ["bce", "auc", "balanced-accuracy"];
        let of_groups = ["worst-group-auc", "gap-auc", "gap-balanced-accuracy"];
        assert_eq!(names(&[]), [overall, of_groups].concat());
        let of_sex = of_groups.map(|name| format!("{name}@sex"));
        assert_eq!(names(&["sex"]), [overall.map(str::to_owned), of_sex].concat());
        let epoch = |auc: f64, gap: f64| {
            let group =
                |auc| GroupValidation { metrics: metrics_of([(Monitor::Auc, Some(auc))]), ..Default::default() };
            let (groups, metrics) = (vec![group(auc), group(auc - gap)], metrics_of([(Monitor::Auc, Some(auc))]));
            Validation { metrics, groups, ..Validation::default() }
        };
        let epochs = [epoch(0.75, 0.25), epoch(0.8, 0.5), epoch(0.5, 0.0)];
        assert_eq!(chosen(&epochs, &EpochRule::best(Monitor::Auc)), Some(2));
        assert_eq!(chosen(&epochs, &EpochRule::best(Monitor::WorstGroupAuc)), Some(1));
        assert_eq!(chosen(&epochs, &EpochRule::smallest_gap(Monitor::Auc)), Some(2), "0.75 is below 95 % of 0.8");
    }

    #[test]
    fn an_epoch_that_loses_too_much_is_dropped_once_a_better_one_comes() {
        let epochs = [with_gap(0.5, 0.0), with_gap(0.6, 0.1)];
        let at_first: Vec<&Validation> = epochs[..1].iter().collect();
        assert_eq!(tolerated(&EpochRule::smallest_gap(Monitor::CTd), &at_first).unwrap().front, [0]);
        let later: Vec<&Validation> = epochs.iter().collect();
        assert_eq!(tolerated(&EpochRule::smallest_gap(Monitor::CTd), &later).unwrap().front, [1]);
    }

    #[test]
    fn an_undefined_metric_takes_no_part_and_a_rule_without_any_is_left_out() {
        let nothing = epoch([None; 3], [[None; 3]; 2]);
        let epochs = [nothing.clone(), with_gap(0.6, 0.1), nothing.clone()];
        assert_eq!(chosen(&epochs, &EpochRule::best(Monitor::CTd)), Some(2));
        assert_eq!(chosen(&epochs, &EpochRule::smallest_gap(Monitor::CTd)), Some(2));
        let rules: Vec<String> = choices(&[&nothing]).unwrap().into_keys().map(|rule| rule.name()).collect();
        assert_eq!(rules, ["nll"]);
        // A value without a gap: best, but not the smallest gap, and its value still sets the limit.
        let alone = epoch([Some(0.9), None, None], [[Some(0.9), None, None], [None; 3]]);
        assert_eq!(chosen(&[with_gap(0.6, 0.1), alone], &EpochRule::smallest_gap(Monitor::CTd)), None);
    }

    // On a coarse grid, so that ties are common; lower is better for the IBS.
    #[test]
    fn whatever_is_chosen_in_the_end_was_kept_all_the_time() {
        let mut rng = stream(11, "selection", &[]);
        let mut n_checked = 0;
        for _ in 0..300 {
            let mut draw = |n: u32| rng.random_bool(0.9).then(|| f64::from(rng.random_range(0..n)) / 16.0);
            let epochs: Vec<Validation> = (0..12)
                .map(|_| {
                    let overall = [
                        draw(4).map(|v| 0.75 + v / 8.0),
                        draw(4).map(|v| 0.75 + v / 8.0),
                        draw(4).map(|v| 0.2 + v / 32.0),
                    ];
                    epoch(overall, [[draw(8), draw(8), draw(8)], [draw(8), draw(8), draw(8)]])
                })
                .collect();
            let epochs: Vec<&Validation> = epochs.iter().collect();
            for end in 1..=epochs.len() {
                for (rule, choice) in choices(&epochs[..end]).unwrap() {
                    for n in choice.epoch..=end {
                        let kept = needed(&epochs[..n]).unwrap();
                        assert!(kept.contains(&choice.epoch), "{} of {end}: {choice:?} not kept at {n}", rule.name());
                        n_checked += 1;
                    }
                }
            }
            // A discarded epoch is never chosen later.
            for n in 1..epochs.len() {
                let (now, next) = (needed(&epochs[..n]).unwrap(), needed(&epochs[..=n]).unwrap());
                assert!(next.iter().all(|epoch| now.contains(epoch) || *epoch == n + 1));
            }
        }
        assert!(n_checked > 50_000, "only {n_checked} checked");
    }
}
