//! Would this evaluation have noticed? How often it finds a gap after the predictions of one group were degraded.
//!
//! Every repeat makes a cohort without a gap and degrades it:
//!
//! 1. The labels of the attribute are exchanged between subjects at random, as in the permutation test of a gap: the groups keep
//!    their sizes, outcomes and predictions stay as they are, and groups differ by chance alone.
//! 2. Every sample of one group is drawn with probability sigma, and the curves of the drawn are exchanged among them: predictions
//!    that do not belong to the person, of the same distribution.
//! 3. The evaluation is done as usual. It finds a gap if the interval of the gap excludes 0, or, by the permutation test, if p is at
//!    most 1 - level.
//!
//! The share of repeats that find one is the power at sigma, and at sigma = 0 the rate of false findings, which should be at most
//! 1 - level. Exchanged curves leave the mean prediction of the group as it is: a metric that compares means (`observed-expected`)
//! cannot notice them.
//! Sources: the degradation is the permutation of Sonabend et al. (2022), <https://doi.org/10.48550/arXiv.2206.03256>, applied to
//! predictions in place of covariates; the test is that of `chance.rs`. The design is ours.

use rand::seq::SliceRandom as _;
use rand::{Rng as _, RngExt as _};
use serde::{Deserialize, Serialize};

use crate::bias::LabelPermutations;
use crate::evaluation::evaluate::{ChosenTimes, each_metric};
use crate::evaluation::evaluated::{Input, Predictions};
use crate::evaluation::report::MetricReport;
use crate::evaluation::time_window::Covered;
use crate::seeds::stream;
use crate::statistics::wilson_interval;
use crate::{
    CensoringCurve, EvaluationSettings, GroupId, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves, parallel,
};

/// The most repeats.
const MOST_REPEATS: usize = 100_000;

/// Settings of a power curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PowerSettings {
    /// Probability with which the curve of a sample of the group is exchanged, each in [0, 1].
    pub shares: Vec<f64>,
    /// Repeats at every share, from 1 to 100,000.
    pub repeats: usize,
    /// The power that is requested, in (0, 1).
    pub target: f64,
    /// Seed of labels and exchanges.
    pub seed: u64,
}

impl Default for PowerSettings {
    /// Shares 0 to 1 in steps of 0.1, 200 repeats, a power of 0.8.
    fn default() -> Self {
        Self { shares: (0..=10).map(|tenth| f64::from(tenth) / 10.0).collect(), repeats: 200, target: 0.8, seed: 0 }
    }
}

