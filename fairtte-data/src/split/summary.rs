//! The table of a split: parts by subjects, samples and events, over all and for every group of every attribute.
//!
//! A subject counts in every group that one of its samples is in, so that the groups of a changing attribute (an age
//! group) may add up to more than the number of subjects. Samples and events always add up.

use std::collections::HashSet;
use std::fmt;

use fairtte_metrics::{GroupId, Groups, SubjectId};
use serde::Serialize;

use crate::DataError;
use crate::cohort::{Cohort, OutcomeKind};

use super::{Part, Split};

/// The content of a part, over all samples or in one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PartSize {
    /// Different subjects.
    pub subjects: usize,
    /// Samples.
    pub samples: usize,
    /// Samples whose event is observed.
    pub events: usize,
}

/// One row of a [`SplitTable`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SplitRow {
    /// The attribute; `None` in the row over all samples.
    pub attribute: Option<String>,
    /// The level; `None` for the samples of no group.
    pub level: Option<String>,
    /// Training part.
    pub train: PartSize,
    /// Validation part.
    pub validation: PartSize,
    /// Test part.
    pub test: PartSize,
}

impl SplitRow {
    /// `all`, `sex F` or `sex missing`.
    pub fn name(&self) -> String {
        match (&self.attribute, &self.level) {
            (None, _) => "all".to_owned(),
            (Some(attribute), Some(level)) => format!("{attribute} {level}"),
            (Some(attribute), None) => format!("{attribute} missing"),
        }
    }

    /// The content of `part`.
    pub fn size(&self, part: Part) -> PartSize {
        match part {
            Part::Train => self.train,
            Part::Validation => self.validation,
            Part::Test => self.test,
        }
    }
}

/// Sizes of the parts: one row over all samples, then one for each group, and one for the samples of no group of an
/// attribute if there are any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SplitTable {
    /// The rows.
    pub rows: Vec<SplitRow>,
    /// Heading of the events; `None` where samples have none.
    #[serde(skip)]
    events: Option<&'static str>,
}

impl SplitTable {
    /// Counts the parts of `split`, which was made for `cohort`; `groups` hold one entry per sample of the cohort.
    ///
    /// # Errors
    /// [`DataError::ShapeMismatch`] if `groups` have a different number of samples.
    pub fn new(cohort: &Cohort, groups: &[Groups], split: &Split) -> Result<Self, DataError> {
        let mut rows = vec![row(cohort, split, None, None, |_| true)];
        for groups in groups {
            let (found, expected) = (groups.n(), cohort.n());
            if found != expected {
                return Err(DataError::ShapeMismatch { what: "list of groups", found, expected });
            }
            let membership = groups.membership();
            for (level, group) in groups.levels().iter().zip(0..) {
                let is_member = |row: usize| membership[row] == Some(GroupId(group));
                rows.push(row(cohort, split, Some(groups.attribute()), Some(level), is_member));
            }
            if membership.contains(&None) {
                rows.push(row(cohort, split, Some(groups.attribute()), None, |row| membership[row].is_none()));
            }
        }
        let events = match cohort.outcome_kind() {
            OutcomeKind::Times => Some("events"),
            OutcomeKind::Class => Some("positive"),
            OutcomeKind::Masks => None,
        };
        Ok(Self { rows, events })
    }
}

fn row(
    cohort: &Cohort,
    split: &Split,
    attribute: Option<&str>,
    level: Option<&String>,
    is_member: impl Fn(usize) -> bool,
) -> SplitRow {
    let [train, validation, test] = Part::ALL.map(|part| {
        let members = split.rows(part).iter().filter(|row| is_member(**row));
        let mut subjects: HashSet<&SubjectId> = HashSet::new();
        let mut size = PartSize::default();
        for sample in members.map(|row| &cohort.samples[*row]) {
            subjects.insert(&sample.subject_id);
            size.samples += 1;
            size.events += usize::from(sample.event);
        }
        PartSize { subjects: subjects.len(), ..size }
    });
    SplitRow { attribute: attribute.map(str::to_owned), level: level.cloned(), train, validation, test }
}

impl fmt::Display for SplitTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.rows.iter().map(SplitRow::name).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        write!(f, "{:width$}", "")?;
        let of_part = if self.events.is_some() { 28 } else { 19 };
        for part in Part::ALL {
            write!(f, "  {:>of_part$}", part.name())?;
        }
        write!(f, "\n{:width$}", "")?;
        for _ in Part::ALL {
            write!(f, "  {:>10}{:>9}", "subjects", "samples")?;
            self.events.map_or(Ok(()), |events| write!(f, "{events:>9}"))?;
        }
        for (row, name) in self.rows.iter().zip(&names) {
            write!(f, "\n{name:width$}")?;
            for part in Part::ALL {
                let PartSize { subjects, samples, events } = row.size(part);
                write!(f, "  {subjects:>10}{samples:>9}")?;
                self.events.map_or(Ok(()), |_| write!(f, "{events:>9}"))?;
            }
        }
        Ok(())
    }
}
