//! The choice per network, attribute, metric and strategy, and its results in the test part.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use fairtte_metrics::evaluation::{MetricReport, SampledMetrics};
use fairtte_metrics::{EvaluationReport, EvaluationSettings};

use super::candidates::{Candidate, Candidates};
use super::horizon;
use super::pick::Question;
use super::ranks::rank_comparisons;
use super::rows::{Pool, Row, Rows};
use super::verdict::{Contrast, Horizon, LossOf, Network, Rule, Verdict};
use super::worth::Worth;
use crate::CliError;
use crate::plural::counted;
use crate::progress::say;

/// Metrics for which a choice is made: stable name and short name.
const METRICS: [(&str, &str); 3] = [("c_td_antolini_strict", "C^td"), ("auc_td", "AUC^td"), ("ibs", "IBS")];
/// The same of one of several causes.
const METRICS_OF_CAUSE: [(&str, &str); 3] =
    [("cause-c-td", "C^td of the cause"), ("cause-auc-td", "AUC^td of the cause"), ("cause-ibs", "IBS of the cause")];

/// The metrics for which a choice is made, of one kind of event or of a cause.
pub(super) fn metrics(cause: Option<u32>) -> &'static [(&'static str, &'static str)] {
    if cause.is_some() { &METRICS_OF_CAUSE } else { &METRICS }
}

/// Whether lower values of a metric are better.
pub(super) fn is_brier(metric: &str) -> bool {
    matches!(metric, "ibs" | "cause-ibs")
}

/// The same of a class.
pub(super) const METRICS_OF_CLASSES: [(&str, &str); 1] = [("auc", "AUC")];

/// Number of events below which a group is too small for a comparison.
const FEW_EVENTS: usize = 10;

/// The settings of a choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) rule: Rule,
    /// Strategy that the others are compared with.
    pub(crate) base: &'a str,
    pub(crate) tolerated_loss: f64,
    pub(crate) tolerated_loss_of: LossOf,
    /// Attributes to choose for; empty = all of the runs.
    pub(crate) attributes: &'a [String],
    pub(crate) settings: &'a EvaluationSettings,
}

/// Chooses per network, attribute, metric and strategy.
///
/// # Errors
/// [`CliError::Config`] for an unknown attribute or base strategy; the errors of the metrics.
pub(crate) fn choose(candidates: &Candidates, asked: &Asked<'_>) -> Result<Verdict, CliError> {
    let known = candidates.attributes();
    if let Some(unknown) = asked.attributes.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(CliError::unknown_attribute("--attribute", unknown, &known));
    }
    let strategies: BTreeSet<&str> = candidates.all.iter().map(|candidate| candidate.strategy.as_str()).collect();
    if !strategies.contains(asked.base) {
        let found = strategies.into_iter().collect::<Vec<_>>().join(", ");
        let message = format!("no finished run has strategy \"{}\", only {found}", asked.base);
        return Err(CliError::setting("--base", message, None));
    }
    let mut networks: BTreeSet<&Network> = candidates.all.iter().filter_map(|c| c.network.as_ref()).collect();
    let none = Network::none();
    if networks.is_empty() {
        networks.insert(&none);
    }
    let is_asked = |name: &&str| asked.attributes.is_empty() || asked.attributes.iter().any(|a| a == *name);
    let mut plans = Vec::new();
    let mut bases = BTreeMap::new();
    for network in networks {
        for attribute in known.iter().copied().filter(is_asked) {
            for metric in candidates.metrics().iter().copied() {
                plans.push(Plan::new(candidates, asked, network, attribute, metric, &mut bases)?);
            }
        }
    }
    let needed: BTreeSet<usize> = plans.iter().flat_map(|plan| plan.rows.iter().flat_map(Row::needed)).collect();
    say(format!("sets of weights to evaluate in the test part: {}", needed.len()));
    let sample =
        |k: usize| Ok((k, only_chosen_by(candidates.test(&candidates.all[k], asked.settings)?, candidates.metrics())));
    let samples = needed.into_iter().map(sample).collect::<Result<BTreeMap<_, _>, CliError>>()?;
    let n_seeds = plans.iter().map(|plan| plan.n_seeds).max().unwrap_or(0);
    let shown = plans.iter().flat_map(|plan| &plan.rows).filter_map(|row| row.picked.as_ref().ok().copied());
    let at_horizon = horizon::of_chosen(candidates, &shown.collect(), asked.settings)?;
    let (level, weighted) = (asked.settings.level, &at_horizon);
    let worth = |plan: Plan<'_>| Worth { all: &candidates.all, samples: &samples, weighted, level, plan }.block();
    let blocks = plans.into_iter().map(worth).collect::<Result<Vec<_>, _>>()?;
    let (n_test, n_test_events) = samples.values().next().map_or((0, 0), |sample| (sample.n, sample.n_events));
    Ok(Verdict {
        rule: asked.rule,
        tolerated_loss: asked.tolerated_loss,
        tolerated_loss_of: asked.tolerated_loss_of,
        base: asked.base.to_owned(),
        level: asked.settings.level,
        replicates: asked.settings.replicates,
        n_seeds,
        n_folds: candidates.n_folds(),
        n_test,
        n_test_events,
        horizon: at_horizon.values().next().and_then(Horizon::of),
        ranks: rank_comparisons(&blocks, candidates.metrics(), asked.base, 1.0 - asked.settings.level)?,
        blocks,
        not_trained: Vec::new(),
    })
}

