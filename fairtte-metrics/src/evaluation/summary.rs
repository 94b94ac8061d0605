//! Turns values and their replicates into the entries of a report.

use crate::evaluation::evaluate::{METRICS, Metric};
use crate::evaluation::evaluated::{Evaluated, Input, Sampled, Slice, count_subjects};
use crate::evaluation::report::{AttributeReport, Difference, Estimate, GroupDifference, GroupReport, MetricReport};
use crate::{Comparison, Direction, EquityScaling, EvaluationSettings, MetricError, Replicated, paired_difference};

pub(crate) struct Summary<'a> {
    pub(crate) input: &'a Input<'a>,
    pub(crate) evaluated: &'a Evaluated,
}

impl Summary<'_> {
    pub(crate) fn metric(&self, metric: usize) -> MetricReport {
        let Metric { name, label, convention, direction } = METRICS[metric];
        let overall = self.slice_estimate(&self.evaluated.overall(metric), metric, Some(&self.evaluated.overall));
        MetricReport {
            name: name.to_owned(),
            label: label.to_owned(),
            convention: convention.to_owned(),
            higher_is_better: direction == Direction::HigherIsBetter,
            overall,
            attributes: (0..self.input.groups.len()).map(|attribute| self.attribute(metric, attribute)).collect(),
        }
    }

    fn attribute(&self, metric: usize, attribute: usize) -> AttributeReport {
        let direction = METRICS[metric].direction;
        let slices = &self.evaluated.attributes[attribute];
        let values = self.evaluated.per_group(metric, attribute);
        let sampled: Vec<Sampled> =
            (0..slices.groups.len()).map(|level| self.evaluated.group(metric, attribute, level)).collect();
        let groups = slices.groups.iter().zip(&sampled).map(|(group, sampled)| GroupReport {
            level: group.level.clone(),
            estimate: self.slice_estimate(sampled, metric, group.value.as_ref().ok()),
        });
        let rows = self.evaluated.rows_of_defined(metric, attribute);
        let compare =
            |comparison| self.estimate(&self.evaluated.comparison(metric, attribute, comparison, direction), &rows);
        AttributeReport {
            attribute: slices.attribute.clone(),
            n_missing: slices.n_missing,
            groups: groups.collect(),
            gap: compare(Comparison::Gap),
            worst_group: values.worst(direction).ok().map(|(group, _)| group.level.clone()),
            worst: compare(Comparison::Worst),
            gap_to_overall: compare(Comparison::GapToOverall),
            ratio: compare(Comparison::Ratio),
            ratio_to_overall: compare(Comparison::RatioToOverall),
            equity_scaling: compare(Comparison::EquityScaling(EquityScaling::FairTte)),
            equity_scaling_fair_seg: compare(Comparison::EquityScaling(EquityScaling::FairSeg)),
            differences: self
                .differences(&sampled, &values.groups.iter().map(|g| g.level.as_str()).collect::<Vec<_>>()),
        }
    }

    fn differences(&self, groups: &[Sampled], levels: &[&str]) -> Vec<GroupDifference> {
        let pairs = (0..groups.len()).flat_map(|first| (first + 1..groups.len()).map(move |second| (first, second)));
        let difference = |(first, second): (usize, usize)| GroupDifference {
            first: levels[first].to_owned(),
            second: levels[second].to_owned(),
            difference: difference(&groups[first], &groups[second], self.input.settings),
        };
        pairs.map(difference).collect()
    }

    /// The estimate of the whole sample or of one group (`None`: of a group without samples).
    fn slice_estimate(&self, sampled: &Sampled, metric: usize, slice: Option<&Slice>) -> Estimate {
        let mut estimate = self.estimate(sampled, slice.map_or(&[], |slice| &slice.rows));
        match METRICS[metric].name {
            // Only the AUC is averaged over the times that define it.
            "auc_td" => estimate.undefined_times = slice.map_or(0, |slice| slice.undefined_times),
            "ibs" => {}
            _ => estimate.n_comparable = Some(slice.map_or(0, |slice| slice.n_comparable)),
        }
        estimate
    }

    fn estimate(&self, sampled: &Sampled, rows: &[usize]) -> Estimate {
        let EvaluationSettings { level, interval: method, .. } = *self.input.settings;
        let interval = match &sampled.value {
            Ok(value) if !sampled.replicates.is_empty() => {
                Some(sampled.replicated(*value).and_then(|replicated| replicated.interval(level, method)))
            }
            _ => None,
        };
        let ends = interval.as_ref().and_then(|interval| interval.as_ref().ok());
        Estimate {
            value: sampled.value.as_ref().ok().copied(),
            undefined: sampled.value.as_ref().err().map(ToString::to_string),
            lower: ends.map(|interval| interval.lower),
            upper: ends.map(|interval| interval.upper),
            interval_undefined: interval.as_ref().and_then(|i| i.as_ref().err()).map(ToString::to_string),
            n: rows.len(),
            n_events: rows.iter().filter(|&&row| self.input.outcomes.event()[row]).count(),
            n_subjects: count_subjects(self.input.subjects, rows),
            n_comparable: None,
            undefined_replicates: sampled.replicates.iter().filter(|value| value.is_none()).count(),
            partial_replicates: sampled.n_partial,
            undefined_times: 0,
        }
    }
}

impl Sampled {
    fn replicated(&self, value: f64) -> Result<Replicated<'_>, MetricError> {
        let replicated = Replicated::new(value, &self.replicates);
        match &self.jackknife {
            None => Ok(replicated),
            Some(jackknife) => Ok(replicated.with_jackknife(jackknife.as_ref().map_err(MetricError::clone)?)),
        }
    }
}

/// The paired difference of two numbers from the same draws.
pub(crate) fn difference(first: &Sampled, second: &Sampled, settings: &EvaluationSettings) -> Difference {
    let value = first.value.clone().and_then(|first| Ok((first, second.value.clone()?)));
    let undefined = |sampled: &Sampled, replicate: usize| sampled.replicates[replicate].is_none();
    let n = first.replicates.len().min(second.replicates.len());
    let mut difference = Difference {
        value: value.as_ref().ok().map(|(first, second)| first - second),
        undefined: value.as_ref().err().map(ToString::to_string),
        lower: None,
        upper: None,
        p_value: None,
        undefined_replicates: (0..n).filter(|&k| undefined(first, k) || undefined(second, k)).count(),
    };
    let Ok((first_value, second_value)) = value else { return difference };
    if n == 0 {
        return difference;
    }
    let paired = first.replicated(first_value).and_then(|first| {
        paired_difference(&first, &second.replicated(second_value)?, settings.level, settings.interval)
    });
    match paired {
        Ok(paired) => {
            (difference.lower, difference.upper) = (Some(paired.interval.lower), Some(paired.interval.upper));
            difference.p_value = Some(paired.p_value);
        }
        Err(error) => difference.undefined = Some(error.to_string()),
    }
    difference
}
