//! The choice per network, attribute, metric and strategy, and its results in the test part.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use fairtte_metrics::evaluation::{HorizonReport, MetricReport, SampledMetric, SampledMetrics, SampledValue};
use fairtte_metrics::fairness::Comparison;
use fairtte_metrics::{Direction, EvaluationReport, EvaluationSettings, MetricError};

use super::candidates::{Candidate, Candidates};
use super::change::{adjust, change};
use super::horizon;
use super::pick::Question;
use super::ranks::rank_comparisons;
use super::rows::{Pool, Row, Rows};
use super::verdict::{
    Block, Chosen, Contrast, GroupSize, Horizon, LossOf, Network, OfSeed, OverSeeds, Role, Rule, Scores, Spread,
    Standing, Verdict, Weighted,
};
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
fn is_brier(metric: &str) -> bool {
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
struct Plan<'a> {
    network: &'a Network,
    attribute: &'a str,
    metric: (&'static str, &'static str),
    contrast: Option<Contrast>,
    no_skill: Option<f64>,
    warnings: Vec<String>,
    n_seeds: usize,
    rows: Vec<Row>,
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

fn few_events(part: &str, level: &str, n: usize, n_events: usize) -> Option<String> {
    (n_events < FEW_EVENTS).then(|| {
        let (events, samples) = (counted(n_events, "event"), counted(n, "sample"));
        format!("group \"{level}\" has {events} among {samples} of the {part} part: too few to compare models in it")
    })
}

fn of_attribute<'r>(
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

/// A block with the results of the test part.
struct Worth<'a> {
    all: &'a [Candidate],
    samples: &'a BTreeMap<usize, SampledMetrics>,
    weighted: &'a BTreeMap<usize, HorizonReport>,
    level: f64,
    plan: Plan<'a>,
}

/// The values of a row in all draws.
struct Drawn {
    metric: SampledValue,
    difference: Option<SampledValue>,
}

