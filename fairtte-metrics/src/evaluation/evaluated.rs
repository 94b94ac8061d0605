//! The numbers behind a report: every metric of the whole sample and of every group, with its bootstrap replicates.

use std::collections::HashSet;

use rayon::prelude::*;

use crate::evaluation::any_metric::RowMetric;
use crate::evaluation::evaluate::METRICS;
use crate::evaluation::goal::Goal;
use crate::evaluation::metrics::{OfRows, PreparedMetric, RequestedMetric, ScoredSample};
use crate::evaluation::report::MetricDescription;
use crate::fairness::{Comparison, GroupValue, PerGroup};
use crate::finite::finite;
use crate::ids::to_u32;
use crate::rank::concordance_bins::BinPlan;
use crate::rank::{AucTd, PreparedAucTd, TiedPredictions, concordance_td};
use crate::resampling::replicates::{AUC, Cells, IBS, LANES, N_METRICS, Sorted, SortedAuc};
use crate::resampling::{Bootstrap, IntervalMethod, Jackknife, JackknifeValues, Stratify};
use crate::scores::PreparedBrier;
use crate::{CensoringCurve, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves};

/// What is evaluated, apart from predictions and metrics.
pub(crate) struct Input<'a> {
    pub(crate) subjects: &'a [SubjectId],
    pub(crate) outcomes: &'a Outcomes,
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

impl Input<'_> {
    pub(crate) fn check(&self) -> Result<(), MetricError> {
        self.settings.validate()?;
        let n = self.outcomes.n();
        if self.subjects.len() != n {
            let what = "subjects";
            return Err(MetricError::LengthMismatch { what, found: self.subjects.len(), expected: n });
        }
        if n == 0 { Err(MetricError::NoSamples) } else { Ok(()) }
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

/// The values in all replicates, by slice and metric: the whole sample first, then every level of every attribute.
type Series = Vec<Vec<Vec<Option<f64>>>>;

/// The source of the sample weights.
#[derive(Clone, Copy)]
enum Draws<'a> {
    Bootstrap(&'a Bootstrap),
    Jackknife(&'a Jackknife),
}

/// One model, evaluated.
pub(crate) struct Evaluated<'a> {
    pub(crate) metrics: &'a [MetricDescription<'a>],
    /// The best value, if neither the highest nor the lowest is.
    pub(crate) target: Option<f64>,
    /// Whether any value is better than another.
    pub(crate) has_best: bool,
    pub(crate) overall: Slice,
    pub(crate) attributes: Vec<PerGroup<Slice>>,
    cells: Cells,
    resampled: Resampled,
}

/// The values that intervals are computed from.
struct Resampled {
    replicates: Series,
    /// By slice and metric: replicates that average over fewer evaluation times than the value.
    n_partial: Vec<Vec<usize>>,
    jackknife: Option<(Jackknife, Series)>,
}

/// `N` metrics in all replicates.
struct Values<const N: usize> {
    /// By replicate and slice.
    values: Vec<Vec<[Option<f64>; N]>>,
    /// By slice.
    n_partial: Vec<[usize; N]>,
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
pub(crate) struct Sampled {
    pub(crate) value: Result<f64, MetricError>,
    pub(crate) replicates: Vec<Option<f64>>,
    pub(crate) jackknife: Option<Result<JackknifeValues, MetricError>>,
    /// Replicates that average over fewer evaluation times than the value; of groups that are compared, the most.
    pub(crate) n_partial: usize,
}

impl<'a> Evaluated<'a> {
    /// The metrics of [`METRICS`], for survival curves.
    pub(crate) fn of_curves(input: &Input<'_>, predictions: &Predictions<'_>) -> Result<Self, MetricError> {
        let Input { outcomes, groups, settings, .. } = *input;
        let curves = predictions.curves;
        curves.check_rows(outcomes.n())?;
        let bootstrap = input.bootstrap()?;
        let all_rows: Vec<usize> = (0..outcomes.n()).collect();
        let (overall, auc, brier) = Slice::of_curves(&all_rows, input, predictions);
        let slice = |rows: &[usize]| Slice::of_curves(rows, input, predictions).0;
        let attributes = per_attribute(input, slice)?;

        let plan = BinPlan::new(outcomes, curves, settings.reading)?;
        let auc = auc.ok().map(|auc| SortedAuc::new(auc, groups, bootstrap.unit_of_row()));
        let cells = Cells::new(groups, &plan.order);
        let brier = brier.ok().map(|brier| brier.subject_integrals().to_vec());
        let sorted = Sorted { curves, plan, auc, brier, cells };
        let values = |draws: Draws<'_>| {
            let found = sorted.values(draws.n(), |first, out| draws.weights_block(first, out))?;
            let n_partial = found.n_partial_auc.into_iter().map(|n_partial_auc| {
                // Only the AUC is averaged over the times that define it.
                let mut n_partial = [0; N_METRICS];
                n_partial[AUC] = n_partial_auc;
                n_partial
            });
            let mut values = found.values;
            for of_slice in values.iter_mut().flatten() {
                of_slice[IBS] = of_slice[IBS].filter(|ibs| *ibs <= 1.0);
            }
            Ok(Values { values, n_partial: n_partial.collect() })
        };
        let resampled = Resampled::new(input, &bootstrap, sorted.cells.n_slices(), values)?;
        Ok(Self { metrics: &METRICS, target: None, has_best: true, overall, attributes, cells: sorted.cells, resampled })
    }

