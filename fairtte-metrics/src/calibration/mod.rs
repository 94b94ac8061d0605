//! Calibration over the distribution, at one time and over time.

pub(crate) mod calibration_alpha;
pub(crate) mod d_calibration;
pub(crate) mod integrated_calibration;
pub(crate) mod one_calibration;
pub(crate) mod own_time_survival;
