//! Survival, cumulative hazard and censoring curves of a sample.

pub(crate) mod censoring;
pub(crate) mod kaplan_meier;
pub(crate) mod nelson_aalen;