    /// A metric by name, prepared for every slice.
    pub(crate) fn of_requested(
        input: &Input<'_>,
        predictions: &Predictions<'_>,
        horizon: &Result<f64, MetricError>,
        RequestedMetric { metric, threshold, .. }: RequestedMetric,
        description: &'a MetricDescription<'a>,
    ) -> Result<Self, MetricError> {
        let times = predictions.times.clone().map(<[f64]>::to_vec);
        let prepare = |rows: &[usize]| {
            let (outcomes, curves) = (input.outcomes.select(rows), predictions.curves.select(rows));
            let subjects: Vec<&SubjectId> = rows.iter().map(|row| &input.subjects[*row]).collect();
            metric.prepare(&ScoredSample {
                outcomes: &outcomes,
                curves: &curves,
                censoring: predictions.censoring,
                reading: input.settings.reading,
                risk: input.settings.risk,
                subjects: &subjects,
                times: &times,
                horizon,
                threshold,
            })
        };
        let prepared = Self::of_prepared(input, description, prepare)?;
        Ok(Self { target: metric.target(), has_best: metric.has_best(), ..prepared })
    }

    /// Any metric, recomputed from the rows of every slice and replicate.
    pub(crate) fn of_metric(
        input: &Input<'_>,
        description: &'a MetricDescription<'a>,
        metric: &RowMetric<'_>,
    ) -> Result<Self, MetricError> {
        Self::of_prepared(input, description, |of_slice| {
            let of_slice = of_slice.to_vec();
            Ok(Box::new(OfRows(move |rows: &[usize]| {
                metric(&rows.iter().map(|row| of_slice[*row]).collect::<Vec<_>>())
            })))
        })
    }