impl Worth<'_> {
    fn block(mut self) -> Result<Block, CliError> {
        let drawn = self.plan.rows.iter().map(|row| self.drawn(row)).collect::<Result<Vec<_>, _>>()?;
        let control = self.plan.rows.iter().position(|row| row.role == Role::Control).unwrap_or(0);
        let standing = |(place, row): (usize, &Row)| {
            let from =
                |other: usize, is_new: bool| is_new.then(|| drawn[place].as_ref().zip(drawn[other].as_ref())).flatten();
            // Only other strategies are compared with the control; all rows but the base itself are compared with the
            // base.
            let pairs = [from(control, row.role == Role::Strategy), from(0, row.role != Role::Base)];
            self.standing(row, pairs)
        };
        let mut rows = self.plan.rows.iter().enumerate().map(standing).collect::<Result<Vec<_>, _>>()?;
        adjust(&mut rows, self.level)?;
        let groups = self.groups();
        let few = groups.iter().filter_map(|group| few_events("test", &group.level, group.n, group.n_events));
        let mut warnings = std::mem::take(&mut self.plan.warnings);
        warnings.extend(few);
        let Plan { network, attribute, metric: (metric, label), contrast, no_skill, .. } = self.plan;
        Ok(Block {
            attribute: attribute.to_owned(),
            metric: metric.to_owned(),
            label: label.to_owned(),
            higher_is_better: !is_brier(metric),
            network: network.clone(),
            groups,
            contrast,
            no_skill,
            warnings,
            rows,
        })
    }

    fn metric(&self, candidate: usize) -> Result<&SampledMetric, CliError> {
        let metric = self.samples.get(&candidate).and_then(|sample| sample.metric(self.plan.metric.0));
        metric.ok_or_else(|| CliError::Bug(format!("no {} of candidate {candidate}", self.plan.metric.0)))
    }

    fn groups(&self) -> Vec<GroupSize> {
        let any = self.plan.rows.iter().flat_map(Row::needed).next();
        let groups = any.and_then(|k| self.metric(k).ok()?.attribute(self.plan.attribute)).map(|of| &of.groups);
        let size = |group: &fairtte_metrics::evaluation::SampledGroup| GroupSize {
            level: group.level.clone(),
            n: group.n,
            n_events: group.n_events,
        };
        groups.into_iter().flatten().map(size).collect()
    }

    /// The signed difference of a candidate.
    fn difference(&self, candidate: usize) -> Result<Option<SampledValue>, CliError> {
        let Some(Contrast { first, second }) = &self.plan.contrast else { return Ok(None) };
        let groups = self.metric(candidate)?.attribute(self.plan.attribute).map(|of| &of.groups);
        let of = |level: &str| groups.and_then(|groups| groups.iter().find(|group| group.level == level));
        Ok(of(first).zip(of(second)).map(|(first, second)| first.value.minus(&second.value)))
    }

    /// The values of the model chosen for a row, and in draw b of the model chosen in that draw.
    fn drawn(&self, row: &Row) -> Result<Option<Drawn>, CliError> {
        let Ok(picked) = row.picked else { return Ok(None) };
        let chosen: BTreeSet<usize> = row.of_draw.iter().flatten().copied().chain([picked]).collect();
        let mut differences = BTreeMap::new();
        for k in chosen {
            differences.insert(k, self.difference(k)?);
        }
        let mut metric = SampledValue { value: self.metric(picked)?.overall.value.clone(), replicates: Vec::new() };
        let value = differences[&picked].as_ref().map(|difference| difference.value.clone());
        let mut difference = value.map(|value| SampledValue { value, replicates: Vec::new() });
        for (replicate, chosen) in row.of_draw.iter().enumerate() {
            let of_metric = chosen.map(|k| self.metric(k)).transpose()?;
            metric.replicates.push(of_metric.and_then(|metric| metric.overall.replicates[replicate]));
            if let Some(difference) = &mut difference {
                let of_chosen = chosen.and_then(|k| differences[&k].as_ref());
                difference.replicates.push(of_chosen.and_then(|of_chosen| of_chosen.replicates[replicate]));
            }
        }
        Ok(Some(Drawn { metric, difference }))
    }

    /// `pairs`: the row with the control, and with the base.
    fn standing(&self, row: &Row, pairs: [Option<(&Drawn, &Drawn)>; 2]) -> Result<Standing, CliError> {
        let of_metric = |pair: Option<(&Drawn, &Drawn)>| {
            pair.map(|(own, other)| change(&own.metric, &other.metric, self.level, true))
        };
        let of_difference = |pair: Option<(&Drawn, &Drawn)>| {
            let (own, other) = pair?;
            Some(change(own.difference.as_ref()?, other.difference.as_ref()?, self.level, false))
        };
        let chosen = |k: &usize| {
            let candidate = &self.all[*k];
            let without_test = |mut change: super::verdict::Change| {
                change.p_value = None;
                change
            };
            Ok::<_, CliError>(Chosen {
                run: candidate.run.clone(),
                epoch: candidate.epoch,
                weights: candidate.weights.clone(),
                kept_by: candidate.kept_by.clone(),
                validation: self.in_validation(candidate),
                test: self.in_test(*k)?,
                weighted: self.weighted.get(k).map(|report| Weighted::of(report, self.plan.attribute)),
                change: of_metric(pairs[0]),
                difference_change: of_difference(pairs[0]),
                change_from_base: of_metric(pairs[1]).map(without_test),
                difference_change_from_base: of_difference(pairs[1]).map(without_test),
            })
        };
        let of_seed = |(seed, picked): &(u64, super::pick::Picked)| {
            let candidate = picked.as_ref().ok().map(|k| &self.all[*k]);
            Ok(OfSeed {
                seed: *seed,
                run: candidate.map(|candidate| candidate.run.clone()),
                weights: candidate.map(|candidate| candidate.weights.clone()),
                test: picked.as_ref().map_or_else(|_| Ok(Scores::default()), |k| self.in_test(*k))?,
            })
        };
        let seeds = row.of_seed.iter().map(of_seed).collect::<Result<Vec<_>, CliError>>()?;
        let spread = |of: fn(&Scores) -> Option<f64>| Spread::of(seeds.iter().map(|seed| of(&seed.test)));
        Ok(Standing {
            strategy: row.strategy.clone(),
            role: row.role,
            n_candidates: row.n_candidates,
            none_because: row.picked.as_ref().err().cloned(),
            chosen: row.picked.as_ref().ok().map(chosen).transpose()?,
            over_seeds: OverSeeds {
                value: spread(|scores| scores.value),
                gap: spread(|scores| scores.gap),
                difference: spread(|scores| scores.difference),
            },
            seeds,
        })
    }

    fn in_test(&self, candidate: usize) -> Result<Scores, CliError> {
        let metric = self.metric(candidate)?;
        let groups = metric.attribute(self.plan.attribute).map(|of| &of.groups);
        let values = groups.into_iter().flatten().map(|group| group.value.value.clone());
        let difference = self.difference(candidate)?.and_then(|difference| difference.value.ok());
        let value = metric.overall.value.as_ref().ok().copied();
        Ok(Scores { value, gap: gap(values, metric.higher_is_better), difference })
    }

    fn in_validation(&self, candidate: &Candidate) -> Scores {
        let report = candidate.validation.metric(self.plan.metric.0);
        let of_groups = report.and_then(|report| of_attribute(report, self.plan.attribute));
        let of = |level: &str| of_groups?.groups.iter().find(|group| group.level == level)?.estimate.value;
        let contrast = self.plan.contrast.as_ref();
        Scores {
            value: report.and_then(|report| report.overall.value),
            gap: of_groups.and_then(|of_groups| of_groups.gap.value),
            difference: contrast.and_then(|Contrast { first, second }| Some(of(first)? - of(second)?)),
        }
    }
}

/// The gap between the groups that have a value.
fn gap(values: impl Iterator<Item = Result<f64, MetricError>>, higher_is_better: bool) -> Option<f64> {
    let values: Vec<f64> = values.filter_map(Result::ok).collect();
    let direction = if higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
    Comparison::Gap.of(&values, 0.0, direction)
}

#[cfg(test)]
mod tests;
