//! What is done with curves that leave \[0, 1\] or rise, and how much of it is allowed.

use fairtte_metrics::SURVIVAL_TOLERANCE;
use serde::{Deserialize, Serialize};

/// A change of a cell up to this is a small one.
pub(crate) const REPAIR_LIMIT: f64 = 0.01;
/// The percentage of cells that a repair may change by more than [`REPAIR_LIMIT`].
pub(crate) const MOST_REPAIRED: usize = 5;

/// The treatment of a curve that rises by more than [`SURVIVAL_TOLERANCE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rising {
    /// It is an error.
    #[default]
    Refuse,
    /// Each value becomes the lowest up to its time, and the changes are counted. It is an error if that changes more than
    /// 5 % of the cells by more than 0.01.
    RunningMinimum,
    /// The same, whatever it changes.
    RunningMinimumOfAll,
}

/// The changes that bring every curve into \[0, 1\] and make it non-increasing; numerical noise counts too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CurveRepairs {
    /// Rows in which a cell was changed.
    pub n_rows: usize,
    /// Cells that were changed.
    pub n_cells: usize,
    /// The largest change of a cell; 0 without changes.
    pub largest_change: f64,
}

impl CurveRepairs {
    /// Whether every change is within [`SURVIVAL_TOLERANCE`].
    pub fn is_noise(&self) -> bool {
        self.largest_change <= SURVIVAL_TOLERANCE
    }
}
