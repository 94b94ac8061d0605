//! The whole analysis: follow-up, imputation, metrics at every delta, tipping points.

use crate::evaluation::ScoredCohort;
use crate::evaluation::evaluate::ChosenTimes;
use crate::evaluation::evaluated::Input;
use crate::evaluation::time_window::Covered;
use crate::fairness::Comparison;
use crate::resampling::{Bootstrap, IntervalMethod};
use crate::sensitivity::assemble::Assembly;
use crate::sensitivity::completed::Analysis;
use crate::sensitivity::impute::{Sample, Strata, predictions};
use crate::sensitivity::scores::{Requests, Scores};
use crate::sensitivity::tipping::tipping_points;
use crate::sensitivity::{
    AttributeSensitivity, FollowUp, MetricSensitivity, ObservedValues, SensitivityReport, SensitivitySettings,
};
use crate::{CensoringCurve, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves};

/// Every metric, gap and worst group of `settings` as a function of the hazard ratio exp(delta) of the censored.
///
/// Row `i` of every argument is the same sample; `censoring` is that of the report, from which the evaluation times and the
/// values without imputation are computed. Each of `groups` is analysed by itself, with imputation models in its levels;
/// without any, the whole sample is. Of `settings`, the bootstrap's number of replicates is replaced by that of `sensitivity`,
/// and intervals that would be `bca` or `studentised` are percentile intervals.
///
/// ```
/// use fairtte_metrics::sensitivity::{ImputationModel, SensitivitySettings, sensitivity};
/// use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, Outcomes, Reading, SubjectId, SurvivalCurves};
/// use ndarray::Array2;
///
/// // Ten samples have the event at 1, 2, .., 10; ten leave at 0.5, before all of them.
/// let time: Vec<f64> = (1..=10).map(f64::from).chain([0.5; 10]).collect();
/// let outcomes = Outcomes::new(time, (0..20).map(|row| row < 10).collect())?;
/// let subjects: Vec<SubjectId> = (0..20).map(|row| SubjectId::new(format!("p{row:02}"))).collect();
/// let curves = SurvivalCurves::new(vec![1.0, 10.0], Array2::from_shape_fn((20, 2), |(_, k)| 0.9 - 0.5 * k as f64))?;
/// let settings = EvaluationSettings {
///     metrics: vec!["observed-expected@5".into()],
///     reading: Reading::Linear,
///     ..EvaluationSettings::default()
/// };
/// let tilt = SensitivitySettings {
///     deltas: vec![-40.0, 0.0, 40.0],
///     model: ImputationModel::KaplanMeier,
///     replicates: 0,
///     ..SensitivitySettings::default()
/// };
/// let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?;
/// let found = sensitivity(&subjects, &outcomes, &curves, &censoring, &[], &settings, &tilt)?;
/// let value = |place: usize| found.attributes[0].metrics[0].points[place].overall.value.unwrap();
/// // By time 5 a quarter have the event if the censored never have it, three quarters if they have it at once.
/// let expected = 1.0 - curves.at(0, 5.0, Reading::Linear);
/// assert!((value(0) - 0.25 / expected).abs() < 1e-12);
/// assert!((value(2) - 0.75 / expected).abs() < 1e-12);
/// assert!(value(0) < value(1) && value(1) < value(2));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`evaluate`](crate::evaluate) and of [`SensitivitySettings::validate`]; [`MetricError::UnknownAttribute`] and
/// [`MetricError::UnknownLevel`] for a tilted group that is not there; [`MetricError::InvalidSetting`] for an administrative end
/// after the last observed time, [`MetricError::NotBeforeEnd`] for a metric at a later time;
/// [`MetricError::ImputationModel`] if an imputation model does not exist.
///
/// Cost: number of deltas times (imputations + 2 replicates) times that of one evaluation without intervals, for each
/// attribute; in parallel, and the same for any number of threads.
pub fn sensitivity(
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
    sensitivity: &SensitivitySettings,
) -> Result<SensitivityReport, MetricError> {
    let names: Vec<&str> = groups.iter().map(Groups::attribute).collect();
    sensitivity_of(&ScoredCohort { subjects, outcomes, curves, censoring, groups }, &names, settings, sensitivity)
}

