//! Bootstrap draws of samples and trainings, the jackknife, intervals and paired differences.

pub(crate) mod bootstrap;
pub(crate) mod intervals;
pub(crate) mod jackknife;
pub(crate) mod paired;
pub(crate) mod replicates;
pub(crate) mod stratify;
pub(crate) mod training_draws;
