//! Which strata the bootstrap draws within, as a setting.
//!
//! Drawing within the levels of an attribute keeps every group at its size, so that a small group is never missing from
//! a replicate; drawing within event status keeps the number of events. Either is right where the design fixed those
//! numbers, and too optimistic where they are random (Davison & Hinkley 1997, section 3.2).

use serde::{Deserialize, Serialize};

use crate::{Groups, MetricError, Outcomes};

/// What is held fixed in every replicate.
///
/// In a settings file: `stratify = "none"`, `"event"` or `{ attribute = "sex" }`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stratify {
    /// Nothing: all units are drawn from one pool.
    #[default]
    None,
    /// The number of units with and without an observed event. A subject needs the same status in all its samples.
    Event,
    /// The number of units in every level of this attribute; units whose attribute is missing are a stratum too.
    Attribute(String),
}

impl Stratify {
    /// Number of the stratum of every row, `[n]`, for [`Bootstrap::stratified`](crate::resampling::Bootstrap::stratified).
    ///
    /// ```
    /// use fairtte_metrics::{Groups, Outcomes};
    /// use fairtte_metrics::resampling::Stratify;
    ///
    /// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, false, true])?;
    /// assert_eq!(Stratify::Event.strata(&outcomes, &[])?, [1, 0, 1]);
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// [`MetricError::UnknownAttribute`] if none of `groups` has the name, [`MetricError::LengthMismatch`] if it
    /// describes another number of samples.
    pub fn strata(&self, outcomes: &Outcomes, groups: &[Groups]) -> Result<Vec<u32>, MetricError> {
        let name = match self {
            Self::None => return Ok(vec![0; outcomes.n()]),
            Self::Event => return Ok(outcomes.event().iter().map(|event| u32::from(*event)).collect()),
            Self::Attribute(name) => name,
        };
        let Some(groups) = groups.iter().find(|groups| groups.attribute() == name) else {
            let known = groups.iter().map(|groups| groups.attribute().to_owned()).collect::<Vec<_>>().join(", ");
            return Err(MetricError::UnknownAttribute { attribute: name.clone(), known });
        };
        if groups.n() != outcomes.n() {
            let what = "group memberships";
            return Err(MetricError::LengthMismatch { what, found: groups.n(), expected: outcomes.n() });
        }
        // Level k is stratum k + 1, a missing attribute stratum 0.
        Ok(groups.membership().iter().map(|group| group.map_or(0, |group| group.0 + 1)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GroupId;

    #[test]
    fn strata_are_numbered_by_level_and_a_missing_attribute_is_one_of_them() {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, false, true]).unwrap();
        let membership = vec![Some(GroupId(1)), None, Some(GroupId(0))];
        let sex = Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership).unwrap();
        let strata = |stratify: Stratify| stratify.strata(&outcomes, std::slice::from_ref(&sex));
        assert_eq!(strata(Stratify::None), Ok(vec![0, 0, 0]));
        assert_eq!(strata(Stratify::Event), Ok(vec![1, 0, 1]));
        assert_eq!(strata(Stratify::Attribute("sex".to_owned())), Ok(vec![2, 0, 1]));
        let expected = MetricError::UnknownAttribute { attribute: "race".to_owned(), known: "sex".to_owned() };
        assert_eq!(strata(Stratify::Attribute("race".to_owned())), Err(expected));
        let two = Outcomes::new(vec![1.0, 2.0], vec![true, false]).unwrap();
        let found = Stratify::Attribute("sex".to_owned()).strata(&two, &[sex]);
        assert!(matches!(found, Err(MetricError::LengthMismatch { found: 3, expected: 2, .. })));
    }

    #[test]
    fn the_setting_reads_from_a_file_and_refuses_other_words() {
        let read = |text: &str| serde_json::from_str::<Stratify>(text);
        assert_eq!(read("\"event\"").unwrap(), Stratify::Event);
        assert_eq!(read("{\"attribute\": \"sex\"}").unwrap(), Stratify::Attribute("sex".to_owned()));
        assert!(read("\"events\"").is_err());
        assert!(read("{\"atribute\": \"sex\"}").is_err());
    }
}
