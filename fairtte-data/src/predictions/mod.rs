//! Files of predicted curves, with outcomes and groups: those of a run and of any other model.

pub(crate) mod curve_columns;
mod file;
mod scored_table;

pub use curve_columns::{CurveRepairs, Rising};
pub use file::{PredictionTable, match_predictions, read_predictions, write_predictions};
pub use scored_table::{ChangingAttribute, ScoredTable, read_outcomes, read_scored_table};
