//! One metric in every group of an attribute, and summaries of the differences between the groups.
//!
//! The comparisons themselves (gap, ratios, worst group, equity scaling), their formulas and sources are in
//! `comparison.rs`.
//!
//! A group in which the metric is undefined is reported with its reason, left out of the differences, and counted. With
//! fewer than two groups left no difference exists; equity scaling, a sum over groups, exists with one and reports how
//! many groups it includes.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::fairness::{Comparison, EquityScaling};
use crate::finite::finite;
use crate::value_or_reason::value_or_reason;
use crate::{GroupId, Groups, MetricError, Outcomes, SubjectId};

/// Whether higher or lower values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// C^td, AUC.
    HigherIsBetter,
    /// Brier score.
    LowerIsBetter,
}

/// A metric in one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", bound(serialize = "T: Serialize"))]
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
    /// Comparable pairs in the group, for metrics that count pairs; see [`PerGroup::with_comparable`].
    pub n_comparable: Option<u64>,
    /// The value, or why there is none; written as `{"value": ..}` or `{"undefined": "why"}`.
    #[serde(serialize_with = "value_or_reason")]
    pub value: Result<T, MetricError>,
}

/// An equity-scaled value and the number of groups behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct EquityScaled {
    /// The scaled value.
    pub value: f64,
    /// Groups with a value, whose distances were added up. 1 means that there is nothing to compare.
    pub n_groups: usize,
    /// Groups left out because they have no value.
    pub n_undefined: usize,
}

/// A metric in every group of one attribute, in level order.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", bound(serialize = "T: Serialize"))]
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
    /// use fairtte_metrics::{GroupId, Groups, Outcomes};
    /// use fairtte_metrics::fairness::PerGroup;
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
    /// [`MetricError::LengthMismatch`] if `groups`, `outcomes` and `subjects` differ in length. An error in one group
    /// becomes that group's value.
    pub fn compute(
        groups: &Groups,
        outcomes: &Outcomes,
        subjects: Option<&[SubjectId]>,
        metric: impl Fn(&[usize]) -> Result<T, MetricError>,
    ) -> Result<Self, MetricError> {
        let metric = |rows: &[usize]| if rows.is_empty() { Err(MetricError::NoSamples) } else { metric(rows) };
        Self::compute_all(groups, outcomes, subjects, metric)
    }

    /// The same with `metric` called for every level in order, also for one without samples.
    pub(crate) fn compute_all(
        groups: &Groups,
        outcomes: &Outcomes,
        subjects: Option<&[SubjectId]>,
        mut metric: impl FnMut(&[usize]) -> Result<T, MetricError>,
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
                n_comparable: None,
                value: metric(&rows),
            }
        });
        let n_missing = groups.membership().iter().filter(|group| group.is_none()).count();
        Ok(Self { attribute: groups.attribute().to_owned(), groups: values.collect(), n_missing })
    }

    /// The same groups with `view` applied to every value, for example to pick one number of a larger result.
    pub fn map<U>(&self, view: impl Fn(&T) -> Result<U, MetricError>) -> PerGroup<U> {
        let groups = self.groups.iter().map(|group| GroupValue {
            group: group.group,
            level: group.level.clone(),
            n: group.n,
            n_events: group.n_events,
            n_subjects: group.n_subjects,
            n_comparable: group.n_comparable,
            value: group.value.as_ref().map_err(MetricError::clone).and_then(&view),
        });
        PerGroup { attribute: self.attribute.clone(), groups: groups.collect(), n_missing: self.n_missing }
    }

    /// The same with the number of comparable pairs of every group, which [`map`](Self::map) then keeps.
    ///
    /// `count` is read from the value; a group that has none because it has no pair, no event or no sample counts 0.
    ///
    /// ```
    /// use fairtte_metrics::{GroupId, Groups, Outcomes, Reading, SurvivalCurves};
    /// use fairtte_metrics::fairness::PerGroup;
    /// use fairtte_metrics::rank::{TiedPredictions, concordance_td};
    /// use ndarray::array;
    ///
    /// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, true, false])?;
    /// let curves = SurvivalCurves::new(vec![1.0, 2.0], array![[0.2, 0.1], [0.5, 0.3], [0.9, 0.8]])?;
    /// let all = Groups::new("all", vec!["all".into()], vec![Some(GroupId(0)); 3])?;
    /// let pairs = PerGroup::compute(&all, &outcomes, None, |rows| {
    ///     concordance_td(&outcomes.select(rows), &curves.select(rows), Reading::Step, TiedPredictions::Strict)
    /// })?;
    /// let values = pairs.with_comparable(|pairs| pairs.n_comparable).map(|pairs| Ok(pairs.value));
    /// assert_eq!((values.groups[0].n_comparable, values.groups[0].value.clone()), (Some(3), Ok(1.0)));
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    #[must_use]
    pub fn with_comparable(mut self, count: impl Fn(&T) -> u64) -> Self {
        for group in &mut self.groups {
            group.n_comparable = match &group.value {
                Ok(value) => Some(count(value)),
                Err(MetricError::NoSamples | MetricError::NoEvents { .. } | MetricError::NoComparablePairs { .. }) => {
                    Some(0)
                }
                Err(_) => None,
            };
        }
        self
    }

    /// Number of groups with a value.
    pub fn n_defined(&self) -> usize {
        self.groups.iter().filter(|group| group.value.is_ok()).count()
    }

    /// Number of groups without a value.
    pub fn n_undefined(&self) -> usize {
        self.groups.len() - self.n_defined()
    }

    /// The group with the fewest samples, the first of them in level order; `None` of an attribute without levels.
    ///
    /// Cells of an intersection quickly become small: the size of this one shows how reliable the table is.
    pub fn smallest(&self) -> Option<&GroupValue<T>> {
        self.groups.iter().min_by_key(|group| group.n)
    }

    /// The groups with fewer than `n` samples, in level order. They stay in every comparison; this only lists them.
    pub fn smaller_than(&self, n: usize) -> impl Iterator<Item = &GroupValue<T>> {
        self.groups.iter().filter(move |group| group.n < n)
    }
}

