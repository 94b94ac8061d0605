//! What masks are compared with.

use serde::{Deserialize, Serialize};

use crate::MetricError;

/// Which number is called `HD95`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hausdorff {
    /// The percentile of the distances of both surfaces together, as `medpy.metric.binary.hd95`, which `FairSeg` and
    /// `TransUNet` use.
    #[default]
    Medpy,
    /// The larger of the percentiles of the two surfaces, as `monai.metrics.compute_hausdorff_distance`.
    Monai,
}

impl Hausdorff {
    /// Its name in settings: `medpy` or `monai`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Medpy => "medpy",
            Self::Monai => "monai",
        }
    }
}

/// The numbers that pixels of one class have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MaskClass {
    /// Its name, for example `cup`.
    pub name: String,
    /// Its values, for example 1 and 2 for a disc that contains the cup; at least one.
    pub values: Vec<i32>,
}

/// How masks are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MaskSettings {
    /// Which number is called `HD95`: `medpy` (default) or `monai`.
    pub hausdorff: Hausdorff,
    /// Distance, in the unit of the spacing, up to which a pixel of a surface counts as right for NSD; finite and >= 0.
    /// Default 1.
    pub tolerance: f64,
}

impl Default for MaskSettings {
    fn default() -> Self {
        Self { hausdorff: Hausdorff::default(), tolerance: 1.0 }
    }
}

impl MaskSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] for a tolerance that is no finite number >= 0.
    pub fn validate(&self) -> Result<(), MetricError> {
        if self.tolerance.is_finite() && self.tolerance >= 0.0 {
            return Ok(());
        }
        let (setting, expected) = ("tolerance", "a finite number >= 0");
        Err(MetricError::InvalidSetting { setting, value: self.tolerance.to_string(), expected })
    }
}
