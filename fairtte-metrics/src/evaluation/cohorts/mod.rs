//! One model in two cohorts: is it worse in the external one, more so for a group, and by more than chance?
//!
//! Both cohorts are evaluated at the same times, those that both cover, and at one horizon: the median event time of the
//! internal cohort, moved into these times, unless the settings name one. Every difference is external minus internal. The
//! cohorts have different subjects, so each is resampled by itself (`unpaired.rs`); the interval of one number is that of
//! its own evaluation.
//!
//! A gap compares the groups that have at least `min-events` events in both cohorts. The replicates of a gap are too large,
//! the more the smaller a cohort is; the interval of a difference of gaps is therefore recovered from those of both gaps
//! ([`recovered_interval`](crate::resampling::recovered_interval)), and its p value, found by bisection, is that of this
//! interval. What says whether one group lost more than another is the difference of their changes, (a external - a
//! internal) - (b external - b internal), which has no such bias.
//!
//! p values are adjusted by Holm's method within a metric: those over all samples, in every group and of the gaps are one
//! family, the differences of changes another.

mod classes;
mod differences;

use serde::{Deserialize, Serialize};

pub use self::classes::{ClassCohort, ClassCohorts, evaluate_class_cohorts};
use self::differences::compare;
use crate::evaluation::evaluate::{ChosenTimes, Requested, each_metric};
use crate::evaluation::evaluated::{Counted, Evaluated, Input, Predictions, Sampled};
use crate::evaluation::report::{Difference, Estimate, EvaluationReport, GroupDifference, MetricReport};
use crate::evaluation::simultaneous::gap_interval;
use crate::evaluation::summary::Summary;
use crate::evaluation::time_window::{Covered, KnownTimes, TimeWindow, choose_horizon, choose_times, common_window};
use crate::fairness::Comparison;
use crate::{CensoringCurve, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves};

/// A cohort with the predictions of its samples; row `i` of every field is the same sample.
#[derive(Clone, Copy, Debug)]
pub struct ScoredCohort<'a> {
    /// The subject of every sample.
    pub subjects: &'a [SubjectId],
    /// Times and events.
    pub outcomes: &'a Outcomes,
    /// Predicted survival.
    pub curves: &'a SurvivalCurves,
    /// The censoring curve that weights this cohort.
    pub censoring: &'a CensoringCurve,
    /// Its groups; an attribute of the same name in the other cohort is compared, level by level by name.
    pub groups: &'a [Groups],
}

/// The reports of both cohorts and their differences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CohortReports {
    /// The internal cohort at the common times and horizon, without relabelled groups and curves over time.
    pub internal: EvaluationReport,
    /// The external cohort at the same times.
    pub external: EvaluationReport,
    /// The evaluation times of the internal cohort by itself; `None` if it has none.
    pub internal_times: Option<TimeWindow>,
    /// Those of the external cohort by itself.
    pub external_times: Option<TimeWindow>,
    /// One entry per metric, in the order of the settings.
    pub metrics: Vec<CohortMetric>,
}

/// One metric in both cohorts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CohortMetric {
    /// Stable name, as in [`MetricReport`].
    pub name: String,
    /// Over all samples.
    pub overall: InBoth,
    /// One entry per attribute of both cohorts.
    pub attributes: Vec<CohortAttribute>,
}

/// One metric in the groups of one attribute, in both cohorts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CohortAttribute {
    /// Name of the attribute.
    pub attribute: String,
    /// Every level of either cohort, with its name: those of the internal one first.
    pub groups: Vec<(String, InBoth)>,
    /// The levels that the gaps compare: enough events in both cohorts.
    pub compared: Vec<String>,
    /// Largest difference between two of these groups, in each cohort.
    pub gap: InBoth,
    /// Of every two groups with a value in both cohorts (or of each and the reference of the settings): the external minus
    /// the internal value of the first, minus that of the second. Below 0 where higher is better, the first lost more.
    pub changes: Vec<GroupDifference>,
}

/// One number in both cohorts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct InBoth {
    /// In the internal cohort.
    pub internal: Estimate,
    /// In the external cohort.
    pub external: Estimate,
    /// External minus internal.
    pub difference: Difference,
}

