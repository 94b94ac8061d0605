//! The numbers behind a report: every metric of the whole sample and of every group, with its bootstrap replicates.

use std::collections::HashSet;

use rayon::prelude::*;

use crate::rank::concordance_bins::BinPlan;
use crate::resampling::replicates::{AUC, Cells, LANES, N_METRICS, Sorted, SortedAuc, Values};
use crate::{
    AucTd, Bootstrap, CensoringCurve, Comparison, Direction, EvaluationSettings, Groups, IntervalMethod, Jackknife,
    JackknifeValues, MetricError, Outcomes, PerGroup, PreparedAucTd, PreparedBrier, Stratify, SubjectId,
    SurvivalCurves, TiedPredictions, concordance_td,
};

/// What is evaluated, apart from the predictions.
pub(crate) struct Input<'a> {
    pub(crate) subjects: &'a [SubjectId],
    pub(crate) outcomes: &'a Outcomes,
    pub(crate) censoring: &'a CensoringCurve,
    pub(crate) groups: &'a [Groups],
    pub(crate) settings: &'a EvaluationSettings,
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

/// The values of every metric in all replicates, by slice: the whole sample first, then every level of every attribute.
type Series = Vec<[Vec<Option<f64>>; N_METRICS]>;

/// One model, evaluated.
pub(crate) struct Evaluated {
    pub(crate) overall: Slice,
    pub(crate) attributes: Vec<PerGroup<Slice>>,
    cells: Cells,
    replicates: Series,
    /// By slice: replicates whose AUC is an average over fewer times than that of the sample.
    n_partial_auc: Vec<usize>,
    jackknife: Option<(Jackknife, Series)>,
}

/// The whole sample or one group.
pub(crate) struct Slice {
    pub(crate) rows: Vec<usize>,
    pub(crate) values: [Result<f64, MetricError>; N_METRICS],
    pub(crate) n_comparable: u64,
    /// Evaluation times without an AUC.
    pub(crate) undefined_times: usize,
}

/// A value with what its interval is made of.
pub(crate) struct Sampled {
    pub(crate) value: Result<f64, MetricError>,
    pub(crate) replicates: Vec<Option<f64>>,
    pub(crate) jackknife: Option<Result<JackknifeValues, MetricError>>,
    /// Replicates that average over fewer evaluation times than the value; of groups that are compared, the most.
    pub(crate) n_partial: usize,
}

impl Evaluated {
    /// `times` are the evaluation times of AUC and Brier score, or why there are none.
    pub(crate) fn new(
        input: &Input<'_>,
        curves: &SurvivalCurves,
        times: &Result<&[f64], MetricError>,
    ) -> Result<Self, MetricError> {
        let Input { subjects, outcomes, groups, settings, .. } = *input;
        curves.check_rows(outcomes.n())?;
        let bootstrap = input.bootstrap()?;
        let all_rows: Vec<usize> = (0..outcomes.n()).collect();
        let (overall, auc, brier) = Slice::new(&all_rows, input, curves, times);
        let slice = |rows: &[usize]| Ok(Slice::new(rows, input, curves, times).0);
        let per_attribute = |groups: &Groups| PerGroup::compute(groups, outcomes, Some(subjects), slice);
        let attributes = groups.par_iter().map(per_attribute).collect::<Result<_, _>>()?;

        let plan = BinPlan::new(outcomes, curves, settings.reading)?;
        let auc = auc.ok().map(|auc| SortedAuc::new(auc, groups, bootstrap.unit_of_row()));
        let cells = Cells::new(groups, &plan.order);
        let brier = brier.ok().map(|brier| brier.subject_integrals().to_vec());
        let sorted = Sorted { curves, plan, auc, brier, cells };
        let draw = |first, out: &mut [u16]| bootstrap.weights_block(first, LANES, out);
        let replicates = sorted.values(bootstrap.n_replicates(), draw)?;
        let n_partial_auc = replicates.n_partial_auc;
        let replicates = series(replicates.values, sorted.cells.n_slices());
        let jackknife = if settings.interval == IntervalMethod::Bca && settings.replicates > 0 {
            let jackknife = Jackknife::new(&bootstrap, Jackknife::DEFAULT_BLOCKS);
            let leave_out = |first, out: &mut [u16]| jackknife.weights_block(first, LANES, out);
            let values = sorted.values(jackknife.n_blocks(), leave_out)?.values;
            Some((jackknife, series(values, sorted.cells.n_slices())))
        } else {
            None
        };
        Ok(Self { overall, attributes, cells: sorted.cells, replicates, n_partial_auc, jackknife })
    }

    /// A metric of the whole sample.
    pub(crate) fn overall(&self, metric: usize) -> Sampled {
        self.sampled(0, metric, self.overall.values[metric].clone())
    }

    /// A metric of one level of an attribute; `value` is that of the group.
    pub(crate) fn group(&self, metric: usize, attribute: usize, level: usize) -> Sampled {
        let value = &self.attributes[attribute].groups[level].value;
        let value = value.as_ref().map_err(MetricError::clone).and_then(|slice| slice.values[metric].clone());
        self.sampled(self.cells.slice(attribute, level), metric, value)
    }

