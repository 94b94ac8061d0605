//! What the gap of an attribute would be if its groups were equal.
//!
//! A gap, the largest minus the smallest of several noisy numbers, is never negative and above 0 also for equal groups.
//! Two things say how much of it is noise.
//!
//! 1. The gap of relabelled groups: the labels of an attribute are exchanged between subjects at random, so that the
//!    groups keep their sizes and differ by chance alone. The p value is the share of relabelled gaps at least as large
//!    as the observed one ([`LabelPermutations`]). It tests that outcomes *and* predictions are distributed equally in
//!    all groups: groups with other event rates and the same value of the metric can be told apart too.
//! 2. The corrected gap: `gap * sqrt(max(0, 1 - N / V))`, V the variance of the group values and N what noise adds to it:
//!    the mean over replicates of the variance of (replicate - value) over the groups. V - N estimates the variance of
//!    the true values without bias; two groups give `sqrt(gap^2 - se^2)`, se the standard error of the difference.
//!
//! Sources: permutation over whole subjects: Winkler et al. (2015), doi:10.1016/j.neuroimage.2015.05.092, with the counts
//! of Phipson & Smyth (2010), doi:10.2202/1544-6115.1585; the variance between groups less that of noise: Lum, Zhang &
//! Bower (2022), De-biasing "bias" measurement, doi:10.1145/3531146.3533105. The step from a variance to the range of
//! the values is ours.

use crate::bias::{LabelPermutations, PermutationTest};
use crate::evaluation::evaluated::{Counted, Evaluated, Input, Sampled};
use crate::evaluation::report::GapByChance;
use crate::fairness::Comparison;
use crate::resampling::Resample;
use crate::resampling::bootstrap::quantile;
use crate::resampling::lanes::LANES;
use crate::{Direction, GroupId, MetricError, SubjectId};

/// The labels of one attribute in the sample and in all permutations. Every group of every permutation is a vector of
/// weights: 1 for the samples in it, 0 for the others.
pub(crate) struct Relabelling {
    membership: Vec<Option<GroupId>>,
    permutations: LabelPermutations,
    /// The levels that are relabelled, ascending.
    levels: Vec<GroupId>,
}

impl Relabelling {
    /// The levels with at least `min-events` events (or what is `counted`); `None` if these are fewer than two.
    fn new(input: &Input<'_>, attribute: usize, counted: Counted) -> Result<Option<Self>, MetricError> {
        let (groups, settings) = (&input.groups[attribute], input.settings);
        let n_counted = |group: GroupId| {
            let rows = groups.rows(group);
            counted.of(rows.len(), rows.iter().filter(|row| input.outcomes.event()[**row]).count())
        };
        let levels: Vec<GroupId> =
            groups.ids().filter(|group| n_counted(*group) >= settings.min_events.max(1)).collect();
        if levels.len() < 2 {
            return Ok(None);
        }
        let kept = |group: &Option<GroupId>| group.filter(|group| levels.contains(group));
        let membership: Vec<Option<GroupId>> = groups.membership().iter().map(kept).collect();
        let samples: Vec<SubjectId>;
        let units = match settings.resample {
            Resample::Subject => input.subjects,
            Resample::Sample => {
                samples = (0..membership.len()).map(|row| SubjectId::new(row.to_string())).collect();
                &samples
            }
        };
        let permutations = LabelPermutations::new(units, &membership, None, settings.permutations, settings.seed)?;
        Ok(Some(Self { membership, permutations, levels }))
    }

    /// Number of weight vectors: the groups of the sample, then those of every permutation.
    pub(crate) fn n_groups(&self) -> usize {
        (1 + self.permutations.n_permutations()) * self.levels.len()
    }

    /// The weights of [`LANES`] groups from `first` on, `[n, LANES]`; 0 beyond the last.
    pub(crate) fn weights_block(&self, first: usize, out: &mut [u16]) {
        out.fill(0);
        let (n_levels, end) = (self.levels.len(), (first + LANES).min(self.n_groups()));
        for labelling in first / n_levels..end.div_ceil(n_levels) {
            // Lane of every level; those outside the block have none.
            let lane = |place: usize| (labelling * n_levels + place).checked_sub(first).filter(|lane| *lane < LANES);
            let last = self.levels[n_levels - 1].index();
            let mut lane_of = vec![None; last + 1];
            self.levels.iter().enumerate().for_each(|(place, level)| lane_of[level.index()] = lane(place));
            for (lanes, label) in out.chunks_exact_mut(LANES).zip(self.labels(labelling)) {
                if let Some(lane) = label.and_then(|label| lane_of[label.index()]) {
                    lanes[lane] = 1;
                }
            }
        }
    }

