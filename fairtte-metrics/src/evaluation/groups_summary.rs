//! Who the samples of every group are: counts, follow-up, and the risks at the horizon ("Table 1" of a page).
//!
//! The median follow-up is that of the reverse Kaplan-Meier curve, in which a censoring is the event and an event ends
//! the observation: Schemper & Smith (1996), doi:10.1016/0197-2456(96)00075-X. It is the first time at which that curve is
//! at most 1/2, as in lifelines; at tied times samples with an event still count as observed, as in R
//! `survfit(Surv(time, 1 - status))`.
//! The observed risk is 1 - Kaplan-Meier with its interval on the log(-log) scale; that of O/E is the same divided by
//! the mean predicted risk, which is taken as known. Both treat samples as independent: with several samples per subject
//! they are too narrow, and the bootstrap interval of the metric `observed-expected` is not.

use serde::{Deserialize, Serialize};

use crate::calibration::observed_expected::PreparedObservedExpected;
use crate::competing::calibration::PreparedCauseObserved;
use crate::competing::{CompetingOutcomes, observed_without};
use crate::estimators::KaplanMeier;
use crate::evaluation::evaluated::{AtHorizon, Input, count_subjects};
use crate::{GroupId, Groups, MetricError, Outcomes, SubjectId};

/// The samples of one group (or all: no attribute, no level).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupSummary {
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// Name of the level.
    pub level: Option<String>,
    /// Samples.
    pub n: usize,
    /// Distinct subjects among them.
    pub n_subjects: usize,
    /// Observed events at any time.
    pub n_events: usize,
    /// Events of other causes, where one of several causes is evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_competing: Option<usize>,
    /// Share of samples without an observed event, in [0, 1]; `None` without samples.
    pub censored: Option<f64>,
    /// Median follow-up, in the unit of the data set; `None` if fewer than half of the samples are, by the reverse
    /// Kaplan-Meier curve, ever censored.
    pub median_follow_up: Option<f64>,
    /// The risks at the horizon; `None` if they do not exist.
    pub at_horizon: Option<HorizonRisk>,
    /// Why they do not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_horizon_undefined: Option<String>,
}

/// Observed and predicted risk at the horizon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HorizonRisk {
    /// Observed events by the horizon.
    pub n_events: usize,
    /// 1 - Kaplan-Meier, of one of several causes Aalen-Johansen, in [0, 1].
    pub observed: f64,
    /// Ends of its pointwise interval; `None` without an event by the horizon and where no sample is left.
    pub observed_interval: Option<(f64, f64)>,
    /// Mean predicted risk, in [0, 1].
    pub predicted: f64,
    /// Observed divided by predicted risk: above 1 the risk is underestimated. `None` if every predicted risk is 0.
    pub ratio: Option<f64>,
    /// Ends of the interval of the observed risk, divided by the predicted one.
    pub ratio_interval: Option<(f64, f64)>,
}

/// All samples, then every group of every attribute; O(n log n) per attribute.
///
/// # Errors
/// Those of [`KaplanMeier::interval`] for the level of the settings.
pub(crate) fn groups_summary(
    input: &Input<'_>,
    at: Result<&AtHorizon, &MetricError>,
) -> Result<Vec<GroupSummary>, MetricError> {
    input.slices().map(|(name, rows)| summary(name, &rows, input, at)).collect()
}

/// Counts and follow-up of samples before any model: all of them, then every group of every attribute. There are no risks
/// at a horizon. O(n log n) per attribute.
///
/// # Errors
/// [`MetricError::LengthMismatch`] if subjects or groups do not have one entry per sample.
///
/// ```
/// use fairtte_metrics::evaluation::describe_groups;
/// use fairtte_metrics::{GroupId, Groups, Outcomes, SubjectId};
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, false, false])?;
/// let subjects = ["a", "a", "b"].map(SubjectId::from);
/// let sex = Groups::new("sex", vec!["F".into(), "M".into()], vec![Some(GroupId(0)), Some(GroupId(1)), None])?;
/// let described = describe_groups(&subjects, &outcomes, &[sex])?;
/// assert_eq!(described.len(), 3);
/// assert_eq!((described[0].n, described[0].n_subjects, described[0].n_events), (3, 2, 1));
/// // Of two samples that are still observed at 2 one is censored there.
/// assert_eq!((described[0].median_follow_up, described[2].level.as_deref()), (Some(2.0), Some("M")));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
pub fn describe_groups(
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    groups: &[Groups],
) -> Result<Vec<GroupSummary>, MetricError> {
    described(subjects, (outcomes, None), groups)
}

