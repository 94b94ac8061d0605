//! What the best value of a metric is: the highest, the lowest, or a target.

use crate::fairness::{Comparison, PerGroup};
use crate::{Direction, MetricError};

/// The best value of a metric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    pub(crate) direction: Direction,
    /// If set, the nearer to it the better, and the direction does not count.
    pub(crate) target: Option<f64>,
    /// If not, no value is better than another: groups can be compared, but none is the worst.
    pub(crate) has_best: bool,
}

impl Goal {
    /// A comparison of the groups; the worst group of a metric with a target is that farthest from it.
    ///
    /// # Errors
    /// Those of [`PerGroup::compare`], [`MetricError::NoUtility`] for equity scaling of a metric with a target, and
    /// [`MetricError::NoBestValue`] for the worst group and equity scaling of one without a best value.
    pub(crate) fn compare(
        self,
        groups: &PerGroup<f64>,
        comparison: Comparison,
        overall: f64,
    ) -> Result<f64, MetricError> {
        let values = groups.comparable(comparison, overall)?;
        if !self.has_best && judges(comparison) {
            return Err(MetricError::NoBestValue);
        }
        match self.target {
            Some(_) if judges(comparison) => self.of(comparison, &values, overall).ok_or(MetricError::NoUtility),
            _ => groups.compare(comparison, overall, self.direction),
        }
    }

    /// The same of the defined values of a replicate; `None` where it does not exist.
    pub(crate) fn of(self, comparison: Comparison, values: &[f64], overall: f64) -> Option<f64> {
        if !self.has_best && judges(comparison) {
            return None;
        }
        match (self.target, comparison) {
            (Some(target), Comparison::Worst) => {
                values.iter().copied().max_by(|a, b| (a - target).abs().total_cmp(&(b - target).abs()))
            }
            (Some(_), Comparison::EquityScaling(_)) => None,
            _ => comparison.of(values, overall, self.direction),
        }
    }
}

/// Whether a comparison says which values are good.
fn judges(comparison: Comparison) -> bool {
    matches!(comparison, Comparison::Worst | Comparison::EquityScaling(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fairness::EquityScaling;

    #[test]
    fn the_worst_group_of_a_metric_with_a_target_is_the_farthest_from_it() {
        let goal = |target| Goal { direction: Direction::LowerIsBetter, target, has_best: true };
        assert_eq!(goal(Some(1.0)).of(Comparison::Worst, &[1.3, 0.5, 0.9], 1.0), Some(0.5));
        assert_eq!(goal(None).of(Comparison::Worst, &[1.3, 0.5, 0.9], 1.0), Some(1.3));
        let scaling = Comparison::EquityScaling(EquityScaling::FairTte);
        assert_eq!(goal(Some(1.0)).of(scaling, &[1.3, 0.5], 1.0), None);
        assert_eq!(goal(Some(1.0)).of(Comparison::Gap, &[1.5, 0.5], 1.0), Some(1.0));
    }

    #[test]
    fn without_a_best_value_groups_differ_but_none_is_the_worst() {
        let goal = Goal { direction: Direction::HigherIsBetter, target: None, has_best: false };
        let scaling = Comparison::EquityScaling(EquityScaling::FairTte);
        assert_eq!([Comparison::Worst, scaling].map(|of| goal.of(of, &[0.25, 0.5], 0.375)), [None, None]);
        assert_eq!(goal.of(Comparison::Gap, &[0.25, 0.5], 0.375), Some(0.25));
        assert_eq!(goal.of(Comparison::Ratio, &[0.25, 0.5], 0.375), Some(0.5));
    }
}