impl PowerSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`].
    pub fn validate(&self) -> Result<(), MetricError> {
        let invalid = |setting, value: String, expected| Err(MetricError::InvalidSetting { setting, value, expected });
        if self.shares.is_empty() {
            return invalid("shares", "empty".to_owned(), "at least one");
        }
        if let Some(share) = self.shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
            return invalid("shares", share.to_string(), "numbers in [0, 1]");
        }
        if self.shares.windows(2).any(|pair| pair[0] >= pair[1]) {
            return invalid("shares", format!("{:?}", self.shares), "ascending numbers");
        }
        if !(1..=MOST_REPEATS).contains(&self.repeats) {
            return invalid("repeats", self.repeats.to_string(), "a whole number from 1 to 100000");
        }
        if !(self.target > 0.0 && self.target < 1.0) {
            return invalid("target", self.target.to_string(), "a number between 0 and 1");
        }
        Ok(())
    }
}

/// A share of repeats, with its interval of 95 % (Wilson).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rate {
    /// Repeats that found a gap.
    pub n_found: usize,
    /// Repeats.
    pub n: usize,
    /// Repeats without an interval or a p value, which found nothing.
    pub n_undefined: usize,
    /// `n_found` / n.
    pub rate: f64,
    /// Lower end of its interval.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Rate {
    fn of(found: impl Iterator<Item = Option<bool>>) -> Result<Option<Self>, MetricError> {
        let (mut n_found, mut n, mut n_undefined) = (0, 0, 0);
        for of_repeat in found {
            n += 1;
            match of_repeat {
                Some(found) => n_found += usize::from(found),
                None => n_undefined += 1,
            }
        }
        let interval = wilson_interval(n_found, n, 0.95)?;
        Ok(interval.map(|(lower, upper)| Self {
            n_found,
            n,
            n_undefined,
            rate: n_found as f64 / n as f64,
            lower,
            upper,
        }))
    }
}

/// A metric at a share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PowerAt {
    /// The share, sigma.
    pub share: f64,
    /// Mean gap over the repeats that have one.
    pub mean_gap: Option<f64>,
    /// Repeats whose interval of the gap excludes 0; `None` without bootstrap replicates.
    pub by_interval: Option<Rate>,
    /// Repeats whose permutation test has p at most 1 - level; `None` without permutations.
    pub by_permutation: Option<Rate>,
}

/// The power curve of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MetricPower {
    /// Name of the metric, as in [`MetricReport`].
    pub name: String,
    /// Short name for tables.
    pub label: String,
    /// By share, ascending.
    pub shares: Vec<PowerAt>,
    /// The smallest share such that at it and at all larger ones the interval excludes 0 in at least the target's share of repeats.
    pub smallest_by_interval: Option<f64>,
    /// The same of the permutation test.
    pub smallest_by_permutation: Option<f64>,
}

/// The experiment: what is the same for all shares.
pub struct Power<'a> {
    subjects: &'a [SubjectId],
    outcomes: &'a Outcomes,
    curves: &'a SurvivalCurves,
    censoring: &'a CensoringCurve,
    groups: &'a Groups,
    level: GroupId,
    evaluation: EvaluationSettings,
    settings: PowerSettings,
    labels: LabelPermutations,
}

/// A metric of one repeat: its gap, and whether it was found.
struct Found {
    gap: Option<f64>,
    by_interval: Option<bool>,
    by_permutation: Option<bool>,
}

impl<'a> Power<'a> {
    /// Prepares the experiment; row `i` of every argument is the same sample, `censoring` is fitted on training data, and the
    /// predictions of the group `level` of `groups` are degraded. `evaluation` are the settings of the evaluation whose power is
    /// asked for; its curves over time are not computed.
    ///
    /// # Errors
    /// Those of [`PowerSettings::validate`] and [`EvaluationSettings::validate`]; [`MetricError::LengthMismatch`] if the arguments
    /// differ in length; [`MetricError::InvalidSetting`] if there is no such level or it has no sample, if there is no other
    /// group, or if the evaluation has neither replicates nor permutations.
    pub fn new(
        (subjects, outcomes): (&'a [SubjectId], &'a Outcomes),
        (curves, censoring): (&'a SurvivalCurves, &'a CensoringCurve),
        (groups, level): (&'a Groups, &str),
        evaluation: &EvaluationSettings,
        settings: &PowerSettings,
    ) -> Result<Self, MetricError> {
        settings.validate()?;
        let evaluation = EvaluationSettings { over_time: 0, ..evaluation.clone() };
        let checked =
            Input { subjects, outcomes, competing: None, groups: std::slice::from_ref(groups), settings: &evaluation };
        checked.check()?;
        curves.check_rows(outcomes.n())?;
        let invalid = |setting, value: &str, expected| {
            Err(MetricError::InvalidSetting { setting, value: value.to_owned(), expected })
        };
        let Some(group) = groups.ids().zip(groups.levels()).find(|(_, name)| *name == level).map(|(id, _)| id) else {
            return invalid("level", level, "a level of the attribute");
        };
        let size = |id: GroupId| groups.membership().iter().filter(|of| **of == Some(id)).count();
        if size(group) == 0 {
            return invalid("level", level, "a level with samples");
        }
        if groups.ids().all(|id| id == group || size(id) == 0) {
            return invalid("attribute", groups.attribute(), "an attribute with two groups");
        }
        if evaluation.replicates == 0 && evaluation.permutations == 0 {
            return invalid("replicates", "0", "replicates or permutations of the evaluation");
        }
        let seed = stream(settings.seed, "power/labels", &[]).next_u64();
        let labels = LabelPermutations::new(subjects, groups.membership(), None, settings.repeats, seed)?;
        let settings = settings.clone();
        Ok(Self { subjects, outcomes, curves, censoring, groups, level: group, evaluation, settings, labels })
    }

    /// The shares of the settings.
    pub fn shares(&self) -> &[f64] {
        &self.settings.shares
    }

    /// Every metric at one share, in the order of the evaluation; repeats in parallel. The result does not depend on the number of
    /// threads. Cost: an evaluation per repeat.
    ///
    /// # Errors
    /// Those of [`evaluate`](crate::evaluate).
    pub fn at(&self, share: f64) -> Result<Vec<(String, String, PowerAt)>, MetricError> {
        let of_repeat = |repeat: usize| self.repeat(share, repeat);
        let found: Vec<Vec<(String, String, Found)>> = parallel::try_map(0..self.settings.repeats, of_repeat)?;
        let Some(first) = found.first() else { return Ok(vec![]) };
        let of_metric = |(metric, (name, label, _)): (usize, &(String, String, Found))| {
            let all = || found.iter().map(move |of_repeat| &of_repeat[metric].2);
            let gaps: Vec<f64> = all().filter_map(|found| found.gap).collect();
            let mean_gap = (!gaps.is_empty()).then(|| gaps.iter().sum::<f64>() / gaps.len() as f64);
            let rate = |is_done: bool, of: fn(&Found) -> Option<bool>| {
                if is_done { Rate::of(all().map(of)) } else { Ok(None) }
            };
            let by_interval = rate(self.evaluation.replicates > 0, |found| found.by_interval)?;
            let by_permutation = rate(self.evaluation.permutations > 0, |found| found.by_permutation)?;
            Ok((name.clone(), label.clone(), PowerAt { share, mean_gap, by_interval, by_permutation }))
        };
        first.iter().enumerate().map(of_metric).collect()
    }

    /// The power curves of what [`at`](Self::at) returned at the shares, in ascending order.
    pub fn curves(&self, at: &[Vec<(String, String, PowerAt)>]) -> Vec<MetricPower> {
        let Some(first) = at.first() else { return vec![] };
        let of_metric = |(metric, (name, label, _)): (usize, &(String, String, PowerAt))| {
            let shares: Vec<PowerAt> = at.iter().map(|of_share| of_share[metric].2.clone()).collect();
            let smallest = |of: fn(&PowerAt) -> Option<Rate>| {
                let is_found = |at: &&PowerAt| of(at).is_some_and(|rate| rate.rate >= self.settings.target);
                shares.iter().rev().take_while(is_found).last().map(|at| at.share)
            };
            MetricPower {
                name: name.clone(),
                label: label.clone(),
                smallest_by_interval: smallest(|at| at.by_interval),
                smallest_by_permutation: smallest(|at| at.by_permutation),
                shares,
            }
        };
        first.iter().enumerate().map(of_metric).collect()
    }

    fn repeat(&self, share: f64, repeat: usize) -> Result<Vec<(String, String, Found)>, MetricError> {
        let mut rng = stream(self.settings.seed, "power", &[share.to_bits(), repeat as u64]);
        let labels = self.labels.labels(repeat);
        let groups = [Groups::new(self.groups.attribute(), self.groups.levels().to_vec(), labels)?];
        let rows = groups[0].rows(self.level);
        let drawn: Vec<usize> = rows.into_iter().filter(|_| rng.random::<f64>() < share).collect();
        let mut givers = drawn.clone();
        givers.shuffle(&mut rng);
        let mut index: Vec<usize> = (0..self.outcomes.n()).collect();
        for (row, giver) in drawn.iter().zip(&givers) {
            index[*row] = *giver;
        }
        let curves = self.curves.select(&index);
        let settings = EvaluationSettings { seed: rng.next_u64(), ..self.evaluation.clone() };
        let input = Input {
            subjects: self.subjects,
            outcomes: self.outcomes,
            competing: None,
            groups: &groups,
            settings: &settings,
        };
        let chosen = ChosenTimes::of(&input, self.censoring, Covered::by([&curves], settings.reading));
        let predictions = [Predictions { curves: &curves, censoring: self.censoring, times: chosen.times() }];
        each_metric(&input, &predictions, &chosen, true, |metric| {
            let report = metric.report(&input, 0);
            let found = found(&report, settings.level);
            (report.name, report.label, found)
        })
    }
}

/// What the report of a metric says about the gap of its only attribute.
fn found(report: &MetricReport, level: f64) -> Found {
    let attribute = report.attributes.first();
    Found {
        gap: attribute.and_then(|of| of.gap.value),
        by_interval: attribute.and_then(|of| of.gap.lower).map(|lower| lower > 0.0),
        // A p value of exactly 1 - level rejects, up to the rounding of 1 - level.
        by_permutation: attribute
            .and_then(|of| of.gap_by_chance.as_ref())
            .map(|by_chance| by_chance.p_value <= 1.0 - level + 1e-12),
    }
}

#[cfg(test)]
mod tests;
