//! Calibration over the distribution, at one time and over time.

pub(crate) mod bins_of_risk;
pub(crate) mod calibration_alpha;
pub(crate) mod calibration_index;
pub(crate) mod d_calibration;
pub(crate) mod integrated_calibration;
pub(crate) mod observed_expected;
pub(crate) mod one_calibration;
pub(crate) mod own_time_survival;

pub use calibration_alpha::{CalibrationAlpha, DEFAULT_HAZARD_REPLACEMENT, calibration_alpha};
pub use calibration_index::{CalibrationIndex, calibration_index, calibration_slope};
pub use d_calibration::{DCalibration, DCalibrationConvention, d_calibration};
pub use integrated_calibration::{IntegratedCalibration, integrated_calibration, integrated_calibration_by_group};
pub use observed_expected::{ObservedExpected, observed_expected};
pub use one_calibration::{
    BinVariance, CalibrationBin, ObservedRisk, OneCalibration, OneCalibrationSettings, RiskBinning, one_calibration,
};
pub use own_time_survival::{OwnTimeReading, survival_at_own_time};
