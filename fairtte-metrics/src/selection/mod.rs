//! Which of several training runs to keep.

pub(crate) mod criterion_values;
pub(crate) mod run_table;
pub(crate) mod select_run;

pub use run_table::{Measured, Run, RunTable};
pub use select_run::{ExcludedRun, RunStanding, RunValue, Selection, SelectionCriterion, WorstGroup, select_run};