    fn sampled(&self, slice: usize, metric: usize, value: Result<f64, MetricError>) -> Sampled {
        let jackknife = self.jackknife.as_ref();
        Sampled {
            value,
            replicates: self.replicates[slice][metric].clone(),
            jackknife: jackknife.map(|(jackknife, series)| jackknife.collect(series[slice][metric].clone())),
            n_partial: self.n_partial(metric, &[slice]),
        }
    }

    /// Only the AUC is averaged over the times that define it.
    fn n_partial(&self, metric: usize, slices: &[usize]) -> usize {
        let most = slices.iter().map(|&slice| self.n_partial_auc[slice]).max();
        if metric == AUC { most.unwrap_or(0) } else { 0 }
    }

    /// The groups of an attribute in one metric.
    pub(crate) fn per_group(&self, metric: usize, attribute: usize) -> PerGroup<f64> {
        self.attributes[attribute].map(|slice| slice.values[metric].clone())
    }

    /// A comparison of the groups of an attribute. A replicate counts if it defines every group that the sample
    /// defines, and the overall value if that is compared with.
    pub(crate) fn comparison(
        &self,
        metric: usize,
        attribute: usize,
        comparison: Comparison,
        direction: Direction,
    ) -> Sampled {
        let groups = self.per_group(metric, attribute);
        let overall = match &self.overall.values[metric] {
            Err(reason) if comparison.needs_overall() => {
                Err(MetricError::OverallUndefined { reason: Box::new(reason.clone()) })
            }
            overall => Ok(overall.clone().unwrap_or(0.0)),
        };
        let value = overall.and_then(|overall| groups.compare(comparison, overall, direction));
        let levels = (0..groups.groups.len()).filter(|&level| groups.groups[level].value.is_ok());
        let slices: Vec<usize> = levels.map(|level| self.cells.slice(attribute, level)).collect();
        let in_series = |series: &Series| -> Vec<Option<f64>> {
            let in_replicate = |replicate: usize| {
                let values: Option<Vec<f64>> = slices.iter().map(|&slice| series[slice][metric][replicate]).collect();
                let overall = if comparison.needs_overall() { series[0][metric][replicate]? } else { 0.0 };
                comparison.of(&values?, overall, direction)
            };
            (0..series[0][metric].len()).map(in_replicate).collect()
        };
        Sampled {
            value,
            replicates: in_series(&self.replicates),
            jackknife: self.jackknife.as_ref().map(|(jackknife, series)| jackknife.collect(in_series(series))),
            n_partial: self.n_partial(metric, &slices),
        }
    }

    /// The rows of the groups that have a value.
    pub(crate) fn rows_of_defined(&self, metric: usize, attribute: usize) -> Vec<usize> {
        let slices = self.attributes[attribute].groups.iter().filter_map(|group| group.value.as_ref().ok());
        slices.filter(|slice| slice.values[metric].is_ok()).flat_map(|slice| slice.rows.iter().copied()).collect()
    }
}

/// From values by replicate and slice to series by slice and metric.
fn series(values: Vec<Vec<Values>>, n_slices: usize) -> Series {
    let mut series: Series = vec![std::array::from_fn(|_| Vec::with_capacity(values.len())); n_slices];
    for replicate in values {
        for (series, values) in series.iter_mut().zip(replicate) {
            for (series, value) in series.iter_mut().zip(values) {
                series.push(value);
            }
        }
    }
    series
}

impl Slice {
    /// The metrics of some rows by the exact path, and what the replicates of the whole sample are made from.
    fn new(
        rows: &[usize],
        input: &Input<'_>,
        curves: &SurvivalCurves,
        times: &Result<&[f64], MetricError>,
    ) -> (Self, Result<PreparedAucTd, MetricError>, Result<PreparedBrier, MetricError>) {
        let (outcomes, curves) = (input.outcomes.select(rows), curves.select(rows));
        let (reading, censoring) = (input.settings.reading, input.censoring);
        let pairs = concordance_td(&outcomes, &curves, reading, TiedPredictions::Strict);
        let concordance = |ties| pairs.clone().map(|pairs| pairs.value_with(ties));
        let ones = vec![1; rows.len()];
        let times = || times.clone();
        let auc = times().and_then(|times| AucTd::prepare(&outcomes, &curves, censoring, reading, times));
        let auc_values = auc.as_ref().map_err(MetricError::clone).and_then(|auc| auc.weighted(&ones));
        let brier = times().and_then(|times| PreparedBrier::new(&outcomes, &curves, censoring, reading, times));
        let ibs = brier.as_ref().map_err(MetricError::clone).and_then(|brier| brier.weighted(&ones));
        let slice = Self {
            rows: rows.to_vec(),
            n_comparable: pairs.as_ref().map_or(0, |pairs| pairs.n_comparable),
            undefined_times: auc_values.as_ref().map_or(0, AucTd::n_undefined),
            values: [
                concordance(TiedPredictions::Strict),
                concordance(TiedPredictions::Half),
                auc_values.and_then(|auc| auc.time_average),
                ibs,
            ],
        };
        (slice, auc, brier)
    }
}

pub(crate) fn count_subjects(subjects: &[SubjectId], rows: &[usize]) -> usize {
    rows.iter().map(|&row| &subjects[row]).collect::<HashSet<_>>().len()
}
