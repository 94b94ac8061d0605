//! The block of a choice with the results of its chosen models in the test part.

use std::collections::{BTreeMap, BTreeSet};

use fairtte_metrics::evaluation::{HorizonReport, SampledMetric, SampledMetrics, SampledValue};
use fairtte_metrics::fairness::Comparison;
use fairtte_metrics::{Direction, MetricError};

use super::candidates::Candidate;
use super::change::{adjust, change};
use super::choose::{Plan, few_events, is_brier, of_attribute};
use super::rows::Row;
use super::verdict::{Block, Chosen, Contrast, GroupSize, OfSeed, OverSeeds, Role, Scores, Spread, Standing, Weighted};
use crate::CliError;

/// A block with the results of the test part.
pub(super) struct Worth<'a> {
    pub(super) all: &'a [Candidate],
    pub(super) samples: &'a BTreeMap<usize, SampledMetrics>,
    pub(super) weighted: &'a BTreeMap<usize, HorizonReport>,
    pub(super) level: f64,
    pub(super) plan: Plan<'a>,
}

/// The values of a row in all draws.
struct Drawn {
    metric: SampledValue,
    difference: Option<SampledValue>,
}

impl Worth<'_> {
    pub(super) fn block(mut self) -> Result<Block, CliError> {
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
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_of_the_groups_that_have_a_value() {
        let of = |values: Vec<Result<f64, MetricError>>| gap(values.into_iter(), true);
        assert_eq!(of(vec![Ok(0.5), Err(MetricError::NoSamples), Ok(0.75), Ok(0.625)]), Some(0.25));
        assert_eq!(of(vec![Err(MetricError::NoSamples)]), None);
    }
}
