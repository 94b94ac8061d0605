//! Group membership of every sample for one sensitive attribute (or an intersection of several).

use crate::{GroupId, MetricError};

/// One sensitive attribute: its name, its levels, and the level of every sample.
///
/// A sample whose attribute is missing belongs to no group: it counts in the overall value and in no group.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    attribute: String,
    levels: Vec<String>,
    membership: Vec<Option<GroupId>>,
}

impl Groups {
    /// Checks and keeps the membership of `n` samples in `levels`.
    ///
    /// # Errors
    /// [`MetricError::UnknownGroup`] if a membership points past the last level.
    pub fn new(
        attribute: impl Into<String>,
        levels: Vec<String>,
        membership: Vec<Option<GroupId>>,
    ) -> Result<Self, MetricError> {
        let attribute = attribute.into();
        let out_of_range = |group: &Option<GroupId>| group.is_some_and(|g| g.index() >= levels.len());
        if let Some(row) = membership.iter().position(out_of_range) {
            return Err(MetricError::UnknownGroup { attribute, row, n_levels: levels.len() });
        }
        Ok(Self { attribute, levels, membership })
    }

    /// Name of the attribute, for example `sex` or `sex x age`.
    pub fn attribute(&self) -> &str {
        &self.attribute
    }

    /// Names of the levels, in the order of [`GroupId`].
    pub fn levels(&self) -> &[String] {
        &self.levels
    }

    /// Level of every sample; `None` where the attribute is missing.
    pub fn membership(&self) -> &[Option<GroupId>] {
        &self.membership
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.membership.len()
    }

    /// Rows of the samples in `group`, ascending.
    pub fn rows(&self, group: GroupId) -> Vec<usize> {
        let members = self.membership.iter().enumerate();
        members.filter(|(_, g)| **g == Some(group)).map(|(row, _)| row).collect()
    }

    /// All group identities, in level order (also of levels without any sample).
    pub fn ids(&self) -> impl Iterator<Item = GroupId> + use<> {
        (0..self.levels.len()).map(|level| GroupId(u32::try_from(level).expect("fewer than 2^32 levels")))
    }
}