impl PerGroup<f64> {
    /// Any comparison of the groups; `overall` is ignored by those that do not use it.
    ///
    /// # Errors
    /// [`MetricError::TooFewGroups`] with fewer groups than the comparison needs, [`MetricError::NotFinite`] if a value
    /// or the result is not a finite number, [`MetricError::ZeroDenominator`] and [`MetricError::NegativeRatio`] for
    /// ratios that do not exist.
    pub fn compare(&self, comparison: Comparison, overall: f64, direction: Direction) -> Result<f64, MetricError> {
        let values = self.defined()?;
        if values.len() < comparison.n_needed() {
            return Err(self.too_few(comparison.n_needed()));
        }
        if comparison.needs_overall() {
            finite("overall value", overall)?;
        }
        comparison.of(&values, overall, direction).ok_or_else(|| self.no_result(comparison, &values, overall))
    }

    /// Largest difference between two groups: max - min.
    ///
    /// # Errors
    /// Those of [`compare`](Self::compare).
    pub fn gap(&self) -> Result<f64, MetricError> {
        self.compare(Comparison::Gap, 0.0, Direction::HigherIsBetter)
    }

    /// Largest distance of a group from the overall value.
    ///
    /// # Errors
    /// Those of [`compare`](Self::compare).
    pub fn gap_to_overall(&self, overall: f64) -> Result<f64, MetricError> {
        self.compare(Comparison::GapToOverall, overall, Direction::HigherIsBetter)
    }

    /// Smallest value divided by largest, in [0, 1]; 1 = equal.
    ///
    /// # Errors
    /// Those of [`compare`](Self::compare).
    pub fn ratio(&self) -> Result<f64, MetricError> {
        self.compare(Comparison::Ratio, 0.0, Direction::HigherIsBetter)
    }

    /// Smallest over groups of `min(value / overall, overall / value)`, in [0, 1]; 1 = equal.
    ///
    /// # Errors
    /// Those of [`compare`](Self::compare).
    pub fn ratio_to_overall(&self, overall: f64) -> Result<f64, MetricError> {
        self.compare(Comparison::RatioToOverall, overall, Direction::HigherIsBetter)
    }

    /// The group with the worst value; the first of them in level order if several are equal.
    ///
    /// # Errors
    /// Those of [`compare`](Self::compare).
    pub fn worst(&self, direction: Direction) -> Result<(&GroupValue<f64>, f64), MetricError> {
        let worst = self.compare(Comparison::Worst, 0.0, direction)?;
        let is_worst = |group: &&GroupValue<f64>| group.value.as_ref().is_ok_and(|v| (v - worst).abs() <= 0.0);
        let group = self.groups.iter().find(is_worst).ok_or_else(|| self.too_few(2))?;
        Ok((group, worst))
    }

    /// Utility and equity in one number, by one of the published formulas, and how many groups it includes. With one
    /// defined group the sum has one term; with none there is no value.
    ///
    /// # Errors
    /// Those of [`compare`](Self::compare).
    pub fn equity_scaled(
        &self,
        form: EquityScaling,
        overall: f64,
        direction: Direction,
    ) -> Result<EquityScaled, MetricError> {
        let value = self.compare(Comparison::EquityScaling(form), overall, direction)?;
        Ok(EquityScaled { value, n_groups: self.n_defined(), n_undefined: self.n_undefined() })
    }

    /// The value of [`equity_scaled`](Self::equity_scaled) in the paper's form: `overall` (or 1 - `overall` where lower
    /// is better) divided by 1 + the sum of the groups' distances from `overall`.
    ///
    /// # Errors
    /// Those of [`compare`](Self::compare).
    pub fn equity_scaling(&self, overall: f64, direction: Direction) -> Result<f64, MetricError> {
        self.equity_scaled(EquityScaling::FairTte, overall, direction).map(|scaled| scaled.value)
    }

    fn defined(&self) -> Result<Vec<f64>, MetricError> {
        let values = self.groups.iter().filter_map(|group| group.value.as_ref().ok());
        values.map(|&value| finite("group value", value)).collect()
    }

