//! The mirror images that are still valid images of a data set.
//!
//! | data set | horizontal (left and right) | vertical |
//! |---|---|---|
//! | `mimic-cxr` | no: the heart would be on the wrong side | no: no film is read upside down |
//! | `adni` | yes: left and right half of a brain mirror each other closely | no: forehead and back of the head differ |
//! | `areds` | yes: a mirrored right eye looks like a left one, and both are in the data | no: the upper and the lower arcade of vessels differ, and no photograph is upside down |
//! | any other | yes | yes |
//!
//! MEDFAIR flips all pictures horizontally, chest films too; `force = true` allows this here. For other data sets the
//! user is responsible for choosing a valid flip.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Axes along which an image may be mirrored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Flip {
    /// Never.
    #[default]
    None,
    /// Left and right are exchanged.
    Horizontal,
    /// The order of the rows of every picture or axial slice is reversed.
    Vertical,
    /// Both, independently.
    Both,
}

impl Flip {
    pub(super) fn mirrors_width(self) -> bool {
        matches!(self, Self::Horizontal | Self::Both)
    }

    pub(super) fn mirrors_height(self) -> bool {
        matches!(self, Self::Vertical | Self::Both)
    }

    /// The expected setting and the reason, if the images of `data_set` must not be mirrored in this way.
    pub(super) fn forbidden(self, data_set: &str) -> Option<&'static str> {
        match data_set {
            "mimic-cxr" if self.mirrors_width() => Some(
                "\"none\", because a mirrored chest film shows the heart on the wrong side (augmentation.force = true allows the flip anyway)",
            ),
            "mimic-cxr" if self.mirrors_height() => Some(
                "\"none\", because no chest film is read upside down (augmentation.force = true allows the flip anyway)",
            ),
            "adni" if self.mirrors_height() => Some(
                "\"none\" or \"horizontal\" (left and right), because forehead and back of the head differ (augmentation.force = true allows the flip anyway)",
            ),
            "areds" if self.mirrors_height() => Some(
                "\"none\" or \"horizontal\" (a mirrored right eye looks like a left one), because no fundus photograph is upside down (augmentation.force = true allows the flip anyway)",
            ),
            _ => None,
        }
    }
}

impl fmt::Display for Flip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Horizontal => "horizontal",
            Self::Vertical => "vertical",
            Self::Both => "both",
        })
    }
}
