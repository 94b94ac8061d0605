//! Turns values and their replicates into the entries of a report.

use crate::evaluation::evaluated::{Counted, Evaluated, Input, Sampled, Slice, count_subjects};
use crate::evaluation::report::{
    AttributeReport, Difference, Estimate, GroupComparisons, GroupDifference, GroupReport, MetricDescription,
    MetricReport,
};
use crate::fairness::{Comparison, EquityScaling, GroupValue};
use crate::resampling::unpaired::unpaired_replicates;
use crate::resampling::{Replicated, paired_difference, unpaired_difference};
use crate::statistics::{Adjustment, adjust_p_values};
use crate::{Direction, EvaluationSettings, MetricError};

/// In groups with fewer events, simulated 95 % intervals contained the true value in fewer than 93 of 100 samples (IBS of
/// about 15 events: 83); see `examples/interval_coverage.rs`.
pub const FEW_FOR_INTERVALS: usize = 30;

/// The caution beside every interval of a distance (D-calibration, ICI, ECE ..) and of a difference of two, whose simulated 95 %
/// intervals contained the true value in 84 to 98 of 100 samples, those of integrated calibration with many censored in 66; see
/// `examples/interval_coverage.rs` and the example `honesty` of `fairtte-classical`.
pub const CAUTION_OF_DISTANCES: &str = "intervals of distances are too narrow";

pub(crate) struct Summary<'a> {
    pub(crate) input: &'a Input<'a>,
    pub(crate) evaluated: &'a Evaluated<'a>,
}

