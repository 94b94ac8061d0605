//! Sensitive attributes: from raw values to groups, with everything fitted on the training samples only.
//!
//! An attribute is one of four things: a number cut at a threshold (`<= 60` is group 0, `> 60` is group 1) or at several
//! (`<= 40`, `> 40 to 60`, `> 60`), one reference level against all others (`Non-White` is group 0, `White` is group 1), a given list of levels, or the
//! levels seen among the training samples in alphabetical order. A sample whose value is missing belongs to no group.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fairtte_metrics::{GroupId, Groups};
use rayon::prelude::*;
use serde::de::{self, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::DataError;
use crate::cohort::{AttributeColumn, Cohort};
use crate::error::{Place, nearest};

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
    /// Whether the levels are values of the attribute itself, by attribute.
    own_levels: Vec<bool>,
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
        let mut fitted = Self { groups: Vec::new(), own_levels: Vec::new(), ungrouped: Vec::new() };
        // In parallel; of several errors the first in the order of the settings is returned.
        let assigned: Vec<_> = configs.par_iter().map(|config| assign(config, cohort, train_rows)).collect();
        for (config, assigned) in configs.iter().zip(assigned) {
            let (column, rule, membership) = assigned?;
            fitted.ungrouped.extend(ungrouped(column, &membership));
            fitted.own_levels.push(matches!(rule, LevelRule::Levels { .. }));
            fitted.groups.push(Groups::new(config.name.clone(), rule.level_names(), membership)?);
        }
        Ok(fitted)
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
        let position = self.groups.iter().position(|groups| groups.attribute() == attribute);
        position.is_some_and(|position| self.own_levels[position])
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

/// The column of one attribute, its rule fitted on `train_rows`, and the group of every sample.
fn assign<'a>(
    config: &AttributeConfig,
    cohort: &'a Cohort,
    train_rows: &[usize],
) -> Result<(&'a AttributeColumn, LevelRule, Vec<Option<GroupId>>), DataError> {
    let column = find_column(cohort, &config.name)?;
    let rule = LevelRule::fit(config, cohort, column, train_rows)?;
    let membership = rule.assign(cohort, column)?;
    Ok((column, rule, membership))
}

fn find_column<'a>(cohort: &'a Cohort, name: &str) -> Result<&'a AttributeColumn, DataError> {
    cohort.attributes.iter().find(|column| column.name == name).ok_or_else(|| DataError::UnknownAttribute {
        attribute: name.to_owned(),
        data: format!("cohort \"{}\"", cohort.name),
        nearest: nearest(name, cohort.attributes.iter().map(|column| column.name.as_str())),
    })
}

/// A fitted rule from a raw value to a level.
enum LevelRule {
    /// Ascending cuts.
    Threshold(Vec<f64>),
    Reference(String),
    /// A reference among the levels defined by the rules of the data set.
    CodedReference(String),
    Levels {
        names: Vec<String>,
        ignore_case: bool,
    },
}

