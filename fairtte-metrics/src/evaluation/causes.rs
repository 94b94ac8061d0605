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
    of_cause(subjects, (outcomes, cause), curves, censoring, groups, settings, |input, chosen, predictions| {
        let metrics = each_metric(input, predictions, chosen, true, |metric| metric.report(input, 0))?;
        let about = EvaluatedCause::of(outcomes, cause);
        Ok(EvaluationReport { cause: Some(about), ..chosen.report(input, &predictions[0], metrics)? })
    })
}

/// Checks the arguments of [`evaluate_cause`], and calls `work` with what the metrics of the cause read.
pub(super) fn of_cause<T>(
    subjects: &[SubjectId],
    (outcomes, cause): (&CompetingOutcomes, u32),
    curves: &IncidenceCurves,
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
    work: impl FnOnce(&Input<'_>, &ChosenTimes, &[Predictions<'_>; 1]) -> Result<T, MetricError>,
) -> Result<T, MetricError> {
    let (of_cause, competing, settings) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?, settings.of_cause());
    let input = Input { subjects, outcomes: &of_cause, competing: Some(&competing), groups, settings: &settings };
    input.check()?;
    let without = curves.without();
    without.check_rows(outcomes.n())?;
    let chosen = ChosenTimes::of(&input, censoring, Covered::by([without], settings.reading));
    let predictions = [Predictions { curves: without, censoring, times: chosen.times() }];
    work(&input, &chosen, &predictions)
}

impl EvaluatedCause {
    /// The cause with the events of others.
    pub(crate) fn of(outcomes: &CompetingOutcomes, cause: u32) -> Self {
        let n_competing = outcomes.all_causes().n_events() - outcomes.n_events(cause);
        Self { cause, n_causes: outcomes.n_known(), n_competing }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::competing::{AalenJohansen, IncidenceVariance};
    use crate::evaluation::evaluate_models_of_cause;
    use crate::{CensoringTies, GroupId, evaluate};

    const N: usize = 180;

    struct Cohort {
        subjects: Vec<SubjectId>,
        outcomes: CompetingOutcomes,
        curves: IncidenceCurves,
        censoring: CensoringCurve,
        groups: [Groups; 1],
    }

    impl Cohort {
        /// With two causes, or the same times with one.
        fn new(n_causes: u32) -> Self {
            let time = |k: usize| 0.25 + (k * 37 % 101) as f64 / 8.0;
            let cause = |k: usize| match k * 29 % 7 {
                0 | 1 => 0,
                2..=4 => 1,
                _ => n_causes,
            };
            let outcomes = CompetingOutcomes::new((0..N).map(time).collect(), (0..N).map(cause).collect()).unwrap();
            let risk = |k: usize| 0.2 + 0.5 * (k * 53 % 89) as f64 / 89.0;
            let values = Array2::from_shape_fn((N, 3), |(k, column)| risk(k) * [0.0, 0.5, 1.0][column]);
            let membership = (0..N).map(|k| Some(GroupId(u32::try_from(k % 2).unwrap()))).collect();
            Self {
                subjects: (0..N).map(|k| SubjectId::new(format!("p{k}"))).collect(),
                censoring: CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst).unwrap(),
                curves: IncidenceCurves::new(vec![0.0, 6.0, 13.0], values).unwrap(),
                outcomes,
                groups: [Groups::new("sex", vec!["F".into(), "M".into()], membership).unwrap()],
            }
        }

        fn evaluate(&self, settings: &EvaluationSettings) -> Result<EvaluationReport, MetricError> {
            let Self { subjects, outcomes, curves, censoring, groups } = self;
            evaluate_cause(subjects, outcomes, 1, curves, censoring, groups, settings)
        }
    }

    fn settings() -> EvaluationSettings {
        EvaluationSettings { replicates: 30, permutations: 9, ..EvaluationSettings::default() }
    }

    #[test]
    fn events_of_other_causes_are_counted_and_are_no_censorings() {
        let cohort = Cohort::new(2);
        let report = cohort.evaluate(&settings()).unwrap();
        let n_competing = cohort.outcomes.n_events(2);
        assert_eq!(report.cause, Some(EvaluatedCause { cause: 1, n_causes: 2, n_competing }));
        let all = &report.groups_summary[0];
        assert_eq!((all.n_events, all.n_competing), (cohort.outcomes.n_events(1), Some(n_competing)));
        assert_eq!(all.censored, Some((N - cohort.outcomes.all_causes().n_events()) as f64 / N as f64));
        let curve = AalenJohansen::fit(&cohort.outcomes, 1, IncidenceVariance::Delta).unwrap();
        let horizon = report.horizon.unwrap();
        let risk = all.at_horizon.as_ref().unwrap();
        assert!((risk.observed - curve.at(horizon)).abs() < 1e-12);
        let observed = &report.curves[0].kaplan_meier;
        for (time, survival) in observed.times.iter().zip(&observed.survival) {
            assert!((1.0 - survival - curve.at(*time)).abs() < 1e-12);
        }
        // The bins of a calibration plot are Aalen-Johansen too: their mean is near that of the whole sample.
        let bins = &report.calibration[0].bins;
        let mean = bins.iter().map(|bin| bin.observed * bin.n as f64).sum::<f64>() / N as f64;
        assert!(bins.len() > 1 && (mean - curve.at(horizon)).abs() < 0.03, "{mean}");
        assert_eq!(
            report.over_time.iter().map(|o| o.metric.as_str()).collect::<Vec<_>>(),
            ["cause-auc", "cause-brier"]
        );
        for metric in &report.metrics {
            let gap = &metric.attributes[0].gap;
            assert!(gap.lower.is_some() && metric.attributes[0].gap_by_chance.is_some(), "{}", metric.name);
        }
    }

