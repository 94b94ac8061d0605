//! A study on SLURM: arrays whose tasks run packs of trials.
//!
//! `settings.rs` is `[execute.slurm]`, `deal.rs` divides trials among tasks and tasks among arrays, `script.rs` fills in the
//! script of a task (`task.sh`), `queue.rs` calls `scontrol`, `sbatch` and `squeue` and remembers what was submitted.

mod deal;
mod queue;
mod script;
mod settings;

pub(crate) use deal::{Limits, Packing, Trial, deal, shares};
#[cfg(test)]
pub(crate) use queue::Task;
pub(crate) use queue::{Queue, Submission, TaskState, limits, next_list, submissions, submit, write_submissions};
pub(crate) use script::{Call, script};
pub(crate) use settings::{Slurm, check_options};
