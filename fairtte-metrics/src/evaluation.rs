//! The last step of a run: from predictions and outcomes to the report.
//!
//! Works on saved predictions of any model. All metrics, groups and gaps share the same bootstrap replicates, so
//! differences between them are paired. A replicate in which a group has no value does not enter the interval of
//! that group, nor of the gap, worst value and equity scaling of its attribute; such replicates are counted.

use std::collections::HashSet;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::concordance_bins::BinPlan;
use crate::curves::check_grid;
use crate::kaplan_meier::check_level;
use crate::per_group;
use crate::replicates::{Cells, LANES, Sorted};
use crate::report::{AttributeReport, Estimate, EvaluationReport, GroupCurves, GroupReport, MetricReport};
use crate::time_window::choose_times;
use crate::{
    AucTd, Bootstrap, CensoringCurve, Direction, Groups, MetricError, Outcomes, PerGroup, PreparedAucTd, PreparedBrier,
    Reading, Resample, SubjectId, SurvivalCurves, TiedPredictions, concordance_td, percentile_interval,
};

/// How predictions are evaluated. Keys in a file are written in kebab-case; unknown keys are errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EvaluationSettings {
    /// Bootstrap replicates; 0 = no intervals. Default 1000.
    pub replicates: usize,
    /// Level of all intervals, between 0 and 1. Default 0.95.
    pub level: f64,
    /// Seed of the bootstrap. Default 0.
    pub seed: u64,
    /// What the bootstrap draws: `subject` (default) or `sample`.
    pub resample: Resample,
    /// How curves are read between grid points. Default: refined by a factor of 10.
    pub reading: Reading,
    /// Number of evaluation times for AUC and Brier score, at least 2. Default 100.
    pub n_times: usize,
    /// The evaluation times start at this quantile of the evaluated event times, in [0, 1). Default 0.1.
    pub lower_quantile: f64,
    /// The evaluation times end at this quantile of the evaluated event times, in (0, 1]. Default 0.9.
    pub upper_quantile: f64,
    /// Evaluation times, ascending, in place of the three settings above. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Vec<f64>>,
}

impl Default for EvaluationSettings {
    fn default() -> Self {
        Self {
            replicates: 1000,
            level: 0.95,
            seed: 0,
            resample: Resample::default(),
            reading: Reading::default(),
            n_times: 100,
            lower_quantile: 0.1,
            upper_quantile: 0.9,
            times: None,
        }
    }
}

impl EvaluationSettings {
    /// Checks all settings.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] with the first bad setting; [`MetricError::EmptyGrid`] or
    /// [`MetricError::InvalidGrid`] for `times`.
    pub fn validate(&self) -> Result<(), MetricError> {
        let invalid = |setting, value: String, expected| Err(MetricError::InvalidSetting { setting, value, expected });
        check_level(self.level)?;
        self.reading.validate()?;
        if self.n_times < 2 {
            return invalid("n-times", self.n_times.to_string(), "a whole number >= 2");
        }
        if !(0.0..1.0).contains(&self.lower_quantile) {
            return invalid("lower-quantile", self.lower_quantile.to_string(), "a number in [0, 1)");
        }
        if !(self.upper_quantile > self.lower_quantile && self.upper_quantile <= 1.0) {
            return invalid("upper-quantile", self.upper_quantile.to_string(), "a number in (lower-quantile, 1]");
        }
        self.times.as_ref().map_or(Ok(()), |times| check_grid(times))
    }
}

/// What is fixed about a metric of the report.
struct Metric {
    name: &'static str,
    label: &'static str,
    convention: &'static str,
    direction: Direction,
}

