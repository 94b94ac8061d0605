//! The reports of several models on the same samples, their differences from one of them, and which are on the Pareto
//! front of metric and gap.
//!
//! All models are evaluated at the same times, with the same horizon and bootstrap draws, so that every difference is
//! paired (`model_comparison.rs`). A model is on the front if no other one is at least as good in the metric and at least
//! as equal between groups, and better in one of the two. The front compares values, not intervals.

use serde::{Deserialize, Serialize};

use crate::competing::{CompetingOutcomes, IncidenceCurves};
use crate::evaluation::ModelPair;
use crate::evaluation::evaluate::{ChosenTimes, Requested, each_metric};
use crate::evaluation::evaluated::{Input, Predictions};
use crate::evaluation::model_comparison::{check_names, compare_pairs, predictions};
use crate::evaluation::report::{Estimate, EvaluatedCause, EvaluationReport, MetricReport};
use crate::selection::criterion_values::dominates;
use crate::{CensoringCurve, Direction, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves};

/// Several models with their differences from the reference model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelReports {
    /// Name of the model that all others are compared with.
    pub reference: String,
    /// Name and report of every model, in the order given; all have the same samples, times and horizon.
    pub models: Vec<(String, EvaluationReport)>,
    /// One entry per metric and other model: its values minus those of the reference.
    pub pairs: Vec<ModelPair>,
    /// One entry per metric and attribute.
    pub trade_offs: Vec<TradeOff>,
}

/// A metric against its gap between the groups of one attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TradeOff {
    /// Stable name of the metric.
    pub metric: String,
    /// Name of the attribute.
    pub attribute: String,
    /// One entry per model, in the order given.
    pub points: Vec<TradeOffPoint>,
}

/// One model in metric and gap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TradeOffPoint {
    /// Name of the model.
    pub model: String,
    /// The metric over all samples; `None` if it does not exist.
    pub value: Option<f64>,
    /// Lower and upper end of its interval.
    pub interval: Option<(f64, f64)>,
    /// Largest difference between two groups; `None` if it does not exist.
    pub gap: Option<f64>,
    /// Lower and upper end of its interval.
    pub gap_interval: Option<(f64, f64)>,
    /// Whether no other model has both a metric at least as good and a gap at most as large, and one of them better.
    pub on_front: bool,
}

