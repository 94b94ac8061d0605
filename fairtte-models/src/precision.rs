//! The precision in which a network computes.

use std::fmt;

use burn::tensor::{DType, Device, FloatDType};
use serde::{Deserialize, Serialize};

use crate::ModelError;

/// The precision of the activations of a network in training. Parameters, their gradients, the optimiser, norms, losses and
/// everything after the backbone stay in single precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// 16 bits with the range of single precision and 8 binary digits.
    Bf16,
    /// 16 bits with 11 binary digits and a range of 6e-8 to 65,504, for which losses are scaled.
    F16,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::F32, Self::Bf16, Self::F16];

    /// The name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    /// Checks that `device` computes in this precision.
    ///
    /// # Errors
    /// [`ModelError::Precision`] with what the device supports.
    pub fn check(self, device: &Device) -> Result<(), ModelError> {
        if self.is_supported(device) {
            return Ok(());
        }
        let supported = Self::ALL.into_iter().filter(|precision| precision.is_supported(device)).map(Self::name);
        Err(ModelError::Precision { precision: self, supported: supported.collect::<Vec<_>>().join(", ") })
    }

    /// Whether `device` computes in this precision.
    pub fn is_supported(self, device: &Device) -> bool {
        self == Self::F32 || device.supports_dtype(DType::from(self.float()))
    }

    pub(crate) fn float(self) -> FloatDType {
        match self {
            Self::F32 => FloatDType::F32,
            Self::Bf16 => FloatDType::BF16,
            Self::F16 => FloatDType::F16,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
