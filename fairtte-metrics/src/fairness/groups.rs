//! Group membership of every sample for one sensitive attribute (or an intersection of several).

use crate::{GroupId, MetricError};

/// The maximum number of levels of an intersection: more cells could not contain enough samples, and their names would
/// fill the memory.
const MAX_LEVELS: usize = 1 << 20;

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
    /// [`MetricError::UnknownGroup`] if a membership refers to a level beyond the last one.
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

    /// The intersection of several attributes, for example `sex x age` with the levels `F & <= 60`, `F & > 60`, ..
    ///
    /// Every combination of levels is a level, also one without samples; a sample that misses one of the attributes
    /// belongs to none.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] if the attributes describe different numbers of samples,
    /// [`MetricError::InvalidSetting`] without any attribute or with more than 2^20 combinations of levels.
    pub fn intersection(attributes: &[&Groups]) -> Result<Self, MetricError> {
        let Some((first, rest)) = attributes.split_first() else {
            let (setting, expected) = ("number of attributes to intersect", "at least 1");
            return Err(MetricError::InvalidSetting { setting, value: "0".to_owned(), expected });
        };
        let mut product = (*first).clone();
        for other in rest {
            if other.n() != product.n() {
                let what = "group memberships";
                return Err(MetricError::LengthMismatch { what, found: other.n(), expected: product.n() });
            }
            let n_levels = product.levels.len().saturating_mul(other.levels.len());
            if n_levels > MAX_LEVELS {
                let (setting, expected) = ("number of levels of an intersection", "at most 1048576");
                return Err(MetricError::InvalidSetting { setting, value: n_levels.to_string(), expected });
            }
            let combine = |a: &String| other.levels.iter().map(|b| format!("{a} & {b}")).collect::<Vec<_>>();
            let pair = |a: GroupId, b: GroupId| GroupId::from_index(a.index() * other.levels.len() + b.index());
            let pairs = product.membership.iter().zip(&other.membership);
            product = Self {
                attribute: format!("{} x {}", product.attribute, other.attribute),
                levels: product.levels.iter().flat_map(combine).collect(),
                membership: pairs.map(|(a, b)| Some(pair((*a)?, (*b)?))).collect(),
            };
        }
        Ok(product)
    }

    /// The intersections of all pairs of attributes, (1, 2), (1, 3), .., (2, 3), ..; none of fewer than two.
    ///
    /// ```
    /// use fairtte_metrics::{GroupId, Groups};
    ///
    /// let attribute = |name: &str, membership: [u32; 2]| {
    ///     Groups::new(name, vec!["0".into(), "1".into()], membership.map(|level| Some(GroupId(level))).to_vec())
    /// };
    /// let (sex, age, site) = (attribute("sex", [0, 1])?, attribute("age", [1, 1])?, attribute("site", [0, 0])?);
    /// let pairs = Groups::pairwise_intersections(&[&sex, &age, &site])?;
    /// let names: Vec<&str> = pairs.iter().map(Groups::attribute).collect();
    /// assert_eq!(names, ["sex x age", "sex x site", "age x site"]);
    /// assert_eq!(pairs[0].sizes(), [0, 1, 0, 1]);
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`intersection`](Self::intersection).
    pub fn pairwise_intersections(attributes: &[&Groups]) -> Result<Vec<Self>, MetricError> {
        let from = |first: usize| attributes[first + 1..].iter().map(move |second| [attributes[first], *second]);
        (0..attributes.len()).flat_map(from).map(|pair| Self::intersection(&pair)).collect()
    }

    /// Number of samples in every level, in level order; a level without samples counts 0.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.levels.len()];
        for group in self.membership.iter().flatten() {
            sizes[group.index()] += 1;
        }
        sizes
    }

    /// All group identities, in level order (also of levels without any sample).
    pub fn ids(&self) -> impl Iterator<Item = GroupId> + use<> {
        (0..self.levels.len()).map(GroupId::from_index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(name: &str, levels: &[&str], membership: &[Option<u32>]) -> Groups {
        let levels = levels.iter().map(|level| (*level).to_owned()).collect();
        Groups::new(name, levels, membership.iter().map(|level| level.map(GroupId)).collect()).unwrap()
    }

    #[test]
    fn an_intersection_has_every_combination_and_leaves_out_missing_attributes() {
        let sex = groups("sex", &["F", "M"], &[Some(0), Some(1), Some(1), None]);
        let age = groups("age", &["<= 60", "> 60"], &[Some(1), Some(0), None, Some(0)]);
        let both = Groups::intersection(&[&sex, &age]).unwrap();
        assert_eq!(both.attribute(), "sex x age");
        assert_eq!(both.levels(), ["F & <= 60", "F & > 60", "M & <= 60", "M & > 60"]);
        assert_eq!(both.membership(), [Some(GroupId(1)), Some(GroupId(2)), None, None]);
        assert_eq!(Groups::intersection(&[&sex]).unwrap(), sex);
    }

    #[test]
    fn attributes_of_different_samples_do_not_intersect() {
        let sex = groups("sex", &["F", "M"], &[Some(0)]);
        let age = groups("age", &["young"], &[Some(0), Some(0)]);
        assert!(matches!(Groups::intersection(&[&sex, &age]), Err(MetricError::LengthMismatch { found: 2, .. })));
        assert!(Groups::intersection(&[]).is_err());
        assert!(Groups::pairwise_intersections(&[&sex, &age]).is_err());
        assert_eq!(Groups::pairwise_intersections(&[&sex]), Ok(vec![]));
    }

    #[test]
    fn an_intersection_with_more_levels_than_it_could_name_is_refused() {
        let levels =
            |n: u32| Groups::new("site", (0..n).map(|k| k.to_string()).collect(), vec![Some(GroupId(0))]).unwrap();
        let wide = levels(1025);
        let found = Groups::intersection(&[&wide, &wide]);
        assert!(matches!(found, Err(MetricError::InvalidSetting { value, .. }) if value == "1050625"));
        let largest = levels(1024);
        assert_eq!(Groups::intersection(&[&largest, &largest]).unwrap().levels().len(), 1_048_576);
    }

    #[test]
    fn a_membership_beyond_the_levels_is_refused() {
        let found = Groups::new("sex", vec!["F".to_owned()], vec![Some(GroupId(0)), Some(GroupId(1))]);
        let expected = MetricError::UnknownGroup { attribute: "sex".to_owned(), row: 1, n_levels: 1 };
        assert_eq!(found, Err(expected));
    }

    #[test]
    fn the_size_of_a_level_is_its_number_of_samples() {
        let site = groups("site", &["a", "b", "c"], &[Some(2), Some(0), None, Some(2), Some(2)]);
        assert_eq!(site.sizes(), [1, 0, 3]);
    }
}
