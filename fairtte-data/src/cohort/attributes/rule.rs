//! The fitted rule of one attribute: from a raw value to the level of a group.

use std::collections::BTreeSet;

use fairtte_metrics::GroupId;
use serde::{Deserialize, Serialize};

use super::{AttributeConfig, Threshold, same_ignoring_case};
use crate::DataError;
use crate::cohort::{AttributeColumn, Cohort};
use crate::error::Place;
use crate::nearest::nearest;

/// An attribute with what was fitted on the training samples: it assigns the samples of any cohort to the same groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FittedAttribute {
    /// Column of the attribute.
    pub name: String,
    pub(super) rule: LevelRule,
}

impl FittedAttribute {
    /// Names of the groups, in their order.
    pub fn levels(&self) -> Vec<String> {
        self.rule.level_names()
    }

    /// Whether the groups are values of the attribute itself, so that the values add nothing to the groups.
    pub(super) fn has_own_levels(&self) -> bool {
        matches!(self.rule, LevelRule::Levels { .. })
    }

    /// The group of every sample of `cohort`, whose values are in `column`.
    pub(super) fn membership(
        &self,
        cohort: &Cohort,
        column: &AttributeColumn,
        renamed: &[RenamedLevel],
    ) -> Result<Vec<Option<GroupId>>, DataError> {
        let mine: Vec<&RenamedLevel> = renamed.iter().filter(|renamed| renamed.attribute == self.name).collect();
        let levels = self.levels();
        let group_of = |row: usize| {
            let value = column.values[row].as_deref();
            let given = mine.iter().find(|renamed| value.is_some_and(|v| same_ignoring_case(v, &renamed.value)));
            match given.and_then(|given| levels.iter().position(|level| same_ignoring_case(level, &given.level))) {
                Some(position) => Ok(Some(numbered(position))),
                None => self.rule.level(cohort, column, row),
            }
        };
        (0..cohort.n()).map(group_of).collect()
    }
}

/// The level that a value of another cohort has: `race.Hispanic=Non-White`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RenamedLevel {
    /// The attribute.
    pub attribute: String,
    /// Its value in the other cohort.
    pub value: String,
    /// The level of the fitted attribute.
    pub level: String,
}

impl RenamedLevel {
    /// Requires that its attribute is among the `rules` and has its level, and that a sample of `cohort` has its value, without regard
    /// to case. A cohort without the attribute has no values to compare.
    ///
    /// # Errors
    /// [`DataError::UnknownAttribute`], and [`DataError::InvalidAttribute`] with the nearest value.
    pub fn require(&self, rules: &[FittedAttribute], cohort: &Cohort) -> Result<(), DataError> {
        self.check(rules)?;
        let Some(column) = cohort.attributes.iter().find(|column| column.name == self.attribute) else { return Ok(()) };
        let values: BTreeSet<&str> = column.values.iter().flatten().map(String::as_str).collect();
        if values.iter().any(|value| same_ignoring_case(value, &self.value)) {
            return Ok(());
        }
        let nearest = nearest(&self.value, values).map(|value| format!(", nearest is \"{value}\"")).unwrap_or_default();
        let problem = format!("no sample has the value \"{}\"{nearest}", self.value);
        Err(DataError::InvalidAttribute { attribute: self.attribute.clone(), problem })
    }

    pub(super) fn check(&self, rules: &[FittedAttribute]) -> Result<(), DataError> {
        let Self { attribute, value, level } = self;
        let names = || rules.iter().map(|fitted| fitted.name.as_str());
        let Some(fitted) = rules.iter().find(|fitted| fitted.name == *attribute) else {
            let data = "the fitted attributes".to_owned();
            return Err(DataError::UnknownAttribute {
                attribute: attribute.clone(),
                data,
                nearest: nearest(attribute, names()),
            });
        };
        let levels = fitted.levels();
        if levels.iter().any(|known| same_ignoring_case(known, level)) {
            return Ok(());
        }
        let problem = format!("\"{value}\" is given the level \"{level}\", expected one of {}", levels.join(", "));
        Err(DataError::InvalidAttribute { attribute: attribute.clone(), problem })
    }
}

/// A fitted rule from a raw value to a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LevelRule {
    /// Ascending cuts.
    Threshold(Vec<f64>),
    Reference(String),
    /// A reference among the levels defined by the rules of the data set; compared with the values of a cohort without
    /// such rules.
    CodedReference(String),
    #[serde(rename_all = "kebab-case")]
    Levels {
        names: Vec<String>,
        ignore_case: bool,
    },
}

impl LevelRule {
    pub(super) fn fit(
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

    pub(super) fn level_names(&self) -> Vec<String> {
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

    pub(super) fn level(
        &self,
        cohort: &Cohort,
        column: &AttributeColumn,
        row: usize,
    ) -> Result<Option<GroupId>, DataError> {
        let group = |is_second: bool| Some(GroupId(u32::from(is_second)));
        if let (Self::CodedReference(reference), Some(coded)) = (self, &column.coded) {
            return Ok(coded[row].and_then(|level| group(same_ignoring_case(level, reference))));
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

fn numbered(position: usize) -> GroupId {
    GroupId(u32::try_from(position).expect("fewer than 2^32 levels"))
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