/// As [`describe_groups`], of one of several causes: events are those of `cause`, those of others are counted apart.
///
/// # Errors
/// As [`describe_groups`]; [`MetricError::UnknownCause`].
pub fn describe_groups_of_cause(
    subjects: &[SubjectId],
    (outcomes, cause): (&CompetingOutcomes, u32),
    groups: &[Groups],
) -> Result<Vec<GroupSummary>, MetricError> {
    let competing = outcomes.competing(cause)?;
    described(subjects, (&outcomes.of_cause(cause)?, Some(&competing)), groups)
}

fn described(
    subjects: &[SubjectId],
    (outcomes, competing): (&Outcomes, Option<&[bool]>),
    groups: &[Groups],
) -> Result<Vec<GroupSummary>, MetricError> {
    let expected = outcomes.n();
    let lengths = groups.iter().map(|groups| ("group memberships", groups.n()));
    for (what, found) in std::iter::once(("subjects", subjects.len())).chain(lengths) {
        if found != expected {
            return Err(MetricError::LengthMismatch { what, found, expected });
        }
    }
    let all: Vec<usize> = (0..expected).collect();
    let mut described = vec![counts(None, &all, subjects, (outcomes, competing))?];
    for groups in groups {
        let name = |group: GroupId| Some((groups.attribute(), groups.levels()[group.index()].as_str()));
        for group in groups.ids() {
            described.push(counts(name(group), &groups.rows(group), subjects, (outcomes, competing))?);
        }
    }
    Ok(described)
}

/// The part of a summary that needs no predictions.
fn counts(
    name: Option<(&str, &str)>,
    rows: &[usize],
    subjects: &[SubjectId],
    (outcomes, competing): (&Outcomes, Option<&[bool]>),
) -> Result<GroupSummary, MetricError> {
    let outcomes = outcomes.select(rows);
    let (n, n_events) = (outcomes.n(), outcomes.n_events());
    let competing = competing.map(|competing| rows.iter().map(|row| competing[*row]).collect::<Vec<_>>());
    let n_competing = competing.as_ref().map(|competing| competing.iter().filter(|other| **other).count());
    let of_any_cause = |row: usize| outcomes.event()[row] || competing.as_ref().is_some_and(|other| other[row]);
    let ended = Outcomes::new(outcomes.time().to_vec(), (0..n).map(of_any_cause).collect())?;
    Ok(GroupSummary {
        attribute: name.map(|(attribute, _)| attribute.to_owned()),
        level: name.map(|(_, level)| level.to_owned()),
        n,
        n_subjects: count_subjects(subjects, rows),
        n_events,
        n_competing,
        censored: (n > 0).then(|| (n - ended.n_events()) as f64 / n as f64),
        median_follow_up: median_follow_up(&ended)?,
        at_horizon: None,
        at_horizon_undefined: None,
    })
}

fn summary(
    name: Option<(&str, &str)>,
    rows: &[usize],
    input: &Input<'_>,
    at: Result<&AtHorizon, &MetricError>,
) -> Result<GroupSummary, MetricError> {
    let at_horizon = at.map_err(MetricError::clone).and_then(|at| {
        let (outcomes, competing) = (input.outcomes.select(rows), input.competing_of(rows));
        horizon_risk((&outcomes, competing.as_deref()), at.risk_of(rows), at.time, input.settings.level)
    });
    Ok(GroupSummary {
        at_horizon_undefined: at_horizon.as_ref().err().map(ToString::to_string),
        at_horizon: at_horizon.ok(),
        ..counts(name, rows, input.subjects, (input.outcomes, input.competing))?
    })
}

