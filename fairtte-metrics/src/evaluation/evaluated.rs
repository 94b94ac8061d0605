//! The numbers behind a report: every metric of the whole sample and of every group, with its bootstrap replicates.

use std::collections::HashSet;

use crate::evaluation::chance::RelabelledValues;
use crate::evaluation::goal::Goal;
use crate::evaluation::metrics::Metric;
use crate::evaluation::replicates::Cells;
use crate::evaluation::report::MetricDescription;
use crate::evaluation::resampled::{Resampled, Series};
use crate::fairness::{Comparison, GroupValue, PerGroup};
use crate::resampling::{Bootstrap, IntervalMethod, JackknifeValues, NestedValues, Stratify};
use crate::{
    CensoringCurve, EvaluationSettings, GroupId, Groups, MetricError, Outcomes, Reading, SubjectId, SurvivalCurves,
};

/// What is evaluated, apart from predictions and metrics.
pub(crate) struct Input<'a> {
    pub(crate) subjects: &'a [SubjectId],
    pub(crate) outcomes: &'a Outcomes,
    /// Which samples had an event of another cause, where one of several causes is evaluated.
    pub(crate) competing: Option<&'a [bool]>,
    pub(crate) groups: &'a [Groups],
    pub(crate) settings: &'a EvaluationSettings,
}

/// The predictions of one model and what AUC and Brier score need in addition.
pub(crate) struct Predictions<'a> {
    pub(crate) curves: &'a SurvivalCurves,
    pub(crate) censoring: &'a CensoringCurve,
    /// The evaluation times, or why there are none.
    pub(crate) times: Result<&'a [f64], MetricError>,
}

/// The predicted risks of all samples at the horizon, read from the curves once.
pub(crate) struct AtHorizon {
    pub(crate) time: f64,
    risk: Vec<f64>,
}

impl AtHorizon {
    pub(crate) fn new(curves: &SurvivalCurves, reading: Reading, time: f64) -> Self {
        Self { time, risk: curves.risk_at(time, reading) }
    }

    /// The risks of all rows.
    pub(crate) fn risk(&self) -> &[f64] {
        &self.risk
    }

    /// The risks of some rows.
    pub(crate) fn risk_of(&self, rows: &[usize]) -> Vec<f64> {
        rows.iter().map(|row| self.risk[*row]).collect()
    }

    /// Smallest and largest risk of all samples.
    pub(crate) fn range(&self) -> (f64, f64) {
        self.risk.iter().fold((1.0, 0.0), |(low, high): (f64, f64), &risk| (low.min(risk), high.max(risk)))
    }
}

impl Input<'_> {
    pub(crate) fn check(&self) -> Result<(), MetricError> {
        self.settings.validate()?;
        let n = self.outcomes.n();
        if self.subjects.len() != n {
            let what = "subjects";
            return Err(MetricError::LengthMismatch { what, found: self.subjects.len(), expected: n });
        }
        if n == 0 {
            return Err(MetricError::NoSamples);
        }
        if let Some(found) = self.groups.iter().map(Groups::n).find(|found| *found != n) {
            return Err(MetricError::LengthMismatch { what: "group memberships", found, expected: n });
        }
        self.check_reference()
    }

    /// Which of some rows had an event of another cause.
    pub(crate) fn competing_of(&self, rows: &[usize]) -> Option<Vec<bool>> {
        self.competing.map(|competing| rows.iter().map(|row| competing[*row]).collect())
    }

    /// The rows of the whole sample (no name), then of every level of every attribute, by attribute and level.
    pub(crate) fn slices(&self) -> impl Iterator<Item = (Option<(&str, &str)>, Vec<usize>)> {
        let of_groups = self.groups.iter().flat_map(|groups| {
            let name = |group: GroupId| Some((groups.attribute(), groups.levels()[group.index()].as_str()));
            groups.ids().map(move |group| (name(group), groups.rows(group)))
        });
        std::iter::once((None, (0..self.outcomes.n()).collect())).chain(of_groups)
    }

    /// Every reference is a level of an attribute that is evaluated.
    fn check_reference(&self) -> Result<(), MetricError> {
        for (attribute, level) in &self.settings.reference {
            let groups = self.groups.iter().find(|groups| groups.attribute() == attribute);
            let (what, known) = match groups {
                Some(groups) if groups.levels().contains(level) => continue,
                Some(groups) => ("a level of the attribute: ", groups.levels().join(", ")),
                None => {
                    let attributes: Vec<&str> = self.groups.iter().map(Groups::attribute).collect();
                    ("one of the attributes evaluated: ", attributes.join(", "))
                }
            };
            let (attribute, level) = (attribute.clone(), level.clone());
            return Err(MetricError::UnknownReference { attribute, level, expected: format!("{what}{known}") });
        }
        Ok(())
    }

    /// The same draws for every model: they depend on subjects, strata and seed only.
    pub(crate) fn bootstrap(&self) -> Result<Bootstrap, MetricError> {
        let EvaluationSettings { resample, replicates, seed, stratify, .. } = self.settings;
        if *stratify == Stratify::None {
            return Ok(Bootstrap::new(self.subjects, *resample, *replicates, *seed));
        }
        let strata = stratify.strata(self.outcomes, self.groups)?;
        Bootstrap::stratified(self.subjects, *resample, &strata, *replicates, *seed)
    }
}