impl LevelRule {
    fn fit(
        config: &AttributeConfig,
        cohort: &Cohort,
        column: &AttributeColumn,
        train_rows: &[usize],
    ) -> Result<Self, DataError> {
        let invalid = |problem: String| DataError::InvalidAttribute { attribute: config.name.clone(), problem };
        let seen =
            || -> BTreeSet<&str> { train_rows.iter().filter_map(|&row| column.values[row].as_deref()).collect() };
        match (&config.threshold, &config.reference, &config.levels) {
            (Some(Threshold::Value(value)), None, None) if value.is_finite() => Ok(Self::Threshold(vec![*value])),
            (Some(Threshold::Values(values)), None, None) => match Threshold::at(values.clone()) {
                Some(_) => Ok(Self::Threshold(values.clone())),
                None => Err(invalid(format!("threshold is {values:?}, expected ascending finite numbers"))),
            },
            (Some(Threshold::Value(value)), None, None) => {
                Err(invalid(format!("threshold is {value}, expected a finite number")))
            }
            (Some(Threshold::Median), None, None) => {
                let mut values = Vec::new();
                for &row in train_rows {
                    values.extend(number(cohort, column, row)?);
                }
                match median(values) {
                    Some(median) => Ok(Self::Threshold(vec![median])),
                    None if cohort.n() == 0 => Ok(Self::Levels { names: Vec::new(), ignore_case: false }),
                    None => Err(invalid("no training sample has a value".to_owned())),
                }
            }
            (None, Some(reference), None) => {
                let is_reference = |value: &&str| same_ignoring_case(value, reference);
                let is_known = column.known.iter().any(is_reference);
                let coded = column.coded.as_ref().map(|coded| train_rows.iter().filter_map(|&row| coded[row]));
                if coded.is_some_and(|mut coded| is_known || coded.any(|level| is_reference(&level))) {
                    return Ok(Self::CodedReference(reference.clone()));
                }
                let is_needed = !is_known && cohort.n() > 0;
                let seen = if is_needed { seen() } else { BTreeSet::new() };
                if is_needed && !seen.iter().any(is_reference) {
                    let hint = nearest(reference, seen).map(|name| format!(", nearest is \"{name}\""));
                    let hint = hint.unwrap_or_default();
                    return Err(invalid(format!("no training sample has the reference \"{reference}\"{hint}")));
                }
                Ok(Self::Reference(reference.clone()))
            }
            (None, None, Some(levels)) => {
                let repeated = |(i, level): (usize, &String)| levels[..i].iter().any(|l| same_ignoring_case(l, level));
                if levels.is_empty() || levels.iter().enumerate().any(repeated) {
                    return Err(invalid(format!("levels are {levels:?}, expected a list of different names")));
                }
                Ok(Self::Levels { names: levels.clone(), ignore_case: true })
            }
            (None, None, None) => {
                let names: Vec<String> = seen().into_iter().map(str::to_owned).collect();
                if names.is_empty() && cohort.n() > 0 {
                    return Err(invalid("no training sample has a value".to_owned()));
                }
                Ok(Self::Levels { names, ignore_case: false })
            }
            _ => Err(invalid("expected at most one of threshold, reference and levels".to_owned())),
        }
    }

    fn level_names(&self) -> Vec<String> {
        match self {
            Self::Threshold(cuts) => {
                let between = cuts.windows(2).map(|cuts| format!("> {} to {}", cuts[0], cuts[1]));
                let ends = (cuts.first().map(|cut| format!("<= {cut}")), cuts.last().map(|cut| format!("> {cut}")));
                ends.0.into_iter().chain(between).chain(ends.1).collect()
            }
            Self::Reference(reference) | Self::CodedReference(reference) => {
                vec![format!("Non-{reference}"), reference.clone()]
            }
            Self::Levels { names, .. } => names.clone(),
        }
    }

    fn assign(&self, cohort: &Cohort, column: &AttributeColumn) -> Result<Vec<Option<GroupId>>, DataError> {
        (0..cohort.n()).map(|row| self.level(cohort, column, row)).collect()
    }

    fn level(&self, cohort: &Cohort, column: &AttributeColumn, row: usize) -> Result<Option<GroupId>, DataError> {
        let group = |is_second: bool| Some(GroupId(u32::from(is_second)));
        let numbered = |position: usize| GroupId(u32::try_from(position).expect("fewer than 2^32 levels"));
        if let Self::CodedReference(reference) = self {
            let level = column.coded.as_ref().and_then(|coded| coded[row]);
            return Ok(level.and_then(|level| group(same_ignoring_case(level, reference))));
        }
        let Some(value) = column.values[row].as_deref() else { return Ok(None) };
        Ok(match self {
            Self::Threshold(cuts) => {
                number(cohort, column, row)?.map(|number| numbered(cuts.partition_point(|cut| number > *cut)))
            }
            Self::Reference(reference) | Self::CodedReference(reference) => group(same_ignoring_case(value, reference)),
            Self::Levels { names, ignore_case } => {
                let same = |name: &String| if *ignore_case { same_ignoring_case(name, value) } else { name == value };
                names.iter().position(same).map(numbered)
            }
        })
    }
}

/// The value of `row` as a finite number; `None` if it is missing.
fn number(cohort: &Cohort, column: &AttributeColumn, row: usize) -> Result<Option<f64>, DataError> {
    let Some(value) = column.values[row].as_deref() else { return Ok(None) };
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Some(number)),
        _ => Err(DataError::InvalidCell {
            column: column.name.clone(),
            sample: cohort.samples[row].sample_id.to_string(),
            value: format!("\"{value}\""),
            expected: "a finite number, because the attribute has a threshold",
            place: Place { file: cohort.source.clone(), row: cohort.samples[row].source_row },
        }),
    }
}

/// The middle value, or the mean of the two middle values; `None` if there is none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(values[n / 2]),
        _ => Some(f64::midpoint(values[n / 2 - 1], values[n / 2])),
    }
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
