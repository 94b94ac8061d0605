//! The last step of a run: from predictions and outcomes to the report.
//!
//! Works on saved predictions of any model. All metrics, groups, gaps and models share the same bootstrap replicates,
//! so differences between them are paired. A replicate in which a group has no value does not enter the interval of
//! that group, nor of the comparisons of its attribute; such replicates are counted.

use crate::evaluation::evaluated::{Evaluated, Input, Predictions, count_subjects};
use crate::evaluation::report::{EvaluationReport, GroupCurves, MetricDescription};
use crate::evaluation::summary::Summary;
use crate::evaluation::time_window::{Covered, choose_times};
use crate::resampling::replicates::N_METRICS;
use crate::{CensoringCurve, Direction, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves};

/// In the order of [`Values`](crate::resampling::replicates::Values).
pub(crate) const METRICS: [MetricDescription<'static>; N_METRICS] = [
    MetricDescription {
        name: "c_td_antolini_strict",
        label: "C^td",
        convention: "time-dependent concordance of Antolini et al. (2005); pairs with equal predictions count 0, as in \
                     the paper and pycox `antolini`",
        direction: Direction::HigherIsBetter,
    },
    MetricDescription {
        name: "c_td_half",
        label: "C^td (ties 1/2)",
        convention: "as C^td, but pairs with equal predictions count 1/2",
        direction: Direction::HigherIsBetter,
    },
    MetricDescription {
        name: "auc_td",
        label: "AUC^td",
        convention: "cumulative/dynamic AUC with cases weighted by 1/G(T), G the censoring curve, averaged over the \
                     evaluation times by trapezoids",
        direction: Direction::HigherIsBetter,
    },
    MetricDescription {
        name: "ibs",
        label: "IBS",
        convention: "Brier score of Graf et al. (1999) with weights 1/G, G the censoring curve (scikit-survival), \
                     integrated over the evaluation times by trapezoids and divided by their range",
        direction: Direction::LowerIsBetter,
    },
];

/// Evaluates `curves` against `outcomes`: C^td, AUC^td and IBS for the whole sample and for every group of every
/// attribute, with gap, ratio, worst group and equity scaling, the differences of every two groups, and with bootstrap
/// intervals.
///
/// Row `i` of every argument is the same sample; `censoring` is fitted on training data. What cannot be computed (an
/// all-censored group, no usable evaluation time) is reported with its reason. For intersections of attributes add
/// [`Groups::pairwise_intersections`] to `groups`; for several models on the same samples see
/// [`compare_models`](crate::compare_models), for any other metric
/// [`evaluate_metric`](crate::evaluation::evaluate_metric).
///
/// Cost: O(L n log n) once, then O(L n) per replicate, for all groups together, in parallel over replicates; the
/// result does not depend on the number of threads.
///
/// # Errors
/// [`MetricError::LengthMismatch`] if the arguments differ in length, [`MetricError::NoSamples`] without samples, those
/// of [`EvaluationSettings::validate`], and those of
/// [`Bootstrap::stratified`](crate::resampling::Bootstrap::stratified) if strata are set.
pub fn evaluate(
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<EvaluationReport, MetricError> {
    let input = Input { subjects, outcomes, groups, settings };
    input.check()?;
    curves.check_rows(outcomes.n())?;
    let window = choose_times(outcomes, censoring, Covered::by([curves], settings.reading), settings);
    let times = window.as_ref().map(|window| window.times.as_slice()).map_err(MetricError::clone);
    let evaluated = Evaluated::of_curves(&input, &Predictions { curves, censoring, times })?;
    let summary = Summary { input: &input, evaluated: &evaluated };
    Ok(EvaluationReport {
        n: outcomes.n(),
        n_events: outcomes.n_events(),
        n_subjects: count_subjects(subjects, &evaluated.overall.rows),
        reading: settings.reading.to_string(),
        settings: settings.clone(),
        times_undefined: window.as_ref().err().map(ToString::to_string),
        times: window.ok(),
        metrics: (0..N_METRICS).map(|metric| summary.metric(metric)).collect(),
        curves: group_curves(&input, curves, &evaluated)?,
    })
}

/// Observed and predicted survival of the whole sample and of every group.
fn group_curves(
    input: &Input<'_>,
    curves: &SurvivalCurves,
    evaluated: &Evaluated<'_>,
) -> Result<Vec<GroupCurves>, MetricError> {
    let level = input.settings.level;
    let mut group_curves = vec![GroupCurves::new(None, input.outcomes, curves, level)?];
    for (attribute, groups) in evaluated.attributes.iter().zip(input.groups) {
        for group in &attribute.groups {
            let rows = groups.rows(group.group);
            let name = Some((attribute.attribute.as_str(), group.level.as_str()));
            group_curves.push(GroupCurves::new(name, &input.outcomes.select(&rows), &curves.select(&rows), level)?);
        }
    }
    Ok(group_curves)
}