    /// One metric whose values for any weights of a slice's rows `prepare` makes.
    fn of_prepared<'p>(
        input: &Input<'_>,
        description: &'a MetricDescription<'a>,
        prepare: impl Fn(&[usize]) -> Result<Box<dyn PreparedMetric + 'p>, MetricError>,
    ) -> Result<Self, MetricError> {
        let Input { outcomes, groups, .. } = *input;
        let bootstrap = input.bootstrap()?;
        let order: Vec<u32> = (0..to_u32(outcomes.n())).collect();
        let cells = Cells::new(groups, &order);
        let all_rows: Vec<usize> = (0..outcomes.n()).collect();
        let of_groups = groups.iter().flat_map(|groups| groups.ids().map(|group| groups.rows(group)));
        let slices: Vec<PreparedSlice<'_>> =
            std::iter::once(all_rows).chain(of_groups).map(|rows| PreparedSlice::new(rows, &prepare)).collect();
        // The groups of every attribute come in the order of the slices.
        let mut of_groups = slices[1..].iter();
        let attributes = groups.iter().map(|groups| {
            let of_group = |_: &[usize]| of_groups.next().map(PreparedSlice::to_slice).ok_or(MetricError::NoSamples);
            PerGroup::compute_all(groups, outcomes, Some(input.subjects), of_group)
        });
        let attributes = attributes.collect::<Result<Vec<_>, _>>()?;
        let of_replicate = |draws: Draws<'_>, replicate: usize| -> Vec<[Option<f64>; 1]> {
            let weights = draws.weights(replicate);
            slices.iter().map(|slice| [slice.of_replicate(&weights)]).collect()
        };
        let values = |draws: Draws<'_>| {
            let values = (0..draws.n()).into_par_iter().map(|number| of_replicate(draws, number)).collect();
            Ok(Values { values, n_partial: vec![[0]; cells.n_slices()] })
        };
        let resampled = Resampled::new(input, &bootstrap, cells.n_slices(), values)?;
        let metrics = std::slice::from_ref(description);
        Ok(Self { metrics, target: None, has_best: true, overall: slices[0].to_slice(), attributes, cells, resampled })
    }

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
            n_partial: self.n_partial(metric, &[slice]),
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
            group.value = Err(MetricError::FewEvents { n_events: group.n_events, needed: min_events });
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
        let goal = self.goal(metric);
        let groups = self.compared(metric, attribute, min_events);
        let overall = match &self.overall.values[metric].value {
            Err(reason) if comparison.needs_overall() => {
                Err(MetricError::OverallUndefined { reason: Box::new(reason.clone()) })
            }
            overall => Ok(overall.clone().unwrap_or(0.0)),
        };
        let value = overall.and_then(|overall| goal.compare(&groups, comparison, overall));
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
            n_partial: self.n_partial(metric, &slices),
        }
    }

    fn goal(&self, metric: usize) -> Goal {
        Goal { direction: self.metrics[metric].direction, target: self.target, has_best: self.has_best }
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

impl Draws<'_> {
    fn n(self) -> usize {
        match self {
            Self::Bootstrap(bootstrap) => bootstrap.n_replicates(),
            Self::Jackknife(jackknife) => jackknife.n_blocks(),
        }
    }

    fn weights(self, number: usize) -> Vec<u32> {
        match self {
            Self::Bootstrap(bootstrap) => bootstrap.weights(number),
            Self::Jackknife(jackknife) => jackknife.weights(number),
        }
    }

    fn weights_block(self, first: usize, out: &mut [u16]) -> Result<(), MetricError> {
        match self {
            Self::Bootstrap(bootstrap) => bootstrap.weights_block(first, LANES, out),
            Self::Jackknife(jackknife) => jackknife.weights_block(first, LANES, out),
        }
    }
}

/// Every group of every attribute.
fn per_attribute(
    input: &Input<'_>,
    slice: impl Fn(&[usize]) -> Slice + Sync,
) -> Result<Vec<PerGroup<Slice>>, MetricError> {
    let Input { subjects, outcomes, groups, .. } = *input;
    let of_attribute = |groups| PerGroup::compute(groups, outcomes, Some(subjects), |rows| Ok(slice(rows)));
    groups.par_iter().map(of_attribute).collect()
}

impl Resampled {
    /// The bootstrap replicates and, where intervals ask for them, the leave-out samples.
    fn new<const N: usize>(
        input: &Input<'_>,
        bootstrap: &Bootstrap,
        n_slices: usize,
        values: impl Fn(Draws<'_>) -> Result<Values<N>, MetricError>,
    ) -> Result<Self, MetricError> {
        let Values { values: replicates, n_partial } = values(Draws::Bootstrap(bootstrap))?;
        let jackknife = if input.settings.interval == IntervalMethod::Bca && input.settings.replicates > 0 {
            let jackknife = Jackknife::new(bootstrap, Jackknife::DEFAULT_BLOCKS);
            let without_a_block = values(Draws::Jackknife(&jackknife))?.values;
            Some((jackknife, series(without_a_block, n_slices)))
        } else {
            None
        };
        let n_partial = n_partial.into_iter().map(|by_metric| by_metric.to_vec()).collect();
        Ok(Self { replicates: series(replicates, n_slices), n_partial, jackknife })
    }
}

/// From values by replicate and slice to series by slice and metric.
fn series<const N: usize>(values: Vec<Vec<[Option<f64>; N]>>, n_slices: usize) -> Series {
    let mut series: Series = vec![vec![Vec::with_capacity(values.len()); N]; n_slices];
    for replicate in values {
        for (series, values) in series.iter_mut().zip(replicate) {
            for (series, value) in series.iter_mut().zip(values) {
                series.push(value);
            }
        }
    }
    series
}

/// One slice with a metric that is prepared for it.
struct PreparedSlice<'p> {
    rows: Vec<usize>,
    value: Result<f64, MetricError>,
    prepared: Option<Box<dyn PreparedMetric + 'p>>,
}