impl Summary<'_> {
    pub(crate) fn metric(&self, metric: usize) -> MetricReport {
        let MetricDescription { name, label, convention, direction } = self.evaluated.metrics[metric];
        MetricReport {
            name: name.to_owned(),
            label: label.to_owned(),
            convention: convention.to_owned(),
            higher_is_better: direction == Direction::HigherIsBetter,
            target: self.evaluated.kinds[metric].target,
            no_best: !self.evaluated.kinds[metric].has_best,
            horizon: None,
            threshold: None,
            gap_name: None,
            ratio_name: None,
            overall: self.overall_estimate(metric),
            attributes: adjusted_gaps(
                (0..self.input.groups.len()).map(|attribute| self.attribute(metric, attribute)).collect(),
            ),
        }
    }

    /// A metric of the whole sample.
    pub(crate) fn overall_estimate(&self, metric: usize) -> Estimate {
        self.slice_estimate(&self.evaluated.overall(metric), metric, Some(&self.evaluated.overall))
    }

    /// A metric of one level of an attribute.
    pub(crate) fn group_estimate(&self, metric: usize, attribute: usize, level: usize) -> Estimate {
        let slice = self.evaluated.attributes[attribute].groups[level].value.as_ref().ok();
        self.slice_estimate(&self.evaluated.group(metric, attribute, level), metric, slice)
    }

    fn attribute(&self, metric: usize, attribute: usize) -> AttributeReport {
        let min_events = self.input.settings.min_events;
        let slices = &self.evaluated.attributes[attribute];
        let sampled: Vec<Sampled> =
            (0..slices.groups.len()).map(|level| self.evaluated.group(metric, attribute, level)).collect();
        let groups = slices.groups.iter().zip(&sampled).map(|(group, sampled)| GroupReport {
            level: group.level.clone(),
            estimate: self.slice_estimate(sampled, metric, group.value.as_ref().ok()),
        });
        let few = slices.groups.iter().filter(|group| group.n > 0 && group.n_events < min_events);
        let few_events: Vec<String> = few.map(|group| group.level.clone()).collect();
        let compared = self.comparisons(metric, attribute, min_events);
        let with_all_groups = (!few_events.is_empty()).then(|| Box::new(self.comparisons(metric, attribute, 0)));
        AttributeReport {
            attribute: slices.attribute.clone(),
            n_missing: slices.n_missing,
            groups: groups.collect(),
            few_events,
            gap: compared.gap,
            gap_corrected: self.evaluated.corrected_gap(metric, attribute, min_events),
            gap_by_chance: self.evaluated.gap_by_chance(metric, attribute, min_events, self.input.settings.level),
            worst_group: compared.worst_group,
            worst: compared.worst,
            gap_to_overall: compared.gap_to_overall,
            ratio: compared.ratio,
            ratio_to_overall: compared.ratio_to_overall,
            equity_scaling: compared.equity_scaling,
            equity_scaling_fair_seg: compared.equity_scaling_fair_seg,
            equity_scaling_deviation: Some(compared.equity_scaling_deviation),
            with_all_groups,
            differences: self.differences(&slices.attribute, &sampled, &slices.groups),
        }
    }

    /// `estimate`, which compares the groups of `slices`, with the caution beside its interval.
    pub(super) fn cautioned(&self, metric: usize, estimate: Estimate, slices: &[&Slice]) -> Estimate {
        let counted = self.evaluated.counted;
        let events = |slice: &&Slice| slice.rows.iter().filter(|row| self.input.outcomes.event()[**row]).count();
        let fewest = slices.iter().map(|slice| counted.of(slice.rows.len(), events(slice))).min().unwrap_or(0);
        let is_distance = self.evaluated.kinds[metric].is_distance;
        let caution = estimate.lower.and_then(|_| caution_of_groups(counted, fewest, is_distance));
        Estimate { caution, ..estimate }
    }

    /// The comparisons of the groups with at least `min_events` events.
    fn comparisons(&self, metric: usize, attribute: usize, min_events: usize) -> GroupComparisons {
        let compared: Vec<&Slice> = self.evaluated.defined(metric, attribute, min_events).collect();
        let rows: Vec<usize> = compared.iter().flat_map(|slice| slice.rows.iter().copied()).collect();
        let undefined_times = compared.iter().map(|slice| slice.values[metric].undefined_times).max().unwrap_or(0);
        let settings = self.input.settings;
        let compare = |comparison| {
            let sampled = self.evaluated.comparison(metric, attribute, comparison, min_events);
            let estimate = Estimate { undefined_times, ..self.estimate(&sampled, &rows) };
            let ends = self.evaluated.simultaneous_interval(metric, attribute, comparison, min_events, settings);
            let estimate = match ends.filter(|_| estimate.value.is_some()) {
                Some((lower, upper)) => {
                    Estimate { lower: Some(lower), upper: Some(upper), interval_undefined: None, ..estimate }
                }
                None => estimate,
            };
            self.cautioned(metric, estimate, &compared)
        };
        GroupComparisons {
            gap: compare(Comparison::Gap),
            worst_group: self.evaluated.worst_level(metric, attribute, min_events),
            worst: compare(Comparison::Worst),
            gap_to_overall: compare(Comparison::GapToOverall),
            ratio: compare(Comparison::Ratio),
            ratio_to_overall: compare(Comparison::RatioToOverall),
            equity_scaling: compare(Comparison::EquityScaling(EquityScaling::FairTte)),
            equity_scaling_fair_seg: compare(Comparison::EquityScaling(EquityScaling::FairSeg)),
            equity_scaling_deviation: compare(Comparison::EquityScaling(EquityScaling::FairSegDeviation)),
        }
    }

    /// Only for groups with a value: otherwise the pairs of an intersection with many empty cells would fill the
    /// report. With a reference level, each other group minus the reference.
    fn differences(&self, attribute: &str, groups: &[Sampled], names: &[GroupValue<Slice>]) -> Vec<GroupDifference> {
        let defined: Vec<(&Sampled, &GroupValue<Slice>)> =
            groups.iter().zip(names).filter(|(group, _)| group.value.is_ok()).collect();
        let all = || (0..defined.len()).flat_map(|first| (first + 1..defined.len()).map(move |second| (first, second)));
        let pairs: Vec<(usize, usize)> = match self.input.settings.reference.get(attribute) {
            None => all().collect(),
            Some(reference) => {
                let reference = defined.iter().position(|(_, group)| group.level == *reference);
                let minus =
                    |reference| (0..defined.len()).filter(move |k| *k != reference).map(move |k| (k, reference));
                reference.into_iter().flat_map(minus).collect()
            }
        };
        let difference = |(first, second): (usize, usize)| {
            let ((first, first_group), (second, second_group)) = (defined[first], defined[second]);
            GroupDifference {
                first: first_group.level.clone(),
                second: second_group.level.clone(),
                difference: self.difference(first, second, first_group.n_events.min(second_group.n_events)),
            }
        };
        adjusted(pairs.into_iter().map(difference).collect())
    }

    /// The difference of two groups of which the smaller has `n_events` events: with too few of them neither interval nor p
    /// value means anything.
    fn difference(&self, first: &Sampled, second: &Sampled, n_events: usize) -> Difference {
        let EvaluationSettings { min_events, .. } = *self.input.settings;
        let found = difference(first, second, self.input.settings);
        judged(found, self.evaluated.counted, n_events, min_events)
    }

    /// The estimate of the whole sample or of one group (`None`: of a group without samples).
    fn slice_estimate(&self, sampled: &Sampled, metric: usize, slice: Option<&Slice>) -> Estimate {
        let counts_pairs = self.evaluated.overall.values[metric].n_comparable.is_some();
        let value = slice.map(|slice| &slice.values[metric]);
        Estimate {
            n_comparable: counts_pairs.then(|| value.and_then(|value| value.n_comparable).unwrap_or(0)),
            undefined_times: value.map_or(0, |value| value.undefined_times),
            ..self.estimate(sampled, slice.map_or(&[], |slice| &slice.rows))
        }
    }

    pub(crate) fn estimate(&self, sampled: &Sampled, rows: &[usize]) -> Estimate {
        let (level, method) = (self.input.settings.level, sampled.method(self.input.settings));
        let interval = match &sampled.value {
            Ok(value) if !sampled.replicates.is_empty() => {
                Some(sampled.replicated(*value).and_then(|replicated| replicated.interval(level, method)))
            }
            _ => None,
        };
        let ends = interval.as_ref().and_then(|interval| interval.as_ref().ok());
        // A reflected quantile may lie beyond the smallest distance.
        let within = |end: f64| if sampled.is_distance { end.max(0.0) } else { end };
        let n_events = rows.iter().filter(|&&row| self.input.outcomes.event()[row]).count();
        let counted = self.evaluated.counted;
        Estimate {
            caution: ends.and_then(|_| caution(counted, counted.of(rows.len(), n_events), sampled.is_distance)),
            value: sampled.value.as_ref().ok().copied(),
            undefined: sampled.value.as_ref().err().map(ToString::to_string),
            lower: ends.map(|interval| within(interval.lower)),
            upper: ends.map(|interval| within(interval.upper)),
            interval_undefined: interval.as_ref().and_then(|i| i.as_ref().err()).map(ToString::to_string),
            n: rows.len(),
            n_events,
            n_subjects: count_subjects(self.input.subjects, rows),
            n_comparable: None,
            undefined_replicates: sampled.replicates.iter().filter(|value| value.is_none()).count(),
            partial_replicates: sampled.n_partial,
            undefined_times: 0,
        }
    }
}

