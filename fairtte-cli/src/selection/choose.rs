//! The choice per attribute, metric and strategy, and its worth in the test part beside the base strategy.

use std::collections::BTreeMap;

use fairtte_metrics::{
    Difference, Direction, EvaluationReport, EvaluationSettings, Measured, MetricError, MetricReport, Run, RunTable,
    SelectionCriterion, WorstGroup, select_run,
};
use serde::Serialize;

use super::candidates::{Candidate, Candidates};
use crate::CliError;

/// Metrics for which a choice is made: stable name and short name.
const METRICS: [(&str, &str); 3] = [("c_td_antolini_strict", "C^td"), ("auc_td", "AUC^td"), ("ibs", "IBS")];

/// How weights are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rule {
    /// The paper's: the smallest gap within the tolerated loss of the base model.
    Fairest,
    /// The best overall metric.
    Overall,
    /// The best worst group on the Pareto front.
    Minimax,
    /// The smallest distance to the best value of every group.
    Dto,
}

/// Everything that was chosen.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Verdict {
    pub(crate) rule: Rule,
    /// Relative loss of the base model's metric that `fairest` tolerates.
    pub(crate) tolerated_loss: f64,
    pub(crate) base: String,
    pub(crate) level: f64,
    pub(crate) replicates: usize,
    /// Samples and events of the test part.
    pub(crate) n_test: usize,
    pub(crate) n_test_events: usize,
    pub(crate) rows: Vec<Standing>,
    /// Runs of a comparison that could not be trained.
    pub(crate) not_trained: Vec<NotTrained>,
}

/// Runs that a method refused, or that diverged, for one reason.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct NotTrained {
    pub(crate) runs: Vec<String>,
    pub(crate) because: String,
}

/// One strategy under one attribute and metric.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Standing {
    pub(crate) attribute: String,
    /// Stable name of the metric.
    pub(crate) metric: String,
    /// Its short name.
    pub(crate) label: String,
    pub(crate) higher_is_better: bool,
    pub(crate) strategy: String,
    /// Weights to choose from.
    pub(crate) n_candidates: usize,
    /// Why nothing was chosen.
    pub(crate) none_because: Option<String>,
    pub(crate) chosen: Option<Chosen>,
}

/// Chosen weights.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Chosen {
    pub(crate) run: String,
    pub(crate) epoch: usize,
    /// Rules of the training that kept the epoch.
    pub(crate) kept_by: String,
    pub(crate) validation: Scores,
    pub(crate) test: Scores,
    /// Test metric minus that of the base; absent for the base itself.
    pub(crate) change: Option<Change>,
    /// Test gap minus that of the base.
    pub(crate) gap_change: Option<Change>,
}

/// Metric over all samples and the largest difference between two groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Scores {
    pub(crate) value: Option<f64>,
    pub(crate) gap: Option<f64>,
}

/// A paired difference, as such and in percent of the base's value (its interval too: the base's value counts as known).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Change {
    pub(crate) difference: Difference,
    pub(crate) percent: Option<f64>,
    pub(crate) percent_lower: Option<f64>,
    pub(crate) percent_upper: Option<f64>,
}

impl Change {
    fn new(difference: Difference, base: Option<f64>) -> Self {
        let of_base = |x: Option<f64>| {
            let base = base.filter(|base| *base != 0.0)?;
            Some(100.0 * x? / base.abs())
        };
        let (percent, lower, upper) = (of_base(difference.value), of_base(difference.lower), of_base(difference.upper));
        Self { difference, percent, percent_lower: lower, percent_upper: upper }
    }
}