/// As [`sensitivity()`], for the attributes of these names alone. The bootstrap may draw within the levels of the others too, and
/// the settings may name their references.
///
/// # Errors
/// Those of [`sensitivity()`]; [`MetricError::UnknownAttribute`] for a name that no groups have.
pub fn sensitivity_of(
    cohort: &ScoredCohort<'_>,
    attributes: &[&str],
    settings: &EvaluationSettings,
    sensitivity: &SensitivitySettings,
) -> Result<SensitivityReport, MetricError> {
    let ScoredCohort { subjects, outcomes, curves, censoring, groups } = *cohort;
    Input { subjects, outcomes, groups, settings, competing: None }.check()?;
    curves.check_rows(outcomes.n())?;
    sensitivity.validate()?;
    let tilted = sensitivity.tilted(groups, outcomes.n())?;
    if let Some(name) = attributes.iter().find(|name| groups.iter().all(|groups| groups.attribute() != **name)) {
        let known = groups.iter().map(Groups::attribute).collect::<Vec<_>>().join(", ");
        return Err(MetricError::UnknownAttribute { attribute: (*name).to_owned(), known });
    }
    let about = |groups: &&Groups| {
        let is_tilted = |name: &str| sensitivity.group.as_ref().is_none_or(|tilted| tilted.attribute == name);
        attributes.contains(&groups.attribute()) && is_tilted(groups.attribute())
    };
    let mut analysed: Vec<Option<&Groups>> = groups.iter().filter(about).map(Some).collect();
    if analysed.is_empty() {
        analysed.push(None);
    }
    let interval = match settings.interval {
        IntervalMethod::Bca | IntervalMethod::Studentised => IntervalMethod::Percentile,
        method => method,
    };
    let settings = EvaluationSettings { replicates: sensitivity.replicates, interval, ..settings.metrics_only() };
    // Strata are those of the evaluation: of any attribute, and of the events before follow-up is cut at an end.
    let bootstrap = Input { subjects, outcomes, groups, settings: &settings, competing: None }.bootstrap()?;
    let (settings, tilted) = (&settings, &tilted[..]);
    let whole = Whole { subjects, outcomes, curves, censoring, settings, sensitivity, tilted, bootstrap: &bootstrap };
    Ok(SensitivityReport {
        settings: sensitivity.clone(),
        level: settings.level,
        n: outcomes.n(),
        attributes: analysed.into_iter().map(|groups| whole.attribute(groups)).collect::<Result<_, _>>()?,
    })
}

/// The arguments of the analysis.
struct Whole<'a> {
    subjects: &'a [SubjectId],
    outcomes: &'a Outcomes,
    curves: &'a SurvivalCurves,
    censoring: &'a CensoringCurve,
    settings: &'a EvaluationSettings,
    sensitivity: &'a SensitivitySettings,
    tilted: &'a [bool],
    bootstrap: &'a Bootstrap,
}

