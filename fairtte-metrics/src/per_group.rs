//! One metric in every group of an attribute, and what the differences between the groups amount to.
//!
//! The gap is the largest difference between two groups, max - min (`FairTTE`, Equation 1 and E.2). Equity scaling is
//! `u / (1 + sum over groups a of |v - v(a)|)` for the overall value v, with u = v for a metric where higher is better
//! and u = 1 - v for one where lower is better (`FairTTE`, E.3, after Luo et al., IEEE Trans. Medical Imaging 2024).
//! Golden values: `fairlearn` 0.15.0 `MetricFrame` (difference, ratio).
//!
//! A group in which the metric is undefined stays visible with its reason, is left out of the differences, and is
//! counted. With fewer than two groups left no difference exists.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{GroupId, Groups, MetricError, Outcomes, SubjectId};

/// Which end of a metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// C^td, AUC.
    HigherIsBetter,
    /// Brier score.
    LowerIsBetter,
}

/// A metric in one group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupValue<T> {
    /// Which group.
    pub group: GroupId,
    /// Name of the level.
    pub level: String,
    /// Samples in the group.
    pub n: usize,
    /// Events in the group.
    pub n_events: usize,
    /// Distinct subjects in the group, where known.
    pub n_subjects: Option<usize>,
    /// The value, or why there is none.
    pub value: Result<T, MetricError>,
}

/// A metric in every group of one attribute, in level order.
#[derive(Clone, Debug, PartialEq)]
pub struct PerGroup<T> {
    /// Name of the attribute.
    pub attribute: String,
    /// One entry per level, also for levels without samples.
    pub groups: Vec<GroupValue<T>>,
    /// Samples whose attribute is missing; they are in no group.
    pub n_missing: usize,
}

impl<T> PerGroup<T> {
    /// Applies `metric` to the rows of every group (ascending; an empty group is [`MetricError::NoSamples`]).
    ///
    /// ```
    /// use fairtte_metrics::{GroupId, Groups, Outcomes, PerGroup};
    ///
    /// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, false, true])?;
    /// let membership = vec![Some(GroupId(0)), Some(GroupId(0)), Some(GroupId(1))];
    /// let sex = Groups::new("sex", vec!["F".into(), "M".into()], membership)?;
    /// let event_rate = |rows: &[usize]| {
    ///     let group = outcomes.select(rows);
    ///     Ok(group.n_events() as f64 / group.n() as f64)
    /// };
    /// let rates = PerGroup::compute(&sex, &outcomes, None, event_rate)?;
    /// assert_eq!(rates.gap(), Ok(0.5));
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if `groups`, `outcomes` and `subjects` differ in length. What goes wrong in one
    /// group stands in that group's value.
    pub fn compute(
        groups: &Groups,
        outcomes: &Outcomes,
        subjects: Option<&[SubjectId]>,
        metric: impl Fn(&[usize]) -> Result<T, MetricError>,
    ) -> Result<Self, MetricError> {
        let expected = outcomes.n();
        let check = |what, found| {
            if found == expected { Ok(()) } else { Err(MetricError::LengthMismatch { what, found, expected }) }
        };
        check("group memberships", groups.n())?;
        check("subjects", subjects.map_or(expected, <[SubjectId]>::len))?;
        let values = groups.ids().map(|group| {
            let rows = groups.rows(group);
            GroupValue {
                group,
                level: groups.levels()[group.index()].clone(),
                n: rows.len(),
                n_events: rows.iter().filter(|&&row| outcomes.event()[row]).count(),
                n_subjects: subjects.map(|ids| rows.iter().map(|&row| &ids[row]).collect::<HashSet<_>>().len()),
                value: if rows.is_empty() { Err(MetricError::NoSamples) } else { metric(&rows) },
            }
        });
        let n_missing = groups.membership().iter().filter(|group| group.is_none()).count();
        Ok(Self { attribute: groups.attribute().to_owned(), groups: values.collect(), n_missing })
    }

    /// The same groups with another view of the values, for example one number of a larger result.
    pub fn map<U>(&self, view: impl Fn(&T) -> Result<U, MetricError>) -> PerGroup<U> {
        let groups = self.groups.iter().map(|group| GroupValue {
            group: group.group,
            level: group.level.clone(),
            n: group.n,
            n_events: group.n_events,
            n_subjects: group.n_subjects,
            value: group.value.as_ref().map_err(MetricError::clone).and_then(&view),
        });
        PerGroup { attribute: self.attribute.clone(), groups: groups.collect(), n_missing: self.n_missing }
    }

