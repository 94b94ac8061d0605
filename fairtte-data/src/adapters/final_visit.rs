//! The option, shared by several data sets, for images of the final visit.

use serde::{Deserialize, Serialize};

/// How an image is treated that was taken at the last imaging visit of a subject (in AREDS: of an eye).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FinalVisit {
    /// It is left out unless the event was recorded later: the criterion is a time > 0.
    #[default]
    Rule,
    /// It is left out, also where the event was recorded later.
    Literal,
}
