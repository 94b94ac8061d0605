//! Sensitive attributes: from raw values to groups, with everything fitted on the training samples only.
//!
//! An attribute is one of four things: a number cut at a threshold (`<= 60` is group 0, `> 60` is group 1) or at several
//! (`<= 40`, `> 40 to 60`, `> 60`), one reference level against all others (`Non-White` is group 0, `White` is group 1), a given list of levels, or the
//! levels seen among the training samples in alphabetical order. A sample whose value is missing belongs to no group.

mod rule;

use std::collections::BTreeMap;
use std::fmt;

use fairtte_metrics::{GroupId, Groups};
use rayon::prelude::*;
use serde::de::{self, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::rule::LevelRule;
use crate::DataError;
use crate::cohort::{AttributeColumn, Cohort};
use crate::nearest::nearest;

pub use self::rule::{FittedAttribute, RenamedLevel};

/// Most values that become groups without a threshold, a reference or a list of levels.
pub(crate) const MOST_LEVELS: usize = 20;

/// How one attribute becomes groups; at most one of `threshold`, `reference` and `levels`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AttributeConfig {
    /// Column of the attribute.
    pub name: String,
    /// Cuts a number in two at a finite number or at the `"median"` of the training samples, or in several parts at a list
    /// of ascending numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
    /// One level against all others, for example `White`; compared without regard to case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The levels in the order of the groups; compared without regard to case. Other values belong to no group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<String>>,
}

impl AttributeConfig {
    /// The attribute `name` with the levels seen among the training samples.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), threshold: None, reference: None, levels: None }
    }

    /// Whether only the name is set, so that every value is a group.
    pub fn is_plain(&self) -> bool {
        self.threshold.is_none() && self.reference.is_none() && self.levels.is_none()
    }

    /// Refuses to make each of `n_levels` different values a group, unless the groups are described.
    ///
    /// # Errors
    /// [`DataError::TooManyLevels`] above 20.
    pub fn require_few_levels(&self, n_levels: usize) -> Result<(), DataError> {
        if !self.is_plain() || n_levels <= MOST_LEVELS {
            return Ok(());
        }
        Err(DataError::TooManyLevels { attribute: self.name.clone(), n_levels, most: MOST_LEVELS })
    }
}

/// Where a number is cut.
#[derive(Clone, Debug, PartialEq)]
pub enum Threshold {
    /// At this value; a sample exactly at it is in the lower group.
    Value(f64),
    /// At each of these ascending values; a sample exactly at one is in the group below it.
    Values(Vec<f64>),
    /// At the median of the training samples.
    Median,
}

impl Threshold {
    /// Cuts at `values`; `None` unless they are finite and ascend, and there is at least one.
    pub fn at(mut values: Vec<f64>) -> Option<Self> {
        let ascend = values.iter().all(|value| value.is_finite()) && values.windows(2).all(|pair| pair[0] < pair[1]);
        match values.len() {
            0 => None,
            1 => values.pop().filter(|_| ascend).map(Self::Value),
            _ => ascend.then_some(Self::Values(values)),
        }
    }
}

impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => serializer.serialize_f64(*value),
            Self::Values(values) => values.serialize(serializer),
            Self::Median => serializer.serialize_str("median"),
        }
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ThresholdVisitor;

        impl<'de> Visitor<'de> for ThresholdVisitor {
            type Value = Threshold;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a finite number, \"median\", or a list of ascending finite numbers")
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Threshold, E> {
                let finite = value.is_finite().then_some(Threshold::Value(value));
                finite.ok_or_else(|| E::invalid_value(de::Unexpected::Float(value), &self))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Threshold, E> {
                Ok(Threshold::Value(value as f64))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Threshold, E> {
                Ok(Threshold::Value(value as f64))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Threshold, E> {
                let known = (value == "median").then_some(Threshold::Median);
                known.ok_or_else(|| E::invalid_value(de::Unexpected::Str(value), &self))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Threshold, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                let wrong = format!("list {values:?}");
                Threshold::at(values).ok_or_else(|| A::Error::invalid_value(de::Unexpected::Other(&wrong), &self))
            }
        }

        deserializer.deserialize_any(ThresholdVisitor)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Threshold {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Threshold".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "number" },
                { "const": "median" },
                { "type": "array", "items": { "type": "number" }, "minItems": 1 },
            ]
        })
    }
}

