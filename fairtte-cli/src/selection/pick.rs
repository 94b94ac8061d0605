//! The candidate that a rule chooses, from the validation parts alone.

use fairtte_metrics::MetricError;
use fairtte_metrics::evaluation::{Estimate, MetricReport};
use fairtte_metrics::selection::{Measured, Run, RunTable, SelectionCriterion, WorstGroup, select_run};

use super::candidates::Candidate;
use super::verdict::Rule;
use crate::CliError;

/// The conditions of a choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    pub(super) rule: Rule,
    pub(super) attribute: &'a str,
    /// Stable name of the metric.
    pub(super) metric: &'a str,
    pub(super) tolerated_loss: f64,
    /// The value of a model without skill, if the tolerated loss is a share of the skill.
    pub(super) no_skill: Option<f64>,
}

/// The index of the chosen candidate, or why there is none.
pub(super) type Picked = Result<usize, String>;

impl Question<'_> {
    /// The base model among `base`: with `fairest` the one with the best metric, otherwise by the rule itself.
    pub(super) fn base(&self, all: &[Candidate], base: &[usize]) -> Result<Picked, CliError> {
        match self.rule {
            Rule::Fairest => self.pick(all, base, SelectionCriterion::BestUtility),
            _ => self.like_the_others(all, base, &Err(String::new())),
        }
    }

    /// The choice of the rule among `pool`, given the base model.
    pub(super) fn like_the_others(&self, all: &[Candidate], pool: &[usize], base: &Picked) -> Result<Picked, CliError> {
        let criterion = match self.rule {
            Rule::Overall => SelectionCriterion::BestUtility,
            Rule::Minimax => SelectionCriterion::MinimaxPareto { worst_group: WorstGroup::OfEachRun },
            Rule::Dto => SelectionCriterion::DistanceToOptimum,
            Rule::Fairest => {
                let of_base = base.as_ref().ok().and_then(|base| all[*base].validation.metric(self.metric));
                let Some(base_utility) = of_base.and_then(|report| report.overall.value) else {
                    return Ok(Err("the base model has no value to compare with".to_owned()));
                };
                let (tolerated_loss, no_skill) = (self.tolerated_loss, self.no_skill);
                SelectionCriterion::BestFairness { base_utility, tolerated_loss, no_skill }
            }
        };
        self.pick(all, pool, criterion)
    }

    fn pick(&self, all: &[Candidate], pool: &[usize], criterion: SelectionCriterion) -> Result<Picked, CliError> {
        let reports: Option<Vec<&MetricReport>> = pool.iter().map(|k| all[*k].validation.metric(self.metric)).collect();
        let Some(reports) = reports.filter(|reports| !reports.is_empty()) else {
            return Ok(Err(format!("no finished run worked on {}", self.attribute)));
        };
        let of_attribute =
            |report: &MetricReport| report.attributes.iter().position(|of| of.attribute == self.attribute);
        let Some(place) = of_attribute(reports[0]) else {
            return Err(CliError::Bug(format!("no groups of {} in an evaluation", self.attribute)));
        };
        let estimate = |estimate: &Estimate| {
            let reason = || estimate.undefined.clone().unwrap_or_default();
            estimate.value.map_or_else(|| Measured::Undefined(reason()), Measured::Value)
        };
        let groups = reports[0].attributes[place].groups.iter().map(|group| group.level.clone()).collect();
        let runs = pool.iter().zip(&reports).map(|(k, report)| {
            let of_groups = &report.attributes[place];
            Run {
                run: k.to_string(),
                utility: estimate(&report.overall),
                group_utilities: of_groups.groups.iter().map(|group| estimate(&group.estimate)).collect(),
                gap: estimate(&of_groups.gap),
            }
        });
        let direction = reports[0].direction();
        let selection = match select_run(&RunTable { direction, groups, runs: runs.collect() }, criterion) {
            Err(error @ MetricError::ZeroOptimum { .. }) => return Ok(Err(error.to_string())),
            other => other?,
        };
        let Some(name) = selection.chosen else {
            return Ok(Err(match selection.excluded.first() {
                Some(excluded) if selection.runs.is_empty() => excluded.reason.clone(),
                _ => "none is within the tolerated loss".to_owned(),
            }));
        };
        let found = pool.iter().copied().find(|k| k.to_string() == name);
        found.map(Ok).ok_or_else(|| CliError::Bug(format!("chosen \"{name}\", which is not a candidate")))
    }
}