/// The first time at which the reverse Kaplan-Meier curve is at most 1/2.
fn median_follow_up(outcomes: &Outcomes) -> Result<Option<f64>, MetricError> {
    if outcomes.n() == 0 {
        return Ok(None);
    }
    let censored = outcomes.event().iter().map(|event| !event).collect();
    let curve = KaplanMeier::fit(&Outcomes::new(outcomes.time().to_vec(), censored)?)?;
    // A product that is 1/2 may be rounded to a little more.
    let place = curve.survival().iter().position(|survival| *survival <= 0.5 * (1.0 + 1e-12));
    Ok(place.map(|place| curve.times()[place]))
}

fn horizon_risk(
    (outcomes, competing): (&Outcomes, Option<&[bool]>),
    risk: Vec<f64>,
    horizon: f64,
    level: f64,
) -> Result<HorizonRisk, MetricError> {
    let n = outcomes.n();
    if n == 0 {
        return Err(MetricError::NoSamples);
    }
    let predicted = risk.iter().sum::<f64>() / n as f64;
    let found = match competing {
        None => PreparedObservedExpected::new(outcomes, risk, horizon).weighted(&vec![1; n]),
        Some(competing) => PreparedCauseObserved::new((outcomes, competing), risk, horizon).weighted(&vec![1; n]),
    };
    let observed = match &found {
        Ok(found) => found.observed,
        // The observed risk exists all the same.
        Err(MetricError::NoPredictedRisk { .. }) => 1.0 - observed_without(outcomes, competing)?.at(horizon),
        Err(reason) => return Err(reason.clone()),
    };
    let observed_interval = observed_interval((outcomes, competing), horizon, level)?;
    let divided = |(lower, upper)| (lower / predicted, upper / predicted);
    Ok(HorizonRisk {
        n_events: outcomes.n_events_by(horizon),
        observed,
        observed_interval,
        predicted,
        ratio: found.as_ref().ok().map(|found| found.ratio),
        ratio_interval: observed_interval.filter(|_| found.is_ok()).map(divided),
    })
}

