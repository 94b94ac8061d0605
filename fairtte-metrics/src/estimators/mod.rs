//! Survival, cumulative hazard and censoring curves of a sample.

pub(crate) mod censoring;
pub(crate) mod cox;
pub(crate) mod cox_lanes;
pub(crate) mod kaplan_meier;
pub(crate) mod nelson_aalen;

pub use censoring::{AtZeroCensoring, BeyondLastTime, CensoringCurve, CensoringLookup, CensoringTies};
pub use kaplan_meier::KaplanMeier;
pub use nelson_aalen::{NelsonAalen, TiedEvents};