impl Whole<'_> {
    fn attribute(&self, groups: Option<&Groups>) -> Result<AttributeSensitivity, MetricError> {
        let Self { subjects, curves, settings, sensitivity, .. } = *self;
        let end = self.end(groups)?;
        let outcomes = until(self.outcomes, end)?;
        let of_attribute = groups.map_or(&[][..], std::slice::from_ref);
        let input = Input { subjects, outcomes: &outcomes, groups: of_attribute, settings, competing: None };
        let covered = Covered::by([curves], settings.reading);
        let chosen = ChosenTimes::of(&input, self.censoring, covered);
        let requests = Requests::new(settings, &chosen, end)?;
        let prediction = predictions(curves, settings.reading, &chosen.horizon, sensitivity)?;
        let strata = Strata::new((&outcomes, &prediction), groups, sensitivity.model, settings.min_events);
        let (reading, tilted) = (settings.reading, self.tilted.to_vec());
        let sample = Sample { outcomes: &outcomes, curves, reading, prediction, tilted, end };
        let analysis = Analysis {
            input: &input,
            bootstrap: self.bootstrap,
            settings: sensitivity,
            sample: &sample,
            strata: &strata,
            requests: &requests,
            groups,
        };
        let completed = analysis.completed()?;
        let (metrics, kinds) = (requests.descriptions(), requests.kinds());
        let assembly = Assembly { input: &input, metrics: &metrics, kinds: &kinds };
        let places = 0..sensitivity.deltas.len();
        let points = places.map(|place| {
            assembly.points(sensitivity.deltas[place], &completed.imputations[place], &completed.draws[place])
        });
        let points = points.collect::<Result<Vec<_>, _>>()?;
        let observed = analysis.observed(self.censoring, subjects);
        let zero = sensitivity.zero().unwrap_or(0); // validated: there is one
        let metric = |place: usize| {
            let of_metric: Vec<_> = points.iter().map(|of_delta| of_delta[place].clone()).collect();
            MetricSensitivity {
                name: metrics[place].name.to_owned(),
                label: metrics[place].label.to_owned(),
                higher_is_better: metrics[place].direction == crate::Direction::HigherIsBetter,
                target: kinds[place].target,
                no_best: !kinds[place].has_best,
                observed: observed_values(&observed, place, &input),
                tipping: tipping_points(&of_metric, zero),
                points: of_metric,
            }
        };
        Ok(AttributeSensitivity {
            attribute: groups.map(|groups| groups.attribute().to_owned()),
            end,
            times: chosen.window.as_ref().ok().map(|window| (window.lower, window.upper, window.times.len())),
            horizon: chosen.horizon.ok(),
            n_redrawn: completed.n_redrawn,
            follow_up: follow_up(&sample, &strata, groups),
            metrics: (0..requests.n()).map(metric).collect(),
        })
    }

    /// The administrative end of follow-up.
    fn end(&self, groups: Option<&Groups>) -> Result<f64, MetricError> {
        let last =
            |rows: &mut dyn Iterator<Item = usize>| rows.map(|row| self.outcomes.time()[row]).fold(0.0, f64::max);
        let last_of_all = last(&mut (0..self.outcomes.n()));
        if let Some(end) = self.sensitivity.administrative {
            if end > last_of_all {
                let value = format!("{end} with a last observed time of {last_of_all}");
                let (setting, expected) = ("sensitivity.administrative", "a time up to it");
                return Err(MetricError::InvalidSetting { setting, value, expected });
            }
            return Ok(end);
        }
        let needed = self.settings.min_events.max(1);
        let with_model = |groups: &Groups| -> Option<f64> {
            let levels = groups.ids().map(|group| groups.rows(group));
            let enough = levels.filter(|rows| rows.iter().filter(|row| self.outcomes.event()[**row]).count() >= needed);
            enough.map(|rows| last(&mut rows.into_iter())).reduce(f64::min)
        };
        let end = groups.and_then(with_model).unwrap_or(last_of_all);
        if end > 0.0 {
            return Ok(end);
        }
        let (setting, value) = ("last observed time", end.to_string());
        Err(MetricError::InvalidSetting { setting, value, expected: "a time > 0, up to which times can be imputed" })
    }
}

/// The outcomes with all follow-up ended at `end`.
fn until(outcomes: &Outcomes, end: f64) -> Result<Outcomes, MetricError> {
    let time = outcomes.time().iter().map(|time| time.min(end)).collect();
    let event = outcomes.time().iter().zip(outcomes.event()).map(|(time, event)| *event && *time <= end).collect();
    Outcomes::new(time, event)
}

/// A metric without imputation; the gap is that of the groups that the estimates compare.
fn observed_values(observed: &Scores, metric: usize, input: &Input<'_>) -> ObservedValues {
    let value = |slice: &Vec<Result<f64, MetricError>>| slice[metric].clone().ok();
    let levels = input.slices().skip(1).zip(&observed[1..]);
    let compared = levels.filter(|((_, rows), _)| {
        rows.iter().filter(|row| input.outcomes.event()[**row]).count() >= input.settings.min_events
    });
    let values: Vec<f64> = compared.filter_map(|(_, slice)| value(slice)).collect();
    ObservedValues {
        overall: value(&observed[0]),
        groups: observed[1..].iter().map(value).collect(),
        gap: Comparison::Gap.of(&values, 0.0, crate::Direction::HigherIsBetter),
    }
}

/// How samples left, of all and of every level.
fn follow_up(sample: &Sample<'_>, strata: &Strata, groups: Option<&Groups>) -> Vec<FollowUp> {
    let (time, event) = (sample.outcomes.time(), sample.outcomes.event());
    let dropped_out = |row: &&usize| !event[**row] && time[**row] < sample.end;
    let of = |level: Option<&str>, rows: &[usize], pooled: bool| FollowUp {
        level: level.map(str::to_owned),
        n: rows.len(),
        n_events: rows.iter().filter(|row| event[**row]).count(),
        n_dropouts: rows.iter().filter(dropped_out).count(),
        n_tilted: rows.iter().filter(dropped_out).filter(|row| sample.tilted[**row]).count(),
        n_administrative: rows.iter().filter(|row| !event[**row] && time[**row] >= sample.end).count(),
        pooled,
    };
    let all: Vec<usize> = (0..sample.outcomes.n()).collect();
    let levels = groups.into_iter().flat_map(|groups| {
        groups
            .ids()
            .zip(groups.levels())
            .zip(&strata.own)
            .map(|((id, level), own)| of(Some(level), &groups.rows(id), !own))
    });
    std::iter::once(of(None, &all, false)).chain(levels).collect()
}
