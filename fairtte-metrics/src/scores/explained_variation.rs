//! Explained residual variation: how much of the Kaplan-Meier baseline's loss a model removes.
//!
//! ```text
//! ERV = 1 - score(model) / score(Kaplan-Meier)
//! ```
//!
//! 0: as good as the baseline, 1: no loss left, below 0: worse. Sources: Korn & Simon (1990); Sonabend et al. (2022),
//! "Flexible group fairness metrics for survival analysis", appendix B, equation 8. It works for every score of which
//! lower is better. A ratio to a baseline that is not above 0 is meaningless (log scores with a density can be
//! negative), so it is an error here; `mlr3proba` 0.8.9 returns it, or infinity. There are no golden values: the ratio
//! is checked against worked examples, the scores in it have golden values of their own.

use ndarray::Array2;

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::curves::SurvivalCurves;
use crate::estimators::KaplanMeier;
use crate::finite::finite;

/// A score of a model together with that of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExplainedVariation {
    /// 1 - model / baseline; at most 1 for a score that is never negative, no lower bound.
    pub value: f64,
    /// Score of the model.
    pub model: f64,
    /// Score of the baseline.
    pub baseline: f64,
}

/// The prediction that gives each of `n` samples the same Kaplan-Meier curve, on `grid`.
///
/// Fit `baseline` on the training sample for a fair comparison (what `mlr3proba` does); fitted on the evaluated sample
/// it has seen the outcomes. `grid` is that of the model for scores that depend on it (the log scores), or
/// `baseline.times()` for the exact step function. Memory O(n L).
///
/// # Errors
/// [`MetricError::EmptyGrid`] or [`MetricError::InvalidGrid`] for the grid.
pub fn kaplan_meier_curves(baseline: &KaplanMeier, grid: &[f64], n: usize) -> Result<SurvivalCurves, MetricError> {
    let curve: Vec<f64> = grid.iter().map(|t| baseline.at(*t)).collect();
    SurvivalCurves::new(grid.to_vec(), Array2::from_shape_fn((n, grid.len()), |(_, k)| curve[k]))
}

/// The share of the baseline's loss that the model removes, for any `score` of which lower is better.
///
/// ```
/// use fairtte_metrics::{Outcomes, Reading, SurvivalCurves};
/// use fairtte_metrics::estimators::KaplanMeier;
/// use fairtte_metrics::scores::{BrierConvention, IntegratedScoreRule, explained_residual_variation, kaplan_meier_curves};
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 3.0], vec![true, true])?;
/// let curves = SurvivalCurves::new(vec![1.0, 3.0], array![[0.25, 0.0], [0.75, 0.0]])?;
/// let baseline = kaplan_meier_curves(&KaplanMeier::fit(&outcomes)?, &[1.0, 3.0], 2)?;
/// let censoring = BrierConvention::Mlr3proba.censoring_curve(&outcomes)?;
/// let explained = explained_residual_variation(&curves, &baseline, |curves| {
///     let rule = IntegratedScoreRule::RSBS;
///     Ok(rule.score(&outcomes, curves, &censoring, Reading::Step, &[1.0, 3.0])?.value)
/// })?;
/// // At time 1 the model's mean squared loss is 1/16, that of Kaplan-Meier (S = 1/2) is 1/4; at 3 both are 0.
/// assert_eq!(explained.value, 0.75);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of `score` for the model, and [`MetricError::NotFinite`] if its value is not a finite number;
/// [`MetricError::BaselineUndefined`] with those for the baseline; [`MetricError::NoBaselineLoss`] if the baseline's
/// score is not above 0, or so small that the ratio overflows.
pub fn explained_residual_variation(
    curves: &SurvivalCurves,
    baseline: &SurvivalCurves,
    score: impl Fn(&SurvivalCurves) -> Result<f64, MetricError>,
) -> Result<ExplainedVariation, MetricError> {
    let model = finite("score of the model", score(curves)?)?;
    let undefined = |reason| MetricError::BaselineUndefined { reason: Box::new(reason) };
    let baseline = score(baseline).and_then(|score| finite("score of the baseline", score)).map_err(undefined)?;
    let value = 1.0 - model / baseline;
    if baseline <= 0.0 || !value.is_finite() {
        return Err(MetricError::NoBaselineLoss { baseline });
    }
    Ok(ExplainedVariation { value, model, baseline })
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::Outcomes;

    fn curves() -> (SurvivalCurves, SurvivalCurves) {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 2.0, 4.0], vec![true, true, false, true]).unwrap();
        let baseline = kaplan_meier_curves(&KaplanMeier::fit(&outcomes).unwrap(), &[0.5, 1.0, 2.0, 4.0], 2).unwrap();
        (SurvivalCurves::new(vec![1.0], array![[0.5], [0.25]]).unwrap(), baseline)
    }

    /// A made-up score: the value at the last grid point of the first sample.
    fn last_value(curves: &SurvivalCurves) -> Result<f64, MetricError> {
        curves.survival().row(0).last().copied().ok_or(MetricError::EmptyGrid)
    }

    #[test]
    fn the_baseline_gives_every_sample_the_kaplan_meier_curve() {
        let expected = array![[1.0, 0.75, 0.5, 0.0], [1.0, 0.75, 0.5, 0.0]];
        assert_eq!(curves().1.survival(), expected);
    }

    #[test]
    fn the_value_is_one_minus_the_ratio_of_the_scores() {
        let (model, _) = curves();
        let baseline = SurvivalCurves::new(vec![1.0], array![[0.8], [0.8]]).unwrap();
        let explained = explained_residual_variation(&model, &baseline, last_value).unwrap();
        assert_eq!(explained, ExplainedVariation { value: 1.0 - 0.5 / 0.8, model: 0.5, baseline: 0.8 });
    }

    #[test]
    fn a_baseline_without_loss_or_without_a_score_is_named() {
        let (model, baseline) = curves();
        let found = explained_residual_variation(&model, &baseline, last_value);
        assert_eq!(found, Err(MetricError::NoBaselineLoss { baseline: 0.0 }));
        let negative = explained_residual_variation(&model, &baseline, |_| Ok(-1.0));
        assert_eq!(negative, Err(MetricError::NoBaselineLoss { baseline: -1.0 }));
        let refused = explained_residual_variation(&model, &baseline, |curves| {
            if curves.grid().len() == 1 { Ok(1.0) } else { Err(MetricError::NoSamples) }
        });
        assert_eq!(refused, Err(MetricError::BaselineUndefined { reason: Box::new(MetricError::NoSamples) }));
    }

    #[test]
    fn a_score_that_is_not_a_finite_number_explains_nothing() {
        let curves = SurvivalCurves::new(vec![1.0], ndarray::array![[0.5]]).unwrap();
        let explained = |model: f64, baseline: f64| {
            let score = |scored: &SurvivalCurves| Ok(if scored.n() == 1 { model } else { baseline });
            explained_residual_variation(&curves, &curves.select(&[]), score)
        };
        assert_eq!(explained(1.0, 4.0).unwrap().value, 0.75);
        for score in [f64::NAN, f64::INFINITY] {
            assert!(matches!(explained(score, 4.0), Err(MetricError::NotFinite { .. })));
            assert!(matches!(explained(1.0, score), Err(MetricError::BaselineUndefined { .. })));
        }
    }
}