const N_METRICS: usize = 4;
const METRICS: [Metric; N_METRICS] = [
    Metric {
        name: "c_td_antolini_strict",
        label: "C^td",
        convention: "time-dependent concordance of Antolini et al. (2005); pairs with equal predictions count 0, as in \
                     the paper and pycox `antolini`",
        direction: Direction::HigherIsBetter,
    },
    Metric {
        name: "c_td_half",
        label: "C^td (ties 1/2)",
        convention: "as C^td, but pairs with equal predictions count 1/2",
        direction: Direction::HigherIsBetter,
    },
    Metric {
        name: "auc_td",
        label: "AUC^td",
        convention: "cumulative/dynamic AUC with cases weighted by 1/G(T) of the training sample, averaged over the \
                     evaluation times by trapezoids",
        direction: Direction::HigherIsBetter,
    },
    Metric {
        name: "ibs",
        label: "IBS",
        convention: "Brier score of Graf et al. (1999) with weights 1/G of the training sample (scikit-survival), \
                     integrated over the evaluation times by trapezoids and divided by their range",
        direction: Direction::LowerIsBetter,
    },
];

/// Evaluates `curves` against `outcomes`: C^td, AUC^td and IBS for the whole sample and for every group of every
/// attribute, with gap, worst group and equity scaling, and with bootstrap intervals.
///
/// Row `i` of every argument is the same sample; `censoring` is fitted on training data. What cannot be computed (an
/// all-censored group, no usable evaluation time) stands in the report with its reason.
///
/// Cost: O(L n log n) once, then O(L n) per replicate, in parallel over replicates; the result does not depend on the
/// number of threads.
///
/// # Errors
/// [`MetricError::LengthMismatch`] if the arguments differ in length, [`MetricError::NoSamples`] without samples, and
/// those of [`EvaluationSettings::validate`].
pub fn evaluate(
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<EvaluationReport, MetricError> {
    settings.validate()?;
    curves.check_rows(outcomes.n())?;
    if subjects.len() != outcomes.n() {
        let (what, found) = ("subjects", subjects.len());
        return Err(MetricError::LengthMismatch { what, found, expected: outcomes.n() });
    }
    if outcomes.n() == 0 {
        return Err(MetricError::NoSamples);
    }
    let window = choose_times(outcomes, censoring, settings);
    let times = window.as_ref().map(|window| window.times.as_slice()).map_err(MetricError::clone);
    let slice = |rows: &[usize]| Slice::new(rows, outcomes, curves, censoring, settings, &times);
    let all_rows: Vec<usize> = (0..outcomes.n()).collect();
    let overall = slice(&all_rows);
    let per_attribute = |groups: &Groups| PerGroup::compute(groups, outcomes, Some(subjects), |rows| Ok(slice(rows)));
    let attributes: Vec<PerGroup<Slice>> = groups.par_iter().map(per_attribute).collect::<Result<_, _>>()?;

    let bootstrap = Bootstrap::new(subjects, settings.resample, settings.replicates, settings.seed);
    let replicates = replicates(outcomes, curves, &overall, groups, settings, &bootstrap)?;
    let summary = Summary { subjects, outcomes, overall: &overall, replicates: &replicates, level: settings.level };

    let mut group_curves = vec![GroupCurves::new(None, outcomes, curves, settings.level)?];
    for (attribute, groups) in attributes.iter().zip(groups) {
        for group in &attribute.groups {
            let rows = groups.rows(group.group);
            let name = Some((attribute.attribute.as_str(), group.level.as_str()));
            group_curves.push(GroupCurves::new(name, &outcomes.select(&rows), &curves.select(&rows), settings.level)?);
        }
    }
    Ok(EvaluationReport {
        n: outcomes.n(),
        n_events: outcomes.n_events(),
        n_subjects: count_subjects(subjects, &all_rows),
        reading: settings.reading.to_string(),
        settings: settings.clone(),
        times_undefined: window.as_ref().err().map(ToString::to_string),
        times: window.ok(),
        metrics: (0..N_METRICS).map(|metric| summary.metric(metric, &attributes)).collect(),
        curves: group_curves,
    })
}

fn count_subjects(subjects: &[SubjectId], rows: &[usize]) -> usize {
    rows.iter().map(|&row| &subjects[row]).collect::<HashSet<_>>().len()
}

/// All bootstrap replicates; the sorting of the whole sample serves its groups as well.
fn replicates(
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    overall: &Slice,
    groups: &[Groups],
    settings: &EvaluationSettings,
    bootstrap: &Bootstrap,
) -> Result<Vec<Replicate>, MetricError> {
    let plan = BinPlan::new(outcomes, curves, settings.reading)?;
    let sorted = Sorted {
        curves,
        cells: Cells::new(groups, &plan.order),
        plan,
        auc: overall.auc.clone().ok().map(|auc| {
            let cells = Cells::new(groups, &auc.order);
            (auc, cells)
        }),
        brier: overall.brier.as_ref().ok().map(|brier| brier.subject_integrals().to_vec()),
    };
    let values = sorted.values(bootstrap.n_replicates(), |first, out| bootstrap.weights_block(first, LANES, out))?;
    let replicate = |values: Vec<[Option<f64>; N_METRICS]>| Replicate {
        overall: values[0],
        groups: groups
            .iter()
            .enumerate()
            .map(|(attribute, groups)| {
                (0..groups.levels().len()).map(|level| values[sorted.cells.slice(attribute, level)]).collect()
            })
            .collect(),
    };
    Ok(values.into_iter().map(replicate).collect())
}

type Metrics = [Result<f64, MetricError>; N_METRICS];

/// The whole sample or one group.
struct Slice {
    rows: Vec<usize>,
    auc: Result<PreparedAucTd, MetricError>,
    brier: Result<PreparedBrier, MetricError>,
    /// In the order of [`METRICS`].
    values: Metrics,
    /// Evaluation times without an AUC.
    undefined_times: usize,
}

impl Slice {
    fn new(
        rows: &[usize],
        outcomes: &Outcomes,
        curves: &SurvivalCurves,
        censoring: &CensoringCurve,
        settings: &EvaluationSettings,
        times: &Result<&[f64], MetricError>,
    ) -> Self {
        let (outcomes, curves) = (outcomes.select(rows), curves.select(rows));
        let reading = settings.reading;
        let pairs = concordance_td(&outcomes, &curves, reading, TiedPredictions::Strict);
        let concordance = |ties| pairs.clone().map(|pairs| pairs.value_with(ties));
        let times = times.clone();
        let ones = vec![1; rows.len()];
        let auc = times.clone().and_then(|times| AucTd::prepare(&outcomes, &curves, censoring, reading, times));
        let auc_values = auc.as_ref().map_err(MetricError::clone).and_then(|auc| auc.weighted(&ones));
        let brier = times.and_then(|times| PreparedBrier::new(&outcomes, &curves, censoring, reading, times));
        let ibs = brier.as_ref().map_err(MetricError::clone).and_then(|brier| brier.weighted(&ones));
        Self {
            rows: rows.to_vec(),
            auc,
            brier,
            undefined_times: auc_values.as_ref().map_or(0, AucTd::n_undefined),
            values: [
                concordance(TiedPredictions::Strict),
                concordance(TiedPredictions::Half),
                auc_values.and_then(|auc| auc.time_average),
                ibs,
            ],
        }
    }
}

/// All values of one bootstrap replicate.
struct Replicate {
    overall: [Option<f64>; N_METRICS],
    /// By attribute and level.
    groups: Vec<Vec<[Option<f64>; N_METRICS]>>,
}

/// Turns values and replicates into the report.
struct Summary<'a> {
    subjects: &'a [SubjectId],
    outcomes: &'a Outcomes,
    overall: &'a Slice,
    replicates: &'a [Replicate],
    level: f64,
}