    #[test]
    fn one_cause_alone_has_the_curves_risks_and_calibration_of_a_single_event() {
        let cohort = Cohort::new(1);
        let own = cohort.evaluate(&settings()).unwrap();
        let events = cohort.outcomes.all_causes();
        let (without, groups) = (cohort.curves.without(), &cohort.groups);
        let other = evaluate(&cohort.subjects, events, without, &cohort.censoring, groups, &settings()).unwrap();
        assert_eq!((own.times, own.horizon), (other.times, other.horizon));
        for (own, other) in own.groups_summary.iter().zip(&other.groups_summary) {
            assert_eq!(
                (own.n_events, own.censored, own.median_follow_up),
                (other.n_events, other.censored, other.median_follow_up)
            );
            let [own, other] = [own, other].map(|group| group.at_horizon.as_ref().unwrap());
            assert!((own.observed - other.observed).abs() < 1e-12 && (own.predicted - other.predicted).abs() < 1e-12);
        }
        for (own, other) in own.curves.iter().zip(&other.curves) {
            assert_eq!(own.kaplan_meier.times, other.kaplan_meier.times);
            for (own, other) in own.kaplan_meier.survival.iter().zip(&other.kaplan_meier.survival) {
                assert!((own - other).abs() < 1e-12);
            }
        }
        for (own, other) in own.calibration.iter().zip(&other.calibration) {
            assert_eq!(own.observed, other.observed);
            assert_eq!(own.bins.len(), other.bins.len());
        }
    }

    #[test]
    fn a_sample_without_events_of_the_cause_says_so_and_not_that_nothing_was_observed() {
        let mut cohort = Cohort::new(2);
        let others = cohort.outcomes.cause().iter().map(|cause| if *cause == 1 { 0 } else { *cause }).collect();
        cohort.outcomes = CompetingOutcomes::with_causes(cohort.outcomes.time().to_vec(), others, 2).unwrap();
        let report = cohort.evaluate(&settings()).unwrap();
        let reason = Some("none of 180 samples has an observed event of the cause");
        assert_eq!(report.times_undefined.as_deref(), reason);
        for name in ["cause-c", "cause-c-td", "cause-ibs"] {
            assert_eq!(report.metric(name).and_then(|metric| metric.overall.undefined.as_deref()), reason, "{name}");
        }
    }

    #[test]
    fn several_models_of_a_cause_are_each_evaluated_as_alone_and_subtracted() {
        let cohort = Cohort::new(2);
        let Cohort { subjects, outcomes, curves, censoring, groups } = &cohort;
        let half = IncidenceCurves::new(curves.grid().to_vec(), curves.incidence().mapv(|f| f * f)).unwrap();
        let models = [("whole", curves), ("square", &half)];
        let of = (outcomes, 1);
        let found = evaluate_models_of_cause(&models, 0, subjects, of, censoring, groups, &settings()).unwrap();
        for ((name, report), (_, curves)) in found.models.iter().zip(models) {
            let alone = evaluate_cause(subjects, outcomes, 1, curves, censoring, groups, &settings()).unwrap();
            assert_eq!(*report, alone, "{name}");
        }
        assert_eq!(found.pairs.len(), found.models[0].1.metrics.len());
        for (pair, place) in found.pairs.iter().zip(0..) {
            let value = |model: usize| found.models[model].1.metrics[place].overall.value.unwrap();
            assert!((pair.overall.value.unwrap() - (value(1) - value(0))).abs() < 1e-12, "{}", pair.metric);
        }
        let unknown = evaluate_models_of_cause(&models, 0, subjects, (outcomes, 3), censoring, groups, &settings());
        assert_eq!(unknown.err(), Some(MetricError::UnknownCause { cause: 3, n_causes: 2 }));
    }

    #[test]
    fn the_default_metrics_become_those_of_a_cause_and_others_are_checked() {
        assert_eq!(settings().check_metrics_of_cause(), Ok(()));
        let of = |name: &str| EvaluationSettings { metrics: vec![name.to_owned()], ..settings() };
        assert_eq!(of("cause-brier@3").check_metrics_of_cause(), Ok(()));
        let refused = of("c-td").check_metrics_of_cause().unwrap_err();
        assert!(matches!(&refused, MetricError::IgnoresCauses { name, .. } if name == "c-td"), "{refused}");
    }

    #[test]
    fn metrics_that_ignore_causes_and_metrics_without_causes_are_refused() {
        let cohort = Cohort::new(2);
        let of = |metrics: &[&str], thresholds: Vec<f64>| {
            let metrics = metrics.iter().map(|name| (*name).to_owned()).collect();
            EvaluationSettings { metrics, thresholds, replicates: 0, ..settings() }
        };
        let refused = cohort.evaluate(&of(&["cause-c", "ibs"], vec![])).unwrap_err();
        assert!(matches!(&refused, MetricError::IgnoresCauses { name, .. } if name == "ibs"), "{refused}");
        let refused = cohort.evaluate(&of(&["cause-c"], vec![0.2])).unwrap_err();
        assert!(matches!(refused, MetricError::IgnoresCauses { .. }), "{refused}");
        let Cohort { subjects, outcomes, curves, censoring, groups } = &cohort;
        let events = outcomes.of_cause(1).unwrap();
        let refused = evaluate(subjects, &events, curves.without(), censoring, groups, &of(&["cause-c"], vec![]));
        assert_eq!(refused, Err(MetricError::NeedsCauses { name: "cause-c".to_owned() }));
        let unknown = evaluate_cause(subjects, outcomes, 3, curves, censoring, groups, &settings());
        assert_eq!(unknown.err(), Some(MetricError::UnknownCause { cause: 3, n_causes: 2 }));
    }
}