    fn too_few(&self, n_needed: usize) -> MetricError {
        let attribute = self.attribute.clone();
        match self.n_defined() {
            0 if n_needed == 1 => MetricError::NoDefinedGroup { attribute, n_levels: self.groups.len() },
            n_defined => MetricError::TooFewGroups { attribute, n_defined, n_levels: self.groups.len() },
        }
    }

    /// Why a comparison of enough finite values has no value.
    fn no_result(&self, comparison: Comparison, values: &[f64], overall: f64) -> MetricError {
        let attribute = self.attribute.clone();
        let overall = comparison.needs_overall().then_some(&overall);
        let compared = || values.iter().chain(overall);
        match comparison {
            Comparison::Ratio | Comparison::RatioToOverall => match compared().find(|value| **value < 0.0) {
                Some(&value) => MetricError::NegativeRatio { attribute, value },
                None => MetricError::ZeroDenominator { attribute },
            },
            _ => MetricError::NotFinite { what: "difference of group values", value: f64::INFINITY },
        }
    }
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
            n_comparable: None,
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
    fn one_defined_group_has_no_gap_and_an_equity_scaling_that_says_so() {
        let values = per_group(&[Ok(0.0), Err(MetricError::NoSamples)]);
        let expected = MetricError::TooFewGroups { attribute: "race".to_owned(), n_defined: 1, n_levels: 2 };
        assert_eq!(values.gap(), Err(expected.clone()));
        assert_eq!(values.worst(Direction::HigherIsBetter), Err(expected.clone()));
        assert_eq!(values.ratio_to_overall(0.5), Err(expected));
        let scaled = values.equity_scaled(EquityScaling::FairTte, 0.25, Direction::HigherIsBetter).unwrap();
        assert_eq!(scaled, EquityScaled { value: 0.2, n_groups: 1, n_undefined: 1 });
        let none = per_group(&[Err(MetricError::NoSamples)]).equity_scaling(0.5, Direction::HigherIsBetter);
        assert_eq!(none, Err(MetricError::NoDefinedGroup { attribute: "race".to_owned(), n_levels: 1 }));
        let no_gap = per_group(&[Err(MetricError::NoSamples)]).gap();
        let expected = MetricError::TooFewGroups { attribute: "race".to_owned(), n_defined: 0, n_levels: 1 };
        assert_eq!(no_gap, Err(expected));
    }

    #[test]
    fn a_ratio_of_zeros_or_of_negative_values_is_refused() {
        let zero = per_group(&[Ok(0.0), Ok(0.0)]);
        assert!(matches!(zero.ratio(), Err(MetricError::ZeroDenominator { .. })));
        assert!(matches!(zero.ratio_to_overall(0.0), Err(MetricError::ZeroDenominator { .. })));
        assert_eq!(zero.ratio_to_overall(0.5), Ok(0.0));
        let negative = per_group(&[Ok(0.5), Ok(-0.25)]);
        let expected = MetricError::NegativeRatio { attribute: "race".to_owned(), value: -0.25 };
        assert_eq!(negative.ratio(), Err(expected.clone()));
        assert_eq!(negative.ratio_to_overall(0.5), Err(expected));
        let overall = per_group(&[Ok(0.5), Ok(0.25)]).ratio_to_overall(-1.0);
        assert_eq!(overall, Err(MetricError::NegativeRatio { attribute: "race".to_owned(), value: -1.0 }));
    }

    #[test]
    fn a_value_that_is_no_finite_number_is_refused() {
        let found = per_group(&[Ok(0.5), Ok(f64::NAN)]).gap();
        assert!(matches!(found, Err(MetricError::NotFinite { what: "group value", .. })));
        let found = per_group(&[Ok(0.5), Ok(0.6)]).gap_to_overall(f64::INFINITY);
        assert!(matches!(found, Err(MetricError::NotFinite { what: "overall value", .. })));
        let found = per_group(&[Ok(f64::MAX), Ok(f64::MIN)]).gap();
        assert!(matches!(found, Err(MetricError::NotFinite { what: "difference of group values", .. })));
    }

    #[test]
    fn zeros_of_both_signs_have_a_worst_group() {
        let values = per_group(&[Ok(0.0), Ok(-0.0)]);
        assert_eq!(values.worst(Direction::HigherIsBetter).unwrap().0.level, "level 0");
    }

    #[test]
    fn small_groups_are_named_and_pairs_are_counted() {
        let mut values = per_group(&[Ok(0.6), Err(MetricError::NoEvents { n: 3 }), Ok(0.8)]);
        values.groups[1].n = 3;
        let values = values.with_comparable(|_| 45).map(|value| Ok(*value));
        assert_eq!(values.smallest().unwrap().level, "level 1");
        assert_eq!(values.smaller_than(10).map(|group| group.n).collect::<Vec<_>>(), [3]);
        let pairs: Vec<_> = values.groups.iter().map(|group| group.n_comparable).collect();
        assert_eq!(pairs, [Some(45), Some(0), Some(45)]);
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
