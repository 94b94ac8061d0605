//! Which of several training runs to keep.

pub(crate) mod criterion_values;
pub(crate) mod run_table;
pub(crate) mod select_run;