/// Samples whose value belongs to no group of an attribute, to be shown to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UngroupedValue {
    /// The attribute.
    pub attribute: String,
    /// The value; `None` for missing ones.
    pub value: Option<String>,
    /// Number of samples.
    pub n_samples: usize,
}

impl fmt::Display for UngroupedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attribute, value, n_samples } = self;
        match value {
            Some(value) => write!(
                f,
                "samples with {attribute} \"{value}\", which is no level seen in training or listed, in no group: {n_samples}"
            ),
            None => write!(f, "samples without {attribute}, in no group: {n_samples}"),
        }
    }
}

/// Groups of every sample of a cohort, for every attribute, fitted on its training samples.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedAttributes {
    groups: Vec<Groups>,
    rules: Vec<FittedAttribute>,
    ungrouped: Vec<UngroupedValue>,
}

impl FittedAttributes {
    /// Fits thresholds and levels on the samples at `train_rows` and assigns every sample of `cohort` to its groups.
    ///
    /// A level known to the rules of the data set may be the reference even if no training sample has it; its group is
    /// then empty. A cohort without samples has no values to fit on, which is not an error.
    ///
    /// # Errors
    /// [`DataError::UnknownAttribute`], [`DataError::InvalidAttribute`] (contradicting settings, a reference that
    /// neither a training sample nor a rule has, no training value to fit on), [`DataError::InvalidCell`] for a value
    /// that is not a number if a threshold is given.
    pub fn fit(configs: &[AttributeConfig], cohort: &Cohort, train_rows: &[usize]) -> Result<Self, DataError> {
        // In parallel; of several errors the first in the order of the settings is returned.
        let fit = |config: &AttributeConfig| {
            let column = find_column(cohort, &config.name)?;
            Ok(FittedAttribute { name: config.name.clone(), rule: LevelRule::fit(config, cohort, column, train_rows)? })
        };
        let rules: Vec<Result<FittedAttribute, DataError>> = configs.par_iter().map(fit).collect();
        Self::assign(rules.into_iter().collect::<Result<_, _>>()?, cohort, &[])
    }

    /// Assigns the samples of another cohort to the groups of fitted attributes, for example those of the cohort that a
    /// model was trained on. A value that is no level of its attribute has the level that `renamed` gives it, without
    /// regard to case; otherwise its sample is in no group and is counted by [`ungrouped`](Self::ungrouped).
    ///
    /// # Errors
    /// [`DataError::UnknownAttribute`], [`DataError::InvalidAttribute`] if a renamed value is given a level that the
    /// attribute does not have, [`DataError::InvalidCell`] for a value that is not a number if the attribute has a
    /// threshold.
    pub fn apply(rules: &[FittedAttribute], cohort: &Cohort, renamed: &[RenamedLevel]) -> Result<Self, DataError> {
        renamed.iter().try_for_each(|renamed| renamed.check(rules))?;
        Self::assign(rules.to_vec(), cohort, renamed)
    }

    /// The groups of all samples of `cohort` as they were recorded ([`read_cohort`](crate::read_cohort)), with the `rules` that made
    /// them. They are not made again, because a record does not keep everything that a rule reads: of an attribute that the
    /// rules of a data set define it has the raw texts alone. Groups of other attributes are left out.
    ///
    /// # Errors
    /// [`DataError::UnknownAttribute`] if an attribute of `rules` has no recorded groups or no column,
    /// [`DataError::ShapeMismatch`] if groups do not cover all samples.
    pub fn recorded(rules: &[FittedAttribute], recorded: &[Groups], cohort: &Cohort) -> Result<Self, DataError> {
        let (mut groups, mut left) = (Vec::new(), Vec::new());
        for fitted in rules {
            let column = find_column(cohort, &fitted.name)?;
            let found = recorded.iter().find(|groups| groups.attribute() == fitted.name);
            let found = found.ok_or_else(|| DataError::UnknownAttribute {
                attribute: fitted.name.clone(),
                data: format!("the recorded groups of cohort \"{}\"", cohort.name),
                nearest: nearest(&fitted.name, recorded.iter().map(Groups::attribute)),
            })?;
            if found.n() != cohort.n() {
                return Err(DataError::ShapeMismatch { what: "grouping", found: found.n(), expected: cohort.n() });
            }
            left.extend(ungrouped(column, found.membership()));
            groups.push(found.clone());
        }
        Ok(Self { groups, rules: rules.to_vec(), ungrouped: left })
    }