/// Keeps only the metrics used for choices, since replicates of others are not needed.
fn only_chosen_by(mut sample: SampledMetrics, chosen: &[(&str, &str)]) -> SampledMetrics {
    sample.metrics.retain(|metric| chosen.iter().any(|(name, _)| *name == metric.name));
    sample
}

/// A block before the evaluation of the test part.
pub(super) struct Plan<'a> {
    pub(super) network: &'a Network,
    pub(super) attribute: &'a str,
    pub(super) metric: (&'static str, &'static str),
    pub(super) contrast: Option<Contrast>,
    pub(super) no_skill: Option<f64>,
    pub(super) warnings: Vec<String>,
    pub(super) n_seeds: usize,
    pub(super) rows: Vec<Row>,
}

impl<'a> Plan<'a> {
    /// `bases`: the validation parts, with intervals, of the base models of the blocks so far.
    fn new(
        candidates: &'a Candidates,
        asked: &Asked<'_>,
        network: &'a Network,
        attribute: &'a str,
        metric: (&'static str, &'static str),
        bases: &mut BTreeMap<usize, EvaluationReport>,
    ) -> Result<Self, CliError> {
        let all = &candidates.all;
        let is_in_block = |candidate: &Candidate| candidate.is_beside(network) && candidate.serves(attribute);
        let base = Pool::new(all, asked.base, is_in_block);
        let others: BTreeSet<&str> = all.iter().filter(|c| is_in_block(c)).map(|c| c.strategy.as_str()).collect();
        let others: Vec<Pool> =
            others.into_iter().filter(|s| *s != asked.base).map(|s| Pool::new(all, s, is_in_block)).collect();
        let (rule, tolerated_loss) = (asked.rule, asked.tolerated_loss);
        let mut question = Question { rule, attribute, metric: metric.0, tolerated_loss, no_skill: None };
        let chosen_base = question.base(all, &base.candidates)?.ok();
        let no_skill =
            chosen_base.map(|k| no_skill(candidates, &all[k], metric.0, asked.settings)).transpose()?.flatten();
        question.no_skill = no_skill.filter(|_| asked.tolerated_loss_of == LossOf::Skill);
        let EvaluationSettings { replicates, seed, .. } = *asked.settings;
        let rows = Rows { all, question, base: &base, replicates, seed }.of(&others)?;
        let mut warnings = Vec::new();
        if let Some(k) = chosen_base {
            let with_intervals = match bases.entry(k) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(candidates.validation(&all[k], asked.settings)?),
            };
            warnings.extend(warn_of_no_skill(with_intervals, metric, asked.base, no_skill));
            warnings.extend(warn_of_few_events(&all[k].validation, attribute, metric.0));
        }
        Ok(Self {
            network,
            attribute,
            metric,
            contrast: chosen_base.and_then(|k| contrast(&all[k].validation, attribute, metric.0)),
            no_skill,
            warnings,
            n_seeds: others.iter().chain([&base]).map(Pool::n_seeds).max().unwrap_or(0),
            rows,
        })
    }
}