    /// Number of groups with a value.
    pub fn n_defined(&self) -> usize {
        self.groups.iter().filter(|group| group.value.is_ok()).count()
    }

    /// Number of groups without a value.
    pub fn n_undefined(&self) -> usize {
        self.groups.len() - self.n_defined()
    }
}

/// # Errors
/// All comparisons need two groups with a value: [`MetricError::TooFewGroups`] otherwise.
impl PerGroup<f64> {
    /// Largest difference between two groups: max - min.
    ///
    /// # Errors
    /// [`MetricError::TooFewGroups`].
    pub fn gap(&self) -> Result<f64, MetricError> {
        gap_of(&self.defined()).ok_or_else(|| self.too_few())
    }

    /// Largest distance of a group from the overall value.
    ///
    /// # Errors
    /// [`MetricError::TooFewGroups`].
    pub fn gap_to_overall(&self, overall: f64) -> Result<f64, MetricError> {
        let values = self.defined();
        extremes(&values).ok_or_else(|| self.too_few())?;
        Ok(values.iter().map(|value| (value - overall).abs()).fold(0.0, f64::max))
    }

    /// Smallest value divided by largest, in [0, 1] for values >= 0; 1 = equal.
    ///
    /// # Errors
    /// [`MetricError::TooFewGroups`]; [`MetricError::ZeroDenominator`] if the largest value is 0.
    pub fn ratio(&self) -> Result<f64, MetricError> {
        let (low, high) = extremes(&self.defined()).ok_or_else(|| self.too_few())?;
        if high == 0.0 {
            return Err(MetricError::ZeroDenominator { attribute: self.attribute.clone() });
        }
        Ok(low / high)
    }

    /// The group with the worst value; the first of them in level order if several are equal.
    ///
    /// # Errors
    /// [`MetricError::TooFewGroups`].
    pub fn worst(&self, direction: Direction) -> Result<(&GroupValue<f64>, f64), MetricError> {
        let worst = worst_of(&self.defined(), direction).ok_or_else(|| self.too_few())?;
        let is_worst = |group: &&GroupValue<f64>| group.value.as_ref().is_ok_and(|v| v.total_cmp(&worst).is_eq());
        let group = self.groups.iter().find(is_worst).ok_or_else(|| self.too_few())?;
        Ok((group, worst))
    }

    /// Utility and equity in one number: `overall` (or 1 - `overall` where lower is better) divided by
    /// 1 + the sum of the groups' distances from `overall`. Higher is better; equal groups give the utility itself.
    ///
    /// # Errors
    /// [`MetricError::TooFewGroups`].
    pub fn equity_scaling(&self, overall: f64, direction: Direction) -> Result<f64, MetricError> {
        equity_scaling_of(&self.defined(), overall, direction).ok_or_else(|| self.too_few())
    }

    fn defined(&self) -> Vec<f64> {
        self.groups.iter().filter_map(|group| group.value.as_ref().ok().copied()).collect()
    }

    fn too_few(&self) -> MetricError {
        let (n_defined, n_levels) = (self.n_defined(), self.groups.len());
        MetricError::TooFewGroups { attribute: self.attribute.clone(), n_defined, n_levels }
    }
}

/// Smallest and largest of at least two values.
fn extremes(values: &[f64]) -> Option<(f64, f64)> {
    let range = || values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)));
    (values.len() >= 2).then(range)
}

/// [`PerGroup::gap`] of the defined values; `None` if there are fewer than two.
pub(crate) fn gap_of(values: &[f64]) -> Option<f64> {
    extremes(values).map(|(low, high)| high - low)
}

/// The value of [`PerGroup::worst`] among the defined values; `None` if there are fewer than two.
pub(crate) fn worst_of(values: &[f64], direction: Direction) -> Option<f64> {
    extremes(values).map(|(low, high)| match direction {
        Direction::HigherIsBetter => low,
        Direction::LowerIsBetter => high,
    })
}

