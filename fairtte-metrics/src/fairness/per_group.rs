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
                Err(
                    MetricError::NoSamples
                    | MetricError::NoEvents { .. }
                    | MetricError::NoEventsOfCause { .. }
                    | MetricError::NoComparablePairs { .. },
                ) => Some(0),
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
    /// [`MetricError::TooFewGroups`] or [`MetricError::FewLargeGroups`] with fewer groups than the comparison needs, [`MetricError::NotFinite`] if a value
    /// or the result is not a finite number, [`MetricError::ZeroDenominator`] and [`MetricError::NegativeRatio`] for
    /// ratios that do not exist.
    pub fn compare(&self, comparison: Comparison, overall: f64, direction: Direction) -> Result<f64, MetricError> {
        let values = self.comparable(comparison, overall)?;
        if let Comparison::EquityScaling(form) = comparison {
            let utility = form.utility(overall, direction);
            if utility < 0.0 {
                return Err(MetricError::NegativeUtility { utility });
            }
        }
        comparison.of(&values, overall, direction).ok_or_else(|| self.no_result(comparison, &values, overall))
    }

    /// The defined values, if they are as many as the comparison needs, and what else it uses is a finite number.
    ///
    /// # Errors
    /// [`MetricError::TooFewGroups`], [`MetricError::FewLargeGroups`] and [`MetricError::NotFinite`].
    pub(crate) fn comparable(&self, comparison: Comparison, overall: f64) -> Result<Vec<f64>, MetricError> {
        let values = self.defined()?;
        if values.len() < comparison.n_needed() {
            return Err(self.too_few(comparison.n_needed()));
        }
        if comparison.needs_overall() {
            finite("overall value", overall)?;
        }
        Ok(values)
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
        let (attribute, n_levels) = (self.attribute.clone(), self.groups.len());
        let min_events = self.groups.iter().find_map(|group| match group.value {
            Err(
                MetricError::FewEvents { needed, .. }
                | MetricError::FewOfClass { needed, .. }
                | MetricError::FewValues { needed, .. },
            ) => Some(needed),
            _ => None,
        });
        match (self.n_defined(), min_events) {
            (0, None) if n_needed == 1 => MetricError::NoDefinedGroup { attribute, n_levels },
            (n_defined, None) => MetricError::TooFewGroups { attribute, n_defined, n_levels },
            // These have a value, which is not compared.
            (n_compared, Some(min_events)) => {
                MetricError::FewLargeGroups { attribute, n_compared, n_levels, min_events, n_needed }
            }
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
mod tests;