impl<'p> PreparedSlice<'p> {
    fn new(rows: Vec<usize>, prepare: impl Fn(&[usize]) -> Result<Box<dyn PreparedMetric + 'p>, MetricError>) -> Self {
        if rows.is_empty() {
            return Self { rows, value: Err(MetricError::NoSamples), prepared: None };
        }
        match prepare(&rows) {
            Ok(prepared) => {
                let value = prepared.value(&vec![1; rows.len()]);
                let value = value.and_then(|value| finite("value of the metric", value));
                Self { rows, value, prepared: Some(prepared) }
            }
            Err(error) => Self { rows, value: Err(error), prepared: None },
        }
    }

    fn to_slice(&self) -> Slice {
        let value = SliceValue { value: self.value.clone(), n_comparable: None, undefined_times: 0 };
        Slice { rows: self.rows.clone(), values: vec![value] }
    }

    /// The metric in a replicate, from the weights of all rows; `None` if it is undefined.
    fn of_replicate(&self, weights: &[u32]) -> Option<f64> {
        let weights: Vec<u32> = self.rows.iter().map(|row| weights[*row]).collect();
        if weights.iter().all(|weight| *weight == 0) {
            return None;
        }
        self.prepared.as_ref()?.value(&weights).ok().filter(|value| value.is_finite())
    }
}

impl Slice {
    /// The metrics of some rows by the exact path, and what the replicates of the whole sample are made from.
    fn of_curves(
        rows: &[usize],
        input: &Input<'_>,
        predictions: &Predictions<'_>,
    ) -> (Self, Result<PreparedAucTd, MetricError>, Result<PreparedBrier, MetricError>) {
        let (outcomes, curves) = (input.outcomes.select(rows), predictions.curves.select(rows));
        let (reading, censoring) = (input.settings.reading, predictions.censoring);
        let pairs = concordance_td(&outcomes, &curves, reading, TiedPredictions::Strict);
        let concordance = |ties| SliceValue {
            value: pairs.clone().map(|pairs| pairs.value_with(ties)),
            n_comparable: Some(pairs.as_ref().map_or(0, |pairs| pairs.n_comparable)),
            undefined_times: 0,
        };
        let ones = vec![1; rows.len()];
        let times = || predictions.times.clone();
        let auc = times().and_then(|times| AucTd::prepare(&outcomes, &curves, censoring, reading, times));
        let auc_values = auc.as_ref().map_err(MetricError::clone).and_then(|auc| auc.weighted(&ones));
        let undefined_times = auc_values.as_ref().map_or(0, AucTd::n_undefined);
        let brier = times().and_then(|times| PreparedBrier::new(&outcomes, &curves, censoring, reading, times));
        let ibs = brier.as_ref().map_err(MetricError::clone).and_then(|brier| {
            let value = brier.weighted(&ones)?;
            brier.check_at_most_one(value, |row| input.subjects[rows[row]].to_string())
        });
        let auc_average = auc_values.and_then(|auc| auc.time_average);
        let values = vec![
            concordance(TiedPredictions::Strict),
            concordance(TiedPredictions::Half),
            SliceValue { value: auc_average, n_comparable: None, undefined_times },
            SliceValue { value: ibs, n_comparable: None, undefined_times: 0 },
        ];
        (Self { rows: rows.to_vec(), values }, auc, brier)
    }
}

pub(crate) fn count_subjects(subjects: &[SubjectId], rows: &[usize]) -> usize {
    rows.iter().map(|&row| &subjects[row]).collect::<HashSet<_>>().len()
}