/// Evaluates one model in two cohorts of different subjects: the report of each at the same times, and the differences of
/// all metrics, groups and gaps with unpaired bootstrap intervals.
///
/// ```
/// use fairtte_metrics::evaluation::{ScoredCohort, evaluate_cohorts};
/// use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, Outcomes, Reading, SubjectId, SurvivalCurves};
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true, true, true, false])?;
/// let subjects = ["a", "b", "c", "d"].map(SubjectId::from);
/// let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?;
/// let good = SurvivalCurves::new(vec![1.0], array![[0.1], [0.2], [0.3], [0.4]])?;
/// let bad = SurvivalCurves::new(vec![1.0], array![[0.4], [0.3], [0.2], [0.1]])?;
/// let cohort = |curves| ScoredCohort { subjects: &subjects, outcomes: &outcomes, curves, censoring: &censoring, groups: &[] };
/// let settings = EvaluationSettings { replicates: 50, reading: Reading::Step, ..EvaluationSettings::default() };
/// let found = evaluate_cohorts(&cohort(&good), &cohort(&bad), &settings)?;
/// assert_eq!(found.metrics[0].overall.difference.value, Some(-1.0));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`evaluate`](crate::evaluate) for either cohort. Cohorts without common evaluation times have reports that say
/// so.
pub fn evaluate_cohorts(
    internal: &ScoredCohort<'_>,
    external: &ScoredCohort<'_>,
    settings: &EvaluationSettings,
) -> Result<CohortReports, MetricError> {
    let settings = settings.metrics_only();
    let cohorts = [internal, external];
    let inputs = cohorts.map(|cohort| Input {
        subjects: cohort.subjects,
        outcomes: cohort.outcomes,
        competing: None,
        groups: cohort.groups,
        settings: &settings,
    });
    for (cohort, input) in cohorts.iter().zip(&inputs) {
        input.check()?;
        cohort.curves.check_rows(cohort.outcomes.n())?;
    }
    let own_times = cohorts.map(|cohort| {
        let covered = Covered::by([cohort.curves], settings.reading);
        choose_times(cohort.outcomes, cohort.censoring, covered, &settings)
    });
    let known =
        |cohort: &ScoredCohort<'_>| KnownTimes::of(cohort.outcomes, Covered::by([cohort.curves], settings.reading));
    let chosen = common_times(internal, known(internal).and(known(external)), &own_times, &settings);
    let of_cohorts = cohorts.map(|cohort| (cohort.outcomes, cohort.groups));
    let shared = shared_attributes(of_cohorts, Counted::Events, settings.min_events);
    let side = |place: usize| -> Result<(Vec<Side>, EvaluationReport), MetricError> {
        let (cohort, input) = (cohorts[place], &inputs[place]);
        let predictions = [Predictions { curves: cohort.curves, censoring: cohort.censoring, times: chosen.times() }];
        let of_metric = |metric: &Requested<'_>| {
            Side::of(metric.report(input, 0), (&metric.evaluated[0], metric.place), input, &shared, place)
        };
        let sides = each_metric(input, &predictions, &chosen, false, of_metric)?;
        let report = chosen.report(input, &predictions[0], sides.iter().map(|side| side.report.clone()).collect())?;
        Ok((sides, report))
    };
    let ((own, internal), (other, external)) = (side(0)?, side(1)?);
    let metrics = own.iter().zip(&other).map(|(own, other)| compare([own, other], &shared, &settings)).collect();
    let [internal_times, external_times] = own_times.map(Result::ok);
    Ok(CohortReports { internal, external, internal_times, external_times, metrics })
}

/// The times of both cohorts, or why there are none.
fn common_times(
    internal: &ScoredCohort<'_>,
    known: KnownTimes,
    own_times: &[Result<TimeWindow, MetricError>; 2],
    settings: &EvaluationSettings,
) -> ChosenTimes {
    let window = match own_times {
        [Ok(internal), Ok(external)] => common_window(internal, external, settings),
        [Err(reason), _] | [_, Err(reason)] => Err(reason.clone()),
    };
    let horizon = choose_horizon(internal.outcomes, window.as_ref().ok(), known, settings);
    ChosenTimes { window, horizon, known }
}

/// An attribute of both cohorts.
struct Shared {
    attribute: String,
    /// Its place among the groups of each cohort.
    places: [usize; 2],
    levels: Vec<SharedLevel>,
    /// What the events of its levels are.
    counted: Counted,
}

/// A level of either cohort.
struct SharedLevel {
    level: String,
    /// Its place among the levels of each cohort.
    places: [Option<usize>; 2],
    /// Its events, or what is counted in their place, in the cohort that has fewer.
    n_events: usize,
    /// Whether gaps compare it.
    is_compared: bool,
}

