//! Strata of subjects, which should have equal shares in every part.
//!
//! A stratum is a combination of the outcome (`event`) and of groups of attributes. Subjects are assigned, not samples,
//! so a subject with several samples needs one value of each: it has the event if any of its samples has it, and it is
//! in the group that most of its samples are in (ties go to the group that comes first in the list of levels; samples
//! of no group do not count). Subjects without any sample in a group form a separate stratum.

use std::collections::{BTreeMap, BTreeSet};

use fairtte_metrics::{GroupId, Groups, SubjectId};

use crate::DataError;
use crate::cohort::Cohort;
use crate::cohort::{AttributeConfig, FittedAttributes};

use super::config::EVENT;

/// The stratum of every subject: one text per entry of `stratify`, for example `["event=1", "sex=F"]`.
pub(super) type Strata<'a> = BTreeMap<&'a SubjectId, Vec<String>>;

/// Finds the stratum of every subject of `cohort`.
///
/// # Errors
/// [`DataError::UnknownAttribute`], [`DataError::TooManyLevels`] for an attribute without settings that has more than
/// 20 values and whose values are not coded by a rule of the data set, and what [`FittedAttributes::fit`] returns.
pub(super) fn strata<'a>(
    cohort: &'a Cohort,
    stratify: &[String],
    attributes: &[AttributeConfig],
) -> Result<Strata<'a>, DataError> {
    let mut strata: Strata<'a> = super::subjects(cohort).into_iter().map(|subject| (subject, Vec::new())).collect();
    for name in stratify {
        let levels = if name == EVENT { events(cohort) } else { levels(cohort, name, attributes)? };
        for (subject, stratum) in &mut strata {
            stratum.push(match levels.get(subject) {
                Some(level) => format!("{name}={level}"),
                None => format!("{name} missing"),
            });
        }
    }
    Ok(strata)
}

/// The name of a stratum in records.
pub(super) fn name_of(stratum: &[String]) -> String {
    if stratum.is_empty() { "all".to_owned() } else { stratum.join(", ") }
}

fn events(cohort: &Cohort) -> BTreeMap<&SubjectId, String> {
    let mut any: BTreeMap<&SubjectId, bool> = BTreeMap::new();
    for sample in &cohort.samples {
        *any.entry(&sample.subject_id).or_default() |= sample.event;
    }
    any.into_iter().map(|(subject, event)| (subject, u8::from(event).to_string())).collect()
}

/// The level of every subject that has one.
fn levels<'a>(
    cohort: &'a Cohort,
    name: &str,
    attributes: &[AttributeConfig],
) -> Result<BTreeMap<&'a SubjectId, String>, DataError> {
    let config = attributes.iter().find(|config| config.name == name).cloned();
    let config = config.unwrap_or_else(|| AttributeConfig::new(name));
    let column = super::site::column(cohort, name)?;
    if let Some(coded) = column.coded.as_ref().filter(|_| config.is_plain()) {
        return Ok(most_frequent(cohort, &coded_groups(name, coded)?));
    }
    let values: BTreeSet<&String> = column.values.iter().flatten().collect();
    config.require_few_levels(values.len())?;
    let fitted = FittedAttributes::fit(&[config], cohort, &cohort.all_rows())?;
    Ok(fitted.all().iter().flat_map(|groups| most_frequent(cohort, groups)).collect())
}

/// The levels of the values by the rules of a data set.
fn coded_groups(name: &str, coded: &[Option<&'static str>]) -> Result<Groups, DataError> {
    let levels: BTreeSet<&str> = coded.iter().flatten().copied().collect();
    let position: BTreeMap<&str, GroupId> = levels.iter().copied().zip((0..).map(GroupId)).collect();
    let membership = coded.iter().map(|level| Some(position[(*level)?])).collect();
    Ok(Groups::new(name, levels.into_iter().map(str::to_owned).collect(), membership)?)
}

fn most_frequent<'a>(cohort: &'a Cohort, groups: &Groups) -> BTreeMap<&'a SubjectId, String> {
    let mut counts: BTreeMap<&SubjectId, Vec<usize>> = BTreeMap::new();
    for (sample, group) in cohort.samples.iter().zip(groups.membership()) {
        if let Some(group) = group {
            counts.entry(&sample.subject_id).or_insert_with(|| vec![0; groups.levels().len()])[group.index()] += 1;
        }
    }
    let level = |counts: &[usize]| {
        let most = counts.iter().max();
        counts.iter().position(|count| Some(count) == most).map(|level| groups.levels()[level].clone())
    };
    counts.into_iter().filter_map(|(subject, counts)| Some((subject, level(&counts)?))).collect()
}
