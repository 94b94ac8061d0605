//! The metrics of masks: names, directions, conventions.

use serde::{Deserialize, Serialize};

use crate::masks::{Hausdorff, MaskSettings, PairScore};
use crate::{Direction, MetricError};

/// A metric of one class of masks, or of cup and disc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskMetric {
    /// 2 |A and B| / (|A| + |B|).
    Dice,
    /// |A and B| / |A or B|.
    Iou,
    /// 95th percentile of the distances of the surfaces.
    Hd95,
    /// Mean distance of the surfaces.
    Asd,
    /// Share of the surfaces within the tolerance.
    Nsd,
    /// Error of the vertical cup-to-disc ratio.
    CupToDisc,
}

impl MaskMetric {
    /// All metrics, in the order of a report.
    pub const ALL: [Self; 6] = [Self::Dice, Self::Iou, Self::Hd95, Self::Asd, Self::Nsd, Self::CupToDisc];

    /// Its name; that of a report has the class behind it, as in `dice-cup`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dice => "dice",
            Self::Iou => "iou",
            Self::Hd95 => "hd95",
            Self::Asd => "asd",
            Self::Nsd => "nsd",
            Self::CupToDisc => "cup-to-disc-error",
        }
    }

    /// Its name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Dice => "Dice",
            Self::Iou => "IoU",
            Self::Hd95 => "HD95",
            Self::Asd => "ASD",
            Self::Nsd => "NSD",
            Self::CupToDisc => "Cup-to-disc error",
        }
    }

    /// Whether a metric of a report, by its name there, is this one of any class.
    pub fn is_of(self, name: &str) -> bool {
        name.strip_prefix(self.name()).is_some_and(|rest| match self {
            Self::CupToDisc => rest.is_empty(),
            _ => rest.starts_with('-'),
        })
    }

    /// Whether a metric of a report, by its name there, is one of masks.
    pub fn is_named(name: &str) -> bool {
        Self::ALL.iter().any(|metric| metric.is_of(name))
    }

    /// Whether it is a distance: without an upper end, in the unit of the spacing, undefined where a mask is empty.
    pub fn is_distance(self) -> bool {
        matches!(self, Self::Hd95 | Self::Asd)
    }

    pub(super) fn direction(self) -> Direction {
        match self {
            Self::Dice | Self::Iou | Self::Nsd => Direction::HigherIsBetter,
            Self::Hd95 | Self::Asd | Self::CupToDisc => Direction::LowerIsBetter,
        }
    }

    pub(super) fn convention(self, masks: &MaskSettings, unit: &str) -> String {
        match self {
            Self::Dice => "2 |A and B| / (|A| + |B|), mean over samples; both masks empty 1, one empty 0".to_owned(),
            Self::Iou => "|A and B| / |A or B|, mean over samples; both masks empty 1, one empty 0".to_owned(),
            Self::Hd95 => {
                let of = match masks.hausdorff {
                    Hausdorff::Medpy => "both surfaces together, as in medpy",
                    Hausdorff::Monai => "the surface where it is larger, as in MONAI",
                };
                format!("95th percentile of the distances in {unit} of {of}, mean over samples without an empty mask")
            }
            Self::Asd => {
                format!("mean distance in {unit} of the pixels of both surfaces, mean over samples without an empty mask")
            }
            Self::Nsd => format!(
                "share of the pixels of both surfaces within {} {unit} of the other surface, mean over samples; both masks empty 1, one \
                 empty 0",
                masks.tolerance
            ),
            Self::CupToDisc => {
                "|predicted - true| vertical diameter of the cup divided by that of the disc, mean over samples with both discs".to_owned()
            }
        }
    }

    pub(super) fn value(self, score: &PairScore) -> Result<f64, MetricError> {
        match self {
            Self::Dice | Self::CupToDisc => Ok(score.dice()),
            Self::Iou => Ok(score.iou()),
            Self::Hd95 => score.hd95(),
            Self::Asd => score.asd(),
            Self::Nsd => Ok(score.nsd()),
        }
    }
}
