//! The evaluation of the predicted risk of one of several causes.

use crate::competing::{CompetingOutcomes, IncidenceCurves};
use crate::evaluation::evaluate::{ChosenTimes, each_metric};
use crate::evaluation::evaluated::{Input, Predictions};
use crate::evaluation::report::{EvaluatedCause, EvaluationReport};
use crate::evaluation::time_window::Covered;
use crate::{CensoringCurve, EvaluationSettings, Groups, MetricError, SubjectId};

/// Evaluates the predicted cumulative incidence of `cause` as [`evaluate`](crate::evaluate) does survival curves: every metric
/// of the whole sample and of every group, gap, ratio, worst group, equity scaling, differences and intervals, with the same
/// draws.
///
/// Row `i` of every argument is the same sample; `censoring` is fitted on all causes of the training sample, with events
/// first. The default metrics become those of a cause ([`EvaluationSettings::of_cause`]). In the report, events are those of
/// the cause, `kaplan-meier` is 1 - Aalen-Johansen, `predicted` is 1 - F, and risks at the horizon are cumulative incidences.
/// Evaluation times and horizon come from the event times of the cause. There are no decisions at thresholds.
///
/// Cost: that of [`evaluate`](crate::evaluate), with O(n log n) per replicate for `cause-c` and O(n L) for the AUC at L times.
///
/// ```
/// use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves};
/// use fairtte_metrics::evaluation::evaluate_cause;
/// use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, SubjectId};
/// use ndarray::Array2;
///
/// // 60 people; every third has cause 1, every third cause 2, and the model knows cause 1 in group F only.
/// let causes: Vec<u32> = (0..60).map(|k| k % 3).collect();
/// let outcomes = CompetingOutcomes::new((0..60).map(|k| 1.0 + f64::from(k % 20)).collect(), causes.clone())?;
/// let risk = |row: usize| if causes[row] == 1 && row < 30 { 0.8 } else { 0.2 };
/// let incidence = Array2::from_shape_fn((60, 2), |(row, k)| risk(row) * k as f64);
/// let curves = IncidenceCurves::new(vec![0.0, 20.0], incidence)?;
/// let subjects: Vec<SubjectId> = (0..60).map(|k| SubjectId::new(format!("p{k:02}"))).collect();
/// let membership = (0..60).map(|k| Some(GroupId(k / 30))).collect();
/// let sex = Groups::new("sex", vec!["F".into(), "M".into()], membership)?;
/// let censoring = CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst)?;
/// let settings = EvaluationSettings { replicates: 50, permutations: 0, ..EvaluationSettings::default() };
/// let report = evaluate_cause(&subjects, &outcomes, 1, &curves, &censoring, &[sex], &settings)?;
/// let c = report.metric("cause-c").ok_or("absent")?;
/// assert_eq!(c.attributes[0].worst_group.as_deref(), Some("M"));
/// assert_eq!(report.cause.map(|cause| cause.n_competing), Some(20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`MetricError::UnknownCause`], [`MetricError::IgnoresCauses`] for a metric or a threshold of decisions that would count
/// other causes as censorings, and those of [`evaluate`](crate::evaluate).
pub fn evaluate_cause(
    subjects: &[SubjectId],
    outcomes: &CompetingOutcomes,
    cause: u32,
    curves: &IncidenceCurves,
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<EvaluationReport, MetricError> {
    let (of_cause, competing, settings) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?, settings.of_cause());
    let input = Input { subjects, outcomes: &of_cause, competing: Some(&competing), groups, settings: &settings };
    input.check()?;
    let without = curves.without();
    without.check_rows(outcomes.n())?;
    let chosen = ChosenTimes::of(&input, censoring, Covered::by([without], settings.reading));
    let predictions = [Predictions { curves: without, censoring, times: chosen.times() }];
    let metrics = each_metric(&input, &predictions, &chosen.horizon, true, |metric| metric.report(&input, 0))?;
    let n_competing = competing.iter().filter(|other| **other).count();
    let about = EvaluatedCause { cause, n_causes: outcomes.n_causes(), n_competing };
    Ok(EvaluationReport { cause: Some(about), ..chosen.report(&input, &predictions[0], metrics)? })
}