/// Chooses per attribute, metric and strategy. `attributes` may name some of those of the runs; empty = all.
///
/// # Errors
/// [`CliError::Config`] for an unknown attribute or base strategy; what the metrics give.
pub(crate) fn choose(
    candidates: &Candidates,
    rule: Rule,
    base: &str,
    tolerated_loss: f64,
    attributes: &[String],
    settings: &EvaluationSettings,
) -> Result<Verdict, CliError> {
    let known = candidates.attributes();
    if let Some(unknown) = attributes.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(CliError::unknown_attribute("--attribute", unknown, &known));
    }
    let mut strategies: Vec<&str> = candidates.all.iter().map(|candidate| candidate.strategy.as_str()).collect();
    strategies.sort_unstable();
    strategies.dedup();
    if !strategies.contains(&base) {
        let message = format!("no finished run has strategy \"{base}\", only {}", strategies.join(", "));
        return Err(CliError::setting("--base", message, None));
    }
    strategies.sort_by_key(|strategy| (*strategy != base, *strategy));
    let mut chooser = Chooser { candidates, rule, base, tolerated_loss, settings, tests: BTreeMap::new() };
    let mut rows = Vec::new();
    for attribute in known.iter().filter(|name| attributes.is_empty() || attributes.iter().any(|a| a == **name)) {
        for metric in METRICS {
            rows.extend(chooser.metric(attribute, metric, &strategies)?);
        }
    }
    let any = chooser.tests.values().next();
    let (n_test, n_test_events) = any.map_or((0, 0), |report| (report.n, report.n_events));
    let (level, replicates) = (settings.level, settings.replicates);
    Ok(Verdict {
        rule,
        tolerated_loss,
        base: base.to_owned(),
        level,
        replicates,
        n_test,
        n_test_events,
        rows,
        not_trained: Vec::new(),
    })
}

struct Chooser<'a> {
    candidates: &'a Candidates,
    rule: Rule,
    base: &'a str,
    tolerated_loss: f64,
    settings: &'a EvaluationSettings,
    /// Test evaluations of chosen candidates, by name.
    tests: BTreeMap<String, EvaluationReport>,
}

impl<'a> Chooser<'a> {
    /// One row per strategy, the base first.
    fn metric(
        &mut self,
        attribute: &str,
        metric: (&str, &str),
        strategies: &[&str],
    ) -> Result<Vec<Standing>, CliError> {
        let mut rows = Vec::new();
        let mut base: Option<&'a Candidate> = None;
        for strategy in strategies {
            let eligible = self.eligible(strategy, attribute);
            let criterion = self.criterion(base, strategy, metric.0);
            let (chosen, none_because) = match criterion {
                Ok(criterion) => pick(&eligible, attribute, metric.0, criterion)?,
                Err(reason) => (None, Some(reason)),
            };
            if *strategy == self.base {
                base = chosen;
            }
            let chosen = chosen.map(|chosen| self.worth(chosen, base, attribute, metric.0)).transpose()?;
            rows.push(Standing {
                attribute: attribute.to_owned(),
                metric: metric.0.to_owned(),
                label: metric.1.to_owned(),
                higher_is_better: metric.0 != "ibs",
                strategy: (*strategy).to_owned(),
                n_candidates: eligible.len(),
                none_because,
                chosen,
            });
        }
        Ok(rows)
    }

