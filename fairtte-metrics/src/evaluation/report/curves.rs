//! Observed and predicted survival curves of a report, thinned for plots.

use serde::{Deserialize, Serialize};

use crate::competing::observed_without;
use crate::estimators::kaplan_meier::KaplanMeier;
use crate::evaluation::NumbersAtRisk;
use crate::{MetricError, Outcomes, SurvivalCurves};

/// Curves in a report are thinned to about this many points; a plot shows no more.
const MAX_CURVE_POINTS: usize = 200;

/// Observed and predicted survival of one group (or of the whole sample: no attribute, no level).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupCurves {
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// Name of the level.
    pub level: Option<String>,
    /// Samples.
    pub n: usize,
    /// Events.
    pub n_events: usize,
    /// Kaplan-Meier curve, of one of several causes 1 - Aalen-Johansen; empty for a group without samples.
    pub kaplan_meier: BandedCurve,
    /// Mean of the predicted curves; empty for a group without samples.
    pub predicted: Curve,
    /// Samples at risk and events at round times.
    #[serde(default)]
    pub at_risk: NumbersAtRisk,
}

/// A step function with a pointwise interval; starts at time 0 with survival 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BandedCurve {
    /// Times, ascending.
    pub times: Vec<f64>,
    /// Survival just after each time.
    pub survival: Vec<f64>,
    /// Lower end of the interval; `None` where survival is 0 and the variance unknown.
    pub lower: Vec<Option<f64>>,
    /// Upper end of the interval.
    pub upper: Vec<Option<f64>>,
    /// Samples at risk at each time.
    pub n_at_risk: Vec<usize>,
}

/// A curve on a grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Curve {
    /// Times, ascending.
    pub times: Vec<f64>,
    /// Survival at each time.
    pub survival: Vec<f64>,
}

impl GroupCurves {
    pub(crate) fn new(
        name: Option<(&str, &str)>,
        (outcomes, competing): (&Outcomes, Option<&[bool]>),
        curves: &SurvivalCurves,
        level: f64,
        round_times: &[f64],
    ) -> Result<Self, MetricError> {
        let kaplan_meier = match observed_without(outcomes, competing) {
            Ok(curve) => BandedCurve::new(&curve, outcomes.n(), level)?,
            Err(_) => BandedCurve::default(),
        };
        Ok(Self {
            attribute: name.map(|(attribute, _)| attribute.to_owned()),
            level: name.map(|(_, level)| level.to_owned()),
            n: outcomes.n(),
            n_events: outcomes.n_events(),
            kaplan_meier,
            predicted: curves.mean().map_or_else(Curve::default, |mean| Curve::new(curves.grid(), &mean)),
            at_risk: NumbersAtRisk::new(outcomes, round_times),
        })
    }
}

impl BandedCurve {
    fn new(curve: &KaplanMeier, n: usize, level: f64) -> Result<Self, MetricError> {
        let interval = curve.interval(level)?;
        let last = curve.times().len() - 1;
        // The steps, and the end of follow-up.
        let steps: Vec<usize> = (0..=last).filter(|&k| curve.n_events()[k] > 0 || k == last).collect();
        let mut banded = Self {
            times: vec![0.0],
            survival: vec![1.0],
            lower: vec![Some(1.0)],
            upper: vec![Some(1.0)],
            n_at_risk: vec![n],
        };
        for k in thin(steps.len()).map(|place| steps[place]) {
            banded.times.push(curve.times()[k]);
            banded.survival.push(curve.survival()[k]);
            banded.lower.push(interval[k].map(|bounds| bounds.0));
            banded.upper.push(interval[k].map(|bounds| bounds.1));
            banded.n_at_risk.push(curve.n_at_risk()[k]);
        }
        Ok(banded)
    }
}

impl Curve {
    fn new(grid: &[f64], survival: &[f64]) -> Self {
        let (times, survival) = thin(grid.len()).map(|k| (grid[k], survival[k])).unzip();
        Self { times, survival }
    }
}

/// At most [`MAX_CURVE_POINTS`] of `n` positions, evenly spread, with the first and the last.
fn thin(n: usize) -> impl Iterator<Item = usize> {
    let kept = n.min(MAX_CURVE_POINTS);
    (0..kept).map(move |k| if kept == n { k } else { k * (n - 1) / (kept - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_both_ends_and_rises() {
        assert_eq!(thin(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(thin(0).count(), 0);
        let kept: Vec<usize> = thin(1_001).collect();
        assert_eq!((kept.len(), kept[0], kept[199]), (200, 0, 1_000));
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