/// The interval of the risk 1 - Kaplan-Meier (of one of several causes, Aalen-Johansen) at `time`; `None` before the first event and once the curve is 0.
///
/// # Errors
/// [`MetricError::NoSamples`], and [`MetricError::InvalidSetting`] for a level outside (0, 1).
pub(crate) fn observed_interval(
    (outcomes, competing): (&Outcomes, Option<&[bool]>),
    time: f64,
    level: f64,
) -> Result<Option<(f64, f64)>, MetricError> {
    let curve = observed_without(outcomes, competing)?;
    let intervals = curve.interval(level)?;
    let passed = curve.times().partition_point(|step| *step <= time);
    let at = passed.checked_sub(1).filter(|place| curve.survival()[*place] < 1.0);
    Ok(at.and_then(|place| intervals[place]).map(|(lower, upper)| (1.0 - upper, 1.0 - lower)))
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::array;

    use super::*;
    use crate::{EvaluationSettings, GroupId, Groups, SubjectId, SurvivalCurves};

    fn outcomes(rows: &[(f64, bool)]) -> Outcomes {
        let (time, event) = rows.iter().copied().unzip();
        Outcomes::new(time, event).unwrap()
    }

    #[test]
    fn the_median_follow_up_is_that_of_the_reverse_curve() {
        // Censored at 2 (of 4 at risk: 3/4) and at 4 (of 2: 3/8); the median of the times is 3.
        let five = outcomes(&[(1.0, true), (2.0, false), (3.0, true), (4.0, false), (5.0, false)]);
        assert_eq!(median_follow_up(&five), Ok(Some(4.0)));
        // A censoring at the time of an event: 2 of 4 at risk at 2, which is exactly 1/2.
        let tied = outcomes(&[(2.0, true), (2.0, false), (2.0, false), (5.0, true)]);
        assert_eq!(median_follow_up(&tied), Ok(Some(2.0)));
        // 12 of 24 are left, and 23/24 * 22/23 * .. * 12/13 is rounded to more than 1/2.
        let many: Vec<(f64, bool)> = (1..=24).map(|k| (f64::from(k), false)).collect();
        assert_eq!(median_follow_up(&outcomes(&many)), Ok(Some(12.0)));
        // One of three is censored first, then none: the curve stays at 2/3.
        assert_eq!(median_follow_up(&outcomes(&[(1.0, false), (2.0, true), (3.0, true)])), Ok(None));
        assert_eq!(median_follow_up(&outcomes(&[])), Ok(None));
    }

    #[test]
    fn a_group_has_its_own_counts_and_risks() {
        // Women: event at 1 of 2 at risk, so 1 - KM(2) = 1/2. Men: none has the event by 2, one has it at 3.
        let outcomes = outcomes(&[(1.0, true), (4.0, false), (3.0, true), (5.0, false)]);
        let curves = SurvivalCurves::new(vec![2.0], array![[0.5], [1.0], [0.5], [0.75]]).unwrap();
        let groups =
            Groups::new("sex", vec!["F".into(), "M".into()], [0, 0, 1, 1].map(|g| Some(GroupId(g))).into()).unwrap();
        let subjects: Vec<SubjectId> = ["a", "a", "b", "c"].into_iter().map(SubjectId::from).collect();
        let settings = EvaluationSettings::default();
        let groups = [groups];
        let input =
            Input { subjects: &subjects, outcomes: &outcomes, competing: None, groups: &groups, settings: &settings };
        let found = groups_summary(&input, Ok(&AtHorizon::new(&curves, settings.reading, 2.0))).unwrap();
        let counts: Vec<_> = found.iter().map(|g| (g.n, g.n_subjects, g.n_events, g.censored)).collect();
        assert_eq!(counts, [(4, 3, 2, Some(0.5)), (2, 1, 1, Some(0.5)), (2, 2, 1, Some(0.5))]);
        let (women, men) = (found[1].at_horizon.as_ref().unwrap(), found[2].at_horizon.as_ref().unwrap());
        assert_eq!((women.observed, women.predicted, women.ratio, women.n_events), (0.5, 0.25, Some(2.0), 1));
        // S = 1/2, variance 1/8: bounds 0.5^exp(+-1.959964 * sqrt(1/8) / (0.5 * ln 2)) are 0.0060 and 0.9104.
        let (lower, upper) = women.observed_interval.unwrap();
        assert_abs_diff_eq!(lower, 0.089_6, epsilon = 1e-4);
        assert_abs_diff_eq!(upper, 0.994_0, epsilon = 1e-4);
        assert_abs_diff_eq!(women.ratio_interval.unwrap().0, 4.0 * lower, epsilon = 1e-12);
        let of_men = (men.observed, men.observed_interval, men.predicted, men.ratio, men.n_events);
        assert_eq!(of_men, (0.0, None, 0.375, Some(0.0), 0));
    }

    #[test]
    fn risks_that_do_not_exist_say_why() {
        let short = outcomes(&[(1.0, true), (2.0, false)]);
        let beyond = horizon_risk((&short, None), vec![0.5; 2], 3.0, 0.95);
        assert_eq!(beyond, Err(MetricError::BeyondFollowUp { time: 3.0, last: 2.0 }));
        let without_risk = horizon_risk((&short, None), vec![0.0; 2], 1.0, 0.95).unwrap();
        assert_eq!((without_risk.observed, without_risk.ratio, without_risk.ratio_interval), (0.5, None, None));
        assert_eq!(horizon_risk((&outcomes(&[]), None), vec![], 1.0, 0.95), Err(MetricError::NoSamples));
    }
}
