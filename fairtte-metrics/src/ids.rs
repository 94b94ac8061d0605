//! Identifiers of subjects, samples and groups, which accompany every row from the input files to the report.
//!
//! Three newtypes, so that a subject cannot be passed where a sample is meant.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps an identifier as it is written in the source table.
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }
    };
}

text_id! {
    /// One person. Splits and bootstrap draws keep all samples of a subject together.
    SubjectId
}

text_id! {
    /// One row of a cohort: one image (or one feature vector) with its time and event.
    SampleId
}

/// Position of a level in [`Groups::levels`](crate::Groups::levels).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The group at this position.
    pub(crate) fn from_index(index: usize) -> Self {
        Self(to_u32(index))
    }

    /// The position as an array index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Rows, ranks and levels are kept in 32 bits: they are read once per bootstrap replicate, whose cost is memory
/// traffic.
pub(crate) fn to_u32(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 rows")
}