/// Evaluates `models` (name and curves) on the same samples, and compares each with `models[reference]`.
///
/// The other arguments are those of [`evaluate`](crate::evaluate). The evaluation times are covered by the curves of all
/// models, which may have different grids; apart from that, the report of every model is that of
/// [`evaluate`](crate::evaluate). Cost: that of the reports, one after the other.
///
/// ```
/// use fairtte_metrics::evaluation::evaluate_models;
/// use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, Outcomes, SubjectId, SurvivalCurves};
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true; 4])?;
/// let equal = SurvivalCurves::new(vec![0.0, 4.0], array![[1.0, 0.1], [1.0, 0.2], [1.0, 0.3], [1.0, 0.4]])?;
/// // Right in group F, wrong in group M.
/// let unequal = SurvivalCurves::new(vec![0.0, 4.0], array![[1.0, 0.1], [1.0, 0.2], [1.0, 0.9], [1.0, 0.5]])?;
/// let subjects = ["a", "b", "c", "d"].map(SubjectId::from);
/// let membership = [0, 0, 1, 1].map(|group| Some(GroupId(group))).to_vec();
/// let sex = Groups::new("sex", vec!["F".into(), "M".into()], membership)?;
/// let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?;
/// let metrics = vec!["c-td".to_owned()];
/// let settings = EvaluationSettings { replicates: 0, min_events: 1, metrics, ..EvaluationSettings::default() };
/// let models = [("equal", &equal), ("unequal", &unequal)];
/// let found = evaluate_models(&models, 0, &subjects, &outcomes, &censoring, &[sex], &settings)?;
/// // In 5 of 6 pairs "unequal" ranks as observed, in the pair of group M it does not.
/// assert!((found.pairs[0].overall.value.unwrap_or(0.0) - (5.0 / 6.0 - 1.0)).abs() < 1e-12);
/// assert_eq!(found.pairs[0].attributes[0].gap.value, Some(1.0));
/// assert_eq!(found.trade_offs[0].points.iter().map(|point| point.on_front).collect::<Vec<_>>(), [true, false]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`compare_models`](crate::compare_models); [`MetricError::InvalidSetting`] if there is no model `reference`.
pub fn evaluate_models(
    models: &[(&str, &SurvivalCurves)],
    reference: usize,
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<ModelReports, MetricError> {
    reports(models, reference, &Input { subjects, outcomes, competing: None, groups, settings }, censoring)
}

/// Evaluates `models` (name and cumulative incidence of `cause`) as [`evaluate_models`], every report as that of
/// [`evaluate_cause`](crate::evaluation::evaluate_cause).
///
/// # Errors
/// Those of [`evaluate_models`] and of [`evaluate_cause`](crate::evaluation::evaluate_cause).
pub fn evaluate_models_of_cause(
    models: &[(&str, &IncidenceCurves)],
    reference: usize,
    subjects: &[SubjectId],
    (outcomes, cause): (&CompetingOutcomes, u32),
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<ModelReports, MetricError> {
    let (of_cause, competing, settings) = (outcomes.of_cause(cause)?, outcomes.competing(cause)?, settings.of_cause());
    let input = Input { subjects, outcomes: &of_cause, competing: Some(&competing), groups, settings: &settings };
    let without: Vec<(&str, &SurvivalCurves)> = models.iter().map(|(name, curves)| (*name, curves.without())).collect();
    let mut found = reports(&without, reference, &input, censoring)?;
    let about = EvaluatedCause::of(outcomes, cause);
    found.models.iter_mut().for_each(|(_, report)| report.cause = Some(about));
    Ok(found)
}

fn reports(
    models: &[(&str, &SurvivalCurves)],
    reference: usize,
    input: &Input<'_>,
    censoring: &CensoringCurve,
) -> Result<ModelReports, MetricError> {
    let names: Vec<&str> = models.iter().map(|(name, _)| *name).collect();
    check_names(&names)?;
    check_reference(reference, models.len())?;
    input.check()?;
    models.iter().try_for_each(|(_, curves)| curves.check_rows(input.outcomes.n()))?;
    let chosen = ChosenTimes::of_models(models, input, censoring);
    let others: Vec<(usize, usize)> =
        (0..models.len()).filter(|model| *model != reference).map(|model| (model, reference)).collect();
    let of_metric = |metric: &Requested<'_>| {
        let reports: Vec<MetricReport> = (0..models.len()).map(|model| metric.report(input, model)).collect();
        (reports, compare_pairs(&names, &others, metric.evaluated, metric.place, input.settings))
    };
    let predictions = predictions(models, censoring, &chosen);
    let found = each_metric(input, &predictions, &chosen, true, of_metric)?;
    let trade_offs =
        found.iter().flat_map(|(reports, _)| trade_offs(&names, &reports.iter().collect::<Vec<_>>())).collect();
    let mut metrics: Vec<Vec<MetricReport>> = vec![Vec::with_capacity(found.len()); models.len()];
    let mut pairs = Vec::new();
    for (reports, of_metric) in found {
        metrics.iter_mut().zip(reports).for_each(|(of_model, report)| of_model.push(report));
        pairs.extend(of_metric);
    }
    let report = |((name, of_model), metrics): ((&&str, &Predictions<'_>), Vec<MetricReport>)| {
        Ok(((*name).to_owned(), chosen.report(input, of_model, metrics)?))
    };
    let models = names.iter().zip(&predictions).zip(metrics).map(report).collect::<Result<_, MetricError>>()?;
    Ok(ModelReports { reference: names[reference].to_owned(), models, pairs, trade_offs })
}

/// Checks that there is a model `reference`.
pub(crate) fn check_reference(reference: usize, n_models: usize) -> Result<(), MetricError> {
    if reference < n_models {
        return Ok(());
    }
    let (setting, value) = ("place of the reference model", reference.to_string());
    Err(MetricError::InvalidSetting { setting, value, expected: "a place below the number of models" })
}

/// One metric of all models against its gaps.
pub(crate) fn trade_offs(names: &[&str], reports: &[&MetricReport]) -> Vec<TradeOff> {
    let of_attribute = |attribute: usize| {
        let point = |(name, report): (&&str, &&MetricReport)| {
            let (value, gap) = (&report.overall, &report.attributes[attribute].gap);
            TradeOffPoint {
                model: (*name).to_owned(),
                value: value.value,
                interval: ends(value),
                gap: gap.value,
                gap_interval: ends(gap),
                on_front: false,
            }
        };
        let mut points: Vec<TradeOffPoint> = names.iter().zip(reports).map(point).collect();
        let scores: Vec<Option<(f64, f64)>> = points.iter().zip(reports).map(|(p, report)| score(p, report)).collect();
        points.iter_mut().zip(on_front(&scores)).for_each(|(point, is_on)| point.on_front = is_on);
        let attribute = reports[0].attributes[attribute].attribute.clone();
        TradeOff { metric: reports[0].name.clone(), attribute, points }
    };
    (0..reports[0].attributes.len()).map(of_attribute).collect()
}

fn ends(estimate: &Estimate) -> Option<(f64, f64)> {
    estimate.lower.zip(estimate.upper)
}

/// Utility, higher is better, and gap; `None` also if no value of the metric is better than another.
fn score(point: &TradeOffPoint, report: &MetricReport) -> Option<(f64, f64)> {
    let value = point.value.filter(|_| !report.no_best)?;
    let utility = match (report.target, report.direction()) {
        (Some(target), _) => -(value - target).abs(),
        (None, Direction::HigherIsBetter) => value,
        (None, Direction::LowerIsBetter) => -value,
    };
    Some((utility, point.gap?))
}

/// Which of the (utility, gap) are not dominated: no other has a utility at least as high and a gap at most as large, and
/// one of the two better. What is undefined is not on the front. O(n^2).
pub fn on_front(scores: &[Option<(f64, f64)>]) -> Vec<bool> {
    // A small gap is good.
    let goods = |(utility, gap): (f64, f64)| [utility, -gap];
    let is_better =
        |other: (f64, f64), own: (f64, f64)| dominates(Direction::HigherIsBetter, &goods(other), &goods(own));
    let is_on = |own: (f64, f64)| !scores.iter().flatten().any(|other| is_better(*other, own));
    scores.iter().map(|own| own.is_some_and(is_on)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_is_what_no_other_model_beats_in_one_without_losing_in_the_other() {
        let scores = [Some((0.7, 0.1)), Some((0.8, 0.2)), Some((0.75, 0.2)), None, Some((0.6, 0.1)), Some((0.5, 0.05))];
        assert_eq!(on_front(&scores), [true, true, false, false, false, true]);
        assert_eq!(on_front(&[Some((0.7, 0.1)), Some((0.7, 0.1))]), [true, true], "equal models share a place");
        assert_eq!(on_front(&[]), Vec::<bool>::new());
    }
}