/// [`PerGroup::equity_scaling`] of the defined values; `None` if there are fewer than two.
pub(crate) fn equity_scaling_of(values: &[f64], overall: f64, direction: Direction) -> Option<f64> {
    extremes(values)?;
    let distance: f64 = values.iter().map(|value| (overall - value).abs()).sum();
    let utility = match direction {
        Direction::HigherIsBetter => overall,
        Direction::LowerIsBetter => 1.0 - overall,
    };
    Some(utility / (1.0 + distance))
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    fn per_group(values: &[Result<f64, MetricError>]) -> PerGroup<f64> {
        let group = |(level, value): (usize, &Result<f64, MetricError>)| GroupValue {
            group: GroupId(u32::try_from(level).unwrap()),
            level: format!("level {level}"),
            n: 10,
            n_events: 5,
            n_subjects: None,
            value: value.clone(),
        };
        let groups = values.iter().enumerate().map(group).collect();
        PerGroup { attribute: "race".to_owned(), groups, n_missing: 0 }
    }

    #[test]
    fn differences_leave_out_undefined_groups_and_count_them() {
        let values = per_group(&[Ok(0.6), Err(MetricError::NoEvents { n: 10 }), Ok(0.8), Ok(0.7)]);
        assert_eq!((values.n_defined(), values.n_undefined()), (3, 1));
        assert_abs_diff_eq!(values.gap().unwrap(), 0.2, epsilon = 1e-15);
        assert_abs_diff_eq!(values.ratio().unwrap(), 0.75, epsilon = 1e-15);
        assert_abs_diff_eq!(values.gap_to_overall(0.65).unwrap(), 0.15, epsilon = 1e-15);
        assert_eq!(values.worst(Direction::HigherIsBetter).unwrap().0.level, "level 0");
        assert_eq!(values.worst(Direction::LowerIsBetter).unwrap().0.level, "level 2");
    }

    #[test]
    fn equity_scaling_uses_one_minus_the_value_where_lower_is_better() {
        let values = per_group(&[Ok(0.2), Ok(0.3)]);
        let up = values.equity_scaling(0.25, Direction::HigherIsBetter).unwrap();
        let down = values.equity_scaling(0.25, Direction::LowerIsBetter).unwrap();
        assert_abs_diff_eq!(up, 0.25 / 1.1, epsilon = 1e-15);
        assert_abs_diff_eq!(down, 0.75 / 1.1, epsilon = 1e-15);
    }

    #[test]
    fn one_defined_group_cannot_be_compared() {
        let values = per_group(&[Ok(0.6), Err(MetricError::NoSamples)]);
        let expected = MetricError::TooFewGroups { attribute: "race".to_owned(), n_defined: 1, n_levels: 2 };
        assert_eq!(values.gap(), Err(expected.clone()));
        assert_eq!(values.worst(Direction::HigherIsBetter), Err(expected.clone()));
        assert_eq!(values.equity_scaling(0.5, Direction::HigherIsBetter), Err(expected));
        let zero = per_group(&[Ok(0.0), Ok(0.0)]);
        assert!(matches!(zero.ratio(), Err(MetricError::ZeroDenominator { .. })));
    }

    #[test]
    fn every_level_is_listed_with_its_counts_even_when_it_is_empty() {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, false, true]).unwrap();
        let levels = vec!["F".to_owned(), "M".to_owned(), "other".to_owned()];
        let membership = vec![Some(GroupId(0)), None, Some(GroupId(0))];
        let groups = Groups::new("sex", levels, membership).unwrap();
        let subjects = ["a", "b", "a"].map(SubjectId::from);
        let rows = PerGroup::compute(&groups, &outcomes, Some(&subjects), |rows| Ok(rows.to_vec())).unwrap();
        assert_eq!(rows.groups[0].value, Ok(vec![0, 2]));
        assert_eq!((rows.groups[0].n, rows.groups[0].n_events, rows.groups[0].n_subjects), (2, 2, Some(1)));
        assert_eq!(rows.groups[2].value, Err(MetricError::NoSamples));
        assert_eq!((rows.groups.len(), rows.n_missing), (3, 1));
        let short = PerGroup::compute(&groups, &outcomes, Some(&subjects[..2]), |_| Ok(0.0));
        assert!(matches!(short, Err(MetricError::LengthMismatch { what: "subjects", found: 2, expected: 3 })));
    }
}
