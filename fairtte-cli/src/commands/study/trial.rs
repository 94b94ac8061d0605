//! `fairtte study trial`: one trial from its place in the manifest to its scores.

use std::path::Path;

use fairtte_data::DataError;
use fairtte_fairness::FairnessError;
use serde::Serialize;

use super::{planned, timing};
use crate::args::StudyTrial;
use crate::commands::compare::is_about_the_method;
use crate::commands::evaluate::Shown;
use crate::commands::{train, use_threads};
use crate::progress::say;
use crate::run_folder::{remove_file, write_json, write_text};
use crate::study::{
    AtRung, Claim, Failure, FailureClass, Holder, Keep, Ladder, Lease, Next, Plan, Planned, Refusal, TrialFolder,
    TrialState, keep_only, score, time_of_server,
};
use crate::{CliError, device, exit::Exit, interrupt};

pub(super) fn run(arguments: &StudyTrial) -> Result<(), CliError> {
    let plan = planned(&arguments.folder)?;
    use_threads(arguments.threads)?;
    arguments.index.iter().try_for_each(|index| plan.check_place(*index))?;
    // A trial that fails must not keep the others of its pack from running.
    let mut outcome = Ok(());
    for index in &arguments.index {
        let Err(error) = one(&plan, *index, arguments) else { continue };
        // On a lost device every other trial would fail too; they stay as they are.
        let is_gone = matches!(error, CliError::DeviceFailed { is_lost: true, .. } | CliError::DeviceUnusable { .. });
        let is_last = interrupt::is_wanted() || is_gone;
        if let Err(earlier) = std::mem::replace(&mut outcome, Err(error)) {
            crate::error::print(&earlier);
        }
        if is_last {
            break;
        }
    }
    outcome
}

fn one(plan: &Plan, index: usize, arguments: &StudyTrial) -> Result<(), CliError> {
    let mut planned = plan.resolve(index)?;
    planned.run.threads = arguments.threads;
    let folder = plan.folder().trial(&planned.id);
    let timing = timing(plan);
    std::fs::create_dir_all(folder.path()).map_err(|error| failed(&folder, &error))?;
    let state = TrialState::of(&folder, time_of_server(folder.path())?, timing.stale)?;
    match &state {
        TrialState::Done => {
            say(format!("{}: done", planned.id));
            // A kill may have come between the scores and the removal of the rest.
            return keep_only(&folder, plan.study().execute.keep);
        }
        TrialState::Refused(refusal) if !arguments.again => {
            say(format!("{}: not trained; --again tries it again: {}", planned.id, refusal.because));
            return Ok(());
        }
        TrialState::Failed(failure) if failure.is_final() && !arguments.again => {
            let class = failure.class.name();
            say(format!("{}: failed ({class}); --again tries it again: {}", planned.id, failure.message));
            return Ok(());
        }
        _ => {}
    }
    let next = Ladder::climb_for(plan, &planned.id)?.map_or(Next::End, |ladder| ladder.next(&planned.id));
    match next {
        Next::Stopped => {
            say(format!("{}: stopped by successive halving", planned.id));
            return Ok(());
        }
        Next::Wait => {
            say(format!("{}: waits for the other trials of its cell", planned.id));
            return Ok(());
        }
        Next::Until(_) | Next::End => {}
    }
    let lease = match Lease::claim(&folder, timing, interrupt::request)? {
        Claim::Ours(lease) => lease,
        Claim::Held(holder) => {
            let (process, host) = (holder.process, holder.machine());
            say(format!("{}: process {process} of {host} works on it", planned.id));
            return Ok(());
        }
    };
    if let Some(earlier) = lease.took_over.as_ref().filter(|earlier| !earlier.was_restarted() && !arguments.again) {
        let message = "its process vanished, or its machine".to_owned();
        let failure = Failure::record(&folder, FailureClass::Killed, message, earlier)?;
        if failure.is_final() {
            say(format!("{}: killed {} times; --again tries it again", planned.id, failure.attempts));
            lease.release();
            return Ok(());
        }
    }
    // A folder that is kept as a whole has its report too.
    let keep = plan.study().execute.keep;
    let shown = if keep == Keep::Everything { Shown::Nothing } else { Shown::Unscored };
    interrupt::holding(lease.give_back_later(), move || attempt(&planned, &folder, lease, next, (keep, shown)))
}

