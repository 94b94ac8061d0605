//! Predicted curves with outcomes and groups, in files: those of a run, and those of any other model.

pub(crate) mod curve_columns;
mod file;
mod scored_table;

pub use curve_columns::{CurveRepairs, Rising};
pub use file::{PredictionTable, match_predictions, read_predictions, write_predictions};
pub use scored_table::{ChangingAttribute, ScoredTable, read_outcomes, read_scored_table};