    /// The labels of the sample (0) or of a permutation (from 1).
    fn labels(&self, labelling: usize) -> Vec<Option<GroupId>> {
        labelling.checked_sub(1).map_or_else(|| self.membership.clone(), |number| self.permutations.labels(number))
    }
}

/// The metrics of the relabelled groups of one attribute.
pub(crate) struct RelabelledValues {
    levels: Vec<GroupId>,
    /// By labelling, level and metric; the first labelling is that of the sample.
    values: Vec<Vec<Vec<Option<f64>>>>,
}

impl RelabelledValues {
    /// For every attribute, from the metrics of all its weight vectors; `None` for fewer than two groups to relabel.
    /// Empty if the settings ask for no permutation.
    pub(crate) fn of_attributes(
        input: &Input<'_>,
        counted: Counted,
        of_weights: impl Fn(&Relabelling) -> Result<Vec<Vec<Option<f64>>>, MetricError>,
    ) -> Result<Vec<Option<Self>>, MetricError> {
        if input.settings.permutations == 0 {
            return Ok(vec![]);
        }
        let of_attribute = |attribute: usize| {
            let Some(relabelling) = Relabelling::new(input, attribute, counted)? else { return Ok(None) };
            let found = of_weights(&relabelling)?;
            let values = found.chunks(relabelling.levels.len()).map(<[_]>::to_vec).collect();
            Ok(Some(Self { levels: relabelling.levels, values }))
        };
        (0..input.groups.len()).map(of_attribute).collect()
    }

    /// The gap of `metric` between `levels` in every labelling; `None` where one of them has no value.
    fn gaps(&self, metric: usize, levels: &[usize]) -> Option<Vec<Option<f64>>> {
        let places = levels.iter().map(|level| self.levels.iter().position(|own| own.index() == *level));
        let places = places.collect::<Option<Vec<usize>>>()?;
        let gap = |values: &Vec<Vec<Option<f64>>>| {
            let values = places.iter().map(|place| values[*place][metric]).collect::<Option<Vec<f64>>>()?;
            Comparison::Gap.of(&values, 0.0, Direction::HigherIsBetter)
        };
        Some(self.values.iter().map(gap).collect())
    }
}

impl Evaluated<'_> {
    /// The gaps of relabelled groups; `None` without permutations or without two groups to compare.
    pub(crate) fn gap_by_chance(
        &self,
        metric: usize,
        attribute: usize,
        min_events: usize,
        level: f64,
    ) -> Option<GapByChance> {
        let relabelled = self.by_chance.get(attribute)?.as_ref()?;
        let compared = self.compared(metric, attribute, min_events);
        let levels = compared.groups.iter().enumerate().filter(|(_, group)| group.value.is_ok());
        let gaps = relabelled.gaps(metric, &levels.map(|(level, _)| level).collect::<Vec<_>>())?;
        let (observed, gaps) = gaps.split_first()?;
        let test = PermutationTest::new((*observed)?, gaps).ok()?;
        let mut defined: Vec<f64> = gaps.iter().flatten().copied().collect();
        defined.sort_by(f64::total_cmp);
        Some(GapByChance {
            mean: test.null_mean,
            upper: quantile(&defined, level),
            p_value: test.p_value,
            p_holm: None,
            n_permutations: test.n_permutations,
            undefined_permutations: test.n_undefined,
        })
    }

    /// The gap less what noise adds to it; `None` without replicates or without a gap.
    pub(crate) fn corrected_gap(&self, metric: usize, attribute: usize, min_events: usize) -> Option<f64> {
        let compared = self.compared(metric, attribute, min_events);
        let levels = (0..compared.groups.len()).filter(|level| compared.groups[*level].value.is_ok());
        let groups: Vec<_> = levels.map(|level| self.group(metric, attribute, level)).collect();
        let values = groups.iter().map(|group| group.value.as_ref().ok().copied()).collect::<Option<Vec<f64>>>()?;
        let deviations = |replicate: usize| -> Option<Vec<f64>> {
            let deviation = |(group, value): (&Sampled, &f64)| Some(group.replicates[replicate]? - value);
            groups.iter().zip(&values).map(deviation).collect()
        };
        let n_replicates = groups.first()?.replicates.len();
        let noise: Vec<f64> = (0..n_replicates).filter_map(|replicate| variance(&deviations(replicate)?)).collect();
        let (gap, found) = (Comparison::Gap.of(&values, 0.0, Direction::HigherIsBetter)?, variance(&values)?);
        if noise.is_empty() || found <= 0.0 {
            return (!noise.is_empty()).then_some(0.0);
        }
        let noise = noise.iter().sum::<f64>() / noise.len() as f64;
        Some(gap * (1.0 - noise / found).max(0.0).sqrt())
    }
}

/// Variance with the divisor n - 1; `None` of fewer than two values.
fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    Some(values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

#[cfg(test)]
mod tests;
