//! The probabilities of a class of one model in two cohorts.
//!
//! Groups, gaps, unpaired intervals and adjusted p values are those of survival curves; an event is a positive sample, and a
//! group is compared with at least `min-events` samples of the rarer class in both cohorts.

use serde::{Deserialize, Serialize};

use super::{CohortMetric, CohortReports, Side, compare, shared_attributes};
use crate::classification::ClassPredictions;
use crate::evaluation::class_groups::ClassGroups;
use crate::evaluation::classes::{COUNTED, ClassReport, ClassSettings, outcomes, report};
use crate::evaluation::evaluated::{Evaluated, Input};
use crate::evaluation::report::EvaluationReport;
use crate::{EvaluationSettings, Groups, MetricError, SubjectId};

/// A cohort with the probabilities of its samples; row `i` of every field is the same sample.
#[derive(Clone, Copy, Debug)]
pub struct ClassCohort<'a> {
    /// The subject of every sample.
    pub subjects: &'a [SubjectId],
    /// Probabilities and classes.
    pub predictions: &'a ClassPredictions,
    /// Its groups; an attribute of the same name in the other cohort is compared, level by level by name.
    pub groups: &'a [Groups],
}

/// The reports of both cohorts and their differences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClassCohorts {
    /// The internal cohort, without relabelled groups.
    pub internal: ClassReport,
    /// The external cohort at the same threshold.
    pub external: ClassReport,
    /// One entry per metric of [`CLASS_METRICS`](crate::evaluation::CLASS_METRICS); differences are external minus internal.
    pub metrics: Vec<CohortMetric>,
}

/// Evaluates the probabilities of one model in two cohorts of different subjects: the report of each at the same threshold, and
/// the differences of all metrics, groups and gaps with unpaired bootstrap intervals.
///
/// ```
/// use fairtte_metrics::classification::ClassPredictions;
/// use fairtte_metrics::evaluation::{ClassCohort, ClassSettings, evaluate_class_cohorts};
/// use fairtte_metrics::{EvaluationSettings, SubjectId};
///
/// let subjects = ["a", "b", "c", "d"].map(SubjectId::from);
/// let classes = vec![true, true, false, false];
/// let good = ClassPredictions::new(vec![0.9, 0.8, 0.2, 0.1], classes.clone())?;
/// let bad = ClassPredictions::new(vec![0.1, 0.2, 0.8, 0.9], classes)?;
/// let cohort = |predictions| ClassCohort { subjects: &subjects, predictions, groups: &[] };
/// let settings = EvaluationSettings { replicates: 50, ..EvaluationSettings::default() };
/// let found = evaluate_class_cohorts(&cohort(&good), &cohort(&bad), &ClassSettings::default(), &settings)?;
/// assert_eq!(found.metrics[0].name, "auc");
/// assert_eq!(found.metrics[0].overall.difference.value, Some(-1.0));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`evaluate_classes`](crate::evaluation::evaluate_classes) for either cohort.
pub fn evaluate_class_cohorts(
    internal: &ClassCohort<'_>,
    external: &ClassCohort<'_>,
    class: &ClassSettings,
    settings: &EvaluationSettings,
) -> Result<ClassCohorts, MetricError> {
    class.validate()?;
    let settings = settings.metrics_only();
    let both = [outcomes(internal.predictions)?, outcomes(external.predictions)?];
    let of_cohorts = [(&both[0], internal.groups), (&both[1], external.groups)];
    let shared = shared_attributes(of_cohorts, COUNTED, settings.min_events);
    let side = |cohort: &ClassCohort<'_>, place: usize| -> Result<(Vec<Side>, ClassReport), MetricError> {
        let ClassCohort { subjects, predictions, groups } = *cohort;
        let input = Input { subjects, outcomes: &both[place], competing: None, groups, settings: &settings };
        input.check()?;
        let evaluated = Evaluated::of_classes(&input, predictions, class, false)?;
        let report = report(&input, &evaluated, predictions, class);
        let of_metric =
            |(metric, found): (usize, &_)| Side::of(Clone::clone(found), (&evaluated, metric), &input, &shared, place);
        Ok((report.metrics.iter().enumerate().map(of_metric).collect(), report))
    };
    let ((own, internal), (other, external)) = (side(internal, 0)?, side(external, 1)?);
    let metrics = own.iter().zip(&other).map(|(own, other)| compare([own, other], &shared, &settings)).collect();
    Ok(ClassCohorts { internal, external, metrics })
}

impl CohortReports {
    /// The reports of a class in the form of all reports, so that they are shown by the same code; `groups` are those of the
    /// internal and the external cohort.
    pub fn of_classes(cohorts: &ClassCohorts, groups: [&ClassGroups; 2]) -> Self {
        Self {
            internal: EvaluationReport::of_class(&cohorts.internal, groups[0]),
            external: EvaluationReport::of_class(&cohorts.external, groups[1]),
            internal_times: None,
            external_times: None,
            metrics: cohorts.metrics.clone(),
        }
    }
}