/// What the values of a metric mean; by default the highest or lowest one is the best, as its direction says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// The best value, if neither the highest nor the lowest is.
    pub(crate) target: Option<f64>,
    /// See [`Metric::is_distance`].
    pub(crate) is_distance: bool,
    /// Whether any value is better than another.
    pub(crate) has_best: bool,
}

/// What `min-events` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Observed events.
    #[default]
    Events,
    /// Samples of the rarer class, where events are positive samples: metrics of a class need both.
    RarerClass,
    /// Samples with a value of the metric, which stand as events.
    Values,
}

impl Counted {
    /// How many there are among `n` samples with `n_events` events.
    pub(crate) fn of(self, n: usize, n_events: usize) -> usize {
        match self {
            Self::Events | Self::Values => n_events,
            Self::RarerClass => n_events.min(n - n_events),
        }
    }

    /// Why a group with `n` of them, fewer than `needed`, is not compared.
    pub(crate) fn too_few(self, n: usize, needed: usize) -> MetricError {
        match self {
            Self::Events => MetricError::FewEvents { n_events: n, needed },
            Self::RarerClass => MetricError::FewOfClass { n, needed },
            Self::Values => MetricError::FewValues { n, needed },
        }
    }
}

impl Default for Kind {
    fn default() -> Self {
        Self { target: None, is_distance: false, has_best: true }
    }
}

impl Kind {
    pub(crate) fn of(metric: &dyn Metric) -> Self {
        Self { target: metric.target(), is_distance: metric.is_distance(), has_best: metric.has_best() }
    }
}

/// One model, evaluated.
pub(crate) struct Evaluated<'a> {
    pub(crate) metrics: &'a [MetricDescription<'a>],
    /// By metric.
    pub(crate) kinds: Vec<Kind>,
    /// The groups of `attributes` have this number as their events.
    pub(crate) counted: Counted,
    pub(crate) overall: Slice,
    pub(crate) attributes: Vec<PerGroup<Slice>>,
    pub(crate) cells: Cells,
    pub(crate) resampled: Resampled,
    /// By attribute, `None` for fewer than two groups to relabel; empty if groups were not relabelled.
    pub(crate) by_chance: Vec<Option<RelabelledValues>>,
}

/// The whole sample or one group.
pub(crate) struct Slice {
    pub(crate) rows: Vec<usize>,
    /// One per metric.
    pub(crate) values: Vec<SliceValue>,
}

/// A metric of a slice.
pub(crate) struct SliceValue {
    pub(crate) value: Result<f64, MetricError>,
    /// Comparable pairs, of a metric that counts them.
    pub(crate) n_comparable: Option<u64>,
    /// Evaluation times without a value, of a metric that is averaged over the others.
    pub(crate) undefined_times: usize,
}

