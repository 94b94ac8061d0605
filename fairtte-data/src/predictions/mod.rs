//! Files of predicted curves, with outcomes and groups: those of a run and of any other model.

pub(crate) mod curve_columns;
mod file;
mod levels;
mod looks_like;
mod outcomes;
mod scored_table;
mod values;

pub use curve_columns::{CurveRepairs, Rising};
pub use file::{PredictionTable, match_predictions, read_predictions, write_predictions};
pub use levels::{DoubtfulLevels, doubtful_levels};
pub use looks_like::LooksLike;
pub use outcomes::{ColumnNames, read_outcomes};
pub use scored_table::{ChangingAttribute, ReadOptions, ScoredTable, read_scored_table};