impl Summary<'_> {
    fn metric(&self, metric: usize, attributes: &[PerGroup<Slice>]) -> MetricReport {
        let Metric { name, label, convention, direction } = METRICS[metric];
        let value = self.overall.values[metric].clone();
        let replicates = self.replicates.iter().map(|replicate| replicate.overall[metric]);
        let mut overall = self.estimate(&value, replicates, &self.overall.rows);
        overall.undefined_times = undefined_times(self.overall, metric);
        let attributes = attributes.iter().enumerate();
        MetricReport {
            name: name.to_owned(),
            label: label.to_owned(),
            convention: convention.to_owned(),
            higher_is_better: direction == Direction::HigherIsBetter,
            overall,
            attributes: attributes.map(|(index, slices)| self.attribute(metric, index, slices, &value)).collect(),
        }
    }

    fn attribute(
        &self,
        metric: usize,
        index: usize,
        slices: &PerGroup<Slice>,
        overall: &Result<f64, MetricError>,
    ) -> AttributeReport {
        let direction = METRICS[metric].direction;
        let values = slices.map(|slice| slice.values[metric].clone());
        let groups = values.groups.iter().zip(&slices.groups).enumerate();
        let groups = groups.map(|(level, (value, slice))| {
            let rows = slice.value.as_ref().map_or(&[][..], |slice| &slice.rows);
            let replicates = self.replicates.iter().map(|replicate| replicate.groups[index][level][metric]);
            let mut estimate = self.estimate(&value.value, replicates, rows);
            estimate.undefined_times = slice.value.as_ref().map_or(0, |slice| undefined_times(slice, metric));
            GroupReport { level: value.level.clone(), estimate }
        });
        let defined: Vec<usize> = (0..values.groups.len()).filter(|&k| values.groups[k].value.is_ok()).collect();
        let rows = rows_of(slices, &defined);
        // The defined values of a replicate, if it defines every group that the full sample defines.
        let in_replicate = |replicate: &Replicate| -> Option<Vec<f64>> {
            defined.iter().map(|&level| replicate.groups[index][level][metric]).collect()
        };
        let complete: Vec<Option<Vec<f64>>> = self.replicates.iter().map(in_replicate).collect();
        let from_groups = |value: Result<f64, MetricError>, statistic: &dyn Fn(&[f64]) -> Option<f64>| {
            let replicates = complete.iter().map(|values| statistic(values.as_ref()?));
            self.estimate(&value, replicates, &rows)
        };
        let gap = from_groups(values.gap(), &per_group::gap_of);
        let worst = values.worst(direction);
        let scaled = overall.clone().map_err(|reason| MetricError::OverallUndefined { reason: Box::new(reason) });
        let scaled = scaled.and_then(|overall| values.equity_scaling(overall, direction));
        let overall_in_replicates = self.replicates.iter().map(|replicate| replicate.overall[metric]);
        let scaled_in_replicates = complete
            .iter()
            .zip(overall_in_replicates)
            .map(|(values, overall)| per_group::equity_scaling_of(values.as_ref()?, overall?, direction));
        AttributeReport {
            attribute: values.attribute.clone(),
            n_missing: values.n_missing,
            groups: groups.collect(),
            gap,
            worst_group: worst.as_ref().ok().map(|(group, _)| group.level.clone()),
            worst: from_groups(worst.map(|(_, value)| value), &|values| per_group::worst_of(values, direction)),
            equity_scaling: self.estimate(&scaled, scaled_in_replicates, &rows),
        }
    }

    fn estimate(
        &self,
        value: &Result<f64, MetricError>,
        replicates: impl Iterator<Item = Option<f64>>,
        rows: &[usize],
    ) -> Estimate {
        let defined: Vec<f64> = replicates.flatten().collect();
        let undefined_replicates = self.replicates.len() - defined.len();
        let interval = if value.is_ok() { percentile_interval(&defined, self.level).ok().flatten() } else { None };
        Estimate {
            value: value.as_ref().ok().copied(),
            undefined: value.as_ref().err().map(ToString::to_string),
            lower: interval.map(|(lower, _)| lower),
            upper: interval.map(|(_, upper)| upper),
            n: rows.len(),
            n_events: rows.iter().filter(|&&row| self.outcomes.event()[row]).count(),
            n_subjects: count_subjects(self.subjects, rows),
            undefined_replicates,
            undefined_times: 0,
        }
    }
}

fn rows_of(slices: &PerGroup<Slice>, levels: &[usize]) -> Vec<usize> {
    let slices = levels.iter().filter_map(|&level| slices.groups[level].value.as_ref().ok());
    slices.flat_map(|slice| slice.rows.iter().copied()).collect()
}

/// Only the AUC is averaged over the times that define it.
fn undefined_times(slice: &Slice, metric: usize) -> usize {
    if METRICS[metric].name == "auc_td" { slice.undefined_times } else { 0 }
}