/// The value of a model without skill in the validation part.
fn no_skill(
    candidates: &Candidates,
    at_times_of: &Candidate,
    metric: &str,
    settings: &EvaluationSettings,
) -> Result<Option<f64>, CliError> {
    if !is_brier(metric) {
        return Ok(Some(0.5));
    }
    let report = candidates.without_skill(at_times_of, settings)?;
    Ok(report.metric(metric).and_then(|report| report.overall.value))
}

/// Near chance, a tolerance of 5 % of a metric admits a model that has learnt nothing, and nothing has a smaller gap
/// than random guessing.
fn warn_of_no_skill(
    base: &EvaluationReport,
    (metric, label): (&str, &str),
    name: &str,
    no_skill: Option<f64>,
) -> Option<String> {
    let report = base.metric(metric)?;
    let (lower, upper, no_skill) = (report.overall.lower?, report.overall.upper?, no_skill?);
    let shows_skill = if report.higher_is_better { lower > no_skill } else { upper < no_skill };
    let what = match (metric, report.higher_is_better) {
        (_, true) => "chance",
        ("cause-ibs", false) => "the Aalen-Johansen curve",
        (_, false) => "the Kaplan-Meier curve",
    };
    (!shows_skill).then(|| {
        format!(
            "{name} is not shown to be better than {what} ({no_skill:.3}): its {label} in the validation part is {} [{lower:.3}, \
             {upper:.3}]. A model that has learnt nothing has a small gap, and the tolerated loss may admit it.",
            report.overall.value.map_or_else(String::new, |value| format!("{value:.3}"))
        )
    })
}

fn warn_of_few_events(validation: &EvaluationReport, attribute: &str, metric: &str) -> Vec<String> {
    let groups = validation.metric(metric).and_then(|report| of_attribute(report, attribute)).map(|of| &of.groups);
    let sizes = groups.into_iter().flatten().map(|group| (&group.level, group.estimate.n, group.estimate.n_events));
    sizes.filter_map(|(level, n, n_events)| few_events("validation", level, n, n_events)).collect()
}

pub(super) fn few_events(part: &str, level: &str, n: usize, n_events: usize) -> Option<String> {
    (n_events < FEW_EVENTS).then(|| {
        let (events, samples) = (counted(n_events, "event"), counted(n, "sample"));
        format!("group \"{level}\" has {events} among {samples} of the {part} part: too few to compare models in it")
    })
}

pub(super) fn of_attribute<'r>(
    report: &'r MetricReport,
    attribute: &str,
) -> Option<&'r fairtte_metrics::evaluation::AttributeReport> {
    report.attributes.iter().find(|of| of.attribute == attribute)
}

/// Among equal values, the first groups.
fn contrast(validation: &EvaluationReport, attribute: &str, metric: &str) -> Option<Contrast> {
    let groups = &of_attribute(validation.metric(metric)?, attribute)?.groups;
    let defined: Vec<(&str, f64)> =
        groups.iter().filter_map(|group| Some((group.level.as_str(), group.estimate.value?))).collect();
    let first = defined.iter().copied().reduce(|best, other| if other.1 > best.1 { other } else { best })?;
    let others = defined.iter().copied().filter(|(level, _)| *level != first.0);
    let second = others.reduce(|best, other| if other.1 < best.1 { other } else { best })?;
    Some(Contrast { first: first.0.to_owned(), second: second.0.to_owned() })
}

#[cfg(test)]
mod tests;