    fn assign(rules: Vec<FittedAttribute>, cohort: &Cohort, renamed: &[RenamedLevel]) -> Result<Self, DataError> {
        let membership = |fitted: &FittedAttribute| {
            let column = find_column(cohort, &fitted.name)?;
            Ok((column, fitted.membership(cohort, column, renamed)?))
        };
        let assigned: Vec<Result<_, DataError>> = rules.par_iter().map(membership).collect();
        let (mut groups, mut left) = (Vec::new(), Vec::new());
        for (fitted, assigned) in rules.iter().zip(assigned) {
            let (column, membership) = assigned?;
            left.extend(ungrouped(column, &membership));
            groups.push(Groups::new(fitted.name.clone(), fitted.levels(), membership)?);
        }
        Ok(Self { groups, rules, ungrouped: left })
    }

    /// Groups of the samples at `rows`, in that order; one entry per attribute, in the order of the settings.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    pub fn groups(&self, rows: &[usize]) -> Vec<Groups> {
        self.groups.iter().map(|groups| select(groups, rows)).collect()
    }

    /// Groups of all samples of the cohort; one entry per attribute.
    pub fn all(&self) -> &[Groups] {
        &self.groups
    }

    /// Whether the groups of `attribute` are its own levels, so that its values add nothing to its groups; `false`
    /// for an attribute cut by a threshold or a reference, and for one that was not fitted.
    pub fn has_own_levels(&self, attribute: &str) -> bool {
        self.rules.iter().any(|fitted| fitted.name == attribute && fitted.has_own_levels())
    }

    /// The fitted thresholds and levels, one entry per attribute.
    pub fn rules(&self) -> &[FittedAttribute] {
        &self.rules
    }

    /// Values that belong to no group, with the number of samples, over the whole cohort.
    pub fn ungrouped(&self) -> &[UngroupedValue] {
        &self.ungrouped
    }
}

/// `groups` restricted to the samples at `rows`.
pub(crate) fn select(groups: &Groups, rows: &[usize]) -> Groups {
    let membership = rows.iter().map(|&row| groups.membership()[row]).collect();
    Groups::new(groups.attribute(), groups.levels().to_vec(), membership).expect("levels are unchanged")
}

fn find_column<'a>(cohort: &'a Cohort, name: &str) -> Result<&'a AttributeColumn, DataError> {
    cohort.attributes.iter().find(|column| column.name == name).ok_or_else(|| DataError::UnknownAttribute {
        attribute: name.to_owned(),
        data: format!("cohort \"{}\"", cohort.name),
        nearest: nearest(name, cohort.attributes.iter().map(|column| column.name.as_str())),
    })
}

pub(crate) fn same_ignoring_case(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(b);
    }
    a.to_lowercase() == b.to_lowercase()
}

fn ungrouped(column: &AttributeColumn, membership: &[Option<GroupId>]) -> Vec<UngroupedValue> {
    let mut counts: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for (value, _) in column.values.iter().zip(membership).filter(|(_, group)| group.is_none()) {
        *counts.entry(value.as_deref()).or_insert(0) += 1;
    }
    let entry = |(value, n_samples): (Option<&str>, usize)| UngroupedValue {
        attribute: column.name.clone(),
        value: value.map(str::to_owned),
        n_samples,
    };
    counts.into_iter().map(entry).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