/// A value with the values that its interval is computed from.
#[derive(Clone)]
pub(crate) struct Sampled {
    pub(crate) value: Result<f64, MetricError>,
    pub(crate) replicates: Vec<Option<f64>>,
    pub(crate) jackknife: Option<Result<JackknifeValues, MetricError>>,
    pub(crate) nested: Option<Result<NestedValues, MetricError>>,
    /// Replicates that average over fewer evaluation times than the value; of groups that are compared, the most.
    pub(crate) n_partial: usize,
    /// Whether the metric is a distance.
    pub(crate) is_distance: bool,
}

impl Sampled {
    /// How its interval is computed, and that of its difference from a number of the same metric.
    pub(crate) fn method(&self, settings: &EvaluationSettings) -> IntervalMethod {
        match settings.interval {
            IntervalMethod::Percentile if self.is_distance => IntervalMethod::Basic,
            method => method,
        }
    }
}

impl Sampled {
    /// This number minus another one of the same draws and metric; undefined wherever one of the two is.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let value = self.value.clone().and_then(|value| Ok(value - other.value.clone()?));
        let pairs = self.replicates.iter().zip(&other.replicates);
        let both = self.jackknife.as_ref().zip(other.jackknife.as_ref());
        let jackknife = both.map(|(own, other)| {
            own.as_ref().map_err(MetricError::clone)?.minus(other.as_ref().map_err(MetricError::clone)?)
        });
        Self {
            value,
            replicates: pairs.map(|(own, other)| Some((*own)? - (*other)?)).collect(),
            jackknife,
            nested: self.nested_with(other, |own, other| own - other),
            n_partial: self.n_partial.max(other.n_partial),
            is_distance: self.is_distance,
        }
    }
}

impl Sampled {
    /// The leave-out values of a number that is computed from this one and another of the same draws.
    pub(crate) fn nested_with(
        &self,
        other: &Self,
        of: impl Fn(f64, f64) -> f64,
    ) -> Option<Result<NestedValues, MetricError>> {
        let both = self.nested.as_ref().zip(other.nested.as_ref());
        both.map(|(own, other)| {
            own.as_ref().map_err(MetricError::clone)?.with(other.as_ref().map_err(MetricError::clone)?, of)
        })
    }
}

