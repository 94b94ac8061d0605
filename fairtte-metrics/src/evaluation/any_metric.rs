//! The evaluation of any metric: groups, gaps, intervals, differences of models.
//!
//! The four metrics of [`evaluate`](crate::evaluate) share sorted samples between replicates. Here a metric is a
//! function of row numbers that is called again for every replicate and group: slow, but applicable to everything that
//! can be computed from a selection of rows. Draws, jackknife blocks, comparisons and intervals are the same, so
//! numbers of both paths with the same subjects, strata and seed are paired.

use crate::evaluation::ModelComparison;
use crate::evaluation::evaluated::{Evaluated, Input};
use crate::evaluation::model_comparison::{check_names, compare_evaluated};
use crate::evaluation::report::{MetricDescription, MetricReport};
use crate::evaluation::summary::Summary;
use crate::{EvaluationSettings, Groups, MetricError, Outcomes, SubjectId};

/// A metric of the samples with these row numbers: ascending, never empty, a row as often as it was drawn.
pub type RowMetric<'a> = dyn Fn(&[usize]) -> Result<f64, MetricError> + Sync + 'a;

/// Evaluates any metric as [`evaluate`](crate::evaluate) does its own: the whole sample, every group of every
/// attribute, gap, ratio, worst group, equity scaling and the differences of every two groups, with intervals from the
/// same draws.
///
/// Row `i` of `subjects`, `outcomes` and `groups` is sample `i` of the metric. Where the metric fails or its value is
/// not a finite number, the report contains the reason; in a replicate this counts as undefined. Of the settings, those
/// of replicates and intervals are used; reading and times are up to the metric. Counts of pairs and undefined times
/// stay empty.
///
/// Cost: 1 + number of levels calls of the metric per replicate (with `bca` also per jackknife block), in parallel over
/// replicates; the result does not depend on the number of threads.
///
/// RSBS and Harrell's C by group:
///
/// ```
/// use fairtte_metrics::{Direction, EvaluationSettings, GroupId, Groups, Outcomes, Reading, Risk, SubjectId, SurvivalCurves};
/// use fairtte_metrics::evaluation::{MetricDescription, evaluate_metric};
/// use fairtte_metrics::rank::{TieTest, TiedPairs, harrell_concordance};
/// use fairtte_metrics::scores::{BrierConvention, IntegratedScoreRule};
/// use ndarray::Array2;
///
/// // 40 people in two groups; the model predicts the same curve for all, and risks of which one is wrong.
/// let time: Vec<f64> = (0..40).map(|k| 1.0 + f64::from(k)).collect();
/// let outcomes = Outcomes::new(time, (0..40).map(|k| k % 3 != 0).collect())?;
/// let subjects: Vec<SubjectId> = (0..40).map(|k| SubjectId::new(format!("p{k:02}"))).collect();
/// let membership = (0..40).map(|k| Some(GroupId(k % 2))).collect();
/// let sex = Groups::new("sex", vec!["F".into(), "M".into()], membership)?;
/// let settings = EvaluationSettings { replicates: 100, ..EvaluationSettings::default() };
///
/// let curves = SurvivalCurves::new(vec![1.0, 20.0], Array2::from_shape_fn((40, 2), |(_, k)| 0.9 - 0.4 * k as f64))?;
/// let censoring = BrierConvention::Mlr3proba.censoring_curve(&outcomes)?;
/// let rsbs = |rows: &[usize]| {
///     let (outcomes, curves) = (outcomes.select(rows), curves.select(rows));
///     let score = IntegratedScoreRule::RSBS.score(&outcomes, &curves, &censoring, Reading::Step, &[5.0, 10.0, 30.0])?;
///     Ok(score.value)
/// };
/// let description = MetricDescription {
///     name: "rsbs",
///     label: "RSBS",
///     convention: "reweighted survival Brier score as in mlr3proba, times 5, 10 and 30",
///     direction: Direction::LowerIsBetter,
/// };
/// let report = evaluate_metric(description, rsbs, &subjects, &outcomes, std::slice::from_ref(&sex), &settings)?;
/// let women = &report.attributes[0].groups[0].estimate;
/// assert!(women.lower < women.value && women.value < women.upper);
///
/// let risk: Vec<f64> = (0..40).map(|k| if k == 20 { 99.0 } else { -f64::from(k) }).collect();
/// let harrell = |rows: &[usize]| {
///     let risk = Risk::new(rows.iter().map(|&row| risk[row]).collect())?;
///     Ok(harrell_concordance(&outcomes.select(rows), &risk, TieTest::Near, TiedPairs::Predictions)?.value)
/// };
/// let description = MetricDescription {
///     name: "harrell_c",
///     label: "Harrell C",
///     convention: "ties within 1e-8 count 1/2",
///     direction: Direction::HigherIsBetter,
/// };
/// let report = evaluate_metric(description, harrell, &subjects, &outcomes, &[sex], &settings)?;
/// // The wrong risk is in group F.
/// assert_eq!(report.attributes[0].worst_group.as_deref(), Some("F"));
/// assert_eq!(report.attributes[0].groups[1].estimate.value, Some(1.0));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`evaluate`](crate::evaluate) for subjects, groups and settings.
pub fn evaluate_metric(
    description: MetricDescription<'_>,
    metric: impl Fn(&[usize]) -> Result<f64, MetricError> + Sync,
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<MetricReport, MetricError> {
    let input = Input { subjects, outcomes, competing: None, groups, settings };
    input.check()?;
    let evaluated = Evaluated::of_metric(&input, &description, &metric, true)?;
    Ok(Summary { input: &input, evaluated: &evaluated }.metric(0))
}

/// Compares every two of `models` (name, and the metric of that model's predictions) in any metric, with the same draws
/// for all of them; as [`compare_models`](crate::compare_models) does in its own.
///
/// ```
/// use fairtte_metrics::{Direction, EvaluationSettings, MetricError, Outcomes, Risk, SubjectId};
/// use fairtte_metrics::evaluation::{MetricDescription, RowMetric, compare_metric};
/// use fairtte_metrics::rank::{TieTest, TiedPairs, harrell_concordance};
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true, true, true, false])?;
/// let subjects = ["a", "b", "c", "d"].map(SubjectId::from);
/// let harrell = |risk: [f64; 4], rows: &[usize]| -> Result<f64, MetricError> {
///     let risk = Risk::new(rows.iter().map(|&row| risk[row]).collect())?;
///     Ok(harrell_concordance(&outcomes.select(rows), &risk, TieTest::Near, TiedPairs::Predictions)?.value)
/// };
/// let good: &RowMetric = &|rows| harrell([4.0, 3.0, 2.0, 1.0], rows);
/// let bad: &RowMetric = &|rows| harrell([1.0, 2.0, 3.0, 4.0], rows);
/// let description = MetricDescription {
///     name: "harrell_c",
///     label: "Harrell C",
///     convention: "ties within 1e-8 count 1/2",
///     direction: Direction::HigherIsBetter,
/// };
/// let settings = EvaluationSettings { replicates: 50, ..EvaluationSettings::default() };
/// let models = [("good", good), ("bad", bad)];
/// let found = compare_metric(description, &models, &subjects, &outcomes, &[], &settings)?;
/// assert_eq!(found.pairs[0].overall.value, Some(1.0));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`compare_models`](crate::compare_models).
pub fn compare_metric(
    description: MetricDescription<'_>,
    models: &[(&str, &RowMetric<'_>)],
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<ModelComparison, MetricError> {
    let names: Vec<&str> = models.iter().map(|(name, _)| *name).collect();
    check_names(&names)?;
    let input = Input { subjects, outcomes, competing: None, groups, settings };
    input.check()?;
    let evaluate = |(_, metric): &(&str, &RowMetric<'_>)| Evaluated::of_metric(&input, &description, *metric, false);
    let evaluated = models.iter().map(evaluate).collect::<Result<Vec<_>, _>>()?;
    Ok(compare_evaluated(&names, &evaluated, settings))
}