    /// Candidates of a strategy that needed no groups or worked on this attribute.
    fn eligible(&self, strategy: &str, attribute: &str) -> Vec<&'a Candidate> {
        let of_attribute = |candidate: &&Candidate| {
            candidate.trained_on.is_empty() || candidate.trained_on.iter().any(|a| a == attribute)
        };
        self.candidates.all.iter().filter(|candidate| candidate.strategy == strategy).filter(of_attribute).collect()
    }

    fn criterion(&self, base: Option<&Candidate>, strategy: &str, metric: &str) -> Result<SelectionCriterion, String> {
        Ok(match self.rule {
            Rule::Overall => SelectionCriterion::BestUtility,
            Rule::Minimax => SelectionCriterion::MinimaxPareto { worst_group: WorstGroup::OfEachRun },
            Rule::Dto => SelectionCriterion::DistanceToOptimum,
            Rule::Fairest if strategy == self.base => SelectionCriterion::BestUtility,
            Rule::Fairest => {
                let value = base.and_then(|base| base.validation.metric(metric)?.overall.value);
                let base_utility = value.ok_or_else(|| format!("{} has no value to compare with", self.base))?;
                SelectionCriterion::BestFairness { base_utility, tolerated_loss: self.tolerated_loss }
            }
        })
    }

    /// The chosen weights in both parts, and in the test part beside the base.
    fn worth(
        &mut self,
        chosen: &Candidate,
        base: Option<&Candidate>,
        attribute: &str,
        metric: &str,
    ) -> Result<Chosen, CliError> {
        let test = scores(self.test(chosen)?, attribute, metric);
        let mut changes = None;
        if let Some(base) = base.filter(|base| base.name() != chosen.name() && base.strategy != chosen.strategy) {
            let of_base = scores(self.test(base)?, attribute, metric);
            let (own, other) = (self.candidates.test(chosen)?, self.candidates.test(base)?);
            let compared = own.compared_with(&other, self.settings)?;
            let pair = compared.pairs.into_iter().find(|pair| pair.metric == metric);
            let pair = pair.ok_or_else(|| CliError::Bug(format!("no comparison in {metric}")))?;
            let gap = pair.attributes.into_iter().find(|of| of.attribute == attribute).map(|of| of.gap);
            changes = Some((Change::new(pair.overall, of_base.value), gap.map(|gap| Change::new(gap, of_base.gap))));
        }
        let (change, gap_change) = changes.map_or((None, None), |(change, gap)| (Some(change), gap));
        Ok(Chosen {
            run: chosen.run.clone(),
            epoch: chosen.epoch,
            kept_by: chosen.kept_by.clone(),
            validation: scores(&chosen.validation, attribute, metric),
            test,
            change,
            gap_change,
        })
    }

    fn test(&mut self, candidate: &Candidate) -> Result<&EvaluationReport, CliError> {
        let name = candidate.name();
        if !self.tests.contains_key(&name) {
            let quick = EvaluationSettings { replicates: 0, ..self.settings.clone() };
            let report = self.candidates.test(candidate)?.evaluate(&quick)?;
            self.tests.insert(name.clone(), report);
        }
        Ok(&self.tests[&name])
    }
}

/// The candidate that the criterion chooses, or why it chooses none.
fn pick<'a>(
    eligible: &[&'a Candidate],
    attribute: &str,
    metric: &str,
    criterion: SelectionCriterion,
) -> Result<(Option<&'a Candidate>, Option<String>), CliError> {
    let reports: Option<Vec<&MetricReport>> = eligible.iter().map(|c| c.validation.metric(metric)).collect();
    let Some(reports) = reports.filter(|reports| !reports.is_empty()) else {
        return Ok((None, Some(format!("no finished run worked on {attribute}"))));
    };
    let of_attribute = |report: &MetricReport| report.attributes.iter().position(|of| of.attribute == attribute);
    let Some(place) = of_attribute(reports[0]) else {
        return Err(CliError::Bug(format!("no groups of {attribute} in an evaluation")));
    };
    let measured = |value: Option<f64>, reason: &Option<String>| {
        value.map_or_else(|| Measured::Undefined(reason.clone().unwrap_or_default()), Measured::Value)
    };
    let groups = reports[0].attributes[place].groups.iter().map(|group| group.level.clone()).collect();
    let runs = eligible.iter().zip(&reports).map(|(candidate, report)| {
        let of_groups = &report.attributes[place];
        let estimate = |e: &fairtte_metrics::Estimate| measured(e.value, &e.undefined);
        Run {
            run: candidate.name(),
            utility: estimate(&report.overall),
            group_utilities: of_groups.groups.iter().map(|group| estimate(&group.estimate)).collect(),
            gap: estimate(&of_groups.gap),
        }
    });
    let direction = if reports[0].higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
    let selection = match select_run(&RunTable { direction, groups, runs: runs.collect() }, criterion) {
        Err(error @ MetricError::ZeroOptimum { .. }) => return Ok((None, Some(error.to_string()))),
        other => other?,
    };
    let Some(name) = selection.chosen else {
        let reason = match selection.excluded.first() {
            Some(excluded) if selection.runs.is_empty() => excluded.reason.clone(),
            _ => "none is within the tolerated loss".to_owned(),
        };
        return Ok((None, Some(reason)));
    };
    Ok((eligible.iter().find(|candidate| candidate.name() == name).copied(), None))
}

fn scores(report: &EvaluationReport, attribute: &str, metric: &str) -> Scores {
    let report = report.metric(metric);
    let gap = |report: &MetricReport| report.attributes.iter().find(|of| of.attribute == attribute)?.gap.value;
    Scores { value: report.and_then(|report| report.overall.value), gap: report.and_then(gap) }
}