impl Evaluated<'_> {
    /// A metric of the whole sample.
    pub(crate) fn overall(&self, metric: usize) -> Sampled {
        self.sampled(0, metric, self.overall.values[metric].value.clone())
    }

    /// A metric of one level of an attribute; `value` is that of the group.
    pub(crate) fn group(&self, metric: usize, attribute: usize, level: usize) -> Sampled {
        let value = &self.attributes[attribute].groups[level].value;
        let value = value.as_ref().map_err(MetricError::clone).and_then(|slice| slice.values[metric].value.clone());
        self.sampled(self.cells.slice(attribute, level), metric, value)
    }

    fn sampled(&self, slice: usize, metric: usize, value: Result<f64, MetricError>) -> Sampled {
        let jackknife = self.resampled.jackknife.as_ref();
        Sampled {
            value,
            replicates: self.resampled.replicates[slice][metric].clone(),
            jackknife: jackknife.map(|(jackknife, series)| jackknife.collect(series[slice][metric].clone())),
            nested: self.resampled.nested.as_ref().map(|nested| nested.collect(|series| series[slice][metric].clone())),
            n_partial: self.n_partial(metric, &[slice]),
            is_distance: self.kinds[metric].is_distance,
        }
    }

    fn n_partial(&self, metric: usize, slices: &[usize]) -> usize {
        slices.iter().map(|&slice| self.resampled.n_partial[slice][metric]).max().unwrap_or(0)
    }

    /// The groups of an attribute in one metric.
    pub(crate) fn per_group(&self, metric: usize, attribute: usize) -> PerGroup<f64> {
        self.attributes[attribute].map(|slice| slice.values[metric].value.clone())
    }

    /// The groups of an attribute in one metric, those with fewer events than `min_events` without a value.
    pub(crate) fn compared(&self, metric: usize, attribute: usize, min_events: usize) -> PerGroup<f64> {
        let mut groups = self.per_group(metric, attribute);
        for group in groups.groups.iter_mut().filter(|group| group.n_events < min_events) {
            group.value = Err(self.counted.too_few(group.n_events, min_events));
        }
        groups
    }

    /// A comparison of the groups of an attribute with at least `min_events` events. A replicate counts if it defines every
    /// group that the sample defines, and the overall value if that is compared with.
    pub(crate) fn comparison(
        &self,
        metric: usize,
        attribute: usize,
        comparison: Comparison,
        min_events: usize,
    ) -> Sampled {
        self.comparison_of(metric, attribute, comparison, &self.compared(metric, attribute, min_events))
    }

    /// The same of the groups of the attribute that have a value in `groups`.
    pub(crate) fn comparison_of(
        &self,
        metric: usize,
        attribute: usize,
        comparison: Comparison,
        groups: &PerGroup<f64>,
    ) -> Sampled {
        let goal = self.goal(metric);
        let overall = match &self.overall.values[metric].value {
            Err(reason) if comparison.needs_overall() => {
                Err(MetricError::OverallUndefined { reason: Box::new(reason.clone()) })
            }
            overall => Ok(overall.clone().unwrap_or(0.0)),
        };
        let value = overall.and_then(|overall| goal.compare(groups, comparison, overall));
        let levels = (0..groups.groups.len()).filter(|&level| groups.groups[level].value.is_ok());
        let slices: Vec<usize> = levels.map(|level| self.cells.slice(attribute, level)).collect();
        let in_series = |series: &Series| -> Vec<Option<f64>> {
            let in_replicate = |replicate: usize| {
                let values: Option<Vec<f64>> = slices.iter().map(|&slice| series[slice][metric][replicate]).collect();
                let overall = if comparison.needs_overall() { series[0][metric][replicate]? } else { 0.0 };
                goal.of(comparison, &values?, overall)
            };
            (0..series[0][metric].len()).map(in_replicate).collect()
        };
        Sampled {
            value,
            replicates: in_series(&self.resampled.replicates),
            jackknife: self
                .resampled
                .jackknife
                .as_ref()
                .map(|(jackknife, series)| jackknife.collect(in_series(series))),
            nested: self.resampled.nested.as_ref().map(|nested| nested.collect(in_series)),
            n_partial: self.n_partial(metric, &slices),
            is_distance: self.kinds[metric].is_distance,
        }
    }

    fn goal(&self, metric: usize) -> Goal {
        let (direction, Kind { target, has_best, .. }) = (self.metrics[metric].direction, self.kinds[metric]);
        Goal { direction, target, has_best }
    }

    /// The level with the worst value among the groups with at least `min_events` events.
    pub(crate) fn worst_level(&self, metric: usize, attribute: usize, min_events: usize) -> Option<String> {
        let goal = self.goal(metric);
        let groups = self.compared(metric, attribute, min_events);
        let worst = goal.compare(&groups, Comparison::Worst, 0.0).ok()?;
        let is_worst = |group: &&GroupValue<f64>| group.value.as_ref().is_ok_and(|v| (v - worst).abs() <= 0.0);
        groups.groups.iter().find(is_worst).map(|group| group.level.clone())
    }

    /// The groups that have a value and at least `min_events` events.
    pub(crate) fn defined(&self, metric: usize, attribute: usize, min_events: usize) -> impl Iterator<Item = &Slice> {
        let groups = self.attributes[attribute].groups.iter().filter(move |group| group.n_events >= min_events);
        let slices = groups.filter_map(|group| group.value.as_ref().ok());
        slices.filter(move |slice| slice.values[metric].value.is_ok())
    }
}

pub(crate) fn count_subjects(subjects: &[SubjectId], rows: &[usize]) -> usize {
    rows.iter().map(|&row| &subjects[row]).collect::<HashSet<_>>().len()
}