/// The attributes of both cohorts; a level is compared with `min_events` of what is `counted` in each.
fn shared_attributes(cohorts: [(&Outcomes, &[Groups]); 2], counted: Counted, min_events: usize) -> Vec<Shared> {
    let of_attribute = |(place, own): (usize, &Groups)| {
        let other_place = cohorts[1].1.iter().position(|other| other.attribute() == own.attribute())?;
        let both = [own, &cohorts[1].1[other_place]];
        let more = both[1].levels().iter().filter(|level| !own.levels().contains(level));
        let level = |level: &String| {
            let places = both.map(|groups| groups.levels().iter().position(|other| other == level));
            let events = |k: usize| places[k].map_or(0, |place| n_counted(cohorts[k].0, both[k], place, counted));
            let n_events = events(0).min(events(1));
            let is_in_both = places.iter().all(Option::is_some);
            SharedLevel { level: level.clone(), places, n_events, is_compared: is_in_both && n_events >= min_events }
        };
        let levels = own.levels().iter().chain(more).map(level).collect();
        Some(Shared { attribute: own.attribute().to_owned(), places: [place, other_place], levels, counted })
    };
    cohorts[0].1.iter().enumerate().filter_map(of_attribute).collect()
}

fn n_counted(outcomes: &Outcomes, groups: &Groups, level: usize, counted: Counted) -> usize {
    let is_in = |group: &Option<crate::GroupId>| group.is_some_and(|group| group.index() == level);
    let of_level = groups.membership().iter().zip(outcomes.event()).filter(|(group, _)| is_in(group));
    let (n, n_events) = of_level.fold((0, 0), |(n, n_events), (_, event)| (n + 1, n_events + usize::from(*event)));
    counted.of(n, n_events)
}

/// One metric of one cohort.
struct Side {
    report: MetricReport,
    overall: Sampled,
    attributes: Vec<SideAttribute>,
}

struct SideAttribute {
    /// One per shared level; `None` where the cohort lacks it.
    groups: Vec<Option<(Estimate, Sampled)>>,
    /// The gap of the levels that are compared.
    gap: Estimate,
    /// That gap with its replicates.
    sampled_gap: Sampled,
    /// The shared levels behind the gap.
    behind_gap: Vec<usize>,
}

impl Side {
    /// The metric at its place in `evaluated`, with its report, of the cohort at `place`.
    fn of(
        report: MetricReport,
        (evaluated, metric): (&Evaluated<'_>, usize),
        input: &Input<'_>,
        shared: &[Shared],
        place: usize,
    ) -> Self {
        let summary = Summary { input, evaluated };
        let of_attribute = |shared: &Shared| {
            let attribute = shared.places[place];
            let group = |level: &SharedLevel| {
                let level = level.places[place]?;
                let estimate = summary.group_estimate(metric, attribute, level);
                Some((estimate, evaluated.group(metric, attribute, level)))
            };
            let groups: Vec<Option<(Estimate, Sampled)>> = shared.levels.iter().map(group).collect();
            let mut compared = evaluated.per_group(metric, attribute);
            for (place_in_cohort, of_level) in compared.groups.iter_mut().enumerate() {
                let level = shared.levels.iter().find(|level| level.places[place] == Some(place_in_cohort));
                if let Some(level) = level.filter(|level| !level.is_compared) {
                    let needed = input.settings.min_events;
                    of_level.value = Err(evaluated.counted.too_few(level.n_events, needed));
                }
            }
            let is_behind = |level: &usize| {
                let place_in_cohort = shared.levels[*level].places[place];
                place_in_cohort.is_some_and(|place| compared.groups[place].value.is_ok())
            };
            let behind_gap: Vec<usize> = (0..shared.levels.len()).filter(is_behind).collect();
            let sampled_gap = evaluated.comparison_of(metric, attribute, Comparison::Gap, &compared);
            let slice = |level: &usize| {
                let place_in_cohort = shared.levels[*level].places[place]?;
                evaluated.attributes[attribute].groups[place_in_cohort].value.as_ref().ok()
            };
            let slices: Vec<_> = behind_gap.iter().filter_map(slice).collect();
            let rows: Vec<usize> = slices.iter().flat_map(|slice| slice.rows.iter().copied()).collect();
            let found = SideAttribute { gap: summary.estimate(&sampled_gap, &rows), groups, sampled_gap, behind_gap };
            let ends = found.gap_interval(input.settings).filter(|_| found.gap.value.is_some());
            let gap = match ends {
                Some((lower, upper)) => {
                    Estimate { lower: Some(lower), upper: Some(upper), interval_undefined: None, ..found.gap.clone() }
                }
                None => found.gap.clone(),
            };
            SideAttribute { gap: summary.cautioned(metric, gap, &slices), ..found }
        };
        Self { report, overall: evaluated.overall(metric), attributes: shared.iter().map(of_attribute).collect() }
    }
}

impl SideAttribute {
    /// The interval of the gap at the level of `settings`.
    fn gap_interval(&self, settings: &EvaluationSettings) -> Option<(f64, f64)> {
        let groups = self.behind_gap.iter().filter_map(|level| self.groups[*level].as_ref());
        let groups: Vec<Sampled> = groups.map(|(_, sampled)| sampled.clone()).collect();
        gap_interval(&groups, settings)
    }
}
