//! A study: trainings over data sets, attributes, heads, starts, strategies, shifts and draws of hyper-parameters, in one
//! folder that any number of processes and machines fill.
//!
//! `file.rs` is the study file, `search.rs` draws, `cells.rs` expands the axes, `measures.rs` are the metrics of curves and of classes, `plan.rs` resolves a cell and a trial to a run
//! file and names it by its content, `folder.rs` knows where everything is, `lease.rs` keeps two processes off one trial,
//! `state.rs` tells planned, running, finished and failed trials apart from files alone, `pool.rs` runs them as child
//! processes, `scores.rs` is what a finished trial leaves behind, and
//! `tidy.rs` removes the rest. `halving.rs` stops trials that fall behind, if the study asks for it. `cost.rs` says how long trials take, and `slurm/` packs them into tasks of arrays. `results.rs` is the table of all scores; `points.rs`, `choice.rs` and `analysis/` make the report.

mod analysis;
mod cells;
mod choice;
mod cost;
mod file;
mod folder;
mod halving;
mod lease;
mod measures;
mod plan;
mod points;
mod pool;
mod results;
mod scores;
mod search;
mod slurm;
mod state;
mod tidy;

pub(crate) use analysis::{Analysis, Bound, Causes, Members, Model, ReadCohort, Samples, Section, Study};
pub(crate) use cells::Block;
pub(crate) use cost::Seconds;
pub(crate) use file::{Estimators, Keep, Strategies, StudyFile};
pub(crate) use folder::{StudyFolder, TrialFolder};
pub(crate) use halving::{AtRung, Ladder, Next, may_run};
pub(crate) use lease::{Claim, Holder, Lease, Sign, Timing, last_sign, time_of_server};
pub(crate) use measures::Measures;
pub(crate) use plan::{Plan, Planned};
pub(crate) use points::{Points, Setting};
pub(crate) use pool::{Pool, Progress};
pub(crate) use results::write_results;
pub(crate) use scores::score;
#[cfg(test)]
pub(crate) use slurm::Task;
pub(crate) use slurm::{
    Call, Limits, Packing, Queue, Slurm, Submission, TaskState, Trial, check_options, deal, limits, next_list, script,
    shares, submissions, submit, write_submissions,
};
pub(crate) use state::{Failure, FailureClass, Refusal, TrialState};
pub(crate) use tidy::{keep_only, pack_model};