/// Why an interval may be too narrow: what simulations of [`FEW_FOR_INTERVALS`] showed.
fn caution(counted: Counted, n: usize, is_distance: bool) -> Option<String> {
    few(counted, n, "").or_else(|| is_distance.then(|| CAUTION_OF_DISTANCES.to_owned()))
}

/// The same of a number that compares groups, of which the smallest has `n` events.
fn caution_of_groups(counted: Counted, n: usize, is_distance: bool) -> Option<String> {
    few(counted, n, " in the smallest group").or_else(|| is_distance.then(|| CAUTION_OF_DISTANCES.to_owned()))
}

fn few(counted: Counted, n: usize, place: &str) -> Option<String> {
    let what = match (counted, n) {
        (Counted::Events, 1) => "event",
        (Counted::Events, _) => "events",
        (Counted::RarerClass, 1) => "sample of the rarer class",
        (Counted::RarerClass, _) => "samples of the rarer class",
        (Counted::Values, 1) => "sample with a value",
        (Counted::Values, _) => "samples with a value",
    };
    let few = n < FEW_FOR_INTERVALS;
    few.then(|| format!("{n} {what}{place}, fewer than {FEW_FOR_INTERVALS}: the interval is too narrow"))
}

/// The differences of one attribute, with p values adjusted for their number.
fn adjusted(mut differences: Vec<GroupDifference>) -> Vec<GroupDifference> {
    holm(differences.iter_mut().filter_map(|pair| to_adjust(&mut pair.difference)));
    differences
}

/// The p value of a difference, if it has one, with the place of the adjusted one.
pub(crate) fn to_adjust(difference: &mut Difference) -> Option<(f64, &mut Option<f64>)> {
    let Difference { p_value, p_holm, .. } = difference;
    Some(((*p_value)?, p_holm))
}

