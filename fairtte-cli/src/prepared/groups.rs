//! Groups of the samples, and those that a strategy works on.

use std::collections::{BTreeSet, HashMap, HashSet};

use fairtte_data::predictions::{DoubtfulLevels, changing_attributes, doubtful_levels};
use fairtte_data::{Cohort, DataError, FittedAttributes};
use fairtte_metrics::{GroupId, Groups};

use crate::progress::say;
use crate::{CliError, RunFile};

/// Fits the attributes of the run file on `rows`; values without a group, or that may not be groups of their own, become notes.
pub(super) fn fit_groups(run: &RunFile, cohort: &Cohort, rows: &[usize]) -> Result<FittedAttributes, CliError> {
    // The values of others have the rules of their data set.
    let raw = |name: &str| cohort.attributes.iter().find(|column| column.name == name && column.coded.is_none());
    for (config, column) in run.attribute.iter().filter_map(|config| Some((config, raw(&config.name)?))) {
        let values: HashSet<&str> = column.values.iter().flatten().map(String::as_str).collect();
        config.require_few_levels(values.len()).map_err(with_settings)?;
    }
    let attributes = FittedAttributes::fit(&run.attribute, cohort, rows)?;
    attributes.ungrouped().iter().for_each(|value| say(format!("note: {value}")));
    for groups in attributes.all().iter().filter(|groups| raw(groups.attribute()).is_some()) {
        for doubt in doubtful_levels(groups.attribute(), groups.levels().iter().map(String::as_str)) {
            let remedy = match doubt {
                DoubtfulLevels::NoValue { .. } => " (an empty cell, or a text of `missing-values`, is in no group)",
                DoubtfulLevels::OneMeaning { .. } => "",
            };
            say(format!("note: {doubt}{remedy}"));
        }
    }
    for changing in changing_attributes(cohort, &run.attribute) {
        say(format!("note: {changing}"));
    }
    Ok(attributes)
}

/// Adds the settings that describe groups to the refusal of an attribute.
fn with_settings(error: DataError) -> CliError {
    let DataError::TooManyLevels { attribute, .. } = &error else { return error.into() };
    let help = format!(
        "cut a number as in {{ name = \"{attribute}\", threshold = \"median\" }}, or name the groups as in levels = [\"A\", \"B\"]"
    );
    CliError::Curves { source: Box::new(error), help }
}

/// The groups with a training sample, which are those that a strategy can work on: an intersection of attributes has cells
/// without samples. The samples of the others count as without the attribute.
pub(super) fn trained_levels(groups: &Groups, train: &[usize]) -> Result<Groups, CliError> {
    let (all, membership) = (groups.levels(), groups.membership());
    let trained: BTreeSet<usize> = train.iter().filter_map(|row| membership[*row]).map(GroupId::index).collect();
    for (level, name) in all.iter().enumerate().filter(|(level, _)| !trained.contains(level)) {
        let n = membership.iter().flatten().filter(|group| group.index() == level).count();
        say(untrained(groups.attribute(), name, n));
    }
    let place: HashMap<usize, u32> = trained.iter().copied().zip(0..).collect();
    let renumbered = |group: &Option<GroupId>| group.and_then(|group| Some(GroupId(*place.get(&group.index())?)));
    let levels = trained.iter().map(|level| all[*level].clone()).collect();
    Ok(Groups::new(groups.attribute(), levels, membership.iter().map(renumbered).collect())?)
}

/// A level that no training sample has, and how many others that concerns.
fn untrained(attribute: &str, level: &str, n: usize) -> String {
    let others = match n {
        0 => String::new(),
        n => format!("; samples whose attribute counts as missing for the strategy: {n}"),
    };
    format!("note: no training sample has {attribute} {level}{others}")
}

/// The groups of the named attributes, crossed if there is more than one; `None` for no name.
///
/// # Errors
/// [`CliError::Config`] naming `key` if a name is not among the attributes.
pub(crate) fn choose_groups(all: &[Groups], names: &[&str], key: &str) -> Result<Option<Groups>, CliError> {
    let find = |name: &&str| {
        all.iter().find(|groups| groups.attribute() == *name).ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(Groups::attribute).collect();
            CliError::unknown_attribute(key, name, &known)
        })
    };
    let chosen: Vec<&Groups> = names.iter().map(find).collect::<Result<_, _>>()?;
    Ok(match chosen.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        several => Some(Groups::intersection(several)?),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
    use super::*;

    #[test]
    fn samples_of_an_untrained_level_are_counted_only_if_there_are_any() {
        assert_eq!(untrained("sex", "M", 0), "note: no training sample has sex M");
        let said = "note: no training sample has sex M; samples whose attribute counts as missing for the strategy: 2";
        assert_eq!(untrained("sex", "M", 2), said);
    }

    #[test]
    fn a_level_without_a_training_sample_is_no_group_of_a_strategy() {
        let group = |level| Some(GroupId(level));
        let levels = ["a", "b", "c"].map(str::to_owned).to_vec();
        let groups = Groups::new("x", levels, vec![group(2), group(1), None, group(0), group(2)]).unwrap();
        let trained = trained_levels(&groups, &[0, 2, 3]).unwrap();
        assert_eq!(trained.levels(), ["a", "c"]);
        assert_eq!(trained.membership(), [group(1), None, None, group(0), group(1)]);
    }
}
