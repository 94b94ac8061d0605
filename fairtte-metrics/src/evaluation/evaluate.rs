//! The last step of a run: from predictions and outcomes to the report.
//!
//! Works on saved predictions of any model. All metrics, groups, gaps and models share the same bootstrap replicates,
//! so differences between them are paired. A replicate in which a group has no value does not enter the interval of
//! that group, nor of the comparisons of its attribute; such replicates are counted.

use crate::evaluation::at_risk::round_times;
use crate::evaluation::calibration_curve::calibration_curves;
use crate::evaluation::censoring_by_group::censoring_by_group;
use crate::evaluation::cohorts::ScoredCohort;
use crate::evaluation::decisions::decisions;
use crate::evaluation::evaluated::{AtHorizon, Evaluated, Input, Predictions, count_subjects};
use crate::evaluation::groups_summary::groups_summary;
use crate::evaluation::metrics::{Metric, RequestedMetric, known_metrics};
use crate::evaluation::over_time::over_time;
use crate::evaluation::prepared::RequestedAt;
use crate::evaluation::replicates::N_METRICS;
use crate::evaluation::report::{EvaluationReport, GroupCurves, MetricDescription, MetricReport};
use crate::evaluation::risk_tertiles::risk_tertiles;
use crate::evaluation::summary::Summary;
use crate::evaluation::time_window::{Covered, KnownTimes, TimeWindow, choose_horizon, choose_times};
use crate::{CensoringCurve, Direction, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves};

/// The names in settings of the metrics that share sorted samples between replicates, in the order of [`METRICS`].
pub(crate) const JOINT: [&str; N_METRICS] = ["c-td", "c-td-half", "auc-td", "ibs"];

/// In the order of [`Values`](crate::evaluation::replicates::Values).
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