/// Trains a trial that this process holds, and records what came of it.
fn attempt(
    planned: &Planned,
    folder: &TrialFolder,
    lease: Lease,
    next: Next,
    (keep, shown): (Keep, Shown),
) -> Result<(), CliError> {
    // Of a method that is tried again: the old reason is none any more.
    remove_file(&folder.refused())?;
    // A panic counts as an attempt, too.
    let outcome = device::caught(|| match next {
        Next::Until(epochs) => train::train_until(&planned.run, shown, epochs),
        _ => train::train(&planned.run, shown),
    });
    let is_paused = interrupt::take_pause();
    if !lease.is_ours(folder) {
        let problem = "another process took this trial over, because this one gave no heartbeat in time".to_owned();
        return Err(CliError::RunFolder { path: folder.path().to_owned(), problem });
    }
    let finished = match (outcome, next) {
        (Err(CliError::Training(FairnessError::Interrupted { .. })), Next::Until(epochs))
            if is_paused && !interrupt::is_wanted() =>
        {
            remove_file(&folder.failed())?;
            write_json(&folder.rung(), &AtRung { epochs })
        }
        (outcome, _) => finish(outcome, folder, keep),
    };
    lease.release();
    finished
}

/// Records what a training came to.
fn finish(outcome: Result<(), CliError>, folder: &TrialFolder, keep: Keep) -> Result<(), CliError> {
    let error = match outcome.and_then(|()| score(folder.path())) {
        Ok(scores) => {
            if keep == Keep::Weights {
                crate::study::pack_model(folder)?;
            }
            remove_file(&folder.failed())?;
            remove_file(&folder.rung())?;
            write_compact(&folder.scores(), &scores)?;
            return keep_only(folder, keep);
        }
        Err(error) => error,
    };
    if interrupt::is_wanted() {
        return Err(error);
    }
    let of_method = match &error {
        CliError::Training(cause) if is_about_the_method(cause) => {
            Some(matches!(cause, FairnessError::NotFinite { .. }))
        }
        // Data that this estimator cannot be fitted to; a setting out of range is an error of the study.
        CliError::Estimator(_) if error.exit() == Exit::Data => Some(false),
        _ => None,
    };
    if let Some(diverged) = of_method {
        let because = error.to_string();
        say(format!("not trained: {because}"));
        remove_file(&folder.failed())?;
        write_json(&folder.refused(), &Refusal { diverged, because })?;
        return keep_only(folder, keep);
    }
    Failure::record(folder, class_of(&error), crate::error::sentence(&error), &Holder::this())?;
    Err(error)
}

/// Why a trial failed with `error`, which is not about its method.
fn class_of(error: &CliError) -> FailureClass {
    match (error, error.exit()) {
        (CliError::DeviceFailed { .. } | CliError::DeviceUnusable { .. }, _) => FailureClass::Device,
        (
            CliError::RunFolder { .. }
            | CliError::Data(DataError::Write { .. })
            | CliError::Training(FairnessError::Checkpoint { .. } | FairnessError::Data(DataError::Write { .. })),
            _,
        ) => FailureClass::Files,
        (_, Exit::Config | Exit::Usage) => FailureClass::Config,
        (_, Exit::Data) => FailureClass::Data,
        _ => FailureClass::Unknown,
    }
}

/// JSON without line breaks: there may be 20,000 of these files.
fn write_compact(path: &Path, value: &impl Serialize) -> Result<(), CliError> {
    write_text(path, &serde_json::to_string(value).map_err(|error| CliError::Bug(error.to_string()))?)
}

fn failed(folder: &TrialFolder, error: &std::io::Error) -> CliError {
    CliError::RunFolder { path: folder.path().to_owned(), problem: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_does_not_open_on_one_machine_is_no_wrong_setting() {
        let (device, problem) = ("cuda:0".to_owned(), "cannot be used: no driver".to_owned());
        let unusable = CliError::DeviceUnusable { device: device.clone(), problem: problem.clone() };
        assert_eq!(class_of(&unusable), FailureClass::Device);
        assert_eq!(class_of(&CliError::Device { device, problem }), FailureClass::Config);
        assert_eq!(class_of(&CliError::Check("a file".to_owned())), FailureClass::Data);
    }
}
