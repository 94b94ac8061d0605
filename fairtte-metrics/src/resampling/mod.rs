//! Bootstrap draws of samples and trainings, the jackknife, intervals, and differences of paired and of independent samples.

pub(crate) mod bootstrap;
pub(crate) mod intervals;
pub(crate) mod jackknife;
pub(crate) mod lanes;
pub(crate) mod nested;
mod p_value;
pub(crate) mod paired;
pub(crate) mod stratify;
pub(crate) mod training_draws;
pub(crate) mod unpaired;

pub use crate::folds::folds_by_subject;
pub use bootstrap::{Bootstrap, Resample, percentile_interval};
pub use intervals::{Interval, IntervalMethod, Replicated};
pub use jackknife::{Jackknife, JackknifeValues};
pub use nested::{Nested, NestedValues};
pub use paired::{PairedDifference, paired_difference, relative_change};
pub use stratify::Stratify;
pub use training_draws::draw_trainings;
pub use unpaired::{UnpairedDifference, recovered_interval, unpaired_difference};
