//! The option that several data sets share: which images are those of the final visit.

use serde::{Deserialize, Serialize};

/// What becomes of an image from the last imaging visit of a subject (in AREDS: of an eye).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinalVisit {
    /// It is left out unless the event was recorded later: what counts is a time > 0.
    #[default]
    Rule,
    /// It is left out, also where the event was recorded later.
    Literal,
}