/// Evaluates `curves` against `outcomes`: the metrics of the settings (by default C^td, AUC^td, IBS and calibration) for the whole
/// sample and for every group of every attribute, with gap, ratio, worst group and equity scaling, the differences of every two
/// groups, and with bootstrap intervals.
///
/// Row `i` of every argument is the same sample; `censoring` is fitted on training data. What cannot be computed (an
/// all-censored group, no usable evaluation time) is reported with its reason. For intersections of attributes add
/// [`Groups::pairwise_intersections`] to `groups`; for several models on the same samples see
/// [`evaluate_models`](crate::evaluation::evaluate_models), for a metric that has no name
/// [`evaluate_metric`](crate::evaluation::evaluate_metric), for one of several causes
/// [`evaluate_cause`](crate::evaluation::evaluate_cause).
///
/// Cost of the default rank metrics and IBS: O(L n log n) once, then O(L n) per replicate, for all groups together, in parallel over
/// replicates; the result does not depend on the number of threads. Other metrics are recomputed for every group and replicate.
///
/// # Errors
/// [`MetricError::LengthMismatch`] if the arguments differ in length, [`MetricError::NoSamples`] without samples, those
/// of [`EvaluationSettings::validate`], [`MetricError::UnknownReference`] for a reference that is not there,
/// [`MetricError::NeedsCauses`] for a metric of one of several causes, [`MetricError::Stopped`] if the evaluation was ended, and those
/// of [`Stratify::strata`](crate::resampling::Stratify::strata) and
/// [`Bootstrap::stratified`](crate::resampling::Bootstrap::stratified) if strata are set.
pub fn evaluate(
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<EvaluationReport, MetricError> {
    let input = Input { subjects, outcomes, competing: None, groups, settings };
    input.check()?;
    curves.check_rows(outcomes.n())?;
    let chosen = ChosenTimes::of(&input, censoring, Covered::by([curves], settings.reading));
    let predictions = [Predictions { curves, censoring, times: chosen.times() }];
    let metrics = each_metric(&input, &predictions, &chosen, true, |metric| metric.report(&input, 0))?;
    chosen.report(&input, &predictions[0], metrics)
}

/// The times at which the metrics of an evaluation read the curves, besides each sample's own time: the evaluation times, the horizon,
/// and the times that metrics name, ascending. Curves of another model whose grid has all of them are read there exactly.
///
/// # Errors
/// Those of [`EvaluationSettings::validate`], and [`MetricError::UnknownMetric`].
pub fn times_read(scored: &ScoredCohort<'_>, settings: &EvaluationSettings) -> Result<Vec<f64>, MetricError> {
    let ScoredCohort { subjects, outcomes, curves, censoring, groups, .. } = *scored;
    let input = Input { subjects, outcomes, competing: None, groups, settings };
    input.check()?;
    let chosen = ChosenTimes::of(&input, censoring, Covered::by([curves], settings.reading));
    let named = settings.requested_metrics()?;
    let mut times: Vec<f64> =
        named.iter().filter_map(|(_, requested)| requested.at).chain(chosen.horizon.clone().ok()).collect();
    times.extend(chosen.times().unwrap_or_default());
    times.sort_by(f64::total_cmp);
    times.dedup();
    Ok(times)
}

/// The evaluation times and the horizon of one model, or of all models that are compared.
pub(crate) struct ChosenTimes {
    pub(crate) window: Result<TimeWindow, MetricError>,
    pub(crate) horizon: Result<f64, MetricError>,
    /// Where other times of metrics may lie.
    pub(crate) known: KnownTimes,
}

impl ChosenTimes {
    pub(crate) fn of(input: &Input<'_>, censoring: &CensoringCurve, covered: Covered) -> Self {
        let Input { outcomes, competing, settings, .. } = *input;
        let reason = |error: MetricError| if competing.is_some() { error.of_cause() } else { error };
        let window = choose_times(outcomes, censoring, covered, settings).map_err(reason);
        let known = KnownTimes::of(outcomes, covered);
        let horizon = choose_horizon(outcomes, window.as_ref().ok(), known, settings).map_err(reason);
        Self { window, horizon, known }
    }

    pub(crate) fn times(&self) -> Result<&[f64], MetricError> {
        self.window.as_ref().map(|window| window.times.as_slice()).map_err(MetricError::clone)
    }

    /// The report of the model with these curves and metrics.
    pub(crate) fn report(
        &self,
        input: &Input<'_>,
        predictions: &Predictions<'_>,
        metrics: Vec<MetricReport>,
    ) -> Result<EvaluationReport, MetricError> {
        let Input { subjects, outcomes, settings, .. } = *input;
        settings.stop.check()?;
        let (curves, horizon) = (predictions.curves, &self.horizon);
        let at = horizon.as_ref().map(|time| AtHorizon::new(curves, settings.reading, *time));
        let at = at.as_ref().map_err(|reason| *reason);
        let all_rows: Vec<usize> = (0..outcomes.n()).collect();
        Ok(EvaluationReport {
            n: outcomes.n(),
            n_events: outcomes.n_events(),
            n_subjects: count_subjects(subjects, &all_rows),
            cause: None,
            class: None,
            masks: None,
            reading: settings.reading.to_string(),
            settings: settings.clone(),
            times_undefined: self.window.as_ref().err().map(ToString::to_string),
            horizon: horizon.as_ref().ok().copied(),
            horizon_undefined: horizon.as_ref().err().map(ToString::to_string),
            metrics,
            curves: group_curves(input, curves)?,
            groups_summary: groups_summary(input, at)?,
            censoring_by_group: censoring_by_group(input),
            calibration: calibration_curves(input, at)?,
            over_time: over_time(input, predictions, self.window.as_ref().ok())?,
            risk_tertiles: risk_tertiles(input, predictions, at)?,
            decisions: decisions(input, predictions, at)?,
            times: self.window.as_ref().ok().cloned(),
        })
    }
}

/// A metric that the settings name, evaluated for one or several models.
pub(crate) struct Requested<'a> {
    /// One per model.
    pub(crate) evaluated: &'a [Evaluated<'a>],
    /// The place of the metric in them.
    pub(crate) place: usize,
    /// Time and threshold; absent for metrics that share sorted samples.
    at: Option<&'a RequestedAt>,
}