/// The attributes of one metric, with the p values of their gaps adjusted for their number.
fn adjusted_gaps(mut attributes: Vec<AttributeReport>) -> Vec<AttributeReport> {
    holm(attributes.iter_mut().filter_map(|attribute| {
        let by_chance = attribute.gap_by_chance.as_mut()?;
        Some((by_chance.p_value, &mut by_chance.p_holm))
    }));
    attributes
}

/// Writes the adjusted value of every p value to the place beside it; those of a single one stay empty.
pub(crate) fn holm<'a>(family: impl Iterator<Item = (f64, &'a mut Option<f64>)>) {
    let (p_values, places): (Vec<f64>, Vec<_>) = family.unzip();
    if p_values.len() < 2 {
        return;
    }
    // A p value in (0, 1] can always be adjusted.
    let Ok(adjusted) = adjust_p_values(&p_values, Adjustment::Holm) else { return };
    for (place, p) in places.into_iter().zip(adjusted) {
        *place = Some(p);
    }
}

impl Sampled {
    fn replicated(&self, value: f64) -> Result<Replicated<'_>, MetricError> {
        let mut replicated = Replicated::new(value, &self.replicates);
        if let Some(jackknife) = &self.jackknife {
            replicated = replicated.with_jackknife(jackknife.as_ref().map_err(MetricError::clone)?);
        }
        if let Some(nested) = &self.nested {
            replicated = replicated.with_nested(nested.as_ref().map_err(MetricError::clone)?);
        }
        Ok(replicated)
    }
}

/// `found`, a difference of two groups, or of two numbers of one group, of which the smaller has `n` events (or samples of the
/// rarer class): without interval and p value if `n` is below `needed`, otherwise with the caution that belongs to it.
pub(crate) fn judged(found: Difference, counted: Counted, n: usize, needed: usize) -> Difference {
    if found.value.is_none() {
        return found;
    }
    if n < needed {
        let undefined = Some(counted.too_few(n, needed).to_string());
        return Difference { undefined, lower: None, upper: None, p_value: None, caution: None, ..found };
    }
    let few = found.lower.and_then(|_| few(counted, n, ""));
    Difference { caution: few.or(found.caution), ..found }
}

/// Whether two numbers come from the same samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Samples {
    /// Replicate b of both is the same draw.
    Same,
    /// Two cohorts, each resampled by itself.
    Independent,
}

/// The paired difference of two numbers from the same draws.
pub(crate) fn difference(first: &Sampled, second: &Sampled, settings: &EvaluationSettings) -> Difference {
    difference_of(first, second, Samples::Same, settings)
}

/// The difference of two numbers with its interval and p value.
pub(crate) fn difference_of(
    first: &Sampled,
    second: &Sampled,
    samples: Samples,
    settings: &EvaluationSettings,
) -> Difference {
    let value = first.value.clone().and_then(|first| Ok((first, second.value.clone()?)));
    let n = first.replicates.len().min(second.replicates.len());
    let (own, other) = (&first.replicates[..n], &second.replicates[..n]);
    let undefined_replicates = match samples {
        Samples::Same => own.iter().zip(other).filter(|(own, other)| own.is_none() || other.is_none()).count(),
        Samples::Independent => unpaired_replicates(own, other).iter().filter(|value| value.is_none()).count(),
    };
    let mut difference = Difference {
        value: value.as_ref().ok().map(|(first, second)| first - second),
        undefined: value.as_ref().err().map(ToString::to_string),
        undefined_replicates,
        ..Difference::none()
    };
    let Ok((first_value, second_value)) = value else { return difference };
    if n == 0 {
        return difference;
    }
    let (level, method) = (settings.level, first.method(settings));
    let found = first.replicated(first_value).and_then(|first| {
        let second = second.replicated(second_value)?;
        Ok(match samples {
            Samples::Same => {
                let found = paired_difference(&first, &second, level, method)?;
                (found.interval, found.p_value)
            }
            Samples::Independent => {
                let found = unpaired_difference(&first, &second, level, method)?;
                (found.interval, found.p_value)
            }
        })
    });
    match found {
        Ok((interval, p_value)) => {
            (difference.lower, difference.upper) = (Some(interval.lower), Some(interval.upper));
            difference.p_value = p_value;
            difference.caution = first.is_distance.then(|| CAUTION_OF_DISTANCES.to_owned());
        }
        Err(error) => difference.undefined = Some(error.to_string()),
    }
    difference
}