impl Requested<'_> {
    pub(crate) fn report(&self, input: &Input<'_>, model: usize) -> MetricReport {
        let report = Summary { input, evaluated: &self.evaluated[model] }.metric(self.place);
        let Some(at) = self.at else { return report };
        MetricReport {
            horizon: at.shown_horizon(),
            threshold: at.threshold,
            gap_name: at.metric.gap_name().map(str::to_owned),
            ratio_name: at.metric.ratio_name().map(str::to_owned),
            ..report
        }
    }
}

/// What `found` makes of every metric that the settings name, in their order; `predictions` has one entry per model,
/// `relabelled` says whether groups are relabelled as well, for the gap by chance.
pub(crate) fn each_metric<T>(
    input: &Input<'_>,
    predictions: &[Predictions<'_>],
    chosen: &ChosenTimes,
    relabelled: bool,
    found: impl Fn(&Requested<'_>) -> T,
) -> Result<Vec<T>, MetricError> {
    let named = input.settings.requested_metrics()?;
    check_causes(&named, input.competing.is_some())?;
    let place = |name: &str| JOINT.iter().position(|joint| *joint == name);
    let joint = if named.iter().any(|(name, _)| place(name).is_some()) { predictions } else { &[] };
    let of_model = |of_model| Evaluated::of_curves(input, of_model, relabelled);
    let joint = joint.iter().map(of_model).collect::<Result<Vec<_>, _>>()?;
    let others: Vec<_> = named.iter().filter(|(name, _)| place(name).is_none()).collect();
    let at = |(_, requested): &&_| RequestedAt::new(requested, &chosen.horizon).within(chosen.known);
    let requested: Vec<RequestedAt> = others.iter().map(at).collect();
    let labels: Vec<String> = requested.iter().map(RequestedAt::label).collect();
    let risk = input.settings.risk;
    let conventions: Vec<String> =
        requested.iter().map(|requested| risk.named_in(requested.metric.convention())).collect();
    let texts = labels.iter().zip(&conventions);
    let descriptions = others.iter().zip(&requested).zip(texts).map(|(((name, _), requested), (label, convention))| {
        MetricDescription { name, label, convention, direction: requested.metric.direction() }
    });
    let descriptions: Vec<MetricDescription<'_>> = descriptions.collect();
    let prepared = if requested.is_empty() { &[] } else { predictions };
    let of_model = |of_model| Evaluated::of_requested(input, of_model, &requested, &descriptions, relabelled);
    let prepared = prepared.iter().map(of_model).collect::<Result<Vec<_>, _>>()?;
    let of_metric = |(name, _): &(String, RequestedMetric)| -> Option<T> {
        if let Some(place) = place(name) {
            return Some(found(&Requested { evaluated: &joint, place, at: None }));
        }
        let place = descriptions.iter().position(|description| description.name == *name)?;
        Some(found(&Requested { evaluated: &prepared, place, at: Some(&requested[place]) }))
    };
    Ok(named.iter().filter_map(of_metric).collect())
}

/// Every metric is about one of several causes, or none is.
pub(crate) fn check_causes(named: &[(String, RequestedMetric)], has_causes: bool) -> Result<(), MetricError> {
    let Some((name, _)) = named.iter().find(|(_, found)| found.metric.needs_causes() != has_causes) else {
        return Ok(());
    };
    if !has_causes {
        return Err(MetricError::NeedsCauses { name: name.clone() });
    }
    let known = known_metrics().into_iter().filter(|metric| metric.needs_causes());
    let expected: Vec<&str> = known.map(Metric::name).collect();
    Err(MetricError::IgnoresCauses { name: name.clone(), expected: expected.join(", ") })
}

/// Observed and predicted survival of the whole sample and of every group.
fn group_curves(input: &Input<'_>, curves: &SurvivalCurves) -> Result<Vec<GroupCurves>, MetricError> {
    let (level, times) = (input.settings.level, round_times(input.outcomes));
    let of_slice = |(name, rows): (Option<(&str, &str)>, Vec<usize>)| {
        if name.is_none() {
            return GroupCurves::new(None, (input.outcomes, input.competing), curves, level, &times);
        }
        let (outcomes, competing) = (input.outcomes.select(&rows), input.competing_of(&rows));
        GroupCurves::new(name, (&outcomes, competing.as_deref()), &curves.select(&rows), level, &times)
    };
    input.slices().map(of_slice).collect()
}
